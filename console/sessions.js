// My handle's sessions: what they ask me, who listens, what is claimed, and every frame as it comes.

import { h, swap, throttled } from './dom.js';
import { clock, count, kindName, span, t } from './words.js';
import { get } from './api.js';
import { every, known, me, on } from './hub.js';
import { KINDS, claimsAt, gist, openMoments, sessionOf } from './frames.js';
import { card } from './decision.js';
import { rows } from './list.js';

const DONE_SHOWN = 3;

function fill(row, frame) {
  if (!row.cells) {
    row.cells = [h('time'), h('span'), h('bdi.from'), h('span.cut', { dir: 'auto' })];
    row.append(...row.cells);
  }
  const [time, kind, from, text] = row.cells;
  const session = sessionOf(frame);
  time.textContent = clock(frame.created_at);
  kind.className = `kind k-${frame.kind}`;
  kind.textContent = kindName(frame.kind);
  from.title = session ?? frame.sender_handle;
  from.textContent = session?.split('@')[0] ?? frame.sender_handle;
  text.textContent = gist(frame) ?? '';
}

export function open(root) {
  root.append(h('h1', {}, t('view.sessions')));
  if (!me.handle) {
    root.append(h('p.note', {}, me.role === 'operator' ? t('sessions.operator') : t('sessions.nohandle')));
    return undefined;
  }
  const asked = h('div.decisions');
  const chips = h('div.chips', { role: 'group', 'aria-label': t('frames.kinds') });
  const detail = h('pre.entry', { hidden: true, tabindex: '0' });
  const list = rows({
    height: 34,
    fill,
    label: t('frames'),
    empty: t('frames.empty'),
    open: (frame) => {
      detail.hidden = false;
      detail.textContent = JSON.stringify(frame, null, 2);
    },
  });
  const roster = h('div');
  const locks = h('div');
  root.append(
    h(
      'div.grid.wide-left',
      {},
      h(
        'div.column',
        {},
        h('section', { 'aria-label': t('decisions') }, asked),
        h(
          'section.card.column',
          {},
          h('h2', {}, t('frames'), h('span.quiet.small', {}, ` ${me.handle}`)),
          chips,
          h('div.frame-list', {}, list.node),
          detail,
        ),
      ),
      h(
        'div.column',
        {},
        h('section.card', {}, h('h2', {}, t('roster')), roster),
        h('section.card', {}, h('h2', {}, t('locks')), locks, h('p.quiet.small', {}, t('locks.note'))),
      ),
    ),
  );

  const chosen = new Set();
  let painted = '';
  const decisions = () => {
    const waiting = openMoments(known.frames);
    const done = [...known.frames.moments.values()]
      .filter((one) => known.frames.answers.has(one.frame_id))
      .slice(-DONE_SHOWN)
      .reverse();
    // Drawn anew only when a decision comes or is made: nobody's half-written answer is lost to another frame.
    const now = [...waiting.map((one) => one.frame_id), '|', ...done.map((one) => one.frame_id)].join();
    if (now === painted) return;
    painted = now;
    const halves = new Map([...asked.querySelectorAll('input')].map((field) => [field.dataset.key, field.value]));
    swap(
      asked,
      h('h2', {}, t('decisions'), waiting.length > 0 && h('span.badge', {}, waiting.length)),
      !waiting.length && h('p.quiet', {}, t('decisions.none')),
      waiting.map((one) => card(one)),
      done.map((one) => card(one, known.frames.answers.get(one.frame_id))),
    );
    asked.querySelectorAll('input').forEach((field) => {
      field.value = halves.get(field.dataset.key) ?? '';
    });
  };
  const frames = () => {
    const counts = new Map();
    for (const frame of known.frames.frames) counts.set(frame.kind, (counts.get(frame.kind) ?? 0) + 1);
    swap(
      chips,
      KINDS.filter((kind) => counts.has(kind) || chosen.has(kind)).map((kind) =>
        h(
          'button.chip',
          {
            type: 'button',
            'aria-pressed': String(chosen.has(kind)),
            'data-key': kind,
            onclick: () => {
              chosen.has(kind) ? chosen.delete(kind) : chosen.add(kind);
              frames();
            },
          },
          kindName(kind),
          ' ',
          h('b', {}, count(counts.get(kind))),
        ),
      ),
    );
    list.set(
      known.frames.frames.filter((frame) => !chosen.size || chosen.has(frame.kind)).reverse(),
      (frame) => frame.frame_id,
    );
  };
  const claims = () => {
    const now = Date.now();
    const held = claimsAt(known.frames, now);
    swap(
      locks,
      held.length
        ? h(
            'ul.locks',
            {},
            held.map((claim, at) =>
              h(
                'li',
                { class: at && held[at - 1].resource === claim.resource ? 'second' : '' },
                h('code', {}, claim.resource),
                h(
                  'span.quiet.small',
                  {},
                  h('bdi', {}, claim.from ?? claim.holder),
                  claim.intent && [' · ', h('bdi', {}, claim.intent)],
                ),
                h(
                  'span.left',
                  { share: `${Math.min(100, ((claim.until - now) / claim.span) * 100)}%` },
                  span((claim.until - now) / 1000),
                ),
              ),
            ),
          )
        : h('p.quiet', {}, t('locks.none')),
    );
  };
  const who = async () => {
    const { sessions } = await get(`/handles/${me.handle}/roster`);
    swap(
      roster,
      h(
        'ul.lines',
        {},
        sessions.map((one) =>
          h(
            'li',
            {},
            h('span.dot.good'),
            h('code', {}, one.instrument),
            h('bdi.quiet.small', {}, one.session),
            one.session === me.session && h('span.chip', {}, t('roster.this')),
            h('span.spring'),
            h('span.quiet.small', {}, one.filter || '', ' ', span((Date.now() - Date.parse(one.since)) / 1000)),
          ),
        ),
      ),
    );
  };
  const draw = () => {
    decisions();
    frames();
    claims();
  };
  draw();
  const stops = [on(['frames'], throttled(draw)), every(3_000, who), every(1_000, claims)];
  return () => stops.forEach((stop) => stop());
}
