#include "tools/npu/trace_picture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/machine.h"
#include "backend/npu/sim/trace.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using ir::Str;
using npu::Slice;
using npu::Trace;

constexpr double kLeft = 110, kWidth = 1000, kLane = 26, kBar = 18, kCurve = 60, kTop = 10;

std::string_view SliceColour(std::string_view mnemonic) {
  return mnemonic.starts_with("dma")      ? "#8ecae6"
         : mnemonic.starts_with("lnk")    ? "#bdb2ff"
         : mnemonic.starts_with("mx.ldw") ? "#ffd166"
         : mnemonic.starts_with("mx.out") ? "#f4a261"
         : mnemonic.starts_with("mx")     ? "#95d5b2"
         : mnemonic.starts_with("vx")     ? "#ffadad"
                                          : "#cccccc";
}

// One decimal: pixels.
std::string Px(double value) {
  const auto tenths = static_cast<int64_t>(std::llround(value * 10));
  return tenths % 10 == 0
             ? Str(tenths / 10)
             : Str(tenths < 0 ? "-" : "", std::abs(tenths) / 10, ".", std::abs(tenths) % 10);
}

class Picture {
 public:
  Picture(const Trace& trace, int64_t to) : trace_(trace) {
    for (const Slice& slice : trace.slices()) {
      if (!Shown(slice, to)) continue;
      lanes_.emplace(std::pair(slice.core, slice.track), 0);
      end_ = std::max(end_, slice.end);
    }
    end_ = std::max<int64_t>(end_, 1);
    double y = kTop;
    for (auto& [unit, lane] : lanes_) {
      lane = y;
      y += kLane;
    }
    bottom_ = y;
  }

  std::string Draw(int64_t to) {
    std::string body = Lanes();
    for (const Slice& slice : trace_.slices()) {
      if (Shown(slice, to)) body += Bar(slice);
    }
    for (const Trace::Arrow& arrow : trace_.arrows()) {
      const Slice &from = trace_.slices()[arrow.from], &into = trace_.slices()[arrow.to];
      if (Shown(from, to) && Shown(into, to)) body += Token(from, into);
    }
    body += Curve("DRAM", "GB/s", trace_.DramGigabytes(0), bottom_ + 14, "#219ebc");
    body += Curve("SPM live", "bytes", trace_.LiveSpmBytes(0, 0), bottom_ + 28 + kCurve, "#e76f51");
    const double height = bottom_ + 2 * kCurve + 60;
    body += Axis(height - 16);
    return Str("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", Px(kLeft + kWidth + 20),
               "\" height=\"", Px(height), "\" font-family=\"monospace\" font-size=\"11\">\n",
               "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", body, "</svg>\n");
  }

 private:
  static bool Shown(const Slice& slice, int64_t to) {
    return slice.device == 0 && slice.start < to;
  }
  double X(int64_t cycle) const {
    return kLeft + kWidth * static_cast<double>(std::min(cycle, end_)) / static_cast<double>(end_);
  }
  double Y(const Slice& slice) const { return lanes_.at({slice.core, slice.track}); }

  static std::string Label(double x, double y, std::string_view text, std::string_view more = "") {
    return Str("<text x=\"", Px(x), "\" y=\"", Px(y), "\"", more, ">", text, "</text>\n");
  }
  static std::string Rectangle(double x, double y, double width, double height,
                               std::string_view style) {
    return Str("<rect x=\"", Px(x), "\" y=\"", Px(y), "\" width=\"", Px(width), "\" height=\"",
               Px(height), "\" ", style, "/>\n");
  }

  std::string Lanes() const {
    std::string svg;
    bool cores = false;
    for (const auto& [unit, y] : lanes_) cores |= unit.first > 0;
    for (const auto& [unit, y] : lanes_) {
      svg += Rectangle(kLeft, y, kWidth, kBar, "fill=\"#f6f6f6\"");
      svg += Label(8, y + 13,
                   Str(cores ? Str("core ", unit.first, " ") : "", npu::TrackName(unit.second)));
    }
    return svg;
  }

  std::string Bar(const Slice& slice) const {
    const std::string_view name = npu::SliceName(slice);
    std::string svg;
    if (slice.start > slice.ready)
      svg += Rectangle(X(slice.ready), Y(slice) + 6, X(slice.start) - X(slice.ready), 6,
                       "fill=\"#dddddd\"");
    const double width = X(slice.end) - X(slice.start);
    svg += Rectangle(X(slice.start), Y(slice), std::max(width, 1.0), kBar,
                     Str("fill=\"", SliceColour(name), "\" stroke=\"#666\" stroke-width=\"0.5\""));
    if (width > 7.0 * static_cast<double>(name.size()))
      svg += Label(X(slice.start) + 3, Y(slice) + 13, name);
    return svg;
  }

  std::string Token(const Slice& from, const Slice& into) const {
    return Str("<line x1=\"", Px(X(from.end)), "\" y1=\"", Px(Y(from) + kBar / 2), "\" x2=\"",
               Px(X(into.start)), "\" y2=\"", Px(Y(into) + kBar / 2),
               "\" stroke=\"#333\" stroke-width=\"0.7\" stroke-opacity=\"0.55\"/>\n");
  }

  std::string Curve(std::string_view name, std::string_view unit, const Trace::Series& series,
                    double y, std::string_view colour) const {
    double most = 0;
    for (const auto& [cycle, value] : series) most = std::max(most, value);
    std::string points;
    double before = 0;
    for (const auto& [cycle, value] : series) {
      const auto point = [&](double v) {
        points += Str(Px(X(cycle)), ",", Px(y + kCurve * (1 - (most > 0 ? v / most : 0))), " ");
      };
      point(before);
      point(value);
      before = value;
    }
    return Label(8, y + 12, name) + Label(8, y + 26, Str("to ", Px(most))) +
           Label(8, y + 40, unit) + Rectangle(kLeft, y, kWidth, kCurve, "fill=\"#f6f6f6\"") +
           "<polyline fill=\"none\" stroke=\"" + std::string(colour) + "\" points=\"" + points +
           "\"/>\n";
  }

  // About ten steps of 1, 2 or 5 times a power of ten.
  std::string Axis(double y) const {
    int64_t step = 1;
    for (int i = 0; end_ / step > 10; ++i) step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    std::string svg;
    for (int64_t cycle = 0; cycle <= end_; cycle += step) {
      svg += Label(X(cycle), y, Str(cycle), " text-anchor=\"middle\"");
      svg += Rectangle(X(cycle), kTop, 0.3, y - 24, "fill=\"#bbbbbb\"");
    }
    return svg + Label(8, y, "cycle");
  }

  const Trace& trace_;
  std::map<std::pair<int, int>, double> lanes_;  // core and track to the top of their line
  int64_t end_ = 0;
  double bottom_ = 0;
};

}  // namespace

absl::StatusOr<std::string> DrawTrace(const std::string& file, const std::string& set, int64_t to) {
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReadAll(file));
  LAZULI_ASSIGN_OR_RETURN(const npu::Program program, npu::Assemble(text, file));
  LAZULI_ASSIGN_OR_RETURN(npu::Config config,
                          npu::ReadConfig(program.config_name, program.config_overrides));
  LAZULI_RETURN_IF_ERROR(ir::Prefixed(npu::SetKeys(set, config), "--set: "));
  LAZULI_ASSIGN_OR_RETURN(const auto machine, npu::Machine::Create(config));
  Trace trace(program, config);
  auto fault = machine->Load(program);
  for (const npu::Symbol& symbol : program.symbols) {
    if (fault || (symbol.kind != npu::SymbolKind::kIn && symbol.kind != npu::SymbolKind::kInOut))
      continue;
    const std::vector<std::byte> zeros(static_cast<std::size_t>(symbol.bytes()));
    for (int device = 0; device < config.devices; ++device)
      LAZULI_RETURN_IF_ERROR(machine->WriteSymbol(device, symbol.name, zeros));
  }
  npu::RunOptions options;
  options.observer = &trace;
  if (!fault) fault = machine->Run(options);
  if (fault) return ir::FailedPrecondition(fault->ToString());
  return Picture(trace, to).Draw(to);
}

}  // namespace lazuli::tools
