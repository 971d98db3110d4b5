// ThunkProgram: a compiled module before it can run - thunks in order, and a table that says where each
// buffer lies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/client/client.h"
#include "backend/runtime/thunk.h"
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

// A parameter (weights) that a library call wants in a layout of its own. The packed copy is kept
// from run to run and made again when the parameter is another buffer than in the last run.
struct KeptPacking {
  int64_t parameter = 0;
  std::unique_ptr<Thunk> thunk;
  // The copy is made only once this many runs in a row had the same buffer; until then the calls
  // that use it are given null and read the parameter as it is. 0: the calls cannot do without it.
  int64_t runs_without = 0;
};

struct ThunkProgram {
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

// Thunks and buffers, one per line.
std::string ThunksText(const ThunkProgram& program);
std::string PlanText(const ThunkProgram& program);

// Decides which temporaries share memory, which outputs may take a donated parameter's, and fills
// in offsets, donors and arena_bytes. Everything else in the program is complete.
void AssignBuffers(ThunkProgram& program);

}  // namespace lazuli::backend
