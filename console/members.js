// The members and files of a channel: the owner adds members by address or connection string and removes them, a member leaves,
// and every member downloads files and reads artifacts.

import { announceText, h, openHash, renderName, replaceContent } from './dom.js';
import { formatCount, formatTimestamp, t } from './words.js';
import { ApiError, callApi, encodeUriPart, getApi, postApi, principal, storedKey } from './api.js';
import { createAddressList } from './new_message.js';

/** The tools of the channel `id`. They load when they are opened. */
export function createChannelTools(id) {
  const path = `/channels/${encodeUriPart(id)}`;
  const membersNode = h('ul.lines', { 'data-members': '' });
  const filesNode = h('ul.lines', { 'data-files': '' });
  const formNode = h('div');
  const errorNode = h('p.wrong', { role: 'alert' });
  const attempt = async (work) => {
    errorNode.textContent = '';
    try {
      await work();
      return true;
    } catch (error) {
      errorNode.textContent = error.message;
      return false;
    }
  };
  const load = () =>
    attempt(async () => {
      const [channel, members, contents] = await Promise.all([
        getApi(path),
        getApi(`${path}/members`),
        getApi(`${path}/artifacts`),
      ]);
      const isOwner = principal.role === 'operator' || channel.owner === principal.id;
      const remove = (member) =>
        attempt(async () => {
          await callApi(`${path}/members/${encodeUriPart(member.name)}`, { method: 'DELETE' });
          announceText(t('member.gone', { name: member.name }));
          if (member.agent_id === principal.id) openHash('#/channels');
          else await load();
        });
      replaceContent(
        membersNode,
        members.map((member) => renderMember(member, channel, isOwner, remove)),
      );
      replaceContent(filesNode, renderContents(path, contents, attempt));
      if (isOwner && !formNode.childElementCount) formNode.append(createInvitation(path, attempt, load));
    });
  const tools = h(
    'details.channel-tools',
    { 'data-tools': '' },
    h('summary', {}, t('channel.tools')),
    h(
      'div.fields',
      {},
      formNode,
      errorNode,
      h('h3', {}, t('channel.roster')),
      membersNode,
      h('h3', {}, t('channel.files')),
      filesNode,
    ),
  );
  tools.addEventListener('toggle', () => tools.open && load());
  return tools;
}

/** The owner cannot be removed; a member may leave, and the owner removes the others. */
function renderMember(member, channel, isOwner, remove) {
  const isSelf = member.agent_id !== undefined && member.agent_id === principal.id;
  const canRemove = member.agent_id !== channel.owner && (isOwner || isSelf);
  return h(
    'li',
    {},
    h('span.two', {}, renderName(member.name), h('bdi.quiet.small', {}, member.agent_id ?? t('member.service'))),
    member.membership === 'invited' && h('span.chip', {}, t('channel.pending')),
    canRemove &&
      h(
        'button',
        {
          type: 'button',
          'data-do': 'remove-member',
          'data-key': `remove ${member.name}`,
          onclick: () => remove(member),
        },
        t(isSelf ? 'member.leave' : 'member.remove'),
      ),
  );
}

/** One field for both: a connection string is a URL or has the form `wss://…`, an address has no slash. */
function createInvitation(path, attempt, reload) {
  const who = h('input', {
    id: 'member-who',
    type: 'text',
    list: 'member-addresses',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: t('member.who'),
  });
  const name = h('input', { id: 'member-name', type: 'text', maxlength: 64, autocomplete: 'off' });
  const nameField = h('div.field', { hidden: true }, h('label', { for: 'member-name' }, t('member.name')), name);
  const isConnection = () => who.value.includes('://');
  who.addEventListener('input', () => {
    nameField.hidden = !isConnection();
    name.required = isConnection();
  });
  const form = h(
    'form.fields',
    { 'data-form': 'member' },
    h(
      'div.field',
      {},
      h('label', { for: 'member-who' }, t('member.add')),
      h('div.hatch', {}, who, h('button', { type: 'submit' }, t('member.go'))),
      createAddressList('member-addresses'),
    ),
    nameField,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const text = who.value.trim();
    const body = isConnection() ? { connection: text, name: name.value.trim() } : { agent_id: text };
    if (!(await attempt(() => postApi(`${path}/members`, body)))) return;
    form.reset();
    nameField.hidden = true;
    await reload();
  });
  return form;
}

/* ---- files ---- */

function renderContents(path, contents, attempt) {
  const files = (contents.files ?? []).map((file) => ({
    name: file.name,
    note: `${formatCount(file.size)} B`,
    at: file.put_at,
    fetch: () => fetchBytes(`${path}/files/${encodeUriPart(file.name)}`),
  }));
  const artifacts = (contents.artifacts ?? []).map((artifact) => ({
    name: artifact.slug,
    note: t('artifact.version', { n: artifact.version }),
    at: artifact.updated_at,
    fetch: async () => new Blob([(await getApi(`${path}/artifacts/${encodeUriPart(artifact.slug)}`)).content]),
  }));
  const rows = [...files, ...artifacts];
  if (!rows.length) return h('li.quiet', {}, t('channel.nofiles'));
  return rows.map((row) =>
    h(
      'li',
      {},
      h(
        'span.two',
        {},
        h('bdi', {}, row.name),
        h('span.quiet.small', {}, row.note, row.at && ` · ${formatTimestamp(row.at)}`),
      ),
      h(
        'button',
        {
          type: 'button',
          'data-do': 'download',
          'data-key': `file ${row.name}`,
          onclick: () => attempt(async () => saveBlob(await row.fetch(), row.name)),
        },
        t('download'),
      ),
    ),
  );
}

/** The file with the key in a header: a plain link would need the key in its address. */
async function fetchBytes(path) {
  const response = await fetch(path, {
    headers: { authorization: `Bearer ${storedKey.get()}` },
    cache: 'no-store',
    credentials: 'omit',
  });
  if (!response.ok) throw new ApiError(response.status, '', (await response.json().catch(() => ({}))).error?.message);
  return response.blob();
}

/** Always saved and never opened: a file of another member may be a page with scripts. */
function saveBlob(blob, name) {
  const url = URL.createObjectURL(new Blob([blob], { type: 'application/octet-stream' }));
  const link = h('a', { href: url, download: name.replace(/[/\\]/g, '_') });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
