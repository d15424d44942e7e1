// A virtual list: rows of equal height of which only the visible ones exist in the DOM, with keyboard navigation.

import { h } from './dom.js';

const SPARE_ROWS = 6;

/**
 * `fillRow(row, item)` writes an item into a recycled row, `onOpen(item)` is called for a clicked or entered row, `onEnd()` when
 * the last row becomes visible.
 */
export function createVirtualList({ height, fillRow, onOpen, onEnd, label, emptyText }) {
  const spacer = h('div.rows-space');
  const emptyNote = h('p.empty', {}, emptyText);
  const root = h('div.rows', { tabindex: '0', role: 'group', 'aria-label': label }, spacer, emptyNote);
  const idPrefix = `rows-${Math.random().toString(36).slice(2, 8)}`;
  let items = [];
  let activeIndex = -1;
  let rowPool = [];

  function renderRows() {
    const neededRows = Math.ceil(root.clientHeight / height) + SPARE_ROWS * 2;
    while (rowPool.length < neededRows) {
      const row = h('div.row', { role: 'option', id: `${idPrefix}-${rowPool.length}` });
      row.style.height = `${height}px`;
      row.addEventListener('click', () => selectRow(row.index, true));
      rowPool.push(row);
      spacer.append(row);
    }
    // When a list becomes shorter, the browser corrects scrollTop only at the next layout.
    const top = Math.min(root.scrollTop, Math.max(0, items.length * height - root.clientHeight));
    const firstIndex = Math.max(0, Math.floor(top / height) - SPARE_ROWS);
    for (let index = firstIndex; index < firstIndex + rowPool.length; index += 1) {
      const row = rowPool[index % rowPool.length];
      const item = items[index];
      row.hidden = item === undefined;
      if (item === undefined) {
        row.index = -1;
        row.item = undefined;
        continue;
      }
      if (row.item !== item) {
        row.item = item;
        fillRow(row, item);
      }
      if (row.index !== index) {
        row.index = index;
        row.style.transform = `translateY(${index * height}px)`;
        row.setAttribute('aria-posinset', index + 1);
      }
      row.setAttribute('aria-setsize', items.length);
      row.setAttribute('aria-selected', index === activeIndex);
      if (index === activeIndex) root.setAttribute('aria-activedescendant', row.id);
    }
    if (onEnd && items.length && firstIndex + rowPool.length >= items.length) onEnd();
  }

  function selectRow(index, shouldOpen) {
    if (index < 0 || index >= items.length) return;
    activeIndex = index;
    const top = index * height;
    if (top < root.scrollTop) root.scrollTop = top;
    else if (top + height > root.scrollTop + root.clientHeight) root.scrollTop = top + height - root.clientHeight;
    renderRows();
    if (shouldOpen) onOpen?.(items[index]);
  }

  root.addEventListener('scroll', renderRows, { passive: true });
  root.addEventListener('keydown', (event) => {
    const rowsPerPage = Math.max(1, Math.floor(root.clientHeight / height) - 1);
    const moves = {
      ArrowDown: 1,
      j: 1,
      ArrowUp: -1,
      k: -1,
      PageDown: rowsPerPage,
      PageUp: -rowsPerPage,
      Home: -Infinity,
      End: Infinity,
    };
    if (event.key in moves && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      const target = activeIndex + moves[event.key];
      selectRow(Math.min(items.length - 1, Math.max(0, target)), false);
    } else if (event.key === 'Enter' && activeIndex >= 0) {
      event.preventDefault();
      selectRow(activeIndex, true);
    }
  });
  new ResizeObserver(renderRows).observe(root);

  return {
    node: root,
    /**
     * Replaces the items. If the list is scrolled down, the first visible item stays in place when new ones are added above it.
     */
    setItems(newItems, getKey) {
      const topItem = items[Math.floor(root.scrollTop / height)];
      const activeItem = items[activeIndex];
      items = newItems;
      emptyNote.hidden = items.length > 0;
      // A listbox without options is an error to screen readers.
      root.setAttribute('role', items.length ? 'listbox' : 'group');
      if (!items.length) root.removeAttribute('aria-activedescendant');
      spacer.style.height = `${items.length * height}px`;
      if (activeItem) activeIndex = items.findIndex((item) => getKey(item) === getKey(activeItem));
      if (topItem && root.scrollTop > height / 2) {
        const newIndex = items.findIndex((item) => getKey(item) === getKey(topItem));
        if (newIndex >= 0) root.scrollTop = newIndex * height + (root.scrollTop % height);
      }
      renderRows();
    },
  };
}
