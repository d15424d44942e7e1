// The invitation's page: its words in the reader's language, and buttons that copy.

import { copy, h } from './dom.js';
import { cultureName, t } from './words.js';
import { dress } from './shell.js';

dress();
for (const node of document.querySelectorAll('[data-t]')) node.textContent = t(node.dataset.t);
for (const node of document.querySelectorAll('[data-culture]')) node.title = cultureName(node.dataset.culture);
for (const box of document.querySelectorAll('.snippet')) {
  const button = h('button', { type: 'button' }, t('copy'));
  button.addEventListener('click', () =>
    copy(box.querySelector('pre').textContent).then(() => {
      button.textContent = t('copied');
    }),
  );
  box.append(button);
}
