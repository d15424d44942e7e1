// The keys j and k in every list of the page, wherever the focus is.

/** Moves to the next (`step` 1) or previous (-1) entry of the view's list; false when the view has none. */
export function moveInList(step) {
  const main = document.getElementById('main');
  const rows = main?.querySelector('.rows');
  if (rows?.checkVisibility()) {
    rows.focus();
    rows.dispatchEvent(new KeyboardEvent('keydown', { key: step > 0 ? 'j' : 'k', cancelable: true }));
    return true;
  }
  const entries = [...(main?.querySelectorAll('.picks a, .picks button.pick') ?? [])].filter((entry) =>
    entry.checkVisibility(),
  );
  if (!entries.length) return false;
  const focused = entries.indexOf(document.activeElement);
  const current = focused >= 0 ? focused : entries.findIndex((entry) => entry.hasAttribute('aria-current'));
  const target = Math.min(entries.length - 1, Math.max(0, current + step));
  entries[target].focus();
  entries[target].scrollIntoView({ block: 'nearest' });
  return true;
}
