#include "backend/npu/views.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "backend/npu/report.h"
#include "backend/npu/sim/trace.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "ir/support/text_file.h"

namespace lazuli::npu {
namespace {

constexpr int kHostProcess = 1000;  // behind the devices

void Save(const std::string& path, std::string_view text) {
  const absl::Status status = ir::WriteTextFile(path, text);
  if (!status.ok()) std::fprintf(stderr, "npu: %s\n", std::string(Message(status)).c_str());
}

}  // namespace

std::unique_ptr<Views> Views::FromFlags() {
  const std::string &report = ir::flags().npu_report(), &trace = ir::flags().npu_trace();
  if (report.empty() && trace.empty()) return nullptr;
  return std::make_unique<Views>(report, trace, ir::flags().npu_trace_slices());
}

Views::Views(std::string report, std::string trace, int64_t most_slices)
    : report_(std::move(report)),
      trace_(std::move(trace)),
      spans_(trace_.empty() ? nullptr : std::make_unique<ir::SpanCollector>()),
      most_slices_(most_slices) {}

Views::LaunchObserver::LaunchObserver(Views& views, const Program& program, const Card& card,
                                      int device)
    : ForwardingObserver(nullptr),
      views_(views),
      device_(device),
      begin_(static_cast<int64_t>(card.totals().seconds() *
                                  static_cast<double>(card.config().clock_mhz) * 1e6)),
      profile_(views.profile_, program) {
  const std::lock_guard lock(views.mutex_);
  if (!views.trace_.empty() && views.slices_ < views.most_slices_)
    trace_ = std::make_unique<Trace>(program, card.config(),
                                     static_cast<std::size_t>(views.most_slices_ - views.slices_));
  set_next(trace_.get());
}

Views::LaunchObserver::~LaunchObserver() {
  const std::lock_guard lock(views_.mutex_);
  views_.seen_ += seen_;
  if (trace_ == nullptr) return;
  views_.slices_ += static_cast<int64_t>(trace_->slices().size());
  int64_t& end = views_.ends_[device_];
  for (const Slice& slice : trace_->slices()) end = std::max(end, begin_ + slice.done);
  trace_->AppendTo(views_.json_, device_, begin_, views_.flows_);
}

void Views::LaunchObserver::OnSlice(const Slice& slice) {
  ++seen_;
  profile_.OnSlice(slice);
  ForwardingObserver::OnSlice(slice);
}
void Views::LaunchObserver::OnDelay(int device, int core, int track, int64_t end, int64_t done) {
  profile_.OnDelay(device, core, track, end, done);
  ForwardingObserver::OnDelay(device, core, track, end, done);
}
void Views::LaunchObserver::OnWork(int device, int core, uint32_t pc, const Counters& work) {
  profile_.OnWork(device, core, pc, work);
  ForwardingObserver::OnWork(device, core, pc, work);
}

// In the names of the devices' processes, and where the slices end.
void Views::SayCut(const NpuDevices& devices) {
  if (seen_ <= slices_) return;
  for (const auto& [device, end] : ends_) {
    const std::string& name = devices.cards[0]->config().name;
    json_.NameProcess(device, Str("device ", device, " (", name, "): CUT, the first ", slices_,
                                  " of ", seen_, " slices"));
    json_.Instant(device, 1,
                  Str("cut: ", seen_ - slices_,
                      " more slices are not shown (NPU_TRACE_SLICES=", most_slices_, ")"),
                  end);
  }
  std::fprintf(stderr, "npu: %s has the first %ld of %ld slices; NPU_TRACE_SLICES=N keeps more\n",
               trace_.c_str(), static_cast<long>(slices_), static_cast<long>(seen_));
}

void Views::Write(const NpuDevices& devices) {
  if (!report_.empty()) Save(report_, ReportHtml(devices, profile_));
  if (trace_.empty()) return;
  const std::lock_guard lock(mutex_);
  ir::AppendSpans(spans_->Spans(), kHostProcess, json_);
  SayCut(devices);
  Save(trace_, std::move(json_).Finish());
}

}  // namespace lazuli::npu
