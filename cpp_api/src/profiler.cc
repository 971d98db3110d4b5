#include "lazuli/profiler.h"

#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "cpp_api/src/facade.h"
#include "ir/support/runtime.h"
#include "ir/support/span_collector.h"
#include "lazuli/execution.h"
#include "lazy/debug/profile.h"
#include "lazy/execution/executor.h"

namespace lazuli::profiler {

struct ProfileAccess {
  static Profile Make(ir::TakenSpans taken) {
    Profile profile;
    profile.impl_ = std::make_shared<const lazy::Profile>(std::move(taken));
    return profile;
  }
  static const lazy::Profile& Unwrap(const Profile& profile) {
    return *static_cast<const lazy::Profile*>(profile.impl_.get());
  }
};

namespace {

static_assert(static_cast<int>(By::kStage) == static_cast<int>(lazy::ProfileBy::kStage));

// The profile that the program takes.
class Session {
 public:
  static Session& Get() { return ir::Runtime::Get().Of<Session>(); }

  void Start(const Options& options) {
    const std::lock_guard lock(mutex_);
    if (running_)
      throw Error(ErrorCode::kFailedPrecondition,
                  "profiler: a profile is under way; stop() ends it");
    for (const std::int64_t steps :
         {options.skip_first, options.wait, options.warmup, options.active, options.repeat}) {
      if (steps < 0)
        throw Error(ErrorCode::kInvalidArgument, "profiler: a schedule has no negative steps");
    }
    options_ = options;
    running_ = true;
    step_ = 0;
    last_ = Profile();
    Follow();
  }

  void Step() {
    std::optional<Profile> ready;
    std::function<void(const Profile&)> on_ready;
    {
      const std::lock_guard lock(mutex_);
      if (!running_) return;
      ++step_;
      ready = Follow();
      on_ready = options_.on_ready;
    }
    if (ready && on_ready) on_ready(*ready);
  }

  Profile Stop() {
    std::optional<Profile> ready;
    std::function<void(const Profile&)> on_ready;
    Profile last;
    {
      const std::lock_guard lock(mutex_);
      if (!running_)
        throw Error(ErrorCode::kFailedPrecondition, "profiler: stop() without start()");
      if (collecting_) ready = Collect();
      collector_.reset();
      running_ = collecting_ = false;
      on_ready = std::move(options_.on_ready);
      last = last_;
    }
    if (ready && on_ready) on_ready(*ready);
    return last;
  }

  bool running() {
    const std::lock_guard lock(mutex_);
    return running_;
  }

  Profile Current() {
    const std::lock_guard lock(mutex_);
    return collecting_ ? ProfileAccess::Make(collector_->Spans()) : last_;
  }

 private:
  enum class Phase : std::uint8_t { kOff, kWarmup, kActive };

  Phase PhaseNow() const {
    const Options& o = options_;
    if (step_ < o.skip_first) return Phase::kOff;
    if (o.active == 0)
      return step_ < o.skip_first + o.wait + o.warmup ? Phase::kOff : Phase::kActive;
    const std::int64_t cycle = o.wait + o.warmup + o.active;
    const std::int64_t in_cycle = (step_ - o.skip_first) % cycle;
    if (o.repeat > 0 && (step_ - o.skip_first) / cycle >= o.repeat) return Phase::kOff;
    if (in_cycle < o.wait) return Phase::kOff;
    return in_cycle < o.wait + o.warmup ? Phase::kWarmup : Phase::kActive;
  }
  bool CycleBegins() const {
    const Options& o = options_;
    return o.active > 0 && (step_ - o.skip_first) % (o.wait + o.warmup + o.active) == 0;
  }

  // Does what the schedule says of the step that begins; gives the profile of steps that ended.
  std::optional<Profile> Follow() {
    const Phase phase = PhaseNow();
    std::optional<Profile> ready;
    if (collecting_ && (phase != Phase::kActive || CycleBegins())) {
      ready = Collect();
      collecting_ = false;
    }
    if (phase == Phase::kOff) {
      collector_.reset();
    } else if (phase == Phase::kWarmup) {  // tracing is on, and nobody looks
      if (collector_ == nullptr) collector_ = std::make_unique<ir::SpanCollector>();
    } else if (!collecting_) {
      lazy::Executor::WaitForAll(nullptr);
      collector_ = std::make_unique<ir::SpanCollector>();
      collecting_ = true;
    }
    return ready;
  }

  Profile Collect() {
    lazy::Executor::WaitForAll(nullptr);
    return last_ = ProfileAccess::Make(collector_->Spans());
  }

  ir::ForkMutex mutex_;
  Options options_;
  bool running_ = false;
  bool collecting_ = false;  // in an active step
  std::int64_t step_ = 0;
  std::unique_ptr<ir::SpanCollector> collector_;
  Profile last_;
};

lazy::ProfileBy Unwrap(By by) { return static_cast<lazy::ProfileBy>(by); }

}  // namespace

By by(std::string_view word) {
  std::vector<std::string_view> words;
  for (int i = 0; i < lazy::kProfileWords; ++i) {
    words.push_back(lazy::WordOf(static_cast<lazy::ProfileBy>(i)));
    if (words.back() == word) return static_cast<By>(i);
  }
  throw Error(ErrorCode::kInvalidArgument,
              ir::Str("profiler: rows are by ", ir::Join(words, ", "), ", not by '", word, "'"));
}

Profile::Profile() : impl_(std::make_shared<const lazy::Profile>(ir::TakenSpans())) {}

std::vector<Event> Profile::events() const {
  const lazy::Profile& profile = ProfileAccess::Unwrap(*this);
  std::map<std::uint32_t, std::string> tracks;
  for (const ir::SpanTrack& track : profile.tracks()) tracks[track.thread] = track.Title();
  std::vector<Event> events;
  for (std::size_t i = 0; i < profile.spans().size(); ++i) {
    const ir::SpanRecord& span = profile.spans()[i];
    const ir::SpanLabel& label = *span.label;
    events.push_back({.track = tracks[span.thread],
                      .stage = std::string(ir::RowOf(label.kind).name),
                      .name = label.name,
                      .detail = label.detail,
                      .op = label.op,
                      .scope = label.scope,
                      .source = std::string(profile.sources()[i]),
                      .start_ns = span.start_ns,
                      .duration_ns = span.duration_ns,
                      .self_ns = profile.self_ns()[i],
                      .value = span.value,
                      .flops = label.flops,
                      .bytes = label.bytes});
  }
  return events;
}

std::vector<Row> Profile::rows(By by) const {
  std::vector<Row> rows;
  for (lazy::ProfileRow& row : ProfileAccess::Unwrap(*this).Rows(Unwrap(by)))
    rows.push_back({std::move(row.name), row.count, row.device_ns, row.compile_ns, row.host_ns,
                    row.wait_ns, row.flops, row.bytes, row.of_peak, std::move(row.what)});
  return rows;
}

std::string Profile::table(By by, std::int64_t rows) const {
  return ProfileAccess::Unwrap(*this).Table(Unwrap(by), rows);
}

void Profile::save(const std::string& path) const {
  Call(SourceLocation(), [&] { lazy::ThrowIfError(ProfileAccess::Unwrap(*this).Save(path)); });
}

void start(const Options& options) {
  Initialize();
  Session::Get().Start(options);
}
void step() { Session::Get().Step(); }
Profile stop() { return Session::Get().Stop(); }
void name_thread(const std::string& name) { ir::NameTrack(name, /*device=*/false); }
bool running() { return Session::Get().running(); }
Profile current() { return Session::Get().Current(); }
std::string table(By by, std::int64_t rows) { return current().table(by, rows); }
void top(By by, std::int64_t rows) { std::fputs(table(by, rows).c_str(), stdout); }

void Scope::Begin(bool is_step, std::string_view name, std::int64_t value, SourceLocation loc) {
  if (!ir::IsTracing()) return;
  const lazy::SiteScope site(Intern(loc));
  label_ = &ir::KeepLabel({.kind = is_step ? ir::SpanKind::kStep : ir::SpanKind::kUser,
                           .name = std::string(name),
                           .source = ir::GetSite(lazy::CurrentSite()).ToString()});
  value_ = value;
  start_ = ir::internal::NowNs();
}

void Scope::End() {
  if (label_ == nullptr) return;
  ir::internal::RecordSpan(*static_cast<const ir::SpanLabel*>(label_), start_, value_);
  label_ = nullptr;
}

Scope::Scope(std::string_view name, SourceLocation loc) : recorded_(std::in_place, name) {
  Begin(false, name, 0, loc);
}
Scope::~Scope() { End(); }

StepTrace::StepTrace(std::string_view name, std::int64_t number, SourceLocation loc)
    : loc_(loc), exceptions_(std::uncaught_exceptions()) {
  scope_.Begin(true, name, number, loc);
}

StepTrace::~StepTrace() noexcept(false) {
  if (cancelled_ || std::uncaught_exceptions() > exceptions_) return;
  mark_step(loc_);
  scope_.End();
  step();
}

}  // namespace lazuli::profiler
