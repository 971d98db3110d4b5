'use strict';
const D = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const W = 1060, H = 460, L = 92, R = 24, T = 18, B = 52;
const short = v => {
  const a = Math.abs(v);
  for (const [s, u] of [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k']]) if (a >= s) return +(v / s).toPrecision(4) + u;
  return String(+v.toPrecision(4));
};
for (const [id, first] of [['x', D.x], ['y', D.y]]) {
  D.columns.forEach((c, i) => $(id).add(new Option(c.name, i, i === first, i === first)));
  $(id).onchange = draw;
}
D.axes.forEach((a, i) => $('colour').add(new Option(a.name, i)));
$('colour').onchange = draw;
$('log').onchange = draw;
const hue = (i, n) => n < 2 ? '#2f6fb0' : `hsl(${Math.round(225 - 215 * i / (n - 1))} 68% 47%)`;
const cost = (p, c) => D.columns[c].less ? p[1][c] : -p[1][c];

function scale(values, low, high, log) {
  let min = Math.min(...values), max = Math.max(...values);
  if (log && min > 0) {
    const a = Math.log(min), b = Math.log(max), pad = (b - a || 1) * 0.06;
    const at = v => low + (high - low) * (Math.log(v) - a + pad) / (b - a + 2 * pad);
    const ticks = [], from = Math.exp(a - pad), to = Math.exp(b + pad);
    for (let e = Math.floor(Math.log10(from)); e <= Math.log10(to); e++)
      for (const m of to / from > 300 ? [1] : to / from > 8 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9]) {
        const v = m * 10 ** e;
        if (v >= from && v <= to) ticks.push(v);
      }
    return {at, ticks};
  }
  const pad = (max - min || Math.abs(max) || 1) * 0.06;
  min -= pad; max += pad;
  const raw = (max - min) / 6, p = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(m => m * p).find(s => s >= raw);
  const ticks = [];
  for (let v = Math.ceil(min / step) * step; v <= max; v += step) ticks.push(+v.toPrecision(12));
  return {at: v => low + (high - low) * (v - min) / (max - min), ticks};
}

// No other point is better in one objective and no worse in the other.
function front(x, y) {
  const order = D.points.map((p, i) => i).sort((a, b) =>
    cost(D.points[a], x) - cost(D.points[b], x) || cost(D.points[a], y) - cost(D.points[b], y));
  let best = Infinity, at = NaN;
  return order.filter(i => {
    const cx = cost(D.points[i], x), cy = cost(D.points[i], y);
    const keep = cy < best || (cy === best && cx === at);
    if (cy < best) { best = cy; at = cx; }
    return keep;
  });
}

function draw() {
  const x = +$('x').value, y = +$('y').value, k = +$('colour').value, log = $('log').checked;
  const X = scale(D.points.map(p => p[1][x]), L, W - R, log), Y = scale(D.points.map(p => p[1][y]), H - B, T, log);
  const on = front(x, y), is = new Set(on);
  let s = `<rect x="${L}" y="${T}" width="${W - L - R}" height="${H - T - B}" fill="#fafbfc"/>`;
  for (const t of X.ticks)
    s += `<line x1="${X.at(t)}" x2="${X.at(t)}" y1="${T}" y2="${H - B}" stroke="#e3e7ec"/><text x="${X.at(t)}" y="${H - B + 18}" text-anchor="middle">${short(t)}</text>`;
  for (const t of Y.ticks)
    s += `<line x1="${L}" x2="${W - R}" y1="${Y.at(t)}" y2="${Y.at(t)}" stroke="#e3e7ec"/><text x="${L - 8}" y="${Y.at(t) + 4}" text-anchor="end">${short(t)}</text>`;
  s += `<text x="${(L + W - R) / 2}" y="${H - 8}" text-anchor="middle" class="title">${D.columns[x].name}</text>`;
  s += `<text transform="translate(16 ${(T + H - B) / 2}) rotate(-90)" text-anchor="middle" class="title">${D.columns[y].name}</text>`;
  const line = on.map((i, n) => {
    const p = D.points[i], px = X.at(p[1][x]).toFixed(1), py = Y.at(p[1][y]).toFixed(1);
    return n === 0 ? `M${px} ${py}` : `H${px}V${py}`;
  }).join('');
  s += `<path d="${line}" fill="none" stroke="#222" stroke-width="1.5" stroke-dasharray="5 4"/>`;
  const n = D.axes.length ? D.axes[k].values.length : 1;
  D.points.forEach((p, i) => {
    s += `<circle data-point="${i}" class="${is.has(i) ? 'front' : ''}" cx="${X.at(p[1][x]).toFixed(1)}" cy="${Y.at(p[1][y]).toFixed(1)}" r="${is.has(i) ? 6.5 : 5}" fill="${hue(D.axes.length ? p[0][k] : 0, n)}" fill-opacity="0.88"/>`;
  });
  $('svg').innerHTML = s;
  $('legend').innerHTML = D.axes.length ? D.axes[k].values.map((v, i) => `<span><i style="background:${hue(i, n)}"></i>${D.axes[k].name} = ${v}</span>`).join('') : '';
  document.querySelectorAll('#points tbody tr').forEach(r => r.classList.toggle('front', is.has(+r.dataset.point)));
  $('count').textContent = `${on.length} of ${D.points.length} machines are on the front of ${D.columns[x].name} and ${D.columns[y].name}`;
}

function mark(point) {
  document.querySelectorAll('.picked').forEach(e => e.classList.remove('picked'));
  if (point !== undefined) document.querySelectorAll(`[data-point="${point}"]`).forEach(e => e.classList.add('picked'));
}
$('svg').addEventListener('mouseover', event => {
  const point = event.target.dataset.point;
  mark(point);
  if (point === undefined) return;
  const p = D.points[point], box = $('chart').getBoundingClientRect();
  $('tip').textContent = D.axes.map((a, i) => `${a.name} = ${a.values[p[0][i]]}`).join('\n') + '\n' +
    D.columns.map((c, i) => `${c.name}: ${short(p[1][i])}`).join('\n');
  $('tip').style.display = 'block';
  const left = event.clientX - box.left;
  $('tip').style.left = (left > box.width - 220 ? left - 200 : left + 16) + 'px';
  $('tip').style.top = Math.max(0, event.clientY - box.top - 60) + 'px';
});
$('svg').addEventListener('mouseout', () => { $('tip').style.display = 'none'; mark(); });
$('points').addEventListener('mouseover', event => mark(event.target.closest('tr').dataset.point));
$('points').querySelectorAll('th').forEach((th, column) => th.onclick = () => {
  const body = $('points').tBodies[0], sign = th.dataset.sign = th.dataset.sign === '1' ? '-1' : '1';
  [...body.rows].sort((a, b) => sign * (a.cells[column].dataset.v - b.cells[column].dataset.v)).forEach(r => body.append(r));
});
draw();
