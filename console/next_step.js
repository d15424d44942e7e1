// What to do next where a view is empty: a sentence, and commands with a button that copies them.

import { copyText, h, renderIcon } from './dom.js';
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

/** The empty pane beside an empty list: what the view is for, and the next step. `view` names its icon and texts. */
export const renderIntro = (view, ...commands) =>
  h(
    'div.intro',
    { 'data-intro': view },
    renderIcon(view),
    h('h2', {}, t(`view.${view}`)),
    h('p', {}, t(`intro.${view}`)),
    renderNextStep(view, ...commands),
  );

/** The only entry of such a list: one line beside the pane; on a phone, where there is no pane, the next step itself. */
export const renderEmptyList = (view, ...commands) =>
  h(
    'li',
    {},
    h('p.empty.wide-only', {}, t(`intro.${view}.none`)),
    h('div.narrow-only', {}, renderNextStep(view, ...commands)),
  );
