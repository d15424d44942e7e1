// The channels view: the list of channels, and one channel with its live events, members and a form to post a message.

import { h, isWideScreen, renderAvatar, renderIcon, renderName, replaceContent } from './dom.js';
import { formatCount, t } from './words.js';
import { callApi, encodeUriPart, getApi, postApi } from './api.js';
import { principal, repeatEvery, subscribe } from './hub.js';
import { createComposer } from './composer.js';
import { openChannelLog } from './channel_log.js';
import { getChannelUnread, recordOwnName } from './channel_unread.js';
import { createChannelTools } from './members.js';
import { findUnknownMentions } from './mentions.js';
import { renderEmptyList, renderIntro } from './next_step.js';

const CREATE_COMMAND = 'chorus channel create team';

export function openView(root, id, cursor) {
  const list = h('ul.picks');
  const detail = h('section.detail.column', { 'aria-label': t('channel.one') });
  root.append(
    h(
      'div.split',
      { class: id ? 'has-detail' : '' },
      h('section.master', {}, h('h1', {}, t('view.channels')), createChannelForm(), list),
      detail,
    ),
  );
  let unaskedId;
  let hasIntro = false;
  /** One with something new, else the first, beside the list. The view may be closed when the list comes. */
  const openUnasked = (channels) => {
    if (id || unaskedId || !detail.isConnected || !isWideScreen()) return;
    const joined = channels.filter((channel) => channel.membership !== 'invited');
    const chosen = joined.find((channel) => getChannelUnread(channel.id) > 0) ?? joined[0];
    if (!chosen) {
      if (!hasIntro) replaceContent(detail, renderIntro('channels', CREATE_COMMAND));
      hasIntro = true;
      return;
    }
    unaskedId = chosen.id;
    cleanups.push(openChannel(detail, unaskedId, { isUnasked: true }));
  };
  const loadChannels = async () => {
    let channels;
    try {
      channels = await getApi('/channels');
    } catch (error) {
      return replaceContent(
        list,
        h('li', {}, h('p.note', {}, error.status === 403 ? t('channel.operator') : error.message)),
      );
    }
    openUnasked(channels);
    return replaceContent(
      list,
      channels.map((channel) =>
        h(
          'li',
          {},
          h(
            'a',
            {
              href: `#/channels/${encodeUriPart(channel.id)}`,
              'aria-current': channel.id === id ? 'true' : undefined,
              class: channel.id === unaskedId ? 'is-open' : '',
              'data-key': channel.id,
            },
            h('span.hash', { 'aria-hidden': 'true' }, '#'),
            h(
              'span.two',
              {},
              renderName(channel.name),
              h('bdi.quiet.small.cut', {}, channel.context ?? channel.service ?? ''),
            ),
            h(
              'span.two.end',
              {},
              h('span.quiet.small', {}, t('channel.members', { n: formatCount(channel.members) })),
              getChannelUnread(channel.id) > 0 && h('span.badge', {}, formatCount(getChannelUnread(channel.id))),
            ),
          ),
          channel.membership === 'invited' && createInvitationForm(channel, loadChannels),
        ),
      ),
      !channels.length && renderEmptyList('channels', CREATE_COMMAND),
    );
  };
  const cleanups = [
    repeatEvery(8_000, loadChannels),
    subscribe(['unread-channels'], () => loadChannels().catch(() => {})),
  ];
  if (id) cleanups.push(openChannel(detail, id, { targetCursor: Number(cursor) || undefined }));
  else replaceContent(detail, h('p.empty', {}, t('wait')));
  return () => cleanups.forEach((cleanup) => cleanup());
}

/** The two answers to an invitation; the channel's messages come only after it is accepted. */
function createInvitationForm(channel, reload) {
  const member = `/channels/${encodeUriPart(channel.id)}/members/${encodeUriPart(channel.member_name)}`;
  const errorNode = h('span.wrong', { role: 'alert' });
  const createButton = (answer, label, callHub) => {
    const button = h('button', { type: 'button', 'data-answer': answer }, label);
    button.addEventListener('click', async () => {
      try {
        await callHub();
        await reload();
      } catch (error) {
        errorNode.textContent = error.message;
      }
    });
    return button;
  };
  return h(
    'p.row-line',
    { 'data-invitation': channel.id },
    h('span.chip.wait', {}, t('channel.invited', { owner: channel.owner ?? t('role.operator') })),
    createButton('accept', t('channel.accept'), () => postApi(`${member}/accept`, {})),
    createButton('decline', t('channel.decline'), () => callApi(member, { method: 'DELETE' })),
    errorNode,
  );
}

/** A button at the head of the list, and the form that it opens. */
function createChannelForm() {
  const field = h('input', {
    type: 'text',
    maxlength: 128,
    placeholder: t('channel.name'),
    'aria-label': t('channel.name'),
    required: true,
  });
  const errorNode = h('p.wrong', { role: 'alert' });
  const form = h(
    'form.bar',
    { 'data-form': 'new-channel', hidden: true },
    field,
    h('button.first', { type: 'submit' }, t('channel.make')),
    errorNode,
  );
  const button = h('button', { type: 'button', 'data-do': 'new-channel', 'aria-expanded': 'false' }, t('channel.new'));
  button.addEventListener('click', () => {
    form.hidden = !form.hidden;
    button.setAttribute('aria-expanded', String(!form.hidden));
    if (!form.hidden) field.focus();
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      const channel = await postApi('/channels', { name: field.value.trim() });
      location.hash = `#/channels/${encodeUriPart(channel.id)}`;
    } catch (error) {
      errorNode.textContent = error.message;
    }
  });
  return [h('div.bar', {}, button), form];
}

/* ---- one channel ---- */

/** `isUnasked`: the page opened it, so its messages stay new before the person acts inside `root`. */
function openChannel(root, id, { targetCursor, isUnasked = false }) {
  const titleNode = h('h2', {}, '…');
  const contextNode = h('bdi.quiet.cut');
  const rosterNode = h('ul.roster', { 'aria-label': t('channel.roster') });
  /** Those that a mention calls: an invited agent gets nothing before it accepts. Unknown until they are loaded. */
  let joinedNames;
  const form = createComposer({
    label: t('channel.say'),
    note: t('channel.as', { id: principal.id || t('role.operator') }),
    place: `channel ${id}`,
    buildBody: (content) => ({ content }),
    sendBody: async (body, idempotencyKey) => {
      const sent = await postApi(`/channels/${encodeUriPart(id)}/messages`, body, { 'idempotency-key': idempotencyKey });
      log.showSent();
      return sent;
    },
    getWarning: (text, isComplete) => {
      const unknown = joinedNames ? findUnknownMentions(text, joinedNames, isComplete) : [];
      return unknown.length ? t('channel.unknown', { names: unknown.join(', ') }) : '';
    },
  });
  const log = openChannelLog(id, {
    targetCursor,
    onMember: () => loadMembers().catch(() => {}),
    attended: isUnasked ? root : undefined,
  });
  replaceContent(
    root,
    h(
      'header.thread-head',
      {},
      h('a.back', { href: '#/channels' }, renderIcon('back'), t('view.channels')),
      h('span.hash', { 'aria-hidden': 'true' }, '#'),
      titleNode,
      contextNode,
      h('span.spring'),
      log.searchField,
    ),
    rosterNode,
    createChannelTools(id),
    log.node,
    form,
  );
  const loadMembers = async () => {
    const members = await getApi(`/channels/${encodeUriPart(id)}/members`);
    joinedNames = members.filter((member) => member.membership !== 'invited').map((member) => member.name);
    replaceContent(
      rosterNode,
      members.map((member) =>
        h(
          'li',
          { title: member.agent?.capabilities?.join(', ') },
          renderAvatar(
            member.name,
            member.presence === 'online' ? true : member.presence === 'offline' ? false : undefined,
          ),
          renderName(member.name),
          member.status && h('bdi.chip.wait', {}, member.status),
          member.membership === 'invited' && h('span.chip', {}, t('channel.pending')),
          member.unreachable && h('span.chip.bad', {}, t('channel.unreachable')),
          member.refusal && h('bdi.chip.bad', {}, t('channel.refused', { reason: member.refusal.reason })),
        ),
      ),
    );
  };
  getApi(`/channels/${encodeUriPart(id)}`).then(
    (channel) => {
      titleNode.textContent = channel.name;
      contextNode.textContent = channel.context ?? '';
      recordOwnName(channel);
      log.update();
    },
    () => {
      titleNode.textContent = '';
    },
  );
  const cleanups = [repeatEvery(6_000, loadMembers), log.stop];
  return () => cleanups.forEach((cleanup) => cleanup());
}
