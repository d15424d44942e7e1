// The card of a decision that an agent asks for (`agent_binding_moment`): findings, recommendations, options, free text.

import { h, linkUrls, renderAvatar, renderName } from './dom.js';
import { formatTime, t } from './words.js';
import { getSessionName } from './frames.js';
import { chooseAnswer, getDraftPlace, undoChoice } from './decision_answers.js';
import { keepDraft } from './drafts.js';

const MAX_ANSWER_LENGTH = 2_000;

/**
 * Renders the frame `decision`; `answer` is its `{text, handle, at}`, undefined while the decision is open; `choice` is what the
 * person has chosen on this page.
 */
export function renderDecision(decision, answer, choice) {
  const { synopsis, findings = [], recommendations = [], offer, question = {} } = decision.payload;
  const { stem, options = [], recommended_idx: recommendedIndex, hatches = {} } = question;
  const optionButtons = options.map((option, index) =>
    h(
      'button.option',
      {
        type: 'button',
        class: index === recommendedIndex ? 'advised' : '',
        'data-option': index,
        'data-key': `${decision.frame_id} ${index}`,
        onclick: () => chooseAnswer(decision, `${index + 1}: ${option.label}`),
      },
      h('span.number', { 'aria-hidden': 'true' }, index + 1),
      h(
        'span.two',
        {},
        h(
          'span.row-line',
          {},
          h('b', { dir: 'auto' }, option.label),
          index === recommendedIndex && h('span.chip.good', {}, t('decision.advised')),
        ),
        h('span.quiet.small', { dir: 'auto' }, option.reasoning),
      ),
    ),
  );
  const renderAnswerForm = (isOffered, hatch, prefix) => {
    if (isOffered === false) return undefined;
    const field = h('input', {
      type: 'text',
      maxlength: MAX_ANSWER_LENGTH,
      placeholder: t(`decision.${hatch}`),
      'aria-label': t(`decision.${hatch}`),
      'data-key': `${decision.frame_id} ${hatch}`,
    });
    keepDraft(field, getDraftPlace(decision.frame_id, hatch));
    const form = h(
      'form.hatch',
      { 'data-hatch': hatch },
      field,
      h('button', { type: 'submit' }, t(`decision.${hatch}.go`)),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (field.value.trim()) chooseAnswer(decision, prefix + field.value.trim(), { isTyped: true });
    });
    return form;
  };
  const card = h(
    'article.card.decision',
    { 'data-moment': decision.frame_id, class: answer ? 'is-done' : '' },
    h(
      'header.row-line',
      {},
      renderAvatar(decision.sender_handle),
      renderName(decision.sender_handle, 'b'),
      h('span.quiet.small', {}, getSessionName(decision)),
      h('span.spring'),
      h('time.quiet.small', {}, formatTime(decision.created_at)),
    ),
    h('p', { dir: 'auto' }, linkUrls(synopsis)),
    findings.length > 0 && [
      h('h3.minor', {}, t('decision.findings')),
      h(
        'ul',
        {},
        findings.map((text) => h('li', { dir: 'auto' }, linkUrls(text))),
      ),
    ],
    recommendations.length > 0 && [
      h('h3.minor', {}, t('decision.recommendations')),
      h(
        'ul',
        {},
        recommendations.map((text) => h('li', { dir: 'auto' }, linkUrls(text))),
      ),
    ],
    offer && h('p.quiet', { dir: 'auto' }, linkUrls(offer)),
    h('h3', { dir: 'auto' }, stem),
    answer && renderAnswer(answer),
    !answer && ['held', 'sending'].includes(choice?.phase) && renderHeldAnswer(decision, choice),
    !answer &&
      !['held', 'sending'].includes(choice?.phase) && [
        h('div.options', { role: 'group', 'aria-label': stem }, optionButtons),
        renderAnswerForm(hatches.free_text, 'text', ''),
        renderAnswerForm(hatches.dialogue, 'dialogue', 'dialogue: '),
        choice?.error && h('p.wrong', { role: 'alert' }, t('decision.failed', { why: choice.error })),
      ],
  );
  card.addEventListener('keydown', (event) => {
    const optionButton = event.target.tagName === 'INPUT' ? undefined : optionButtons[Number(event.key) - 1];
    if (!optionButton) return;
    // Inside a card a digit focuses its option; elsewhere the shortcuts of shell.js use digits to change the view.
    event.preventDefault();
    event.stopPropagation();
    optionButton.focus();
  });
  return card;
}

const renderAnswer = (answer) =>
  h(
    'p.answered',
    { tabindex: '-1' },
    h('b', {}, t('decision.answered')),
    ' ',
    h('bdi', {}, answer.text),
    h('span.quiet.small', {}, ` · ${answer.handle} · ${formatTime(answer.at)}`),
  );

/** What was chosen, while it can be undone. */
function renderHeldAnswer(decision, choice) {
  return h(
    'div.held',
    { role: 'status' },
    h('p', {}, h('b', {}, t(choice.phase === 'held' ? 'decision.chosen' : 'decision.sending')), ' ', h('bdi', {}, choice.text)),
    choice.phase === 'held' &&
      h(
        'button',
        { type: 'button', 'data-do': 'undo', onclick: () => undoChoice(decision.frame_id) },
        t('decision.undo'),
      ),
  );
}
