// Builds DOM elements. Text from agents is added as text nodes only, so it can never become markup (XSS).

const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';

/**
 * Creates an HTML element, named as in hyperscript: `h('p.note', {title}, 'text', child)`. False, null and undefined children
 * are left out.
 */
export function h(tag, props, ...children) {
  const [name, ...classes] = tag.split('.');
  const node = document.createElement(name || 'div');
  if (classes.length) node.className = classes.join(' ');
  return fillElement(node, props, children);
}

export function createSvg(tag, props, ...children) {
  return fillElement(document.createElementNS(SVG_NAMESPACE, tag), props, children);
}

function fillElement(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'class') node.setAttribute('class', `${node.getAttribute('class') ?? ''} ${value}`.trim());
    else if (name === 'hue') node.style.setProperty('--hue', value);
    else if (name === 'share') node.style.setProperty('--share', value);
    else if (name === 'value') node.value = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  appendChildren(node, children);
  return node;
}

function appendChildren(node, children) {
  for (const child of children.flat(9)) {
    if (child === undefined || child === null || child === false || child === '') continue;
    node.append(child.nodeType ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replaces the children of `root`. Keeps its scroll position, and the focus if an element with the same `data-key` is among the
 * new ones.
 */
export function replaceContent(root, ...children) {
  const focusedKey = root.contains(document.activeElement)
    ? document.activeElement.closest('[data-key]')?.dataset.key
    : undefined;
  const scrolledTo = root.scrollTop;
  const fragment = document.createDocumentFragment();
  appendChildren(fragment, children);
  root.replaceChildren(fragment);
  root.scrollTop = scrolledTo;
  if (focusedKey !== undefined) {
    for (const node of root.querySelectorAll('[data-key]')) {
      if (node.dataset.key === focusedKey) {
        node.focus({ preventScroll: true });
        break;
      }
    }
  }
}

/** Returns a function that runs `callback` before the next repaint, at most once per repaint. */
export function throttleToRepaint(callback) {
  let isScheduled = false;
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      callback();
    });
  };
}

const URL_PATTERN = /https?:\/\/[^\s<>"'`]+/g;

/** Splits text into text and links. Only http and https URLs become links, so that no script scheme can be clicked. */
export function linkUrls(text) {
  const nodes = [];
  let textStart = 0;
  for (const match of String(text).matchAll(URL_PATTERN)) {
    const linkText = match[0].replace(/[.,;:!?)\]}。，；：！？）】]+$/u, '');
    let url;
    try {
      url = new URL(linkText);
    } catch {
      continue;
    }
    if (url.protocol !== 'http:' && url.protocol !== 'https:') continue;
    nodes.push(text.slice(textStart, match.index));
    nodes.push(h('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer' }, linkText));
    textStart = match.index + linkText.length;
  }
  nodes.push(text.slice(textStart));
  return nodes;
}

/** A name chosen by an agent or owner. It is isolated (`bdi`), so that no bidi character in it reorders the text around it. */
export function renderName(text, tag = 'bdi') {
  return h(tag, { class: 'name' }, text ?? '');
}

/** By the local name, so that `alice@chorus`, `~alice` and the member `alice` have one colour in every view. */
export function computeHue(text) {
  let hash = 7;
  for (const character of String(text).replace(/^[~@]+/, '').split('@')[0]) hash = (hash * 31 + character.codePointAt(0)) % 9973;
  return (hash * 137) % 360;
}

export function renderAvatar(id, online) {
  const bareName = String(id ?? '').replace(/^[~@]+/, '');
  const initial = [...bareName][0] ?? '?';
  return h(
    'span.avatar',
    { hue: computeHue(id), 'aria-hidden': 'true', class: online === undefined ? '' : online ? 'is-on' : 'is-off' },
    initial.toUpperCase(),
  );
}

const ICON_PATHS = {
  overview: 'M3 12h4l2.5-7 5 14L17 12h4',
  agents:
    'M8 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM1.8 20a6.2 6.2 0 0 1 12.4 0M16 4.3a3.5 3.5 0 0 1 0 6.4M18 14.4a6.2 6.2 0 0 1 4.2 5.6',
  conversations: 'M4 5h16v11H10l-5 4v-4H4z',
  channels: 'M9 4 7 20M17 4l-2 16M4 9h17M3 15h17',
  sessions: 'M3 5h18v12H3zM8 21h8M7 9l3 2-3 2M12 13h4',
  market: 'M4 9h16l-1.5 11h-13zM8 9a4 4 0 0 1 8 0',
  activity: 'M4 6h16M4 12h16M4 18h10',
  docs: 'M5 4h9l5 5v11H5zM14 4v5h5M9 13h6M9 16h6',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6 19 19M19 5l-1.4 1.4M6.4 17.6 5 19',
  out: 'M10 4H5v16h5M14 8l4 4-4 4M8 12h10',
  keys: 'M3 7h18v10H3zM7 11h.01M11 11h.01M15 11h.01M8 14h8',
  back: 'M15 5l-7 7 7 7',
  bell: 'M6 17V11a6 6 0 0 1 12 0v6l2 2H4zM10 21h4',
};

export function renderIcon(iconName) {
  return createSvg(
    'svg',
    { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' },
    createSvg('path', { d: ICON_PATHS[iconName] }),
  );
}

/** Whether a list and its detail are side by side; below this width, as in style.css, each has the page to itself. */
export const isWideScreen = () => matchMedia('(min-width: 761px)').matches;

/** Opens an address of the page, also when it is the present one: what a view shows unasked may be gone. */
export function openHash(hash) {
  if (location.hash === hash) window.dispatchEvent(new HashChangeEvent('hashchange'));
  else location.hash = hash;
}

/** Copies text to the clipboard. Without TLS or permission the clipboard API fails, and `execCommand` is used. */
export async function copyText(text) {
  try {
    return await navigator.clipboard.writeText(text);
  } catch {
    const field = h('textarea', { class: 'unseen', readonly: true });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    return field.remove();
  }
}

/** Announces text to screen readers through the live region of index.html. */
export function announceText(text) {
  const liveRegion = document.getElementById('said');
  if (liveRegion) liveRegion.textContent = text;
}
