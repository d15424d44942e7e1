// Tells which messages of an open conversation a person has in sight: in the visible part of the page, while the page itself
// is visible.

/**
 * Watches elements inside the scrolling element `root`. `onSeen(element)` is called once for each that comes into sight.
 */
export function watchSight(root, onSeen) {
  const inSight = new Set();
  const report = () => {
    if (document.hidden) return;
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
  document.addEventListener('visibilitychange', report);
  return {
    watch: (element) => observer.observe(element),
    stop() {
      observer.disconnect();
      document.removeEventListener('visibilitychange', report);
    },
  };
}
