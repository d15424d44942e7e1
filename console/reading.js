// Tells which messages of an open conversation a person has in sight: in the visible part of the page, while the page itself
// is visible.

/** What a person does in a part of the page that was read. Scrolling is none of it: the page scrolls by itself too. */
const ACTS = ['pointerdown', 'wheel', 'keydown', 'focusin'];

/** Calls `onAct` at the first thing that a person does inside `root`. */
export function watchFirstAct(root, onAct) {
  const act = () => {
    ACTS.forEach((name) => root.removeEventListener(name, act));
    onAct();
  };
  ACTS.forEach((name) => root.addEventListener(name, act, { passive: true }));
}

/**
 * Watches elements inside the scrolling element `root`. `onSeen(element)` is called once for each that comes into sight. With
 * `attended`, a part of the page that was opened unasked, nothing counts as seen before the person acts inside it.
 */
export function watchSight(root, onSeen, attended) {
  const inSight = new Set();
  let isAttended = !attended;
  const report = () => {
    if (document.hidden || !isAttended) return;
    for (const element of inSight) {
      inSight.delete(element);
      observer.unobserve(element);
      onSeen(element);
    }
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) isIntersecting ? inSight.add(target) : inSight.delete(target);
      report();
    },
    { root },
  );
  if (attended) {
    watchFirstAct(attended, () => {
      isAttended = true;
      report();
    });
  }
  document.addEventListener('visibilitychange', report);
  return {
    watch: (element) => observer.observe(element),
    stop() {
      observer.disconnect();
      document.removeEventListener('visibilitychange', report);
    },
  };
}
