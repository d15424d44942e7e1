// The activity view: a searchable, live list, newest first. An operator sees the hub's activity log, an agent what happened to it.

import { h, isWideScreen, replaceContent, throttleToRepaint } from './dom.js';
import { formatCount, formatKind, formatShortTimestamp, formatTime, t } from './words.js';
import { hubState, loadEarlierLog, principal, subscribe } from './hub.js';
import { createVirtualList } from './list.js';
import { renderNextStep } from './next_step.js';
import { renderNeighbours } from './operator.js';
import { openOwnActivity } from './own_activity.js';

/** The search covers loaded entries only, so this many are loaded at once; a page of the agent's lists is read for each fifty. */
const READ_AHEAD_ENTRIES = { operator: 10_000, agent: 200 };

const FIRST_COMMAND = 'chorus send bob "hello"';

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

/** An entry of an agent says in words what happened, and leads there. */
function fillOwnRow(row, entry) {
  if (!row.cells) {
    row.cells = [h('time'), h('span.kind'), h('span.cut', { dir: 'auto' }), h('span.state'), h('span.go', { 'aria-hidden': 'true' })];
    row.append(...row.cells);
  }
  const [time, kind, text, state, arrow] = row.cells;
  time.textContent = formatShortTimestamp(entry.timestamp);
  kind.className = `kind own-${entry.kind}`;
  kind.textContent = t(`own.kind.${entry.kind}`);
  text.textContent = entry.text;
  state.className = `state ${entry.tone ?? ''}`;
  state.textContent = entry.state ?? '';
  arrow.textContent = entry.href ? '›' : '';
}

/** What an operator's view lists: the hub's record. `onChange` is called when there is something new. */
function openHubActivity(onChange) {
  return {
    list: () => [...hubState.log].reverse(),
    loadEarlier: loadEarlierLog,
    stop: subscribe(['log'], onChange),
  };
}

export function openView(root) {
  const isOwn = principal.role === 'agent';
  const getKind = (entry) => (isOwn ? entry.kind : entry.type);
  const nameKind = (kind) => (isOwn ? t(`own.kind.${kind}`) : formatKind(kind));
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
  /** The credits of the registration are there before anything has happened. */
  const firstStep = h('div.card', { hidden: true }, renderNextStep('activity', FIRST_COMMAND));
  const list = createVirtualList({
    // On a phone an entry of an agent has two lines.
    height: isOwn ? (isWideScreen() ? 40 : 60) : 32,
    fillRow: isOwn ? fillOwnRow : fillRow,
    label: t('view.activity'),
    emptyText: isOwn ? t('wait') : renderNextStep('activity', FIRST_COMMAND),
    onOpen: (entry) => {
      if (!isOwn) openEntry(entry);
      else if (entry.href) location.hash = entry.href;
    },
    onEnd: () => {
      feed?.loadEarlier().catch(() => {});
    },
  });
  root.append(
    h(
      'div.column.fill',
      { class: isOwn ? 'own' : '' },
      h('h1', {}, t('view.activity')),
      isOwn && h('p.note', {}, t('log.own')),
      h('div.bar', {}, searchField, kindSelect, pauseButton, h('span.spring'), countNode),
      firstStep,
      list.node,
      detail,
      neighbours,
    ),
  );

  let feed;
  let shownKinds = '';
  let isPaused = false;
  const render = () => {
    if (isPaused || !feed) return;
    const entries = feed.list();
    firstStep.hidden = !isOwn || !feed.isLoaded() || entries.some((entry) => entry.kind !== 'credit');
    const loadedKinds = [...new Set(entries.map(getKind))].sort();
    if (loadedKinds.join() !== shownKinds) {
      shownKinds = loadedKinds.join();
      const selected = kindSelect.value;
      replaceContent(
        kindSelect,
        h('option', { value: '' }, t('log.all')),
        loadedKinds.map((type) => h('option', { value: type }, nameKind(type))),
      );
      kindSelect.value = loadedKinds.includes(selected) ? selected : '';
    }
    const query = searchField.value.trim().toLowerCase();
    const isMatch = (entry) =>
      (!kindSelect.value || getKind(entry) === kindSelect.value) && (!query || getSearchText(entry).includes(query));
    const matches = entries.filter(isMatch);
    countNode.textContent = t('log.count', { n: formatCount(matches.length), all: formatCount(entries.length) });
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
  feed = (isOwn ? openOwnActivity : openHubActivity)(throttleToRepaint(render));
  render();
  let isClosed = false;
  (async () => {
    while (
      !isClosed &&
      feed.list().length < READ_AHEAD_ENTRIES[principal.role] &&
      (await feed.loadEarlier().catch(() => false))
    );
  })();
  return () => {
    isClosed = true;
    feed.stop();
  };
}

const searchTexts = new WeakMap();
function getSearchText(entry) {
  let text = searchTexts.get(entry);
  if (text === undefined) {
    text = (entry.text ?? `${entry.type} ${JSON.stringify(entry.data)}`).toLowerCase();
    searchTexts.set(entry, text);
  }
  return text;
}
