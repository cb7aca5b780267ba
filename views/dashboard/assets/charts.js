// Line charts as SVG. Colour is never the only difference: lines differ in their
// dashes, points in their shape, and each chart says in words what it shows.
import { h, now } from './common.js';

const margin = { left: 38, right: 8, top: 8, bottom: 20 };

function frame(width, height, from, to, low, high, unit) {
  const x = (t) => margin.left + ((t - from) / Math.max(1, to - from)) * (width - margin.left - margin.right);
  const y = (v) => height - margin.bottom - ((v - low) / (high - low || 1)) * (height - margin.top - margin.bottom);
  const marks = [];
  for (const v of [low, (low + high) / 2, high]) {
    marks.push(h('line', { class: 'grid', x1: margin.left, x2: width - margin.right, y1: y(v), y2: y(v) }));
    marks.push(h('text', { x: margin.left - 5, y: y(v) + 4, 'text-anchor': 'end' }, number(v) + unit));
  }
  const clock = (t) => new Date(t).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit',
    second: to - from < 600000 ? '2-digit' : undefined });
  marks.push(h('text', { x: margin.left, y: height - 4 }, clock(from)));
  if (width > 240) marks.push(h('text', { x: width - margin.right, y: height - 4, 'text-anchor': 'end' }, clock(to)));
  return { x, y, marks };
}

const number = (v) => (Number.isInteger(v) ? String(v) : Number(v.toPrecision(3)).toString());

// stairs draws a value that stays until it changes.
function stairs(samples, f, value, until) {
  let d = '';
  samples.forEach((s, i) => { d += (i ? 'H' : 'M') + f.x(s.t).toFixed(1) + (i ? 'V' : ',') + f.y(value(s)).toFixed(1);
    });
  return d && d + 'H' + f.x(until).toFixed(1);
}

export const key = (kind, text) => h('span', { class: 'key chart' },
  h('svg', { viewBox: '0 0 22 8', 'aria-hidden': 'true' }, h('line', { class: kind, x1: 0, x2: 22, y1: 4, y2: 4 })),
  text);

const svg = (width, height, label, ...children) => h('svg', { class: height < 50 ? 'chart low' : 'chart',
  viewBox: '0 0 ' + width + ' ' + height,
  role: 'img', 'aria-label': label }, children);

// overTime draws the weight and the pods of one workload's release.
export function overTime(list, moving, width) {
  const samples = list.map((s) => ({ ...s, t: Date.parse(s.at) }));
  const last = samples[samples.length - 1];
  const until = moving ? Math.max(now(), last.t) : last.t;
  const from = samples[0].t, height = 150;
  const top = Math.max(1, ...samples.map((s) => Math.max(s.new, s.old, s.want)));
  const w = frame(width, height, from, until, 0, 100, '%');
  const p = frame(width, height, from, until, 0, top % 2 && top > 1 ? top + 1 : top, '');
  const real = stairs(samples, w, (s) => s.real, until);
  return [
    h('figure', {}, svg(width, height,
      'Weight over time: now ' + last.weight + '% asked and ' + last.real + '% reached.',
      w.marks, h('path', { class: 'fill', d: real + 'V' + w.y(0) + 'H' + w.x(from) + 'Z' }),
        h('path', { class: 'real', d: real }), h('path', { class: 'asked',
        d: stairs(samples, w, (s) => s.weight, until) })),
    h('figcaption', {}, key('asked', 'weight asked'), key('real', 'weight reached'))),
    h('figure', {}, svg(width, height,
      'Ready pods over time: now ' + last.new + ' of the new version and ' + last.old + ' of the stable one.',
      p.marks, h('path', { class: 'oldline', d: stairs(samples, p, (s) => s.old, until) }),
        h('path', { class: 'newline', d: stairs(samples, p, (s) => s.new, until) })),
    h('figcaption', {}, key('newline', 'ready pods, new'), key('oldline', 'ready pods, stable'))),
  ];
}

// limitsOf reads the numbers that a condition compares with: result[0] < 0.05.
export function limitsOf(condition) {
  return [...(condition
    || '').matchAll(/(?:<=?|>=?|==)\s*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)/gi)]
    .map((m) => Number(m[1])).filter(Number.isFinite);
}

const valueOf = (m) => { const found = /-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/i.exec(m.value || '');
  return found ? Number(found[0]) : NaN; };

function point(f, m) {
  const x = f.x(m.t), y = f.y(m.v), title = h('title', {},
    new Date(m.t).toLocaleTimeString() + ': ' + m.value + ', ' + m.phase + (m.message ? ': ' + m.message : ''));
  if (m.phase === 'Successful') return h('circle', { class: m.phase, cx: x, cy: y, r: 4 }, title);
  if (m.phase === 'Failed' || m.phase === 'Error') return h('path',
    { class: m.phase, d: `M${x - 5},${y - 3}l2,-2l3,3l3,-3l2,2l-3,3l3,3l-2,2l-3,-3l-3,3l-2,-2l3,-3z` }, title);
  return h('polygon', { class: m.phase, points: `${x},${y - 5} ${x + 5},${y} ${x},${y + 5} ${x - 5},${y}` }, title);
}

// measured draws the measurements of one metric and what they are compared with;
// null if they are no numbers.
export function measured(metric, width) {
  const points = (metric.measurements || []).map((m) => ({ ...m, t: Date.parse(m.at),
    v: valueOf(m) })).filter((m) => Number.isFinite(m.v));
  if (points.length === 0) return null;
  const limits = limitsOf(metric.condition), all = [...points.map((p) => p.v), ...limits, 0];
  const low = Math.min(...all);
  let high = Math.max(...all);
  high = high === low ? low + 1 : high + (high - low) * 0.08;
  const height = 130, to = points[points.length - 1].t, f = frame(width, height, points[0].t,
    to === points[0].t ? to + 1000 : to, low, high, '');
  const d = points.map((p, i) => (i ? 'L' : 'M') + f.x(p.t).toFixed(1) + ',' + f.y(p.v).toFixed(1)).join('');
  const failed = points.filter((p) => p.phase === 'Failed' || p.phase === 'Error').length;
  return svg(width, height,
    metric.metric + ': ' + points.length + ' values, the last one '
      + points[points.length - 1].value + ', ' + failed + ' of them failed.',
    f.marks, limits.map((v) => [h('line', { class: 'limit', x1: margin.left, x2: width - margin.right, y1: f.y(v),
      y2: f.y(v) }), h('text', { class: 'limittext', x: width - margin.right, y: f.y(v) - 4, 'text-anchor': 'end' },
      number(v))]),
    h('path', { class: 'value', d }), points.map((p) => point(f, p)));
}

// amount is a number of requests or evidence, as gitrollout get prints it.
export function amount(v) {
  if (v > 0 && v < 0.01) return '<0.01';
  return v > 1e12 ? '>1e12' : (v < 10 ? Number(v.toPrecision(2)) : Math.round(v)).toLocaleString('en');
}

// weighed draws evidence on a log scale from 1 to its limit.
export function weighed(e, text, width) {
  const length = width - 2 * margin.right, x = (share) => margin.right + share * length, decades = [];
  for (let v = 1; v < e.limit / 6; v *= 10) decades.push(v);
  return svg(width, 42, 'Evidence ' + text + ', on a log scale.',
    h('rect', { class: 'track', x: x(0), y: 8, width: length, height: 10 }),
    h('rect', { class: e.share >= 1 ? 'Failed' : 'weight', x: x(0), y: 8, width: length * (e.share || 0), height: 10 }),
    decades.map((v, i) => [h('line', { class: 'tick', x1: x(i / Math.log10(e.limit)), x2: x(i / Math.log10(e.limit)), y1: 18, y2: 23 }),
      h('text', { x: x(i / Math.log10(e.limit)), y: 36, 'text-anchor': i ? 'middle' : 'start' }, amount(v))]),
    h('line', { class: 'limit', x1: x(1), x2: x(1), y1: 2, y2: 24 }),
    h('text', { class: 'limittext', x: x(1), y: 36, 'text-anchor': 'end' }, 'limit ' + amount(e.limit)));
}
