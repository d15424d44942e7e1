// What waits for the person, in one place: unread messages, decisions, channels; with the title of the page and the notifications.

import { hubState, principal, subscribe } from './hub.js';
import { throttleToRepaint } from './dom.js';
import { countChannelUnread, followChannelUnread } from './channel_unread.js';
import { countUnread, followConversations, getConversationHash } from './conversation_state.js';
import { listOpenDecisions } from './frames.js';
import { stripMarkdown } from './markdown.js';
import { notifyPerson } from './notify.js';
import { followReceipts } from './receipts.js';
import { t } from './words.js';

/** What waits, by the view in which it is answered. */
export function countWaiting() {
  return {
    conversations: principal.role === 'agent' ? countUnread() : 0,
    channels: countChannelUnread(),
    sessions: listOpenDecisions(hubState.frames).length,
  };
}

export const WAITING_TOPICS = ['conversations', 'unread-channels', 'frames'];

function updateTitle() {
  const waiting = Object.values(countWaiting()).reduce((sum, count) => sum + count, 0);
  document.title = waiting ? `(${waiting}) Chorus` : 'Chorus';
}

/** Starts everything that counts what waits; called once, after `startUpdates`. */
export function followInbox() {
  followConversations();
  followReceipts();
  followChannelUnread();
  subscribe(WAITING_TOPICS, throttleToRepaint(updateTitle));
  subscribe(['message'], (message) =>
    notifyPerson(
      message.sender_id,
      stripMarkdown(message.envelope.original_text),
      getConversationHash(message.sender_id, message.envelope.conversation_id ?? ''),
    ),
  );
  const notified = new Set();
  subscribe(['frames'], () => {
    for (const decision of listOpenDecisions(hubState.frames)) {
      if (notified.has(decision.frame_id)) continue;
      notified.add(decision.frame_id);
      notifyPerson(t('notify.decision'), decision.payload.question?.stem ?? decision.payload.synopsis, '#/sessions');
    }
  });
}
