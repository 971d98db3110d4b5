#include "tools/npu/explore_page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "backend/npu/page.h"
#include "backend/npu/sim/energy.h"
#include "backend/npu/summary.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "lazy/graphs/page_json.h"
#include "tools/npu/area.h"

namespace lazuli::tools {
namespace {

using ir::Str;
using lazy::JsonText;
using npu::Config;
using npu::Escaped;

double RunMicroseconds(const Config& config, const Measurement& m) {
  return static_cast<double>(m.counters.cycles) / config.clock_mhz;
}
int64_t Macs(const Measurement& m) {
  return m.counters.macs_int + m.counters.macs_bf16 + m.counters.macs_f32;
}

constexpr ExploreColumn kColumns[] = {
    {"cycles", "of all runs on the device",
     [](const Config&, const Measurement& m) { return static_cast<double>(m.counters.cycles); }},
    {"time_us", "microseconds of these runs", RunMicroseconds},
    {"host_us", "microseconds of launches, and of transfers for what the host computes",
     [](const Config&, const Measurement& m) { return 1e6 * m.host_seconds; }},
    {"energy_uj", "microjoules by the table of the next column",
     [](const Config&, const Measurement& m) { return 1e6 * m.energy_joules; }},
    {"edp_nj_s", "nanojoules times seconds: energy times the time of runs",
     [](const Config& c, const Measurement& m) {
       return 1e3 * m.energy_joules * RunMicroseconds(c, m);
     }},
    {"area_mm2", "square millimetres of arithmetic and SRAM in 45 nm",
     [](const Config& c, const Measurement&) { return npu::AreaOf(c).mm2; }},
    {"array_util", "percent of the array's multiplications that the cycles had room for",
     [](const Config& c, const Measurement& m) {
       return 100 * npu::ArrayUtilisation(c, m.counters);
     },
     false},
    {"dram_mb", "megabytes moved from and to the DRAM, in whole bursts",
     [](const Config&, const Measurement& m) {
       return static_cast<double>(m.counters.dram_burst_bytes) / 1e6;
     }},
    {"macs", "multiplications of the array",
     [](const Config&, const Measurement& m) { return static_cast<double>(Macs(m)); }},
    {"host_ops", "instructions that ran on the host",
     [](const Config&, const Measurement& m) { return static_cast<double>(m.host_ops); }},
};

// Counts in full, everything else with six digits.
std::string Number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return Str(static_cast<int64_t>(value));
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string Quoted(std::string_view text) {
  std::string quoted(1, '"');
  for (const char c : text) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

double ValueOf(const ExplorePoint& point, std::size_t column) {
  return kColumns[column].value(point.config, point.measured);
}
// Less is better.
double CostOf(const ExplorePoint& point, std::size_t column) {
  return kColumns[column].less_is_better ? ValueOf(point, column) : -ValueOf(point, column);
}

bool Varies(const Exploration& e, std::size_t column) {
  const ExplorePoint* first = nullptr;
  for (const ExplorePoint& point : e.points) {
    if (!point.status.ok()) continue;
    if (first == nullptr) first = &point;
    if (ValueOf(point, column) != ValueOf(*first, column)) return true;
  }
  return false;
}

bool SweepsKey(const Exploration& e, std::string_view key) {
  return std::any_of(e.axes.begin(), e.axes.end(), [&](const SweepAxis& axis) {
    return std::find(axis.keys.begin(), axis.keys.end(), key) != axis.keys.end();
  });
}

std::size_t ColumnOf(std::string_view name) { return *FindExploreColumn(name); }

std::string Data(const Exploration& e) {
  std::string json = "{\"axes\":[";
  for (std::size_t a = 0; a < e.axes.size(); ++a) {
    json += Str(a == 0 ? "" : ",", "{\"name\":", JsonText(e.axes[a].name()), ",\"values\":[");
    for (std::size_t v = 0; v < e.axes[a].values.size(); ++v)
      json += Str(v == 0 ? "" : ",", JsonText(e.axes[a].values[v]));
    json += "]}";
  }
  json += "],\"columns\":[";
  for (std::size_t c = 0; c < std::size(kColumns); ++c)
    json += Str(c == 0 ? "" : ",", "{\"name\":", JsonText(kColumns[c].name),
                ",\"meaning\":", JsonText(kColumns[c].meaning),
                ",\"less\":", kColumns[c].less_is_better, "}");
  json += Str("],\"x\":", e.x, ",\"y\":", e.y, ",\"points\":[");
  bool first = true;
  for (const ExplorePoint& point : e.points) {
    if (!point.status.ok()) continue;
    json += Str(first ? "\n" : ",\n", "[[");
    first = false;
    for (std::size_t a = 0; a < point.point.size(); ++a)
      json += Str(a == 0 ? "" : ",", point.point[a]);
    json += "],[";
    for (std::size_t c = 0; c < std::size(kColumns); ++c)
      json += Str(c == 0 ? "" : ",", Number(ValueOf(point, c)));
    json += "]]";
  }
  return json + "]}";
}

// How a step of one key changes a column, the others as they are: the geometric mean over all
// settings of the others that were measured on both sides.
std::string StepsTable(const Exploration& e) {
  const std::size_t columns[] = {ColumnOf("cycles"), ColumnOf("time_us"), ColumnOf("energy_uj"),
                                 ColumnOf("area_mm2")};
  std::string html = "<table id=steps><thead><tr><th>one step of a key<th>settings of the others";
  for (const std::size_t c : columns) html += Str("<th>", kColumns[c].name);
  html += "</tr></thead><tbody>\n";
  for (std::size_t a = 0; a < e.axes.size(); ++a) {
    for (std::size_t v = 0; v + 1 < e.axes[a].values.size(); ++v) {
      std::vector<double> logs(std::size(columns));
      int64_t pairs = 0;
      for (const ExplorePoint& from : e.points) {
        if (!from.status.ok() || from.point[a] != v) continue;
        SweepPoint next = from.point;
        ++next[a];
        const auto to = std::find_if(e.points.begin(), e.points.end(),
                                     [&](const ExplorePoint& p) { return p.point == next; });
        if (to == e.points.end() || !to->status.ok()) continue;
        ++pairs;
        for (std::size_t i = 0; i < logs.size(); ++i)
          logs[i] += std::log(std::max(ValueOf(*to, columns[i]), 1e-300) /
                              std::max(ValueOf(from, columns[i]), 1e-300));
      }
      if (pairs == 0) continue;
      html += Str("<tr><td>", Escaped(e.axes[a].name()), " ", Escaped(e.axes[a].values[v]),
                  " &rarr; ", Escaped(e.axes[a].values[v + 1]), "<td>", pairs);
      for (const double sum : logs) {
        const double percent = 100 * (std::exp(sum / static_cast<double>(pairs)) - 1);
        const std::string_view kind = std::abs(percent) < 0.05 ? "same"
                                      : percent < 0            ? "better"
                                                               : "worse";
        html += Str("<td class=", kind, ">",
                    kind == "same" ? "0"
                                   : Str(percent > 0 ? "+" : "&minus;",
                                         npu::Fixed(std::abs(percent), 1), " %"));
      }
      html += "</tr>\n";
    }
  }
  return html + "</tbody></table>\n";
}

std::string PointsTable(const Exploration& e) {
  std::string html = "<table id=points class=sortable><thead><tr>";
  for (const SweepAxis& axis : e.axes) html += Str("<th>", Escaped(axis.name()));
  for (const ExploreColumn& column : kColumns)
    html += Str("<th title=\"", column.meaning, "\">", column.name);
  html += "</tr></thead><tbody>\n";
  std::size_t row = 0;
  for (const ExplorePoint& point : e.points) {
    if (!point.status.ok()) continue;
    html += Str("<tr data-point=", row++, point.front ? " class=front>" : ">");
    for (std::size_t a = 0; a < e.axes.size(); ++a)
      html += Str("<td data-v=", point.point[a], ">", Escaped(e.axes[a].values[point.point[a]]));
    for (std::size_t c = 0; c < std::size(kColumns); ++c)
      html += Str("<td data-v=", Number(ValueOf(point, c)), ">", Number(ValueOf(point, c)));
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string FailuresTable(const Exploration& e) {
  std::string html;
  for (const ExplorePoint& point : e.points) {
    if (!point.status.ok())
      html += Str("<tr><td>", Escaped(KeysOf(e.axes, point.point)), "<td class=text>",
                  Escaped(ir::Message(point.status)), "</tr>\n");
  }
  if (html.empty()) return html;
  return Str("<h2>Not measured</h2>\n<table id=failures><tr><th>machine<th class=text>why</tr>\n",
             html, "</table>\n");
}

constexpr std::string_view kStyle = R"(<style>
#chart{position:relative;margin:1em 0}.controls{color:#555;margin:.6em 0}.controls label{margin-right:1.4em}
select{font:inherit;padding:1px 4px}svg{display:block}svg circle{cursor:pointer;stroke:#fff;stroke-width:1}
svg circle.front{stroke:#222;stroke-width:1.6}svg circle.picked{stroke:#e0007a;stroke-width:3}
#tip{position:absolute;pointer-events:none;background:#1d2733;color:#fff;padding:7px 10px;border-radius:5px;font-size:12px;
line-height:1.5;white-space:pre;display:none;z-index:1}
.sortable th{cursor:pointer}.sortable th:hover{background:#e4e9f0}tr.front td{background:#eef6ee;font-weight:600}
tr.picked td{background:#ffe9f4}tbody tr:hover td{background:#f4f6fa}
.better{color:#187a2f}.worse{color:#b3261e}.same{color:#999}.legend{display:flex;flex-wrap:wrap;gap:.2em 1.2em;font-size:13px}
.legend i{display:inline-block;width:11px;height:11px;border-radius:6px;margin-right:5px}.scroll{overflow-x:auto}
</style>)";

constexpr std::string_view kScript = R"JS(<script>
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
</script>)JS";

}  // namespace

std::span<const ExploreColumn> ExploreColumns() { return kColumns; }

absl::StatusOr<std::size_t> FindExploreColumn(std::string_view name) {
  std::vector<std::string_view> names;
  for (std::size_t c = 0; c < std::size(kColumns); ++c) {
    if (kColumns[c].name == name) return c;
    names.push_back(kColumns[c].name);
  }
  return ir::InvalidArgument("there is no column ", name, "; there are ", ir::Join(names, ", "));
}

void Exploration::ChooseObjectives() {
  y = ColumnOf(SweepsKey(*this, "clock_mhz") ? "time_us" : "cycles");
  x = ColumnOf(Varies(*this, ColumnOf("area_mm2")) ? "area_mm2" : "energy_uj");
}

void Exploration::FindFront() {
  for (ExplorePoint& point : points) {
    point.front =
        point.status.ok() &&
        std::none_of(points.begin(), points.end(), [&](const ExplorePoint& other) {
          return other.status.ok() && CostOf(other, x) <= CostOf(point, x) &&
                 CostOf(other, y) <= CostOf(point, y) &&
                 (CostOf(other, x) < CostOf(point, x) || CostOf(other, y) < CostOf(point, y));
        });
  }
}

std::string ExploreCsv(const Exploration& e) {
  std::vector<std::string> heading;
  for (const SweepAxis& axis : e.axes)
    heading.insert(heading.end(), axis.keys.begin(), axis.keys.end());
  for (const ExploreColumn& column : kColumns) {
    heading.emplace_back(column.name);
    if (column.name == "energy_uj") heading.emplace_back("energy_table");
  }
  heading.insert(heading.end(), {"pareto", "error"});
  std::string csv = Str(ir::Join(heading, ","), "\n");
  for (const ExplorePoint& point : e.points) {
    std::vector<std::string> cells;
    for (std::size_t a = 0; a < e.axes.size(); ++a)
      cells.insert(cells.end(), e.axes[a].keys.size(), e.axes[a].values[point.point[a]]);
    for (std::size_t c = 0; c < std::size(kColumns); ++c) {
      cells.push_back(point.status.ok() ? Number(ValueOf(point, c)) : "");
      if (kColumns[c].name == "energy_uj")
        cells.emplace_back(npu::EnergyTableOf(point.config).name);
    }
    cells.emplace_back(point.front ? "1" : "0");
    cells.push_back(point.status.ok() ? "" : Quoted(ir::Message(point.status)));
    csv += Str(ir::Join(cells, ","), "\n");
  }
  return csv;
}

std::string ExplorePage(const Exploration& e) {
  std::string axes;
  for (const SweepAxis& axis : e.axes)
    axes += Str("<tr><td>", Escaped(axis.name()), "<td class=text>",
                Escaped(ir::Join(axis.values, ", ")), "</tr>\n");
  return Str(
      "<!doctype html><html lang=en><head><meta charset=utf-8><title>npu-explore: ",
      Escaped(e.title), "</title>", npu::kPageStyle, kStyle, "</head><body>\n<h1>",
      Escaped(e.title), " on many machines</h1>\n<p>Every point is a machine: ", Escaped(e.machine),
      " with other values of these keys, each compiled for and timed by itself.</p>\n",
      "<table><tr><th>key<th class=text>values</tr>\n", axes, "</table>\n",
      "<div class=controls><label>across <select id=x></select></label><label>up <select "
      "id=y></select></label>",
      "<label>colour <select id=colour></select></label><label><input type=checkbox id=log "
      "checked> logarithmic</label>",
      "<span id=count></span></div>\n<div id=chart><svg id=svg viewBox=\"0 0 1060 460\" "
      "width=\"100%\"></svg><div id=tip></div>",
      "<div id=legend class=legend></div></div>\n",
      "<p class=note>Points with a dark ring are on the Pareto front: no other machine is better "
      "in one of the two and no "
      "worse in the other. Energy by table ",
      npu::EnergyTableOf(e.points[0].config).name,
      "; area of arithmetic and SRAM alone, by published areas in 45 nm; wires, control and DRAM "
      "are in neither.</p>\n",
      "<h2>What a step of a key buys</h2>\n<p class=note>The geometric mean over all settings of "
      "the other keys.</p>\n",
      StepsTable(e),
      "<h2>All machines</h2>\n<p class=note>A click on a heading sorts.</p>\n<div class=scroll>",
      PointsTable(e), "</div>\n", FailuresTable(e), "<script id=data type=\"application/json\">",
      Data(e), "</script>\n", kScript, "\n</body></html>\n");
}

}  // namespace lazuli::tools
