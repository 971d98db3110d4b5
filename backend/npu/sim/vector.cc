// The vector unit: micro-programs over loop nests, reductions, random bits.

#include <algorithm>
#include <cstring>

#include "backend/npu/sim/address.h"
#include "backend/npu/sim/engine.h"
#include "backend/npu/sim/numerics.h"
#include "ir/evaluator/random_bits.h"
#include "ir/recipes/recipes.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

constexpr int64_t kBlock = 256;  // elements that are computed together; no result depends on it
using Lanes = std::array<uint32_t, kBlock>;

enum Arithmetic { kFloatType, kSignedType, kUnsignedType };

uint32_t LoadElement(const std::byte* at, Type type) {
  const uint64_t bits = LoadBits(type, at);
  return static_cast<uint32_t>(type == Type::kBf16 ? bits << 16 : NumberOf(type, bits));
}

void StoreElement(std::byte* at, Type type, uint32_t bits) {
  if (type == Type::kBf16) bits = ToBf16(std::bit_cast<float>(bits));
  if (type == Type::kPred) bits = bits != 0;
  std::memcpy(at, &bits, static_cast<std::size_t>(TypeBytes(type)));
}

template <class F>
void MapFloat(const Lanes& a, Lanes& d, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    d[at] = std::bit_cast<uint32_t>(Canonical(f(std::bit_cast<float>(a[at]))));
  }
}
template <class F>
void MapFloat(const Lanes& a, const Lanes& b, Lanes& d, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    d[at] = std::bit_cast<uint32_t>(
        Canonical(f(std::bit_cast<float>(a[at]), std::bit_cast<float>(b[at]))));
  }
}
template <class F>
void MapBits(const Lanes& a, const Lanes& b, Lanes& d, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    d[at] = f(a[at], b[at]);
  }
}
int32_t Signed(uint32_t bits) { return static_cast<int32_t>(bits); }

template <class F>
void Compare(const Lanes& a, const Lanes& b, Lanes& d, int64_t n, int type, F f) {
  if (type == kFloatType)
    return MapBits(a, b, d, n, [f](uint32_t x, uint32_t y) {
      return uint32_t{f(std::bit_cast<float>(x), std::bit_cast<float>(y))};
    });
  if (type == kSignedType)
    return MapBits(a, b, d, n,
                   [f](uint32_t x, uint32_t y) { return uint32_t{f(Signed(x), Signed(y))}; });
  MapBits(a, b, d, n, [f](uint32_t x, uint32_t y) { return uint32_t{f(x, y)}; });
}

uint32_t DivideBits(uint32_t a, uint32_t b, int type) {
  if (b == 0) return ~0u;
  if (type == kUnsignedType) return a / b;
  if (b == ~0u) return 0u - a;
  return static_cast<uint32_t>(Signed(a) / Signed(b));
}
uint32_t RemainderBits(uint32_t a, uint32_t b, int type) {
  if (b == 0) return a;
  if (type == kUnsignedType) return a % b;
  return b == ~0u ? 0u : static_cast<uint32_t>(Signed(a) % Signed(b));
}

uint32_t Truncated(float value, int type) {
  if (value != value) return 0;
  if (type == kUnsignedType)
    return value <= 0 ? 0 : value >= 4294967296.0f ? ~0u : static_cast<uint32_t>(value);
  if (value >= 2147483648.0f) return 0x7fffffffu;
  return value < -2147483648.0f ? 0x80000000u : static_cast<uint32_t>(static_cast<int32_t>(value));
}

// The special functions: the evaluator's recipes.
void Special(const MicroInstruction& m, const Lanes& a, const Lanes& b, Lanes& d, int64_t n) {
  namespace r = hlo::recipes;
  switch (m.op) {
    case Micro::kRcp:
      return MapFloat(a, d, n, [](float x) { return 1.0f / x; });
    case Micro::kSqrt:
      return MapFloat(a, d, n, [](float x) { return r::Sqrt(x); });
    case Micro::kRsqrt:
      return MapFloat(a, d, n, [](float x) { return r::Rsqrt(x); });
    case Micro::kCbrt:
      return MapFloat(a, d, n, [](float x) { return r::Cbrt(x); });
    case Micro::kExp:
      return MapFloat(a, d, n, [](float x) { return r::Exp(x); });
    case Micro::kExpm1:
      return MapFloat(a, d, n, [](float x) { return r::Expm1(x); });
    case Micro::kLog:
      return MapFloat(a, d, n, [](float x) { return r::Log(x); });
    case Micro::kLog1p:
      return MapFloat(a, d, n, [](float x) { return r::Log1p(x); });
    case Micro::kTanh:
      return MapFloat(a, d, n, [](float x) { return r::Tanh(x); });
    case Micro::kLogistic:
      return MapFloat(a, d, n, [](float x) { return r::Logistic(x); });
    case Micro::kErf:
      return MapFloat(a, d, n, [](float x) { return r::Erf(x); });
    case Micro::kSin:
      return MapFloat(a, d, n, [](float x) { return r::Sin(x); });
    case Micro::kCos:
      return MapFloat(a, d, n, [](float x) { return r::Cos(x); });
    case Micro::kTan:
      return MapFloat(a, d, n, [](float x) { return r::Tan(x); });
    case Micro::kPow:
      return MapFloat(a, b, d, n, [](float x, float y) { return r::Power(x, y); });
    case Micro::kAtan2:
      return MapFloat(a, b, d, n, [](float x, float y) { return r::Atan2(x, y); });
    case Micro::kDiv:
      if (m.type == kFloatType) return MapFloat(a, b, d, n, [](float x, float y) { return x / y; });
      return MapBits(a, b, d, n, [&m](uint32_t x, uint32_t y) { return DivideBits(x, y, m.type); });
    case Micro::kRem:
      if (m.type == kFloatType)
        return MapFloat(a, b, d, n, [](float x, float y) { return r::Remainder(x, y); });
      return MapBits(a, b, d, n,
                     [&m](uint32_t x, uint32_t y) { return RemainderBits(x, y, m.type); });
    default:
      return;
  }
}

void Simple(const MicroInstruction& m, const Lanes& a, const Lanes& b, const Lanes& c, Lanes& d,
            int64_t n) {
  namespace r = hlo::recipes;
  const bool f = m.type == kFloatType, s = m.type == kSignedType;
  switch (m.op) {
    case Micro::kMov:
      std::copy_n(a.begin(), n, d.begin());
      return;
    case Micro::kAdd:
      if (f) return MapFloat(a, b, d, n, [](float x, float y) { return x + y; });
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x + y; });
    case Micro::kSub:
      if (f) return MapFloat(a, b, d, n, [](float x, float y) { return x - y; });
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x - y; });
    case Micro::kMul:
      if (f) return MapFloat(a, b, d, n, [](float x, float y) { return x * y; });
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x * y; });
    case Micro::kFma:
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
        d[i] = std::bit_cast<uint32_t>(Canonical(std::fma(
            std::bit_cast<float>(a[i]), std::bit_cast<float>(b[i]), std::bit_cast<float>(c[i]))));
      return;
    case Micro::kMax:
      if (f) return MapFloat(a, b, d, n, [](float x, float y) { return r::Maximum(x, y); });
      return MapBits(a, b, d, n, [s](uint32_t x, uint32_t y) {
        return (s ? Signed(x) > Signed(y) : x > y) ? x : y;
      });
    case Micro::kMin:
      if (f) return MapFloat(a, b, d, n, [](float x, float y) { return r::Minimum(x, y); });
      return MapBits(a, b, d, n, [s](uint32_t x, uint32_t y) {
        return (s ? Signed(x) < Signed(y) : x < y) ? x : y;
      });
    case Micro::kSel:
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) d[i] = a[i] != 0 ? b[i] : c[i];
      return;
    case Micro::kAnd:
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x & y; });
    case Micro::kOr:
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x | y; });
    case Micro::kXor:
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x ^ y; });
    case Micro::kShl:
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return y < 32 ? x << y : 0u; });
    case Micro::kShr:
      return MapBits(a, b, d, n, [s](uint32_t x, uint32_t y) {
        if (s) return static_cast<uint32_t>(Signed(x) >> std::min(y, 31u));
        return y < 32 ? x >> y : 0u;
      });
    case Micro::kAbs:
      if (f) return MapFloat(a, d, n, [](float x) { return r::Abs(x); });
      return MapBits(a, a, d, n,
                     [s](uint32_t x, uint32_t) { return s && Signed(x) < 0 ? 0u - x : x; });
    case Micro::kNeg:
      if (f) return MapFloat(a, d, n, [](float x) { return -x; });
      return MapBits(a, a, d, n, [](uint32_t x, uint32_t) { return 0u - x; });
    case Micro::kFlr:
      return MapFloat(a, d, n, [](float x) { return r::Floor(x); });
    case Micro::kRnd:
      return MapFloat(a, d, n, [](float x) { return r::RoundNearestEven(x); });
    case Micro::kSgn:
      if (f) return MapFloat(a, d, n, [](float x) { return r::Sign(x); });
      return MapBits(a, a, d, n, [s](uint32_t x, uint32_t) {
        return static_cast<uint32_t>(x == 0 ? 0 : s && Signed(x) < 0 ? -1 : 1);
      });
    case Micro::kToF:
      return MapBits(a, a, d, n, [&m](uint32_t x, uint32_t) {
        return std::bit_cast<uint32_t>(m.type == kUnsignedType ? static_cast<float>(x)
                                                               : static_cast<float>(Signed(x)));
      });
    case Micro::kToI:
      return MapBits(a, a, d, n, [&m](uint32_t x, uint32_t) {
        return Truncated(std::bit_cast<float>(x), m.type == kFloatType ? kSignedType : m.type);
      });
    case Micro::kBf:
      return MapFloat(a, d, n, [](float x) { return RoundToBf16(x); });
    case Micro::kCmpEq:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x == y; });
    case Micro::kCmpNe:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x != y; });
    case Micro::kCmpLt:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x < y; });
    case Micro::kCmpLe:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x <= y; });
    case Micro::kCmpGt:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x > y; });
    case Micro::kCmpGe:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x >= y; });
    default:
      return;
  }
}

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
  return maximum ? Signed(x) > Signed(y) : Signed(x) < Signed(y);
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
      result.value = static_cast<uint32_t>(std::max(Signed(a.value), Signed(b.value)));
      break;
    case kMinimum:
      result.value = static_cast<uint32_t>(std::min(Signed(a.value), Signed(b.value)));
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
  int rank;
  int64_t dim[4], index[4] = {}, stride[4][4], offset[4] = {};  // streams a, b, c, result
  void Next() {
    for (int l = rank - 1; l >= 0; --l) {
      for (int s = 0; s < 4; ++s) offset[s] += stride[s][l];
      if (++index[l] < dim[l]) return;
      for (int s = 0; s < 4; ++s) offset[s] -= stride[s][l] * dim[l];
      index[l] = 0;
    }
  }
};

// Runs a program over the elements of a nest, a block at a time.
class Runner {
 public:
  Runner(const std::vector<MicroInstruction>& program, const std::byte* const (&bases)[3],
         const Type (&types)[3], int inputs)
      : program_(program), inputs_(inputs) {
    std::copy(bases, bases + 3, bases_);
    std::copy(types, types + 3, types_);
    registers_.resize(32);
    for (const MicroInstruction& m : program) {
      if (m.op == Micro::kLit) registers_[static_cast<std::size_t>(m.d)].fill(m.literal);
    }
  }

  // The next n elements; the results are in v3, where they go in `targets`.
  const Lanes& Block(Nest& nest, int64_t n, std::array<int64_t, kBlock>* targets) {
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      for (int s = 0; s < inputs_; ++s)
        registers_[static_cast<std::size_t>(s)][at] =
            LoadElement(bases_[s] + nest.offset[s], types_[s]);
      for (int l = 0; l < nest.rank; ++l)
        levels_[static_cast<std::size_t>(l)][at] = static_cast<uint32_t>(nest.index[l]);
      if (targets != nullptr) (*targets)[at] = nest.offset[3];
      nest.Next();
    }
    for (const MicroInstruction& m : program_) {
      auto& v = registers_;
      Lanes& d = v[static_cast<std::size_t>(m.d)];
      const Lanes &a = v[static_cast<std::size_t>(m.a)], &b = v[static_cast<std::size_t>(m.b)],
                  &c = v[static_cast<std::size_t>(m.c)];
      if (m.op == Micro::kLit) {
        d.fill(m.literal);
      } else if (m.op == Micro::kIdx) {
        d = levels_[static_cast<std::size_t>(m.a)];
      } else if (static_cast<int>(m.op) >= static_cast<int>(Micro::kRcp)) {
        Special(m, a, b, d, n);
      } else {
        Simple(m, a, b, c, d, n);
      }
    }
    return registers_[3];
  }

 private:
  const std::vector<MicroInstruction>& program_;
  const std::byte* bases_[3];
  Type types_[3];
  int inputs_;
  std::vector<Lanes> registers_;
  std::array<Lanes, 4> levels_{};
};

}  // namespace

bool Engine::Vector(Core& core, const Entry& entry, Cost& cost) {
  const Instruction& in = *entry.in;
  const Descriptor &d = program_.descriptors[in.desc], &e = program_.descriptors[in.desc + 1];
  const auto& program = vectors_[in.imm];
  const bool reduces = in.opcode() == Op::kVxRed;
  const uint32_t levels = reduces ? in.aux >> 4 & 15 : 0;
  const int op = static_cast<int>(in.aux & 7);
  const int inputs = d.inputs(), rank = d.rank();
  const Type result_type = d.type(3);
  const bool is_float = result_type == Type::kF32 || result_type == Type::kBf16;
  const bool compares_floats =
      op >= kArgMax ? d.type(0) == Type::kF32 || d.type(0) == Type::kBf16 : is_float;
  Nest nest{rank, {}, {}, {}, {}};
  Walk walks[4];
  const std::array<int32_t, 5>* strides[4] = {&d.src, &e.src, &e.dst, &d.dst};
  for (int s = 0; s < 4; ++s) {
    walks[s].rank = rank;
    walks[s].elem = std::max(1, TypeBytes(d.type(s)));
    for (int l = 0; l < rank; ++l) {
      const auto at = static_cast<std::size_t>(l);
      walks[s].dim[l] = nest.dim[l] = d.dim[at];
      const bool reduced = s == 3 && (levels >> l & 1) != 0;
      walks[s].stride[l] = nest.stride[s][l] =
          reduced ? 0 : int64_t{(*strides[s])[at]} * walks[s].elem;
    }
  }
  if (reduces && levels >> rank != 0)
    return Fail(ErrorCode::kUnsupportedShape, Str("levels=", levels, " of a nest of ", rank));
  const int64_t addresses[4] = {entry.ra, entry.rb, entry.rc, entry.rd};
  Place places[4];
  const std::byte* bases[3] = {};
  const Type types[3] = {d.type(0), d.type(1), d.type(2)};
  int64_t stream_bytes = walks[3].elem, streams = 1;
  for (int s = 0; s < 4; ++s) {
    if (s < 3 && s >= inputs) continue;
    if (!Find(core, addresses[s], walks[s], kOwn | kAccToo, places[s])) return false;
    if (s < 3) {
      if (!TouchWalk(places[s], walks[s], false)) return false;
      bases[s] = places[s].at();
      stream_bytes += walks[s].elem;
      ++streams;
    }
  }
  if (!TouchWalk(places[3], walks[3], true)) return false;

  const int64_t n = d.elements();
  int64_t length = 1;  // elements of a result
  std::byte* const target = places[3].at();
  Runner runner(program, bases, types, inputs);
  std::array<int64_t, kBlock> targets;
  if (!reduces) {
    for (int64_t done = 0; done < n; done += kBlock) {
      const int64_t count = std::min(kBlock, n - done);
      const Lanes& results = runner.Block(nest, count, &targets);
      for (int64_t i = 0; i < count; ++i)
        StoreElement(target + targets[static_cast<std::size_t>(i)], result_type,
                     results[static_cast<std::size_t>(i)]);
    }
  } else {
    // Levels that stay, outermost first, then those that are reduced: each result's elements come one behind the other.
    Nest ordered{rank, {}, {}, {}, {}};
    int to = 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (int l = 0; l < rank; ++l) {
        if (static_cast<int>(levels >> l & 1) != pass) continue;
        ordered.dim[to] = nest.dim[l];
        for (int s = 0; s < 4; ++s) ordered.stride[s][to] = nest.stride[s][l];
        if (pass == 1) length *= nest.dim[l];
        ++to;
      }
    }
    const int64_t lanes = std::min(config_.vpu.lanes, length);
    std::vector<Partial> partial(static_cast<std::size_t>(config_.vpu.lanes));
    for (int64_t result = 0; result < n / length; ++result) {
      std::fill_n(partial.begin(), lanes, Partial{});
      const int64_t place = ordered.offset[3];
      for (int64_t done = 0; done < length; done += kBlock) {
        const int64_t count = std::min(kBlock, length - done);
        const Lanes& values = runner.Block(ordered, count, nullptr);
        for (int64_t i = 0; i < count; ++i) {
          Partial& lane = partial[static_cast<std::size_t>((done + i) % config_.vpu.lanes)];
          lane = Joined(lane, {values[static_cast<std::size_t>(i)], static_cast<int32_t>(done + i)},
                        op, compares_floats);
        }
      }
      int64_t width = 1;
      while (width < lanes) width *= 2;
      for (width /= 2; width >= 1; width /= 2) {
        for (int64_t l = 0; l < width && l + width < lanes; ++l) {
          auto& lane = partial[static_cast<std::size_t>(l)];
          lane = Joined(lane, partial[static_cast<std::size_t>(l + width)], op, compares_floats);
        }
      }
      const bool index = op == kArgMax || op == kArgMin;
      StoreElement(target + place, result_type,
                   index ? static_cast<uint32_t>(partial[0].index) : partial[0].value);
    }
  }
  int64_t alu = 0, sfu = 0;
  for (const MicroInstruction& m : program) {
    if (m.op == Micro::kLit) continue;
    ++(FindMicro(static_cast<uint32_t>(m.op))->sfu ? sfu : alu);
  }
  Counters& counters = CountersOf(core);
  counters.alu_ops += n * (alu + (reduces ? 1 : 0));
  counters.sfu_ops += n * sfu;
  counters.spm_read_bytes += n * (stream_bytes - walks[3].elem);
  counters.spm_write_bytes += n * walks[3].elem;
  const int64_t interval = InitiationInterval(config_, n, alu + (reduces ? 1 : 0), sfu, streams);
  cost = reduces ? ReduceCost(config_, n, interval, length) : VectorCost(config_, n, interval);
  return true;
}

bool Engine::Random(Core& core, const Entry& entry, Cost& cost) {
  const Instruction& in = *entry.in;
  const bool threefry = (in.aux & 1) != 0;
  const int64_t n = in.imm;
  if (n == 0) return Fail(ErrorCode::kUnsupportedShape, "n=0: there is nothing to make");
  const Walk out{1, {n}, {4}, 4}, state{1, {threefry ? 4 : 6}, {4}, 4};
  Place to, at;
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
