#include "backend/npu/launch_spans.h"

#include <numeric>

#include "backend/runtime/thunk.h"
#include "ir/support/span.h"

namespace lazuli::npu {

LaunchSpans::LaunchSpans(const DeviceProgram& program, Observer* next)
    : ForwardingObserver(next),
      program_(program),
      start_(ir::internal::NowNs()),
      cycles_(program.origins.size()) {}

LaunchSpans::~LaunchSpans() {
  const auto all = static_cast<double>(std::accumulate(cycles_.begin(), cycles_.end(), int64_t{0}));
  const auto taken = static_cast<double>(ir::internal::NowNs() - start_);
  int64_t at = start_;
  for (std::size_t origin = 0; origin < cycles_.size(); ++origin) {
    if (cycles_[origin] == 0 || program_.origins[origin] == nullptr) continue;
    const auto share = static_cast<int64_t>(taken * static_cast<double>(cycles_[origin]) / all);
    ir::internal::RecordSpanOf(
        ir::KeepLabel(backend::ThunkInfo::Of("npu", *program_.origins[origin]).Label()), at, share);
    at += share;
  }
}

void LaunchSpans::OnSlice(const Slice& slice) {
  const std::vector<DebugLine>& debug = program_.program->program.debug;
  if (slice.track != kSequencerTrack && slice.pc < debug.size())
    cycles_[debug[slice.pc].origin] += slice.end - slice.start;
  ForwardingObserver::OnSlice(slice);
}

}  // namespace lazuli::npu
