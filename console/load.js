// Loads the console, and loads it again when a module could not be fetched. A network change or a hub restart ends the
// requests that are under way; without a retry the page would stay blank.

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8000;
/** Reloads in a row before the page gives up: a module that is really broken must not reload for ever. */
const MAX_RELOADS = 5;
const COUNTER = 'chorus.reloads';

let reloading = false;

function countReload() {
  try {
    const count = Number(sessionStorage.getItem(COUNTER) ?? 0) + 1;
    sessionStorage.setItem(COUNTER, String(count));
    return count;
  } catch {
    return 1;
  }
}

function resetReloads() {
  try {
    sessionStorage.removeItem(COUNTER);
  } catch {
    // Without storage nothing was counted.
  }
}

/** Waits until the hub answers, then reloads: a reload while it is away would end on the browser's own error page. */
export async function reloadWhenReachable(error) {
  if (reloading) return;
  reloading = true;
  const count = countReload();
  if (count > MAX_RELOADS) {
    resetReloads();
    document.getElementById('app').textContent = 'The console could not be loaded. Reload the page to try again.';
    throw error;
  }
  for (let pause = FIRST_PAUSE_MS * count; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    await new Promise((done) => setTimeout(done, pause));
    try {
      if ((await fetch('/console/load.js', { cache: 'no-store' })).ok) break;
    } catch {
      // Not reachable yet.
    }
  }
  location.reload();
}

/**
 * Imports a view, or reloads the page when it cannot be fetched; then the promise never settles. Only a loaded view resets
 * the count: the entry module loads on every reload, also when a view is really broken. `onWait` is called when it has to wait.
 */
export async function loadModule(load, onWait) {
  try {
    const module = await load();
    resetReloads();
    return module;
  } catch (error) {
    onWait?.();
    await reloadWhenReachable(error);
    return new Promise(() => {});
  }
}

import('./app.js').catch(reloadWhenReachable);
