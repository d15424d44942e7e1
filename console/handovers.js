// Work that was handed over: the person takes it up or closes it, once, and the outcome stays on the page.

import { announceText, h, renderAvatar, renderName } from './dom.js';
import { formatTime, formatTimestamp, t } from './words.js';
import { callApi, encodeUriPart, postApi, principal } from './api.js';
import { findTaker, listHandovers, sendTaken } from './frames.js';
import { hubState, loadOpenItems, notifySubscribers } from './hub.js';
import { renderMessageText } from './markdown.js';

/** A second click within this time is a double click, whichever card is under the pointer by then. */
const MIN_CLICK_GAP_MS = 1_000;
/** Handovers with an outcome that the page keeps. */
const MAX_OUTCOMES = 20;

/** By frame id: `{handover, phase, at, error}`; the phase is `sending`, `taken`, `closed`, `elsewhere` or `failed`. */
const outcomes = new Map();
let lastClickAt = -Infinity;

function recordOutcome(handover, facts) {
  outcomes.set(handover.id, { ...outcomes.get(handover.id), handover, ...facts });
  if (outcomes.size > MAX_OUTCOMES) outcomes.delete(outcomes.keys().next().value);
}

function setOutcome(handover, facts) {
  recordOutcome(handover, facts);
  notifySubscribers('frames');
}

const ROUTES = {
  taken: (path) =>
    postApi(`${path}/take`, {}, { 'x-chorus-instrument': 'console', 'x-chorus-session': principal.session }),
  closed: (path) => callApi(path, { method: 'DELETE' }),
};

/** `phase` is `taken`, or `closed`: its sender withdraws it. */
async function endHandover(handover, phase) {
  const now = performance.now();
  if (now - lastClickAt < MIN_CLICK_GAP_MS || !isOpen(outcomes.get(handover.id))) return;
  lastClickAt = now;
  setOutcome(handover, { phase: 'sending', error: undefined });
  try {
    await ROUTES[phase](`/handles/${encodeUriPart(handover.handle)}/open/${handover.id}`);
    setOutcome(handover, { phase, at: new Date().toISOString() });
    announceText(t(`handover.${phase}`, { time: formatTime(outcomes.get(handover.id).at, false) }));
    // It is taken all the same when the others cannot be told.
    if (phase === 'taken') sendTaken(handover).catch(() => {});
  } catch (error) {
    // 409: another session was first, and the hub says which.
    const isOver = error.status === 409 || error.status === 404;
    setOutcome(handover, { phase: isOver ? 'elsewhere' : 'failed', error: error.message });
  }
  // The card becomes smaller now: a click that was meant for it must not end the next one.
  lastClickAt = performance.now();
  await loadOpenItems();
}

/** A handover whose end failed can be tried again. */
const isOpen = (outcome) => !outcome || outcome.phase === 'failed';

function describeOutcome({ handover, phase, at, error }) {
  if (phase === 'sending') return t('wait');
  if (phase === 'elsewhere') {
    const taker = findTaker(hubState.frames, handover.id);
    return taker ? t('handover.other', { who: taker }) : error || t('handover.elsewhere');
  }
  return t(`handover.${phase}`, { time: formatTime(at, false) });
}

function renderActions(handover, error) {
  const createButton = (phase, className) =>
    h(
      'button',
      {
        type: 'button',
        class: className,
        'data-do': `handover-${phase}`,
        'data-key': `${phase} ${handover.id}`,
        onclick: () => endHandover(handover, phase),
      },
      t(`handover.${phase}.go`),
    );
  return [
    h(
      'p.row-line',
      {},
      createButton('taken', 'first'),
      handover.holder === principal.handle && createButton('closed', ''),
      h('span.quiet.small', {}, t('handover.until', { time: formatTimestamp(handover.expiresAt) })),
    ),
    error && h('p.wrong', { role: 'alert' }, t('handover.failed', { why: error })),
  ];
}

/** The open handovers and those that ended before the person's eyes. A card keeps its place; returns its node and `render`. */
export function createHandoverList() {
  const emptyNote = h('p.quiet', {}, t('handovers.none'));
  const node = h('div.column', { 'data-handovers': '' });
  const unfoldedKeys = new Set();
  const cards = new Map();
  let order = [...outcomes.keys()];

  const drawCard = (handover) => {
    const outcome = outcomes.get(handover.id);
    const text = isOpen(outcome) ? '' : describeOutcome(outcome);
    const signature = `${text} ${outcome?.error}`;
    const known = cards.get(handover.id);
    if (known?.signature === signature) return known.node;
    const hadFocus = known?.node.contains(document.activeElement);
    const card = h(
      'article.card.handover',
      { 'data-handover': handover.id, class: isOpen(outcome) ? '' : 'is-done' },
      h(
        'header.row-line',
        {},
        renderAvatar(handover.holder),
        renderName(handover.holder, 'b'),
        handover.session && h('bdi.quiet.small', {}, handover.session),
        h('span.spring'),
        h('time.quiet.small', {}, formatTimestamp(handover.openedAt)),
      ),
      renderMessageText(handover.body, { key: handover.id, unfoldedKeys }),
      handover.refs.length > 0 &&
        h('p.row-line.small', {}, h('span.quiet', {}, t('handover.refs')), handover.refs.map((ref) => h('code', {}, ref))),
      isOpen(outcome) ? renderActions(handover, outcome?.error) : h('p.answered', { tabindex: '-1', role: 'status' }, text),
    );
    cards.set(handover.id, { signature, node: card, hadFocus });
    return card;
  };

  let shown = new Map();
  const render = () => {
    const open = new Map(listHandovers(hubState.frames).map((handover) => [handover.id, handover]));
    const now = Date.now();
    // One that was here and is not any more has ended elsewhere, unless its time is over.
    for (const [id, handover] of shown) {
      if (!open.has(id) && !outcomes.has(id) && handover.expiresAt > now)
        recordOutcome(handover, { phase: 'elsewhere' });
    }
    const added = [...open.keys()].filter((id) => !order.includes(id));
    order = [...added, ...order].filter((id) => open.has(id) || outcomes.has(id));
    shown = open;
    emptyNote.hidden = [...open.keys()].some((id) => isOpen(outcomes.get(id)));
    const content = [emptyNote, ...order.map((id) => drawCard(open.get(id) ?? outcomes.get(id).handover))];
    const isSame = content.length === node.childNodes.length && content.every((one, at) => node.childNodes[at] === one);
    if (isSame) return;
    node.replaceChildren(...content);
    for (const card of cards.values()) {
      if (card.hadFocus) card.node.querySelector('.answered, button')?.focus();
      card.hadFocus = false;
    }
  };
  render();
  return { node, render };
}
