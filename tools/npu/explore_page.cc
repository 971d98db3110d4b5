#include "tools/npu/explore_page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "backend/npu/page.h"
#include "backend/npu/sim/energy.h"
#include "backend/npu/summary.h"
#include "ir/support/fill_page.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "lazy/graphs/page_json.h"
#include "pages/explore.h"
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
  return ir::FillPage(pages::kExplore, {{"title", Escaped(e.title)},
                                        {"machine", Escaped(e.machine)},
                                        {"axes", axes},
                                        {"energy", npu::EnergyTableOf(e.points[0].config).name},
                                        {"steps", StepsTable(e)},
                                        {"points", PointsTable(e)},
                                        {"failures", FailuresTable(e)},
                                        {"data", Data(e)}});
}

}  // namespace lazuli::tools
