#include "backend/npu/report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backend/npu/page.h"
#include "backend/npu/sim/cost.h"
#include "backend/npu/sim/energy.h"
#include "backend/npu/sim/trace.h"
#include "backend/npu/summary.h"
#include "ir/support/str.h"

namespace lazuli::npu {
namespace {

constexpr std::size_t kReportOps = 200;

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

std::string OpsTable(const std::vector<OpProfile>& ops, const Config& config, double cycles) {
  double joules = 0;
  for (const OpProfile& op : ops) joules += JoulesOf(op.work, config);
  std::string html =
      "<table><tr><th>HLO op and line<th>launches<th>busiest unit<th>cycles<th>of the run"
      "<th>operations<th>DRAM bytes<th>mJ<th>of all</tr>\n";
  for (std::size_t i = 0; i < std::min(ops.size(), kReportOps); ++i) {
    const OpProfile& op = ops[i];
    const UnitKind unit = UnitOf(
        static_cast<int>(std::max_element(op.busy.begin(), op.busy.end()) - op.busy.begin()));
    const double share = cycles == 0 ? 0 : static_cast<double>(LongestBusy(op)) / cycles;
    const double energy = JoulesOf(op.work, config);
    html += Str("<tr><td>", Escaped(op.origin.empty() ? "(between ops)" : op.origin), "<td>",
                op.launches, "<td>", UnitName(unit), "<td>", LongestBusy(op), "<td>",
                Fixed(100 * share, 1),
                " % <span class=bar style=\"width:", Fixed(std::min(share, 1.0) * 80, 0),
                "px\"></span><td>", Large(Operations(op.work)), "<td>", Large(DramBytes(op.work)),
                "<td>", Fixed(energy * 1e3, 3), "<td>",
                Fixed(joules == 0 ? 0 : 100 * energy / joules, 1), " %</tr>\n");
  }
  html += "</table>\n";
  if (ops.size() > kReportOps)
    html += Str("<p class=note>", ops.size() - kReportOps, " more ops are not shown.</p>\n");
  return html;
}

// Operations a byte against operations a second, both logarithmic.
class Roofline {
 public:
  explicit Roofline(const Config& config)
      : config_(config),
        clock_(static_cast<double>(config.clock_mhz) * 1e6),
        peak_(2 * static_cast<double>(config.mxu.rows * config.mxu.cols * config.cores) /
              static_cast<double>(ClocksPerRow(config, true, config.mxu.f32)) * clock_),
        bandwidth_(config.dram.gbs * 1e9) {}

  std::string Svg(const std::vector<OpProfile>& ops) const {
    std::string svg = Str("<svg viewBox=\"0 0 ", kWidth, " ", kHeight, "\" width=\"100%\">\n");
    for (int e = kLowX; e <= kHighX; ++e)
      svg += Line(std::pow(10, e), Y0(), std::pow(10, e), Y1(), "#eee") +
             Text(X(std::pow(10, e)), kHeight - 18, Str("1e", e));
    for (int e = 6; std::pow(10, e) <= Y1(); ++e)
      svg += Line(X0(), std::pow(10, e), X1(), std::pow(10, e), "#eee") +
             Text(4, Y(std::pow(10, e)), Str(Large(std::pow(10, e)), "op/s"));
    const double ridge = peak_ / bandwidth_;
    svg += Line(X0(), X0() * bandwidth_, ridge, peak_, "#b33") +
           Line(ridge, peak_, X1(), peak_, "#b33");
    svg += Text(X(ridge) + 6, Y(peak_) - 6,
                Str(Large(peak_), "op/s (f32), ridge at ", Fixed(ridge, 1), " op/byte"));
    for (const OpProfile& op : ops) {
      const double operations = Operations(op.work), bytes = DramBytes(op.work);
      if (operations == 0 || LongestBusy(op) == 0) continue;
      const double seconds = static_cast<double>(LongestBusy(op)) / clock_;
      svg += Str("<circle r=4 fill=\"#3b6ea8\" fill-opacity=0.6 cx=\"",
                 Fixed(X(operations / std::max(bytes, 1.0)), 1), "\" cy=\"",
                 Fixed(Y(operations / seconds), 1), "\"><title>", Escaped(op.origin), ": ",
                 Large(operations / seconds), "op/s, ", Fixed(operations / std::max(bytes, 1.0), 2),
                 " op/byte</title></circle>\n");
    }
    return svg + Text(kWidth / 2, kHeight - 4, "operations a byte of DRAM") + "</svg>\n";
  }

 private:
  static constexpr int kWidth = 900, kHeight = 360, kLowX = -2, kHighX = 4;
  static double X0() { return std::pow(10, kLowX); }
  static double X1() { return std::pow(10, kHighX); }
  static double Y0() { return 1e6; }
  double Y1() const { return peak_ * 4; }
  static double X(double v) {
    const double at = (std::log10(v) - kLowX) / (kHighX - kLowX);
    return 70 + std::clamp(at, 0.0, 1.0) * (kWidth - 90);
  }
  double Y(double v) const {
    const double at = (std::log10(v) - std::log10(Y0())) / (std::log10(Y1()) - std::log10(Y0()));
    return kHeight - 34 - std::clamp(at, 0.0, 1.0) * (kHeight - 50);
  }
  std::string Line(double x0, double y0, double x1, double y1, std::string_view colour) const {
    return Str("<line x1=", Fixed(X(x0), 1), " y1=", Fixed(Y(y0), 1), " x2=", Fixed(X(x1), 1),
               " y2=", Fixed(Y(y1), 1), " stroke=\"", colour, "\"/>\n");
  }
  static std::string Text(double x, double y, std::string_view text) {
    return Str("<text x=", Fixed(x, 1), " y=", Fixed(y, 1), ">", Escaped(text), "</text>\n");
  }

  const Config& config_;
  const double clock_, peak_, bandwidth_;
};

std::string UnitsTable(const std::vector<OpProfile>& ops, double cycles) {
  std::string html = "<table><tr><th>unit<th>busy cycles<th>of the run</tr>\n";
  std::array<int64_t, kTracks> sums{};
  for (const OpProfile& op : ops) {
    for (std::size_t t = 0; t < sums.size(); ++t) sums[t] += op.busy[t];
  }
  for (std::size_t u = 0; u < kUnitKinds; ++u) {
    const int64_t busy = BusyOf(sums, static_cast<UnitKind>(u));
    html += Str("<tr><td>", UnitName(static_cast<UnitKind>(u)), "<td>", busy, "<td>",
                Fixed(cycles == 0 ? 0 : 100 * static_cast<double>(busy) / cycles, 1), " %</tr>\n");
  }
  html += "</table>\n<table><tr><th>why instructions that were there waited<th>cycles</tr>\n";
  for (std::size_t s = 1; s < kStalls; ++s) {  // not Stall::kNone
    int64_t stalled = 0;
    for (const OpProfile& op : ops) stalled += op.stalled[s];
    if (stalled > 0)
      html += Str("<tr><td>", StallText(static_cast<Stall>(s)), "<td>", stalled, "</tr>\n");
  }
  return html + "</table>\n";
}

std::string HostTable(const NpuDevices& devices) {
  const std::vector<HostOp> ops = devices.host_ops.All();
  if (ops.empty()) return "<p>Nothing.</p>\n";
  std::string html = "<table><tr><th>op<th>times<th>reason<th>in words</tr>\n";
  for (const HostOp& op : ops)
    html +=
        Str("<tr><td>", Escaped(op.op), "<td>", op.count, "<td>", Escaped(op.code),
            "<td style=\"white-space:normal;text-align:left\">", Escaped(op.sentence), "</tr>\n");
  return html + "</table>\n";
}

}  // namespace

std::string ReportHtml(const NpuDevices& devices, const Profile& profile) {
  const Config& config = devices.cards[0]->config();
  const std::vector<OpProfile> ops = profile.Ops();
  double cycles = 0;
  for (const auto& card : devices.cards)
    cycles += static_cast<double>(card->totals().counters.cycles);
  return Str("<!doctype html><html lang=en><head><meta charset=utf-8><title>NPU: ", config.name,
             "</title>", kPageStyle, "</head><body>\n<h1>What ran on the simulated NPU</h1>\n<pre>",
             Escaped(SummaryText(devices)),
             "</pre>\n<h2>Ops</h2>\n<p class=note>Cycles are those of the unit that an op occupied "
             "longest; units work side by side. Energy by table ",
             EnergyTableOf(config).name, ", without leakage.</p>\n", OpsTable(ops, config, cycles),
             "<h2>Roofline</h2>\n", Roofline(config).Svg(ops), "<h2>Units</h2>\n",
             UnitsTable(ops, cycles), "<h2>On the host, and why</h2>\n", HostTable(devices),
             "</body></html>\n");
}

}  // namespace lazuli::npu
