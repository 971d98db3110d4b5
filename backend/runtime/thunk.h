// Thunk: one step of a compiled run - a kernel, a library call, a copy, an instruction for the
// evaluator.
//
// A thunk names the buffers it reads and writes by number; the executable decides where they lie in
// each run. It is made once and executed by any number of runs at a time, so Execute keeps no state
// in it.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "backend/client/client.h"
#include "ir/hlo/module.h"
#include "ir/support/attrs.h"
#include "ir/support/span.h"

namespace lazuli::backend {

// Index into the executable's table of buffers.
using BufferId = int32_t;

struct BufferUse {
  BufferId buffer = 0;
  bool write = false;
  // The width of the buffer's elements in bytes, if it may share memory with a written buffer of the
  // same size and width: element i of the one is read before element i of the other is written, and
  // never again. A loop pairs an operand with its element of the state by a number of its own instead of
  // the width. 0: it may not.
  int64_t in_place = 0;
  // Part p of the thunk touches only the p-th of as many equal pieces of the buffer.
  bool by_part = false;
  LAZULI_ATTRS(buffer, write, in_place, by_part);
};

// One of `count` parts of a thunk; `worker` tells apart parts that run at the same time.
struct Part {
  int64_t index = 0;
  int64_t count = 1;
  int64_t worker = 0;
};

// What a thunk is, for dumps, profiles and errors.
struct ThunkInfo {
  std::string_view kind;  // "kernel", "matmul", "evaluate", ...; a literal
  std::string name;       // of the instruction
  std::string op;         // as the user knows it: "aten::mm", or the opcode
  std::string source;     // "train.cc:41", or empty
  std::string scope;      // "net/conv1/aten__convolution", or empty
  // What it computes and moves, estimated; a loop or a branch nothing, its thunks do.
  double flops = 0;
  double bytes = 0;

  static ThunkInfo Of(std::string_view kind, const hlo::Instruction& instruction);
  ir::SpanLabel Label() const;
  // "train.py:41": lines as sites have them, without folders.
  std::string line() const { return source.substr(source.rfind('/') + 1); }
};

// The buffers of one run, and where it runs. A thunk that runs a sequence of its own sets the
// entries of that sequence; all others only read them.
struct RunBuffers {
  std::byte** data;  // by BufferId
  Device device = {};
  hlo::PeerRun* peers = nullptr;  // of a program whose values depend on the device
  template <class T = std::byte>
  T* at(BufferId id) const {
    return reinterpret_cast<T*>(data[id]);
  }
};

class ProgramWriter;

class Thunk {
 public:
  virtual ~Thunk() = default;
  Thunk(const Thunk&) = delete;
  Thunk& operator=(const Thunk&) = delete;

  const ThunkInfo& info() const { return info_; }
  const std::vector<BufferUse>& uses() const { return uses_; }
  // The same for spans of its runs.
  const ir::SpanLabel& span_label() const;

  virtual absl::Status Execute(const RunBuffers& run) const = 0;

  // Execute in pieces along the outermost dimension in memory: Prepare, then every part, in any
  // order and at the same time.
  virtual bool CanSplit(int64_t parts) const {
    (void)parts;
    return false;
  }
  // Whether it runs from now on as it does now; an error if what it waits for will not come. Then the
  // program does not run any more.
  virtual absl::StatusOr<bool> IsFinal() const { return true; }
  // Whether it can be executed in parts already; once it can it always can. Until then Execute does all.
  virtual bool RunsInParts() const { return true; }
  // The number of parts that Execute makes anyway; 0: none.
  virtual int64_t own_parts() const { return 0; }
  virtual absl::Status Prepare(const RunBuffers& run) const {
    (void)run;
    return absl::OkStatus();
  }
  virtual absl::Status ExecutePart(const RunBuffers& run, Part part) const {
    (void)part;
    return Execute(run);
  }
  // The thunks that this one runs part by part; empty if it is one.
  virtual absl::Span<const std::unique_ptr<Thunk>> members() const { return {}; }

  // What its kind makes an equal thunk of (thunk_data.h).
  virtual void WriteSpec(ProgramWriter& out) const = 0;

  // More about it, for dumps: "oneDNN jit:avx2", "items=4096 grain=512".
  virtual std::string Details() const { return {}; }

 protected:
  Thunk(ThunkInfo info, std::vector<BufferUse> uses)
      : info_(std::move(info)), uses_(std::move(uses)) {}

 private:
  ThunkInfo info_;
  std::vector<BufferUse> uses_;
  mutable std::atomic<const ir::SpanLabel*> span_label_{nullptr};  // once somebody asked for it
};

// A thunk, or why there is none: a sentence without its end, for who asks why the evaluator runs the
// instruction.
class ThunkOrReason {
 public:
  template <std::derived_from<Thunk> T>
  ThunkOrReason(std::unique_ptr<T> thunk) : thunk_(std::move(thunk)) {}  // NOLINT: a result
  ThunkOrReason(const char* reason) : reason_(reason) {}                 // NOLINT: a result
  bool ok() const { return thunk_ != nullptr; }
  std::string_view reason() const { return reason_; }
  std::unique_ptr<Thunk> Take() { return std::move(thunk_); }

 private:
  std::unique_ptr<Thunk> thunk_;
  std::string_view reason_;
};

// The error with the op's name in front and the user's line behind it, each unless it is there
// already.
absl::Status WithSite(const absl::Status& status, const ThunkInfo& info);

// Executes it as a span of the trace; an error says where it comes from.
absl::Status RunThunk(const Thunk& thunk, const RunBuffers& run);

}  // namespace lazuli::backend
