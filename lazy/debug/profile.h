// Profile: what host and devices did for a while - spans with their own time, tables of it, a file
// for viewers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "ir/support/span.h"

namespace lazuli::lazy {

// What a table has a row for.
enum class ProfileBy : uint8_t {
  kLine,   // of the user's program
  kOp,     // "aten__mm"
  kScope,  // "net/conv1"
  kThunk,  // a step of a program
  kPass,   // of the compiler, or a kernel whose code LLVM made
  kStage,  // SpanKind
};

// Times are those of the row's spans without the spans inside them, so that rows add up.
struct ProfileRow {
  std::string name;
  int64_t count = 0;  // of thunks; by stage or pass of spans
  int64_t device_ns = 0, compile_ns = 0, host_ns = 0, wait_ns = 0;
  double flops = 0, bytes = 0;
  double of_peak = 0;  // of what the machine can, in computing or in moving, whichever is more
  std::string what;    // the ops of a line, the line of a thunk
};

// "line", "op", ...
std::string_view WordOf(ProfileBy by);
inline constexpr int kProfileWords = static_cast<int>(ProfileBy::kStage) + 1;

class Profile {
 public:
  explicit Profile(ir::TakenSpans taken);

  const std::vector<ir::SpanRecord>& spans() const { return taken_.spans; }
  const std::vector<ir::SpanTrack>& tracks() const { return taken_.tracks; }
  // By span: its duration without that of the spans inside it.
  const std::vector<int64_t>& self_ns() const { return self_ns_; }
  // By span: its line, or else that of the span that it is in; may be empty.
  const std::vector<std::string_view>& sources() const { return sources_; }

  // The most expensive first.
  std::vector<ProfileRow> Rows(ProfileBy by) const;
  // The first `rows` of them, under a line with the sums.
  std::string Table(ProfileBy by, int64_t rows) const;
  // For trace viewers, as JSON.
  std::string Trace() const;
  // Writes the trace: a file, or, where the path ends in '/', a folder for TensorBoard; a page for a
  // browser where it ends in ".html".
  absl::Status Save(const std::string& path) const;

 private:
  std::string NameOfRow(ProfileBy by, std::size_t span) const;

  ir::TakenSpans taken_;
  std::vector<int64_t> self_ns_;
  std::vector<std::string_view> sources_;
};

}  // namespace lazuli::lazy
