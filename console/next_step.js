// What to do next where a view is empty: a sentence, and commands with a button that copies them.

import { copyText, h } from './dom.js';
import { t } from './words.js';

/** A command to copy. */
export function renderCommand(command) {
  const button = h('button', { type: 'button', 'aria-label': `${t('copy')}: ${command}` }, t('copy'));
  button.addEventListener('click', async () => {
    await copyText(command);
    button.textContent = t('copied');
  });
  return h('div.snippet', {}, h('pre', { tabindex: '0' }, command), button);
}

/** The empty state of a view. `topic` names its sentence, `next.TOPIC`. */
export const renderNextStep = (topic, ...commands) =>
  h('div.next', { 'data-next': topic }, h('p', {}, t(`next.${topic}`)), commands.map(renderCommand));
