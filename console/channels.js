// Rooms: what is said and done in them as it unfolds, who is in them, and a word of one's own.

import { avatar, h, icon, linked, name, swap, throttled } from './dom.js';
import { clock, count, t } from './words.js';
import { get, key, part, post, token } from './api.js';
import { emit, every, known, me, on } from './hub.js';
import { composer } from './composer.js';
import { follow } from './stream.js';

const SHOWN = 400;

export function open(root, id) {
  const list = h('ul.picks');
  const side = h('section.detail.column', { 'aria-label': t('channel.one') });
  root.append(
    h(
      'div.split',
      { class: id ? 'has-detail' : '' },
      h('section.master', {}, h('h1', {}, t('view.channels')), list, maker()),
      side,
    ),
  );
  const rooms = async () => {
    let found;
    try {
      found = await get('/channels');
    } catch (refusal) {
      return swap(list, h('li', {}, h('p.note', {}, refusal.status === 403 ? t('channel.operator') : refusal.message)));
    }
    return swap(
      list,
      found.map((room) =>
        h(
          'li',
          {},
          h(
            'a',
            {
              href: `#/channels/${part(room.id)}`,
              'aria-current': room.id === id ? 'true' : undefined,
              'data-key': room.id,
            },
            h('span.hash', { 'aria-hidden': 'true' }, '#'),
            h('span.two', {}, name(room.name), h('bdi.quiet.small.cut', {}, room.context ?? room.service ?? '')),
            h('span.quiet.small', {}, t('channel.members', { n: count(room.members) })),
          ),
        ),
      ),
      !found.length && h('li', {}, h('p.empty', {}, t('channel.none'))),
    );
  };
  const stops = [every(8_000, rooms)];
  if (id) stops.push(room(side, id));
  else swap(side, h('p.empty', {}, t('channel.choose')));
  return () => stops.forEach((stop) => stop());
}

function maker() {
  const field = h('input', {
    type: 'text',
    maxlength: 128,
    placeholder: t('channel.name'),
    'aria-label': t('channel.name'),
    required: true,
  });
  const wrong = h('p.wrong', { role: 'alert' });
  const form = h('form.bar', {}, field, h('button', { type: 'submit' }, t('channel.make')), wrong);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      const made = await post('/channels', { name: field.value.trim() });
      location.hash = `#/channels/${part(made.id)}`;
    } catch (refusal) {
      wrong.textContent = refusal.message;
    }
  });
  return form;
}

/* ---- one room ---- */

function room(root, id) {
  const title = h('b', {}, '…');
  const about = h('bdi.quiet.cut');
  const said = h('div.thread', { role: 'log', 'aria-label': t('channel.one'), tabindex: '0' });
  const roster = h('ul.roster', { 'aria-label': t('channel.roster') });
  const form = composer({
    label: t('channel.say'),
    note: t('channel.as', { id: me.id || t('role.operator') }),
    draft: (content) => ({ content }),
    say: (body, once) => post(`/channels/${part(id)}/messages`, body, { 'idempotency-key': once }),
  });
  swap(
    root,
    h(
      'header.thread-head',
      {},
      h('a.back', { href: '#/channels' }, icon('back'), t('view.channels')),
      h('span.hash', { 'aria-hidden': 'true' }, '#'),
      title,
      about,
    ),
    roster,
    said,
    form,
  );

  const rows = new Map();
  const opened = new Set();
  const draw = throttled(() => {
    const below = said.scrollHeight - said.scrollTop - said.clientHeight < 80 || !said.childElementCount;
    const results = new Map();
    for (const row of rows.values()) if (row.type === 'tool_result') results.set(`${row.sender} ${row.id}`, row);
    const lines = [...rows.values()].sort((a, b) => a.cursor - b.cursor);
    const calls = new Set(lines.filter((row) => row.type === 'tool_call').map((row) => `${row.sender} ${row.id}`));
    swap(
      said,
      lines.slice(-SHOWN).map((row) => lineOf(row, results, calls, opened)),
      !lines.length && h('p.empty', {}, t('channel.silent')),
    );
    if (below) said.scrollTop = said.scrollHeight;
  });
  const take = (row, cursor) => {
    const at = row.cursor ?? Number(cursor);
    if (at) rows.set(at, { ...row, cursor: at });
  };
  const members = async () => {
    const found = await get(`/channels/${part(id)}/members`);
    swap(
      roster,
      found.map((one) =>
        h(
          'li',
          { title: one.agent?.capabilities?.join(', ') },
          avatar(one.name, one.presence === 'online' ? true : one.presence === 'offline' ? false : undefined),
          name(one.name),
          one.status && h('bdi.chip.wait', {}, one.status),
          one.unreachable && h('span.chip.bad', {}, t('channel.unreachable')),
        ),
      ),
    );
  };
  get(`/channels/${part(id)}`).then(
    (one) => {
      title.textContent = one.name;
      about.textContent = one.context ?? '';
    },
    (refusal) => {
      title.textContent = '';
      swap(said, h('p.note', {}, refusal.message));
    },
  );

  // From the beginning: what was said and what is said now are one stream.
  const stream = follow({
    address: async () =>
      me.role === 'operator'
        ? { path: `/channels/${part(id)}/stream`, headers: { authorization: `Bearer ${key.get()}` } }
        : { path: `/channels/${part(id)}/stream?session=${await token()}` },
    heard: (kind, row, cursor) => {
      if (kind === 'connected' || !row) return;
      take({ type: kind, ...row }, cursor);
      if (kind === 'member' || kind === 'status') members().catch(() => {});
      draw();
    },
    state: (state) => {
      if (state === 'ended') known.links.delete('channel');
      else known.links.set('channel', state);
      emit('links');
    },
    since: '0',
    rests: true,
  });
  const stops = [every(6_000, members), on(['channels'], draw)];
  draw();
  return () => {
    stream.stop();
    known.links.delete('channel');
    stops.forEach((stop) => stop());
  };
}

/** A tool call and its result are one line that unfolds; the rest is what it is. */
function lineOf(row, results, calls, opened) {
  const at = h('time.quiet.small', {}, clock(row.timestamp));
  const own = row.agent_id === me.id || (row.sender_kind === 'person' && row.sender === me.id);
  switch (row.type) {
    case 'message':
      return h(
        'article.line',
        { class: own ? 'mine' : '' },
        avatar(row.sender),
        h(
          'div',
          {},
          h(
            'header.row-line',
            {},
            name(row.sender, 'b'),
            row.sender_kind === 'agent' && h('span.chip', {}, t('channel.agent')),
            at,
          ),
          h('p.said', { dir: 'auto' }, mentioned(row)),
          row.parts?.length > 0 && h('p.quiet.small', {}, t('channel.parts', { n: row.parts.length })),
        ),
      );
    case 'tool_call': {
      const result = results.get(`${row.sender} ${row.id}`);
      const box = h(
        'details.tool',
        { open: opened.has(row.cursor), 'data-call': row.id },
        h(
          'summary',
          { 'data-key': `call ${row.cursor}` },
          h('span', { class: `dot ${result ? 'good' : 'busy'}` }),
          name(row.sender),
          h('code', {}, row.name),
          h('span.quiet.small.cut', {}, JSON.stringify(row.args ?? {})),
          at,
        ),
        row.args !== undefined && h('pre', {}, JSON.stringify(row.args, null, 2)),
        h('pre', {}, result ? result.content : t('channel.running')),
      );
      box.addEventListener('toggle', () => (box.open ? opened.add(row.cursor) : opened.delete(row.cursor)));
      return box;
    }
    case 'tool_result':
      return calls.has(`${row.sender} ${row.id}`)
        ? undefined
        : h(
            'details.tool',
            {},
            h('summary', {}, h('span.dot.good'), name(row.sender), h('code', {}, row.id), at),
            h('pre', {}, row.content),
          );
    case 'status':
      return (
        row.status && h('p.aside', {}, h('span.dot.busy'), name(row.sender), ' ', h('bdi', {}, row.status), ' ', at)
      );
    case 'error':
      return h(
        'p.aside.bad',
        {},
        h('span.dot.bad'),
        name(row.sender),
        ' ',
        h('bdi', {}, row.message),
        row.code && h('code', {}, row.code),
        ' ',
        at,
      );
    case 'member':
      return h('p.aside', {}, name(row.name ?? row.sender), ' ', t(`member.${row.change}`), ' ', at);
    default:
      return undefined;
  }
}

function mentioned(row) {
  const text = row.content ?? '';
  const names = (row.mentions ?? []).map((one) => `@${one}`);
  if (!names.length) return linked(text);
  const out = [];
  let rest = text;
  while (rest) {
    const hits = names
      .map((one) => [rest.indexOf(one), one])
      .filter(([at]) => at >= 0)
      .sort((a, b) => a[0] - b[0] || b[1].length - a[1].length);
    if (!hits.length) break;
    const [at, one] = hits[0];
    out.push(linked(rest.slice(0, at)), h('b.mention', {}, one));
    rest = rest.slice(at + one.length);
  }
  return [...out, linked(rest)];
}
