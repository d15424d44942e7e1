// The form to write a message: Enter sends; after an error the text stays in the field and the error is shown below it. A warning
// is shown there too, and holds nothing back.

import { h } from './dom.js';
import { createUuid } from './api.js';
import { keepDraft, loadDraft, saveDraft } from './drafts.js';
import { t } from './words.js';

/**
 * `label` names the field, `note` is shown below it, `maxLength` limits the text, `place` names the draft. `buildBody(text)` makes
 * the request body and `sendBody(body, idempotencyKey)` sends it. `getWarning(text, isComplete)` gives what to say about a text
 * that is typed, and about one that is sent (`isComplete`).
 */
export function createComposer({ label, note, maxLength, place, buildBody, sendBody, getWarning = () => '' }) {
  const field = h('textarea', {
    rows: 2,
    maxlength: maxLength,
    placeholder: label,
    'aria-label': label,
    required: true,
  });
  // Above the button: the form grows upwards, so the button stays under the pointer.
  const warningNode = h('p.state.wait.name', { role: 'status', 'data-warning': '' });
  const warn = (isComplete) => {
    warningNode.textContent = getWarning(field.value, isComplete);
  };
  const errorNode = h('p.wrong', { role: 'alert' });
  const sendButton = h('button.first', { type: 'submit' }, t('send'));
  const form = h(
    'form.composer',
    {},
    field,
    warningNode,
    h('div.row-line', {}, h('span.quiet.small', {}, note), h('span.spring'), sendButton),
    errorNode,
  );
  keepDraft(field, place);
  field.addEventListener('input', () => warn(false));
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  // A retry of the same text reuses its idempotency key, so that a lost response does not send the message
  // twice. A changed text gets a new key.
  let attempt = {};
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text || sendButton.disabled) return;
    if (attempt.text !== text) attempt = { text, body: buildBody(text), idempotencyKey: createUuid() };
    sendButton.disabled = true;
    errorNode.textContent = '';
    // It stands there until the next text is typed: the one that it is about is gone from the field.
    warn(true);
    try {
      await sendBody(attempt.body, attempt.idempotencyKey);
      attempt = {};
      // What was typed meanwhile stays.
      if (field.value.trim() === text) field.value = '';
      if (loadDraft(place).trim() === text) saveDraft(place, '');
    } catch (error) {
      errorNode.textContent = error.message;
    }
    sendButton.disabled = false;
    field.focus();
  });
  return form;
}
