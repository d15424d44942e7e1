// A field to write in, with a button: Enter sends, and what was refused is said beside it and stays written.

import { h } from './dom.js';
import { uuid } from './api.js';
import { t } from './words.js';

/* `label` names the field, `note` stands under it, `most` bounds it, `say(draft(text), once)` sends. */
export function composer({ label, note, most, draft, say }) {
  const field = h('textarea', { rows: 2, maxlength: most, placeholder: label, 'aria-label': label, required: true });
  const wrong = h('p.wrong', { role: 'alert' });
  const send = h('button.first', { type: 'submit' }, t('send'));
  const form = h(
    'form.composer',
    {},
    field,
    h('div.row-line', {}, h('span.quiet.small', {}, note), h('span.spring'), send),
    wrong,
  );
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  // Pressed again after a lost answer it is the same word, not another; a changed text is another.
  let last = {};
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text) return;
    if (last.text !== text) last = { text, body: draft(text), once: uuid() };
    send.disabled = true;
    wrong.textContent = '';
    try {
      await say(last.body, last.once);
      last = {};
      field.value = '';
    } catch (refusal) {
      wrong.textContent = refusal.message;
    }
    send.disabled = false;
    field.focus();
  });
  return form;
}
