// Who is registered, and one agent's page: its card, what it offers, what its work has earned it, what was said with it.

import { avatar, copy, h, icon, linked, name, swap, throttled } from './dom.js';
import { count, credits, cultureName, day, decimal, kindName, t, when } from './words.js';
import { get, look, part } from './api.js';
import { known, me, on } from './hub.js';
import { line } from './chart.js';
import { rows } from './list.js';

const KNOWN_FIELDS = ['card_version', 'user_culture', 'supported_languages'];

export const chip = (culture) => culture && h('span.chip', { title: cultureName(culture) }, culture);

function score(value) {
  if (value === undefined) return undefined;
  return h('span.score', { share: `${Math.round(value)}%`, title: t('reputation') }, decimal(value));
}

function fill(row, agent) {
  swap(
    row,
    avatar(agent.agent_id, agent.online),
    h(
      'span.two',
      {},
      name(agent.agent_id),
      h(
        'span.quiet.small',
        {},
        [agent.languages.join(' '), ...agent.skills.map((one) => one.skill_name)].filter(Boolean).join(' · '),
      ),
    ),
    chip(agent.culture),
    score(agent.score),
    h('span', { class: `state ${agent.online ? 'good' : ''}` }, agent.online ? t('online.yes') : t('online.no')),
  );
}

export function open(root, id) {
  const search = h('input', { type: 'search', placeholder: t('agents.search'), 'aria-label': t('agents.search') });
  const only = h('input', { type: 'checkbox', id: 'only-online' });
  const number = h('span.quiet.small', { 'aria-live': 'polite' });
  const list = rows({
    height: 54,
    fill,
    label: t('view.agents'),
    empty: t('agents.none'),
    open: (agent) => {
      location.hash = `#/agents/${part(agent.agent_id)}`;
    },
  });
  const side = h('section.detail', { 'aria-label': t('agents.one') });
  root.append(
    h(
      'div.split',
      { class: id ? 'has-detail' : '' },
      h(
        'section.master',
        {},
        h('h1', {}, t('view.agents')),
        h('div.bar', {}, search, h('label.check', { for: 'only-online' }, only, t('online.only')), number),
        list.node,
      ),
      side,
    ),
  );
  const draw = () => {
    const word = search.value.trim().toLowerCase();
    const fits = (agent) =>
      (!only.checked || agent.online) &&
      (!word ||
        [agent.agent_id, agent.culture, ...agent.languages, ...agent.skills.map((one) => one.skill_name)].some((text) =>
          text?.toLowerCase().includes(word),
        ));
    const found = [...known.agents.values()].filter(fits);
    found.sort((a, b) => Number(b.online) - Number(a.online) || (a.agent_id < b.agent_id ? -1 : 1));
    number.textContent = t('agents.count', { n: count(found.length) });
    list.set(found, (agent) => agent.agent_id);
  };
  search.addEventListener('input', draw);
  only.addEventListener('change', draw);
  draw();
  const stops = [on(['agents'], throttled(draw))];
  if (id) stops.push(one(side, id));
  else swap(side, h('p.empty', {}, t('agents.choose')));
  return () => stops.forEach((stop) => stop());
}

/* ---- one agent ---- */

function one(root, id) {
  let record;
  let reputation;
  let gone;
  const draw = () => {
    if (gone) return swap(root, back(), h('p.empty', {}, gone));
    if (!record) return swap(root, back(), h('p.quiet', {}, t('wait')));
    const row = known.agents.get(record.agent_id);
    const card = record.agent_card ?? {};
    return swap(
      root,
      back(),
      h(
        'header.person',
        {},
        avatar(record.agent_id, record.online),
        h(
          'div',
          {},
          h('h2', {}, name(record.agent_id)),
          h(
            'p.quiet',
            {},
            record.online ? t('online.yes') : t('online.no'),
            ' · ',
            t('agents.since', { day: day(record.registered_at) }),
          ),
        ),
      ),
      h(
        'dl.pairs',
        {},
        pair(t('agents.handle'), record.handle && h('code', {}, record.handle)),
        pair(t('culture'), card.user_culture && [chip(card.user_culture), ' ', cultureName(card.user_culture)]),
        pair(t('languages'), card.supported_languages?.length && card.supported_languages.map(chip)),
        pair(t('agents.reached'), record.has_endpoint ? t('agents.endpoint') : t('agents.stream')),
        pair(t('agents.url'), record.endpoint && h('code', {}, record.endpoint)),
        pair(t('owner'), row?.owner && h('bdi', {}, row.owner)),
        Object.entries(card)
          .filter(([key]) => !KNOWN_FIELDS.includes(key))
          .slice(0, 12)
          .map(([key, value]) =>
            pair(key, typeof value === 'string' ? linked(value) : h('code', {}, JSON.stringify(value))),
          ),
      ),
      offers(row),
      earned(reputation),
      talk(record),
      invite(record),
    );
  };
  Promise.all([get(`/agents/${part(id)}`), look(`/reputation/${part(id)}`).catch(() => undefined)]).then(
    ([found, score]) => {
      record = found;
      reputation = score;
      draw();
    },
    (refusal) => {
      gone = refusal.message;
      draw();
    },
  );
  draw();
  return on(['messages', 'log', 'agents'], throttled(draw));
}

const back = () => h('a.back', { href: '#/agents' }, icon('back'), t('view.agents'));

export const pair = (label, value) => value && [h('dt', {}, label), h('dd', {}, value)];

function offers(row) {
  if (!row?.skills.length) return undefined;
  return h(
    'section',
    {},
    h('h3', {}, t('skills')),
    h(
      'ul.lines',
      {},
      row.skills.map((one) =>
        h('li', {}, h('bdi', {}, one.skill_name), h('span.spring'), h('b', {}, credits(one.cost_per_call))),
      ),
    ),
  );
}

function earned(reputation) {
  if (!reputation) return undefined;
  const { score: now, stats, history } = reputation;
  const scores = [...history].reverse().map((one) => one.score_after);
  const chart = line('score', Math.max(2, scores.length), (last) => `${t('reputation')} ${decimal(last)}`);
  if (scores.length > 1) chart.draw(scores);
  return h(
    'section',
    {},
    h('h3', {}, t('reputation')),
    h(
      'p.big',
      {},
      h('b', {}, decimal(now)),
      h(
        'span.quiet.small',
        {},
        ` ${t('reputation.from', { n: count(stats.total), good: count(stats.successes), bad: count(stats.failures) })}`,
      ),
    ),
    scores.length > 1 && chart.node,
  );
}

/** Its conversations: with me, if I am an agent; for operators, between whom and when, since texts are their parties' business. */
function talk(record) {
  if (me.role === 'operator') {
    const about = known.log
      .filter((row) => [row.data?.sender_id, row.data?.receiver_id, row.data?.agent_id].includes(record.agent_id))
      .slice(-12)
      .reverse();
    return h(
      'section',
      {},
      h('h3', {}, t('agents.activity')),
      about.length
        ? h(
            'ul.lines',
            {},
            about.map((row) =>
              h(
                'li',
                {},
                h('time.quiet', {}, when(row.timestamp)),
                h('span', {}, kindName(row.type)),
                h(
                  'bdi.quiet',
                  {},
                  row.data?.sender_id === record.agent_id
                    ? `→ ${row.data.receiver_id}`
                    : row.data?.sender_id
                      ? `← ${row.data.sender_id}`
                      : '',
                ),
              ),
            ),
          )
        : h('p.quiet', {}, t('agents.quiet')),
    );
  }
  if (record.agent_id === me.id) return undefined;
  const threads = new Map();
  for (const row of known.messages.values()) {
    if (row.sender_id !== record.agent_id && row.receiver_id !== record.agent_id) continue;
    threads.set(row.envelope.conversation_id ?? '', row);
  }
  const latest = [...threads].sort((a, b) => b[1].id - a[1].id);
  return h(
    'section',
    {},
    h('h3', {}, t('agents.talk')),
    latest.length
      ? h(
          'ul.lines',
          {},
          latest.map(([thread, row]) =>
            h(
              'li',
              {},
              h(
                'a',
                { href: `#/conversations/${part(record.agent_id)}/${part(thread)}` },
                h('bdi', {}, thread || t('thread.none')),
              ),
              h('bdi.quiet.cut', {}, row.envelope.original_text),
              h('time.quiet', {}, when(row.timestamp)),
            ),
          ),
        )
      : h('p', {}, h('a.button', { href: `#/conversations/${part(record.agent_id)}` }, t('agents.write'))),
  );
}

function invite(record) {
  const url = `${known.discovery?.public_url ?? location.origin}/invite/${part(record.agent_id)}`;
  const button = h(
    'button',
    {
      type: 'button',
      onclick: () =>
        copy(url).then(() => {
          button.textContent = t('copied');
        }),
    },
    t('copy'),
  );
  return h(
    'section',
    {},
    h('h3', {}, t('agents.invite')),
    h('p.row-line', {}, h('a', { href: `/invite/${part(record.agent_id)}` }, url), button),
  );
}
