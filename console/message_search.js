// Search in the texts of an agent's messages, answered by the hub.

import { h, renderAvatar, renderName } from './dom.js';
import { formatTimestamp, t } from './words.js';
import { encodeUriPart, getPage } from './api.js';
import { getConversationHash, getPeer } from './conversation_state.js';
import { stripMarkdown } from './markdown.js';

const TYPING_PAUSE_MS = 250;
const PAGE_SIZE = 50;
/** Requests in a row for one page of results: the hub reads a bounded number of messages for each. */
const MAX_READS = 10;
/** As the hub limits it. */
const MAX_QUERY_LENGTH = 200;
/** Letters shown before the place that was found. */
const LEAD_LENGTH = 24;

/**
 * Follows a search field over the messages of `path`; `onChange` is called when there are other results to draw, and
 * `renderFound(message, query)` draws one.
 */
export function createSearch(field, onChange, { path = '/agent/messages', renderFound = renderResult } = {}) {
  field.maxLength = MAX_QUERY_LENGTH;
  let query = '';
  let found = [];
  let next;
  let isBusy = false;
  let error = '';
  let timer;

  const readMore = async () => {
    const asked = query;
    isBusy = true;
    onChange();
    try {
      let count = 0;
      do {
        const page = await getPage(
          `${path}?text=${encodeUriPart(asked)}&limit=${PAGE_SIZE}${next === undefined ? '' : `&before=${next}`}`,
        );
        if (asked !== query) return;
        found.push(...page.rows.reverse());
        next = page.next;
        count += 1;
        onChange();
      } while (next !== undefined && found.length < PAGE_SIZE && count < MAX_READS);
      error = '';
    } catch (failure) {
      error = failure.message;
    }
    isBusy = false;
    onChange();
  };
  field.addEventListener('input', () => {
    clearTimeout(timer);
    query = field.value.trim();
    found = [];
    next = undefined;
    error = '';
    isBusy = Boolean(query);
    onChange();
    if (query) timer = setTimeout(readMore, TYPING_PAUSE_MS);
  });

  return {
    renderResults: () => [
      found.map((message) => renderFound(message, query)),
      !found.length && h('li', {}, h('p.empty', { role: 'status' }, error || t(isBusy ? 'search.busy' : 'search.none'))),
      !isBusy &&
        next !== undefined &&
        h('li', {}, h('button', { type: 'button', 'data-key': 'further', onclick: readMore }, t('search.further'))),
    ],
    stop: () => clearTimeout(timer),
  };
}

function renderResult(message, query) {
  const peer = getPeer(message);
  const conversationId = message.envelope.conversation_id ?? '';
  return h(
    'li',
    {},
    h(
      'a',
      { href: getConversationHash(peer, conversationId, message.id), 'data-key': `found ${message.id}` },
      renderAvatar(message.sender_id),
      h(
        'span.two',
        {},
        h(
          'span.row-line',
          {},
          renderName(message.sender_id),
          conversationId && h('span.quiet.small', {}, h('bdi', {}, conversationId)),
        ),
        h('bdi.small.cut', {}, markFound(message.envelope.original_text, query)),
      ),
      h('time.quiet.small', {}, formatTimestamp(message.timestamp)),
    ),
  );
}

/** The text around the first place that contains the query. */
export function markFound(markdown, query) {
  const plain = stripMarkdown(markdown);
  const hasQuery = (one) => one.toLowerCase().includes(query.toLowerCase());
  // A query may be of the marks themselves.
  const text = hasQuery(plain) || !hasQuery(markdown) ? plain : markdown;
  const at = text.toLowerCase().indexOf(query.toLowerCase());
  if (at < 0) return text;
  const start = Math.max(0, at - LEAD_LENGTH);
  const end = at + query.length;
  return [start > 0 && '…', text.slice(start, at), h('mark', {}, text.slice(at, end)), text.slice(end, end + 200)];
}
