// The channels view: the list of channels, and one channel with its live events, members and a form to post a message.

import { h, linkUrls, renderAvatar, renderIcon, renderName, replaceContent, throttleToRepaint } from './dom.js';
import { formatCount, formatTime, t } from './words.js';
import { callApi, encodeUriPart, getApi, postApi, requestSessionToken, storedKey } from './api.js';
import { hubState, notifySubscribers, principal, repeatEvery, subscribe } from './hub.js';
import { createComposer } from './composer.js';
import { followStream } from './stream.js';
import { createChannelTools } from './members.js';
import { renderNextStep } from './next_step.js';

const MAX_EVENTS = 400;

export function openView(root, id) {
  const list = h('ul.picks');
  const detail = h('section.detail.column', { 'aria-label': t('channel.one') });
  root.append(
    h(
      'div.split',
      { class: id ? 'has-detail' : '' },
      h('section.master', {}, h('h1', {}, t('view.channels')), list, createChannelForm()),
      detail,
    ),
  );
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
              'data-key': channel.id,
            },
            h('span.hash', { 'aria-hidden': 'true' }, '#'),
            h(
              'span.two',
              {},
              renderName(channel.name),
              h('bdi.quiet.small.cut', {}, channel.context ?? channel.service ?? ''),
            ),
            h('span.quiet.small', {}, t('channel.members', { n: formatCount(channel.members) })),
          ),
          channel.membership === 'invited' && createInvitationForm(channel, loadChannels),
        ),
      ),
      !channels.length && h('li', {}, renderNextStep('channels', 'chorus channel create room')),
    );
  };
  const cleanups = [repeatEvery(8_000, loadChannels)];
  if (id) cleanups.push(openChannel(detail, id));
  else replaceContent(detail, h('p.empty', {}, t('channel.choose')));
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

function createChannelForm() {
  const field = h('input', {
    type: 'text',
    maxlength: 128,
    placeholder: t('channel.name'),
    'aria-label': t('channel.name'),
    required: true,
  });
  const errorNode = h('p.wrong', { role: 'alert' });
  const form = h('form.bar', {}, field, h('button', { type: 'submit' }, t('channel.make')), errorNode);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      const channel = await postApi('/channels', { name: field.value.trim() });
      location.hash = `#/channels/${encodeUriPart(channel.id)}`;
    } catch (error) {
      errorNode.textContent = error.message;
    }
  });
  return form;
}

/* ---- one channel ---- */

function openChannel(root, id) {
  const titleNode = h('b', {}, '…');
  const contextNode = h('bdi.quiet.cut');
  const logNode = h('div.thread', { role: 'log', 'aria-label': t('channel.one'), tabindex: '0' });
  const rosterNode = h('ul.roster', { 'aria-label': t('channel.roster') });
  const form = createComposer({
    label: t('channel.say'),
    note: t('channel.as', { id: principal.id || t('role.operator') }),
    buildBody: (content) => ({ content }),
    sendBody: (body, idempotencyKey) =>
      postApi(`/channels/${encodeUriPart(id)}/messages`, body, { 'idempotency-key': idempotencyKey }),
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
    ),
    rosterNode,
    createChannelTools(id),
    logNode,
    form,
  );

  const events = new Map();
  const openCalls = new Set();
  const render = throttleToRepaint(() => {
    const isAtBottom =
      logNode.scrollHeight - logNode.scrollTop - logNode.clientHeight < 80 || !logNode.childElementCount;
    const results = new Map();
    for (const event of events.values())
      if (event.type === 'tool_result') results.set(`${event.sender} ${event.id}`, event);
    const ordered = [...events.values()].sort((a, b) => a.cursor - b.cursor);
    const callKeys = new Set(
      ordered.filter((event) => event.type === 'tool_call').map((event) => `${event.sender} ${event.id}`),
    );
    replaceContent(
      logNode,
      ordered.slice(-MAX_EVENTS).map((event) => renderEvent(event, results, callKeys, openCalls)),
      !ordered.length && h('p.empty', {}, t('channel.silent')),
    );
    if (isAtBottom) logNode.scrollTop = logNode.scrollHeight;
  });
  const storeEvent = (event, streamCursor) => {
    const cursor = event.cursor ?? Number(streamCursor);
    if (cursor) events.set(cursor, { ...event, cursor });
  };
  const loadMembers = async () => {
    const members = await getApi(`/channels/${encodeUriPart(id)}/members`);
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
    },
    (error) => {
      titleNode.textContent = '';
      replaceContent(logNode, h('p.note', {}, error.message));
    },
  );

  // Cursor 0: the stream replays the channel's history and then continues live.
  const stream = followStream({
    getAddress: async () =>
      principal.role === 'operator'
        ? { path: `/channels/${encodeUriPart(id)}/stream`, headers: { authorization: `Bearer ${storedKey.get()}` } }
        : { path: `/channels/${encodeUriPart(id)}/stream?session=${await requestSessionToken()}` },
    onEvent: (kind, event, cursor) => {
      if (kind === 'connected' || !event) return;
      storeEvent({ type: kind, ...event }, cursor);
      if (kind === 'member' || kind === 'status') loadMembers().catch(() => {});
      render();
    },
    onState: (state) => {
      if (state === 'ended') hubState.streamStates.delete('channel');
      else hubState.streamStates.set('channel', state);
      notifySubscribers('connection');
    },
    startCursor: '0',
    closeWhenHidden: true,
  });
  const cleanups = [repeatEvery(6_000, loadMembers), subscribe(['channels'], render)];
  render();
  return () => {
    stream.stop();
    hubState.streamStates.delete('channel');
    cleanups.forEach((cleanup) => cleanup());
  };
}

/**
 * One channel event. A tool call and its result share one `details` element, so a result is rendered only if its call is
 * unknown.
 */
function renderEvent(event, results, callKeys, openCalls) {
  if (event.type === 'gap') return h('p.aside', {}, t('channel.gap'));
  const timeNode = h('time.quiet.small', {}, formatTime(event.timestamp));
  const isOwn = event.agent_id === principal.id || (event.sender_kind === 'person' && event.sender === principal.id);
  switch (event.type) {
    case 'message':
      return h(
        'article.line',
        { class: isOwn ? 'mine' : '' },
        renderAvatar(event.sender),
        h(
          'div',
          {},
          h(
            'header.row-line',
            {},
            renderName(event.sender, 'b'),
            event.sender_kind === 'agent' && h('span.chip', {}, t('channel.agent')),
            timeNode,
          ),
          h('p.said', { dir: 'auto' }, renderMentions(event)),
          event.parts?.length > 0 && h('p.quiet.small', {}, t('channel.parts', { n: event.parts.length })),
        ),
      );
    case 'tool_call': {
      const result = results.get(`${event.sender} ${event.id}`);
      const details = h(
        'details.tool',
        { open: openCalls.has(event.cursor), 'data-call': event.id },
        h(
          'summary',
          { 'data-key': `call ${event.cursor}` },
          h('span', { class: `dot ${result ? 'good' : 'busy'}` }),
          renderName(event.sender),
          h('code', {}, event.name),
          h('span.quiet.small.cut', {}, JSON.stringify(event.args ?? {})),
          timeNode,
        ),
        event.args !== undefined && h('pre', {}, JSON.stringify(event.args, null, 2)),
        h('pre', {}, result ? result.content : t('channel.running')),
      );
      details.addEventListener('toggle', () =>
        details.open ? openCalls.add(event.cursor) : openCalls.delete(event.cursor),
      );
      return details;
    }
    case 'tool_result':
      return callKeys.has(`${event.sender} ${event.id}`)
        ? undefined
        : h(
            'details.tool',
            {},
            h('summary', {}, h('span.dot.good'), renderName(event.sender), h('code', {}, event.id), timeNode),
            h('pre', {}, event.content),
          );
    case 'status':
      return (
        event.status &&
        h('p.aside', {}, h('span.dot.busy'), renderName(event.sender), ' ', h('bdi', {}, event.status), ' ', timeNode)
      );
    case 'error':
      return h(
        'p.aside.bad',
        {},
        h('span.dot.bad'),
        renderName(event.sender),
        ' ',
        h('bdi', {}, event.message),
        event.code && h('code', {}, event.code),
        ' ',
        timeNode,
      );
    case 'member':
      return h(
        'p.aside',
        {},
        renderName(event.name ?? event.sender),
        ' ',
        t(`member.${event.change}`),
        event.message && [': ', h('bdi', {}, event.message)],
        ' ',
        timeNode,
      );
    case 'artifact':
    case 'file': {
      const text =
        event.type === 'file'
          ? t('channel.put', { name: event.name })
          : t('channel.wrote', { name: event.name, n: event.version });
      return h('p.aside', {}, renderName(event.sender), ' ', h('bdi', {}, text), ' ', timeNode);
    }
    default:
      return undefined;
  }
}

function renderMentions(event) {
  const text = event.content ?? '';
  const mentions = (event.mentions ?? []).map((memberName) => `@${memberName}`);
  if (!mentions.length) return linkUrls(text);
  const nodes = [];
  let rest = text;
  while (rest) {
    const found = mentions
      .map((mention) => [rest.indexOf(mention), mention])
      .filter(([index]) => index >= 0)
      .sort((a, b) => a[0] - b[0] || b[1].length - a[1].length);
    if (!found.length) break;
    const [index, mention] = found[0];
    nodes.push(linkUrls(rest.slice(0, index)), h('b.mention', {}, mention));
    rest = rest.slice(index + mention.length);
  }
  return [...nodes, linkUrls(rest)];
}
