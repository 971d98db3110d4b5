// The profiler: where the time of host and devices goes, by line of the program, by op, by kernel.
//
//   profiler::start();
//   for (...) train();
//   profiler::stop().save("profile.json");  // opens in Perfetto
//   profiler::top();                        // prints the most expensive lines
//
// LAZULI_PROFILE=profile.json profiles a whole program that knows nothing of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lazuli/execution.h"
#include "lazuli/export.h"
#include "lazuli/tensor.h"

namespace lazuli::profiler {

// What a table has a row for: a line of the program, an op ("aten__mm"), the scope of ops, a step of
// a compiled program, a pass of the compiler, a stage ("record", "compile", "run", ...).
enum class By : std::uint8_t { kLine, kOp, kScope, kThunk, kPass, kStage };
// "line", "op", ...; throws Error(kInvalidArgument) for another word.
LAZULI_API By by(std::string_view word);

// What happened once. Spans of one track lie in each other or beside each other.
struct Event {
  std::string track;   // "cpu:0", or a thread of the host
  std::string stage;   // what it is: "thunk", "compile", "wait", ...
  std::string name;    // "fusion.12"
  std::string detail;  // "kernel", "matmul"
  std::string op;      // "aten__mm"
  std::string scope;
  std::string source;         // "train.cc:41": its own, or that of what it is inside
  std::int64_t start_ns = 0;  // on the clock of all profiles of the process
  std::int64_t duration_ns = 0;
  std::int64_t self_ns = 0;  // without what is inside it
  std::int64_t value = 0;    // bytes of a transfer, nodes of a recording, number of a run or step
  double flops = 0, bytes = 0;  // that it computes and moves, estimated
};

// Times are of the row's events without those inside them, so the rows of a table add up.
struct Row {
  std::string name;
  std::int64_t count = 0;  // of thunks; by stage or pass of events
  std::int64_t device_ns = 0, compile_ns = 0, host_ns = 0, wait_ns = 0;
  double flops = 0, bytes = 0;
  double of_peak = 0;  // of what the machine computes or moves at most, whichever is nearer
  std::string what;    // ops of a line, lines of others
};

// What was collected; copies share it.
class LAZULI_API Profile {
 public:
  Profile();  // of nothing
  std::vector<Event> events() const;
  std::vector<Row> rows(By by = By::kLine) const;  // the most expensive first
  // The first of them, as text.
  std::string table(By by = By::kLine, std::int64_t rows = 20) const;
  // Writes a trace for Perfetto and chrome://tracing, whole or not at all; where the path ends in
  // '/', a folder for TensorBoard.
  void save(const std::string& path) const;

 private:
  friend struct ProfileAccess;
  std::shared_ptr<const void> impl_;
};

// Which steps are profiled: after skip_first the cycle of wait, warmup and active, repeat times (0:
// until stop()). `active` 0: everything until stop().
struct Options {
  std::int64_t skip_first = 0, wait = 0, warmup = 0, active = 0, repeat = 0;
  // Called when a cycle's active steps have ended, and by stop() in the midst of them.
  std::function<void(const Profile&)> on_ready{};
};

// Throws Error(kFailedPrecondition) if a profile is under way.
LAZULI_API void start(const Options& options = {});
// A step ends here; StepTrace calls it.
LAZULI_API void step();
// Ends it and returns what was collected, of several cycles the last. Waits for runs in flight;
// what is recorded and not synced is no part of it.
LAZULI_API Profile stop();
LAZULI_API bool running();
// What the calling thread is called in traces. Threads of one name that run one after the other, as a
// loader's do from epoch to epoch, share a lane.
LAZULI_API void name_thread(const std::string& name);
// The last profile, or what there is so far of the one under way.
LAZULI_API Profile current();

// current().table().
LAZULI_API std::string table(By by = By::kLine, std::int64_t rows = 20);
// The same to standard output.
LAZULI_API void top(By by = By::kLine, std::int64_t rows = 20);

// A part of the program with a name, on the thread that runs it; what is recorded meanwhile has the
// name, too (NameScope).
class LAZULI_API Scope {
 public:
  explicit Scope(std::string_view name, SourceLocation loc = SourceLocation::current());
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  friend class StepTrace;
  Scope() = default;
  void Begin(bool is_step, std::string_view name, std::int64_t value, SourceLocation loc);
  void End();
  const void* label_ = nullptr;  // null: nobody collects
  std::int64_t start_ = 0, value_ = 0;
  std::optional<NameScope> recorded_;  // not of steps
};

// A step of the program: where it ends, what is recorded is synced and the schedule goes on.
class LAZULI_API StepTrace {
 public:
  explicit StepTrace(std::string_view name, std::int64_t number = 0,
                     SourceLocation loc = SourceLocation::current());
  ~StepTrace() noexcept(false);  // throws what the sync does
  // Its end syncs nothing: an error is under way, as a destructor sees by itself.
  void cancel() { cancelled_ = true; }
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

 private:
  Scope scope_;
  SourceLocation loc_;
  int exceptions_;
  bool cancelled_ = false;
};

}  // namespace lazuli::profiler
