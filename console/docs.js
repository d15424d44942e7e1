// The API reference at /docs: every route with its parameters, body and responses, rendered from the hub's OpenAPI document.

import { copyText, h, replaceContent } from './dom.js';
import { formatCount, t } from './words.js';
import { getPublic } from './api.js';
import { renderBrand, renderTools } from './shell.js';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const MAX_DEPTH = 4;

export async function openView(root) {
  document.title = 'Chorus · API';
  const main = h('main', { id: 'main', tabindex: '-1' }, h('p.quiet', {}, t('wait')));
  replaceContent(
    root,
    h('a.skip', { href: '#main' }, t('skip')),
    h(
      'div.gate.docs',
      {},
      h(
        'header.top',
        {},
        renderBrand(),
        h('span.spring'),
        h('a.button', { href: '/console' }, t('docs.console')),
        renderTools(),
      ),
      main,
    ),
  );
  window.addEventListener('relabel', () => openView(root), { once: true });
  let contract;
  try {
    contract = await getPublic('/openapi.json');
  } catch (error) {
    return replaceContent(main, h('p.note', {}, error.message));
  }
  const operations = [];
  for (const [path, pathItem] of Object.entries(contract.paths)) {
    for (const method of METHODS) if (pathItem[method]) operations.push({ path, method, ...pathItem[method] });
  }
  const searchField = h('input', { type: 'search', placeholder: t('docs.search'), 'aria-label': t('docs.search') });
  const list = h('div');
  const countNode = h('span.quiet.small', { 'aria-live': 'polite' });
  replaceContent(
    main,
    h('h1', {}, contract.info.title, ' ', h('span.quiet', {}, contract.info.version)),
    h('p', {}, contract.info.description),
    h('p.quiet', {}, t('docs.text'), ' ', h('a', { href: '/openapi.json' }, '/openapi.json')),
    h('div.bar', {}, searchField, countNode),
    list,
  );
  const render = () => {
    const query = searchField.value.trim().toLowerCase();
    const matches = operations.filter(
      (operation) =>
        !query || `${operation.method} ${operation.path} ${operation.summary}`.toLowerCase().includes(query),
    );
    countNode.textContent = t('docs.count', { n: formatCount(matches.length) });
    replaceContent(
      list,
      contract.tags.map((tag) => {
        const tagged = matches.filter((operation) => operation.tags?.[0] === tag.name);
        return (
          tagged.length > 0 &&
          h(
            'section',
            {},
            h('h2', {}, tag.name),
            h('p.quiet', {}, tag.description),
            tagged.map((operation) => renderOperation(contract, operation)),
          )
        );
      }),
    );
  };
  searchField.addEventListener('input', render);
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target === searchField) return;
    event.preventDefault();
    searchField.focus();
  });
  return render();
}

function renderOperation(contract, operation) {
  const details = h(
    'details.operation',
    { 'data-op': `${operation.method} ${operation.path}` },
    h(
      'summary',
      {},
      h('span', { class: `verb ${operation.method}` }, operation.method.toUpperCase()),
      h('code', {}, operation.path),
      h('span.quiet', {}, operation.summary),
    ),
  );
  // The details are rendered when they are opened: about 200 schemas at once would delay the page.
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(renderOperationDetails(contract, operation));
  });
  return details;
}

function renderOperationDetails(contract, operation) {
  const requirements = operation.security ?? [];
  const schemes = requirements.flatMap((requirement) => Object.keys(requirement));
  const isPublic = !requirements.length || requirements.some((requirement) => !Object.keys(requirement).length);
  const parameters = (operation.parameters ?? []).map((part) => resolveReference(contract, part));
  const responses = Object.entries(operation.responses).map(([status, part]) => [
    status,
    resolveReference(contract, part),
  ]);
  const body = operation.requestBody?.content?.['application/json'];
  return h(
    'div.inside',
    {},
    operation.description && h('p', {}, operation.description),
    h(
      'p.quiet',
      {},
      t('docs.key'),
      ' ',
      [...(isPublic ? [t('docs.nokey')] : []), ...schemes.map((scheme) => t(`docs.${scheme}`))].join(' · '),
    ),
    parameters.length > 0 && [
      h('h3.minor', {}, t('docs.parameters')),
      h(
        'dl.pairs',
        {},
        parameters.map((param) => [
          h('dt', {}, h('code', {}, param.name), h('span.quiet.small', {}, ` ${param.in}`)),
          h('dd', {}, param.description ?? formatSchema(contract, param.schema, 0)),
        ]),
      ),
    ],
    body && [
      h('h3.minor', {}, t('docs.body')),
      renderSchema(contract, body.schema),
      renderExample(contract, operation, body.schema),
    ],
    h('h3.minor', {}, t('docs.answers')),
    h(
      'dl.pairs',
      {},
      responses.map(([status, response]) => [
        h('dt', {}, h('span', { class: `status s${status[0]}` }, status)),
        h(
          'dd',
          {},
          response.description,
          Object.entries(response.content ?? {}).map(([mediaType, content]) =>
            h('details', {}, h('summary', {}, mediaType), renderSchema(contract, content.schema)),
          ),
        ),
      ]),
    ),
  );
}

/** The schema, parameter or response itself, or the component that it refers to. */
const resolveReference = (contract, part) => {
  if (!part?.$ref) return part ?? {};
  const [, , kind, name] = part.$ref.split('/');
  return contract.components[kind]?.[name] ?? {};
};

const renderSchema = (contract, schema) => h('pre', { tabindex: '0' }, formatSchema(contract, schema, 0));

/** A schema written like the JSON it describes, with types in place of values. */
function formatSchema(contract, schema, depth) {
  const resolved = resolveReference(contract, schema);
  const indent = '  '.repeat(depth + 1);
  const choices = resolved.oneOf ?? resolved.anyOf ?? (resolved.allOf?.length > 1 ? resolved.allOf : undefined);
  if (resolved.allOf?.length === 1) return formatSchema(contract, resolved.allOf[0], depth);
  if (choices) return choices.map((choice) => formatSchema(contract, choice, depth)).join(' | ');
  if (resolved.enum) return resolved.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (resolved.properties) {
    if (depth >= MAX_DEPTH) return '{…}';
    const lines = Object.entries(resolved.properties).map(
      ([name, property]) =>
        `${indent}${name}${resolved.required?.includes(name) ? '' : '?'}: ${formatSchema(contract, property, depth + 1)}`,
    );
    return `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`;
  }
  if (resolved.items) return `[${formatSchema(contract, resolved.items, depth)}]`;
  return Array.isArray(resolved.type) ? resolved.type.join(' | ') : (resolved.type ?? 'any');
}

function renderExample(contract, operation, schema) {
  const resolved = resolveReference(contract, schema);
  const value = resolved.example ?? resolved.examples?.[0];
  if (!value) return undefined;
  const command = `curl ${location.origin}${operation.path} -X ${operation.method.toUpperCase()} -H "Authorization: Bearer $KEY" --json '${JSON.stringify(value).replaceAll("'", "'\\''")}'`;
  const copyButton = h(
    'button',
    {
      type: 'button',
      onclick: () =>
        copyText(command).then(() => {
          copyButton.textContent = t('copied');
        }),
    },
    t('copy'),
  );
  return h('div.snippet', {}, h('pre', { tabindex: '0' }, command), copyButton);
}
