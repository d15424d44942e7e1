// The activity view: a searchable, live list of events, newest first. An operator sees the hub's activity log, an agent the
// events that reached this page, after its messages from before.

import { h, replaceContent, throttleToRepaint } from './dom.js';
import { formatCount, formatKind, formatTime, t } from './words.js';
import { hubState, loadEarlierLog, principal, subscribe } from './hub.js';
import { createVirtualList } from './list.js';
import { renderNextStep } from './next_step.js';
import { renderNeighbours } from './operator.js';

/** The search covers loaded entries only, so an operator's are loaded at once; an agent's are messages, of one page. */
const READ_AHEAD_ENTRIES = { operator: 10_000, agent: 50 };

/** The colour class of an event type: failures, pending work, successes; other types have none. */
function getTone(type) {
  if (/failed|error|removed|unreachable/.test(type)) return 'bad';
  if (/queued|started|binding/.test(type)) return 'wait';
  if (/delivered|registered|result|receipt/.test(type)) return 'good';
  return '';
}

/**
 * One line of text for an entry's data. Values are isolated with Unicode characters instead of `bdi` elements, because a row is
 * rewritten whenever it scrolls into view.
 */
function summarizeData(data = {}) {
  const { sender_id: from, receiver_id: to, trace_id: _, ...rest } = data;
  const isolateText = (text) => `\u2068${text}\u2069`;
  const parts = from || to ? [[from, to].filter(Boolean).map(isolateText).join(' → ')] : [];
  for (const [key, value] of Object.entries(rest)) {
    if (value !== undefined && value !== null)
      parts.push(`${key} ${isolateText(typeof value === 'object' ? JSON.stringify(value) : value)}`);
  }
  return parts.join('  ');
}

function fillRow(row, entry) {
  if (!row.cells) {
    row.cells = [h('time'), h('span'), h('span.cut')];
    row.append(...row.cells);
  }
  const [time, kind, text] = row.cells;
  time.textContent = formatTime(entry.timestamp);
  kind.className = `kind tone-${getTone(entry.type)}`;
  kind.textContent = formatKind(entry.type);
  text.textContent = summarizeData(entry.data);
}

export function openView(root) {
  const searchField = h('input', { type: 'search', placeholder: t('log.search'), 'aria-label': t('log.search') });
  const kindSelect = h('select', { 'aria-label': t('log.kind') });
  const countNode = h('span.quiet.small', { 'aria-live': 'off' });
  const pauseButton = h('button', { type: 'button', 'aria-pressed': 'false' }, t('log.pause'));
  const detail = h('pre.entry', { hidden: true, tabindex: '0' });
  const neighbours = h('div.entry', { hidden: true });
  const openEntry = (entry) => {
    detail.hidden = false;
    detail.textContent = JSON.stringify(entry, null, 2);
    neighbours.hidden = principal.role !== 'operator';
    replaceContent(neighbours, renderNeighbours(entry, openEntry));
  };
  const list = createVirtualList({
    height: 32,
    fillRow,
    label: t('view.activity'),
    emptyText: renderNextStep('activity', 'chorus send bob "hello"'),
    onOpen: (entry) => openEntry(entry),
    onEnd: () => {
      loadEarlierLog().catch(() => {});
    },
  });
  root.append(
    h(
      'div.column.fill',
      {},
      h('h1', {}, t('view.activity')),
      principal.role === 'agent' && h('p.note', {}, t('log.own')),
      h('div.bar', {}, searchField, kindSelect, pauseButton, h('span.spring'), countNode),
      list.node,
      detail,
      neighbours,
    ),
  );

  let shownKinds = '';
  let isPaused = false;
  const render = () => {
    if (isPaused) return;
    const loadedKinds = [...new Set(hubState.log.map((entry) => entry.type))].sort();
    if (loadedKinds.join() !== shownKinds) {
      shownKinds = loadedKinds.join();
      const selected = kindSelect.value;
      replaceContent(
        kindSelect,
        h('option', { value: '' }, t('log.all')),
        loadedKinds.map((type) => h('option', { value: type }, formatKind(type))),
      );
      kindSelect.value = loadedKinds.includes(selected) ? selected : '';
    }
    const query = searchField.value.trim().toLowerCase();
    const isMatch = (entry) =>
      (!kindSelect.value || entry.type === kindSelect.value) && (!query || getSearchText(entry).includes(query));
    const matches = hubState.log.filter(isMatch).reverse();
    countNode.textContent = t('log.count', { n: formatCount(matches.length), all: formatCount(hubState.log.length) });
    list.setItems(matches, (entry) => entry.id);
  };
  pauseButton.addEventListener('click', () => {
    isPaused = !isPaused;
    pauseButton.setAttribute('aria-pressed', isPaused);
    pauseButton.textContent = t(isPaused ? 'log.go' : 'log.pause');
    render();
  });
  searchField.addEventListener('input', render);
  kindSelect.addEventListener('change', render);
  render();
  let isClosed = false;
  (async () => {
    while (
      !isClosed &&
      hubState.log.length < READ_AHEAD_ENTRIES[principal.role] &&
      (await loadEarlierLog().catch(() => false))
    );
  })();
  const unsubscribe = subscribe(['log'], throttleToRepaint(render));
  return () => {
    isClosed = true;
    unsubscribe();
  };
}

const searchTexts = new WeakMap();
function getSearchText(entry) {
  let text = searchTexts.get(entry);
  if (text === undefined) {
    text = `${entry.type} ${JSON.stringify(entry.data)}`.toLowerCase();
    searchTexts.set(entry, text);
  }
  return text;
}
