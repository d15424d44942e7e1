// The dialog to write to any agent: an address with completion, and optionally the name of a conversation. It opens the
// conversation, where the message is written.

import { h } from './dom.js';
import { t } from './words.js';
import { encodeUriPart, getApi } from './api.js';
import { hubState, principal } from './hub.js';

/** A list of the agents on the hub, for `list=` of an input. */
export const createAddressList = (id) =>
  h(
    'datalist',
    { id },
    [...hubState.agents.keys()]
      .filter((agent) => agent !== principal.id)
      .sort()
      .map((agent) => h('option', { value: agent })),
  );

export const createNewMessageButton = () =>
  h('button', { type: 'button', 'data-do': 'new-message', onclick: openNewMessage }, t('new.message'));

function openNewMessage() {
  const address = h('input', {
    id: 'new-to',
    type: 'text',
    list: 'new-addresses',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'name@host',
  });
  const conversation = h('input', { id: 'new-conversation', type: 'text', maxlength: 64, autocomplete: 'off' });
  const errorNode = h('p.wrong', { role: 'alert' });
  const form = h(
    'form.fields',
    { 'data-form': 'new-message' },
    h('h2', {}, t('new.message')),
    h('div.field', {}, h('label', { for: 'new-to' }, t('new.to')), address, createAddressList('new-addresses')),
    h('div.field', {}, h('label', { for: 'new-conversation' }, t('new.conversation')), conversation),
    errorNode,
    h(
      'div.row-line',
      {},
      h('button.first', { type: 'submit' }, t('new.go')),
      h('button', { type: 'button', onclick: () => dialog.close() }, t('close')),
    ),
  );
  const dialog = h('dialog', { 'aria-label': t('new.message') }, form);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    errorNode.textContent = '';
    try {
      // A name in any spelling; messages carry the full address.
      const record = await getApi(`/agents/${encodeUriPart(address.value.trim())}`);
      dialog.close();
      location.hash = `#/conversations/${encodeUriPart(record.agent_id)}/${encodeUriPart(conversation.value.trim())}`;
    } catch (error) {
      errorNode.textContent = error.status === 404 ? t('new.unknown', { name: address.value.trim() }) : error.message;
    }
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  address.focus();
}
