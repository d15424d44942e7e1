// What needs the person now: decisions, unread messages, jobs that wait for an answer or for work, invitations, failed deliveries.

import { h, renderName, replaceContent, throttleToRepaint } from './dom.js';
import { formatCount, formatTimestamp, t } from './words.js';
import { encodeUriPart, getApi, getLinkedPage, principal } from './api.js';
import { hubState, repeatEvery, subscribe } from './hub.js';
import { conversationState, listConversations } from './conversation_state.js';
import { renderConversationRow, renderPairRow } from './conversation_row.js';
import { createDecisionList } from './decision_list.js';
import { renderNextStep } from './next_step.js';
import { listHandovers } from './frames.js';
import { stripMarkdown } from './markdown.js';

const MAX_SHOWN = 6;
/** Jobs that are read of each state: enough for a glance, and little for a request every few seconds. */
const MAX_READ = 20;
const POLL_MS = 8_000;
/** A failed delivery is news for this long. */
const FAILED_NEWS_MS = 7 * 86_400_000;
/** The states in which a job waits for its requester, and for its worker. */
const REQUESTER_STATES = ['input-required', 'delivered'];
const WORKER_STATES = ['dispatched'];
const DISMISSED_STORAGE = 'chorus.dismissed';

/** `hasMore` says that more jobs wait than were read. The hub selects by role, so that no job of the other role takes a place. */
async function loadWaitingJobs() {
  const readJobs = (role, state) => getLinkedPage(`/jobs?limit=${MAX_READ}&role=${role}&status=${state}`);
  const pages = await Promise.all([
    ...REQUESTER_STATES.map((state) => readJobs('orchestrator', state)),
    ...WORKER_STATES.map((state) => readJobs('worker', state)),
  ]);
  return { rows: pages.flatMap((page) => page.value.jobs), hasMore: pages.some((page) => page.hasMore) };
}

const loadInvitations = async () =>
  (await getApi('/channels')).filter((channel) => channel.membership === 'invited');

/* A failed delivery is dismissed by its conversation and its number of failures, so that the next failure shows again. */
const readDismissed = () => {
  try {
    return JSON.parse(localStorage.getItem(DISMISSED_STORAGE)) ?? {};
  } catch {
    return {};
  }
};
const getFailureKey = (row) => `${principal.id} ${row.agents.join(' ')} ${row.conversationId}`;

function listFailures() {
  const dismissed = readDismissed();
  return listConversations().filter(
    (row) =>
      row.failed > (dismissed[getFailureKey(row)] ?? 0) && Date.now() - Date.parse(row.lastAt) < FAILED_NEWS_MS,
  );
}

function dismissFailure(row) {
  localStorage.setItem(DISMISSED_STORAGE, JSON.stringify({ ...readDismissed(), [getFailureKey(row)]: row.failed }));
}

/** `hasMore` says that there are more than `count`, which nothing on the page would show otherwise. */
function renderSection(name, count, list, more, hasMore = false) {
  return (
    count > 0 &&
    h(
      'section.card',
      { 'data-need': name },
      h('h2', {}, t(`needs.${name}`), h('span.badge', {}, formatCount(count), hasMore && '+')),
      h('ul.picks', {}, list),
      (count > MAX_SHOWN || hasMore) &&
        h('p', {}, h('a', { href: more }, t(hasMore ? 'needs.more' : 'needs.all', { n: formatCount(count) }))),
    )
  );
}

const renderJob = (job) =>
  h(
    'li',
    {},
    h(
      'a',
      { href: `#/market/${encodeUriPart(job.job_id)}`, 'data-key': `job ${job.job_id}` },
      h(
        'span.two',
        {},
        h('bdi', {}, job.skill_name),
        h('span.quiet.small', {}, renderName(job.orchestrator_id === principal.id ? job.agent_id : job.orchestrator_id)),
      ),
      h('span.state.wait', {}, t(job.orchestrator_id === principal.id ? `job.${job.state}` : 'needs.work')),
    ),
  );

const renderHandover = (handover) =>
  h(
    'li',
    {},
    h(
      'a',
      { href: '#/sessions', 'data-key': `handover ${handover.id}` },
      h(
        'span.two',
        {},
        h('bdi.cut', {}, stripMarkdown(handover.body)),
        h('span.quiet.small', {}, renderName(handover.session ?? handover.holder)),
      ),
      h('time.quiet.small', {}, formatTimestamp(handover.openedAt)),
    ),
  );

const renderInvitation = (channel) =>
  h(
    'li',
    {},
    h(
      'a',
      { href: '#/channels', 'data-key': `invitation ${channel.id}` },
      h('span.hash', { 'aria-hidden': 'true' }, '#'),
      h('span.two', {}, renderName(channel.name), h('span.quiet.small', {}, t('channel.invited', { owner: channel.owner ?? t('role.operator') }))),
      h('time.quiet.small', {}, formatTimestamp(channel.created_at)),
    ),
  );

/** The part of the first view that shows what needs the person; returns its node and `stop`. */
export function openNeeds() {
  const isAgent = principal.role === 'agent';
  const decisions = isAgent && principal.handle ? createDecisionList({ hasHistory: false }) : undefined;
  const sectionsNode = h('div.grid.two');
  const firstSteps = renderNextStep('overview', 'chorus init', `chorus register NAME --hub ${location.origin}`, 'chorus send NAME "hello"');
  const nothingNode = h('div.calm', { 'data-need': 'none' }, h('p', {}, t('needs.none')), firstSteps);
  const node = h('section.needs', { 'aria-label': t('needs') }, decisions?.node, sectionsNode, nothingNode);
  let jobs = { rows: [], hasMore: false };
  let invitations = [];
  const render = () => {
    decisions?.render();
    const unread = isAgent ? listConversations().filter((row) => row.unread > 0) : [];
    const failures = listFailures();
    const handovers = isAgent ? listHandovers(hubState.frames) : [];
    const renderFailure = (row) => {
      const line = isAgent ? renderConversationRow(row) : renderPairRow(row);
      const button = h('button', { type: 'button', 'data-key': `dismiss ${getFailureKey(row)}` }, t('needs.dismiss'));
      button.addEventListener('click', () => {
        dismissFailure(row);
        render();
      });
      line.append(button);
      line.classList.add('with-button');
      return line;
    };
    replaceContent(
      sectionsNode,
      renderSection(
        'unread',
        unread.length,
        unread.slice(0, MAX_SHOWN).map((row) => renderConversationRow(row)),
        '#/conversations',
      ),
      renderSection(
        'jobs',
        jobs.rows.length,
        jobs.rows.slice(0, MAX_SHOWN).map(renderJob),
        '#/market',
        jobs.hasMore,
      ),
      renderSection('handovers', handovers.length, handovers.slice(0, MAX_SHOWN).map(renderHandover), '#/sessions'),
      renderSection('invitations', invitations.length, invitations.slice(0, MAX_SHOWN).map(renderInvitation), '#/channels'),
      renderSection('failed', failures.length, failures.slice(0, MAX_SHOWN).map(renderFailure), '#/conversations'),
    );
    sectionsNode.hidden = !sectionsNode.childElementCount;
    nothingNode.hidden = !sectionsNode.hidden || (decisions && !decisions.node.hidden);
    if (!conversationState.isLoaded) nothingNode.hidden = true;
    firstSteps.hidden = !isAgent || listConversations().length > 0;
  };
  const loadWaiting = async () => {
    [jobs, invitations] = await Promise.all([loadWaitingJobs(), loadInvitations()]);
    render();
  };
  render();
  const cleanups = [subscribe(['conversations', 'frames', 'agents'], throttleToRepaint(render))];
  if (isAgent)
    cleanups.push(
      repeatEvery(POLL_MS, loadWaiting),
      subscribe(['jobs'], () => loadWaiting().catch(() => {})),
    );
  return { node, stop: () => cleanups.forEach((cleanup) => cleanup()) };
}
