// The page layout around every view: navigation, signed-in principal, connection state, theme, language and keyboard shortcuts.

import { announceText, h, renderAvatar, renderIcon, replaceContent, throttleToRepaint } from './dom.js';
import { language, setLanguage, t } from './words.js';
import { endConsoleSession, storedKey } from './api.js';
import { sendHeldChoices } from './decision_answers.js';
import { getConnectionState, hubState, principal, subscribe } from './hub.js';
import { WAITING_TOPICS, countWaiting } from './inbox.js';
import { moveInList } from './list_keys.js';
import { canNotify, isNotifying, toggleNotifying } from './notify.js';
import { createOutageBanner } from './outage.js';

export const VIEWS = ['overview', 'agents', 'conversations', 'channels', 'sessions', 'market', 'activity'];

/* ---- theme ---- */

/** A larger count does not fit beside the name of a view; its label says it in full. */
const MAX_BADGE_COUNT = 99;
const THEME_STORAGE = 'chorus.theme';

export function applyStoredTheme() {
  const storedTheme = localStorage.getItem(THEME_STORAGE);
  if (storedTheme === 'light' || storedTheme === 'dark') document.documentElement.dataset.theme = storedTheme;
}

export function toggleTheme() {
  const currentTheme =
    document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  const newTheme = currentTheme === 'dark' ? 'light' : 'dark';
  localStorage.setItem(THEME_STORAGE, newTheme);
  document.documentElement.dataset.theme = newTheme;
}

export function toggleLanguage() {
  setLanguage(language === 'zh' ? 'en' : 'zh');
  window.dispatchEvent(new Event('relabel'));
}

export function renderTools() {
  return [
    h(
      'button.tool',
      { type: 'button', title: t('tool.theme'), 'aria-label': t('tool.theme'), onclick: toggleTheme },
      renderIcon('sun'),
    ),
    h(
      'button.tool',
      {
        type: 'button',
        title: t('tool.language'),
        'aria-label': t('tool.language'),
        lang: language === 'zh' ? 'en' : 'zh',
        onclick: toggleLanguage,
        'data-do': 'language',
      },
      language === 'zh' ? 'EN' : '中',
    ),
  ];
}

/** Turns the notifications of the browser on and off; undefined where the browser offers none. */
function createNotifyButton() {
  if (!canNotify() || principal.role !== 'agent') return undefined;
  const button = h('button.tool', { type: 'button', 'data-do': 'notify' }, renderIcon('bell'));
  const update = () => {
    const label = t(isNotifying() ? 'notify.off' : 'notify.on');
    button.title = label;
    button.setAttribute('aria-label', label);
    button.setAttribute('aria-pressed', String(isNotifying()));
  };
  button.addEventListener('click', async () => {
    const wasDenied = Notification.permission === 'denied';
    await toggleNotifying();
    update();
    announceText(t(wasDenied ? 'notify.denied' : isNotifying() ? 'notify.is-on' : 'notify.is-off'));
  });
  update();
  return button;
}

/* ---- layout ---- */

export const renderBrand = (title) =>
  h(
    'a.brand',
    { href: '/' },
    h('img', { src: '/console/icon.svg', alt: '', width: 26, height: 26 }),
    h('span', {}, title ?? 'Chorus'),
  );

/**
 * Builds the layout in `root`. Returns `main`, the element for a view; `markView`, which marks its link as current; `dispose`.
 */
export function createShell(root) {
  const statusPill = h('span.pill', { role: 'status' });
  const links = new Map();
  const badges = new Map();
  for (const view of VIEWS) {
    badges.set(view, h('span.badge', { hidden: true }));
    const content = [
      renderIcon(view),
      h('span.long', {}, t(`view.${view}`)),
      h('span.short', {}, t(view === 'conversations' ? 'view.short' : `view.${view}`)),
      badges.get(view),
    ];
    links.set(view, h('a', { href: `#/${view}`, 'data-view': view }, content));
  }
  // It scrolls, so the keyboard has to reach it even when nothing in it takes the focus.
  const main = h('main', { id: 'main', tabindex: '0' });
  const outage = createOutageBanner(signOut);
  const hubName = h('span.hub-name');
  // An agent's own keys are under its name; under an operator's, what only operators do.
  const ownView = principal.role === 'agent' ? 'access' : 'operator';
  const identity = h(
    'a.who',
    { href: `#/${ownView}`, title: t(`view.${ownView}`), 'data-view': ownView },
    renderAvatar(principal.id || 'operator'),
    h('bdi', {}, principal.id || t('role.operator')),
  );
  const signOutButton = h(
    'button.tool',
    { type: 'button', title: t('tool.leave'), 'aria-label': t('tool.leave'), 'data-do': 'leave', onclick: signOut },
    renderIcon('out'),
  );
  const shortcutsButton = h(
    'button.tool.wide-only',
    { type: 'button', title: t('tool.keys'), 'aria-label': t('tool.keys'), onclick: showShortcuts },
    renderIcon('keys'),
  );
  replaceContent(
    root,
    h(
      'a.skip',
      {
        href: '#main',
        onclick: (event) => {
          event.preventDefault();
          main.focus();
        },
      },
      t('skip'),
    ),
    h(
      'div.frame',
      {},
      h(
        'header.top',
        {},
        renderBrand(),
        hubName,
        h('span.spring'),
        statusPill,
        identity,
        createNotifyButton(),
        shortcutsButton,
        renderTools(),
        signOutButton,
      ),
      h(
        'nav.side',
        { 'aria-label': t('nav') },
        [...links.values()],
        h('span.spring'),
        h('a', { href: '/docs', class: 'wide-only' }, renderIcon('docs'), h('span', {}, t('view.docs'))),
      ),
      outage.node,
      main,
    ),
  );

  let announcedState;
  const updateStatus = () => {
    const state = getConnectionState();
    const text = t(`link.${state}`);
    statusPill.className = `pill is-${state}`;
    statusPill.dataset.link = state;
    statusPill.textContent = text;
    statusPill.title = t(`link.${state}.more`);
    if (announcedState !== undefined && announcedState !== state) announceText(text);
    announcedState = state;
  };
  const updateBadges = () => {
    for (const [view, count] of Object.entries(countWaiting())) {
      const badge = badges.get(view);
      badge.hidden = count === 0;
      badge.textContent = count > MAX_BADGE_COUNT ? `${MAX_BADGE_COUNT}+` : count;
      badge.setAttribute('aria-label', t(view === 'sessions' ? 'decision.open' : 'unread.count', { n: count }));
    }
  };
  const updateHubName = () => {
    hubName.textContent =
      hubState.discovery?.server_name && hubState.discovery.server_name !== 'Chorus'
        ? hubState.discovery.server_name
        : '';
  };
  const cleanups = [
    subscribe(['connection'], throttleToRepaint(updateStatus)),
    subscribe(WAITING_TOPICS, throttleToRepaint(updateBadges)),
    subscribe(['discovery'], updateHubName),
    outage.stop,
  ];
  updateStatus();
  updateBadges();
  updateHubName();
  return {
    main,
    markView(view) {
      for (const [name, link] of links)
        name === view ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current');
    },
    dispose: () => cleanups.forEach((cleanup) => cleanup()),
  };
}

export async function signOut() {
  // A hub that is away must not keep the user signed in.
  const giveTime = (work) => Promise.race([work, new Promise((resolve) => setTimeout(resolve, 1_500))]);
  await giveTime(sendHeldChoices());
  await giveTime(endConsoleSession());
  storedKey.remove();
  sessionStorage.removeItem('chorus.session');
  location.assign('/console');
}

/* ---- keyboard shortcuts ---- */

const SHORTCUTS = [
  ['1 – 7', 'keys.views'],
  ['/', 'keys.search'],
  ['j k ↑ ↓', 'keys.move'],
  ['Enter', 'keys.open'],
  ['Esc', 'keys.close'],
  ['t', 'keys.theme'],
  ['l', 'keys.language'],
  ['?', 'keys.help'],
];

function showShortcuts() {
  const closeButton = h('button', { type: 'button' }, t('close'));
  const rows = SHORTCUTS.map(([keys, textKey]) => [
    h(
      'dt',
      {},
      keys.split(' ').map((label) => (label === '–' ? ' – ' : h('kbd', {}, label))),
    ),
    h('dd', {}, t(textKey)),
  ]);
  const dialog = h(
    'dialog.help',
    { 'aria-label': t('tool.keys') },
    h('h2', {}, t('tool.keys')),
    h('dl', {}, rows),
    closeButton,
  );
  closeButton.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const isTyping = (node) => /^(INPUT|TEXTAREA|SELECT)$/.test(node?.tagName ?? '') || node?.isContentEditable;

export function installShortcuts() {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape' && isTyping(event.target)) return event.target.blur();
    if (isTyping(event.target) || document.querySelector('dialog[open]')) return undefined;
    const view = VIEWS[Number(event.key) - 1];
    if (view) location.hash = `#/${view}`;
    else if (event.key === '/') {
      const search = document.querySelector('main input[type=search]');
      if (!search) return undefined;
      event.preventDefault();
      search.focus();
    } else if (event.key === 'j' || event.key === 'k') moveInList(event.key === 'j' ? 1 : -1);
    else if (event.key === 't') toggleTheme();
    else if (event.key === 'l') toggleLanguage();
    else if (event.key === '?') showShortcuts();
    return undefined;
  });
}
