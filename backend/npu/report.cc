#include "backend/npu/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/npu/page.h"
#include "backend/npu/sim/cost.h"
#include "backend/npu/sim/energy.h"
#include "backend/npu/sim/trace.h"
#include "backend/npu/summary.h"
#include "ir/support/fill_page.h"
#include "ir/support/str.h"
#include "pages/report.h"

namespace lazuli::npu {
namespace {

constexpr std::size_t kShownOps = 40, kReportOps = 400;  // at once, and in all

double Operations(const Counters& work) {
  return 2 * static_cast<double>(work.macs_int + work.macs_bf16 + work.macs_f32) +
         static_cast<double>(work.alu_ops + work.sfu_ops);
}
double DramBytes(const Counters& work) {
  return static_cast<double>(work.dram_read_bytes + work.dram_write_bytes);
}

double JoulesOf(const Counters& work, const Config& config) {
  Counters counted = work;
  counted.dram_burst_bytes = work.dram_read_bytes + work.dram_write_bytes;
  return EnergyOf(ActivityOf(counted), config).joules;
}

std::string Percent(double part, double whole) {
  return Fixed(whole == 0 ? 0 : 100 * part / whole, 1) + " %";
}
std::string Bar(double part, double whole, double pixels = 80) {
  const double share = whole == 0 ? 0 : std::clamp(part / whole, 0.0, 1.0);
  return Str("<span class=bar style=\"width:", Fixed(share * pixels, 0), "px\"></span>");
}

// "train.py:41", with all of the path where the mouse points at it.
std::string LineCell(std::string_view line) {
  if (line.empty()) return "<td class=text>";
  const std::size_t slash = line.rfind('/');
  return Str("<td class=text title=\"", Escaped(line), "\">",
             Escaped(slash == std::string_view::npos ? line : line.substr(slash + 1)));
}

// "dot.3 aten::mm" of "dot dot.3 aten::mm": most instructions are called after their opcodes.
std::string_view ShortOp(std::string_view op) {
  const std::size_t space = op.find(' ');
  if (space == std::string_view::npos || !op.substr(space + 1).starts_with(op.substr(0, space)))
    return op;
  return op.substr(space + 1);
}

UnitKind BusiestUnit(const OpProfile& op) {
  return UnitOf(
      static_cast<int>(std::max_element(op.busy.begin(), op.busy.end()) - op.busy.begin()));
}

// All devices together.
struct Totals {
  explicit Totals(const NpuDevices& devices) {
    for (const auto& card : devices.cards) {
      const CardTotals totals = card->totals();
      seconds += totals.seconds();
      runs += totals.run_seconds;
      launches += totals.launch_seconds;
      transfers += totals.transfer_seconds;
      counters += totals.counters;
    }
  }
  double cycles() const { return static_cast<double>(counters.cycles); }
  double seconds = 0, runs = 0, launches = 0, transfers = 0;
  Counters counters;
};

// Where the simulated time went, from the top down: the parts of each node add up to it.
class TimeTree {
 public:
  TimeTree(const Totals& totals, const UnitsProfile& units, const Config& config)
      : totals_(totals), units_(units), cycle_(1 / (config.clock_mhz * 1e6)) {}

  std::string Html() {
    Row(0, "simulated time", totals_.seconds);
    Row(1, "runs of programs", totals_.runs);
    const double array = Cycles([](std::size_t busy) { return Has(busy, UnitKind::kArray); });
    Row(2, "the array works", array);
    const double both = Cycles(
        [](std::size_t busy) { return Has(busy, UnitKind::kArray) && Has(busy, UnitKind::kDma); });
    Row(3, "and data move beside it", both);
    Row(3, "and none do", array - both);
    const double data = Only(UnitKind::kDma, {UnitKind::kArray});
    Row(2, "it waits while data move", data);
    const double vectors = Cycles([](std::size_t busy) {
      return !Has(busy, UnitKind::kArray) && Has(busy, UnitKind::kDma) &&
             Has(busy, UnitKind::kVector);
    });
    Row(3, "the vector unit works beside it", vectors);
    Row(3, "nothing but data", data - vectors);
    const double vector = Only(UnitKind::kVector, {UnitKind::kArray, UnitKind::kDma});
    Row(2, "it waits for the vector unit", vector);
    const double transposer =
        Only(UnitKind::kTransposer, {UnitKind::kArray, UnitKind::kDma, UnitKind::kVector});
    Row(2, "it waits for the transposer", transposer);
    const double sequencer = Only(UnitKind::kSequencer, {UnitKind::kArray, UnitKind::kDma,
                                                         UnitKind::kVector, UnitKind::kTransposer});
    Row(2, "it waits for the sequencer", sequencer);
    const double runs = totals_.cycles() * cycle_;
    Row(2, "nothing works: latencies, of the DRAM and of units",
        runs - array - data - vector - transposer - sequencer);
    if (totals_.runs - runs > 1e-12) Row(2, "copies from array to array", totals_.runs - runs);
    Row(1, "launches", totals_.launches);
    Row(1, "transfers between host and device", totals_.transfers);
    return Str(
        "<table class=tree><tr><th>where the time went<th>time<th>of all<th class=text></tr>\n",
        html_, "</table>\n");
  }

 private:
  static bool Has(std::size_t busy, UnitKind kind) {
    return (busy >> static_cast<std::size_t>(kind) & 1) != 0;
  }
  double Cycles(bool (*counts)(std::size_t busy)) const {
    double cycles = 0;
    for (std::size_t busy = 0; busy < units_.together.size(); ++busy) {
      if (counts(busy)) cycles += static_cast<double>(units_.together[busy]);
    }
    return cycles * cycle_;
  }
  // In which `kind` is busy and none of the others is.
  double Only(UnitKind kind, std::initializer_list<UnitKind> others) const {
    double cycles = 0;
    for (std::size_t busy = 0; busy < units_.together.size(); ++busy) {
      const bool none = std::none_of(others.begin(), others.end(),
                                     [busy](UnitKind other) { return Has(busy, other); });
      if (none && Has(busy, kind)) cycles += static_cast<double>(units_.together[busy]);
    }
    return cycles * cycle_;
  }
  void Row(int depth, std::string_view name, double seconds) {
    html_ += Str("<tr><td class=i", depth, ">", name, "<td>", Scaled(std::max(seconds, 0.0), "s"),
                 "<td>", Percent(std::max(seconds, 0.0), totals_.seconds), "<td class=text>",
                 Bar(seconds, totals_.seconds, 400), "</tr>\n");
  }

  const Totals& totals_;
  const UnitsProfile& units_;
  const double cycle_;
  std::string html_;
};

std::string EnergyHtml(const Totals& totals, const Config& config) {
  const Energy energy = EnergyOf(ActivityOf(totals.counters), config);
  std::string html =
      "<table class=tree><tr><th>where the energy went<th>energy<th>of all<th class=text></tr>\n";
  const auto row = [&](int depth, std::string_view name, double joules) {
    html += Str("<tr><td class=i", depth, ">", name, "<td>", Scaled(joules, "J"), "<td>",
                Percent(joules, energy.joules), "<td class=text>", Bar(joules, energy.joules, 400),
                "</tr>\n");
  };
  row(0, Str("energy of runs (", energy.table, ")"), energy.joules);
  for (const EnergyPart& part : energy.parts) {
    if (part.joules > 0) row(1, part.name, part.joules);
  }
  return html + "</table>\n";
}

struct LineProfile {
  std::string name;
  int64_t ops = 0;
  OpProfile sum;
};
std::vector<LineProfile> LinesOf(const std::vector<OpProfile>& ops) {
  std::map<std::string, LineProfile, std::less<>> lines;
  for (const OpProfile& op : ops) {
    const std::string name(Origin::Of(op.origin).line);
    LineProfile& line = lines[name];
    line.name = name;
    ++line.ops;
    line.sum.work += op.work;
    for (std::size_t t = 0; t < op.busy.size(); ++t) line.sum.busy[t] += op.busy[t];
  }
  std::vector<LineProfile> sorted;
  for (auto& [name, line] : lines) sorted.push_back(std::move(line));
  std::stable_sort(sorted.begin(), sorted.end(), [](const LineProfile& a, const LineProfile& b) {
    return LongestBusy(a.sum) > LongestBusy(b.sum);
  });
  return sorted;
}

std::string LinesTable(const std::vector<OpProfile>& ops, const Config& config, double cycles) {
  double joules = 0;
  for (const OpProfile& op : ops) joules += JoulesOf(op.work, config);
  std::string html =
      "<table><tr><th>line<th>ops<th>array<th>vector unit<th>DMA<th>operations<th>DRAM bytes<th>mJ"
      "<th>of all ops</tr>\n";
  for (const LineProfile& line : LinesOf(ops)) {
    const double energy = JoulesOf(line.sum.work, config);
    html +=
        Str("<tr>", line.name.empty() ? "<td>(no line)" : LineCell(line.name), "<td>", line.ops);
    for (const UnitKind unit : {UnitKind::kArray, UnitKind::kVector, UnitKind::kDma})
      html += Str("<td>", Percent(static_cast<double>(BusyOf(line.sum.busy, unit)), cycles));
    html += Str("<td>", Large(Operations(line.sum.work)), "<td>", Large(DramBytes(line.sum.work)),
                "<td>", Fixed(energy * 1e3, 3), "<td>", Percent(energy, joules), " ",
                Bar(energy, joules), "</tr>\n");
  }
  return html + "</table>\n";
}

// "1.2 M semaphore": how long instructions that were there waited, and mostly for what.
std::string WaitedText(const OpProfile& op) {
  const int64_t all = std::accumulate(op.stalled.begin() + 1, op.stalled.end(), int64_t{0});
  if (all == 0) return "0";
  const auto most = std::max_element(op.stalled.begin() + 1, op.stalled.end());
  return Str(Large(static_cast<double>(all)), " ",
             StallText(static_cast<Stall>(most - op.stalled.begin())));
}

std::string OpRow(const OpProfile& op, const Config& config, double cycles, double joules) {
  const Origin origin = Origin::Of(op.origin);
  const auto busy = static_cast<double>(LongestBusy(op));
  const double energy = JoulesOf(op.work, config);
  Counters array = op.work;
  array.cycles = BusyOf(op.busy, UnitKind::kArray);
  return Str("<tr><td>", Escaped(origin.op.empty() ? "(between ops)" : ShortOp(origin.op)),
             LineCell(origin.line), "<td>", op.launches, "<td>", UnitName(BusiestUnit(op)), "<td>",
             LongestBusy(op), "<td>", Percent(busy, cycles), " ", Bar(busy, cycles, 50), "<td>",
             array.cycles == 0 ? "" : Percent(ArrayUtilisation(config, array), 1), "<td>",
             Large(Operations(op.work)), "<td>", Large(DramBytes(op.work)), "<td>", WaitedText(op),
             "<td>", Fixed(energy * 1e3, 3), "<td>", Percent(energy, joules), "</tr>\n");
}

std::string OpsTable(const std::vector<OpProfile>& ops, const Config& config, double cycles) {
  double joules = 0;
  for (const OpProfile& op : ops) joules += JoulesOf(op.work, config);
  constexpr std::string_view kHead =
      "<table class=ops><tr><th>HLO op<th class=text>line<th>launches<th>busiest "
      "unit<th>cycles<th>of the "
      "runs"
      "<th>array used<th>operations<th>DRAM bytes<th>waited for<th>mJ<th>of all ops</tr>\n";
  std::string html(kHead);
  for (std::size_t i = 0; i < std::min(ops.size(), kReportOps); ++i) {
    if (i == kShownOps)
      html += Str("</table>\n<details><summary>", ops.size() - kShownOps, " more ops</summary>\n",
                  kHead);
    html += OpRow(ops[i], config, cycles, joules);
  }
  html += "</table>\n";
  if (ops.size() > kReportOps)
    html += Str("<p class=note>", ops.size() - kReportOps, " more are not shown.</p>\n");
  return ops.size() > kShownOps ? html + "</details>\n" : html;
}

constexpr std::string_view kUnitColours[kUnitKinds] = {"#c0392b", "#2e7d4f", "#8e5bb5", "#2f6fb0",
                                                       "#888888"};

// Operations a byte against operations a second, both logarithmic.
class Roofline {
 public:
  explicit Roofline(const Config& config)
      : config_(config),
        clock_(static_cast<double>(config.clock_mhz) * 1e6),
        bytes_a_second_(config.dram.gbs * 1e9),
        array_(2 * static_cast<double>(config.mxu.rows * config.mxu.cols * config.cores) * clock_) {
  }

  std::string Svg(const std::vector<OpProfile>& ops) const {
    std::string svg = Str("<svg viewBox=\"0 0 ", kWidth, " ", kHeight, "\" width=\"100%\">\n");
    for (int e = kLowX; e <= kHighX; ++e)
      svg += Line(std::pow(10, e), Y0(), std::pow(10, e), Y1(), "#eee") +
             Text(X(std::pow(10, e)), kHeight - 18, PowerOfTen(e), "middle");
    for (int e = kLowY; std::pow(10, e) <= Y1(); ++e)
      svg += Line(X0(), std::pow(10, e), X1(), std::pow(10, e), "#eee") +
             Text(kLeft - 6, Y(std::pow(10, e)) + 4, Str(Large(std::pow(10, e)), "op/s"), "end");
    const double f32 = array_ / static_cast<double>(ClocksPerRow(config_, true, config_.mxu.f32));
    svg += Line(X0(), X0() * bytes_a_second_, array_ / bytes_a_second_, array_, "#444");
    svg += Roof(array_, "array, 8 bits and bf16");
    if (f32 != array_) svg += Roof(f32, "array, f32");
    svg += Roof(static_cast<double>(config_.vpu.lanes * config_.cores) * clock_, "vector unit");
    // The longest on top.
    // NOLINTNEXTLINE(modernize-loop-convert): <ranges> takes long to compile
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) svg += Dot(*op);
    double x = kLeft + 10;
    for (std::size_t u = 0; u + 1 < kUnitKinds; ++u, x += 110)
      svg += Str("<circle r=5 fill=\"", kUnitColours[u], "\" cx=", x, " cy=14 />") +
             Text(x + 9, 18, UnitName(static_cast<UnitKind>(u)), "start");
    return svg + Text((kLeft + kWidth) / 2.0, kHeight - 2, "operations a byte of DRAM", "middle") +
           "</svg>\n";
  }

 private:
  static constexpr int kWidth = 1060, kHeight = 430, kLeft = 88, kTop = 30;
  static constexpr int kLowX = -2, kHighX = 4, kLowY = 6;
  static double X0() { return std::pow(10, kLowX); }
  static double X1() { return std::pow(10, kHighX); }
  static double Y0() { return std::pow(10, kLowY); }
  double Y1() const { return array_ * 2; }
  static double X(double v) {
    const double at = (std::log10(v) - kLowX) / (kHighX - kLowX);
    return kLeft + std::clamp(at, 0.0, 1.0) * (kWidth - kLeft - 20);
  }
  double Y(double v) const {
    const double at = (std::log10(v) - kLowY) / (std::log10(Y1()) - kLowY);
    return kHeight - 34 - std::clamp(at, 0.0, 1.0) * (kHeight - 34 - kTop);
  }
  std::string Line(double x0, double y0, double x1, double y1, std::string_view colour) const {
    return Str("<line x1=", Fixed(X(x0), 1), " y1=", Fixed(Y(y0), 1), " x2=", Fixed(X(x1), 1),
               " y2=", Fixed(Y(y1), 1), " stroke=\"", colour, "\"/>\n");
  }
  // From where the DRAM's bandwidth reaches it.
  std::string Roof(double operations_a_second, std::string_view name) const {
    const double ridge = operations_a_second / bytes_a_second_;
    return Line(ridge, operations_a_second, X1(), operations_a_second, "#444") +
           Text(kWidth - 22, Y(operations_a_second) - 5,
                Str(name, ": ", Large(operations_a_second), "op/s, from ", Fixed(ridge, 1),
                    " op/byte"),
                "end");
  }
  std::string Dot(const OpProfile& op) const {
    const double operations = Operations(op.work), bytes = std::max(DramBytes(op.work), 1.0);
    if (operations == 0 || LongestBusy(op) == 0) return "";
    // Queues that move its data at the same time share the DRAM.
    const double seconds =
        std::max(static_cast<double>(LongestBusy(op)) / clock_, bytes / bytes_a_second_);
    const double rate = operations / seconds;
    return Str("<circle r=5 fill=\"", kUnitColours[static_cast<std::size_t>(BusiestUnit(op))],
               "\" fill-opacity=0.7 stroke=\"#fff\" cx=\"", Fixed(X(operations / bytes), 1),
               "\" cy=\"", Fixed(Y(rate), 1), "\"><title>", Escaped(op.origin), ": ", Large(rate),
               "op/s, ", Fixed(operations / bytes, 2), " op/byte</title></circle>\n");
  }
  static std::string PowerOfTen(int e) {
    return e < 0 ? Fixed(std::pow(10, e), -e) : Fixed(std::pow(10, e), 0);
  }
  static std::string Text(double x, double y, std::string_view text, std::string_view anchor) {
    return Str("<text x=", Fixed(x, 1), " y=", Fixed(y, 1), " text-anchor=", anchor, ">",
               Escaped(text), "</text>\n");
  }

  const Config& config_;
  const double clock_, bytes_a_second_, array_;
};

std::string UnitsTable(const UnitsProfile& units, const Config& config, double cycles) {
  const double all = cycles * static_cast<double>(config.cores);
  std::string html = "<table><tr><th>queue or port<th class=text>of<th>busy cycles<th>of the runs";
  for (std::size_t s = 1; s < kStalls; ++s)
    html += Str("<th>waited: ", StallText(static_cast<Stall>(s)));
  html += "<th>had nothing to do</tr>\n";
  for (int track = 0; track < kTracks; ++track) {
    const auto t = static_cast<std::size_t>(track);
    if (units.busy[t] == 0) continue;
    auto rest = all - static_cast<double>(units.busy[t]);
    html += Str("<tr><td>", TrackName(track), "<td class=text>", UnitName(UnitOf(track)), "<td>",
                units.busy[t], "<td>", Percent(static_cast<double>(units.busy[t]), all), " ",
                Bar(static_cast<double>(units.busy[t]), all));
    for (std::size_t s = 1; s < kStalls; ++s) {
      const auto waited = static_cast<double>(units.stalled[t][s]);
      rest -= waited;
      html += Str("<td>", waited == 0 ? "" : Percent(waited, all));
    }
    html += Str("<td>", Percent(std::max(rest, 0.0), all), "</tr>\n");
  }
  return html + "</table>\n";
}

std::string HostTable(const NpuDevices& devices) {
  const std::vector<HostOp> ops = devices.host_ops.All();
  if (ops.empty()) return "<p>Nothing.</p>\n";
  std::string html =
      "<table><tr><th>op<th>times<th class=text>reason<th class=text>in words</tr>\n";
  for (const HostOp& op : ops)
    html += Str("<tr><td>", Escaped(op.op), "<td>", op.count, "<td class=text>", Escaped(op.code),
                "<td class=text>", Escaped(op.sentence), "</tr>\n");
  return html + "</table>\n";
}

}  // namespace

std::string ReportHtml(const NpuDevices& devices, const NpuProfile& profile) {
  const Config& config = devices.cards[0]->config();
  const std::vector<OpProfile> ops = profile.Ops();
  const UnitsProfile units = profile.Units();
  const Totals totals(devices);
  return FillPage(pages::kReport, {{"machine", Escaped(config.name)},
                                   {"summary", Escaped(SummaryText(devices))},
                                   {"time", TimeTree(totals, units, config).Html()},
                                   {"energy", EnergyHtml(totals, config)},
                                   {"lines", LinesTable(ops, config, totals.cycles())},
                                   {"ops", OpsTable(ops, config, totals.cycles())},
                                   {"roofline", Roofline(config).Svg(ops)},
                                   {"units", UnitsTable(units, config, totals.cycles())},
                                   {"host", HostTable(devices)}});
}

}  // namespace lazuli::npu
