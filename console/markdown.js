// Renders the part of Markdown that agents write as DOM nodes: paragraphs, headings, lists, quotes, code, tables, emphasis and
// links. The text never becomes markup: nodes are created here, with fixed tags, and what an agent wrote is only ever a text node.

import { copyText, h, linkUrls } from './dom.js';
import { t } from './words.js';

/** Marks of emphasis that are looked at in one text; the rest is plain. Bounds the work that a hostile text can cause. */
const MAX_MARKS = 2_000;
/** Emphasis within emphasis; deeper marks are plain text. */
const MAX_DEPTH = 3;
/** Cells of all tables of one text; a table beyond them stays as it was typed. */
const MAX_CELLS = 1_000;
/** A text longer than one of these is folded. */
const FOLD_CHARACTERS = 1_600;
const FOLD_LINES = 24;

const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+#.-]{0,30})[^`]*$/;
const HEADING = /^(#{1,6})\s+(\S.*)$/;
const QUOTE = /^\s{0,3}>\s?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(\S.*)$/;
const TABLE_ROW = /^\s*\|.*\|\s*$/;
/** The line below the heads of a table; its colons align the columns. */
const TABLE_RULE = /^\s*\|(\s*:?-+:?\s*\|)+\s*$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;

/** `mentions` are names with their `@` that are marked in the text. */
export function renderMarkdown(text, mentions = []) {
  const lines = String(text ?? '').replaceAll('\r\n', '\n').split('\n');
  return renderBlocks(lines, { marksLeft: MAX_MARKS, cellsLeft: MAX_CELLS, mentions }, 0);
}

function renderBlocks(lines, context, depth) {
  const blocks = [];
  let index = 0;
  /** Takes the lines from `index` on for which the predicate holds. */
  const takeLines = (isPart) => {
    const start = index;
    while (index < lines.length && isPart(lines[index])) index += 1;
    return lines.slice(start, index);
  };
  while (index < lines.length) {
    const line = lines[index];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (!line.trim()) index += 1;
    else if (fence) {
      index += 1;
      const code = takeLines((next) => !next.trim().startsWith(fence[1]));
      index += 1;
      blocks.push(renderCode(code.join('\n'), fence[2]));
    } else if (heading) {
      index += 1;
      blocks.push(h('p.md-heading', { dir: 'auto' }, renderInline(heading[2], context, 0)));
    } else if (RULE.test(line)) {
      index += 1;
      blocks.push(h('hr'));
    } else if (QUOTE.test(line) && depth < MAX_DEPTH) {
      const quoted = takeLines((next) => QUOTE.test(next)).map((next) => next.replace(QUOTE, ''));
      blocks.push(h('blockquote', {}, renderBlocks(quoted, context, depth + 1)));
    } else if (TABLE_ROW.test(line)) blocks.push(renderTable(takeLines((next) => TABLE_ROW.test(next)), context));
    else if (ITEM.test(line)) blocks.push(renderList(takeLines((next) => ITEM.test(next) || /^\s{2,}\S/.test(next)), context));
    else {
      const start = index;
      index += 1;
      takeLines((next) => next.trim() && !startsBlock(next));
      blocks.push(h('p', { dir: 'auto' }, renderInline(lines.slice(start, index).join('\n'), context, 0)));
    }
  }
  return blocks;
}

/** The same text in one line without its marks, for lists and notifications. */
export function stripMarkdown(text) {
  const lines = String(text ?? '').replaceAll('\r\n', '\n').split('\n');
  const plain = lines
    .filter((line) => ![FENCE, RULE, TABLE_RULE].some((pattern) => pattern.test(line)))
    .map((line) => {
      const unquoted = line.replace(QUOTE, '');
      const words = HEADING.exec(unquoted)?.[2] ?? ITEM.exec(unquoted)?.[3] ?? unquoted;
      return TABLE_ROW.test(words) ? words.replaceAll('|', ' ') : words;
    });
  return stripInline(plain.join('\n'), { marksLeft: MAX_MARKS }, 0).replace(/\s+/g, ' ').trim();
}

function stripInline(text, context, depth) {
  let plain = '';
  let index = 0;
  while (index < text.length && context.marksLeft > 0) {
    const found = '`*_~['.includes(text[index]) && findSpan(text, index, depth);
    if (!found) {
      const address = text[index] === 'h' && /^https?:\/\/\S+/.exec(text.slice(index, index + 2_000));
      plain += address ? address[0] : text[index];
      index += address ? address[0].length : 1;
      continue;
    }
    context.marksLeft -= 1;
    plain += found.kind === 'code' ? found.text : stripInline(found.text, context, depth + 1);
    index = found.end;
  }
  return plain + text.slice(index);
}

const startsBlock = (line) => [FENCE, HEADING, QUOTE, ITEM, TABLE_ROW].some((pattern) => pattern.test(line));

function renderCode(code, language) {
  const copyButton = h(
    'button.md-copy',
    {
      type: 'button',
      onclick: () =>
        copyText(code).then(() => {
          copyButton.textContent = t('copied');
        }),
    },
    t('copy'),
  );
  return h(
    'div.md-code',
    {},
    h('div.md-bar', {}, h('span', {}, language), copyButton),
    h('pre', { dir: 'ltr', tabindex: '0' }, h('code', {}, code)),
  );
}

/** One level; the indentation of an item is kept as a margin. A line that is no item continues the item above it. */
function renderList(lines, context) {
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item) items.push({ depth: Math.min(3, Math.floor(item[1].length / 2)), mark: item[2], text: item[3] });
    else items.at(-1).text += `\n${line.trim()}`;
  }
  return h(
    'ul.md-list',
    {},
    items.map(({ depth, mark, text }) =>
      h(
        'li',
        { dir: 'auto', class: `md-depth-${depth}` },
        h('span.md-mark', {}, /\d/.test(mark) ? mark : '•'),
        h('span', {}, renderInline(text, context, 0)),
      ),
    ),
  );
}

const splitCells = (line) =>
  line
    .trim()
    .slice(1, -1)
    .replaceAll('\\|', '\0')
    .split('|')
    .map((cell) => cell.replaceAll('\0', '|').trim());

/** One line of heads, the rule, and rows with as many cells each; lines of any other shape stay as they were typed. */
function renderTable(lines, context) {
  const [heads, rule, ...rows] = lines.map(splitCells);
  const isTable = rows.length && TABLE_RULE.test(lines[1]) && [rule, ...rows].every((row) => row.length === heads.length);
  const cellCount = heads.length * (rows.length + 1);
  if (!isTable || cellCount > context.cellsLeft) return h('pre.md-table', { tabindex: '0' }, lines.join('\n'));
  context.cellsLeft -= cellCount;
  const getAlignment = (column) => rule[column].endsWith(':') && (rule[column].startsWith(':') ? 'md-center' : 'number');
  const renderCells = (cells, tag) =>
    cells.map((cell, column) =>
      // A head without a text is none to a screen reader.
      h(
        cell ? tag : 'td',
        { dir: 'auto', class: getAlignment(column), scope: cell && tag === 'th' ? 'col' : undefined },
        renderInline(cell, context, 0),
      ),
    );
  return h(
    'div.md-table',
    { tabindex: '0' },
    h(
      'table',
      {},
      h('thead', {}, h('tr', {}, renderCells(heads, 'th'))),
      h(
        'tbody',
        {},
        rows.map((cells) => h('tr', {}, renderCells(cells, 'td'))),
      ),
    ),
  );
}

const PAIRS = [
  ['**', 'strong'],
  ['__', 'strong'],
  ['~~', 's'],
  ['*', 'em'],
  ['_', 'em'],
];
const isWordCharacter = (character) => character !== undefined && /[\p{L}\p{N}_]/u.test(character);

/** The nodes of one paragraph. Every mark that has no partner stays a letter. */
function renderInline(text, context, depth) {
  const nodes = [];
  let plainStart = 0;
  let index = 0;
  const pushNode = (node, end) => {
    nodes.push(renderPlain(text.slice(plainStart, index), context.mentions), node);
    plainStart = end;
    index = end;
  };
  while (index < text.length && context.marksLeft > 0) {
    const found = '`*_~['.includes(text[index]) && findSpan(text, index, depth);
    if (!found) {
      // An address may contain marks: it is passed over as a whole, and becomes a link in `renderPlain`.
      const address = text[index] === 'h' && /^https?:\/\/\S+/.exec(text.slice(index, index + 2_000));
      index += address ? address[0].length : 1;
      continue;
    }
    context.marksLeft -= 1;
    pushNode(renderSpan(found, context, depth), found.end);
  }
  nodes.push(renderPlain(text.slice(plainStart), context.mentions));
  return nodes;
}

function renderSpan(span, context, depth) {
  if (span.kind === 'code') return h('code.md-span', {}, span.text);
  const content = renderInline(span.text, context, depth + 1);
  if (span.kind !== 'link') return h(span.kind, {}, content);
  // The host stands beside the words: what a link says and where it leads are two things.
  return [
    h('a', { href: span.url.href, target: '_blank', rel: 'noopener noreferrer', title: span.url.href }, content),
    h('span.quiet.small', {}, ` (${span.url.host})`),
  ];
}

function findSpan(text, index, depth) {
  if (text[index] === '`') {
    const mark = /^`+/.exec(text.slice(index, index + 20))[0];
    const end = text.indexOf(mark, index + mark.length);
    if (end <= index + mark.length) return undefined;
    return { kind: 'code', text: text.slice(index + mark.length, end), end: end + mark.length };
  }
  if (depth >= MAX_DEPTH) return undefined;
  if (text[index] === '[') return findLink(text, index);
  const pair = PAIRS.find(([mark]) => text.startsWith(mark, index));
  if (!pair) return undefined;
  const [mark, kind] = pair;
  const start = index + mark.length;
  // `2 * 3 * 4` and `snake_case_name` are no emphasis.
  if (/\s/.test(text[start] ?? ' ') || (mark.includes('_') && isWordCharacter(text[index - 1]))) return undefined;
  const end = text.indexOf(mark, start + 1);
  if (end < 0 || /\s/.test(text[end - 1]) || text.slice(start, end).includes('\n\n')) return undefined;
  if (mark.includes('_') && isWordCharacter(text[end + mark.length])) return undefined;
  return { kind, text: text.slice(start, end), end: end + mark.length };
}

/** `[words](URL)` with an http or https URL; every other scheme stays text. */
function findLink(text, index) {
  const found = /^\[([^\][\n]{1,300})\]\((https?:\/\/[^\s()<>"']{1,2000})\)/.exec(text.slice(index, index + 2_400));
  const url = found && parseWebUrl(found[2]);
  if (!url) return undefined;
  return { kind: 'link', text: found[1], url, end: index + found[0].length };
}

function parseWebUrl(address) {
  try {
    const url = new URL(address);
    return url.protocol === 'http:' || url.protocol === 'https:' ? url : undefined;
  } catch {
    return undefined;
  }
}

function renderPlain(text, mentions) {
  const nodes = [];
  let rest = text;
  while (rest && mentions.length) {
    const found = mentions
      .map((mention) => [rest.indexOf(mention), mention])
      .filter(([index]) => index >= 0)
      .sort((a, b) => a[0] - b[0] || b[1].length - a[1].length);
    if (!found.length) break;
    const [index, mention] = found[0];
    nodes.push(linkUrls(rest.slice(0, index)), h('b.mention', {}, mention));
    rest = rest.slice(index + mention.length);
  }
  return [...nodes, linkUrls(rest)];
}

/**
 * The text of a message, folded when it is long. `unfoldedKeys` remembers the texts that the reader has unfolded, by `key`.
 */
export function renderMessageText(text, { culture, mentions, key, unfoldedKeys } = {}) {
  const body = h('div.said', { lang: culture, dir: 'auto' }, renderMarkdown(text, mentions));
  const length = String(text ?? '').length;
  if (length <= FOLD_CHARACTERS && String(text ?? '').split('\n').length <= FOLD_LINES) return body;
  const button = h('button.unfold', { type: 'button', 'data-key': `unfold ${key}` });
  const applyState = () => {
    const isUnfolded = unfoldedKeys.has(key);
    body.classList.toggle('is-folded', !isUnfolded);
    button.setAttribute('aria-expanded', String(isUnfolded));
    button.textContent = isUnfolded ? t('text.fold') : t('text.unfold', { n: length });
  };
  button.addEventListener('click', () => {
    unfoldedKeys.has(key) ? unfoldedKeys.delete(key) : unfoldedKeys.add(key);
    applyState();
  });
  applyState();
  return h('div.foldable', {}, body, button);
}
