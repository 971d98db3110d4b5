// The matrix unit: weights to the shadow plane, rows times the active plane to the accumulators,
// results to the scratchpad.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/npu/sim/address.h"
#include "backend/npu/sim/engine.h"
#include "backend/npu/sim/numerics.h"
#include "ir/recipes/recipes.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

bool IsInteger(Type type) { return type == Type::kS8 || type == Type::kU8; }

void ToFloats(const std::byte* from, Type type, int64_t count, float* to) {
  if (type == Type::kF32) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * 4);
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = FromBf16(Loaded<uint16_t>(from + 2 * i));
}

void ToIntegers(const std::byte* from, Type type, int64_t count, int zero_point, int16_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(from[i]);
    to[i] = static_cast<int16_t>(
        (type == Type::kU8 ? static_cast<int>(byte) : static_cast<int>(static_cast<int8_t>(byte))) -
        zero_point);
  }
}

F32Mode ModeOf(const Instruction& in) { return static_cast<F32Mode>(in.aux & 3); }

// A float as the integer type has it: nearest, ties to even, limited; NaN is 0.
int64_t Saturated(float value, int64_t low, int64_t high) {
  if (value != value) return 0;
  const double rounded = std::nearbyint(static_cast<double>(value));
  return rounded <= static_cast<double>(low)    ? low
         : rounded >= static_cast<double>(high) ? high
                                                : static_cast<int64_t>(rounded);
}

enum Activation { kLinear, kRelu, kRelu6, kClamp };

float Activated(float value, int activation, float low, float high) {
  using namespace hlo::
      recipes;  // NOLINT(google-build-using-namespace): the recipes of the evaluator
  if (activation == kRelu) return Maximum(value, 0.0f);
  if (activation == kRelu6) return Minimum(Maximum(value, 0.0f), 6.0f);
  if (activation == kClamp) return Minimum(Maximum(value, low), high);
  return value;
}

// A sum of integers that stays one.
int32_t Limited(const Epilogue& e, int32_t sum) {
  if (e.activation == kRelu || e.activation == kRelu6) sum = std::max(sum, 0);
  if (e.activation == kRelu6) sum = std::min(sum, 6);
  if (e.activation == kClamp)
    sum = static_cast<int32_t>(
        std::min(std::max<int64_t>(sum, Saturated(e.low, INT32_MIN, INT32_MAX)),
                 Saturated(e.high, INT32_MIN, INT32_MAX)));
  return sum;
}

// A sum of column c as the result that it becomes. docs/npu.md has the order of the operations.
void StoreResult(const Epilogue& e, uint32_t sum, int64_t c, std::byte* out) {
  const float scale = e.scales != nullptr ? std::bit_cast<float>(e.scales[c]) : 1.0f;
  float value = 0;
  if (e.from_float) {
    value = std::bit_cast<float>(sum);
    if (e.scales != nullptr) value *= scale;
    if (e.biases != nullptr) value += std::bit_cast<float>(e.biases[c]);
  } else {
    if (e.biases != nullptr) sum += e.biases[c];
    const auto whole = static_cast<int32_t>(sum);
    if (e.type == Type::kS32 && e.scales == nullptr) return Stored(out, Limited(e, whole));
    value = static_cast<float>(whole);
    if (e.scales != nullptr) value *= scale;
  }
  value = Canonical(Activated(value, e.activation, e.low, e.high));
  if (e.type == Type::kF32) return Stored(out, value);
  if (e.type == Type::kBf16) return Stored(out, ToBf16(value));
  const int64_t rounded = Saturated(value, INT32_MIN, INT32_MAX);
  if (e.type == Type::kS32) return Stored(out, static_cast<int32_t>(rounded));
  const int64_t least = e.type == Type::kS8 ? -128 : 0;
  Stored(out,
         static_cast<uint8_t>(std::clamp<int64_t>(rounded + e.zero_point, least, least + 255)));
}

}  // namespace

bool Engine::LoadWeights(Core& core, const QueuedInstruction& entry, Cost& cost) {
  const Instruction& in = *entry.in;
  const int64_t k = in.imm & 0xffff, n = in.imm >> 16;
  const bool transposed = (in.aux & 1) != 0;
  if (k < 1 || n < 1 || k > config_.mxu.rows || n > config_.mxu.cols)
    return Fail(ErrorCode::kUnsupportedShape,
                Str("k=", k, ", n=", n, ": the array holds 1 to ", config_.mxu.rows, " by 1 to ",
                    config_.mxu.cols, " weights"));
  const Type type = in.element();
  const int64_t rows = transposed ? n : k, columns = transposed ? k : n, elem = TypeBytes(type);
  const int64_t ld = in.aux >> 1 != 0 ? in.aux >> 1 : columns;
  const Walk walk{2, {rows, columns}, {ld * elem, elem}, elem};
  MemoryPlace from;
  if (!Find(core, entry.ra, walk, kOwn, from) || !TouchWalk(from, walk, false)) return false;
  WeightPlane& plane = core.shadow;
  plane.type = type;
  plane.k = k;
  plane.n = n;
  plane.parts_made = 0;
  auto fill = [&](auto& to, auto convert) {
    to.resize(static_cast<std::size_t>(k * n));
    if (!transposed) {
      for (int64_t r = 0; r < k; ++r) convert(from.at() + r * ld * elem, n, to.data() + r * n);
      return;
    }
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t r = 0; r < k; ++r)
        convert(from.at() + (c * ld + r) * elem, 1, to.data() + r * n + c);
    }
  };
  if (IsInteger(type)) {
    fill(plane.i, [&](const std::byte* at, int64_t count, int16_t* to) {
      ToIntegers(at, type, count, 0, to);
    });
  } else {
    fill(plane.f,
         [&](const std::byte* at, int64_t count, float* to) { ToFloats(at, type, count, to); });
  }
  CountersOf(core).spm_read_bytes += k * n * elem;
  cost = LoadWeightsCost(config_, k, n, transposed);
  if (config_.mxu.dataflow != Dataflow::kWs) words_.Clear();  // they come with the product
  return true;
}

// Where in a row its elements are, in bytes: one behind the other, or as the table says.
bool Engine::ReadOffsets(Core& core, const QueuedInstruction& entry, int64_t k) {
  const int64_t elem = TypeBytes(entry.in->element());
  offsets_.resize(static_cast<std::size_t>(k));
  if (entry.in->rd == 0) {
    for (int64_t r = 0; r < k; ++r) offsets_[static_cast<std::size_t>(r)] = r * elem;
    return true;
  }
  const Walk table{1, {k}, {4}, 4};
  MemoryPlace at;
  if (!Find(core, entry.rd, table, kOwn, at) || !TouchWalk(at, table, false)) return false;
  for (int64_t r = 0; r < k; ++r) {
    const auto offset = Loaded<int32_t>(at.at() + 4 * r);
    if (offset % elem != 0)
      return Fail(ErrorCode::kMisaligned, Str("K offset ", offset, " is not a multiple of ", elem));
    offsets_[static_cast<std::size_t>(r)] = offset;
  }
  return true;
}

// Packs the rows of A into ai_ or a_, element by element of offsets_. `bank_clocks`: in how many
// clocks the banks give them.
bool Engine::GatherRows(Core& core, const QueuedInstruction& entry, int64_t k,
                        int64_t& bank_clocks) {
  const Instruction& in = *entry.in;
  const Type type = in.element();
  const bool table = in.rd != 0, integer = IsInteger(type);
  const Walk rows = WalkOf(program().descriptors[in.desc], true, TypeBytes(type));
  // Both ends must lie in the scratchpad; what is between does, too.
  const auto [low, high] = std::minmax_element(offsets_.begin(), offsets_.end());
  MemoryPlace from, end;
  if (!Find(core, entry.ra + *low, rows, kOwn, from) ||
      !Find(core, entry.ra + *high, rows, kOwn, end))
    return false;
  const int zero_point = type == Type::kU8 ? static_cast<int>(in.aux >> 2 & 255) : 0;
  const auto elements = static_cast<std::size_t>(program().descriptors[in.desc].elements() * k);
  ai_.resize(integer ? elements : 0);
  a_.resize(integer ? 0 : elements);
  auto pack = [&](const std::byte* at, int64_t count, int64_t to) {
    if (integer)
      ToIntegers(at, type, count, zero_point, ai_.data() + to);
    else
      ToFloats(at, type, count, a_.data() + to);
  };
  BankConflicts banks(config_, table && options_.timing ? offsets_ : std::vector<int64_t>());
  const bool watched = strict_ != nullptr || options_.observer != nullptr;
  Steps steps(rows.dim, rows.stride, rows.rank);
  int64_t packed = 0;
  do {
    const MemoryPlace row{from.memory, from.offset + static_cast<uint64_t>(steps.offset() - *low)};
    if (!table) {
      const int64_t bytes = k * rows.elem;
      if (watched && !TouchBytes(row, static_cast<uint64_t>(bytes), false)) return false;
      pack(row.at(), k, packed);
      packed += k;
      if (!options_.timing) continue;
      bank_clocks += RowClocks(config_, row.offset, bytes);
      words_.Add(row.offset, bytes);
      continue;
    }
    for (const int64_t offset : offsets_) {
      const MemoryPlace element{row.memory, row.offset + static_cast<uint64_t>(offset)};
      if (watched && !TouchBytes(element, static_cast<uint64_t>(rows.elem), false)) return false;
      pack(element.at(), 1, packed++);
    }
    if (!options_.timing) continue;
    bank_clocks += banks.Clocks(row.offset);
    words_.Add(banks.Words(row.offset));
  } while (steps.Next());
  return true;
}

// The packed rows times the active plane, m of them, to rows of the accumulators.
void Engine::MultiplyRows(Core& core, const Instruction& in, int64_t m, std::byte* to,
                          bool accumulate) {
  WeightPlane& plane = core.active;
  const int64_t k = plane.k, n = plane.n, stride = config_.mxu.cols, macs = m * k * n;
  Counters& counters = CountersOf(core);
  if (IsInteger(in.element())) {
    MultiplyTile(ai_.data(), plane.i.data(), reinterpret_cast<int32_t*>(to), m, k, n, stride,
                 accumulate);
    counters.macs_int += macs;
    return;
  }
  auto* const sums = reinterpret_cast<float*>(to);
  const F32Mode mode = ModeOf(in);
  if (in.element() != Type::kF32 || mode == F32Mode::kNative) {
    MultiplyTile(a_.data(), plane.f.data(), sums, m, k, n, stride, accumulate);
    (in.element() == Type::kF32 ? counters.macs_f32 : counters.macs_bf16) += macs;
    return;
  }
  const int parts = mode == F32Mode::kX1 ? 1 : mode == F32Mode::kX3 ? 2 : 3;
  float* a_parts[3];
  float* w_parts[3];
  for (int p = 0; p < 3; ++p) {
    parts_[p].resize(a_.size());
    plane.parts[p].resize(plane.f.size());
    a_parts[p] = parts_[p].data();
    w_parts[p] = plane.parts[p].data();
  }
  SplitBf16(a_.data(), static_cast<int64_t>(a_.size()), parts, a_parts);
  if (plane.parts_made < parts)
    SplitBf16(plane.f.data(), static_cast<int64_t>(plane.f.size()), parts, w_parts);
  plane.parts_made = std::max(plane.parts_made, parts);
  const Passes passes = PassesOf(mode);
  for (int p = 0; p < passes.count; ++p) {
    MultiplyTile(a_parts[passes.pair[p].a], w_parts[passes.pair[p].w], sums, m, k, n, stride,
                 accumulate || p > 0);
  }
  counters.macs_bf16 += macs * passes.count;
}

// Rows of the accumulators that mx.mm and mx.out name, m from acc[] on.
bool Engine::AccRows(const Core& core, const QueuedInstruction& entry, int64_t m, AccUse& use) {
  use.first = entry.rb + entry.in->number();
  use.last = use.first + m - 1;
  if (use.first >= 0 && m <= config_.acc.rows && use.first <= config_.acc.rows - m) return true;
  return Fail(ErrorCode::kAccOverflow,
              Str("rows ", use.first, " to ", use.last, " of ",
                  core.acc.size() / static_cast<uint64_t>(4 * config_.mxu.cols), " rows of ACC"));
}

bool Engine::Multiply(Core& core, const QueuedInstruction& entry, Cost& cost, AccUse& use) {
  const Instruction& in = *entry.in;
  const WeightPlane& plane = core.active;
  const Type type = in.element();
  if (plane.type == Type::kNone)
    return Fail(ErrorCode::kUninitialisedRead,
                "there are no weights: mx.ldw and mx.swp come before mx.mm");
  if (IsInteger(type) != IsInteger(plane.type) || (!IsInteger(type) && type != plane.type))
    return Fail(ErrorCode::kUnsupportedDtype,
                Str("rows of ", TypeName(type), " times weights of ", TypeName(plane.type)));
  const int64_t k = plane.k, n = plane.n, m = program().descriptors[in.desc].elements();
  int64_t bank_clocks = 0;
  if (!AccRows(core, entry, m, use) || !ReadOffsets(core, entry, k) ||
      !GatherRows(core, entry, k, bank_clocks))
    return false;

  const bool accumulate = entry.rc != 0;
  const int64_t stride = config_.mxu.cols * 4;
  const MemoryPlace target{&core.acc, static_cast<uint64_t>(use.first * stride)};
  const Walk written{2, {m, n}, {stride, 4}, 4};
  if (accumulate && !TouchWalk(target, written, false)) return false;
  if (!TouchWalk(target, written, true)) return false;
  MultiplyRows(core, in, m, target.at(), accumulate);

  Counters& counters = CountersOf(core);
  counters.spm_read_bytes += m * k * TypeBytes(type);
  counters.acc_words += m * n * (accumulate ? 2 : 1);
  const bool f32 = type == Type::kF32;
  cost = MultiplyCost(config_, m, k, n,
                      ClocksPerRow(config_, f32, f32 ? ModeOf(in) : F32Mode::kNative), bank_clocks);
  return true;
}

// What mx.out does with a sum on its way to the scratchpad.
bool Engine::ReadEpilogue(Core& core, const QueuedInstruction& entry, int64_t n,
                          Epilogue& epilogue) {
  const Instruction& in = *entry.in;
  epilogue.type = in.element();
  epilogue.activation = static_cast<int>(in.aux & 3);
  const bool scale = (in.aux >> 2 & 1) != 0, bias = (in.aux >> 3 & 1) != 0;
  const bool clamp = epilogue.activation == kClamp, other = (in.aux >> 4 & 1) != 0;
  epilogue.from_float = (epilogue.type == Type::kF32 || epilogue.type == Type::kBf16) != other;
  const auto zero_point = static_cast<uint8_t>(in.aux >> 5);
  epilogue.zero_point = epilogue.type == Type::kS8 ? static_cast<int8_t>(zero_point) : zero_point;
  // The parameters, one behind the other.
  const int64_t count = (scale ? n : 0) + (bias ? n : 0) + (clamp ? 2 : 0);
  epilogue.words.resize(static_cast<std::size_t>(count));
  if (count > 0) {
    const Walk list{1, {count}, {4}, 4};
    MemoryPlace at;
    if (!Find(core, entry.rc, list, kOwn, at) || !TouchWalk(at, list, false)) return false;
    std::memcpy(epilogue.words.data(), at.at(), epilogue.words.size() * 4);
  }
  const uint32_t* const words = epilogue.words.data();
  epilogue.scales = scale ? words : nullptr;
  epilogue.biases = bias ? words + (scale ? n : 0) : nullptr;
  if (clamp) {
    epilogue.low = std::bit_cast<float>(words[count - 2]);
    epilogue.high = std::bit_cast<float>(words[count - 1]);
  }
  CountersOf(core).spm_read_bytes += count * 4;
  return true;
}

bool Engine::Results(Core& core, const QueuedInstruction& entry, Cost& cost, AccUse& use) {
  const Instruction& in = *entry.in;
  const Descriptor& d = program().descriptors[in.desc];
  const int64_t n = d.dim[static_cast<std::size_t>(d.rank() - 1)], m = d.elements() / n,
                elem = TypeBytes(in.element()), stride = config_.mxu.cols * 4;
  if (n > config_.mxu.cols)
    return Fail(ErrorCode::kUnsupportedShape,
                Str(n, " columns; a row of ACC has ", config_.mxu.cols));
  Epilogue epilogue;
  if (!AccRows(core, entry, m, use) || !ReadEpilogue(core, entry, n, epilogue)) return false;
  const Walk target = WalkOf(d, false, elem), read{2, {m, n}, {stride, 4}, 4};
  const MemoryPlace from{&core.acc, static_cast<uint64_t>(use.first * stride)};
  MemoryPlace to;
  if (!Find(core, entry.ra, target, kOwn, to) || !TouchWalk(from, read, false) ||
      !TouchWalk(to, target, true))
    return false;
  const std::byte* row = from.at();
  Steps rows(target.dim, target.stride, target.rank - 1);
  do {
    std::byte* out = to.at() + rows.offset();
    for (int64_t c = 0; c < n; ++c, out += target.stride[target.rank - 1])
      StoreResult(epilogue, Loaded<uint32_t>(row + 4 * c), c, out);
    row += stride;
  } while (rows.Next());
  Counters& counters = CountersOf(core);
  counters.acc_words += m * n;
  counters.spm_write_bytes += m * n * elem;
  cost = OutCost(config_, m, n);
  return true;
}

}  // namespace lazuli::npu
