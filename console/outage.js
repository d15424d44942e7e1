// Says plainly that the hub does not answer or that the key has ended, above every view, with what to do.

import { h } from './dom.js';
import { getConnectionState, subscribe } from './hub.js';
import { t } from './words.js';

/** A reconnection that takes less is not worth a word. */
const PATIENCE_MS = 2_500;

/** `onSignIn` is called when the person wants to sign in again. Returns the banner and `stop`. */
export function createOutageBanner(onSignIn) {
  const textNode = h('p');
  const button = h('button', { type: 'button', 'data-do': 'retry' }, t('outage.away.go'));
  const node = h('div.outage', { role: 'alert', hidden: true }, textNode, button);
  let timer;
  let state = 'live';
  const show = () => {
    node.hidden = false;
    node.dataset.outage = state;
    textNode.textContent = t(`outage.${state}`);
    button.textContent = t(`outage.${state}.go`);
  };
  const update = () => {
    const connection = getConnectionState();
    const newState = connection === 'ended' ? 'ended' : connection === 'live' ? 'live' : 'away';
    if (newState === state) return;
    state = newState;
    clearTimeout(timer);
    timer = undefined;
    if (state === 'live') node.hidden = true;
    else if (state === 'ended') show();
    else timer = setTimeout(show, PATIENCE_MS);
  };
  button.addEventListener('click', () => {
    if (state === 'ended') onSignIn();
    else window.dispatchEvent(new Event('retry'));
  });
  update();
  const unsubscribe = subscribe(['connection'], update);
  return {
    node,
    stop() {
      clearTimeout(timer);
      unsubscribe();
    },
  };
}
