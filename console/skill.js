// One skill of the market: what it takes and gives, who offers it, and the form to hire; and the form to offer a skill.

import { announceText, h, renderAvatar, renderIcon, renderName, replaceContent } from './dom.js';
import { formatCount, formatCredits, formatDecimal, t } from './words.js';
import { callApi, createUuid, encodeUriPart, getApi, postApi, principal } from './api.js';
import { createSchemaForm, findFaultPath } from './schema_form.js';
import { renderCommand } from './next_step.js';

const MINUTE_MS = 60_000;
/** What was typed into the hire forms, by skill: it outlives a change of view or language. */
const drafts = new Map();

export const renderMarketLink = () => h('a.back.always', { href: '#/market' }, renderIcon('back'), t('view.market'));

export function openSkill(root, name) {
  let isClosed = false;
  replaceContent(root, renderMarketLink(), h('p.quiet', {}, t('wait')));
  getApi(`/skills/${encodeUriPart(name)}`).then(
    ({ skill, offers }) => isClosed || renderSkill(root, skill, offers),
    (error) => isClosed || replaceContent(root, renderMarketLink(), h('p.note', {}, error.message)),
  );
  return () => {
    isClosed = true;
  };
}

function renderSkill(root, skill, offers) {
  const isOwn = offers.some((offer) => offer.agent_id === principal.id);
  replaceContent(
    root,
    renderMarketLink(),
    h(
      'header.row-line',
      {},
      h('h1', {}, h('bdi', {}, skill.skill_name)),
      h('b', {}, t('skill.from', { n: formatCredits(skill.min_cost) })),
    ),
    skill.description && h('p', { dir: 'auto' }, skill.description),
    h(
      'div.grid.two',
      {},
      principal.role === 'agent'
        ? createHireForm(skill, offers)
        : h('section.card', {}, h('p.note', {}, t('hire.operator'))),
      h(
        'div.column',
        {},
        h('section.card', { 'data-offers': '' }, h('h2', {}, t('offers')), h('ul.lines', {}, offers.map(renderOffer))),
        renderSchema(t('skill.input'), skill.input_schema),
        renderSchema(t('skill.output'), skill.output_schema),
        isOwn && createWithdrawButton(skill.skill_name),
      ),
    ),
  );
}

function renderOffer(offer) {
  return h(
    'li',
    {},
    renderAvatar(offer.agent_id, offer.status === 'online'),
    h(
      'span.two',
      {},
      h('a', { href: `#/agents/${encodeUriPart(offer.agent_id)}` }, renderName(offer.agent_id)),
      h(
        'span.quiet.small',
        {},
        t('offer.record', {
          score: formatDecimal(offer.reputation_score),
          good: formatCount(offer.success_count),
          bad: formatCount(offer.failure_count),
          hirers: formatCount(offer.distinct_hirers),
          earned: formatCredits(offer.earned),
        }),
      ),
    ),
    h('b', {}, formatCredits(offer.skill.cost_per_call)),
  );
}

const renderSchema = (label, schema) =>
  h(
    'details.card',
    {},
    h('summary', {}, label),
    h('pre', { tabindex: '0' }, schema ? JSON.stringify(schema, null, 2) : t('skill.any')),
  );

/* ---- hiring ---- */

function createHireForm(skill, offers) {
  if (!drafts.has(skill.skill_name)) drafts.set(skill.skill_name, new Map());
  const draft = drafts.get(skill.skill_name);
  const input = createSchemaForm(skill.input_schema ?? {}, draft, 'hire');
  const keepText = (control, key, initial = '') => {
    control.value = draft.get(key) ?? initial;
    control.addEventListener('input', () => draft.set(key, control.value));
    return control;
  };
  const worker = keepText(
    h(
      'select',
      { id: 'hire-worker' },
      h('option', { value: '' }, t('hire.best')),
      h('option', { value: 'board' }, t('hire.board')),
      offers
        .filter((offer) => offer.agent_id !== principal.id)
        .map((offer) =>
          h(
            'option',
            { value: `@${offer.agent_id}` },
            `${offer.agent_id} · ${formatCredits(offer.skill.cost_per_call)}`,
          ),
        ),
    ),
    'worker',
  );
  const budget = keepText(
    h('input', { id: 'hire-budget', type: 'text', inputmode: 'decimal', autocomplete: 'off', 'aria-required': 'true' }),
    'budget',
    Number(skill.min_cost).toFixed(2),
  );
  const deadline = keepText(
    h('input', { id: 'hire-deadline', type: 'text', inputmode: 'numeric', autocomplete: 'off' }),
    'deadline',
    '10',
  );
  const approval = keepText(
    h('input', { id: 'hire-approval', type: 'text', inputmode: 'numeric', autocomplete: 'off' }),
    'approval',
  );
  const approvalField = renderField('hire-approval', t('hire.approval'), approval);
  const showApproval = () => {
    approvalField.hidden = worker.value !== 'board';
  };
  worker.addEventListener('input', showApproval);
  showApproval();
  const budgetError = h('span.wrong.small', { role: 'alert' });
  const errorNode = h('p.wrong', { role: 'alert' });
  const button = h('button.first', { type: 'submit' }, t('hire.go'));
  const form = h(
    'form.card.fields',
    { 'data-form': 'hire', novalidate: true },
    h('h2', {}, t('hire')),
    input.node,
    renderField('hire-worker', t('hire.worker'), worker),
    renderField('hire-budget', t('hire.budget'), budget, budgetError),
    approvalField,
    renderField('hire-deadline', t('hire.deadline'), deadline),
    h('div.row-line', {}, button, h('span.quiet.small', {}, t('hire.note'))),
    errorNode,
  );
  // A repetition after a lost answer keeps the job id, so that one job is started and paid; a changed request gets a new one.
  let attempt = {};
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    errorNode.textContent = budgetError.textContent = '';
    const data = input.readValue();
    if (data === undefined) return;
    const request = {
      skill_name: skill.skill_name,
      input_data: data,
      budget: Number(budget.value.replace(',', '.') || 'x'),
    };
    if (!Number.isFinite(request.budget)) {
      budgetError.textContent = t('form.not.number');
      return budget.focus();
    }
    if (Number(deadline.value) > 0) request.deadline_ms = Math.round(Number(deadline.value) * MINUTE_MS);
    if (worker.value === 'board') {
      request.board = true;
      if (Number(approval.value) > 0) request.approve_within_ms = Math.round(Number(approval.value) * MINUTE_MS);
    } else if (worker.value) request.agent_id = worker.value.slice(1);
    const text = JSON.stringify(request);
    if (attempt.text !== text) attempt = { text, jobId: createUuid() };
    button.disabled = true;
    try {
      const job = await postApi('/jobs', { ...request, job_id: attempt.jobId });
      drafts.delete(skill.skill_name);
      location.hash = `#/market/${encodeUriPart(job.job_id)}`;
    } catch (error) {
      const path = findFaultPath('input_data', error.message);
      const isBudget = /^BUDGET|CREDIT|FUNDS/.test(error.code ?? '') || /^budget /.test(error.message);
      if (isBudget) {
        budgetError.textContent = error.message;
        budget.focus();
      } else if (path === undefined || !input.showFault(path, error.message)) errorNode.textContent = error.message;
    }
    button.disabled = false;
    return undefined;
  });
  return form;
}

export const renderField = (id, label, control, errorNode) =>
  h('div.field', {}, h('label', { for: id }, label), control, errorNode);

/* ---- offering ---- */

function createWithdrawButton(name) {
  const errorNode = h('p.wrong', { role: 'alert' });
  const button = h('button', { type: 'button', 'data-do': 'withdraw' }, t('offer.withdraw'));
  button.addEventListener('click', async () => {
    try {
      await callApi(`/skills/${encodeUriPart(name)}`, { method: 'DELETE' });
      announceText(t('offer.withdrawn'));
      location.hash = '#/market';
    } catch (error) {
      errorNode.textContent = error.message;
    }
  });
  return h('section.card', {}, h('p.quiet.small', {}, t('offer.own')), h('div.row-line', {}, button), errorNode);
}

const offerDraft = new Map();

/** The form to offer a skill: a person does its jobs on this page, or a command does them with `chorus offer`. */
export function openOffer(root) {
  const fields = createSchemaForm(
    {
      type: 'object',
      required: ['skill_name', 'cost_per_call'],
      properties: {
        skill_name: { type: 'string', title: t('offer.name') },
        description: { type: 'string', title: t('offer.description') },
        cost_per_call: { type: 'number', title: t('offer.price') },
        input_schema: { type: 'object', title: t('skill.input'), description: t('offer.schema') },
        output_schema: { type: 'object', title: t('skill.output') },
      },
    },
    offerDraft,
    'offer',
  );
  const errorNode = h('p.wrong', { role: 'alert' });
  const form = h(
    'form.card.fields',
    { 'data-form': 'offer', novalidate: true },
    fields.node,
    h('div.row-line', {}, h('button.first', { type: 'submit' }, t('offer.go'))),
    errorNode,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    errorNode.textContent = '';
    const offer = fields.readValue();
    if (offer === undefined) return;
    const { skill_name: name = '', ...rest } = offer;
    if (!name.trim()) return void fields.showFault('.skill_name', t('form.missing'));
    try {
      await callApi(`/skills/${encodeUriPart(name.trim())}`, { method: 'PUT', body: rest });
      offerDraft.clear();
      location.hash = `#/market/skill/${encodeUriPart(name.trim())}`;
    } catch (error) {
      const named = /^([a-z_]+)\b/.exec(error.message)?.[1];
      if (!named || !fields.showFault(`.${named}`, error.message)) errorNode.textContent = error.message;
    }
  });
  replaceContent(
    root,
    renderMarketLink(),
    h('h1', {}, t('offer.title')),
    h('p.note', {}, t('offer.text')),
    form,
    h(
      'section.card',
      {},
      h('h2', {}, t('offer.command')),
      renderCommand('chorus offer translate --cost 0.10 -- ./translate.sh'),
    ),
  );
  return undefined;
}
