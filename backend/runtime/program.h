// ThunkProgram: a compiled module before it can run - for each scheduled computation its thunks in
// order, and one table that says where each buffer lies.
//
// The entry's buffers are known when a run starts. A loop or a branch has a sequence of its own,
// whose buffers are in the same table: the thunk that runs it says where its parameters and results
// lie, and gives it a frame, a piece of its caller's scratch memory, for everything else.
//
//   entry:  t0 kernel (b0, >b1)   t1 while (b1, >b2, frame >b3)   t2 kernel (b2, >b4)
//   body:     t0 kernel (b5, >b6)     t1 matmul (b6, b7, >b8)     b6 in the frame; b5, b8: the state
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/client/client.h"
#include "backend/client/scratch_plan.h"
#include "backend/runtime/thunk.h"
#include "ir/hlo/module.h"
#include "ir/support/attrs.h"

namespace lazuli::backend {

struct BufferSlot {
  enum class Kind : uint8_t { kParameter, kConstant, kTemporary, kOutput, kKept };
  Kind kind = Kind::kTemporary;
  int32_t sequence = 0;  // whose it is; 0: the entry's
  int64_t bytes = 0;
  int64_t index = 0;  // of the parameter, the output or the kept packing
  LAZULI_ATTRS(kind, sequence, bytes, index);
};

// Memory of the module.
struct ConstantBuffer {
  BufferId buffer = 0;
  const hlo::Instruction* constant = nullptr;
  const std::byte* data() const { return constant->literal().raw(); }
  LAZULI_ATTRS(buffer, constant);
};
// Memory of a sequence's frame.
struct FrameBuffer {
  BufferId buffer = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
  LAZULI_ATTRS(buffer, offset, bytes);
};

// A temporary that lies in an output's memory until the output is written over it.
struct OutputBuffer {
  BufferId buffer = 0;
  BufferId output = 0;
  LAZULI_ATTRS(buffer, output);
};

struct ProgramOutput {
  Shape shape;  // row major
  BufferId buffer = 0;
  int64_t donor = -1;  // parameter whose memory it may take if the caller gives it up
  LAZULI_ATTRS(shape, buffer, donor);
};

// A parameter (weights) that a library call wants in a layout of its own. The packed copy is kept
// from run to run and made again when the parameter is another buffer than in the last run.
struct KeptPacking {
  int64_t parameter = 0;
  std::unique_ptr<Thunk> thunk;
  // The copy is made only once this many runs in a row had the same buffer; until then the calls
  // that use it are given null and read the parameter as it is. 0: the calls cannot do without it.
  int64_t runs_without = 0;
  LAZULI_ATTRS(parameter, thunk, runs_without);
};

// What a computation became. Parameters and outputs are the leaves of the computation's, in order.
struct ThunkSequence {
  std::string name;
  int32_t index = 0;        // among the program's; 0: the entry
  BufferId first_slot = 0;  // its own, one after the other, begin here
  std::vector<std::unique_ptr<Thunk>> thunks;
  std::vector<BufferId> parameters;
  std::vector<ProgramOutput> outputs;
  std::vector<FrameBuffer> temporaries;
  std::vector<OutputBuffer> in_outputs;  // further ones; of the entry alone
  int64_t frame_bytes = 0;
  LAZULI_ATTRS(name, index, first_slot, thunks, parameters, outputs, temporaries, in_outputs,
               frame_bytes);

  // Tells `table` where the temporaries of a run lie whose frame begins here.
  void PlaceFrame(std::byte* frame, std::byte** table) const;
};

struct ThunkProgram {
  std::unique_ptr<hlo::Module> module;  // optimised; owns constants and what evaluator thunks run
  std::vector<BufferSlot> slots;        // by BufferId, of all sequences
  std::vector<ConstantBuffer> constants;
  // The entry first; then callees before callers. Thunks of loops and branches point to theirs.
  std::vector<std::unique_ptr<ThunkSequence>> sequences;
  std::vector<Shape> parameters;      // leaves of the entry's
  std::vector<KeptPacking> packings;  // done before the thunks; into slots of kind kKept
  int64_t kept_bytes = 0;             // of all packings together
  CompileOptions options;             // with a number of threads
  ExecutableStats stats;

  const ThunkSequence& entry() const { return *sequences.front(); }
  BufferSlot& slot(BufferId id) { return slots[static_cast<std::size_t>(id)]; }
  const BufferSlot& slot(BufferId id) const { return slots[static_cast<std::size_t>(id)]; }
};

// When the temporaries of the entry hold values, by its thunks.
ScratchPlan ScratchPlanOf(const ThunkProgram& program);

absl::Status RunThunks(const ThunkSequence& sequence, const RunBuffers& run);

// Thunks and buffers, one per line.
std::string ThunksText(const ThunkProgram& program);
std::string PlanText(const ThunkProgram& program);

}  // namespace lazuli::backend
