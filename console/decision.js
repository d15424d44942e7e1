// The card of a decision that an agent asks for (`agent_binding_moment`): findings, recommendations, options, free text.

import { h, linkUrls, renderAvatar, renderName } from './dom.js';
import { formatTime, t } from './words.js';
import { getSessionName, sendAnswer } from './frames.js';
import { loadOpenItems } from './hub.js';

const MAX_ANSWER_LENGTH = 2_000;

/** Renders the frame `decision`; `answer` is the frame that answered it, undefined while the decision is open. */
export function renderDecision(decision, answer) {
  const { synopsis, findings = [], recommendations = [], offer, question = {} } = decision.payload;
  const { stem, options = [], recommended_idx: recommendedIndex, hatches = {} } = question;
  const errorNode = h('p.wrong', { role: 'alert' });
  const submitAnswer = async (text) => {
    setDisabled(true);
    errorNode.textContent = '';
    try {
      await sendAnswer(decision, text);
      await loadOpenItems();
    } catch (error) {
      errorNode.textContent = error.message;
      setDisabled(false);
    }
  };
  const optionButtons = options.map((option, index) =>
    h(
      'button.option',
      {
        type: 'button',
        class: index === recommendedIndex ? 'advised' : '',
        'data-option': index,
        'data-key': `${decision.frame_id} ${index}`,
        onclick: () => submitAnswer(`${index + 1}: ${option.label}`),
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
    const form = h(
      'form.hatch',
      { 'data-hatch': hatch },
      field,
      h('button', { type: 'submit' }, t(`decision.${hatch}.go`)),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (field.value.trim()) submitAnswer(prefix + field.value.trim());
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
      h('h4', {}, t('decision.findings')),
      h(
        'ul',
        {},
        findings.map((text) => h('li', { dir: 'auto' }, linkUrls(text))),
      ),
    ],
    recommendations.length > 0 && [
      h('h4', {}, t('decision.recommendations')),
      h(
        'ul',
        {},
        recommendations.map((text) => h('li', { dir: 'auto' }, linkUrls(text))),
      ),
    ],
    offer && h('p.quiet', { dir: 'auto' }, linkUrls(offer)),
    h('h3', { dir: 'auto' }, stem),
    answer
      ? h(
          'p.answered',
          {},
          h('b', {}, t('decision.answered')),
          ' ',
          h('bdi', {}, answer.payload.response_text),
          h('span.quiet.small', {}, ` · ${answer.sender_handle} · ${formatTime(answer.created_at)}`),
        )
      : [
          h('div.options', { role: 'group', 'aria-label': stem }, optionButtons),
          renderAnswerForm(hatches.free_text, 'text', ''),
          renderAnswerForm(hatches.dialogue, 'dialogue', 'dialogue: '),
          errorNode,
        ],
  );
  const setDisabled = (isDisabled) =>
    card.querySelectorAll('button, input').forEach((control) => {
      control.disabled = isDisabled;
    });
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
