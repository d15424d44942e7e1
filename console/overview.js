// The hub at a glance: counters, rates, who is there, and whether it is well.

import { avatar, h, name, swap, throttled } from './dom.js';
import { count, cultureName, decimal, span, t } from './words.js';
import { known, linkState, me, on } from './hub.js';
import { line, shares } from './chart.js';

const SAMPLES = 90;
const ONLINE_SHOWN = 60;

function tile(label, value, note) {
  return h('div.tile', {}, h('dt', {}, label), h('dd', {}, value), note && h('p.quiet.small', {}, note));
}

function health() {
  const { health, ready, discovery } = known;
  const fact = (label, good, text) =>
    h(
      'li',
      {},
      h('span', { class: `dot ${good === undefined ? '' : good ? 'good' : 'bad'}` }),
      h('span', {}, label),
      h('span.quiet', {}, text),
    );
  return h(
    'ul.facts',
    {},
    fact(t('health.store'), ready?.ok, ready ? (ready.ok ? t('health.store.ok') : ready.why) : t('wait')),
    fact(t('health.bus'), health ? (health.bus?.ok ?? true) : undefined, busWord(health)),
    fact(t('health.streams'), linkState() === 'live', t(`link.${linkState()}`)),
    fact(t('health.door'), true, health?.invite_gating ? t('health.gated') : t('health.open')),
    fact(t('health.version'), undefined, health ? `${health.version} · ${discovery?.host_name ?? ''}` : ''),
  );
}

/** A hub alone keeps its bus inside; one of several says how it reaches the others. */
function busWord(health) {
  const bus = health?.bus;
  if (!health) return t('wait');
  if (bus === undefined) return t('health.bus.local');
  return typeof bus === 'string' ? bus : (bus.detail ?? bus.kind ?? bus.status ?? t('health.bus.local'));
}

function online() {
  const here = [...known.agents.values()].filter((agent) => agent.online);
  if (!here.length) return h('p.empty', {}, t('online.none'));
  const rows = here
    .slice(0, ONLINE_SHOWN)
    .map((agent) =>
      h(
        'li',
        {},
        h(
          'a',
          { href: `#/agents/${encodeURIComponent(agent.agent_id)}`, 'data-key': agent.agent_id },
          avatar(agent.agent_id, true),
          name(agent.agent_id),
          agent.culture && h('span.chip', { title: cultureName(agent.culture) }, agent.culture),
        ),
      ),
    );
  return h(
    'ul.online',
    {},
    rows,
    here.length > ONLINE_SHOWN && h('li.quiet', {}, `+ ${count(here.length - ONLINE_SHOWN)}`),
  );
}

function counters() {
  const n = known.health;
  if (!n) return h('p.quiet', {}, t('wait'));
  const here = [...known.agents.values()].filter((agent) => agent.online).length;
  return h(
    'dl.tiles',
    {},
    tile(t('count.agents'), count(n.agents_registered), t('count.online', { n: count(here) })),
    tile(t('count.messages'), count(n.messages_stored), t('count.delivered', { n: count(n.messages_delivered) })),
    tile(t('count.queued'), count(n.messages_queued), t('count.queued.more')),
    tile(t('count.failed'), count(n.messages_failed), t('count.failed.more')),
    tile(t('count.streams'), count(n.inbox_connections), t('count.frameStreams', { n: count(known.frameStreams) })),
    tile(t('count.uptime'), span(n.uptime_seconds), t('count.uptime.more')),
  );
}

function outcomes() {
  const n = known.health;
  if (!n) return undefined;
  const parts = [
    { label: t('state.delivered'), value: n.messages_delivered, tone: 'good' },
    { label: t('state.queued'), value: n.messages_queued, tone: 'wait' },
    { label: t('state.failed'), value: n.messages_failed, tone: 'bad' },
  ];
  return [
    shares(parts),
    h(
      'ul.legend',
      {},
      parts.map((one) =>
        h('li', {}, h('span', { class: `key tone-${one.tone}` }), one.label, ' ', h('b', {}, count(one.value))),
      ),
    ),
  ];
}

export function open(root) {
  const charts = ['messages', 'frames', 'requests'].map((what) => {
    const chart = line(what, SAMPLES, (rate) => t('rate.say', { what: t(`rate.${what}`), n: decimal(rate) }));
    const now = h('b', {}, '–');
    const card = h(
      'section.card.rate',
      {},
      h('h2', {}, t(`rate.${what}`)),
      h('p.big', {}, now, h('span.quiet', {}, ` ${t('rate.unit')}`)),
      chart.node,
      h('p.quiet.small', {}, t('rate.span')),
    );
    return { what, chart, now, card };
  });
  const tiles = h('div');
  const state = h('div');
  const here = h('div');
  const bar = h('div');
  root.append(
    h('h1', {}, t('view.overview')),
    tiles,
    h(
      'div.grid.three',
      {},
      charts.map((one) => one.card),
    ),
    h(
      'div.grid.three',
      {},
      h('section.card', {}, h('h2', {}, t('online')), here),
      h('section.card', {}, h('h2', {}, t('health')), state),
      h(
        'section.card',
        {},
        h('h2', {}, t('outcomes')),
        bar,
        h(
          'p.quiet.small',
          {},
          t(me.role === 'operator' ? 'overview.operator' : me.endpoint ? 'overview.beside' : 'overview.agent', {
            id: me.id,
          }),
        ),
      ),
    ),
  );
  const draw = () => {
    swap(tiles, counters());
    swap(state, health());
    swap(bar, outcomes());
    for (const { what, chart, now } of charts) {
      const rates = known.rates[what];
      chart.draw(rates);
      now.textContent = rates.length ? decimal(rates.at(-1)) : '–';
    }
  };
  const people = () => swap(here, online());
  draw();
  people();
  const stops = [on(['health', 'links', 'discovery'], throttled(draw)), on(['agents'], throttled(people))];
  return () => stops.forEach((stop) => stop());
}
