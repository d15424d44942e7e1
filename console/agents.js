// The agents view: the directory, and one agent's page with its card, skills, reputation and messages.

import {
  copyText,
  h,
  isWideScreen,
  linkUrls,
  renderAvatar,
  renderIcon,
  renderName,
  replaceContent,
  throttleToRepaint,
} from './dom.js';
import {
  formatCount,
  formatCredits,
  formatCulture,
  formatDate,
  formatDecimal,
  formatKind,
  formatTimestamp,
  t,
} from './words.js';
import { encodeUriPart, getApi } from './api.js';
import { hubState, principal, subscribe } from './hub.js';
import { createLineChart } from './chart.js';
import { getConversationHash, listConversationsWith } from './conversation_state.js';
import { createVirtualList } from './list.js';
import { stripMarkdown } from './markdown.js';
import { renderIntro } from './next_step.js';
import { createAgentAdmin } from './operator.js';

const SHOWN_FIELDS = ['card_version', 'user_culture', 'supported_languages'];

/** Marks a name under another host than the hub's own. */
export const renderUnverified = (agent) =>
  agent.host_verified === false && h('span.chip.bad', { title: t('agents.unverified.why') }, t('agents.unverified'));

export const renderCultureChip = (culture) => culture && h('span.chip', { title: formatCulture(culture) }, culture);

function renderScore(value) {
  if (value === undefined) return undefined;
  return h('span.score', { share: `${Math.round(value)}%`, title: t('reputation') }, formatDecimal(value));
}

function fillRow(row, agent, shownId) {
  row.classList.toggle('is-open', agent.agent_id === shownId);
  replaceContent(
    row,
    renderAvatar(agent.agent_id, agent.online),
    h(
      'span.two',
      {},
      renderName(agent.agent_id),
      h(
        'span.quiet.small',
        {},
        [agent.languages.join(' '), ...agent.skills.map((skill) => skill.skill_name)].filter(Boolean).join(' · '),
      ),
    ),
    renderUnverified(agent),
    renderCultureChip(agent.culture),
    renderScore(agent.score),
    h(
      'span',
      { class: `state ${agent.online ? 'good' : ''}`, title: t(`reach.${agent.reach}`) },
      agent.online ? t('online.yes') : t('online.no'),
    ),
  );
}

export function openView(root, id) {
  let shownId = id;
  const searchField = h('input', { type: 'search', placeholder: t('agents.search'), 'aria-label': t('agents.search') });
  const onlineOnly = h('input', { type: 'checkbox', id: 'only-online' });
  const countNode = h('span.quiet.small', { 'aria-live': 'polite' });
  const list = createVirtualList({
    height: 54,
    fillRow: (row, agent) => fillRow(row, agent, shownId),
    label: t('view.agents'),
    emptyText: t('agents.none'),
    onOpen: (agent) => {
      location.hash = `#/agents/${encodeUriPart(agent.agent_id)}`;
    },
  });
  const detail = h('section.detail', { 'aria-label': t('agents.one') });
  root.append(
    h(
      'div.split',
      { class: id ? 'has-detail' : '' },
      h(
        'section.master',
        {},
        h('h1', {}, t('view.agents')),
        h(
          'div.bar',
          {},
          searchField,
          h('label.check', { for: 'only-online' }, onlineOnly, t('online.only')),
          countNode,
        ),
        list.node,
      ),
      detail,
    ),
  );
  const render = () => {
    const query = searchField.value.trim().toLowerCase();
    const isMatch = (agent) =>
      (!onlineOnly.checked || agent.online) &&
      (!query ||
        [agent.agent_id, agent.culture, ...agent.languages, ...agent.skills.map((skill) => skill.skill_name)].some(
          (text) => text?.toLowerCase().includes(query),
        ));
    const matches = [...hubState.agents.values()].filter(isMatch);
    matches.sort((a, b) => Number(b.online) - Number(a.online) || (a.agent_id < b.agent_id ? -1 : 1));
    countNode.textContent = t('agents.count', { n: formatCount(matches.length) });
    if (!shownId) openFirst(matches);
    list.setItems(matches, (agent) => agent.agent_id);
  };
  /** The first of the list but oneself, beside it. The view may be closed when the list comes. */
  const openFirst = (matches) => {
    const first = detail.isConnected && isWideScreen() && matches.find((agent) => agent.agent_id !== principal.id);
    if (!first) return;
    shownId = first.agent_id;
    cleanups.push(openAgent(detail, shownId));
  };
  searchField.addEventListener('input', render);
  onlineOnly.addEventListener('change', render);
  const cleanups = [subscribe(['agents'], throttleToRepaint(render))];
  if (id) cleanups.push(openAgent(detail, id));
  else
    replaceContent(detail, renderIntro('agents', `chorus register NAME --hub ${location.origin}`));
  render();
  return () => cleanups.forEach((cleanup) => cleanup());
}

/* ---- one agent ---- */

function openAgent(root, id) {
  let record;
  let reputation;
  let errorText;
  // Made once, so that what is typed into it outlives a refresh.
  let adminNode;
  const render = () => {
    if (errorText) return replaceContent(root, renderBackLink(), h('p.empty', {}, errorText));
    if (!record) return replaceContent(root, renderBackLink(), h('p.quiet', {}, t('wait')));
    const listed = hubState.agents.get(record.agent_id);
    const card = record.agent_card ?? {};
    return replaceContent(
      root,
      renderBackLink(),
      h(
        'header.person',
        {},
        renderAvatar(record.agent_id, record.online),
        h(
          'div',
          {},
          h('h2', {}, renderName(record.agent_id), record.host_verified === false && ' ', renderUnverified(record)),
          h(
            'p.quiet',
            {},
            record.online ? t('online.yes') : t('online.no'),
            ' · ',
            t('agents.since', { day: formatDate(record.registered_at) }),
          ),
        ),
      ),
      h(
        'dl.pairs',
        {},
        renderPair(t('agents.handle'), record.handle && h('code', {}, record.handle)),
        renderPair(
          t('culture'),
          card.user_culture && [renderCultureChip(card.user_culture), ' ', formatCulture(card.user_culture)],
        ),
        renderPair(t('languages'), card.supported_languages?.length && card.supported_languages.map(renderCultureChip)),
        renderPair(t('agents.reached'), t(`reach.${record.reach}`)),
        renderPair(t('agents.url'), record.endpoint && h('code', {}, record.endpoint)),
        renderPair(t('owner'), listed?.owner && h('bdi', {}, listed.owner)),
        Object.entries(card)
          .filter(([key]) => !SHOWN_FIELDS.includes(key))
          .slice(0, 12)
          .map(([key, value]) =>
            renderPair(key, typeof value === 'string' ? linkUrls(value) : h('code', {}, JSON.stringify(value))),
          ),
      ),
      renderSkills(listed),
      renderReputation(reputation),
      renderConversations(record),
      renderInviteLink(record),
      (adminNode ??= createAgentAdmin(record, listed?.owner)),
    );
  };
  Promise.all([
    getApi(`/agents/${encodeUriPart(id)}`),
    getApi(`/reputation/${encodeUriPart(id)}`).catch(() => undefined),
  ]).then(
    ([foundRecord, foundReputation]) => {
      record = foundRecord;
      reputation = foundReputation;
      render();
    },
    (error) => {
      errorText = error.message;
      render();
    },
  );
  render();
  return subscribe(['conversations', 'log', 'agents'], throttleToRepaint(render));
}

const renderBackLink = () => h('a.back', { href: '#/agents' }, renderIcon('back'), t('view.agents'));

export const renderPair = (label, value) => value && [h('dt', {}, label), h('dd', {}, value)];

function renderSkills(agent) {
  if (!agent?.skills.length) return undefined;
  return h(
    'section',
    {},
    h('h3', {}, t('skills')),
    h(
      'ul.lines',
      {},
      agent.skills.map((skill) =>
        h(
          'li',
          {},
          h('a', { href: `#/market/skill/${encodeUriPart(skill.skill_name)}` }, h('bdi', {}, skill.skill_name)),
          h('span.spring'),
          h('b', {}, formatCredits(skill.cost_per_call)),
        ),
      ),
    ),
  );
}

function renderReputation(reputation) {
  if (!reputation) return undefined;
  const { score: currentScore, stats, history } = reputation;
  const scores = [...history].reverse().map((change) => change.score_after);
  const chart = createLineChart(
    'reputation',
    Math.max(2, scores.length),
    (last) => `${t('reputation')} ${formatDecimal(last)}`,
  );
  if (scores.length > 1) chart.draw(scores);
  return h(
    'section',
    {},
    h('h3', {}, t('reputation')),
    h(
      'p.big',
      {},
      h('b', {}, formatDecimal(currentScore)),
      h(
        'span.quiet.small',
        {},
        ` ${t('reputation.from', { n: formatCount(stats.total), good: formatCount(stats.successes), bad: formatCount(stats.failures) })}`,
      ),
    ),
    scores.length > 1 && chart.node,
  );
}

/**
 * For an agent: its conversations with the shown agent. For an operator: the activity log entries that name the shown agent,
 * because message texts are visible only to their sender and receiver.
 */
function renderConversations(record) {
  if (principal.role === 'operator') {
    const entries = hubState.log
      .filter((entry) =>
        [entry.data?.sender_id, entry.data?.receiver_id, entry.data?.agent_id].includes(record.agent_id),
      )
      .slice(-12)
      .reverse();
    return h(
      'section',
      {},
      h('h3', {}, t('agents.activity')),
      entries.length
        ? h(
            'ul.lines',
            {},
            entries.map((entry) =>
              h(
                'li',
                {},
                h('time.quiet', {}, formatTimestamp(entry.timestamp)),
                h('span', {}, formatKind(entry.type)),
                h(
                  'bdi.quiet',
                  {},
                  entry.data?.sender_id === record.agent_id
                    ? `→ ${entry.data.receiver_id}`
                    : entry.data?.sender_id
                      ? `← ${entry.data.sender_id}`
                      : '',
                ),
              ),
            ),
          )
        : h('p.quiet', {}, t('agents.quiet')),
    );
  }
  if (record.agent_id === principal.id) return undefined;
  const conversations = listConversationsWith(record.agent_id);
  return h(
    'section',
    {},
    h('h3', {}, t('agents.talk')),
    conversations.length
      ? h(
          'ul.lines',
          {},
          conversations.map((row) =>
            h(
              'li',
              {},
              h(
                'a',
                { href: getConversationHash(record.agent_id, row.conversationId) },
                h('bdi', {}, row.conversationId || t('thread.none')),
              ),
              h('bdi.quiet.cut', {}, stripMarkdown(row.lastText)),
              h('time.quiet', {}, formatTimestamp(row.lastAt)),
            ),
          ),
        )
      : undefined,
    h('p', {}, h('a.button', { href: `#/conversations/${encodeUriPart(record.agent_id)}` }, t('agents.write'))),
  );
}

function renderInviteLink(record) {
  const url = `${hubState.discovery?.public_url ?? location.origin}/invite/${encodeUriPart(record.agent_id)}`;
  const copyButton = h(
    'button',
    {
      type: 'button',
      onclick: () =>
        copyText(url).then(() => {
          copyButton.textContent = t('copied');
        }),
    },
    t('copy'),
  );
  return h(
    'section',
    {},
    h('h3', {}, t('agents.invite')),
    h('p.row-line', {}, h('a', { href: `/invite/${encodeUriPart(record.agent_id)}` }, url), copyButton),
  );
}
