// The overview: what needs the person, then counters, rates, online agents, health and delivery outcomes.

import { h, renderAvatar, renderName, replaceContent, throttleToRepaint } from './dom.js';
import { formatCount, formatCulture, formatDecimal, formatDuration, t } from './words.js';
import { getConnectionState, hubState, principal, subscribe } from './hub.js';
import { createLineChart, renderShareBar } from './chart.js';
import { openNeeds } from './needs.js';

const SAMPLES = 90;
const MAX_ONLINE_SHOWN = 60;

function renderTile(label, value, note) {
  return h('div.tile', {}, h('dt', {}, label), h('dd', {}, value), note && h('dd.quiet', {}, note));
}

function renderHealth() {
  const { health, ready, discovery } = hubState;
  const renderFact = (label, isGood, text) =>
    h(
      'li',
      {},
      h('span', { class: `dot ${isGood === undefined ? '' : isGood ? 'good' : 'bad'}` }),
      h('span', {}, label),
      h('span.quiet', {}, text),
    );
  return h(
    'ul.facts',
    {},
    renderFact(t('health.store'), ready?.ok, ready ? (ready.ok ? t('health.store.ok') : ready.why) : t('wait')),
    renderFact(t('health.bus'), health ? (health.bus?.ok ?? true) : undefined, describeBus(health)),
    renderFact(t('health.streams'), getConnectionState() === 'live', t(`link.${getConnectionState()}`)),
    renderFact(t('health.door'), true, health?.invite_gating ? t('health.gated') : t('health.open')),
    renderFact(t('health.version'), undefined, health ? `${health.version} · ${discovery?.host_name ?? ''}` : ''),
  );
}

/** The state of the bus as `/health` reports it; a hub that reports none has its bus in its own process. */
function describeBus(health) {
  const bus = health?.bus;
  if (!health) return t('wait');
  if (bus === undefined) return t('health.bus.local');
  return typeof bus === 'string' ? bus : (bus.detail ?? bus.kind ?? bus.status ?? t('health.bus.local'));
}

function renderOnlineAgents() {
  const onlineAgents = [...hubState.agents.values()].filter((agent) => agent.online);
  if (!onlineAgents.length) return h('p.empty', {}, t('online.none'));
  const items = onlineAgents
    .slice(0, MAX_ONLINE_SHOWN)
    .map((agent) =>
      h(
        'li',
        {},
        h(
          'a',
          { href: `#/agents/${encodeURIComponent(agent.agent_id)}`, 'data-key': agent.agent_id },
          renderAvatar(agent.agent_id, true),
          renderName(agent.agent_id),
          agent.culture && h('span.chip', { title: formatCulture(agent.culture) }, agent.culture),
        ),
      ),
    );
  return h(
    'ul.online',
    {},
    items,
    onlineAgents.length > MAX_ONLINE_SHOWN &&
      h('li.quiet', {}, `+ ${formatCount(onlineAgents.length - MAX_ONLINE_SHOWN)}`),
  );
}

function renderCounters() {
  const health = hubState.health;
  if (!health) return h('p.quiet', {}, t('wait'));
  const onlineCount = [...hubState.agents.values()].filter((agent) => agent.online).length;
  return h(
    'dl.tiles',
    {},
    renderTile(t('count.agents'), formatCount(health.agents_registered), t('count.agents.more')),
    renderTile(t('count.online'), formatCount(onlineCount), t('count.online.more')),
    renderTile(
      t('count.messages'),
      formatCount(health.messages_stored),
      t('count.delivered', { n: formatCount(health.messages_delivered) }),
    ),
    renderTile(t('count.queued'), formatCount(health.messages_queued), t('count.queued.more')),
    renderTile(t('count.failed'), formatCount(health.messages_failed), t('count.failed.more')),
    renderTile(t('count.uptime'), formatDuration(health.uptime_seconds), t('count.uptime.more')),
  );
}

function renderOutcomes() {
  const health = hubState.health;
  if (!health) return undefined;
  const parts = [
    { label: t('state.delivered'), value: health.messages_delivered, tone: 'good' },
    { label: t('state.queued'), value: health.messages_queued, tone: 'wait' },
    { label: t('state.failed'), value: health.messages_failed, tone: 'bad' },
  ];
  return [
    renderShareBar(parts),
    h(
      'ul.legend',
      {},
      parts.map((part) =>
        h(
          'li',
          {},
          h('span', { class: `key tone-${part.tone}` }),
          part.label,
          ' ',
          h('b', {}, formatCount(part.value)),
        ),
      ),
    ),
  ];
}

export function openView(root) {
  const charts = ['messages', 'frames', 'requests'].map((series) => {
    const chart = createLineChart(series, SAMPLES, (rate) =>
      t('rate.say', { what: t(`rate.${series}`), n: formatDecimal(rate) }),
    );
    const rateNode = h('b', {}, '–');
    const card = h(
      'section.card.rate',
      {},
      h('h2', {}, t(`rate.${series}`)),
      h('p.big', {}, rateNode, h('span.quiet', {}, ` ${t('rate.unit')}`)),
      chart.node,
      h('p.quiet.small', {}, t('rate.span')),
    );
    return { series, chart, rateNode, card };
  });
  const needs = openNeeds();
  const countersNode = h('div');
  const healthNode = h('div');
  const onlineNode = h('div');
  const outcomesNode = h('div');
  root.append(
    h('h1', {}, t('view.overview')),
    needs.node,
    h('h2', {}, t('overview.numbers')),
    countersNode,
    h(
      'div.grid.three',
      {},
      h('section.card', {}, h('h2', {}, t('online')), onlineNode),
      h('section.card', {}, h('h2', {}, t('health')), healthNode),
      h(
        'section.card',
        {},
        h('h2', {}, t('outcomes')),
        outcomesNode,
        h(
          'p.quiet.small',
          {},
          t(
            principal.role === 'operator'
              ? 'overview.operator'
              : principal.hasEndpoint
                ? 'overview.beside'
                : 'overview.agent',
            {
              id: principal.id,
            },
          ),
        ),
      ),
    ),
    h(
      'div.grid.three',
      {},
      charts.map((chart) => chart.card),
    ),
  );
  const renderStatus = () => {
    replaceContent(countersNode, renderCounters());
    replaceContent(healthNode, renderHealth());
    replaceContent(outcomesNode, renderOutcomes());
    for (const { series, chart, rateNode } of charts) {
      const rates = hubState.rates[series];
      chart.draw(rates);
      rateNode.textContent = rates.length ? formatDecimal(rates.at(-1)) : '–';
    }
  };
  const renderOnline = () => {
    replaceContent(onlineNode, renderOnlineAgents());
    replaceContent(countersNode, renderCounters());
  };
  renderStatus();
  renderOnline();
  const cleanups = [
    subscribe(['health', 'connection', 'discovery'], throttleToRepaint(renderStatus)),
    subscribe(['agents'], throttleToRepaint(renderOnline)),
    needs.stop,
  ];
  return () => cleanups.forEach((cleanup) => cleanup());
}
