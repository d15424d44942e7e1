// A form made from a JSON Schema: one field per property, nested objects as groups, everything else as JSON text. The hub
// validates the value; its errors are shown at the field that they name.

import { h } from './dom.js';
import { t } from './words.js';

/** The types of the short form of a schema, `{"text": "string"}`, in which every field is required. */
const SHORT_TYPES = {
  string: 'string',
  number: 'number',
  integer: 'integer',
  int: 'integer',
  boolean: 'boolean',
  bool: 'boolean',
  array: 'array',
  list: 'array',
  object: 'object',
  dict: 'object',
  null: 'null',
  any: 'any',
};
/** Groups inside groups beyond this depth are JSON text: a form that deep does not help, and a schema may be hostile. */
const MAX_DEPTH = 4;
const MAX_FIELDS = 100;

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

function expandShortForm(schema) {
  const names = Object.keys(schema);
  const isShort = names.length > 0 && names.every((name) => Object.hasOwn(SHORT_TYPES, schema[name]));
  if (!isShort) return schema;
  const properties = Object.fromEntries(names.map((name) => [name, { type: SHORT_TYPES[schema[name]] }]));
  return { type: 'object', properties, required: names };
}

function chooseKind(schema, depth) {
  if (Array.isArray(schema.enum) && schema.enum.length && schema.enum.length <= MAX_FIELDS) return 'enum';
  if (['string', 'number', 'integer', 'boolean'].includes(schema.type)) return schema.type;
  const hasFields = isObject(schema.properties) && Object.keys(schema.properties).length > 0;
  return hasFields && depth < MAX_DEPTH ? 'group' : 'json';
}

function createControl(kind, schema, attributes) {
  if (kind === 'enum')
    return h(
      'select',
      attributes,
      h('option', { value: '' }, '–'),
      schema.enum.map((value, index) =>
        h('option', { value: String(index) }, typeof value === 'string' ? value : JSON.stringify(value)),
      ),
    );
  if (kind === 'boolean')
    return h(
      'select',
      attributes,
      h('option', { value: '' }, '–'),
      h('option', { value: 'true' }, t('form.yes')),
      h('option', { value: 'false' }, t('form.no')),
    );
  if (kind === 'number' || kind === 'integer')
    return h('input', { ...attributes, type: 'text', inputmode: 'decimal', autocomplete: 'off' });
  return h('textarea', {
    ...attributes,
    rows: kind === 'json' ? 3 : 2,
    spellcheck: kind === 'json' ? 'false' : undefined,
    class: kind === 'json' ? 'mono' : '',
    placeholder: kind === 'json' ? 'JSON' : undefined,
  });
}

/** The value of a control's text; throws the sentence to show when the text has another type. */
function parseText(kind, schema, text) {
  if (kind === 'enum') return schema.enum[Number(text)];
  if (kind === 'boolean') return text === 'true';
  if (kind === 'number' || kind === 'integer') {
    const value = Number(text);
    if (!Number.isFinite(value) || (kind === 'integer' && !Number.isInteger(value))) throw t(`form.not.${kind}`);
    return value;
  }
  if (kind === 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    throw t('form.not.json');
  }
}

/**
 * Makes the form. `draft` is a Map from paths to texts: it is filled while the user types and read when the form is made again.
 * Returns `node`, `readValue()` (undefined when a field is not readable; the fault is shown) and `showFault(path, message)`.
 */
export function createSchemaForm(schema, draft, idPrefix) {
  const fields = new Map();
  let fieldCount = 0;

  function createField(name, path, fieldSchema, isRequired, depth) {
    const kind = fieldCount++ < MAX_FIELDS ? chooseKind(fieldSchema, depth) : 'json';
    const label = [
      h('bdi', {}, fieldSchema.title ?? name),
      isRequired && h('span.required', { title: t('form.required') }, ' *'),
    ];
    const hint =
      typeof fieldSchema.description === 'string' && h('span.quiet.small', { dir: 'auto' }, fieldSchema.description);
    const errorNode = h('span.wrong.small', { role: 'alert' });
    if (kind === 'group') {
      const members = createMembers(fieldSchema, path, isRequired, depth + 1);
      fields.set(path, { errorNode, read: () => readMembers(members, isRequired) });
      return {
        name,
        path,
        node: h(
          'fieldset.group',
          {},
          h('legend', {}, label),
          hint,
          members.map((member) => member.node),
          errorNode,
        ),
      };
    }
    const id = `${idPrefix}${path}`;
    const control = createControl(kind, fieldSchema, {
      id,
      'data-path': path,
      'aria-required': isRequired ? 'true' : undefined,
    });
    control.value = draft.get(path) ?? (fieldSchema.default === undefined ? '' : formatDefault(kind, fieldSchema));
    control.addEventListener('input', () => {
      draft.set(path, control.value);
      errorNode.textContent = '';
    });
    fields.set(path, {
      control,
      isRequired,
      errorNode,
      read: () => (control.value === '' ? undefined : parseText(kind, fieldSchema, control.value)),
    });
    return { name, path, node: h('div.field', {}, h('label', { for: id }, label), hint, control, errorNode) };
  }

  // The hub keeps no order of properties, so the required ones come first.
  function createMembers(group, path, isRequired, depth) {
    const requiredNames = Array.isArray(group.required) ? group.required : [];
    const isNeeded = (name) => isRequired && requiredNames.includes(name);
    return Object.entries(group.properties)
      .sort(([a], [b]) => Number(isNeeded(b)) - Number(isNeeded(a)))
      .map(([name, member]) =>
        createField(name, `${path}.${name}`, isObject(member) ? member : {}, isNeeded(name), depth),
      );
  }

  /** An optional group without any value is left out. */
  function readMembers(members, isKept) {
    const value = {};
    for (const { name, path } of members) {
      const part = fields.get(path).read();
      if (part !== undefined)
        Object.defineProperty(value, name, { value: part, enumerable: true, configurable: true, writable: true });
    }
    return isKept || Object.keys(value).length ? value : undefined;
  }

  const whole = expandShortForm(isObject(schema) ? schema : {});
  const isGroup = chooseKind(whole, 0) === 'group';
  const members = isGroup
    ? createMembers(whole, '', true, 1)
    : [createField(t('form.whole'), '', {}, false, MAX_DEPTH)];

  function showFault(path, message) {
    // The hub names the innermost value; the form may stop at a field around it.
    let known = path;
    while (known && !fields.has(known))
      known = known.slice(0, Math.max(known.lastIndexOf('.'), known.lastIndexOf('['), 0));
    const field = fields.get(known);
    if (!field) return false;
    field.errorNode.textContent = message;
    field.control?.focus();
    return true;
  }

  function readValue() {
    for (const { errorNode } of fields.values()) errorNode.textContent = '';
    for (const { control, isRequired, errorNode, read } of fields.values()) {
      if (!control) continue;
      try {
        if (read() === undefined && isRequired) throw t('form.missing');
      } catch (message) {
        errorNode.textContent = message;
        control.focus();
        return undefined;
      }
    }
    return isGroup ? readMembers(members, true) : (fields.get('').read() ?? {});
  }

  return {
    node: h(
      'div.fields',
      {},
      members.map((member) => member.node),
    ),
    readValue,
    showFault,
  };
}

function formatDefault(kind, schema) {
  if (kind === 'enum') return String(Math.max(-1, schema.enum.indexOf(schema.default))).replace('-1', '');
  return kind === 'json' ? JSON.stringify(schema.default) : String(schema.default);
}

/** The path in a refusal of the hub: `input_data.style.tone is not what …`, or with a missing property at its end. */
export function findFaultPath(root, message) {
  const match = new RegExp(`^${root}([.[]\\S*)? `).exec(message ?? '');
  if (!match) return undefined;
  const missing = /"([^"]+)" is a required property/.exec(message);
  return `${match[1] ?? ''}${missing ? `.${missing[1]}` : ''}`;
}
