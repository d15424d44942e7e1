// The market: what can be hired, jobs and how they go, and where the credits went.

import { avatar, h, icon, name, swap, throttled } from './dom.js';
import { clock, count, credits, day, span, t, when } from './words.js';
import { get, look, part } from './api.js';
import { every, known, me, on } from './hub.js';
import { shares } from './chart.js';

const STATES = ['held', 'dispatched', 'done', 'failed', 'cancelled', 'expired'];
const TONES = { held: 'wait', dispatched: 'wait', done: 'good', failed: 'bad', cancelled: 'off', expired: 'bad' };
const POSTINGS = 200;

export function open(root, id) {
  if (id) return job(root, id);
  const sums = h('div');
  const skills = h('div');
  const jobs = h('div');
  const ledger = h('div');
  root.append(
    h('h1', {}, t('view.market')),
    sums,
    h(
      'div.grid.two',
      {},
      h('section.card', {}, h('h2', {}, t('jobs')), jobs),
      h('section.card', {}, h('h2', {}, t('skills')), skills),
    ),
    h('section.card', {}, h('h2', {}, t('ledger')), ledger),
  );
  let state = '';
  const money = async () => {
    const [economy, audit] = await Promise.all([look('/economy'), get(`/audit?limit=${POSTINGS}`)]);
    const owner = me.role === 'agent' ? ownerIn(audit.postings) : undefined;
    const mine = owner && (await get(`/accounts/${part(owner)}`));
    const states = STATES.map((one) => ({
      label: t(`job.${one}`),
      value: economy.job_states?.[one] ?? 0,
      tone: TONES[one],
    }));
    swap(
      sums,
      h(
        'dl.tiles',
        {},
        mine && tile(t('balance'), credits(mine.balance), mine.owner_id),
        mine && tile(t('held'), credits(mine.held), t('held.more')),
        tile(t('issued'), credits(economy.issued), t('issued.more')),
        tile(t('held.all'), credits(economy.held)),
        tile(t('volume'), credits(economy.volume), t('volume.more')),
      ),
      h(
        'section.card.slim',
        {},
        shares(states),
        h(
          'ul.legend',
          {},
          states.map((one) =>
            h('li', {}, h('span', { class: `key tone-${one.tone}` }), one.label, ' ', h('b', {}, count(one.value))),
          ),
        ),
      ),
    );
    swap(ledger, table(audit.postings, owner));
  };
  const offers = async () => {
    const found = await look('/skills?limit=200');
    swap(
      skills,
      found.skills.length
        ? h(
            'ul.lines',
            {},
            found.skills.map((one) =>
              h(
                'li',
                {},
                h('bdi', {}, one.skill_name),
                h('span.spring'),
                h('span.quiet.small', {}, t('skill.agents', { n: count(one.agents) })),
                h('b', {}, t('skill.from', { n: credits(one.min_cost) })),
              ),
            ),
          )
        : h('p.empty', {}, t('skill.none')),
    );
  };
  const work = async () => {
    if (me.role === 'operator')
      return swap(jobs, h('p.note', {}, t('jobs.operator')), ofAudit(await get(`/audit?limit=${POSTINGS}`)));
    const found = await get(`/jobs?limit=100${state ? `&status=${state}` : ''}`);
    return swap(
      jobs,
      h(
        'div.chips',
        {},
        ['', ...STATES].map((one) =>
          h(
            'button.chip',
            {
              type: 'button',
              'aria-pressed': String(one === state),
              'data-key': `state ${one}`,
              onclick: () => {
                state = one;
                work().catch(() => {});
              },
            },
            one ? t(`job.${one}`) : t('log.all'),
          ),
        ),
      ),
      found.jobs.length ? h('ul.picks', {}, found.jobs.map(jobRow)) : h('p.empty', {}, t('jobs.none')),
    );
  };
  const stops = [
    every(4_000, money),
    every(10_000, offers),
    every(4_000, work),
    on(
      ['jobs'],
      throttled(() => {
        work().catch(() => {});
        money().catch(() => {});
      }),
    ),
  ];
  return () => stops.forEach((stop) => stop());
}

const tile = (label, value, note) =>
  h('div.tile', {}, h('dt', {}, label), h('dd', {}, value), note && h('p.quiet.small', {}, h('bdi', {}, note)));

/** My owner is the one name that all of my postings have in common. */
function ownerIn(postings) {
  const row = known.agents.get(me.id);
  if (row?.owner) return row.owner;
  let common;
  for (const posting of postings) {
    const owners = posting.entries.map((entry) => entry.owner_id).filter(Boolean);
    common = common ? common.filter((one) => owners.includes(one)) : owners;
  }
  return common?.length ? (common.find((one) => one === me.id) ?? common[0]) : me.id;
}

function jobRow(one) {
  const hirer = one.orchestrator_id === me.id;
  return h(
    'li',
    {},
    h(
      'a',
      { href: `#/market/${part(one.job_id)}`, 'data-key': one.job_id },
      avatar(hirer ? one.agent_id : one.orchestrator_id),
      h(
        'span.two',
        {},
        h('bdi', {}, one.skill_name),
        h(
          'span.quiet.small',
          {},
          t(hirer ? 'job.given' : 'job.taken'),
          ' ',
          name(hirer ? one.agent_id : one.orchestrator_id),
        ),
      ),
      h(
        'span.two.end',
        {},
        h('span', { class: `state ${TONES[one.state]}` }, t(`job.${one.state}`)),
        h('span.quiet.small', {}, credits(one.execution_cost ?? one.budget), ' · ', when(one.timestamp_utc)),
      ),
    ),
  );
}

/** Operators have no list of jobs, but every job leaves its postings. */
function ofAudit({ postings }) {
  const ids = [...new Set(postings.map((posting) => posting.job_id).filter(Boolean))].slice(0, 40);
  return ids.length
    ? h(
        'ul.lines',
        {},
        ids.map((id) =>
          h(
            'li',
            {},
            h('a', { href: `#/market/${part(id)}`, 'data-key': id }, h('code', {}, id)),
            h('span.spring'),
            h(
              'span.quiet.small',
              {},
              [...new Set(postings.filter((one) => one.job_id === id).map((one) => t(`posting.${one.kind}`)))]
                .reverse()
                .join(' → '),
            ),
          ),
        ),
      )
    : h('p.empty', {}, t('jobs.none'));
}

function table(postings, owner) {
  if (!postings.length) return h('p.empty', {}, t('ledger.none'));
  const side = (entry) =>
    entry.account === 'issue'
      ? t('account.issue')
      : entry.account === 'hold'
        ? [t('account.hold'), ' ', h('bdi', {}, entry.owner_id)]
        : h('bdi', {}, entry.owner_id);
  return h(
    'div.scroll',
    {},
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ['ledger.time', 'ledger.kind', 'ledger.from', 'ledger.to', 'ledger.amount', 'ledger.about'].map((word) =>
            h('th', { scope: 'col' }, t(word)),
          ),
        ),
      ),
      h(
        'tbody',
        {},
        postings.map((posting) => {
          const [from, to] = [...posting.entries].sort((a, b) => Number(a.amount) - Number(b.amount));
          const sign = owner && to.account === 'owner' && to.owner_id === owner ? 'good' : '';
          return h(
            'tr',
            {},
            h('td.quiet', {}, when(posting.timestamp_utc)),
            h('td', {}, t(`posting.${posting.kind}`)),
            h('td', {}, side(from)),
            h('td', {}, side(to)),
            h('td.number', { class: sign }, credits(posting.amount)),
            h(
              'td',
              {},
              posting.job_id
                ? h(
                    'a',
                    { href: `#/market/${part(posting.job_id)}`, 'data-key': `p${posting.id}` },
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

function job(root, id) {
  const draw = async () => {
    let one;
    let audit;
    try {
      [one, audit] = await Promise.all([get(`/jobs/${part(id)}`), get(`/audit?job_id=${part(id)}`)]);
    } catch (refusal) {
      return swap(root, back(), h('p.note', {}, refusal.message));
    }
    const ended = !['held', 'dispatched'].includes(one.state);
    const posted = (kinds) =>
      audit.postings
        .filter((posting) => kinds.includes(posting.kind))
        .map((posting) => ({
          at: posting.timestamp_utc,
          what: t(`posting.${posting.kind}.more`, { n: credits(posting.amount) }),
          tone: 'off',
        }))
        .reverse();
    // In the order of things: what is one transaction has one time.
    const steps = [
      { at: one.requested_at, what: t('job.asked', { who: one.orchestrator_id, skill: one.skill_name }), tone: '' },
      ...posted(['hold']),
    ];
    if (one.state !== 'held')
      steps.push({ at: one.requested_at, what: t('job.handed', { who: one.agent_id }), tone: 'wait' });
    if (ended)
      steps.push({
        at: one.timestamp_utc,
        what: `${t(`job.${one.state}`)}${one.error_message ? `: ${one.error_message}` : ''}`,
        tone: TONES[one.state],
      });
    steps.push(...posted(['pay', 'release', 'transfer']));
    const left = (Date.parse(one.deadline_utc) - Date.now()) / 1000;
    return swap(
      root,
      back(),
      h(
        'h1',
        {},
        h('bdi', {}, one.skill_name),
        ' ',
        h('span', { class: `state ${TONES[one.state]}` }, t(`job.${one.state}`)),
      ),
      h(
        'dl.pairs',
        {},
        pair(t('job.id'), h('code', {}, one.job_id)),
        pair(t('job.hirer'), who(one.orchestrator_id)),
        pair(t('job.worker'), who(one.agent_id)),
        pair(t('job.budget'), credits(one.budget)),
        pair(t('job.cost'), credits(one.execution_cost)),
        one.execution_time_ms !== null && pair(t('job.took'), `${count(one.execution_time_ms)} ms`),
        pair(t('job.deadline'), ended ? `${day(one.deadline_utc)} ${clock(one.deadline_utc)}` : span(left)),
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
              h('time.quiet', {}, clock(step.at)),
              h('span', { dir: 'auto' }, step.what),
            ),
          ),
        ),
      ),
      h('div.grid.two', {}, value(t('job.input'), one.input_data), value(t('job.output'), one.output_data)),
    );
  };
  const stops = [every(3_000, draw), on(['jobs'], draw)];
  return () => stops.forEach((stop) => stop());
}

const back = () => h('a.back.always', { href: '#/market' }, icon('back'), t('view.market'));
const pair = (label, value) => [h('dt', {}, label), h('dd', {}, value)];
const who = (id) => h('a', { href: `#/agents/${part(id)}` }, name(id));
const value = (label, data) =>
  h(
    'section.card',
    {},
    h('h2', {}, label),
    h('pre', { tabindex: '0' }, data === null || data === undefined ? '–' : JSON.stringify(data, null, 2)),
  );
