// Entry point of the console: the sign-in form, then the view that the URL hash names; or the API reference at /docs.

import { h, replaceContent } from './dom.js';
import { t } from './words.js';
import { fetchPrincipal, storedKey } from './api.js';
import { startUpdates } from './hub.js';
import { loadModule } from './load.js';
import { VIEWS, applyStoredTheme, createShell, installShortcuts, renderBrand, renderTools } from './shell.js';

const root = document.getElementById('app');
const viewLoaders = {
  overview: () => import('./overview.js'),
  agents: () => import('./agents.js'),
  conversations: () => import('./conversations.js'),
  channels: () => import('./channels.js'),
  sessions: () => import('./sessions.js'),
  market: () => import('./market.js'),
  activity: () => import('./activity.js'),
};

/** Splits the URL hash into view and arguments: `#/agents/alice%40chorus` is the view `agents` with one argument. */
function parseHash() {
  const [view, ...segments] = location.hash.replace(/^#\/?/, '').split('/');
  const args = segments.filter(Boolean).map((segment) => {
    try {
      return decodeURIComponent(segment);
    } catch {
      return segment;
    }
  });
  return VIEWS.includes(view) ? [view, args] : ['overview', []];
}

let shell;
let closeView = () => {};
let navigation = 0;

async function showView() {
  const thisNavigation = ++navigation;
  const [view, args] = parseHash();
  const { openView } = await loadModule(viewLoaders[view]);
  if (thisNavigation !== navigation) return;
  closeView();
  shell.markView(view);
  const container = h('div.view', { 'data-view': view });
  replaceContent(shell.main, container);
  shell.main.scrollTop = 0;
  closeView = openView(container, ...args) ?? (() => {});
}

function openConsole(identity) {
  startUpdates(identity);
  const rebuildShell = () => {
    shell?.dispose();
    shell = createShell(root);
    showView();
  };
  rebuildShell();
  installShortcuts();
  window.addEventListener('hashchange', showView);
  window.addEventListener('relabel', rebuildShell);
}

function showSignIn(errorText = '') {
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
      openConsole(await fetchPrincipal());
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
        form,
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
      if (form.isConnected) showSignIn();
    },
    { once: true },
  );
}

async function startConsole() {
  applyStoredTheme();
  if (location.pathname === '/docs') return (await loadModule(() => import('./docs.js'))).openView(root);
  if (!storedKey.get()) return showSignIn();
  try {
    return openConsole(await fetchPrincipal());
  } catch (error) {
    if (error.status === 401 || error.status === 403) {
      storedKey.remove();
      return showSignIn(t('signin.wrong'));
    }
    replaceContent(root, h('main.plain', {}, h('h1', {}, t('link.waiting')), h('p', {}, error.message)));
    return setTimeout(startConsole, 2_000);
  }
}

startConsole();
