// The conversations view: an agent's messages by peer and conversation id, with culture and delivery state; for an operator the
// pairs of agents that exchanged messages.

import { h, linkUrls, renderAvatar, renderIcon, renderName, replaceContent, throttleToRepaint } from './dom.js';
import { formatCount, formatCulture, formatDate, formatKind, formatTime, formatTimestamp, t } from './words.js';
import { encodeUriPart, postApi } from './api.js';
import {
  getAgentCulture,
  getDeliveryState,
  hubState,
  loadFullHistory,
  loadHistory,
  principal,
  refreshDeliveryStates,
  subscribe,
} from './hub.js';
import { renderCultureChip } from './agents.js';
import { createComposer } from './composer.js';
import { createNewMessageButton } from './new_message.js';
import { renderNextStep } from './next_step.js';

const PAGE_SIZE = 150;

export function openView(root, peer, conversationId) {
  return principal.role === 'operator' ? openPairs(root) : openConversations(root, peer, conversationId);
}

/* ---- an agent's conversations ---- */

const getPeer = (message) => (message.sender_id === principal.id ? message.receiver_id : message.sender_id);

function groupMessages() {
  const conversations = new Map();
  for (const message of [...hubState.messages.values()].sort((a, b) => a.id - b.id)) {
    const peer = getPeer(message);
    const conversationId = message.envelope.conversation_id ?? '';
    const key = JSON.stringify([peer, conversationId]);
    if (!conversations.has(key)) conversations.set(key, { peer, conversationId, messages: [] });
    conversations.get(key).messages.push(message);
  }
  return [...conversations.values()].sort((a, b) => b.messages.at(-1).id - a.messages.at(-1).id);
}

function openConversations(root, peer, conversationId = '') {
  const searchField = h('input', { type: 'search', placeholder: t('thread.search'), 'aria-label': t('thread.search') });
  const list = h('ul.picks');
  const logNode = h('div.thread', { role: 'log', 'aria-label': t('thread.one'), tabindex: '0' });
  const detail = h('section.detail.column', {});
  root.append(
    h(
      'div.split',
      { class: peer ? 'has-detail' : '' },
      h(
        'section.master',
        {},
        h('h1', {}, t('view.conversations')),
        h('div.bar', {}, searchField, createNewMessageButton()),
        list,
      ),
      detail,
    ),
  );
  let shownCount = PAGE_SIZE;
  let newestShown = -1;

  const renderList = () => {
    const query = searchField.value.trim().toLowerCase();
    const matches = groupMessages().filter(
      (conversation) =>
        !query ||
        conversation.peer.toLowerCase().includes(query) ||
        conversation.conversationId.toLowerCase().includes(query) ||
        conversation.messages.some((message) => message.envelope.original_text.toLowerCase().includes(query)),
    );
    replaceContent(
      list,
      matches.slice(0, 200).map((conversation) => {
        const latest = conversation.messages.at(-1);
        const isSelected = conversation.peer === peer && conversation.conversationId === conversationId;
        return h(
          'li',
          {},
          h(
            'a',
            {
              href: `#/conversations/${encodeUriPart(conversation.peer)}/${encodeUriPart(conversation.conversationId)}`,
              'aria-current': isSelected ? 'true' : undefined,
              'data-key': `${conversation.peer} ${conversation.conversationId}`,
            },
            renderAvatar(conversation.peer, hubState.agents.get(conversation.peer)?.online),
            h(
              'span.two',
              {},
              h(
                'span.row-line',
                {},
                renderName(conversation.peer),
                conversation.conversationId && h('span.quiet.small', {}, h('bdi', {}, conversation.conversationId)),
              ),
              h('bdi.quiet.small.cut', {}, latest.envelope.original_text),
            ),
            h(
              'span.two.end',
              {},
              h('time.quiet.small', {}, formatTimestamp(latest.timestamp)),
              h('span.quiet.small', {}, formatCount(conversation.messages.length)),
            ),
          ),
        );
      }),
      !matches.length &&
        h(
          'li',
          {},
          hubState.isHistoryLoaded && !query
            ? renderNextStep('conversations', 'chorus send bob "hello"')
            : h('p.empty', {}, hubState.isHistoryLoaded ? t('thread.empty') : t('wait')),
        ),
      hubState.isHistoryLoaded &&
        !hubState.isHistoryComplete &&
        h(
          'li',
          {},
          h(
            'button',
            { type: 'button', 'data-key': 'whole', onclick: () => loadFullHistory().catch(() => {}) },
            t('thread.older'),
          ),
        ),
    );
  };

  const render = () => {
    renderList();
    if (peer === undefined) return;
    const conversation = groupMessages().find(
      (found) => found.peer === peer && found.conversationId === conversationId,
    ) ?? {
      messages: [],
    };
    const shown = conversation.messages.slice(-shownCount);
    hubState.visibleMessages = shown;
    const isAtBottom = logNode.scrollHeight - logNode.scrollTop - logNode.clientHeight < 80;
    let previousDate = '';
    replaceContent(
      logNode,
      conversation.messages.length > shown.length &&
        h(
          'button',
          {
            type: 'button',
            'data-key': 'more',
            onclick: () => {
              shownCount += PAGE_SIZE;
              render();
            },
          },
          t('earlier', { n: formatCount(conversation.messages.length - shown.length) }),
        ),
      shown.map((message) => {
        const date = formatDate(message.timestamp);
        const dateMark = date !== previousDate && h('p.daymark', {}, date);
        previousDate = date;
        return [dateMark, renderMessage(message)];
      }),
    );
    const newestId = shown.at(-1)?.id ?? -1;
    if (isAtBottom || newestShown === -1) logNode.scrollTop = logNode.scrollHeight;
    newestShown = newestId;
  };

  if (peer === undefined) replaceContent(detail, h('p.empty', {}, t('thread.choose')));
  else replaceContent(detail, renderHeader(peer, conversationId), logNode, createMessageForm(peer, conversationId));
  searchField.addEventListener('input', renderList);
  render();
  refreshDeliveryStates().catch(() => {});
  return subscribe(['messages', 'agents'], throttleToRepaint(render));
}

function renderHeader(peer, conversationId) {
  return h(
    'header.thread-head',
    {},
    h('a.back', { href: '#/conversations' }, renderIcon('back'), t('view.conversations')),
    renderAvatar(peer),
    h('a', { href: `#/agents/${encodeUriPart(peer)}` }, renderName(peer, 'b')),
    conversationId && h('bdi.quiet', {}, conversationId),
  );
}

function renderMessage(message) {
  const isOwn = message.sender_id === principal.id;
  const {
    original_text: text,
    sender_culture: culture,
    cultural_context: context,
    turn_number: turn,
  } = message.envelope;
  const state = getDeliveryState(message);
  return h(
    'article.bubble',
    { class: isOwn ? 'mine' : '', 'data-trace': message.trace_id },
    h('p.said', { lang: culture, dir: 'auto' }, linkUrls(text)),
    context && h('p.context', { dir: 'auto' }, h('b', {}, t('context')), ' ', linkUrls(context)),
    h(
      'footer',
      {},
      renderCultureChip(culture),
      turn && h('span', {}, t('turn', { n: turn })),
      h('time', {}, formatTime(message.timestamp)),
      isOwn
        ? h('span', { class: `stand is-${state}`, 'data-state': state }, t(`state.${state}`))
        : h('span', {}, t(`via.${message.delivered_via}`)),
    ),
  );
}

function createMessageForm(peer, conversationId) {
  const buildBody = (text) => {
    const turns = [...hubState.messages.values()]
      .filter((message) => getPeer(message) === peer && (message.envelope.conversation_id ?? '') === conversationId)
      .map((message) => message.envelope.turn_number ?? 0);
    const envelope = {
      chorus_version: '0.4',
      sender_id: principal.id,
      original_text: text,
      sender_culture: principal.culture,
    };
    if (conversationId)
      Object.assign(envelope, { conversation_id: conversationId, turn_number: Math.max(0, ...turns) + 1 });
    return { receiver_id: peer, envelope };
  };
  const sendBody = async (body, idempotencyKey) => {
    const sent = await postApi('/messages', body, { 'idempotency-key': idempotencyKey });
    hubState.deliveryStates.set(
      sent.trace_id,
      { delivered_sse: 'delivered', delivered: 'delivered', queued: 'queued', failed: 'failed' }[sent.delivery],
    );
    await loadHistory();
  };
  const note = [
    t('write.as', { id: principal.id, culture: formatCulture(principal.culture) }),
    getAgentCulture(peer) && ` · ${t('write.culture', { culture: formatCulture(getAgentCulture(peer)) })}`,
  ];
  return createComposer({ label: t('write.to', { name: peer }), note, maxLength: 10_000, buildBody, sendBody });
}

/* ---- an operator's list of sender and receiver pairs, without texts ---- */

function openPairs(root) {
  const list = h('ul.picks.wide');
  const searchField = h('input', { type: 'search', placeholder: t('thread.search'), 'aria-label': t('thread.search') });
  root.append(
    h('h1', {}, t('view.conversations')),
    h('p.note', {}, t('thread.operator')),
    h('div.bar', {}, searchField),
    list,
  );
  const render = () => {
    const pairs = new Map();
    for (const entry of hubState.log) {
      const { sender_id: from, receiver_id: to } = entry.data ?? {};
      if (!from || !to || !entry.type.startsWith('message_')) continue;
      const key = JSON.stringify([from, to].sort());
      const pair = pairs.get(key) ?? { ends: [from, to].sort(), sent: 0, bad: 0 };
      if (entry.type === 'message_submitted') pair.sent += 1;
      if (entry.type === 'message_failed') pair.bad += 1;
      pair.last = entry;
      pairs.set(key, pair);
    }
    const query = searchField.value.trim().toLowerCase();
    const matches = [...pairs.values()]
      .filter((pair) => !query || pair.ends.some((end) => end.toLowerCase().includes(query)))
      .sort((a, b) => b.last.id - a.last.id);
    replaceContent(
      list,
      matches
        .slice(0, 300)
        .map((pair) =>
          h(
            'li',
            {},
            h(
              'div.pick',
              {},
              renderAvatar(pair.ends[0]),
              renderAvatar(pair.ends[1]),
              h(
                'span.two',
                {},
                h('span.row-line', {}, renderName(pair.ends[0]), h('span.quiet', {}, '↔'), renderName(pair.ends[1])),
                h('span.quiet.small', {}, formatKind(pair.last.type), ' · ', formatTimestamp(pair.last.timestamp)),
              ),
              h(
                'span.two.end',
                {},
                h('b', {}, formatCount(pair.sent)),
                pair.bad ? h('span.state.bad', {}, t('thread.failed', { n: formatCount(pair.bad) })) : undefined,
              ),
            ),
          ),
        ),
      !matches.length && h('li', {}, h('p.empty', {}, t('thread.empty'))),
    );
  };
  searchField.addEventListener('input', render);
  render();
  return subscribe(['log'], throttleToRepaint(render));
}
