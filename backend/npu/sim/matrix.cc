// The matrix unit: weights to the shadow plane, rows times the active plane to the accumulators, results to the scratchpad.

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
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, from + 2 * i, 2);
    to[i] = FromBf16(bits);
  }
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

}  // namespace

bool Engine::LoadWeights(Core& core, const Entry& entry, Cost& cost) {
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
  Place from;
  if (!Find(core, entry.ra, walk, kOwn, from) || !TouchWalk(from, walk, false)) return false;
  Plane& plane = core.shadow;
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

bool Engine::Multiply(Core& core, const Entry& entry, Cost& cost, AccUse& use) {
  const Instruction& in = *entry.in;
  const Descriptor& d = program_.descriptors[in.desc];
  Plane& plane = core.active;
  const Type type = in.element();
  if (plane.type == Type::kNone)
    return Fail(ErrorCode::kUninitialisedRead,
                "there are no weights: mx.ldw and mx.swp come before mx.mm");
  if (IsInteger(type) != IsInteger(plane.type) || (!IsInteger(type) && type != plane.type))
    return Fail(ErrorCode::kUnsupportedDtype,
                Str("rows of ", TypeName(type), " times weights of ", TypeName(plane.type)));
  const int64_t k = plane.k, n = plane.n, elem = TypeBytes(type), m = d.elements();
  Walk rows;
  rows.rank = d.rank();
  rows.elem = elem;
  for (int i = 0; i < rows.rank; ++i) {
    rows.dim[i] = d.dim[static_cast<std::size_t>(i)];
    rows.stride[i] = int64_t{d.src[static_cast<std::size_t>(i)]} * elem;
  }
  const int64_t first = entry.rb + in.number();
  if (first < 0 || m > config_.acc.rows || first > config_.acc.rows - m)
    return Fail(ErrorCode::kAccOverflow, Str("rows ", first, " to ", first + m - 1, " of ",
                                             config_.acc.rows, " rows of ACC"));
  // Where in a row its elements are.
  const bool table = in.rd != 0;
  std::vector<int64_t> koff(static_cast<std::size_t>(k));
  if (table) {
    const Walk list{1, {k}, {4}, 4};
    Place at;
    if (!Find(core, entry.rd, list, kOwn, at) || !TouchWalk(at, list, false)) return false;
    for (int64_t r = 0; r < k; ++r) {
      int32_t offset = 0;
      std::memcpy(&offset, at.at() + 4 * r, 4);
      koff[static_cast<std::size_t>(r)] = offset;
      if (offset % elem != 0)
        return Fail(ErrorCode::kMisaligned, Str("K offset ", offset, " is no multiple of ", elem));
    }
  } else {
    for (int64_t r = 0; r < k; ++r) koff[static_cast<std::size_t>(r)] = r * elem;
  }
  Place from;
  const auto [low, high] = std::minmax_element(koff.begin(), koff.end());
  // Both ends must lie in the scratchpad; what is between does, too.
  Place end;
  if (!Find(core, entry.ra + *low, rows, kOwn, from) ||
      !Find(core, entry.ra + *high, rows, kOwn, end))
    return false;
  const std::byte* const base = from.at() - *low;

  // Rows, packed.
  int64_t bank_clocks = 0;
  const bool integer = IsInteger(type);
  const int zero_point = type == Type::kU8 ? static_cast<int>(in.aux >> 2 & 255) : 0;
  (integer ? static_cast<void>(ai_.resize(static_cast<std::size_t>(m * k)))
           : static_cast<void>(a_.resize(static_cast<std::size_t>(m * k))));
  BankConflicts banks(config_, table && options_.timing ? koff : std::vector<int64_t>());
  const bool watched = strict_ != nullptr || options_.observer != nullptr;
  int64_t index[5] = {}, offset = 0;
  for (int64_t i = 0; i < m; ++i) {
    const std::byte* const row = base + offset;
    const Place place{from.memory, static_cast<uint64_t>(row - from.memory->data())};
    if (!table) {
      if (watched && !TouchBytes(place, static_cast<uint64_t>(k * elem), false)) return false;
      if (options_.timing) {
        bank_clocks += RowClocks(config_, place.offset, k * elem);
        words_.Add(place.offset, k * elem);
      }
      if (integer)
        ToIntegers(row, type, k, zero_point, ai_.data() + i * k);
      else
        ToFloats(row, type, k, a_.data() + i * k);
    } else {
      for (int64_t r = 0; r < k; ++r) {
        const std::byte* const at = row + koff[static_cast<std::size_t>(r)];
        if (watched && !TouchBytes({from.memory, static_cast<uint64_t>(at - from.memory->data())},
                                   static_cast<uint64_t>(elem), false))
          return false;
        if (integer)
          ToIntegers(at, type, 1, zero_point, ai_.data() + i * k + r);
        else
          ToFloats(at, type, 1, a_.data() + i * k + r);
      }
      if (options_.timing) {
        bank_clocks += banks.Clocks(place.offset);
        words_.Add(banks.Words(place.offset));
      }
    }
    for (int l = rows.rank - 1; l >= 0; --l) {
      offset += rows.stride[l];
      if (++index[l] < rows.dim[l]) break;
      offset -= rows.stride[l] * rows.dim[l];
      index[l] = 0;
    }
  }

  const bool accumulate = entry.rc != 0;
  const int64_t stride = config_.mxu.cols;
  const Place target{&core.acc, static_cast<uint64_t>(first * stride * 4)};
  const Walk written{2, {m, n}, {stride * 4, 4}, 4};
  if (accumulate && !TouchWalk(target, written, false)) return false;
  if (!TouchWalk(target, written, true)) return false;
  Counters& counters = CountersOf(core);
  if (integer) {
    MultiplyTile(ai_.data(), plane.i.data(), reinterpret_cast<int32_t*>(target.at()), m, k, n,
                 stride, accumulate);
    counters.macs_int += m * k * n;
  } else if (type == Type::kF32 && ModeOf(in) != F32Mode::kNative) {
    const F32Mode mode = ModeOf(in);
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
      MultiplyTile(a_parts[passes.pair[p].a], w_parts[passes.pair[p].w],
                   reinterpret_cast<float*>(target.at()), m, k, n, stride, accumulate || p > 0);
    }
    counters.macs_bf16 += m * k * n * passes.count;
  } else {
    MultiplyTile(a_.data(), plane.f.data(), reinterpret_cast<float*>(target.at()), m, k, n, stride,
                 accumulate);
    (type == Type::kF32 ? counters.macs_f32 : counters.macs_bf16) += m * k * n;
  }
  counters.spm_read_bytes += m * k * elem;
  counters.acc_words += m * n * (accumulate ? 2 : 1);
  const bool f32 = type == Type::kF32;
  cost = MultiplyCost(config_, m, k, n,
                      ClocksPerRow(config_, f32, f32 ? ModeOf(in) : F32Mode::kNative), bank_clocks);
  use.first = first;
  use.last = first + m - 1;
  return true;
}

bool Engine::Results(Core& core, const Entry& entry, Cost& cost, AccUse& use) {
  const Instruction& in = *entry.in;
  const Descriptor& d = program_.descriptors[in.desc];
  const int rank = d.rank();
  const Type type = in.element();
  const int64_t n = d.dim[static_cast<std::size_t>(rank - 1)], m = d.elements() / n,
                elem = TypeBytes(type);
  if (n > config_.mxu.cols)
    return Fail(ErrorCode::kUnsupportedShape,
                Str(n, " columns; a row of ACC has ", config_.mxu.cols));
  const int64_t first = entry.rb + in.number();
  if (first < 0 || m > config_.acc.rows || first > config_.acc.rows - m)
    return Fail(ErrorCode::kAccOverflow, Str("rows ", first, " to ", first + m - 1, " of ",
                                             config_.acc.rows, " rows of ACC"));
  const int activation = static_cast<int>(in.aux & 3);
  const bool scale = (in.aux >> 2 & 1) != 0, bias = (in.aux >> 3 & 1) != 0;
  const bool own_float = type == Type::kF32 || type == Type::kBf16;
  const bool from_float = own_float != ((in.aux >> 4 & 1) != 0);
  const int zero_point = type == Type::kS8 ? static_cast<int8_t>(in.aux >> 5 & 255)
                                           : static_cast<int>(in.aux >> 5 & 255);
  Walk target;
  target.rank = rank;
  target.elem = elem;
  for (int i = 0; i < rank; ++i) {
    target.dim[i] = d.dim[static_cast<std::size_t>(i)];
    target.stride[i] = int64_t{d.dst[static_cast<std::size_t>(i)]} * elem;
  }
  // The parameters, one behind the other.
  const int64_t parameters = (scale ? n : 0) + (bias ? n : 0) + (activation == kClamp ? 2 : 0);
  std::vector<uint32_t> words(static_cast<std::size_t>(parameters));
  if (parameters > 0) {
    const Walk list{1, {parameters}, {4}, 4};
    Place at;
    if (!Find(core, entry.rc, list, kOwn, at) || !TouchWalk(at, list, false)) return false;
    std::memcpy(words.data(), at.at(), words.size() * 4);
  }
  const auto count = static_cast<std::size_t>(n);
  const uint32_t* const scales = words.data();
  const uint32_t* const biases = words.data() + (scale ? count : 0);
  float low = 0, high = 0;
  if (activation == kClamp) {
    low = std::bit_cast<float>(words[words.size() - 2]);
    high = std::bit_cast<float>(words[words.size() - 1]);
  }
  Place to;
  const int64_t stride = config_.mxu.cols;
  const Place from{&core.acc, static_cast<uint64_t>(first * stride * 4)};
  const Walk read{2, {m, n}, {stride * 4, 4}, 4};
  if (!Find(core, entry.ra, target, kOwn, to) || !TouchWalk(from, read, false) ||
      !TouchWalk(to, target, true))
    return false;

  int64_t index[5] = {}, offset = 0;
  for (int64_t i = 0; i < m; ++i) {
    const std::byte* const row = from.at() + i * stride * 4;
    std::byte* out = to.at() + offset;
    for (int64_t c = 0; c < n; ++c, out += target.stride[rank - 1]) {
      uint32_t bits = 0;
      std::memcpy(&bits, row + 4 * c, 4);
      const auto column = static_cast<std::size_t>(c);
      float value = 0;
      if (!from_float) {
        if (bias) bits += biases[column];
        const auto whole = static_cast<int32_t>(bits);
        if (type == Type::kS32 && !scale) {
          int32_t result = whole;
          if (activation == kRelu || activation == kRelu6) result = std::max(result, 0);
          if (activation == kRelu6) result = std::min(result, 6);
          if (activation == kClamp)
            result = static_cast<int32_t>(
                std::min(std::max<int64_t>(result, Saturated(low, INT32_MIN, INT32_MAX)),
                         Saturated(high, INT32_MIN, INT32_MAX)));
          std::memcpy(out, &result, 4);
          continue;
        }
        value = static_cast<float>(whole);
        if (scale) value *= std::bit_cast<float>(scales[column]);
      } else {
        value = std::bit_cast<float>(bits);
        if (scale) value *= std::bit_cast<float>(scales[column]);
        if (bias) value += std::bit_cast<float>(biases[column]);
      }
      value = Canonical(Activated(value, activation, low, high));
      if (type == Type::kF32) {
        std::memcpy(out, &value, 4);
      } else if (type == Type::kBf16) {
        const uint16_t half = ToBf16(value);
        std::memcpy(out, &half, 2);
      } else if (type == Type::kS32) {
        const auto result = static_cast<int32_t>(Saturated(value, INT32_MIN, INT32_MAX));
        std::memcpy(out, &result, 4);
      } else {
        const int64_t least = type == Type::kS8 ? -128 : 0;
        const int64_t result = std::clamp<int64_t>(
            Saturated(value, INT32_MIN, INT32_MAX) + zero_point, least, least + 255);
        *out = static_cast<std::byte>(result);
      }
    }
    for (int l = rank - 2; l >= 0; --l) {
      offset += target.stride[l];
      if (++index[l] < target.dim[l]) break;
      offset -= target.stride[l] * target.dim[l];
      index[l] = 0;
    }
  }
  Counters& counters = CountersOf(core);
  counters.acc_words += m * n;
  counters.spm_write_bytes += m * n * elem;
  counters.spm_read_bytes += parameters * 4;
  cost = OutCost(config_, m, n);
  use.first = first;
  use.last = first + m - 1;
  return true;
}

}  // namespace lazuli::npu
