#include "backend/npu/summary.h"

#include <algorithm>
#include <cstdio>

#include "backend/npu/page.h"
#include "backend/npu/sim/cost.h"
#include "backend/npu/sim/energy.h"
#include "ir/support/str.h"

namespace lazuli::npu {
namespace {

constexpr std::size_t kSummaryOps = 8;

std::string CardText(const Card& card) {
  const CardTotals totals = card.totals();
  const Energy energy = EnergyOf(ActivityOf(totals.counters), card.config());
  char utilisation[32];
  std::snprintf(utilisation, sizeof utilisation, "%.1f",
                100 * ArrayUtilisation(card.config(), totals.counters));
  return Str(card.name(), " (", card.config().name, "): ", totals.launches, " programs, ",
             Scaled(totals.seconds(), "s"), " of simulated time (runs ",
             Scaled(totals.run_seconds, "s"), ", launches ", Scaled(totals.launch_seconds, "s"),
             ", ", totals.loads + totals.stores, " transfers ",
             Scaled(totals.transfer_seconds, "s"), "), array ", utilisation, " % of its peak, ",
             Scaled(energy.joules, "J"), " (", energy.table, ")\n");
}

}  // namespace

double ArrayUtilisation(const Config& config, const Counters& counters) {
  const auto rows = static_cast<double>(config.mxu.rows * config.mxu.cols * config.cores);
  const double used = static_cast<double>(counters.macs_int + counters.macs_bf16) +
                      static_cast<double>(counters.macs_f32) *
                          static_cast<double>(ClocksPerRow(config, true, F32Mode::kNative));
  return counters.cycles == 0 ? 0 : used / (rows * static_cast<double>(counters.cycles));
}

std::string SummaryText(const NpuDevices& devices) {
  std::string text;
  for (const auto& card : devices.cards) {
    if (card->totals().launches > 0) text += CardText(*card);
  }
  const std::vector<HostOp> ops = devices.host_ops.All();
  if (ops.empty()) return text.empty() ? text : text + "  on the host: nothing\n";
  text += "  on the host:";
  for (std::size_t i = 0; i < std::min(ops.size(), kSummaryOps); ++i)
    text += Str(i == 0 ? " " : ", ", ops[i].count, " ", ops[i].op, " (", ops[i].code, ")");
  if (ops.size() > kSummaryOps) text += Str(", and ", ops.size() - kSummaryOps, " more kinds");
  return text + "; NPU_EXPLAIN=1 says why\n";
}

}  // namespace lazuli::npu
