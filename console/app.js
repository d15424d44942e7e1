// Where the page begins: sign in, then the view that the address names; or the contract at /docs.

import { h, swap } from './dom.js';
import { t } from './words.js';
import { key, whoami } from './api.js';
import { start } from './hub.js';
import { loadModule } from './load.js';
import { VIEWS, brand, dress, frame, listen, tools } from './shell.js';

const root = document.getElementById('app');
const modules = {
  overview: () => import('./overview.js'),
  agents: () => import('./agents.js'),
  conversations: () => import('./conversations.js'),
  channels: () => import('./channels.js'),
  sessions: () => import('./sessions.js'),
  market: () => import('./market.js'),
  activity: () => import('./activity.js'),
};

/** `#/agents/alice%40chorus` is the view `agents` with one word. */
function place() {
  const [view, ...words] = location.hash.replace(/^#\/?/, '').split('/');
  const read = words.filter(Boolean).map((word) => {
    try {
      return decodeURIComponent(word);
    } catch {
      return word;
    }
  });
  return VIEWS.includes(view) ? [view, read] : ['overview', []];
}

let shell;
let close = () => {};
let turn = 0;

async function show() {
  const mine = ++turn;
  const [view, words] = place();
  const { open } = await loadModule(modules[view]);
  if (mine !== turn) return;
  close();
  shell.mark(view);
  const page = h('div.view', { 'data-view': view });
  swap(shell.main, page);
  shell.main.scrollTop = 0;
  close = open(page, ...words) ?? (() => {});
}

function enter(who) {
  start(who);
  const build = () => {
    shell?.stop();
    shell = frame(root);
    show();
  };
  build();
  listen();
  window.addEventListener('hashchange', show);
  window.addEventListener('relabel', build);
}

function ask(said = '') {
  const field = h('input', {
    type: 'password',
    id: 'key',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
    'aria-describedby': 'key-note',
  });
  const button = h('button.first', { type: 'submit' }, t('signin.go'));
  const wrong = h('p.wrong', { role: 'alert' }, said);
  const form = h(
    'form.card.signin',
    {},
    h('h1', {}, t('signin.title')),
    h('p.quiet', {}, t('signin.text')),
    h('label', { for: 'key' }, t('signin.key')),
    field,
    button,
    wrong,
    h('p.quiet.small', { id: 'key-note' }, t('signin.note')),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text) return;
    // What no header can carry is no key.
    if (!/^[\x21-\x7e]+$/.test(text)) {
      wrong.textContent = t('signin.wrong');
      return;
    }
    button.disabled = true;
    wrong.textContent = '';
    key.set(text);
    try {
      enter(await whoami());
    } catch (refusal) {
      key.drop();
      button.disabled = false;
      wrong.textContent = refusal.status === 401 ? t('signin.wrong') : refusal.message;
      field.focus();
    }
  });
  swap(
    root,
    h(
      'div.gate',
      {},
      h('header.top', {}, brand(), h('span.spring'), tools()),
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
      if (form.isConnected) ask();
    },
    { once: true },
  );
}

async function begin() {
  dress();
  if (location.pathname === '/docs') return (await loadModule(() => import('./docs.js'))).open(root);
  if (!key.get()) return ask();
  try {
    return enter(await whoami());
  } catch (refusal) {
    if (refusal.status === 401 || refusal.status === 403) {
      key.drop();
      return ask(t('signin.wrong'));
    }
    swap(root, h('main.plain', {}, h('h1', {}, t('link.waiting')), h('p', {}, refusal.message)));
    return setTimeout(begin, 2_000);
  }
}

begin();
