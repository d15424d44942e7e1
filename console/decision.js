// A decision that an agent asks for, as a card: what it found, what it advises, and the ways to answer.

import { avatar, h, linked, name } from './dom.js';
import { clock, t } from './words.js';
import { answer, sessionOf } from './frames.js';

const TEXT_MOST = 2_000;

/** The card of a moment; `answered` is the frame that answered it, once there is one. */
export function card(moment, answered) {
  const { synopsis, findings = [], recommendations = [], offer, question = {} } = moment.payload;
  const { stem, options = [], recommended_idx: advised, hatches = {} } = question;
  const wrong = h('p.wrong', { role: 'alert' });
  const say = async (text) => {
    buttons(true);
    wrong.textContent = '';
    try {
      await answer(moment, text);
    } catch (refusal) {
      wrong.textContent = refusal.message;
      buttons(false);
    }
  };
  const choices = options.map((option, at) =>
    h(
      'button.option',
      {
        type: 'button',
        class: at === advised ? 'advised' : '',
        'data-option': at,
        'data-key': `${moment.frame_id} ${at}`,
        onclick: () => say(`${at + 1}: ${option.label}`),
      },
      h('span.number', { 'aria-hidden': 'true' }, at + 1),
      h(
        'span.two',
        {},
        h(
          'span.row-line',
          {},
          h('b', { dir: 'auto' }, option.label),
          at === advised && h('span.chip.good', {}, t('decision.advised')),
        ),
        h('span.quiet.small', { dir: 'auto' }, option.reasoning),
      ),
    ),
  );
  const hatch = (open, word, prefix) => {
    if (open === false) return undefined;
    const field = h('input', {
      type: 'text',
      maxlength: TEXT_MOST,
      placeholder: t(`decision.${word}`),
      'aria-label': t(`decision.${word}`),
      'data-key': `${moment.frame_id} ${word}`,
    });
    const form = h(
      'form.hatch',
      { 'data-hatch': word },
      field,
      h('button', { type: 'submit' }, t(`decision.${word}.go`)),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (field.value.trim()) say(prefix + field.value.trim());
    });
    return form;
  };
  const node = h(
    'article.card.decision',
    { 'data-moment': moment.frame_id, class: answered ? 'is-done' : '' },
    h(
      'header.row-line',
      {},
      avatar(moment.sender_handle),
      name(moment.sender_handle, 'b'),
      h('span.quiet.small', {}, sessionOf(moment)),
      h('span.spring'),
      h('time.quiet.small', {}, clock(moment.created_at)),
    ),
    h('p', { dir: 'auto' }, linked(synopsis)),
    findings.length > 0 && [
      h('h4', {}, t('decision.findings')),
      h(
        'ul',
        {},
        findings.map((text) => h('li', { dir: 'auto' }, linked(text))),
      ),
    ],
    recommendations.length > 0 && [
      h('h4', {}, t('decision.recommendations')),
      h(
        'ul',
        {},
        recommendations.map((text) => h('li', { dir: 'auto' }, linked(text))),
      ),
    ],
    offer && h('p.quiet', { dir: 'auto' }, linked(offer)),
    h('h3', { dir: 'auto' }, stem),
    answered
      ? h(
          'p.answered',
          {},
          h('b', {}, t('decision.answered')),
          ' ',
          h('bdi', {}, answered.payload.response_text),
          h('span.quiet.small', {}, ` · ${answered.sender_handle} · ${clock(answered.created_at)}`),
        )
      : [
          h('div.options', { role: 'group', 'aria-label': stem }, choices),
          hatch(hatches.free_text, 'text', ''),
          hatch(hatches.dialogue, 'dialogue', 'dialogue: '),
          wrong,
        ],
  );
  const buttons = (off) =>
    node.querySelectorAll('button, input').forEach((one) => {
      one.disabled = off;
    });
  node.addEventListener('keydown', (event) => {
    const choice = event.target.tagName === 'INPUT' ? undefined : choices[Number(event.key) - 1];
    if (!choice) return;
    // Inside a card a number points at its option; in the rest of the page it changes the view.
    event.preventDefault();
    event.stopPropagation();
    choice.focus();
  });
  return node;
}
