// Elements from plain calls. Whatever an agent said goes in as text: there is no way from here to markup.

const SVG = 'http://www.w3.org/2000/svg';

/** `h('p.note', {title}, 'text', child)`; false, null and undefined children are left out. */
export function h(tag, props, ...children) {
  const [name, ...classes] = tag.split('.');
  const node = document.createElement(name || 'div');
  if (classes.length) node.className = classes.join(' ');
  return fill(node, props, children);
}

export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'class') node.setAttribute('class', `${node.getAttribute('class') ?? ''} ${value}`.trim());
    else if (name === 'hue') node.style.setProperty('--hue', value);
    else if (name === 'share') node.style.setProperty('--share', value);
    else if (name === 'value') node.value = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children.flat(9)) {
    if (child === undefined || child === null || child === false || child === '') continue;
    node.append(child.nodeType ? child : document.createTextNode(String(child)));
  }
}

/** Replaces what is in `root`, and keeps the focus where it was if the same thing (`data-key`) is there again. */
export function swap(root, ...children) {
  const held = root.contains(document.activeElement)
    ? document.activeElement.closest('[data-key]')?.dataset.key
    : undefined;
  const top = root.scrollTop;
  const fresh = document.createDocumentFragment();
  append(fresh, children);
  root.replaceChildren(fresh);
  root.scrollTop = top;
  if (held !== undefined) {
    for (const node of root.querySelectorAll('[data-key]')) {
      if (node.dataset.key === held) {
        node.focus({ preventScroll: true });
        break;
      }
    }
  }
}

/** Runs `work` once before the next picture, however often it is asked for. */
export function throttled(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}

const LINK = /https?:\/\/[^\s<>"'`]+/g;

/** Text with its http and https addresses as links; nothing else becomes one. */
export function linked(text) {
  const out = [];
  let from = 0;
  for (const found of String(text).matchAll(LINK)) {
    const address = found[0].replace(/[.,;:!?)\]}。，；：！？）】]+$/u, '');
    let url;
    try {
      url = new URL(address);
    } catch {
      continue;
    }
    if (url.protocol !== 'http:' && url.protocol !== 'https:') continue;
    out.push(text.slice(from, found.index));
    out.push(h('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer' }, address));
    from = found.index + address.length;
  }
  out.push(text.slice(from));
  return out;
}

/** A name that somebody chose: kept to itself, so that no character in it turns the text around it. */
export function name(text, kind = 'bdi') {
  return h(kind, { class: 'name' }, text ?? '');
}

export function hueOf(text) {
  let hash = 7;
  for (const c of String(text)) hash = (hash * 31 + c.codePointAt(0)) % 9973;
  return (hash * 137) % 360;
}

export function avatar(who, online) {
  const plain = String(who ?? '').replace(/^[~@]+/, '');
  const first = [...plain][0] ?? '?';
  return h(
    'span.avatar',
    { hue: hueOf(who), 'aria-hidden': 'true', class: online === undefined ? '' : online ? 'is-on' : 'is-off' },
    first.toUpperCase(),
  );
}

const SHAPES = {
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
};

export function icon(which) {
  return s('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, s('path', { d: SHAPES[which] }));
}

/** Puts text on the clipboard; pages without TLS, or without leave, have only the old way. */
export async function copy(text) {
  try {
    return await navigator.clipboard.writeText(text);
  } catch {
    const box = h('textarea', { class: 'unseen', readonly: true });
    box.value = text;
    document.body.append(box);
    box.select();
    document.execCommand('copy');
    return box.remove();
  }
}

/** Tells those who do not see the page. */
export function announce(text) {
  const said = document.getElementById('said');
  if (said) said.textContent = text;
}
