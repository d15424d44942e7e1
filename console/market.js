// The market view: skills on offer, jobs and their states, totals and the ledger; and one job's page.

import { h, renderAvatar, renderIcon, renderName, replaceContent, throttleToRepaint } from './dom.js';
import { formatCount, formatCredits, formatDate, formatDuration, formatTime, formatTimestamp, t } from './words.js';
import { encodeUriPart, getApi, postApi } from './api.js';
import { hubState, principal, repeatEvery, subscribe } from './hub.js';
import { renderShareBar } from './chart.js';
import { openOffer, openSkill } from './skill.js';
import { createJobActions } from './job_actions.js';
import { renderNextStep } from './next_step.js';

const OPEN_STATES = ['open', 'held', 'dispatched', 'input-required', 'delivered'];
const JOB_STATES = [...OPEN_STATES, 'done', 'failed', 'cancelled', 'expired'];
const STATE_TONES = {
  open: 'wait',
  held: 'wait',
  dispatched: 'wait',
  'input-required': 'wait',
  delivered: 'wait',
  done: 'good',
  failed: 'bad',
  cancelled: 'off',
  expired: 'bad',
};
/** The largest page of postings; earned and paid are summed over it. */
const MAX_POSTINGS = 1_000;
const SHOWN_POSTINGS = 200;

export function openView(root, id, name) {
  if (id === 'skill' && name) return openSkill(root, name);
  if (id === 'offer') return openOffer(root);
  if (id) return openJob(root, id);
  const isAgent = principal.role === 'agent';
  const ownTotalsNode = h('div.column');
  const hubTotalsNode = h('div.column');
  const skillsNode = h('div');
  const jobsNode = h('div');
  const ledgerNode = h('div');
  const boardNode = h('div');
  root.append(
    h('h1', {}, t('view.market')),
    isAgent ? ownTotalsNode : hubTotalsNode,
    h(
      'div.grid.two',
      {},
      h('section.card', {}, h('h2', {}, t('jobs')), jobsNode),
      h(
        'section.card',
        {},
        h(
          'header.row-line',
          {},
          h('h2', {}, t('skills')),
          h('span.spring'),
          isAgent && h('a.button', { href: '#/market/offer' }, t('offer.title')),
        ),
        skillsNode,
      ),
    ),
    h('section.card', {}, h('h2', {}, t('board')), boardNode),
    h('section.card', {}, h('h2', {}, t('ledger')), ledgerNode),
    isAgent && h('h2', {}, t('market.hub')),
    isAgent && hubTotalsNode,
  );
  let stateFilter = '';
  const loadEconomy = async () => {
    const [economy, audit] = await Promise.all([getApi('/economy'), getApi(`/audit?limit=${MAX_POSTINGS}`)]);
    const owner = isAgent ? findOwner(audit.postings) : undefined;
    const account = owner && (await getApi(`/accounts/${encodeUriPart(owner)}`));
    const stateCounts = JOB_STATES.map((state) => ({
      label: t(`job.${state}`),
      value: economy.job_states?.[state] ?? 0,
      tone: STATE_TONES[state],
    })).filter((part) => part.value > 0);
    if (account)
      replaceContent(
        ownTotalsNode,
        h(
          'dl.tiles',
          { 'data-totals': 'own' },
          renderTile(t('balance'), formatCredits(account.balance), account.owner_id),
          renderTile(t('held'), formatCredits(account.held), t('held.more')),
          renderTile(t('earned'), formatCredits(sumPostings(audit.postings, owner, 1)), describeSpan(audit)),
          renderTile(t('spent'), formatCredits(sumPostings(audit.postings, owner, -1)), describeSpan(audit)),
        ),
      );
    replaceContent(
      hubTotalsNode,
      h(
        'dl.tiles',
        { 'data-totals': 'hub' },
        renderTile(t('issued'), formatCredits(economy.issued), t('issued.more')),
        renderTile(t('held.all'), formatCredits(economy.held), t('held.more')),
        renderTile(t('volume'), formatCredits(economy.volume), t('volume.more')),
      ),
      stateCounts.length > 0 && h(
        'section.card.slim',
        {},
        h('h2', {}, t('jobs')),
        renderShareBar(stateCounts),
        h(
          'ul.legend',
          {},
          stateCounts.map((part) =>
            h(
              'li',
              {},
              h('span', { class: `key tone-${part.tone}` }),
              part.label,
              ' ',
              h('b', {}, formatCount(part.value)),
            ),
          ),
        ),
      ),
    );
    replaceContent(ledgerNode, renderLedger(audit.postings.slice(0, SHOWN_POSTINGS), owner));
  };
  const loadSkills = async () => {
    const found = await getApi('/skills?limit=200');
    replaceContent(
      skillsNode,
      found.skills.length
        ? h(
            'ul.lines',
            {},
            found.skills.map((skill) =>
              h(
                'li',
                {},
                h(
                  'span.two',
                  {},
                  h(
                    'a',
                    {
                      href: `#/market/skill/${encodeUriPart(skill.skill_name)}`,
                      'data-key': `skill ${skill.skill_name}`,
                    },
                    h('bdi', {}, skill.skill_name),
                  ),
                  skill.description && h('bdi.quiet.small', {}, skill.description),
                ),
                h('span.quiet.small', {}, t('skill.agents', { n: formatCount(skill.agents) })),
                h('b', {}, t('skill.from', { n: formatCredits(skill.min_cost) })),
              ),
            ),
          )
        : renderNextStep('skills', 'chorus offer translate --cost 0.10 -- ./translate.sh'),
    );
  };
  const loadBoard = async () => {
    const found = await getApi('/board');
    replaceContent(
      boardNode,
      found.jobs.length
        ? h('ul.picks', {}, found.jobs.map(renderBoardRow))
        : renderNextStep('board', 'chorus hire translate --board --budget 0.15 --input \'{"text": "guten Tag"}\''),
    );
  };
  /** States that were seen among the jobs; only these are offered as filters. */
  const seenStates = new Set();
  const loadJobs = async () => {
    const found = await getApi(`/jobs?limit=100${stateFilter ? `&status=${stateFilter}` : ''}`);
    found.jobs.forEach((job) => seenStates.add(job.state));
    return replaceContent(
      jobsNode,
      seenStates.size > 1 && h(
        'div.chips',
        {},
        ['', ...JOB_STATES.filter((state) => seenStates.has(state))].map((state) =>
          h(
            'button.chip',
            {
              type: 'button',
              'aria-pressed': String(state === stateFilter),
              'data-key': `state ${state}`,
              onclick: () => {
                stateFilter = state;
                loadJobs().catch(() => {});
              },
            },
            state ? t(`job.${state}`) : t('log.all'),
          ),
        ),
      ),
      found.jobs.length
        ? h('ul.picks', {}, found.jobs.map(renderJobRow))
        : stateFilter
          ? h('p.empty', {}, t('jobs.none'))
          : renderNextStep('jobs', 'chorus hire translate --input \'{"text": "guten Tag"}\' --budget 0.15 --wait'),
    );
  };
  const cleanups = [
    repeatEvery(4_000, loadEconomy),
    repeatEvery(10_000, loadSkills),
    repeatEvery(4_000, loadJobs),
    repeatEvery(4_000, loadBoard),
    subscribe(
      ['jobs'],
      throttleToRepaint(() => {
        loadJobs().catch(() => {});
        loadBoard().catch(() => {});
        loadEconomy().catch(() => {});
      }),
    ),
  ];
  return () => cleanups.forEach((cleanup) => cleanup());
}

const renderTile = (label, value, note) =>
  h('div.tile', {}, h('dt', {}, label), h('dd', {}, value), note && h('dd.quiet', {}, h('bdi', {}, note)));

/** The agent's owner: from the directory, else the owner that all of its postings have in common. */
function findOwner(postings) {
  const agent = hubState.agents.get(principal.id);
  if (agent?.owner) return agent.owner;
  let commonOwners;
  for (const posting of postings) {
    const owners = posting.entries.map((entry) => entry.owner_id).filter(Boolean);
    commonOwners = commonOwners ? commonOwners.filter((owner) => owners.includes(owner)) : owners;
  }
  return commonOwners?.length
    ? (commonOwners.find((owner) => owner === principal.id) ?? commonOwners[0])
    : principal.id;
}

/** What an owner has earned (`sign` 1) or paid (-1) for jobs and in transfers. */
function sumPostings(postings, owner, sign) {
  let hundredths = 0;
  for (const { kind, entries, amount } of postings) {
    if (kind !== 'pay' && kind !== 'transfer') continue;
    const [from, to] = [...entries].sort((a, b) => Number(a.amount) - Number(b.amount));
    if (from.owner_id === to.owner_id || (sign > 0 ? to : from).owner_id !== owner) continue;
    hundredths += Math.round(Number(amount) * 100);
  }
  return hundredths / 100;
}

const describeSpan = (audit) =>
  audit.postings.length < MAX_POSTINGS ? t('earned.all') : t('earned.some', { n: formatCount(MAX_POSTINGS) });

/** Why a claim was refused; the board is drawn anew every few seconds. */
const claimFaults = new Map();

/** A job that waits for a worker, with its input: an agent that offers the skill may claim it. */
function renderBoardRow(job) {
  if (principal.role !== 'agent' || job.orchestrator_id === principal.id) return renderJobRow(job);
  const errorNode = h('span.wrong.small', { role: 'alert' }, claimFaults.get(job.job_id));
  const claim = async () => {
    try {
      await postApi(`/jobs/${encodeUriPart(job.job_id)}/claim`, {});
      location.hash = `#/market/${encodeUriPart(job.job_id)}`;
    } catch (error) {
      claimFaults.set(job.job_id, error.message);
      errorNode.textContent = error.message;
    }
  };
  return h(
    'li.board-job',
    { 'data-board': job.job_id },
    renderAvatar(job.orchestrator_id),
    h(
      'span.two',
      {},
      h('bdi', {}, job.skill_name),
      h('span.quiet.small', {}, t('board.from', { who: job.orchestrator_id, n: formatCredits(job.budget) })),
      h('code.small.cut', {}, JSON.stringify(job.input_data ?? {})),
      errorNode,
    ),
    h(
      'button',
      { type: 'button', 'data-do': 'claim', 'data-key': `claim ${job.job_id}`, onclick: claim },
      t('board.claim'),
    ),
  );
}

function renderJobRow(job) {
  const isRequester = job.orchestrator_id === principal.id && job.agent_id !== null;
  return h(
    'li',
    {},
    h(
      'a',
      { href: `#/market/${encodeUriPart(job.job_id)}`, 'data-key': job.job_id },
      renderAvatar(isRequester ? job.agent_id : job.orchestrator_id),
      h(
        'span.two',
        {},
        h('bdi', {}, job.skill_name),
        h(
          'span.quiet.small',
          {},
          t(isRequester ? 'job.given' : 'job.taken'),
          ' ',
          renderName(isRequester ? job.agent_id : job.orchestrator_id),
        ),
      ),
      h(
        'span.two.end',
        {},
        h('span', { class: `state ${STATE_TONES[job.state]}` }, t(`job.${job.state}`)),
        h(
          'span.quiet.small',
          {},
          formatCredits(job.status === 'PENDING' ? job.budget : job.execution_cost),
          ' · ',
          formatTimestamp(job.timestamp_utc),
        ),
      ),
    ),
  );
}

function renderLedger(postings, owner) {
  if (!postings.length) return h('p.empty', {}, t('ledger.none'));
  const renderAccount = (entry) =>
    entry.account === 'issue'
      ? t('account.issue')
      : entry.account === 'hold'
        ? [t('account.hold'), ' ', h('bdi', {}, entry.owner_id)]
        : h('bdi', {}, entry.owner_id);
  return h(
    'div.scroll',
    { role: 'region', 'aria-label': t('ledger'), tabindex: '0' },
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ['ledger.time', 'ledger.kind', 'ledger.from', 'ledger.to', 'ledger.amount', 'ledger.about'].map((textKey) =>
            h('th', { scope: 'col', class: textKey === 'ledger.amount' ? 'number' : '' }, t(textKey)),
          ),
        ),
      ),
      h(
        'tbody',
        {},
        postings.map((posting) => {
          const [from, to] = [...posting.entries].sort((a, b) => Number(a.amount) - Number(b.amount));
          const tone = owner && to.account === 'owner' && to.owner_id === owner ? 'good' : '';
          return h(
            'tr',
            {},
            h('td.quiet', {}, formatTimestamp(posting.timestamp_utc)),
            h('td', {}, t(`posting.${posting.kind}`)),
            h('td', {}, renderAccount(from)),
            h('td', {}, renderAccount(to)),
            h('td.number', { class: tone }, formatCredits(posting.amount)),
            h(
              'td',
              {},
              posting.job_id
                ? h(
                    'a',
                    { href: `#/market/${encodeUriPart(posting.job_id)}`, 'data-key': `p${posting.id}` },
                    h('code', {}, posting.job_id.slice(0, 8)),
                  )
                : h('bdi.quiet', {}, posting.note ?? ''),
            ),
          );
        }),
      ),
    ),
  );
}

/* ---- one job ---- */

function openJob(root, id) {
  const body = h('div.column');
  const details = h('div.column');
  const actions = createJobActions(() => render());
  root.append(body, actions.node, details);
  const render = async () => {
    let job;
    let audit;
    try {
      [job, audit] = await Promise.all([
        getApi(`/jobs/${encodeUriPart(id)}`),
        getApi(`/audit?job_id=${encodeUriPart(id)}`),
      ]);
    } catch (error) {
      return replaceContent(body, renderBackLink(), h('p.note', {}, error.message));
    }
    const isEnded = !OPEN_STATES.includes(job.state);
    const listPostings = (kinds) =>
      audit.postings
        .filter((posting) => kinds.includes(posting.kind))
        .map((posting) => ({
          at: posting.timestamp_utc,
          what: t(`posting.${posting.kind}.more`, { n: formatCredits(posting.amount) }),
          tone: 'off',
        }))
        .reverse();
    // Steps are listed in causal order and not sorted by time: steps of one transaction have the same timestamp.
    const steps = [
      { at: job.requested_at, what: t('job.asked', { who: job.orchestrator_id, skill: job.skill_name }), tone: '' },
      ...listPostings(['hold']),
    ];
    const updates = job.timeline ?? [];
    // A job on the board is handed over by its claim, which is an update.
    if (job.state !== 'held' && job.agent_id !== null && !updates.some((update) => update.kind === 'claimed'))
      steps.push({ at: job.requested_at, what: t('job.handed', { who: job.agent_id }), tone: 'wait' });
    for (const update of updates)
      steps.push({
        at: update.timestamp_utc,
        what: [t(`update.${update.kind}`), update.agent_id, update.text].filter(Boolean).join(' · '),
        tone: ['refused', 'declined', 'unreachable', 'lapsed', 'rejected'].includes(update.kind) ? 'off' : 'wait',
      });
    if (isEnded)
      steps.push({
        at: job.timestamp_utc,
        what: `${t(`job.${job.state}`)}${job.error_message ? `: ${job.error_message}` : ''}`,
        tone: STATE_TONES[job.state],
      });
    steps.push(...listPostings(['pay', 'release', 'transfer']));
    const secondsLeft = (Date.parse(job.deadline_utc) - Date.now()) / 1000;
    actions.update(job);
    replaceContent(
      details,
      h('div.grid.two', {}, renderJson(t('job.input'), job.input_data), renderJson(t('job.output'), job.output_data)),
    );
    return replaceContent(
      body,
      renderBackLink(),
      h(
        'h1',
        {},
        h('bdi', {}, job.skill_name),
        ' ',
        h('span', { class: `state ${STATE_TONES[job.state]}` }, t(`job.${job.state}`)),
      ),
      h(
        'dl.pairs',
        {},
        renderPair(t('job.id'), h('code', {}, job.job_id)),
        renderPair(t('job.hirer'), renderAgentLink(job.orchestrator_id)),
        renderPair(t('job.worker'), job.agent_id === null ? t('job.open') : renderAgentLink(job.agent_id)),
        renderPair(t('job.budget'), formatCredits(job.budget)),
        isEnded && renderPair(t('job.cost'), formatCredits(job.execution_cost)),
        isEnded && renderPair(t('job.took'), `${formatCount(job.execution_time_ms)} ms`),
        renderPair(
          t('job.deadline'),
          isEnded ? `${formatDate(job.deadline_utc)} ${formatTime(job.deadline_utc)}` : formatDuration(secondsLeft),
        ),
      ),
      h(
        'section',
        {},
        h('h2', {}, t('job.timeline')),
        h(
          'ol.timeline',
          {},
          steps.map((step) =>
            h(
              'li',
              { class: `tone-${step.tone}` },
              h('time.quiet', {}, formatTime(step.at)),
              h('span', { dir: 'auto' }, step.what),
            ),
          ),
        ),
      ),
    );
  };
  const cleanups = [repeatEvery(3_000, render), subscribe(['jobs'], render)];
  return () => cleanups.forEach((cleanup) => cleanup());
}

const renderBackLink = () => h('a.back.always', { href: '#/market' }, renderIcon('back'), t('view.market'));
const renderPair = (label, value) => [h('dt', {}, label), h('dd', {}, value)];
const renderAgentLink = (id) => h('a', { href: `#/agents/${encodeUriPart(id)}` }, renderName(id));
const renderJson = (label, data) =>
  h(
    'section.card',
    {},
    h('h2', {}, label),
    h('pre', { tabindex: '0' }, data === null || data === undefined ? '–' : JSON.stringify(data, null, 2)),
  );
