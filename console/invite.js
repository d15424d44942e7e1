// Script of the invite page: translates its texts and adds copy buttons to its snippets.

import { copyText, h } from './dom.js';
import { formatCulture, t } from './words.js';
import { applyStoredTheme } from './shell.js';

applyStoredTheme();
for (const node of document.querySelectorAll('[data-t]')) node.textContent = t(node.dataset.t);
for (const node of document.querySelectorAll('[data-culture]')) node.title = formatCulture(node.dataset.culture);
for (const snippet of document.querySelectorAll('.snippet')) {
  const button = h('button', { type: 'button' }, t('copy'));
  button.addEventListener('click', () =>
    copyText(snippet.querySelector('pre').textContent).then(() => {
      button.textContent = t('copied');
    }),
  );
  snippet.append(button);
}
