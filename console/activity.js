// What happened, newest first, searchable and live. Operators see the hub's own record, agents what reached this page.

import { h, swap, throttled } from './dom.js';
import { clock, count, kindName, t } from './words.js';
import { earlier, known, me, on } from './hub.js';
import { rows } from './list.js';

const READ_AHEAD = 10_000;

/** Bad news red, waiting amber, the rest calm. */
function tone(type) {
  if (/failed|error|removed|unreachable/.test(type)) return 'bad';
  if (/queued|started|binding/.test(type)) return 'wait';
  if (/delivered|registered|result|receipt/.test(type)) return 'good';
  return '';
}

/** One line of text. Values are isolated by characters, not by elements: this is written anew for every row that comes into sight. */
function gist(data = {}) {
  const { sender_id: from, receiver_id: to, trace_id: _, ...rest } = data;
  const own = (text) => `\u2068${text}\u2069`;
  const parts = from || to ? [[from, to].filter(Boolean).map(own).join(' → ')] : [];
  for (const [key, value] of Object.entries(rest)) {
    if (value !== undefined && value !== null)
      parts.push(`${key} ${own(typeof value === 'object' ? JSON.stringify(value) : value)}`);
  }
  return parts.join('  ');
}

function fill(row, entry) {
  if (!row.cells) {
    row.cells = [h('time'), h('span'), h('span.cut')];
    row.append(...row.cells);
  }
  const [time, kind, text] = row.cells;
  time.textContent = clock(entry.timestamp);
  kind.className = `kind tone-${tone(entry.type)}`;
  kind.textContent = kindName(entry.type);
  text.textContent = gist(entry.data);
}

export function open(root) {
  const search = h('input', { type: 'search', placeholder: t('log.search'), 'aria-label': t('log.search') });
  const kind = h('select', { 'aria-label': t('log.kind') });
  const number = h('span.quiet.small', { 'aria-live': 'off' });
  const pause = h('button', { type: 'button', 'aria-pressed': 'false' }, t('log.pause'));
  const detail = h('pre.entry', { hidden: true, tabindex: '0' });
  const list = rows({
    height: 32,
    fill,
    label: t('view.activity'),
    empty: t('log.empty'),
    open: (entry) => {
      detail.hidden = false;
      detail.textContent = JSON.stringify(entry, null, 2);
    },
    end: () => {
      earlier().catch(() => {});
    },
  });
  root.append(
    h(
      'div.column.fill',
      {},
      h('h1', {}, t('view.activity')),
      me.role === 'agent' && h('p.note', {}, t('log.own')),
      h('div.bar', {}, search, kind, pause, h('span.spring'), number),
      list.node,
      detail,
    ),
  );

  let kinds = '';
  let paused = false;
  const draw = () => {
    if (paused) return;
    const seen = [...new Set(known.log.map((entry) => entry.type))].sort();
    if (seen.join() !== kinds) {
      kinds = seen.join();
      const now = kind.value;
      swap(
        kind,
        h('option', { value: '' }, t('log.all')),
        seen.map((type) => h('option', { value: type }, kindName(type))),
      );
      kind.value = seen.includes(now) ? now : '';
    }
    const word = search.value.trim().toLowerCase();
    const fits = (entry) => (!kind.value || entry.type === kind.value) && (!word || textOf(entry).includes(word));
    const found = known.log.filter(fits).reverse();
    number.textContent = t('log.count', { n: count(found.length), all: count(known.log.length) });
    list.set(found, (entry) => entry.id);
  };
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.setAttribute('aria-pressed', paused);
    pause.textContent = t(paused ? 'log.go' : 'log.pause');
    draw();
  });
  search.addEventListener('input', draw);
  kind.addEventListener('change', draw);
  draw();
  let over = false;
  (async () => {
    // Searching finds only what is here, so a good part of the past is fetched at once.
    while (!over && me.role === 'operator' && known.log.length < READ_AHEAD && (await earlier().catch(() => false)));
  })();
  const stop = on(['log'], throttled(draw));
  return () => {
    over = true;
    stop();
  };
}

const texts = new WeakMap();
function textOf(entry) {
  let text = texts.get(entry);
  if (text === undefined) {
    text = `${entry.type} ${JSON.stringify(entry.data)}`.toLowerCase();
    texts.set(entry, text);
  }
  return text;
}
