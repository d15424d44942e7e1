// The sign-in form: asks for a key, tries it on the hub and keeps it for this browser tab.

import { h, replaceContent } from './dom.js';
import { t } from './words.js';
import { fetchPrincipal, storedKey } from './api.js';
import { renderBrand, renderTools } from './shell.js';
import { renderCommand } from './next_step.js';

/** Shows the form in `root`. `onSignedIn` gets the principal of the key once the hub has accepted it. */
export function showSignIn(root, onSignedIn, errorText = '') {
  const field = h('input', {
    type: 'password',
    id: 'key',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
    'aria-describedby': 'key-note',
  });
  const button = h('button.first', { type: 'submit' }, t('signin.go'));
  const errorNode = h('p.wrong', { role: 'alert' }, errorText);
  const form = h(
    'form.card.signin',
    {},
    h('h1', {}, t('signin.title')),
    h('p.quiet', {}, t('signin.text')),
    h('label', { for: 'key' }, t('signin.key')),
    field,
    button,
    errorNode,
    h('p.quiet.small', { id: 'key-note' }, t('signin.note')),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text) return;
    // A text that a header cannot carry is not a key; fetch would throw.
    if (!/^[\x21-\x7e]+$/.test(text)) {
      errorNode.textContent = t('signin.wrong');
      return;
    }
    button.disabled = true;
    errorNode.textContent = '';
    storedKey.set(text);
    try {
      onSignedIn(await fetchPrincipal());
    } catch (error) {
      storedKey.remove();
      button.disabled = false;
      errorNode.textContent = error.status === 401 ? t('signin.wrong') : error.message;
      field.focus();
    }
  });
  replaceContent(
    root,
    h(
      'div.gate',
      {},
      h('header.top', {}, renderBrand(), h('span.spring'), renderTools()),
      h(
        'main',
        { id: 'main' },
        h(
          'div.gate-cards',
          {},
          form,
          h(
            'section.card.signin.where',
            {},
            h('p', {}, t('signin.what')),
            h('h2', {}, t('signin.where')),
            h('p.quiet.small', {}, t('signin.console')),
            renderCommand('chorus console'),
            h('p.quiet.small', {}, t('signin.show')),
            renderCommand('chorus register --show-key'),
            h('p.quiet.small', {}, t('signin.new')),
            renderCommand(`chorus register NAME --hub ${location.origin}`),
            h('p.quiet.small', {}, t('signin.operator')),
          ),
        ),
        h(
          'p.gate-links',
          {},
          h('a', { href: '/skill' }, t('signin.skill')),
          h('a', { href: '/docs' }, t('view.docs')),
          h('a', { href: '/health' }, t('signin.health')),
        ),
      ),
    ),
  );
  field.focus();
  window.addEventListener(
    'relabel',
    () => {
      if (form.isConnected) showSignIn(root, onSignedIn);
    },
    { once: true },
  );
}
