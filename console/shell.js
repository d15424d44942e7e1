// The frame around every view: where one can go, who one is, whether the hub is being heard; theme, language and keys.

import { announce, avatar, h, icon, swap, throttled } from './dom.js';
import { lang, setLang, t } from './words.js';
import { key } from './api.js';
import { known, linkState, me, on } from './hub.js';
import { openMoments } from './frames.js';

export const VIEWS = ['overview', 'agents', 'conversations', 'channels', 'sessions', 'market', 'activity'];

/* ---- theme ---- */

const THEME = 'chorus.theme';

export function dress() {
  const kept = localStorage.getItem(THEME);
  if (kept === 'light' || kept === 'dark') document.documentElement.dataset.theme = kept;
}

export function turnTheme() {
  const now =
    document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  const next = now === 'dark' ? 'light' : 'dark';
  localStorage.setItem(THEME, next);
  document.documentElement.dataset.theme = next;
}

export function turnLanguage() {
  setLang(lang === 'zh' ? 'en' : 'zh');
  window.dispatchEvent(new Event('relabel'));
}

export function tools() {
  return [
    h(
      'button.tool',
      { type: 'button', title: t('tool.theme'), 'aria-label': t('tool.theme'), onclick: turnTheme },
      icon('sun'),
    ),
    h(
      'button.tool',
      {
        type: 'button',
        title: t('tool.language'),
        'aria-label': t('tool.language'),
        lang: lang === 'zh' ? 'en' : 'zh',
        onclick: turnLanguage,
        'data-do': 'language',
      },
      lang === 'zh' ? 'EN' : '中',
    ),
  ];
}

/* ---- the frame ---- */

export const brand = (title) =>
  h(
    'a.brand',
    { href: '/' },
    h('img', { src: '/console/icon.svg', alt: '', width: 26, height: 26 }),
    h('span', {}, title ?? 'Chorus'),
  );

/** Builds the frame; returns where a view goes and how to mark the one that is open. */
export function frame(root) {
  const pill = h('span.pill', { role: 'status' });
  const links = new Map();
  const badge = h('span.badge', { hidden: true });
  for (const view of VIEWS) {
    const inside = [icon(view), h('span', {}, t(`view.${view}`)), view === 'sessions' && badge];
    links.set(view, h('a', { href: `#/${view}`, 'data-view': view }, inside));
  }
  const main = h('main', { id: 'main', tabindex: '-1' });
  const title = h('span.hub-name');
  const who = h('span.who', {}, avatar(me.id || 'operator'), h('bdi', {}, me.id || t('role.operator')));
  const leave = h(
    'button.tool',
    { type: 'button', title: t('tool.leave'), 'aria-label': t('tool.leave'), 'data-do': 'leave', onclick: signOut },
    icon('out'),
  );
  const keys = h(
    'button.tool.wide-only',
    { type: 'button', title: t('tool.keys'), 'aria-label': t('tool.keys'), onclick: help },
    icon('keys'),
  );
  swap(
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
      h('header.top', {}, brand(), title, h('span.spring'), pill, who, keys, tools(), leave),
      h(
        'nav.side',
        { 'aria-label': t('nav') },
        [...links.values()],
        h('span.spring'),
        h('a', { href: '/docs', class: 'wide-only' }, icon('docs'), h('span', {}, t('view.docs'))),
      ),
      main,
    ),
  );

  let told;
  const state = () => {
    const word = linkState();
    const text = t(`link.${word}`);
    pill.className = `pill is-${word}`;
    pill.dataset.link = word;
    pill.textContent = text;
    pill.title = t(`link.${word}.more`);
    if (told !== undefined && told !== word) announce(text);
    told = word;
  };
  const decisions = () => {
    const open = openMoments(known.frames).length;
    badge.hidden = open === 0;
    badge.textContent = open;
    badge.setAttribute('aria-label', t('decision.open', { n: open }));
    document.title = open ? `(${open}) Chorus` : 'Chorus';
  };
  const named = () => {
    title.textContent =
      known.discovery?.server_name && known.discovery.server_name !== 'Chorus' ? known.discovery.server_name : '';
  };
  const stops = [on(['links'], throttled(state)), on(['frames'], throttled(decisions)), on(['discovery'], named)];
  state();
  decisions();
  named();
  return {
    main,
    mark(view) {
      for (const [name, link] of links)
        name === view ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current');
    },
    stop: () => stops.forEach((stop) => stop()),
  };
}

export function signOut() {
  key.drop();
  sessionStorage.removeItem('chorus.session');
  location.assign('/console');
}

/* ---- keys ---- */

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

function help() {
  const close = h('button', { type: 'button' }, t('close'));
  const rows = SHORTCUTS.map(([keys, word]) => [
    h(
      'dt',
      {},
      keys.split(' ').map((one) => (one === '–' ? ' – ' : h('kbd', {}, one))),
    ),
    h('dd', {}, t(word)),
  ]);
  const dialog = h(
    'dialog.help',
    { 'aria-label': t('tool.keys') },
    h('h2', {}, t('tool.keys')),
    h('dl', {}, rows),
    close,
  );
  close.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const typing = (node) => /^(INPUT|TEXTAREA|SELECT)$/.test(node?.tagName ?? '') || node?.isContentEditable;

export function listen() {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape' && typing(event.target)) return event.target.blur();
    if (typing(event.target) || document.querySelector('dialog[open]')) return undefined;
    const view = VIEWS[Number(event.key) - 1];
    if (view) location.hash = `#/${view}`;
    else if (event.key === '/') {
      const search = document.querySelector('main input[type=search]');
      if (!search) return undefined;
      event.preventDefault();
      search.focus();
    } else if (event.key === 't') turnTheme();
    else if (event.key === 'l') turnLanguage();
    else if (event.key === '?') help();
    return undefined;
  });
}
