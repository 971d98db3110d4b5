// Program: a compiled module before it can run - thunks in order, and a table that says where each
// buffer lies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/client/client.h"
#include "backend/cpu/runtime/thunk.h"
#include "ir/hlo/module.h"

namespace lazuli::backend {

struct BufferSlot {
  enum class Kind : uint8_t { kParameter, kConstant, kTemporary, kOutput, kKept };
  Kind kind = Kind::kTemporary;
  int64_t bytes = 0;
  int64_t index = 0;                    // of the parameter, the output or the kept packing
  const std::byte* constant = nullptr;  // memory of the module
  int64_t offset = 0;                   // of a temporary in the arena
};

struct ProgramOutput {
  Shape shape;  // row major
  BufferId buffer = 0;
  int64_t donor = -1;  // parameter whose memory it may take if the caller gives it up
};

// Weights that a run packs only if the last one packed others.
struct KeptPacking {
  int64_t parameter = 0;
  std::unique_ptr<Thunk> thunk;
  // Runs that go without, before one packs; only as many in a row that have the same weights count.
  // Their users get null. 0: packed weights are needed.
  int64_t runs_without = 0;
};

struct Program {
  std::unique_ptr<hlo::Module> module;  // optimised; owns constants and what evaluator thunks run
  std::vector<std::unique_ptr<Thunk>> thunks;
  std::vector<BufferSlot> slots;  // by BufferId
  std::vector<ProgramOutput> outputs;
  std::vector<Shape> parameters;
  std::vector<KeptPacking> packings;  // done before the thunks; into slots of kind kKept
  int64_t arena_bytes = 0;
  int64_t kept_bytes = 0;  // of all packings together
  int num_threads = 1;
  bool flush_subnormals = false;
  int depth = 0;  // of loops and branches around it
  // An output that is the parameter of its own number needs no buffer and no copy: the state of a
  // loop.
  bool keeps_parameters = false;
  ExecutableStats stats;
};

// Thunks and buffers, one a line.
std::string ThunksText(const Program& program);
std::string PlanText(const Program& program);

// Decides which temporaries share memory, which outputs may take a donated parameter's, and fills
// in offsets, donors and arena_bytes. Everything else in the program is complete.
void AssignBuffers(Program& program);

}  // namespace lazuli::backend
