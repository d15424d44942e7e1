// The keys view: the signed-in agent's further keys, with what each may do; creates and ends them.

import { announceText, copyText, h, renderName, replaceContent } from './dom.js';
import { formatDate, t } from './words.js';
import { callApi, encodeUriPart, getApi, postApi, principal } from './api.js';

const SCOPES = ['read', 'send', 'frames', 'channels', 'market', 'admin'];
const DAY_SECONDS = 86_400;

export function openView(container) {
  const heading = h('h1', {}, t('view.access'));
  if (principal.role !== 'agent') {
    replaceContent(container, heading, h('p.quiet', {}, t('access.operator')));
    return undefined;
  }
  const list = h('div.rows', { 'data-list': 'keys' }, h('p.quiet', {}, t('wait')));
  const errorNode = h('p.bad', { role: 'alert', hidden: true });
  const newKey = h('div', { 'data-new-key': '' });
  let isClosed = false;

  const showError = (error) => {
    errorNode.hidden = !error;
    errorNode.textContent = error ? error.message : '';
  };
  const refresh = async () => {
    try {
      const keys = await getApi('/agent/keys');
      if (isClosed) return;
      const rows = keys.map((key) => renderKey(key, endKey));
      replaceContent(list, rows.length ? rows : h('p.quiet', {}, t('access.none')));
    } catch (error) {
      if (isClosed) return;
      replaceContent(list);
      showError(error);
    }
  };
  const endKey = async (key) => {
    showError();
    try {
      await callApi(`/agent/keys/${encodeUriPart(key.id)}`, { method: 'DELETE' });
      announceText(t('access.ended', { name: key.label }));
    } catch (error) {
      showError(error);
    }
    await refresh();
  };
  const createKey = async (request) => {
    showError();
    try {
      const made = await postApi('/agent/keys', request);
      replaceContent(newKey, renderNewKey(made));
      announceText(t('access.once'));
      await refresh();
      return true;
    } catch (error) {
      showError(error);
      return false;
    }
  };

  replaceContent(
    container,
    heading,
    h('p.quiet', {}, t('access.text')),
    renderForm(createKey),
    errorNode,
    newKey,
    list,
  );
  refresh();
  return () => {
    isClosed = true;
  };
}

function renderForm(createKey) {
  const label = h('input', { type: 'text', name: 'label', required: true, maxlength: 256, placeholder: t('access.label'), 'aria-label': t('access.label') });
  const days = h('input', { type: 'number', name: 'days', min: 1, max: 3650, placeholder: t('access.days'), 'aria-label': t('access.days') });
  const boxes = SCOPES.map((scope) => h('input', { type: 'checkbox', name: 'scope', value: scope }));
  const form = h(
    'form.card',
    { 'data-form': 'key' },
    label,
    h(
      'fieldset',
      {},
      h('legend.quiet.small', {}, t('access.scopes')),
      boxes.map((box) => h('label', { title: t(`access.scope.${box.value}`) }, box, ' ', h('code', {}, box.value), ' ')),
    ),
    days,
    h('button.first', { type: 'submit' }, t('access.make')),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const request = { label: label.value.trim(), scopes: boxes.filter((box) => box.checked).map((box) => box.value) };
    if (days.value) request.expires_in_s = Number(days.value) * DAY_SECONDS;
    if (await createKey(request)) form.reset();
  });
  return form;
}

/** The key of a new record; the hub shows it only now. */
function renderNewKey(made) {
  const copyButton = h('button', { type: 'button' }, t('copy'));
  copyButton.addEventListener('click', async () => {
    await copyText(made.key);
    copyButton.textContent = t('copied');
  });
  return h('div.card', {}, h('p', {}, t('access.once')), h('code', {}, made.key), ' ', copyButton);
}

function renderKey(key, endKey) {
  const expires = key.expires_at ? t('access.until', { day: formatDate(key.expires_at) }) : t('access.endless');
  const used = key.last_used ? t('access.used', { day: formatDate(key.last_used) }) : t('access.unused');
  return h(
    'article.card',
    { 'data-key': `key ${key.id}` },
    h('header.row-line', {}, renderName(key.label, 'b'), key.scopes.map((scope) => h('span.chip', {}, scope))),
    h('p.quiet.small', {}, `${expires}, ${used}`),
    h('button', { type: 'button', 'data-do': 'end-key', onclick: () => endKey(key) }, t('access.end')),
  );
}
