#include "backend/npu/views.h"

#include <cstdio>
#include <set>
#include <utility>

#include "backend/npu/report.h"
#include "backend/npu/sim/trace.h"
#include "ir/support/flags.h"
#include "ir/support/span.h"
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
  return std::make_unique<Views>(report, trace);
}

Views::Views(std::string report, std::string trace)
    : report_(std::move(report)), trace_(std::move(trace)) {
  if (!trace_.empty()) ir::SetTracing(true);
}

Views::Launch::Launch(Views& views, const Program& program, const Card& card, int device)
    : views_(views),
      device_(device),
      begin_(static_cast<int64_t>(card.totals().seconds() *
                                  static_cast<double>(card.config().clock_mhz) * 1e6)),
      profile_(views.profile_, program) {
  const std::lock_guard lock(views.mutex_);
  if (!views.trace_.empty() && views.slices_ < kMostSlices)
    trace_ = std::make_unique<Trace>(program, card.config(),
                                     static_cast<std::size_t>(kMostSlices - views.slices_));
}

Views::Launch::~Launch() {
  if (trace_ == nullptr) return;
  const std::lock_guard lock(views_.mutex_);
  views_.slices_ += static_cast<int64_t>(trace_->slices().size());
  trace_->AppendTo(views_.json_, device_, begin_, views_.flows_);
}

void Views::Launch::OnSlice(const Slice& slice) {
  profile_.OnSlice(slice);
  if (trace_ != nullptr) trace_->OnSlice(slice);
}
void Views::Launch::OnDelay(int device, int core, int track, int64_t end, int64_t done) {
  if (trace_ != nullptr) trace_->OnDelay(device, core, track, end, done);
}
void Views::Launch::OnWork(int device, int core, uint32_t pc, const Counters& work) {
  profile_.OnWork(device, core, pc, work);
}
void Views::Launch::OnSignal(int device, int core, int semaphore, int value, int64_t cycle,
                             int track, uint32_t pc) {
  if (trace_ != nullptr) trace_->OnSignal(device, core, semaphore, value, cycle, track, pc);
}
void Views::Launch::OnWait(int device, int core, int semaphore, int value, int64_t cycle, int track,
                           uint32_t pc) {
  if (trace_ != nullptr) trace_->OnWait(device, core, semaphore, value, cycle, track, pc);
}
void Views::Launch::OnAccess(const Access& access, int64_t cycle) {
  if (trace_ != nullptr) trace_->OnAccess(access, cycle);
}

void Views::Write(const NpuDevices& devices) {
  if (!report_.empty()) Save(report_, ReportHtml(devices, profile_));
  if (trace_.empty()) return;
  const std::lock_guard lock(mutex_);
  if (ir::flags().trace_file().empty()) {  // else the spans are that file's
    json_.NameProcess(kHostProcess, "host (wall time)");
    std::set<uint32_t> threads;
    for (const ir::SpanRecord& span : ir::TakeSpans()) {
      const auto track = static_cast<int>(span.thread);
      if (threads.insert(span.thread).second)
        json_.NameTrack(kHostProcess, track, Str("thread ", track));
      json_.Slice(kHostProcess, track, span.name, span.start_ns, span.duration_ns);
    }
  }
  Save(trace_, std::move(json_).Finish());
}

}  // namespace lazuli::npu
