// A small line over time, drawn as a picture of vectors: it takes its colours from the page.

import { s } from './dom.js';

const WIDTH = 300;
const HEIGHT = 64;

/** A chart that `draw(values)` changes; `say(last)` is what it tells those who do not see it. */
export function line(tone, samples, say) {
  const area = s('path', { class: 'area' });
  const edge = s('path', { class: 'edge' });
  const svg = s(
    'svg',
    {
      class: `chart ${tone}`,
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': say(0),
    },
    area,
    edge,
  );
  return {
    node: svg,
    draw(values) {
      const most = Math.max(1, ...values) * 1.15;
      const step = WIDTH / (samples - 1);
      if (values.length === 1) values = [values[0], values[0]];
      const from = WIDTH - (values.length - 1) * step;
      const points = values.map((value, at) => [from + at * step, HEIGHT - 3 - (value / most) * (HEIGHT - 8)]);
      if (!points.length) return;
      const path = points.map(([x, y], at) => `${at ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
      edge.setAttribute('d', path);
      area.setAttribute('d', `${path}L${WIDTH} ${HEIGHT}L${points[0][0].toFixed(1)} ${HEIGHT}Z`);
      svg.setAttribute('aria-label', say(values.at(-1)));
    },
  };
}

/** Bars that share one length: `[{label, value, tone}]`. */
export function shares(parts) {
  const total = parts.reduce((sum, one) => sum + one.value, 0) || 1;
  let from = 0;
  const bars = parts
    .filter((one) => one.value > 0)
    .map((one) => {
      const width = (one.value / total) * WIDTH;
      const bar = s('rect', {
        class: `tone-${one.tone}`,
        x: from,
        y: 0,
        width: Math.max(1, width - 1.5),
        height: 10,
        rx: 2,
      });
      from += width;
      return bar;
    });
  const label = parts.map((one) => `${one.label} ${one.value}`).join(', ');
  return s(
    'svg',
    { class: 'shares', viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    bars,
  );
}
