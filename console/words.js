// The language of the page, and times, numbers and names of languages in it.

import en from './words.en.js';
import zh from './words.zh.js';

const BOOKS = { en, zh };
const PLACE = 'chorus.lang';

function chosen() {
  const kept = localStorage.getItem(PLACE);
  if (kept in BOOKS) return kept;
  return navigator.languages?.some((tag) => /^zh/i.test(tag)) && !/^en/i.test(navigator.language) ? 'zh' : 'en';
}

export let lang = chosen();
document.documentElement.lang = lang === 'zh' ? 'zh-CN' : 'en';

export function setLang(next) {
  lang = next;
  localStorage.setItem(PLACE, next);
  document.documentElement.lang = next === 'zh' ? 'zh-CN' : 'en';
}

/** The words for a key, with `{name}` filled in. */
export function t(key, values) {
  const text = BOOKS[lang][key] ?? BOOKS.en[key] ?? key;
  return values ? text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '') : text;
}

/** A kind of activity or frame: its word in the protocol, unless the language has one of its own. */
export function kindName(kind) {
  return BOOKS[lang][`kind.${kind}`] ?? kind.replace(/^(agent|peer)_/, '').replaceAll('_', ' ');
}

const locale = () => (lang === 'zh' ? 'zh-CN' : 'en-GB');

export const count = (n) => new Intl.NumberFormat(locale(), { maximumFractionDigits: 0 }).format(n ?? 0);
export const decimal = (n, digits = 1) =>
  new Intl.NumberFormat(locale(), { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(n ?? 0);
export const credits = (n) => (n === undefined || n === null ? '–' : decimal(Number(n), 2));

const formats = new Map();
/** Formats are dear to make and cheap to use. */
function format(kind, options) {
  const at = `${lang} ${kind}`;
  if (!formats.has(at)) formats.set(at, new Intl.DateTimeFormat(locale(), options));
  return formats.get(at);
}

export function clock(at, seconds = true) {
  const time = new Date(at);
  if (Number.isNaN(time.valueOf())) return '';
  return format(seconds ? 'seconds' : 'minutes', {
    hour: '2-digit',
    minute: '2-digit',
    second: seconds ? '2-digit' : undefined,
    hour12: false,
  }).format(time);
}

export function day(at) {
  return format('day', { year: 'numeric', month: 'short', day: 'numeric' }).format(new Date(at));
}

/** Short for things of today, with the day for the rest. */
export function when(at) {
  const time = new Date(at);
  if (Number.isNaN(time.valueOf())) return '';
  return time.toDateString() === new Date().toDateString() ? clock(at, false) : `${day(at)} ${clock(at, false)}`;
}

/** `2 d 4 h`, `3 min 12 s` */
export function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [
    [86_400, t('unit.d')],
    [3_600, t('unit.h')],
    [60, t('unit.min')],
    [1, t('unit.s')],
  ];
  const at = Math.max(
    0,
    parts.findIndex(([size]) => whole >= size),
  );
  const [size, word] = whole === 0 ? parts[3] : parts[at];
  const rest = parts[at + 1];
  const first = `${Math.floor(whole / size)} ${word}`;
  const over = rest && whole ? Math.floor((whole % size) / rest[0]) : 0;
  return over ? `${first} ${over} ${rest[1]}` : first;
}

/** `zh-CN` as a person would say it. */
export function cultureName(tag) {
  try {
    return new Intl.DisplayNames([locale()], { type: 'language' }).of(tag);
  } catch {
    return tag;
  }
}
