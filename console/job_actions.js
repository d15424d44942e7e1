// What the signed-in agent can do about a job: answer its question, approve or refuse, cancel; as its worker report progress,
// ask, deliver or decline.

import { announceText, h, replaceContent } from './dom.js';
import { t } from './words.js';
import { encodeUriPart, getApi, postApi, principal } from './api.js';
import { createSchemaForm, findFaultPath } from './schema_form.js';

/** A second click within this time is a double click. */
const MIN_CLICK_GAP_MS = 1_000;
const CANCELLABLE = ['open', 'held', 'dispatched', 'input-required'];

/**
 * Returns `node` and `update(job)`. The forms are made again only when the job's state changes, so that nothing typed is lost
 * to the refreshing of the page.
 */
export function createJobActions(reload) {
  const node = h('div', { 'data-job-actions': '' });
  let shownState = '';
  const update = (job) => {
    const state = `${job.state} ${job.agent_id} ${job.question ?? ''} ${job.answer ?? ''}`;
    if (state === shownState) return;
    shownState = state;
    replaceContent(node, renderActions(job, reload));
  };
  return { node, update };
}

function renderActions(job, reload) {
  if (principal.role !== 'agent') return undefined;
  const errorNode = h('p.wrong', { role: 'alert' });
  const post = async (step, body) => {
    errorNode.textContent = '';
    try {
      await postApi(`/jobs/${encodeUriPart(job.job_id)}/${step}`, body ?? {});
      announceText(t('job.told'));
      await reload();
      return undefined;
    } catch (error) {
      errorNode.textContent = error.message;
      return error;
    }
  };
  const parts = [];
  if (job.orchestrator_id === principal.id) {
    if (job.state === 'input-required') parts.push(createAnswerForm(job, post));
    if (job.state === 'delivered') parts.push(createApprovalForm(post));
    if (CANCELLABLE.includes(job.state)) parts.push(createCancelButton(post));
  }
  if (job.agent_id === principal.id && job.state === 'dispatched') parts.push(createWorkForm(job, post, errorNode));
  return parts.length ? h('section.card', {}, parts, errorNode) : undefined;
}

function createTextForm({ label, button, formName, isRequired = true, onSend }) {
  const field = h('textarea', { rows: 2, 'aria-label': label, placeholder: label, required: isRequired, dir: 'auto' });
  const form = h(
    'form.fields',
    { 'data-form': formName },
    field,
    h('div.row-line', {}, button ?? h('button.first', { type: 'submit' }, t('send'))),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    await onSend(field.value.trim(), event.submitter?.value);
  });
  return form;
}

const createAnswerForm = (job, post) => [
  h('h2', {}, t('job.question')),
  h('p.said', { dir: 'auto' }, job.question),
  createTextForm({ label: t('job.answer'), formName: 'answer', onSend: (answer) => post('answer', { answer }) }),
];

const createApprovalForm = (post) => [
  h('h2', {}, t('job.approval')),
  h('p.quiet', {}, t('job.approval.text')),
  createTextForm({
    label: t('job.reason'),
    formName: 'approval',
    isRequired: false,
    button: [
      h('button.first', { type: 'submit', value: 'approve' }, t('job.approve')),
      h('button', { type: 'submit', value: 'reject' }, t('job.reject')),
    ],
    onSend: (reason, step) => post(step ?? 'approve', step === 'reject' && reason ? { reason } : {}),
  }),
];

/** The first click asks, the second cancels: a job that is under way may be work that is lost. */
function createCancelButton(post) {
  const button = h('button', { type: 'button', 'data-do': 'cancel' }, t('job.cancel'));
  let askedAt;
  button.addEventListener('click', () => {
    if (askedAt !== undefined) return performance.now() - askedAt < MIN_CLICK_GAP_MS ? undefined : post('cancel');
    askedAt = performance.now();
    button.classList.add('danger');
    button.textContent = t('job.cancel.sure');
    return undefined;
  });
  return h('div.row-line', {}, button);
}

function createWorkForm(job, post, errorNode) {
  const outputNode = h('div');
  let output;
  const showOutput = (schema) => {
    output = createSchemaForm(schema ?? {}, new Map(), 'output');
    replaceContent(outputNode, output.node);
  };
  showOutput();
  getApi(`/skills/${encodeUriPart(job.skill_name)}`).then(
    ({ skill, offers }) =>
      showOutput((offers.find((offer) => offer.agent_id === principal.id)?.skill ?? skill).output_schema),
    () => {},
  );
  const form = h(
    'form.fields',
    { 'data-form': 'deliver', novalidate: true },
    outputNode,
    h(
      'div.row-line',
      {},
      h('button.first', { type: 'submit' }, t('work.deliver')),
      h(
        'button',
        {
          type: 'button',
          'data-do': 'decline',
          onclick: () =>
            post('result', { status: 'FAILURE', error_code: 'SKILL_MISMATCH', error_message: t('work.declined') }),
        },
        t('work.decline'),
      ),
    ),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const data = output.readValue();
    if (data === undefined) return;
    const error = await post('result', { status: 'SUCCESS', output_data: data });
    const path = error && findFaultPath('output_data', error.message);
    if (path !== undefined && output.showFault(path, error.message)) errorNode.textContent = '';
  });
  return [
    h('h2', {}, t('work')),
    form,
    createTextForm({
      label: t('work.say'),
      formName: 'report',
      button: [
        h('button', { type: 'submit', value: 'progress' }, t('work.progress')),
        !job.question && h('button', { type: 'submit', value: 'question' }, t('work.ask')),
      ],
      onSend: (text, kind) => text && post('result', { status: 'PENDING', [kind ?? 'progress']: text }),
    }),
  ];
}
