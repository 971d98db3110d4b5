// The tile IR: what a program does to tiles, in the order of the program, before anybody has decided
// where tiles lie and how units wait for each other.
//
// A TileProgram is arrays in DRAM, buffers in the scratchpad, rows of accumulators, and a straight
// list of operations, each of which is one instruction of a unit. Loops over tiles are unrolled: so
// every operand is a range of bytes that is known, and all that follows is a walk over the list:
//
//   Allocate     gives buffers their addresses (allocate.h)
//   Synchronise  adds the tokens that keep units apart (synchronise.h)
//   Emit         makes instructions of it (emit.h)
//
// Whoever makes operations thinks of one unit after the other, as if each waited for the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/npu/sim/program.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

enum class Space : uint8_t { kNone, kDram, kSpm, kAcc };

// What an operand is: the byte (of accumulators: the row) where it begins, and what it touches.
struct Place {
  Space space = Space::kNone;
  int object = -1;  // an array, or a buffer
  int64_t offset = 0;
  int64_t low = 0, high = 0;  // [low, high) of the object
  bool operator==(const Place&) const = default;
  explicit operator bool() const { return space != Space::kNone; }
};

struct TileArray {
  std::string name;
  SymbolKind kind;
  Type type;
  std::vector<int64_t> dims;
  std::vector<std::byte> data;  // of a constant
  int64_t bytes() const;
};

// Bytes of the scratchpad, or rows of the accumulators. It lives from the first operation that
// names it to the last.
struct TileBuffer {
  std::string name;
  Space space;
  int64_t size;
  int64_t address = -1;
};

// A token that an operation waits for or gives: a semaphore, or none.
inline constexpr int kNoToken = -1;

struct TileOp {
  Op op;
  Queue queue;
  Type type = Type::kNone;
  Place to = {};       // written
  Place from[3] = {};  // read
  Place table =
      {};  // read: the K offsets of mx.mm, the parameters of mx.out, the indices of dma.gat and dma.sct
  Place updates = {};       // read and written: the state of rng
  bool reads_to = false;    // `to` is read, too
  bool accumulate = false;  // of mx.mm
  int descriptor = -1;
  int vector = -1;
  uint32_t aux = 0;
  int64_t imm = 0;
  int origin = 0;
  int stage = 0;         // what works on one block (prefetch.h)
  int far_register = 0;  // holds what is added to the array's place, instead of an offset
  // Of lnk.put: where in another device's scratchpad. Of what waits for such a message: what it
  // brought, and how many there are; the semaphore is `wait` of the device that has it.
  Place remote = {};
  int remote_device = -1, remote_semaphore = kNoToken;
  int wait_count = 1;
  // Scalar code: see emit.h.
  int rd = 0, ra = 0, rb = 0;
  int label = -1;
  // Synchronise() fills these in.
  int wait = kNoToken, signal = kNoToken;
};

struct TileProgram {
  std::vector<TileArray> arrays;
  std::vector<TileBuffer> buffers;
  std::vector<TileOp> ops;
  std::vector<Descriptor> descriptors;
  std::vector<std::vector<uint32_t>> vectors;
  std::vector<std::string> origins = {""};
  std::vector<const hlo::Instruction*> instructions = {nullptr};  // of the origins
  int link_semaphores = 0;  // the last ones, which other devices signal

  std::string ToString() const;
};

// The ports that operations of a queue go through: queues, and of the matrix unit one each for
// weights and for results. What goes through one port is in order; nothing else is.
inline constexpr int kWeightsPort = 12, kResultsPort = 13, kPorts = 14;
int PortOf(const TileOp& op);
// Scalar code of the sequencer.
inline bool IsControl(const TileOp& op) { return op.queue == Queue::kSq; }
// Scalar code that finds all units idle: fences, and what stands behind them.
bool IsBarrier(const TileOp& op);

}  // namespace lazuli::npu
