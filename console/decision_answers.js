// Answers that a person has chosen: held back for a moment so that a wrong click can be undone, then sent.

import { announceText } from './dom.js';
import { principal } from './api.js';
import { sendAnswer } from './frames.js';
import { hubState, loadOpenItems, notifySubscribers } from './hub.js';
import { saveDraft } from './drafts.js';
import { t } from './words.js';

/** Time in which an answer can be undone before it is sent. */
const UNDO_MS = 3_000;
/** A second choice within this time is a double click, whichever card is under the pointer by then. */
const MIN_CHOICE_GAP_MS = 1_000;

/** By the id of the asking frame: `{decision, text, phase, timer, error, at}`; the phase is `held`, `sending`, `sent` or `failed`. */
const choices = new Map();
let lastChoiceAt = -Infinity;

export const getChoice = (frameId) => choices.get(frameId);

/** The names of the drafts of a decision's fields. */
export const getDraftPlace = (frameId, hatch) => `decision ${frameId} ${hatch}`;

/** The answer to a decision, from its frame or as this page has sent it: `{text, handle, at}`; undefined while it is open. */
export function getAnswer(frameId) {
  const frame = hubState.frames.answers.get(frameId);
  if (frame) return { text: frame.payload.response_text, handle: frame.sender_handle, at: frame.created_at };
  const choice = choices.get(frameId);
  return choice?.phase === 'sent' ? { text: choice.text, handle: principal.handle, at: choice.at } : undefined;
}

/** Holds an answer back, to be sent in `UNDO_MS`. A typed answer is no accident of the pointer. */
export function chooseAnswer(decision, text, { isTyped = false } = {}) {
  const now = performance.now();
  const isUnderWay = ['held', 'sending'].includes(choices.get(decision.frame_id)?.phase);
  if ((!isTyped && now - lastChoiceAt < MIN_CHOICE_GAP_MS) || isUnderWay || getAnswer(decision.frame_id)) return;
  lastChoiceAt = now;
  const timer = setTimeout(() => sendChoice(decision.frame_id), UNDO_MS);
  choices.set(decision.frame_id, { decision, text, phase: 'held', timer });
  announceText(t('decision.held', { text }));
  notifySubscribers('frames');
}

export function undoChoice(frameId) {
  const choice = choices.get(frameId);
  if (choice?.phase !== 'held') return;
  clearTimeout(choice.timer);
  choices.delete(frameId);
  announceText(t('decision.undone'));
  notifySubscribers('frames');
}

async function sendChoice(frameId, isLeaving = false) {
  const choice = choices.get(frameId);
  clearTimeout(choice.timer);
  if (hubState.frames.answers.has(frameId)) {
    // Another session was faster: its answer stands.
    choices.delete(frameId);
    notifySubscribers('frames');
    return;
  }
  choice.phase = 'sending';
  notifySubscribers('frames');
  try {
    await sendAnswer(choice.decision, choice.text, isLeaving);
    Object.assign(choice, { phase: 'sent', at: new Date().toISOString() });
    // The card becomes smaller now: a click that was meant for it must not answer the next one.
    lastChoiceAt = performance.now();
    for (const hatch of ['text', 'dialogue']) saveDraft(getDraftPlace(frameId, hatch), '');
    await loadOpenItems();
  } catch (error) {
    Object.assign(choice, { phase: 'failed', error: error.message });
  }
  notifySubscribers('frames');
}

/** Sends what is held back: a person who leaves the page has decided. */
export async function sendHeldChoices() {
  const held = [...choices].filter(([, choice]) => choice.phase === 'held');
  await Promise.all(held.map(([frameId]) => sendChoice(frameId, true)));
}

window.addEventListener('pagehide', sendHeldChoices);
