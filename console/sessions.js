// The sessions view: the open decisions, roster, claims, handovers and live frames of the signed-in agent's handle.

import { h, replaceContent, throttleToRepaint } from './dom.js';
import { formatCount, formatDuration, formatKind, formatTime, t } from './words.js';
import { getApi } from './api.js';
import { hubState, loadOpenItems, principal, repeatEvery, subscribe } from './hub.js';
import { FRAME_KINDS, getSessionName, listClaims, summarizeFrame } from './frames.js';
import { createDecisionList } from './decision_list.js';
import { createHandoverList } from './handovers.js';
import { renderNextStep } from './next_step.js';
import { createVirtualList } from './list.js';

function fillRow(row, frame) {
  if (!row.cells) {
    row.cells = [h('time'), h('span'), h('bdi.from'), h('span.cut', { dir: 'auto' })];
    row.append(...row.cells);
  }
  const [time, kind, from, text] = row.cells;
  const session = getSessionName(frame);
  time.textContent = formatTime(frame.created_at);
  kind.className = `kind k-${frame.kind}`;
  kind.textContent = formatKind(frame.kind);
  from.title = session ?? frame.sender_handle;
  from.textContent = session?.split('@')[0] ?? frame.sender_handle;
  text.textContent = summarizeFrame(frame) ?? '';
}

export function openView(root) {
  root.append(h('h1', {}, t('view.sessions')));
  if (!principal.handle) {
    root.append(h('p.note', {}, principal.role === 'operator' ? t('sessions.operator') : t('sessions.nohandle')));
    return undefined;
  }
  const decisions = createDecisionList({ hasHistory: true });
  const handovers = createHandoverList();
  const gapNode = h('p.note', { role: 'status', hidden: true, 'data-gap': '' }, t('frames.gap'));
  const kindFilters = h('div.chips', { role: 'group', 'aria-label': t('frames.kinds') });
  const detail = h('pre.entry', { hidden: true, tabindex: '0' });
  const list = createVirtualList({
    height: 34,
    fillRow,
    label: t('frames'),
    emptyText: renderNextStep('sessions', 'chorus init'),
    onOpen: (frame) => {
      detail.hidden = false;
      detail.textContent = JSON.stringify(frame, null, 2);
    },
  });
  const rosterNode = h('div');
  const claimsNode = h('div');
  root.append(
    h(
      'div.grid.wide-left',
      {},
      h(
        'div.column',
        {},
        h('section', { 'aria-label': t('decisions') }, decisions.node),
        h(
          'section.column',
          { 'aria-label': t('handovers') },
          h('h2', {}, t('handovers')),
          handovers.node,
          h('p.quiet.small', {}, t('handovers.note')),
        ),
        h(
          'section.card.column',
          {},
          h('h2', {}, t('frames'), h('span.quiet.small', {}, ` ${principal.handle}`)),
          gapNode,
          kindFilters,
          h('div.frame-list', {}, list.node),
          detail,
        ),
      ),
      h(
        'div.column',
        {},
        h('section.card', {}, h('h2', {}, t('roster')), rosterNode),
        h('section.card', {}, h('h2', {}, t('locks')), claimsNode, h('p.quiet.small', {}, t('locks.note'))),
      ),
    ),
  );

  const selectedKinds = new Set();
  const renderFrames = () => {
    gapNode.hidden = !hubState.frames.hasGap;
    const counts = new Map();
    for (const frame of hubState.frames.frames) counts.set(frame.kind, (counts.get(frame.kind) ?? 0) + 1);
    replaceContent(
      kindFilters,
      FRAME_KINDS.filter((kind) => counts.has(kind) || selectedKinds.has(kind)).map((kind) =>
        h(
          'button.chip',
          {
            type: 'button',
            'aria-pressed': String(selectedKinds.has(kind)),
            'data-key': kind,
            onclick: () => {
              selectedKinds.has(kind) ? selectedKinds.delete(kind) : selectedKinds.add(kind);
              renderFrames();
            },
          },
          formatKind(kind),
          ' ',
          h('b', {}, formatCount(counts.get(kind))),
        ),
      ),
    );
    list.setItems(
      hubState.frames.frames.filter((frame) => !selectedKinds.size || selectedKinds.has(frame.kind)).reverse(),
      (frame) => frame.frame_id,
    );
  };
  const renderClaims = () => {
    const now = Date.now();
    const claims = listClaims(hubState.frames, now);
    replaceContent(
      claimsNode,
      claims.length
        ? h(
            'ul.locks',
            {},
            claims.map((claim, index) =>
              h(
                'li',
                { class: index && claims[index - 1].resource === claim.resource ? 'second' : '' },
                h('code', {}, claim.resource),
                h(
                  'span.quiet.small',
                  {},
                  h('bdi', {}, claim.session ?? claim.holder),
                  claim.intent && [' · ', h('bdi', {}, claim.intent)],
                ),
                h(
                  'span.left',
                  { share: `${Math.min(100, ((claim.expiresAt - now) / claim.duration) * 100)}%` },
                  formatDuration((claim.expiresAt - now) / 1000),
                ),
              ),
            ),
          )
        : h('p.quiet', {}, t('locks.none')),
    );
  };
  const loadRoster = async () => {
    const { sessions } = await getApi(`/handles/${principal.handle}/roster`);
    replaceContent(
      rosterNode,
      h(
        'ul.lines',
        {},
        sessions.map((session) =>
          h(
            'li',
            {},
            h('span.dot.good'),
            h('code', {}, session.instrument),
            h('bdi.quiet.small', {}, session.session),
            session.session === principal.session && h('span.chip', {}, t('roster.this')),
            h('span.spring'),
            h(
              'span.quiet.small',
              {},
              session.filter || '',
              ' ',
              formatDuration((Date.now() - Date.parse(session.since)) / 1000),
            ),
          ),
        ),
      ),
    );
  };
  const render = () => {
    decisions.render();
    renderFrames();
    renderClaims();
    handovers.render();
  };
  render();
  const cleanups = [
    subscribe(['frames'], throttleToRepaint(render)),
    repeatEvery(3_000, loadRoster),
    // No frame says that a session has taken a handover up.
    repeatEvery(3_000, async () => {
      if (hubState.frames.handovers.length) await loadOpenItems();
    }),
    repeatEvery(1_000, renderClaims),
  ];
  return () => cleanups.forEach((cleanup) => cleanup());
}
