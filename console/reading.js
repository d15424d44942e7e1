// Tells which messages of an open conversation a person has in sight: in the visible part of the page, while the page itself
// is visible.

/** What a person does in a part of the page that was read. Scrolling is none of it: the page scrolls by itself too. */
const ACTS = ['pointerdown', 'wheel', 'keydown', 'focusin'];

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
  const attend = () => {
    isAttended = true;
    report();
  };
  for (const act of ACTS) attended?.addEventListener(act, attend, { passive: true, once: true });
  document.addEventListener('visibilitychange', report);
  return {
    watch: (element) => observer.observe(element),
    stop() {
      observer.disconnect();
      document.removeEventListener('visibilitychange', report);
    },
  };
}
