// Notifications of the browser, off until the person asks for them: a new message or decision while the page is not in sight.

const STORAGE = 'chorus.notify';
const MAX_BODY_CHARACTERS = 160;

/** Browsers offer notifications only to pages that came over TLS or from this machine. */
export const canNotify = () => 'Notification' in window && window.isSecureContext;

export const isNotifying = () =>
  canNotify() && localStorage.getItem(STORAGE) === 'on' && Notification.permission === 'granted';

/** Asks the browser for permission; returns whether notifications are on now. */
export async function toggleNotifying() {
  if (isNotifying()) localStorage.removeItem(STORAGE);
  else if ((await Notification.requestPermission()) === 'granted') localStorage.setItem(STORAGE, 'on');
  return isNotifying();
}

/** `hash` is the place of the page that a click on the notification opens. */
export function notifyPerson(title, body, hash) {
  if (!document.hidden || !isNotifying()) return;
  let notification;
  try {
    notification = new Notification(title, { body: String(body ?? '').slice(0, MAX_BODY_CHARACTERS), tag: hash });
  } catch {
    // Chrome on Android has the constructor and refuses it.
    return;
  }
  notification.addEventListener('click', () => {
    window.focus();
    location.hash = hash;
    notification.close();
  });
}
