// The vector unit: programs over loop nests, reductions, random bits.

#include <algorithm>
#include <cstring>

#include "backend/npu/sim/engine.h"
#include "backend/npu/sim/micro.h"
#include "backend/npu/sim/numerics.h"
#include "ir/evaluator/random_bits.h"
#include "ir/recipes/recipes.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

// Of the streams a, b, c and the result; also the register that holds it.
constexpr int kResult = 3;

uint32_t LoadElement(const std::byte* at, Type type) {
  const uint64_t bits = LoadBits(type, at);
  return static_cast<uint32_t>(type == Type::kBf16 ? bits << 16 : NumberOf(type, bits));
}

void StoreElement(std::byte* at, Type type, uint32_t bits) {
  if (type == Type::kBf16) bits = ToBf16(std::bit_cast<float>(bits));
  if (type == Type::kPred) bits = bits != 0;
  std::memcpy(at, &bits, static_cast<std::size_t>(TypeBytes(type)));
}

bool IsFloat(Type type) { return type == Type::kF32 || type == Type::kBf16; }

enum Reduction { kSum, kMaximum, kMinimum, kProduct, kAllBits, kAnyBit, kArgMax, kArgMin };

// A running result, and for argmax and argmin where it was.
struct Partial {
  uint32_t value = 0;
  int32_t index = -1;  // -1: nothing yet
};

bool Better(uint32_t x, uint32_t y, bool is_float, bool maximum) {
  if (is_float) {
    const float a = std::bit_cast<float>(x), b = std::bit_cast<float>(y);
    if (b != b) return false;
    return a != a || (maximum ? a > b : a < b);
  }
  return maximum ? static_cast<int32_t>(x) > static_cast<int32_t>(y)
                 : static_cast<int32_t>(x) < static_cast<int32_t>(y);
}

// `b` comes after `a`, or has a larger index where lanes are joined.
Partial Joined(const Partial& a, const Partial& b, int op, bool is_float) {
  if (a.index < 0) return b;
  if (b.index < 0) return a;
  Partial result = a;
  if (op == kArgMax || op == kArgMin) {
    const bool maximum = op == kArgMax;
    const bool tie = !Better(a.value, b.value, is_float, maximum) &&
                     !Better(b.value, a.value, is_float, maximum);
    return tie ? (a.index < b.index ? a : b) : Better(b.value, a.value, is_float, maximum) ? b : a;
  }
  if (is_float) {
    const float x = std::bit_cast<float>(a.value), y = std::bit_cast<float>(b.value);
    const float z = op == kSum       ? x + y
                    : op == kProduct ? x * y
                    : op == kMaximum ? hlo::recipes::Maximum(x, y)
                                     : hlo::recipes::Minimum(x, y);
    result.value = op == kAllBits  ? a.value & b.value
                   : op == kAnyBit ? a.value | b.value
                                   : std::bit_cast<uint32_t>(Canonical(z));
    return result;
  }
  switch (op) {
    case kSum:
      result.value = a.value + b.value;
      break;
    case kProduct:
      result.value = a.value * b.value;
      break;
    case kMaximum:
      result.value = static_cast<uint32_t>(
          std::max(static_cast<int32_t>(a.value), static_cast<int32_t>(b.value)));
      break;
    case kMinimum:
      result.value = static_cast<uint32_t>(
          std::min(static_cast<int32_t>(a.value), static_cast<int32_t>(b.value)));
      break;
    case kAllBits:
      result.value = a.value & b.value;
      break;
    default:
      result.value = a.value | b.value;
      break;
  }
  return result;
}

// A loop nest walked level by level, with the offsets of the streams.
struct Nest {
  int rank = 0;
  int level[4] = {};  // that the program knows each level as
  int64_t dim[4] = {}, index[4] = {}, stride[4][4] = {}, offset[4] = {};
  void Next() {
    for (int l = rank - 1; l >= 0; --l) {
      for (int s = 0; s < 4; ++s) offset[s] += stride[s][l];
      if (++index[l] < dim[l]) return;
      for (int s = 0; s < 4; ++s) offset[s] -= stride[s][l] * dim[l];
      index[l] = 0;
    }
  }
};

Nest NestOf(const Walk (&walks)[4]) {
  Nest nest;
  nest.rank = walks[kResult].rank;
  for (int l = 0; l < nest.rank; ++l) {
    nest.level[l] = l;
    nest.dim[l] = walks[kResult].dim[l];
    for (int s = 0; s < 4; ++s) nest.stride[s][l] = walks[s].stride[l];
  }
  return nest;
}

// Levels that stay, outermost first, then those that are reduced: each result's elements come one
// behind the other.
Nest ReducedInnermost(const Nest& nest, uint32_t levels) {
  Nest ordered;
  for (uint32_t pass = 0; pass < 2; ++pass) {
    for (int l = 0; l < nest.rank; ++l) {
      if ((levels >> l & 1) != pass) continue;
      ordered.level[ordered.rank] = l;
      ordered.dim[ordered.rank] = nest.dim[l];
      for (int s = 0; s < 4; ++s) ordered.stride[s][ordered.rank] = nest.stride[s][l];
      ++ordered.rank;
    }
  }
  return ordered;
}

}  // namespace

// A vector instruction's operands, found and checked.
struct VectorStreams {
  int inputs = 0;
  Type type[4] = {};
  Walk walk[4];
  std::byte* base[4] = {};

  int64_t input_bytes() const {  // of an element
    int64_t sum = 0;
    for (int s = 0; s < inputs; ++s) sum += walk[s].elem;
    return sum;
  }
};

namespace {

// Runs a program over the elements of a nest, a block at a time.
class Runner {
 public:
  Runner(const std::vector<MicroInstruction>& program, const VectorStreams& streams)
      : program_(program), streams_(streams), registers_(32) {}

  // The next n elements; the results, and in `targets` where they go.
  const Lanes& Block(Nest& nest, int64_t n, std::array<int64_t, kBlock>& targets) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      for (int s = 0; s < streams_.inputs; ++s)
        registers_[static_cast<std::size_t>(s)][i] =
            LoadElement(streams_.base[s] + nest.offset[s], streams_.type[s]);
      for (int l = 0; l < nest.rank; ++l)
        levels_[static_cast<std::size_t>(nest.level[l])][i] = static_cast<uint32_t>(nest.index[l]);
      targets[i] = nest.offset[kResult];
      nest.Next();
    }
    for (const MicroInstruction& m : program_) {
      Lanes& d = registers_[static_cast<std::size_t>(m.d)];
      if (m.op == Micro::kLit) {
        d.fill(m.literal);
      } else if (m.op == Micro::kIdx) {
        d = levels_[static_cast<std::size_t>(m.a)];
      } else {
        Compute(m, registers_[static_cast<std::size_t>(m.a)],
                registers_[static_cast<std::size_t>(m.b)],
                registers_[static_cast<std::size_t>(m.c)], d, n);
      }
    }
    return registers_[kResult];
  }

 private:
  const std::vector<MicroInstruction>& program_;
  const VectorStreams& streams_;
  std::vector<Lanes> registers_;
  std::array<Lanes, 4> levels_{};
};

void RunElements(Runner& runner, Nest nest, int64_t n, const VectorStreams& streams) {
  std::array<int64_t, kBlock> targets;
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t count = std::min(kBlock, n - done);
    const Lanes& results = runner.Block(nest, count, targets);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      StoreElement(streams.base[kResult] + targets[i], streams.type[kResult], results[i]);
  }
}

// Joins lanes by halving: the first one has the result.
void JoinLanes(std::vector<Partial>& lanes, int64_t count, int op, bool is_float) {
  const uint64_t power = std::bit_ceil(static_cast<uint64_t>(count));
  for (auto width = static_cast<int64_t>(power / 2); width >= 1; width /= 2) {
    for (int64_t l = 0; l < width && l + width < count; ++l) {
      Partial& lane = lanes[static_cast<std::size_t>(l)];
      lane = Joined(lane, lanes[static_cast<std::size_t>(l + width)], op, is_float);
    }
  }
}

// Results of `length` elements each, which follow each other in the nest.
void RunReduction(Runner& runner, Nest nest, int64_t results, int64_t length, int op,
                  int64_t all_lanes, const VectorStreams& streams) {
  const bool index = op == kArgMax || op == kArgMin;
  const bool is_float = IsFloat(streams.type[index ? 0 : kResult]);
  const int64_t lanes = std::min(all_lanes, length);
  std::vector<Partial> partial(static_cast<std::size_t>(lanes));
  std::array<int64_t, kBlock> targets;
  for (int64_t result = 0; result < results; ++result) {
    std::fill(partial.begin(), partial.end(), Partial{});
    std::byte* const to = streams.base[kResult] + nest.offset[kResult];
    for (int64_t done = 0; done < length; done += kBlock) {
      const int64_t count = std::min(kBlock, length - done);
      const Lanes& values = runner.Block(nest, count, targets);
      for (int64_t i = 0; i < count; ++i) {
        Partial& lane = partial[static_cast<std::size_t>((done + i) % all_lanes)];
        lane = Joined(lane, {values[static_cast<std::size_t>(i)], static_cast<int32_t>(done + i)},
                      op, is_float);
      }
    }
    JoinLanes(partial, lanes, op, is_float);
    StoreElement(to, streams.type[kResult],
                 index ? static_cast<uint32_t>(partial[0].index) : partial[0].value);
  }
}

}  // namespace

// `levels`: those that are reduced, along which the result stays where it is.
bool Engine::FindStreams(Core& core, const QueuedInstruction& entry, uint32_t levels,
                         VectorStreams& streams) {
  const Descriptor &d = program().descriptors[entry.in->desc],
                   &e = program().descriptors[entry.in->desc + 1];
  const std::array<int32_t, 5>* const strides[4] = {&d.src, &e.src, &e.dst, &d.dst};
  const int64_t addresses[4] = {entry.ra, entry.rb, entry.rc, entry.rd};
  streams.inputs = d.inputs();
  for (int s = 0; s < 4; ++s) {
    Walk& walk = streams.walk[s];
    streams.type[s] = d.type(s);
    walk.rank = d.rank();
    walk.elem = std::max(1, TypeBytes(d.type(s)));
    for (int l = 0; l < walk.rank; ++l) {
      const auto at = static_cast<std::size_t>(l);
      const bool stays = s == kResult && (levels >> l & 1) != 0;
      walk.dim[l] = d.dim[at];
      walk.stride[l] = stays ? 0 : int64_t{(*strides[s])[at]} * walk.elem;
    }
  }
  MemoryPlace result;
  for (int s = 0; s < streams.inputs; ++s) {
    MemoryPlace place;
    if (!Find(core, addresses[s], streams.walk[s], kOwn | kAccToo, place) ||
        !TouchWalk(place, streams.walk[s], false))
      return false;
    streams.base[s] = place.at();
  }
  if (!Find(core, addresses[kResult], streams.walk[kResult], kOwn | kAccToo, result) ||
      !TouchWalk(result, streams.walk[kResult], true))
    return false;
  streams.base[kResult] = result.at();
  return true;
}

bool Engine::Vector(Core& core, const QueuedInstruction& entry, Cost& cost) {
  const Instruction& in = *entry.in;
  const Descriptor& d = program().descriptors[in.desc];
  const auto& program = checked_->vectors[in.imm];
  const bool reduces = in.opcode() == Op::kVxRed;
  const uint32_t levels = reduces ? in.aux >> 4 & 15 : 0;
  if (levels >> d.rank() != 0)
    return Fail(ErrorCode::kUnsupportedShape, Str("levels=", levels, " of a nest of ", d.rank()));
  VectorStreams streams;
  if (!FindStreams(core, entry, levels, streams)) return false;

  const int64_t n = d.elements();
  int64_t length = 1;  // elements of a result
  for (int l = 0; l < d.rank(); ++l) {
    if ((levels >> l & 1) != 0) length *= d.dim[static_cast<std::size_t>(l)];
  }
  Runner runner(program, streams);
  const Nest nest = NestOf(streams.walk);
  if (reduces)
    RunReduction(runner, ReducedInnermost(nest, levels), n / length, length,
                 static_cast<int>(in.aux & 7), config_.vpu.lanes, streams);
  else
    RunElements(runner, nest, n, streams);

  int64_t alu = reduces ? 1 : 0, sfu = 0;
  for (const MicroInstruction& m : program) {
    if (m.op == Micro::kLit) continue;
    ++(FindMicro(static_cast<uint32_t>(m.op))->sfu ? sfu : alu);
  }
  Counters& counters = CountersOf(core);
  counters.alu_ops += n * alu;
  counters.sfu_ops += n * sfu;
  counters.spm_read_bytes += n * streams.input_bytes();
  counters.spm_write_bytes += n * streams.walk[kResult].elem;
  const int64_t interval = InitiationInterval(config_, n, alu, sfu, streams.inputs + 1);
  cost = reduces ? ReduceCost(config_, n, interval, length) : VectorCost(config_, n, interval);
  return true;
}

bool Engine::Random(Core& core, const QueuedInstruction& entry, Cost& cost) {
  const Instruction& in = *entry.in;
  const bool threefry = (in.aux & 1) != 0;
  const int64_t n = in.imm;
  if (n == 0) return Fail(ErrorCode::kUnsupportedShape, "n=0: there is nothing to make");
  const Walk out{1, {n}, {4}, 4}, state{1, {threefry ? 4 : 6}, {4}, 4};
  MemoryPlace to, at;
  if (!Find(core, entry.ra, out, kOwn, to) || !Find(core, entry.rb, state, kOwn, at)) return false;
  if (!TouchWalk(at, state, false) || !TouchWalk(at, state, true) || !TouchWalk(to, out, true))
    return false;
  uint32_t words[6] = {};
  std::memcpy(words, at.at(), static_cast<std::size_t>(state.dim[0]) * 4);
  const std::array<uint32_t, 2> key{words[0], words[1]};
  const int64_t per_counter = threefry ? 2 : 4;
  for (int64_t i = 0; i < n; i += per_counter) {
    std::array<uint32_t, 4> block{};
    if (threefry) {
      const auto two = hlo::ThreeFry2x32({words[2], words[3]}, key);
      block[0] = two[0];
      block[1] = two[1];
    } else {
      block = hlo::Philox4x32(std::array<uint32_t, 4>{words[2], words[3], words[4], words[5]}, key);
    }
    const int64_t count = std::min(per_counter, n - i);
    std::memcpy(to.at() + 4 * i, block.data(), static_cast<std::size_t>(count) * 4);
    for (int w = 2; w < (threefry ? 4 : 6) && ++words[w] == 0; ++w) {
    }
  }
  std::memcpy(at.at(), words, static_cast<std::size_t>(state.dim[0]) * 4);
  CountersOf(core).spm_write_bytes += 4 * n;
  cost = RandomCost(config_, n);
  return true;
}

}  // namespace lazuli::npu
