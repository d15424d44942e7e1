// Half-written texts, kept while the tab is open: a text survives navigation, a change of language, a reload and a new sign-in.
// In sessionStorage, because it may be private and another person may use the browser tomorrow.

import { principal } from './api.js';

const storageKey = (place) => `chorus.draft ${principal.id} ${place}`;

export function loadDraft(place) {
  return sessionStorage.getItem(storageKey(place)) ?? '';
}

export function saveDraft(place, text) {
  try {
    if (text) sessionStorage.setItem(storageKey(place), text);
    else sessionStorage.removeItem(storageKey(place));
  } catch {
    // A full storage loses the draft and nothing else.
  }
}

/** Fills a text field with its draft and keeps it while the person types. */
export function keepDraft(field, place) {
  field.value = loadDraft(place);
  field.addEventListener('input', () => saveDraft(place, field.value));
}
