// Thunk: one step of a compiled run - a kernel, a library call, a copy, an instruction for the
// evaluator.
//
// A thunk names the buffers it reads and writes by number; the executable decides where they lie in
// each run. It is made once and executed by any number of runs at a time, so Execute keeps no state
// in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "ir/hlo/module.h"

namespace lazuli::backend {

// Index into the executable's table of buffers.
using BufferId = int32_t;

struct BufferUse {
  BufferId buffer = 0;
  bool write = false;
  // The buffer may share memory with any written buffer of the same size whose flag is set: element
  // i of the one is read before element i of the other is written, and never again.
  bool in_place = false;
};

// What a thunk is, for dumps, profiles and errors.
struct ThunkInfo {
  std::string_view kind;  // "kernel", "matmul", "evaluate", ...; a literal
  std::string name;       // of the instruction
  std::string op;         // as the user knows it: "aten::mm", or the opcode
  std::string source;     // "train.cc:41", or empty

  static ThunkInfo Of(std::string_view kind, const hlo::Instruction& instruction);
};

// The buffers of one run.
struct RunBuffers {
  std::byte* const* data;  // by BufferId
  template <class T = std::byte>
  T* at(BufferId id) const {
    return reinterpret_cast<T*>(data[id]);
  }
};

class Thunk {
 public:
  virtual ~Thunk() = default;
  Thunk(const Thunk&) = delete;
  Thunk& operator=(const Thunk&) = delete;

  const ThunkInfo& info() const { return info_; }
  const std::vector<BufferUse>& uses() const { return uses_; }

  virtual absl::Status Execute(const RunBuffers& run) const = 0;
  // More about it, for dumps: "oneDNN jit:avx2", "items=4096 grain=512".
  virtual std::string Details() const { return {}; }

 protected:
  Thunk(ThunkInfo info, std::vector<BufferUse> uses)
      : info_(std::move(info)), uses_(std::move(uses)) {}

 private:
  ThunkInfo info_;
  std::vector<BufferUse> uses_;
};

// The error with the op's name in front and the user's line behind it, each unless it is there
// already.
absl::Status WithSite(const absl::Status& status, const ThunkInfo& info);

}  // namespace lazuli::backend
