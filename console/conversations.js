// The conversations view: an agent's conversations as the hub lists them, searched by the hub, and the one that is open; for an
// operator the pairs of agents that exchanged messages.

import { h, isWideScreen, replaceContent, throttleToRepaint } from './dom.js';
import { t } from './words.js';
import { principal, subscribe } from './hub.js';
import { conversationState, listConversations, loadOlderConversations } from './conversation_state.js';
import { openConversation } from './conversation_log.js';
import { renderConversationRow, renderPairRow } from './conversation_row.js';
import { createSearch } from './message_search.js';
import { createNewMessageButton } from './new_message.js';
import { renderEmptyList, renderIntro } from './next_step.js';

const MAX_ROWS = 300;
const SEND_COMMAND = 'chorus send bob "hello"';

export function openView(root, peer, conversationId, messageId) {
  return principal.role === 'operator' ? openPairs(root) : openConversations(root, peer, conversationId, messageId);
}

const createSearchField = () =>
  h('input', { type: 'search', placeholder: t('thread.search'), 'aria-label': t('thread.search') });

const renderOlderButton = () =>
  conversationState.next !== undefined &&
  h(
    'li',
    {},
    h(
      'button',
      { type: 'button', 'data-key': 'older', onclick: () => loadOlderConversations().catch(() => {}) },
      t('thread.older'),
    ),
  );

/* ---- an agent's conversations ---- */

function openConversations(root, peer, conversationId = '', messageId = undefined) {
  const searchField = createSearchField();
  const list = h('ul.picks');
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
  let unasked;
  let hasIntro = false;
  /** The newest one, beside the list. The view may be closed when the list comes. */
  const openNewest = () => {
    if (peer !== undefined || !detail.isConnected || !isWideScreen()) return;
    [unasked] = listConversations();
    if (unasked) cleanups.push(openConversation(detail, unasked.peer, unasked.conversationId, { isUnasked: true }));
    else if (conversationState.isLoaded && !hasIntro) {
      hasIntro = true;
      replaceContent(detail, renderIntro('conversations', SEND_COMMAND));
    }
  };
  const renderList = () => {
    if (!unasked) openNewest();
    const query = searchField.value.trim().toLowerCase();
    const matches = listConversations().filter(
      (row) => !query || row.peer.toLowerCase().includes(query) || row.conversationId.toLowerCase().includes(query),
    );
    replaceContent(
      list,
      matches
        .slice(0, MAX_ROWS)
        .map((row) =>
          renderConversationRow(
            row,
            row.peer === peer && row.conversationId === conversationId,
            row.peer === unasked?.peer && row.conversationId === unasked.conversationId,
          ),
        ),
      query && [h('li.section', {}, t('search.messages')), search.renderResults()],
      !matches.length &&
        !query &&
        (conversationState.isLoaded
          ? renderEmptyList('conversations', SEND_COMMAND)
          : h('li', {}, h('p.empty', {}, t('wait')))),
      !query && renderOlderButton(),
    );
  };
  const search = createSearch(searchField, renderList);
  const cleanups = [subscribe(['conversations', 'agents'], throttleToRepaint(renderList)), search.stop];
  if (peer === undefined) replaceContent(detail, h('p.empty', {}, t('wait')));
  else cleanups.push(openConversation(detail, peer, conversationId, { targetId: messageId }));
  renderList();
  return () => cleanups.forEach((cleanup) => cleanup());
}

/* ---- an operator's list of sender and receiver pairs, without texts ---- */

function openPairs(root) {
  const list = h('ul.picks.wide');
  const searchField = createSearchField();
  root.append(
    h('h1', {}, t('view.conversations')),
    h('p.note', {}, t('thread.operator')),
    h('div.bar', {}, searchField),
    list,
  );
  const render = () => {
    const query = searchField.value.trim().toLowerCase();
    const matches = listConversations().filter(
      (pair) => !query || pair.agents.some((agent) => agent.toLowerCase().includes(query)),
    );
    replaceContent(
      list,
      matches.slice(0, MAX_ROWS).map(renderPairRow),
      !matches.length && h('li', {}, h('p.empty', {}, conversationState.isLoaded ? t('thread.empty') : t('wait'))),
      renderOlderButton(),
    );
  };
  searchField.addEventListener('input', render);
  render();
  return subscribe(['conversations'], throttleToRepaint(render));
}
