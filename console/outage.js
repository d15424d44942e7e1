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
  /** A hidden page closes its streams, so the patience begins when it is visible again. */
  const draw = () => {
    clearTimeout(timer);
    if (state === 'ended') return show();
    node.hidden = true;
    if (state === 'away' && !document.hidden) timer = setTimeout(show, PATIENCE_MS);
    return undefined;
  };
  const update = () => {
    const connection = getConnectionState();
    // An attempt to connect changes nothing yet: the first one has not failed, and a later one follows a failure.
    const newState = connection === 'connecting' ? state : connection === 'waiting' ? 'away' : connection;
    if (newState === state) return;
    state = newState;
    draw();
  };
  button.addEventListener('click', () => {
    if (state === 'ended') onSignIn();
    else window.dispatchEvent(new Event('retry'));
  });
  update();
  const unsubscribe = subscribe(['connection'], update);
  document.addEventListener('visibilitychange', draw);
  return {
    node,
    stop() {
      clearTimeout(timer);
      unsubscribe();
      document.removeEventListener('visibilitychange', draw);
    },
  };
}
