// What happened, newest first, searchable and live. Operators see the hub's own record, agents what reached this page.

import { h, swap, throttled } from './dom.js';
import { clock, count, day, t } from './words.js';
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

function gist(data = {}) {
  const { sender_id: from, receiver_id: to, ...rest } = data;
  const ends = from || to ? [h('bdi', {}, from ?? ''), from && to ? ' → ' : '', h('bdi', {}, to ?? ''), ' '] : [];
  const more = Object.entries(rest).filter(([key, value]) => key !== 'trace_id' && value !== undefined && value !== null);
  return [ends, more.map(([key, value]) => [h('span.quiet', {}, ` ${key} `), h('bdi', {}, typeof value === 'object' ? JSON.stringify(value) : String(value))])];
}

function fill(row, entry) {
  swap(row,
    h('time', { title: day(entry.timestamp) }, clock(entry.timestamp)),
    h('span', { class: `kind tone-${tone(entry.type)}` }, entry.type.replaceAll('_', ' ')),
    h('span.cut', {}, gist(entry.data)));
}

export function open(root) {
  const search = h('input', { type: 'search', placeholder: t('log.search'), 'aria-label': t('log.search') });
  const kind = h('select', { 'aria-label': t('log.kind') });
  const number = h('span.quiet.small', { 'aria-live': 'off' });
  const pause = h('button', { type: 'button', 'aria-pressed': 'false' }, t('log.pause'));
  const detail = h('pre.entry', { hidden: true, tabindex: '0' });
  const list = rows({
    height: 32, fill, label: t('view.activity'), empty: t('log.empty'),
    open: (entry) => {
      detail.hidden = false;
      detail.textContent = JSON.stringify(entry, null, 2);
    },
    end: () => { earlier().catch(() => {}); },
  });
  root.append(h('div.column.fill', {},
    h('h1', {}, t('view.activity')), me.role === 'agent' && h('p.note', {}, t('log.own')),
    h('div.bar', {}, search, kind, pause, h('span.spring'), number), list.node, detail));

  let kinds = '';
  let paused = false;
  const draw = () => {
    if (paused) return;
    const seen = [...new Set(known.log.map((entry) => entry.type))].sort();
    if (seen.join() !== kinds) {
      kinds = seen.join();
      const now = kind.value;
      swap(kind, h('option', { value: '' }, t('log.all')), seen.map((type) => h('option', { value: type }, type.replaceAll('_', ' '))));
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
    while (!over && me.role === 'operator' && known.log.length < READ_AHEAD && await earlier().catch(() => false));
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
