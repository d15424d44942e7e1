// The contract, browsable: every route with what it takes and answers, read from the hub's own OpenAPI document.

import { copy, h, swap } from './dom.js';
import { count, t } from './words.js';
import { look } from './api.js';
import { brand, tools } from './shell.js';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const DEEP = 4;

export async function open(root) {
  document.title = 'Chorus · API';
  const main = h('main', { id: 'main', tabindex: '-1' }, h('p.quiet', {}, t('wait')));
  swap(
    root,
    h('a.skip', { href: '#main' }, t('skip')),
    h(
      'div.gate.docs',
      {},
      h('header.top', {}, brand(), h('span.spring'), h('a.button', { href: '/console' }, t('docs.console')), tools()),
      main,
    ),
  );
  window.addEventListener('relabel', () => open(root), { once: true });
  let contract;
  try {
    contract = await look('/openapi.json');
  } catch (failure) {
    return swap(main, h('p.note', {}, failure.message));
  }
  const all = [];
  for (const [path, item] of Object.entries(contract.paths)) {
    for (const method of METHODS) if (item[method]) all.push({ path, method, ...item[method] });
  }
  const search = h('input', { type: 'search', placeholder: t('docs.search'), 'aria-label': t('docs.search') });
  const list = h('div');
  const number = h('span.quiet.small', { 'aria-live': 'polite' });
  swap(
    main,
    h('h1', {}, contract.info.title, ' ', h('span.quiet', {}, contract.info.version)),
    h('p', {}, contract.info.description),
    h('p.quiet', {}, t('docs.text'), ' ', h('a', { href: '/openapi.json' }, '/openapi.json')),
    h('div.bar', {}, search, number),
    list,
  );
  const draw = () => {
    const word = search.value.trim().toLowerCase();
    const found = all.filter((one) => !word || `${one.method} ${one.path} ${one.summary}`.toLowerCase().includes(word));
    number.textContent = t('docs.count', { n: count(found.length) });
    swap(
      list,
      contract.tags.map((tag) => {
        const own = found.filter((one) => one.tags?.[0] === tag.name);
        return (
          own.length > 0 &&
          h(
            'section',
            {},
            h('h2', {}, tag.name),
            h('p.quiet', {}, tag.description),
            own.map((one) => operation(contract, one)),
          )
        );
      }),
    );
  };
  search.addEventListener('input', draw);
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target === search) return;
    event.preventDefault();
    search.focus();
  });
  return draw();
}

function operation(contract, one) {
  const box = h(
    'details.operation',
    { 'data-op': `${one.method} ${one.path}` },
    h(
      'summary',
      {},
      h('span', { class: `verb ${one.method}` }, one.method.toUpperCase()),
      h('code', {}, one.path),
      h('span.quiet', {}, one.summary),
    ),
  );
  // Two hundred schemas are not written out before somebody looks.
  box.addEventListener('toggle', () => {
    if (box.open && box.childElementCount === 1) box.append(inside(contract, one));
  });
  return box;
}

function inside(contract, one) {
  const keys = (one.security ?? []).flatMap((way) => Object.keys(way));
  const open = !one.security || one.security.some((way) => !Object.keys(way).length);
  const body = one.requestBody?.content?.['application/json'];
  return h(
    'div.inside',
    {},
    one.description && h('p', {}, one.description),
    h(
      'p.quiet',
      {},
      t('docs.key'),
      ' ',
      [...(open ? [t('docs.nokey')] : []), ...keys.map((key) => t(`docs.${key}`))].join(' · '),
    ),
    one.parameters?.length > 0 && [
      h('h4', {}, t('docs.parameters')),
      h(
        'dl.pairs',
        {},
        one.parameters.map((param) => [
          h('dt', {}, h('code', {}, param.name), h('span.quiet.small', {}, ` ${param.in}`)),
          h('dd', {}, param.description ?? kind(contract, param.schema, 0)),
        ]),
      ),
    ],
    body && [h('h4', {}, t('docs.body')), shape(contract, body.schema), example(contract, one, body.schema)],
    h('h4', {}, t('docs.answers')),
    h(
      'dl.pairs',
      {},
      Object.entries(one.responses).map(([status, answer]) => [
        h('dt', {}, h('span', { class: `status s${status[0]}` }, status)),
        h(
          'dd',
          {},
          answer.description,
          Object.entries(answer.content ?? {}).map(([type, content]) =>
            h('details', {}, h('summary', {}, type), shape(contract, content.schema)),
          ),
        ),
      ]),
    ),
  );
}

const resolved = (contract, schema) =>
  (schema?.$ref ? contract.components.schemas[schema.$ref.split('/').at(-1)] : schema) ?? {};

const shape = (contract, schema) => h('pre', { tabindex: '0' }, kind(contract, schema, 0));

/** A schema as its JSON would look, with types for values. */
function kind(contract, schema, depth) {
  const one = resolved(contract, schema);
  const pad = '  '.repeat(depth + 1);
  const choices = one.oneOf ?? one.anyOf ?? (one.allOf?.length > 1 ? one.allOf : undefined);
  if (one.allOf?.length === 1) return kind(contract, one.allOf[0], depth);
  if (choices) return choices.map((choice) => kind(contract, choice, depth)).join(' | ');
  if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (one.properties) {
    if (depth >= DEEP) return '{…}';
    const lines = Object.entries(one.properties).map(
      ([name, inner]) => `${pad}${name}${one.required?.includes(name) ? '' : '?'}: ${kind(contract, inner, depth + 1)}`,
    );
    return `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`;
  }
  if (one.items) return `[${kind(contract, one.items, depth)}]`;
  return Array.isArray(one.type) ? one.type.join(' | ') : (one.type ?? 'any');
}

function example(contract, one, schema) {
  const found = resolved(contract, schema);
  const value = found.example ?? found.examples?.[0];
  if (!value) return undefined;
  const text = `curl ${location.origin}${one.path} -X ${one.method.toUpperCase()} -H "Authorization: Bearer $KEY" --json '${JSON.stringify(value).replaceAll("'", "'\\''")}'`;
  const button = h(
    'button',
    {
      type: 'button',
      onclick: () =>
        copy(text).then(() => {
          button.textContent = t('copied');
        }),
    },
    t('copy'),
  );
  return h('div.snippet', {}, h('pre', { tabindex: '0' }, text), button);
}
