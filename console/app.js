// Entry point of the console: sign-in, then the view that the URL hash names; or the API reference at /docs.

import { h, replaceContent } from './dom.js';
import { t } from './words.js';
import { fetchPrincipal, openConsoleSession, storedKey } from './api.js';
import { startUpdates } from './hub.js';
import { followInbox } from './inbox.js';
import { loadModule } from './load.js';
import { applyStoredTheme, createShell, installShortcuts } from './shell.js';
import { showSignIn } from './sign_in.js';

const root = document.getElementById('app');
const viewLoaders = {
  overview: () => import('./overview.js'),
  agents: () => import('./agents.js'),
  conversations: () => import('./conversations.js'),
  channels: () => import('./channels.js'),
  sessions: () => import('./sessions.js'),
  market: () => import('./market.js'),
  activity: () => import('./activity.js'),
  access: () => import('./access.js'),
  operator: () => import('./operator.js'),
};

/** Splits the URL hash into view and arguments: `#/agents/alice%40chorus` is the view `agents` with one argument. */
function parseHash() {
  const [view, ...segments] = location.hash.replace(/^#\/?/, '').split('/');
  const args = segments.map((segment) => {
    try {
      return decodeURIComponent(segment);
    } catch {
      return segment;
    }
  });
  // An empty argument before another one counts: a conversation without an id.
  while (args.at(-1) === '') args.pop();
  return Object.hasOwn(viewLoaders, view) ? [view, args] : ['overview', []];
}

let shell;
let closeView = () => {};
let navigation = 0;

/** Says that a view cannot be fetched now; the page opens it when the hub answers again. */
function showWaiting(view) {
  closeView();
  closeView = () => {};
  shell.markView(view);
  replaceContent(shell.main, h('div.view', {}, h('h1', {}, t(`view.${view}`)), h('p.note', { role: 'status' }, t('outage.view'))));
}

async function showView() {
  const thisNavigation = ++navigation;
  const [view, args] = parseHash();
  const { openView } = await loadModule(viewLoaders[view], () => showWaiting(view));
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
  followInbox();
  const rebuildShell = () => {
    shell?.dispose();
    shell = createShell(root);
    showView();
  };
  rebuildShell();
  installShortcuts();
  window.addEventListener('hashchange', () => (findLinkToken() ? location.reload() : showView()));
  window.addEventListener('relabel', rebuildShell);
}

/** The token of a console link, `#/link/cl_…`. */
const findLinkToken = () => /^#\/link\/(cl_\w+)$/.exec(location.hash)?.[1];

/** Signs in with the link in the address bar; returns what to say when that fails. */
async function signInByLink(linkToken) {
  // At once, so that the token is neither in the history nor sent a second time by a reload.
  history.replaceState(null, '', `${location.pathname}#/overview`);
  try {
    await openConsoleSession(linkToken);
    return '';
  } catch (error) {
    return error.status === 401 ? t('signin.link') : error.message;
  }
}

async function startConsole() {
  applyStoredTheme();
  const linkToken = findLinkToken();
  const linkFault = linkToken ? await signInByLink(linkToken) : '';
  if (linkFault) return showSignIn(root, openConsole, linkFault);
  if (location.pathname === '/docs') return (await loadModule(() => import('./docs.js'))).openView(root);
  if (!storedKey.get()) return showSignIn(root, openConsole);
  try {
    return openConsole(await fetchPrincipal());
  } catch (error) {
    if (error.status === 401 || error.status === 403) {
      storedKey.remove();
      return showSignIn(root, openConsole, t('signin.wrong'));
    }
    replaceContent(root, h('main.plain', {}, h('h1', {}, t('link.waiting')), h('p', {}, error.message)));
    return setTimeout(startConsole, 2_000);
  }
}

startConsole();
