// What an operator can do: invites, credit, deleting an agent, and what happened around an entry of the activity.

import { announceText, h, openHash, renderName, replaceContent } from './dom.js';
import { formatCount, formatDate, formatKind, formatTime, t } from './words.js';
import { callApi, createUuid, encodeUriPart, getApi, postApi, principal } from './api.js';
import { hubState } from './hub.js';
import { renderCommand } from './next_step.js';

const DAY_MS = 86_400_000;
/** Entries shown before and after one. */
const NEIGHBOUR_COUNT = 6;

export function openView(root) {
  const heading = h('h1', {}, t('view.operator'));
  if (principal.role !== 'operator') return replaceContent(root, heading, h('p.note', {}, t('operator.only')));
  replaceContent(root, heading, h('div.grid.two', {}, createInvites(), createCreditForm()));
  return undefined;
}

function createAttempt(errorNode) {
  return async (work) => {
    errorNode.textContent = '';
    try {
      return await work();
    } catch (error) {
      errorNode.textContent = error.message;
      return undefined;
    }
  };
}

/* ---- invites ---- */

function createInvites() {
  const list = h('ul.lines', { 'data-list': 'invites' });
  const newCode = h('div');
  const gate = h('p.quiet');
  const errorNode = h('p.wrong', { role: 'alert' });
  const attempt = createAttempt(errorNode);
  const load = () =>
    attempt(async () => {
      const invites = await getApi('/invites');
      const isGated = (await getApi('/health')).invite_gating;
      replaceContent(
        gate,
        t(isGated ? 'invites.gated' : 'invites.open'),
        isGated && ' ',
        isGated &&
          h(
            'button',
            {
              type: 'button',
              'data-do': 'open-registration',
              onclick: () =>
                attempt(async () => {
                  await callApi('/invites', { method: 'DELETE' });
                  announceText(t('invites.opened'));
                  await load();
                }),
            },
            t('invites.all'),
          ),
      );
      replaceContent(
        list,
        invites.length
          ? invites.map((invite) =>
              renderInvite(invite, (id) =>
                attempt(async () => {
                  await callApi(`/invites/${encodeUriPart(id)}`, { method: 'DELETE' });
                  await load();
                }),
              ),
            )
          : h('li.quiet', {}, t('invites.none')),
      );
    });
  const label = h('input', {
    type: 'text',
    required: true,
    maxlength: 256,
    'aria-label': t('invites.label'),
    placeholder: t('invites.label'),
    name: 'label',
  });
  const uses = h('input', {
    type: 'number',
    min: 1,
    'aria-label': t('invites.uses'),
    placeholder: t('invites.uses'),
    name: 'uses',
  });
  const days = h('input', {
    type: 'number',
    min: 1,
    max: 3650,
    'aria-label': t('access.days'),
    placeholder: t('access.days'),
    name: 'days',
  });
  const form = h(
    'form.fields',
    { 'data-form': 'invite' },
    label,
    h('div.row-line', {}, uses, days),
    h('div.row-line', {}, h('button.first', { type: 'submit' }, t('invites.make'))),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const request = { label: label.value.trim() };
    if (uses.value) request.max_uses = Number(uses.value);
    if (days.value) request.expires_at = new Date(Date.now() + Number(days.value) * DAY_MS).toISOString();
    const made = await attempt(() => postApi('/invites', request));
    if (!made) return;
    form.reset();
    replaceContent(
      newCode,
      h('p', {}, t('invites.once')),
      renderCommand(`chorus register NAME --hub ${location.origin} --invite-code ${made.code}`),
    );
    await load();
  });
  load();
  return h('section.card.fields', {}, h('h2', {}, t('invites')), gate, form, errorNode, newCode, list);
}

function renderInvite(invite, revoke) {
  const used = t('invites.used', {
    n: formatCount(invite.uses),
    max: invite.max_uses === null ? '∞' : formatCount(invite.max_uses),
  });
  const until = invite.expires_at ? t('access.until', { day: formatDate(invite.expires_at) }) : t('access.endless');
  return h(
    'li',
    {},
    h('span.two', {}, renderName(invite.label), h('span.quiet.small', {}, `${used}, ${until}`)),
    invite.revoked
      ? h('span.chip.bad', {}, t('invites.revoked'))
      : h('button', { type: 'button', 'data-do': 'revoke-invite', onclick: () => revoke(invite.id) }, t('access.end')),
  );
}

/* ---- credit ---- */

function createCreditForm(owner) {
  const errorNode = h('p.wrong', { role: 'alert' });
  const attempt = createAttempt(errorNode);
  const doneNode = h('p', { role: 'status' });
  const owners = [...new Set([...hubState.agents.values()].map((agent) => agent.owner ?? agent.agent_id))].sort();
  const ownerField = h('input', {
    type: 'text',
    required: true,
    list: 'owners',
    'aria-label': t('owner'),
    placeholder: t('owner'),
    name: 'owner',
    'data-key': 'credit owner',
  });
  ownerField.value = owner ?? '';
  const amount = h('input', {
    type: 'text',
    inputmode: 'decimal',
    required: true,
    'aria-label': t('credit.amount'),
    placeholder: t('credit.amount'),
    name: 'amount',
    'data-key': 'credit amount',
  });
  const reason = h('input', {
    type: 'text',
    maxlength: 256,
    'aria-label': t('credit.reason'),
    placeholder: t('credit.reason'),
    name: 'reason',
    'data-key': 'credit reason',
  });
  const button = h('button', { type: 'submit' }, t('credit.give'));
  const form = h(
    'form.fields',
    { 'data-form': 'credit' },
    ownerField,
    h(
      'datalist',
      { id: 'owners' },
      owners.map((name) => h('option', { value: name })),
    ),
    h('div.row-line', {}, amount, reason),
    h('div.row-line', {}, button),
  );
  // A retry of the same credit reuses its idempotency key, so that a lost response does not give it twice.
  let request = {};
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    doneNode.textContent = '';
    const value = Number(amount.value.replace(',', '.'));
    if (!Number.isFinite(value)) {
      errorNode.textContent = t('form.not.number');
      return;
    }
    const body = { amount: value };
    if (reason.value.trim()) body.reason = reason.value.trim();
    const path = `/accounts/${encodeUriPart(ownerField.value.trim())}/credit`;
    const content = JSON.stringify([path, body]);
    if (request.content !== content) request = { content, idempotencyKey: createUuid() };
    button.disabled = true;
    const account = await attempt(() => postApi(path, body, { 'idempotency-key': request.idempotencyKey }));
    button.disabled = false;
    if (!account) return;
    request = {};
    doneNode.textContent = t('credit.given', { owner: account.owner_id, n: Number(account.balance).toFixed(2) });
    amount.value = reason.value = '';
  });
  return h('section.card.fields', {}, h('h2', {}, t('credit')), form, errorNode, doneNode);
}

/* ---- one agent ---- */

/** Credit and deletion for the page of one agent. Deleting needs the agent's name to be typed: there is no undo. */
export function createAgentAdmin(record, owner) {
  if (principal.role !== 'operator') return undefined;
  const name = h('input', {
    type: 'text',
    autocomplete: 'off',
    spellcheck: 'false',
    'aria-label': t('delete.type', { name: record.agent_id }),
    placeholder: record.agent_id,
    name: 'confirm',
    'data-key': 'delete name',
  });
  const button = h('button.danger', { type: 'submit', disabled: true }, t('delete.go'));
  const errorNode = h('p.wrong', { role: 'alert' });
  name.addEventListener('input', () => {
    button.disabled = name.value.trim() !== record.agent_id;
  });
  const form = h(
    'form.fields',
    { 'data-form': 'delete' },
    h('p.quiet.small', {}, t('delete.text')),
    h('p', {}, t('delete.type', { name: record.agent_id })),
    h('div.row-line', {}, name, button),
    errorNode,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (name.value.trim() !== record.agent_id) return;
    const deleted = await createAttempt(errorNode)(() =>
      callApi(`/agents/${encodeUriPart(record.agent_id)}`, { method: 'DELETE' }),
    );
    if (!deleted) return;
    hubState.agents.delete(record.agent_id);
    announceText(t('delete.done', { name: record.agent_id }));
    openHash('#/agents');
  });
  return h(
    'div.fields',
    {},
    createCreditForm(owner ?? record.agent_id),
    h('section.card', {}, h('h2', {}, t('delete')), form),
  );
}

/* ---- activity ---- */

/** Entries about the same message, and what the hub recorded just before and after, each of which `onOpen` opens. */
export function renderNeighbours(entry, onOpen) {
  const index = hubState.log.indexOf(entry);
  if (index < 0) return undefined;
  const trace = entry.data?.trace_id;
  const about = trace ? hubState.log.filter((other) => other !== entry && other.data?.trace_id === trace) : [];
  const around = hubState.log.slice(Math.max(0, index - NEIGHBOUR_COUNT), index + NEIGHBOUR_COUNT + 1);
  const renderEntry = (other) =>
    h(
      'li',
      {},
      h(
        'button.plain',
        { type: 'button', 'aria-current': other === entry ? 'true' : undefined, onclick: () => onOpen(other) },
        h('time.quiet', {}, formatTime(other.timestamp)),
        ' ',
        formatKind(other.type),
        ' ',
        h(
          'bdi.quiet',
          {},
          [other.data?.sender_id, other.data?.receiver_id ?? other.data?.agent_id].filter(Boolean).join(' → '),
        ),
      ),
    );
  const agents = [...new Set([entry.data?.sender_id, entry.data?.receiver_id, entry.data?.agent_id].filter(Boolean))];
  return h(
    'div.grid.two',
    { 'data-neighbours': '' },
    h(
      'section',
      {},
      h('h2', {}, t('near.message')),
      about.length ? h('ul.lines', {}, about.map(renderEntry)) : h('p.quiet', {}, t('near.none')),
      agents.length > 0 &&
        h(
          'p.row-line',
          {},
          agents.map((agent) => h('a', { href: `#/agents/${encodeUriPart(agent)}` }, renderName(agent))),
        ),
    ),
    h('section', {}, h('h2', {}, t('near.around')), h('ul.lines', {}, around.map(renderEntry))),
  );
}
