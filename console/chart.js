// SVG charts: a line over time and a bar of shares. Their colours come from style.css, so they follow the theme.

import { createSvg } from './dom.js';

const WIDTH = 300;
const HEIGHT = 64;

/** A line chart; `draw(values)` updates it. `describeValue(last)` gives its label for screen readers. */
export function createLineChart(series, samples, describeValue) {
  const area = createSvg('path', { class: 'area' });
  const edge = createSvg('path', { class: 'edge' });
  const svg = createSvg(
    'svg',
    {
      class: `chart ${series}`,
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': describeValue(0),
    },
    area,
    edge,
  );
  return {
    node: svg,
    draw(values) {
      const maxValue = Math.max(1, ...values) * 1.15;
      const step = WIDTH / (samples - 1);
      if (values.length === 1) values = [values[0], values[0]];
      const startX = WIDTH - (values.length - 1) * step;
      const points = values.map((value, index) => [
        startX + index * step,
        HEIGHT - 3 - (value / maxValue) * (HEIGHT - 8),
      ]);
      if (!points.length) return;
      const path = points.map(([x, y], index) => `${index ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
      edge.setAttribute('d', path);
      area.setAttribute('d', `${path}L${WIDTH} ${HEIGHT}L${points[0][0].toFixed(1)} ${HEIGHT}Z`);
      svg.setAttribute('aria-label', describeValue(values.at(-1)));
    },
  };
}

/** A bar divided in proportion to the values of `parts`: `[{label, value, tone}]`. */
export function renderShareBar(parts) {
  const total = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  let offset = 0;
  const bars = parts
    .filter((part) => part.value > 0)
    .map((part) => {
      const width = (part.value / total) * WIDTH;
      const bar = createSvg('rect', {
        class: `tone-${part.tone}`,
        x: offset,
        y: 0,
        width: Math.max(1, width - 1.5),
        height: 10,
        rx: 2,
      });
      offset += width;
      return bar;
    });
  const label = parts.map((part) => `${part.label} ${part.value}`).join(', ');
  return createSvg(
    'svg',
    { class: 'shares', viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    bars,
  );
}
