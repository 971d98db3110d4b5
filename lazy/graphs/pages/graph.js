'use strict';
const started = performance.now();
const D = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const NAME = 0, OP = 1, SHAPE = 2, IN = 3, PATH = 4, PLACE = 5, ATTRS = 6, LABEL = 7, ROOTS = 8, FRAMES = 9, NOTE = 10;
const text = i => D.texts[i];
const W = 168, H = 40, GAP = 22, ROW = 84, MANY = 120, STRIP = 64, LEGIBLE = 0.45;
const COLOURS = {differs: '#ffb4a8', only: '#cfe8c6', picked: '#e0007a'};
const element = (tag, content, click) => {
  const e = document.createElement(tag);
  e.textContent = content;
  if (click) e.onclick = click;
  return e;
};
const placeText = p => p[1] ? `${p[2] ? p[2] + '@' : ''}${p[0].slice(p[0].lastIndexOf('/') + 1)}:${p[1]}` : '';
const hue = s => { let h = 7; for (const c of s) h = (h * 31 + c.charCodeAt(0)) >>> 0; return h % 360; };

// A graph: users of each node, the tree of scopes, which of them are closed.
class Graph {
  constructor(data) {
    this.title = data.title;
    this.nodes = data.nodes;
    this.users = data.nodes.map(() => []);
    this.scopes = new Map([['', {path: '', count: 0, depth: 0}]]);
    this.nodes.forEach((n, i) => {
      for (let k = 0; k < n[IN].length; k += 2) {
        const users = this.users[n[IN][k]];
        if (users[users.length - 1] !== i) users.push(i);
      }
      for (const path of this.pathsOf(i)) {
        if (!this.scopes.has(path)) this.scopes.set(path, {path, count: 0, depth: path.split('/').length});
        this.scopes.get(path).count++;
      }
    });
    this.closed = new Set();
    this.closeToFit();
  }
  // The scopes that a node lies in, outermost first.
  pathsOf(i) {
    const path = text(this.nodes[i][PATH]), paths = [];
    if (path === '') return paths;
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) paths.push(path.slice(0, at));
    paths.push(path);
    return paths;
  }
  // Opens scopes level by level while few enough boxes are to be seen.
  closeToFit() {
    const all = [...this.scopes.values()].filter(s => s.path !== '');
    if (this.nodes.length <= MANY) return;
    for (const s of all) this.closed.add(s.path);
    for (let depth = 1; ; depth++) {
      const level = all.filter(s => s.depth === depth);
      if (!level.length) return;
      for (const s of level) this.closed.delete(s.path);
      if (this.boxes().length <= MANY) continue;
      for (const s of level) this.closed.add(s.path);
      return;
    }
  }
  // The box that stands for each node: itself, or the outermost closed scope around it.
  boxes() {
    const memo = new Map(), byScope = new Map(), boxes = [];
    this.boxOf = new Array(this.nodes.length);
    this.nodes.forEach((n, i) => {
      let scope = memo.get(n[PATH]);
      if (scope === undefined) memo.set(n[PATH], scope = this.pathsOf(i).find(p => this.closed.has(p)) ?? null);
      let box = scope === null ? undefined : byScope.get(scope);
      if (box === undefined) {
        box = {id: boxes.length, node: scope === null ? i : -1, scope, nodes: 0, first: i, ins: [], outs: []};
        boxes.push(box);
        if (scope !== null) byScope.set(scope, box);
      }
      box.nodes++;
      this.boxOf[i] = box;
    });
    return boxes;
  }
}

const bytesText = b => { let u = 0; for (; b >= 1024 && u < 4; u++) b /= 1024; return `${u ? b.toFixed(1) : b} ${['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][u]}`; };

// Bytes that hold values while each node runs, in the order of the nodes.
class Memory {
  constructor(data) {
    this.values = data.memory;  // [node, bytes, first node, last node]
    this.bytes = new Float64Array(data.nodes.length + 1);
    for (const [, bytes, first, last] of this.values) { this.bytes[first] += bytes; this.bytes[last + 1] -= bytes; }
    this.peak = 0;
    for (let i = 1; i < data.nodes.length; i++) {
      this.bytes[i] += this.bytes[i - 1];
      if (this.bytes[i] > this.bytes[this.peak]) this.peak = i;
    }
    this.bytes = this.bytes.subarray(0, data.nodes.length);
  }
  // The node with the most bytes around a place from 0 to 1, as far as the eye is off.
  peakNear(place, off) {
    const n = this.bytes.length, end = Math.min(n, Math.floor((place + off) * n) + 1);
    let best = Math.min(n - 1, Math.max(0, Math.floor((place - off) * n)));
    for (let i = best; i < end; i++) if (this.bytes[i] > this.bytes[best]) best = i;
    return best;
  }
  // The values that are there while a node runs, the largest first.
  at(i) { return this.values.filter(v => v[2] <= i && i <= v[3]).sort((a, b) => b[1] - a[1]); }
}

// Boxes in rows: operands above their users, neighbours below each other.
function layOut(graph) {
  const boxes = graph.boxes(), edges = [], seen = new Set();
  graph.nodes.forEach((n, i) => {
    const to = graph.boxOf[i];
    for (let k = 0; k < n[IN].length; k += 2) {
      const from = graph.boxOf[n[IN][k]], key = from.id * boxes.length + to.id;
      if (from === to || seen.has(key)) continue;
      seen.add(key);
      const edge = {from, to, node: n[IN][k], output: n[IN][k + 1]};
      edges.push(edge);
      from.outs.push(edge);
      to.ins.push(edge);
    }
  });
  for (const b of boxes) b.row = 0;
  // A closed scope may both feed a box and be fed by it: edges to earlier boxes count for nothing.
  for (const b of boxes) for (const e of b.outs) if (e.to.id > b.id) e.to.row = Math.max(e.to.row, b.row + 1);
  for (let i = boxes.length - 1; i >= 0; i--) {  // what has no operands stands above its first user
    const b = boxes[i], users = b.outs.filter(e => e.to.id > b.id);
    if (!b.ins.length && users.length) b.row = Math.max(0, Math.min(...users.map(e => e.to.row)) - 1);
  }
  const rows = [];
  for (const b of boxes) (rows[b.row] ??= []).push(b);
  for (let r = 0; r < rows.length; r++) rows[r] ??= [];
  const place = row => row.forEach((b, i) => { b.x = (i - (row.length - 1) / 2) * (W + GAP); });
  rows.forEach(place);
  const mean = (list, end) => { let s = 0; for (const e of list) s += e[end].x; return s / list.length; };
  for (let sweep = 0; sweep < 6; sweep++) {
    const down = sweep % 2 === 0;
    for (let k = 0; k < rows.length; k++) {
      const row = rows[down ? k : rows.length - 1 - k];
      for (const b of row) {
        const list = down ? b.ins : b.outs;
        b.want = list.length ? mean(list, down ? 'from' : 'to') : b.x;
      }
      row.sort((a, b) => a.want - b.want);
      // As near to where they want to be as they fit, in this order.
      let right = -Infinity, shift = 0;
      for (const b of row) { b.x = Math.max(b.want, right); right = b.x + W + GAP; shift += b.x - b.want; }
      for (const b of row) b.x -= shift / row.length;
    }
  }
  for (const b of boxes) b.y = b.row * ROW;
  for (const row of rows) row.sort((a, b) => a.x - b.x);
  return {boxes, edges, rows};
}

class View {
  constructor(data, index) {
    this.graph = new Graph(data);
    this.index = index;
    this.div = document.createElement('div');
    this.div.className = 'view';
    this.canvas = document.createElement('canvas');
    this.memory = new Memory(data);
    this.strip = document.createElement('canvas');
    this.strip.className = 'memory';
    this.strip.onclick = e => pick(this, this.memory.peakNear(e.offsetX / this.div.clientWidth, 4 / this.div.clientWidth), true);
    this.div.append(this.canvas, this.strip, element('span', `${data.title}: ${data.nodes.length} nodes`));
    $('views').append(this.div);
    this.zoom = 1; this.left = 0; this.top = 0; this.picked = -1;
    this.mark = new Map();
    this.listen();
  }
  listen() {
    let drag = null;
    this.canvas.addEventListener('mousedown', e => { drag = {x: e.clientX, y: e.clientY, left: this.left, top: this.top, moved: false}; });
    window.addEventListener('mousemove', e => {
      if (!drag) return;
      if (Math.abs(e.clientX - drag.x) + Math.abs(e.clientY - drag.y) > 4) drag.moved = true;
      this.left = drag.left + (e.clientX - drag.x); this.top = drag.top + (e.clientY - drag.y);
      this.draw();
    });
    window.addEventListener('mouseup', () => { setTimeout(() => { drag = null; }); });
    this.canvas.addEventListener('click', e => {
      if (drag && drag.moved) return;
      const box = this.at(e.offsetX, e.offsetY);
      if (box) box.node >= 0 ? pick(this, box.node) : showScope(this, box.scope);
    });
    this.canvas.addEventListener('dblclick', e => {
      const box = this.at(e.offsetX, e.offsetY);
      if (!box) return;
      if (box.scope !== null) this.toggle(box.scope, false);
      else { const paths = this.graph.pathsOf(box.node); if (paths.length) this.toggle(paths[paths.length - 1], true); }
    });
    this.canvas.addEventListener('wheel', e => {
      e.preventDefault();
      const f = Math.exp(-e.deltaY * 0.0015), zoom = Math.min(3, Math.max(0.01, this.zoom * f)), g = zoom / this.zoom;
      this.left = e.offsetX - (e.offsetX - this.left) * g; this.top = e.offsetY - (e.offsetY - this.top) * g;
      this.zoom = zoom;
      this.draw();
    }, {passive: false});
  }
  toggle(scope, close) {
    close ? this.graph.closed.add(scope) : this.graph.closed.delete(scope);
    const node = this.graph.nodes.findIndex((n, i) => this.graph.pathsOf(i).includes(scope));
    this.refresh();
    if (node >= 0) this.centre(this.graph.boxOf[node]);
  }
  refresh() { this.layout = layOut(this.graph); this.draw(); }
  resize() {
    const ratio = window.devicePixelRatio || 1, w = this.div.clientWidth, h = this.div.clientHeight;
    this.canvas.width = w * ratio; this.canvas.height = h * ratio;
    this.canvas.style.width = w + 'px'; this.canvas.style.height = h + 'px';
    this.strip.width = w * ratio; this.strip.height = STRIP * ratio;
    this.strip.style.width = w + 'px'; this.strip.style.height = STRIP + 'px';
    this.ratio = ratio;
  }
  fit() {
    let x0 = Infinity, x1 = -Infinity;
    for (const b of this.layout.boxes) { x0 = Math.min(x0, b.x); x1 = Math.max(x1, b.x + W); }
    const w = this.div.clientWidth, h = this.div.clientHeight - STRIP, rows = this.layout.rows.length;
    this.zoom = Math.min(1, Math.max(0.02, Math.min(w / (x1 - x0 + 40), h / (rows * ROW + 40))));
    if (this.zoom < LEGIBLE) return this.begin();
    this.left = w / 2 - (x0 + x1) / 2 * this.zoom;
    this.top = Math.max(20, (h - rows * ROW * this.zoom) / 2);
    this.draw();
  }
  // What is too large to be read as a whole is shown from its beginning: of the first rows the part with the most boxes.
  begin() {
    this.zoom = 0.6;
    const w = this.div.clientWidth, width = w / this.zoom - W - 40;
    const rows = Math.max(1, Math.floor(((this.div.clientHeight - STRIP) / this.zoom - 40) / ROW));
    const boxes = this.layout.rows.slice(0, rows).flat().sort((a, b) => a.x - b.x);
    let best = 0, most = 0;
    for (let first = 0, last = 0; last < boxes.length; last++) {
      while (boxes[last].x - boxes[first].x > width) first++;
      if (last - first + 1 > most) { most = last - first + 1; best = (boxes[first].x + boxes[last].x) / 2; }
    }
    this.left = w / 2 - (best + W / 2) * this.zoom;
    this.top = 24;
    this.draw();
  }
  // How many boxes are to be seen: for tests.
  seen() {
    const w = this.div.clientWidth, h = this.div.clientHeight - STRIP, z = this.zoom;
    return this.layout.boxes.filter(b => b.x * z + this.left > -W * z && b.x * z + this.left < w && b.y * z + this.top > -H * z && b.y * z + this.top < h).length;
  }
  centre(box) {
    if (this.zoom < 0.5) this.zoom = 0.8;
    this.left = this.div.clientWidth / 2 - (box.x + W / 2) * this.zoom;
    this.top = this.div.clientHeight / 2 - (box.y + H / 2) * this.zoom;
    this.draw();
  }
  at(px, py) {
    const x = (px - this.left) / this.zoom, y = (py - this.top) / this.zoom, row = this.layout.rows[Math.floor(y / ROW)];
    return row && y - Math.floor(y / ROW) * ROW <= H ? row.find(b => x >= b.x && x <= b.x + W) : undefined;
  }
  draw() { if (!this.waiting) { this.waiting = true; requestAnimationFrame(() => { this.waiting = false; this.paint(); }); } }
  paint() {
    this.paintMemory();
    const c = this.canvas.getContext('2d'), z = this.zoom;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.div.clientWidth, this.div.clientHeight);
    c.translate(this.left, this.top); c.scale(z, z);
    const y0 = -this.top / z - ROW, y1 = y0 + this.div.clientHeight / z + 2 * ROW;
    const x0 = -this.left / z - W, x1 = x0 + this.div.clientWidth / z + 2 * W;
    const chosen = this.picked >= 0 ? this.graph.boxOf[this.picked] : null;
    c.lineWidth = Math.max(1, 0.6 / z); c.strokeStyle = '#b9c2cd';
    c.beginPath();
    const bright = [];
    for (const e of this.layout.edges) {
      if (Math.max(e.from.y, e.to.y) < y0 || Math.min(e.from.y, e.to.y) > y1) continue;
      if (Math.max(e.from.x, e.to.x) < x0 || Math.min(e.from.x, e.to.x) > x1) continue;
      e.from === chosen || e.to === chosen ? bright.push(e) : this.line(c, e);
    }
    c.stroke();
    c.strokeStyle = COLOURS.picked; c.beginPath(); for (const e of bright) this.line(c, e); c.stroke();
    if (z > 0.75) this.edgeTexts(c, y0, y1);
    const first = Math.max(0, Math.floor(y0 / ROW)), last = Math.min(this.layout.rows.length - 1, Math.ceil(y1 / ROW));
    c.textBaseline = 'middle';
    for (let r = first; r <= last; r++) for (const b of this.layout.rows[r]) if (b.x > x0 - W && b.x < x1) this.box(c, b, z, b === chosen);
  }
  // The most of each pixel's nodes; the picked node is a line.
  paintMemory() {
    const c = this.strip.getContext('2d'), w = this.div.clientWidth, {bytes, peak} = this.memory, n = bytes.length;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, w, STRIP);
    if (!this.memory.values.length) return;
    c.fillStyle = '#bcd4f0';
    for (let x = 0; x < w; x++) {
      let most = 0;
      for (let i = Math.floor(x / w * n); i < Math.max(x / w * n + 1e-9, (x + 1) / w * n) && i < n; i++) most = Math.max(most, bytes[i]);
      const h = most / bytes[peak] * (STRIP - 18);
      c.fillRect(x, STRIP - h, 1, h);
    }
    c.fillStyle = '#555'; c.font = '11px system-ui';
    c.fillText(`memory, node by node: at most ${bytesText(bytes[peak])} at ${this.graph.nodes[peak][NAME]}`, 8, 12);
    c.fillStyle = COLOURS.picked;
    if (this.picked >= 0) c.fillRect(Math.floor((this.picked + 0.5) / n * w), 16, 1, STRIP - 16);
  }
  line(c, e) {
    const x0 = e.from.x + W / 2, y0 = e.from.y + H, x1 = e.to.x + W / 2, y1 = e.to.y, m = (y1 - y0) / 2;
    c.moveTo(x0, y0);
    if (Math.abs(m) > ROW) c.bezierCurveTo(x0, y0 + ROW / 2, x1, y1 - ROW / 2, x1, y1);
    else c.bezierCurveTo(x0, y0 + m, x1, y1 - m, x1, y1);
  }
  edgeTexts(c, y0, y1) {
    c.fillStyle = '#7a8694'; c.font = '9px system-ui'; c.textAlign = 'center';
    let drawn = 0;
    for (const e of this.layout.edges) {
      if (e.to.y < y0 || e.to.y > y1 || ++drawn > 400) continue;
      const at = 0.72;  // nearer to the user, where edges of one operand part
      c.fillText(text(this.graph.nodes[e.node][SHAPE]).slice(0, 40), e.from.x + (e.to.x - e.from.x) * at + W / 2, e.to.y - (e.to.y - e.from.y - H) * (1 - at));
    }
  }
  box(c, b, z, chosen) {
    const n = b.node >= 0 ? this.graph.nodes[b.node] : null, marked = this.mark.get(b.id);
    const plain = n ? `hsl(${hue(text(n[OP]))} 55% 93%)` : '#e7ecf3';
    c.fillStyle = marked ? COLOURS[marked] : plain;
    c.fillRect(b.x, b.y, W, H);
    c.strokeStyle = chosen ? COLOURS.picked : n ? '#8a97a6' : '#4a5a6e';
    c.lineWidth = chosen ? 3 : n && !n[ROOTS].length ? 1 : 2;
    c.strokeRect(b.x, b.y, W, H);
    if (z < 0.25) return;
    c.fillStyle = '#16202b'; c.textAlign = 'center';
    c.font = '12px system-ui';
    const one = n ? `${text(n[OP])}  ${n[NAME]}` : b.scope.slice(b.scope.lastIndexOf('/') + 1);
    c.fillText(one.slice(0, 27), b.x + W / 2, b.y + 13);
    c.fillStyle = '#56626f'; c.font = '10px system-ui';
    c.fillText((n ? text(n[LABEL]) || text(n[SHAPE]) : `${b.nodes} nodes, double click opens`).slice(0, 32), b.x + W / 2, b.y + 29);
  }
}

function showScope(view, scope) {
  const detail = $('detail');
  detail.replaceChildren(element('h2', 'scope'), element('div', scope));
  detail.append(element('a', `open (${view.graph.scopes.get(scope).count} nodes)`, () => view.toggle(scope, false)));
}

function links(view, title, list) {
  const detail = $('detail');
  detail.append(element('h2', `${title} (${list.length})`));
  for (const i of list.slice(0, 100)) {
    const n = view.graph.nodes[i];
    detail.append(element('a', `${n[NAME]} ${text(n[OP])} ${text(n[SHAPE])}`, () => pick(view, i, true)));
  }
  if (list.length > 100) detail.append(element('div', `and ${list.length - 100} more`));
}

function memoryBeside(view, i) {
  const there = view.memory.at(i), detail = $('detail');
  if (!there.length) return;
  detail.append(element('h2', `memory meanwhile: ${bytesText(view.memory.bytes[i])} of ${there.length} values`));
  for (const [node, bytes] of there.slice(0, 20)) {
    const n = view.graph.nodes[node];
    detail.append(element('a', `${bytesText(bytes)} ${n[NAME]} ${text(n[LABEL]) || text(n[OP])} ${placeText(D.places[n[PLACE]])}`, () => pick(view, node, true)));
  }
}

function source(place) {
  if (!place[1]) return;
  const detail = $('detail'), link = element('a', placeText(place));
  if (place[0].startsWith('/')) link.href = `vscode://file${place[0]}:${place[1]}`;
  link.id = 'place';
  detail.append(element('h2', 'source'), link);
  if (!place[3]) return;
  const pre = document.createElement('pre');
  place[3].slice(1).forEach((line, k) => {
    const number = place[3][0] + k;
    pre.append(element(number === place[1] ? 'mark' : 'span', `${String(number).padStart(4)} ${line}\n`));
  });
  detail.append(pre);
}

// Selects a node: its box is opened and centred if asked for, the panel says what it is.
function pick(view, i, move, alone) {
  const n = view.graph.nodes[i], detail = $('detail'), paths = view.graph.pathsOf(i);
  view.picked = i;
  if (move) {
    const hidden = paths.filter(p => view.graph.closed.has(p));
    hidden.forEach(p => view.graph.closed.delete(p));
    if (hidden.length) view.refresh();
    paint();
    view.centre(view.graph.boxOf[i]);
  }
  if (alone) return view.draw();
  detail.replaceChildren(element('h2', 'node'));
  const list = document.createElement('dl');
  const row = (name, value) => { if (value !== '') list.append(element('dt', name), element('dd', value)); };
  row('name', n[NAME]); row('op', text(n[OP])); row('shape', text(n[SHAPE])); row('is', text(n[LABEL]));
  row('attributes', text(n[ATTRS])); row('result', n[ROOTS].join(', ')); row('note', text(n[NOTE]));
  detail.append(list);
  if (paths.length) {
    detail.append(element('h2', 'scope (a click closes it)'));
    for (const p of paths) {
      const crumb = element('a', '/' + p.slice(p.lastIndexOf('/') + 1), () => view.toggle(p, true));
      crumb.className = 'crumb';
      detail.append(crumb);
    }
  }
  source(D.places[n[PLACE]]);
  if (text(n[FRAMES])) {
    const stack = element('pre', text(n[FRAMES]));
    stack.id = 'stack';
    detail.append(element('h2', 'stack'), stack);
  }
  links(view, 'operands', n[IN].filter((_, k) => k % 2 === 0));
  links(view, 'users', view.graph.users[i]);
  memoryBeside(view, i);
  document.body.dataset.picked = n[NAME];
  view.draw();
  const there = D.difference ? (view.index ? D.difference.match.indexOf(i) : D.difference.match[i]) : -1;
  if (there >= 0) pick(views[1 - view.index], there, move, true);
}

function search() {
  const words = $('search').value.toLowerCase().split(/\s+/).filter(w => w), found = $('found');
  found.replaceChildren();
  let count = 0;
  if (words.length) for (const view of views) {
    view.graph.nodes.forEach((n, i) => {
      const all = (n[NAME] + ' ' + text(n[OP]) + ' ' + text(n[SHAPE]) + ' ' + text(n[PATH]) + ' ' + text(n[LABEL]) + ' ' +
        text(n[ATTRS]) + ' ' + text(n[NOTE]) + ' ' + placeText(D.places[n[PLACE]])).toLowerCase();
      if (!words.every(w => all.includes(w)) || ++count > 200) return;
      found.append(element('a', `${n[NAME]} ${text(n[OP])} ${text(n[SHAPE])}`, () => pick(view, i, true)));
    });
  }
  if (words.length) found.prepend(element('h2', `found ${count}${count > 200 ? ', the first 200' : ''}`));
  document.body.dataset.found = count;
}

function differences() {
  if (!D.difference) return;
  const list = D.difference.differs, box = $('differs');
  box.append(element('h2', `differences (${list.length}): A left, B right`));
  for (const [a, b, what] of list.slice(0, 500)) {
    const n = a >= 0 ? views[0].graph.nodes[a] : views[1].graph.nodes[b];
    box.append(element('a', `${n[NAME]} ${text(n[OP])}: ${what}`, () => {
      if (a >= 0) pick(views[0], a, true);
      if (b >= 0) pick(views[1], b, true, a >= 0);
    }));
  }
}

// Colours of boxes: what differs, and what only one graph has.
function paint() {
  if (!D.difference) return;
  for (const view of views) {
    view.mark.clear();
    for (const d of D.difference.differs) {
      const i = d[view.index];
      if (i >= 0) view.mark.set(view.graph.boxOf[i].id, d[1 - view.index] >= 0 ? 'differs' : 'only');
    }
  }
}

const views = D.graphs.map((g, i) => new View(g, i));
const all = f => { for (const view of views) f(view); };
$('title').textContent = D.graphs.map(g => g.title).join('  |  ');
$('search').addEventListener('input', search);
$('search').addEventListener('keydown', e => { if (e.key === 'Enter') $('found').querySelector('a')?.click(); });
$('open').onclick = () => { all(v => { v.graph.closed.clear(); v.refresh(); }); paint(); all(v => v.fit()); };
$('close').onclick = () => {
  all(v => { for (const s of v.graph.scopes.keys()) if (s !== '') v.graph.closed.add(s); v.refresh(); });
  paint();
  all(v => v.fit());
};
$('fit').onclick = () => all(v => v.fit());
window.addEventListener('resize', () => all(v => { v.resize(); v.draw(); }));
all(v => { v.resize(); v.refresh(); v.fit(); });
paint();
differences();
all(v => v.paint());
document.body.dataset.peaks = views.map(v => v.memory.values.length ? `${v.memory.bytes[v.memory.peak]}@${v.graph.nodes[v.memory.peak][NAME]}` : '').join(',');
document.body.dataset.seen = views.map(v => v.seen()).join(',');
document.body.dataset.zoom = views.map(v => v.zoom.toFixed(2)).join(',');
document.body.dataset.boxes = views.map(v => v.layout.boxes.length).join(',');
document.body.dataset.milliseconds = Math.round(performance.now() - started);
$('status').textContent = `${document.body.dataset.boxes} boxes; a double click opens and closes scopes`;
