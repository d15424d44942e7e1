// What was said with whom, by peer and conversation, with culture and where every message stands.

import { avatar, h, icon, linked, name, swap, throttled } from './dom.js';
import { clock, count, cultureName, day, kindName, t, when } from './words.js';
import { part, post } from './api.js';
import { cultureOf, history, known, me, on, settle, standingOf, wholeHistory } from './hub.js';
import { chip } from './agents.js';
import { composer } from './composer.js';

const SHOWN = 150;

export function open(root, peer, thread) {
  return me.role === 'operator' ? pairs(root) : threads(root, peer, thread);
}

/* ---- an agent's conversations ---- */

const peerOf = (row) => (row.sender_id === me.id ? row.receiver_id : row.sender_id);

function gathered() {
  const found = new Map();
  for (const row of [...known.messages.values()].sort((a, b) => a.id - b.id)) {
    const peer = peerOf(row);
    const thread = row.envelope.conversation_id ?? '';
    const at = JSON.stringify([peer, thread]);
    if (!found.has(at)) found.set(at, { peer, thread, rows: [] });
    found.get(at).rows.push(row);
  }
  return [...found.values()].sort((a, b) => b.rows.at(-1).id - a.rows.at(-1).id);
}

function threads(root, peer, thread = '') {
  const search = h('input', { type: 'search', placeholder: t('thread.search'), 'aria-label': t('thread.search') });
  const list = h('ul.picks');
  const said = h('div.thread', { role: 'log', 'aria-label': t('thread.one'), tabindex: '0' });
  const side = h('section.detail.column', {});
  root.append(
    h(
      'div.split',
      { class: peer ? 'has-detail' : '' },
      h('section.master', {}, h('h1', {}, t('view.conversations')), h('div.bar', {}, search), list),
      side,
    ),
  );
  let shown = SHOWN;
  let last = -1;

  const choose = () => {
    const word = search.value.trim().toLowerCase();
    const all = gathered().filter(
      (one) =>
        !word ||
        one.peer.toLowerCase().includes(word) ||
        one.thread.toLowerCase().includes(word) ||
        one.rows.some((row) => row.envelope.original_text.toLowerCase().includes(word)),
    );
    swap(
      list,
      all.slice(0, 200).map((one) => {
        const row = one.rows.at(-1);
        const here = one.peer === peer && one.thread === thread;
        return h(
          'li',
          {},
          h(
            'a',
            {
              href: `#/conversations/${part(one.peer)}/${part(one.thread)}`,
              'aria-current': here ? 'true' : undefined,
              'data-key': `${one.peer} ${one.thread}`,
            },
            avatar(one.peer, known.agents.get(one.peer)?.online),
            h(
              'span.two',
              {},
              h('span.row-line', {}, name(one.peer), one.thread && h('span.quiet.small', {}, h('bdi', {}, one.thread))),
              h('bdi.quiet.small.cut', {}, row.envelope.original_text),
            ),
            h(
              'span.two.end',
              {},
              h('time.quiet.small', {}, when(row.timestamp)),
              h('span.quiet.small', {}, count(one.rows.length)),
            ),
          ),
        );
      }),
      !all.length && h('li', {}, h('p.empty', {}, known.historyDone ? t('thread.empty') : t('wait'))),
      known.historyDone &&
        !known.historyWhole &&
        h(
          'li',
          {},
          h(
            'button',
            { type: 'button', 'data-key': 'whole', onclick: () => wholeHistory().catch(() => {}) },
            t('thread.older'),
          ),
        ),
    );
  };

  const draw = () => {
    choose();
    if (peer === undefined) return;
    const one = gathered().find((found) => found.peer === peer && found.thread === thread) ?? { rows: [] };
    const rows = one.rows.slice(-shown);
    known.watched = rows;
    const below = said.scrollHeight - said.scrollTop - said.clientHeight < 80;
    let date = '';
    swap(
      said,
      one.rows.length > rows.length &&
        h(
          'button',
          {
            type: 'button',
            'data-key': 'more',
            onclick: () => {
              shown += SHOWN;
              draw();
            },
          },
          t('earlier', { n: count(one.rows.length - rows.length) }),
        ),
      rows.map((row) => {
        const today = day(row.timestamp);
        const mark = today !== date && h('p.daymark', {}, today);
        date = today;
        return [mark, bubble(row)];
      }),
    );
    const newest = rows.at(-1)?.id ?? -1;
    if (below || last === -1) said.scrollTop = said.scrollHeight;
    last = newest;
  };

  if (peer === undefined) swap(side, h('p.empty', {}, t('thread.choose')));
  else swap(side, head(peer, thread), said, writer(peer, thread));
  search.addEventListener('input', choose);
  draw();
  settle().catch(() => {});
  return on(['messages', 'agents'], throttled(draw));
}

function head(peer, thread) {
  return h(
    'header.thread-head',
    {},
    h('a.back', { href: '#/conversations' }, icon('back'), t('view.conversations')),
    avatar(peer),
    h('a', { href: `#/agents/${part(peer)}` }, name(peer, 'b')),
    thread && h('bdi.quiet', {}, thread),
  );
}

function bubble(row) {
  const mine = row.sender_id === me.id;
  const { original_text: text, sender_culture: culture, cultural_context: context, turn_number: turn } = row.envelope;
  const state = standingOf(row);
  return h(
    'article.bubble',
    { class: mine ? 'mine' : '', 'data-trace': row.trace_id },
    h('p.said', { lang: culture, dir: 'auto' }, linked(text)),
    context && h('p.context', { dir: 'auto' }, h('b', {}, t('context')), ' ', linked(context)),
    h(
      'footer',
      {},
      chip(culture),
      turn && h('span', {}, t('turn', { n: turn })),
      h('time', {}, clock(row.timestamp)),
      mine
        ? h('span', { class: `stand is-${state}`, 'data-state': state }, t(`state.${state}`))
        : h('span', {}, t(`via.${row.delivered_via}`)),
    ),
  );
}

function writer(peer, thread) {
  const draft = (text) => {
    const turns = [...known.messages.values()]
      .filter((row) => peerOf(row) === peer && (row.envelope.conversation_id ?? '') === thread)
      .map((row) => row.envelope.turn_number ?? 0);
    const envelope = { chorus_version: '0.4', sender_id: me.id, original_text: text, sender_culture: me.culture };
    if (thread) Object.assign(envelope, { conversation_id: thread, turn_number: Math.max(0, ...turns) + 1 });
    return { receiver_id: peer, envelope };
  };
  const say = async (body, once) => {
    const sent = await post('/messages', body, { 'idempotency-key': once });
    known.standing.set(
      sent.trace_id,
      { delivered_sse: 'delivered', delivered: 'delivered', queued: 'queued', failed: 'failed' }[sent.delivery],
    );
    await history();
  };
  const note = [
    t('write.as', { id: me.id, culture: cultureName(me.culture) }),
    cultureOf(peer) && ` · ${t('write.culture', { culture: cultureName(cultureOf(peer)) })}`,
  ];
  return composer({ label: t('write.to', { name: peer }), note, most: 10_000, draft, say });
}

/* ---- what an operator may see of conversations ---- */

function pairs(root) {
  const list = h('ul.picks.wide');
  const search = h('input', { type: 'search', placeholder: t('thread.search'), 'aria-label': t('thread.search') });
  root.append(
    h('h1', {}, t('view.conversations')),
    h('p.note', {}, t('thread.operator')),
    h('div.bar', {}, search),
    list,
  );
  const draw = () => {
    const found = new Map();
    for (const row of known.log) {
      const { sender_id: from, receiver_id: to } = row.data ?? {};
      if (!from || !to || !row.type.startsWith('message_')) continue;
      const at = JSON.stringify([from, to].sort());
      const pair = found.get(at) ?? { ends: [from, to].sort(), sent: 0, bad: 0 };
      if (row.type === 'message_submitted') pair.sent += 1;
      if (row.type === 'message_failed') pair.bad += 1;
      pair.last = row;
      found.set(at, pair);
    }
    const word = search.value.trim().toLowerCase();
    const all = [...found.values()]
      .filter((pair) => !word || pair.ends.some((end) => end.toLowerCase().includes(word)))
      .sort((a, b) => b.last.id - a.last.id);
    swap(
      list,
      all
        .slice(0, 300)
        .map((pair) =>
          h(
            'li',
            {},
            h(
              'div.pick',
              {},
              avatar(pair.ends[0]),
              avatar(pair.ends[1]),
              h(
                'span.two',
                {},
                h('span.row-line', {}, name(pair.ends[0]), h('span.quiet', {}, '↔'), name(pair.ends[1])),
                h('span.quiet.small', {}, kindName(pair.last.type), ' · ', when(pair.last.timestamp)),
              ),
              h(
                'span.two.end',
                {},
                h('b', {}, count(pair.sent)),
                pair.bad ? h('span.state.bad', {}, t('thread.failed', { n: count(pair.bad) })) : undefined,
              ),
            ),
          ),
        ),
      !all.length && h('li', {}, h('p.empty', {}, t('thread.empty'))),
    );
  };
  search.addEventListener('input', draw);
  draw();
  return on(['log'], throttled(draw));
}
