'use strict';
const started = performance.now();
const $ = id => document.getElementById(id);
const element = (tag, content, click) => {
  const e = document.createElement(tag);
  e.textContent = content;
  if (click) e.onclick = click;
  return e;
};
const parsed = JSON.parse($('data').textContent);
const events = Array.isArray(parsed) ? parsed : parsed.traceEvents;
const BAR = 18, TITLE = 20, AREA = 60;
const milliseconds = us => us >= 1000 ? `${(us / 1000).toFixed(2)} ms` : `${us.toFixed(1)} us`;
const hue = s => { let h = 7; for (const c of s) h = (h * 31 + c.charCodeAt(0)) >>> 0; return h % 360; };

// Tracks in order, each with its slices in rows by how deep they lie in others, and values over time.
function read() {
  const processes = new Map(), tracks = new Map(), values = new Map();
  for (const e of events) {
    if (e.ph === 'M' && e.name === 'process_name') processes.set(e.pid, e.args.name);
    const key = `${e.pid}/${e.tid ?? 0}`;
    if (!tracks.has(key) && (e.ph === 'X' || e.name === 'thread_name')) tracks.set(key, {pid: e.pid, tid: e.tid ?? 0, name: '', slices: [], rows: 1});
    if (e.ph === 'M' && e.name === 'thread_name') tracks.get(key).name = e.args.name;
    if (e.ph === 'X') tracks.get(key).slices.push({e, start: e.ts, end: e.ts + (e.dur ?? 0), row: 0, self: e.dur ?? 0});
    if (e.ph === 'C') {
      const name = `${e.pid}/${e.name}`;
      if (!values.has(name)) values.set(name, {pid: e.pid, name: e.name, points: []});
      values.get(name).points.push([e.ts, Number(Object.values(e.args)[0])]);
    }
  }
  const list = [...tracks.values()].filter(t => t.slices.length).sort((a, b) => a.pid - b.pid || a.tid - b.tid);
  for (const t of list) {
    t.title = `${processes.get(t.pid) ?? t.pid}: ${t.name || t.tid}`;
    t.slices.sort((a, b) => a.start - b.start || b.end - a.end);
    const open = [];
    for (const s of t.slices) {
      while (open.length && open[open.length - 1].end <= s.start) open.pop();
      if (open.length) open[open.length - 1].self -= Math.min(s.end, open[open.length - 1].end) - s.start;
      s.row = open.length;
      s.track = t;
      open.push(s);
      t.rows = Math.max(t.rows, open.length);
    }
    t.byRow = Array.from({length: t.rows}, () => []);
    for (const s of t.slices) t.byRow[s.row].push(s);
  }
  const areas = [...values.values()].map(v => ({...v, title: `${processes.get(v.pid) ?? v.pid}: ${v.name}`, most: Math.max(1e-9, ...v.points.map(p => p[1]))}));
  for (const a of areas) a.points.sort((p, q) => p[0] - q[0]);
  return {tracks: list, areas};
}

const {tracks, areas} = read();
const slices = tracks.flatMap(t => t.slices);
const t0 = slices.reduce((m, s) => Math.min(m, s.start), Infinity), t1 = slices.reduce((m, s) => Math.max(m, s.end), -Infinity);
let y = 0;
for (const t of tracks) { t.y = y; y += TITLE + t.rows * BAR + 8; }
for (const a of areas) { a.y = y; y += TITLE + AREA + 8; }
const height = y, canvas = $('canvas');
let left = 0, top_ = 0, scale = 1, picked = null, ratio = 1, waiting = false;

const x = t => (t - t0) * scale + left;
function resize() {
  ratio = window.devicePixelRatio || 1;
  const w = $('chart').clientWidth, h = $('chart').clientHeight;
  canvas.width = w * ratio; canvas.height = h * ratio;
  canvas.style.width = w + 'px'; canvas.style.height = h + 'px';
}
function fit() {
  scale = slices.length ? $('chart').clientWidth / Math.max(1e-3, t1 - t0) : 1;
  left = 0; top_ = 0;
  draw();
}
function draw() { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; paint(); }); } }
function paint() {
  const c = canvas.getContext('2d'), w = $('chart').clientWidth, h = $('chart').clientHeight;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, w, h);
  c.font = '11px system-ui,sans-serif'; c.textBaseline = 'middle';
  for (const t of tracks) {
    const at = t.y + top_;
    if (at > h || at + TITLE + t.rows * BAR < 0) continue;
    c.fillStyle = '#555'; c.fillText(t.title, 6, at + TITLE / 2);
    t.byRow.forEach((row, r) => bars(c, row, at + TITLE + r * BAR, w));
  }
  for (const a of areas) area(c, a, w, h);
}
function bars(c, row, y, w) {
  let covered = -1;  // what is thinner than a pixel is drawn once
  for (const s of row) {
    const x0 = x(s.start), x1 = Math.max(x(s.end), x0 + 0.5);
    if (x1 < 0 || x0 > w || (x1 < covered && s !== picked)) continue;
    covered = Math.max(covered, Math.ceil(x0 + 0.5));
    const kind = s.e.args?.kind ?? s.e.name;
    c.fillStyle = s === picked ? '#e0007a' : `hsl(${hue(kind)} 60% 78%)`;
    c.fillRect(x0, y, Math.max(0.5, x1 - x0 - (x1 - x0 > 3 ? 0.5 : 0)), BAR - 1);
    if (x1 - x0 < 24) continue;
    c.save(); c.beginPath(); c.rect(Math.max(0, x0), y, x1 - Math.max(0, x0), BAR); c.clip();
    c.fillStyle = '#222'; c.fillText(s.e.name, Math.max(0, x0) + 3, y + BAR / 2);
    c.restore();
  }
}
function area(c, a, w, h) {
  const at = a.y + top_, base = at + TITLE + AREA;
  if (at > h || base < 0) return;
  c.fillStyle = '#555'; c.fillText(`${a.title}, at most ${a.most.toLocaleString()}`, 6, at + TITLE / 2);
  c.beginPath(); c.moveTo(x(a.points[0][0]), base);
  let last = base;
  for (const [t, v] of a.points) { c.lineTo(x(t), last); last = base - v / a.most * AREA; c.lineTo(x(t), last); }
  c.lineTo(x(Math.max(t1, a.points[a.points.length - 1][0])), last); c.lineTo(x(t1), base); c.closePath();
  c.fillStyle = '#bcd4f0'; c.fill(); c.strokeStyle = '#5b86b8'; c.stroke();
}

function at(px, py) {
  for (const t of tracks) {
    const row = Math.floor((py - top_ - t.y - TITLE) / BAR);
    if (row < 0 || row >= t.rows) continue;
    const time = (px - left) / scale + t0;
    return t.byRow[row].find(s => time >= s.start && time <= Math.max(s.end, s.start + 1 / scale));
  }
}
function pick(s, move) {
  picked = s;
  if (move) {
    const w = $('chart').clientWidth, h = $('chart').clientHeight;
    scale = w / Math.max(1e-3, (s.end - s.start) * 8);
    left = w / 2 - ((s.start + s.end) / 2 - t0) * scale;
    top_ = Math.min(0, Math.max(h - height, h / 2 - s.track.y));
  }
  const list = document.createElement('dl');
  const row = (name, value) => list.append(element('dt', name), element('dd', value));
  row('what', s.e.name); row('track', s.track.title);
  row('time', milliseconds(s.end - s.start)); row('of its own', milliseconds(s.self)); row('starts at', milliseconds(s.start - t0));
  for (const [name, value] of Object.entries(s.e.args ?? {})) row(name, typeof value === 'number' ? value.toLocaleString() : value);
  $('detail').replaceChildren(element('h2', 'slice'), list);
  document.body.dataset.picked = s.e.name;
  draw();
}
function search() {
  const words = $('search').value.toLowerCase().split(/\s+/).filter(w => w);
  $('found').replaceChildren();
  let count = 0;
  if (words.length) for (const s of slices) {
    const a = s.e.args ?? {};
    const all = `${s.e.name} ${a.kind ?? ''} ${a.op ?? ''} ${a.scope ?? ''} ${a.source ?? ''} ${a.detail ?? ''}`.toLowerCase();
    if (!words.every(w => all.includes(w)) || ++count > 200) continue;
    $('found').append(element('a', `${s.e.name} ${milliseconds(s.end - s.start)} ${a.source ?? ''}`, () => pick(s, true)));
  }
  if (words.length) $('found').prepend(element('h2', `found ${count}${count > 200 ? ', the first 200' : ''}`));
  document.body.dataset.found = count;
}
// What a slice counts as: compiling, running on a device, work of the host, waiting.
const PLACES = {emit: 'compiling', compile: 'compiling', pass: 'compiling', code: 'compiling', run: 'running', thunk: 'running',
  launch: 'running', wait: 'waiting', queue: 'waiting', record: '', counter: ''};
const placeOf = s => PLACES[s.e.args?.kind] ?? 'host';
// The time that slices have of their own, by what `name` gives of one; a row leads to its longest slice.
function table(title, name, more) {
  const sums = new Map();
  for (const s of slices) {
    const key = name(s);
    if (!key) continue;
    if (!sums.has(key)) sums.set(key, {time: 0, count: 0, more: new Set(), longest: s});
    const sum = sums.get(key);
    sum.time += s.self; sum.count++;
    if (more(s)) sum.more.add(more(s));
    if (s.self > sum.longest.self) sum.longest = s;
  }
  const rows = document.createElement('table');
  for (const [key, sum] of [...sums].sort((a, b) => b[1].time - a[1].time).slice(0, 100)) {
    const row = document.createElement('tr');
    row.append(element('td', milliseconds(sum.time)), element('td', sum.count), element('td', `${key} ${[...sum.more].slice(0, 4).join(' ')}`));
    row.onclick = () => pick(sum.longest, true);
    rows.append(row);
  }
  if (sums.size) $('lines').append(element('h2', title), rows);
  return sums;
}
// "net/conv1" of "net/conv1/aten__convolution": the layer; of what lies in none, nothing.
const layerOf = s => {
  const scope = s.e.args?.scope ?? '', at = scope.lastIndexOf('/');
  return placeOf(s) === 'running' && at > 0 ? scope.slice(0, at) : '';
};
function tables() {
  const places = table('time by what it is, number', placeOf, () => '');
  const layers = table('running, by layer, number, ops', layerOf, s => s.e.args.op);
  const lines = table('time by line, number, ops', s => placeOf(s) !== 'waiting' && placeOf(s) !== '' ? s.e.args?.source : '', s => s.e.args.op);
  document.body.dataset.places = [...places.keys()].sort().join(',');
  document.body.dataset.layers = [...layers.keys()].sort().join(',');
  document.body.dataset.lines = lines.size;
}

let drag = null;
canvas.addEventListener('mousedown', e => { drag = {x: e.clientX, y: e.clientY, left, top: top_, moved: false}; });
window.addEventListener('mousemove', e => {
  if (!drag) return;
  if (Math.abs(e.clientX - drag.x) + Math.abs(e.clientY - drag.y) > 4) drag.moved = true;
  left = drag.left + e.clientX - drag.x;
  top_ = Math.min(0, drag.top + e.clientY - drag.y);
  draw();
});
window.addEventListener('mouseup', () => { setTimeout(() => { drag = null; }); });
canvas.addEventListener('click', e => {
  if (drag && drag.moved) return;
  const s = at(e.offsetX, e.offsetY);
  if (s) pick(s, false);
});
canvas.addEventListener('wheel', e => {
  e.preventDefault();
  if (e.shiftKey) { top_ = Math.min(0, top_ - e.deltaY); return draw(); }
  const g = Math.exp(-e.deltaY * 0.0015);
  left = e.offsetX - (e.offsetX - left) * g;
  scale *= g;
  draw();
}, {passive: false});
$('search').addEventListener('input', search);
$('search').addEventListener('keydown', e => { if (e.key === 'Enter') $('found').querySelector('a')?.click(); });
$('fit').onclick = fit;
window.addEventListener('resize', () => { resize(); draw(); });
$('title').textContent = JSON.parse($('title-text').textContent);
$('status').textContent = slices.length ? `${slices.length.toLocaleString()} slices, ${milliseconds(t1 - t0)}` : 'nothing was collected';
resize();
tables();
fit();
paint();
document.body.dataset.slices = slices.length;
document.body.dataset.areas = areas.map(a => a.name).join(',');
document.body.dataset.milliseconds = Math.round(performance.now() - started);
