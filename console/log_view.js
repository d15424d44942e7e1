// A scrolling log of messages that grows at both ends. Rows are kept while they do not change, so that a selection, an open
// detail and the place of the reader survive an update.

import { h } from './dom.js';
import { t } from './words.js';

/** Distance from the end within which the log follows new rows. */
const FOLLOW_PX = 80;

/**
 * `emptyText()` says why there are no rows, `onEarlier()` loads older ones, `onLater()` and `onNewest()` newer ones,
 * `onAdded(node, item)` is called for every row that was drawn.
 */
export function createLogView({ label, emptyText, onEarlier, onLater, onNewest, onAdded }) {
  const emptyNode = h('p.empty');
  const earlierButton = h('button', { type: 'button', 'data-key': 'more', hidden: true }, t('earlier.more'));
  const laterButton = h('button', { type: 'button', 'data-key': 'later', hidden: true }, t('later.more'));
  const rowsNode = h('div.thread-rows');
  const scroller = h(
    'div.thread',
    { role: 'log', 'aria-label': label, tabindex: '0' },
    earlierButton,
    emptyNode,
    rowsNode,
    laterButton,
  );
  const jumpButton = h('button.jump', { type: 'button', hidden: true }, t('thread.jump'));
  const node = h('div.thread-box', {}, scroller, jumpButton);
  const drawn = new Map();
  let hasDrawn = false;
  /** Whether there are newer rows than those drawn. */
  let isPartial = false;

  const isAtEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < FOLLOW_PX;
  const scrollToEnd = () => {
    scroller.scrollTop = scroller.scrollHeight;
    jumpButton.hidden = true;
  };
  jumpButton.addEventListener('click', async () => {
    if (isPartial) await Promise.resolve(onNewest()).catch(() => {});
    // The rows are drawn before the next repaint.
    requestAnimationFrame(() => requestAnimationFrame(scrollToEnd));
  });
  scroller.addEventListener(
    'scroll',
    () => {
      if (isAtEnd() && !isPartial) jumpButton.hidden = true;
    },
    { passive: true },
  );
  const loadOnClick = (button, load) =>
    button.addEventListener('click', async () => {
      button.disabled = true;
      await Promise.resolve(load()).catch(() => {});
      button.disabled = false;
    });
  loadOnClick(earlierButton, () => onEarlier());
  loadOnClick(laterButton, () => onLater());

  const drawRow = (row) => {
    const known = drawn.get(row.key);
    if (known?.signature === row.signature) return known.node;
    const rowNode = h('div.thread-row', { 'data-row': row.key }, row.render());
    // An open detail stays open when its row is drawn anew.
    const isOpen = known?.node.querySelector('details')?.open;
    if (isOpen) rowNode.querySelector('details')?.setAttribute('open', '');
    drawn.set(row.key, { signature: row.signature, node: rowNode });
    return rowNode;
  };

  return {
    node,
    scroller,
    /**
     * Draws `rows` of `{key, signature, item, isOwn, render}`, oldest first. At the first time the log is scrolled to the row
     * `unreadKey`, or to its end. With `hasLater` the last row is not the newest, and the log stays where it is.
     */
    setRows(rows, { hasEarlier, hasLater = false, unreadKey }) {
      const staysHere = isPartial || hasLater;
      isPartial = hasLater;
      const wasAtEnd = isAtEnd();
      const previousKeys = [...drawn.keys()];
      const nodes = rows.map(drawRow);
      const newest = rows.at(-1);
      const hasNewAtEnd = hasDrawn && newest && !previousKeys.includes(newest.key);
      const fromEnd = scroller.scrollHeight - scroller.scrollTop;
      const isSame = nodes.length === rowsNode.childNodes.length && nodes.every((one, at) => rowsNode.childNodes[at] === one);
      let grewAtTop = false;
      if (!isSame) {
        const known = new Set(rowsNode.childNodes);
        grewAtTop = hasDrawn && rowsNode.firstChild && nodes[0] !== rowsNode.firstChild && !hasNewAtEnd;
        rowsNode.replaceChildren(...nodes);
        if (grewAtTop) scroller.scrollTop = scroller.scrollHeight - fromEnd;
        nodes.forEach((one, at) => {
          if (!known.has(one)) onAdded?.(one, rows[at].item);
        });
      }
      emptyNode.hidden = rows.length > 0;
      emptyNode.textContent = rows.length ? '' : emptyText();
      earlierButton.hidden = !hasEarlier;
      laterButton.hidden = !hasLater;
      if (staysHere) {
        hasDrawn = true;
        jumpButton.textContent = t(hasLater ? 'thread.newest' : 'thread.jump');
        jumpButton.hidden = !hasLater;
      } else if (!hasDrawn && rows.length) {
        hasDrawn = true;
        const unread = unreadKey && rowsNode.querySelector(`[data-row="${CSS.escape(unreadKey)}"]`);
        if (unread) unread.scrollIntoView({ block: 'start' });
        else scrollToEnd();
        // A layout that is not final yet, such as a font that loads, must not leave the end out of sight.
        if (!unread) requestAnimationFrame(scrollToEnd);
      } else if (hasNewAtEnd && (wasAtEnd || newest.isOwn)) scrollToEnd();
      else if (hasNewAtEnd) jumpButton.hidden = false;
      else if (wasAtEnd && !grewAtTop) scrollToEnd();
    },
    /** Scrolls to a row and marks it. */
    showRow(key) {
      const found = rowsNode.querySelector(`[data-row="${CSS.escape(String(key))}"]`);
      if (!found) return;
      found.classList.add('is-found');
      found.scrollIntoView({ block: 'center' });
    },
  };
}
