// A long list of rows of one height, of which only those in sight exist; moved through by keys as well.

import { h } from './dom.js';

const SPARE = 6;

/**
 * `fill(row, item)` writes an item into a recycled row, `open(item)` is called for the chosen one, `end()` when the last row
 * comes into sight.
 */
export function rows({ height, fill, open, end, label, empty }) {
  const space = h('div.rows-space');
  const nothing = h('p.empty', {}, empty);
  const root = h('div.rows', { tabindex: '0', role: 'listbox', 'aria-label': label }, space, nothing);
  const id = `rows-${Math.random().toString(36).slice(2, 8)}`;
  let items = [];
  let active = -1;
  let pool = [];

  function paint() {
    const room = Math.ceil(root.clientHeight / height) + SPARE * 2;
    while (pool.length < room) {
      const row = h('div.row', { role: 'option', id: `${id}-${pool.length}` });
      row.style.height = `${height}px`;
      row.addEventListener('click', () => choose(row.at, true));
      pool.push(row);
      space.append(row);
    }
    // A list that became shorter is scrolled back only with the next picture.
    const top = Math.min(root.scrollTop, Math.max(0, items.length * height - root.clientHeight));
    const first = Math.max(0, Math.floor(top / height) - SPARE);
    for (let at = first; at < first + pool.length; at += 1) {
      const row = pool[at % pool.length];
      const item = items[at];
      row.hidden = item === undefined;
      if (item === undefined) {
        row.at = -1;
        row.item = undefined;
        continue;
      }
      if (row.item !== item) {
        row.item = item;
        fill(row, item);
      }
      if (row.at !== at) {
        row.at = at;
        row.style.transform = `translateY(${at * height}px)`;
        row.setAttribute('aria-posinset', at + 1);
      }
      row.setAttribute('aria-setsize', items.length);
      row.setAttribute('aria-selected', at === active);
      if (at === active) root.setAttribute('aria-activedescendant', row.id);
    }
    if (end && items.length && first + pool.length >= items.length) end();
  }

  function choose(at, opens) {
    if (at < 0 || at >= items.length) return;
    active = at;
    const top = at * height;
    if (top < root.scrollTop) root.scrollTop = top;
    else if (top + height > root.scrollTop + root.clientHeight) root.scrollTop = top + height - root.clientHeight;
    paint();
    if (opens) open?.(items[at]);
  }

  root.addEventListener('scroll', paint, { passive: true });
  root.addEventListener('keydown', (event) => {
    const page = Math.max(1, Math.floor(root.clientHeight / height) - 1);
    const moves = {
      ArrowDown: 1,
      j: 1,
      ArrowUp: -1,
      k: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (event.key in moves && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      const to = active + moves[event.key];
      choose(Math.min(items.length - 1, Math.max(0, to)), false);
    } else if (event.key === 'Enter' && active >= 0) {
      event.preventDefault();
      choose(active, true);
    }
  });
  new ResizeObserver(paint).observe(root);

  return {
    node: root,
    /** Newest first; whoever has scrolled down stays at what they read. */
    set(next, key) {
      const held = items[Math.floor(root.scrollTop / height)];
      const chosen = items[active];
      items = next;
      nothing.hidden = items.length > 0;
      space.style.height = `${items.length * height}px`;
      if (chosen) active = items.findIndex((item) => key(item) === key(chosen));
      if (held && root.scrollTop > height / 2) {
        const now = items.findIndex((item) => key(item) === key(held));
        if (now >= 0) root.scrollTop = now * height + (root.scrollTop % height);
      }
      paint();
    },
  };
}
