// One line of a list of conversations: of an agent with the newest text, or of a pair of agents for an operator.

import { h, renderAvatar, renderName } from './dom.js';
import { formatCount, formatTimestamp, t } from './words.js';
import { hubState, principal } from './hub.js';
import { getConversationHash } from './conversation_state.js';
import { stripMarkdown } from './markdown.js';

/** `isOpen`: the page shows it beside the list without having been asked for it. */
export function renderConversationRow(row, isCurrent, isOpen) {
  return h(
    'li',
    {},
    h(
      'a',
      {
        href: getConversationHash(row.peer, row.conversationId),
        'aria-current': isCurrent ? 'true' : undefined,
        class: `${row.unread ? 'is-unread' : ''} ${isOpen ? 'is-open' : ''}`,
        'data-key': `${row.peer} ${row.conversationId}`,
      },
      renderAvatar(row.peer, hubState.agents.get(row.peer)?.online),
      h(
        'span.two',
        {},
        h(
          'span.row-line',
          {},
          renderName(row.peer),
          row.conversationId && h('span.quiet.small', {}, h('bdi', {}, row.conversationId)),
        ),
        h(
          'span.quiet.small.cut',
          {},
          row.lastSender === principal.id && `${t('thread.you')} `,
          h('bdi', {}, stripMarkdown(row.lastText)),
        ),
      ),
      h(
        'span.two.end',
        {},
        h('time.quiet.small', {}, formatTimestamp(row.lastAt)),
        row.unread > 0 &&
          h('span.badge', { 'aria-label': t('unread.count', { n: row.unread }) }, formatCount(row.unread)),
        row.failed > 0 && h('span.state.bad', {}, t('thread.failed', { n: formatCount(row.failed) })),
      ),
    ),
  );
}

export function renderPairRow(pair) {
  return h(
    'li',
    {},
    h(
      'div.pick',
      {},
      renderAvatar(pair.agents[0]),
      renderAvatar(pair.agents[1]),
      h(
        'span.two',
        {},
        h('span.row-line', {}, renderName(pair.agents[0]), h('span.quiet', {}, '↔'), renderName(pair.agents[1])),
        h('span.quiet.small', {}, t('thread.last', { name: pair.lastSender }), ' · ', formatTimestamp(pair.lastAt)),
      ),
      h(
        'span.two.end',
        {},
        h('b', {}, formatCount(pair.messages)),
        pair.failed > 0 && h('span.state.bad', {}, t('thread.failed', { n: formatCount(pair.failed) })),
      ),
    ),
  );
}
