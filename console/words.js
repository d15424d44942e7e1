// Localisation: the page's language, its texts, and the formatting of times, numbers and culture names.

import en from './words.en.js';
import zh from './words.zh.js';
import workEn from './words_work.en.js';
import workZh from './words_work.zh.js';

const TEXTS = { en: { ...en, ...workEn }, zh: { ...zh, ...workZh } };
const LANGUAGE_STORAGE = 'chorus.lang';

function detectLanguage() {
  const storedLanguage = localStorage.getItem(LANGUAGE_STORAGE);
  if (storedLanguage in TEXTS) return storedLanguage;
  return navigator.languages?.some((tag) => /^zh/i.test(tag)) && !/^en/i.test(navigator.language) ? 'zh' : 'en';
}

export let language = detectLanguage();
document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';

export function setLanguage(newLanguage) {
  language = newLanguage;
  localStorage.setItem(LANGUAGE_STORAGE, newLanguage);
  document.documentElement.lang = newLanguage === 'zh' ? 'zh-CN' : 'en';
}

/** The text for a key, named as in other i18n libraries; `{name}` is replaced by `values.name`. */
export function t(key, values) {
  const text = TEXTS[language][key] ?? TEXTS.en[key] ?? key;
  return values ? text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '') : text;
}

/** The label of an activity type or frame kind: a translation if there is one, else the protocol's name in words. */
export function formatKind(kind) {
  return TEXTS[language][`kind.${kind}`] ?? kind.replace(/^(agent|peer)_/, '').replaceAll('_', ' ');
}

const getLocale = () => (language === 'zh' ? 'zh-CN' : 'en-GB');

export const formatCount = (value) =>
  new Intl.NumberFormat(getLocale(), { maximumFractionDigits: 0 }).format(value ?? 0);
export const formatDecimal = (value, digits = 1) =>
  new Intl.NumberFormat(getLocale(), { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(
    value ?? 0,
  );
export const formatCredits = (amount) =>
  amount === undefined || amount === null ? '–' : formatDecimal(Number(amount), 2);

const dateFormats = new Map();
/** Cached, because creating an Intl.DateTimeFormat is slow and lists format a time per row. */
function getDateFormat(style, options) {
  const cacheKey = `${language} ${style}`;
  if (!dateFormats.has(cacheKey)) dateFormats.set(cacheKey, new Intl.DateTimeFormat(getLocale(), options));
  return dateFormats.get(cacheKey);
}

export function formatTime(timestamp, withSeconds = true) {
  const date = new Date(timestamp);
  if (Number.isNaN(date.valueOf())) return '';
  return getDateFormat(withSeconds ? 'seconds' : 'minutes', {
    hour: '2-digit',
    minute: '2-digit',
    second: withSeconds ? '2-digit' : undefined,
    hour12: false,
  }).format(date);
}

export function formatDate(timestamp) {
  return getDateFormat('day', { year: 'numeric', month: 'short', day: 'numeric' }).format(new Date(timestamp));
}

/** The time for a timestamp of today, else date and time. */
export function formatTimestamp(timestamp) {
  const date = new Date(timestamp);
  if (Number.isNaN(date.valueOf())) return '';
  return date.toDateString() === new Date().toDateString()
    ? formatTime(timestamp, false)
    : `${formatDate(timestamp)} ${formatTime(timestamp, false)}`;
}

/** The time with seconds for a timestamp of today, else day, month and time, for a narrow column. */
export function formatShortTimestamp(timestamp) {
  const date = new Date(timestamp);
  if (Number.isNaN(date.valueOf())) return '';
  if (date.toDateString() === new Date().toDateString()) return formatTime(timestamp);
  const day = getDateFormat('short day', { month: 'short', day: 'numeric' }).format(date);
  return `${day} ${formatTime(timestamp, false)}`;
}

/** A duration in its two largest units: `2 d 4 h`, `3 min 12 s`. */
export function formatDuration(seconds) {
  const wholeSeconds = Math.max(0, Math.floor(seconds));
  const units = [
    [86_400, t('unit.d')],
    [3_600, t('unit.h')],
    [60, t('unit.min')],
    [1, t('unit.s')],
  ];
  const unitIndex = Math.max(
    0,
    units.findIndex(([size]) => wholeSeconds >= size),
  );
  const [size, label] = wholeSeconds === 0 ? units[3] : units[unitIndex];
  const nextUnit = units[unitIndex + 1];
  const largestPart = `${Math.floor(wholeSeconds / size)} ${label}`;
  const remainder = nextUnit && wholeSeconds ? Math.floor((wholeSeconds % size) / nextUnit[0]) : 0;
  return remainder ? `${largestPart} ${remainder} ${nextUnit[1]}` : largestPart;
}

/** The name of a language tag such as `zh-CN` in the page's language. */
export function formatCulture(tag) {
  try {
    return new Intl.DisplayNames([getLocale()], { type: 'language' }).of(tag);
  } catch {
    return tag;
  }
}
