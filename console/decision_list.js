// The decisions that wait for the person and those just answered. A card keeps its place when it is answered, so that no other
// card comes under the pointer.

import { h } from './dom.js';
import { hubState } from './hub.js';
import { listOpenDecisions } from './frames.js';
import { getAnswer, getChoice } from './decision_answers.js';
import { renderDecision } from './decision.js';
import { t } from './words.js';

/** Decisions answered before the view was opened that are shown too. */
const MAX_ANSWERED_SHOWN = 3;

/** `hasHistory`: with decisions that were answered before the view was opened, and a text when there are none. */
export function createDecisionList({ hasHistory }) {
  const heading = h('h2');
  const emptyNote = h('p.quiet', {}, t('decisions.none'));
  const node = h('div.decisions');
  const cards = new Map();
  let order;

  const drawCard = (decision) => {
    const id = decision.frame_id;
    const choice = getChoice(id);
    const answer = getAnswer(id);
    const signature = JSON.stringify([choice?.phase, choice?.error, answer]);
    const known = cards.get(id);
    if (known?.signature === signature) return known.node;
    const hadFocus = known?.node.contains(document.activeElement);
    const card = renderDecision(decision, answer, choice);
    // No other card moves under the pointer while the choice can be undone.
    if (known && choice?.phase === 'held') card.style.minHeight = `${known.node.offsetHeight}px`;
    else if (known && choice?.phase === 'sending') card.style.minHeight = known.node.style.minHeight;
    cards.set(id, { signature, node: card, hadFocus, wasDone: known?.wasDone });
    return card;
  };

  const render = () => {
    const { decisions } = hubState.frames;
    const openDecisions = listOpenDecisions(hubState.frames);
    order ??= hasHistory ? [...decisions.keys()].filter((id) => getAnswer(id)).slice(-MAX_ANSWERED_SHOWN) : [];
    // New decisions come first in their own order, before what was answered earlier.
    const known = new Set(order);
    const waitingCount = order.filter((id) => cards.has(id) && !cards.get(id).wasDone).length;
    const added = openDecisions.map((decision) => decision.frame_id).filter((id) => !known.has(id));
    order = [...order.slice(0, waitingCount), ...added, ...order.slice(waitingCount)].filter((id) => decisions.has(id));
    // A decision that is neither open nor answered has expired.
    const openIds = new Set(openDecisions.map((decision) => decision.frame_id));
    const shown = order.filter((id) => openIds.has(id) || getAnswer(id) || getChoice(id));
    const openCount = openDecisions.filter((decision) => !getAnswer(decision.frame_id)).length;
    heading.replaceChildren(t('decisions'), ...(openCount ? [h('span.badge', {}, openCount)] : []));
    const nodes = shown.map((id) => drawCard(decisions.get(id)));
    for (const id of shown) cards.get(id).wasDone ??= Boolean(getAnswer(id));
    emptyNote.hidden = openCount > 0;
    node.hidden = !hasHistory && !nodes.length;
    const content = [heading, ...(hasHistory ? [emptyNote] : []), ...nodes];
    const isSame = content.length === node.childNodes.length && content.every((one, at) => node.childNodes[at] === one);
    if (isSame) return;
    node.replaceChildren(...content);
    for (const id of shown) {
      const card = cards.get(id);
      if (card.hadFocus) card.node.querySelector('[data-do=undo], .answered, .option')?.focus();
      card.hadFocus = false;
    }
  };
  render();
  return { node, render };
}
