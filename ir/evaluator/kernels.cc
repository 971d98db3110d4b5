#include "ir/evaluator/kernels.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ir/evaluator/complex_ops.h"
#include "ir/evaluator/scalar_ops.h"

namespace lazuli::hlo {
namespace {

struct NoReference {};
[[maybe_unused]] constexpr NoReference kNoReference;

// The `reference` column of opcode.def: kTakes<T> says whether it works on T, Apply computes it.
template <Opcode opcode>
struct Reference;

#define LAZULI_OPCODE(name, text, arity, flags, regions, attrs, infer, evaluate, reference) \
  template <>                                                                               \
  struct Reference<Opcode::name> {                                                          \
    static constexpr int kArity = arity;                                                    \
    template <class T>                                                                      \
    static constexpr bool kTakes =                                                          \
        requires([[maybe_unused]] T x, [[maybe_unused]] T y) { reference; };                \
    template <class T>                                                                      \
    static auto Apply([[maybe_unused]] T x, [[maybe_unused]] T y) {                         \
      return reference;                                                                     \
    }                                                                                       \
  };
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE

template <Opcode opcode, class T>
void UnaryLoop(const Instruction&, const std::byte* const* operands, std::byte* result,
               int64_t count) {
  using R = decltype(Reference<opcode>::Apply(T(), T()));
  const auto* x = reinterpret_cast<const T*>(operands[0]);
  auto* to = reinterpret_cast<R*>(result);
  for (int64_t i = 0; i < count; ++i) to[i] = Reference<opcode>::Apply(x[i], x[i]);
}

template <Opcode opcode, class T>
void BinaryLoop(const Instruction&, const std::byte* const* operands, std::byte* result,
                int64_t count) {
  using R = decltype(Reference<opcode>::Apply(T(), T()));
  const auto* x = reinterpret_cast<const T*>(operands[0]);
  const auto* y = reinterpret_cast<const T*>(operands[1]);
  auto* to = reinterpret_cast<R*>(result);
  for (int64_t i = 0; i < count; ++i) to[i] = Reference<opcode>::Apply(x[i], y[i]);
}

template <Opcode opcode, class T>
constexpr Kernel LoopOf() {
  using R = Reference<opcode>;
  if constexpr (R::template kTakes<T>) {
    if constexpr (std::is_same_v<decltype(R::Apply(T(), T())), NoReference>) {
      return nullptr;
    } else if constexpr (R::kArity == 1) {
      return UnaryLoop<opcode, T>;
    } else {
      return BinaryLoop<opcode, T>;
    }
  } else {
    return nullptr;
  }
}

constexpr std::size_t kNumOpcodes = 0
#define LAZULI_OPCODE(...) +1
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE
    ;

// Loops of one element type, by opcode.
template <class T>
constexpr std::array<Kernel, kNumOpcodes> kLoops = {
#define LAZULI_OPCODE(name, ...) LoopOf<Opcode::name, T>(),
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE
};

constexpr int64_t kChunk = 256;  // elements converted at a time, on the stack

// Types narrower than f32 compute in f32 and round once.
template <class T>
void SmallFloatLoop(const Instruction& instruction, const std::byte* const* operands,
                    std::byte* result, int64_t count) {
  const Opcode opcode = instruction.opcode();
  const Kernel kernel = kLoops<float>[static_cast<std::size_t>(opcode)];
  const int arity = Traits(opcode).arity;
  float wide[2][kChunk];
  alignas(float) std::byte wide_result[kChunk * sizeof(float)];
  const std::byte* wide_operands[] = {reinterpret_cast<std::byte*>(wide[0]),
                                      reinterpret_cast<std::byte*>(wide[1])};
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t n = std::min(kChunk, count - begin);
    for (int k = 0; k < arity; ++k) {
      const auto* x = reinterpret_cast<const T*>(operands[k]) + begin;
      for (int64_t i = 0; i < n; ++i) wide[k][i] = static_cast<float>(x[i]);
    }
    kernel(instruction, wide_operands, wide_result, n);
    if (instruction.shape().dtype() == DType::kPred) {
      std::memcpy(result + begin, wide_result, static_cast<std::size_t>(n));
    } else {
      const auto* from = reinterpret_cast<const float*>(wide_result);
      auto* to = reinterpret_cast<T*>(result) + begin;
      for (int64_t i = 0; i < n; ++i) to[i] = T(from[i]);
    }
  }
}

// Types narrower than a byte compute in a byte; what looks at high bits sees zeros there.
void SubByteLoop(const Instruction& instruction, const std::byte* const* operands,
                 std::byte* result, int64_t count) {
  const DType dtype = instruction.operand(0)->shape().dtype();
  const Opcode opcode = instruction.opcode();
  const bool logical = opcode == Opcode::kPopcnt || opcode == Opcode::kCountLeadingZeros ||
                       opcode == Opcode::kShiftRightLogical;
  const bool is_unsigned = IsUnsigned(dtype) || logical;
  const Kernel kernel =
      (is_unsigned ? kLoops<uint8_t> : kLoops<int8_t>)[static_cast<std::size_t>(opcode)];
  const int bits = Row(dtype).bits;
  const auto mask = static_cast<std::byte>((1 << bits) - 1);
  std::byte masked[2][kChunk];
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t n = std::min(kChunk, count - begin);
    const std::byte* inputs[2];
    for (int k = 0; k < Traits(opcode).arity; ++k) {
      inputs[k] = operands[k] + begin;
      if (!logical) continue;
      for (int64_t i = 0; i < n; ++i) masked[k][i] = inputs[k][i] & mask;
      inputs[k] = masked[k];
    }
    kernel(instruction, inputs, result + begin, n);
    if (opcode == Opcode::kCountLeadingZeros) {
      auto* to = reinterpret_cast<uint8_t*>(result + begin);
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint8_t>(to[i] - (8 - bits));
    }
  }
  WrapSubByte(dtype, result, count);
}

}  // namespace

Kernel FindReferenceKernel(Opcode opcode, DType dtype) {
  if (!IsArray(dtype) || !Accepts(opcode, dtype)) return nullptr;
  return VisitDType(dtype, [opcode]<DType kType>() -> Kernel {
    using T = HostType<kType>;
    const auto index = static_cast<std::size_t>(opcode);
    if constexpr (recipes::SmallFloat<T>) {
      const bool none = kLoops<float>[index] == nullptr || opcode == Opcode::kComplex;
      return none ? nullptr : SmallFloatLoop<T>;
    } else if constexpr (kType == DType::kS2 || kType == DType::kS4 || kType == DType::kU2 ||
                         kType == DType::kU4) {
      return kLoops<T>[index] == nullptr ? nullptr : SubByteLoop;
    } else {
      return kLoops<T>[index];
    }
  });
}

void WrapSubByte(DType dtype, std::byte* values, int64_t count) {
  const int unused = 8 - Row(dtype).bits;
  if (unused <= 0 || !IsIntegral(dtype)) return;
  for (int64_t i = 0; i < count; ++i) {
    const auto shifted = static_cast<uint8_t>(static_cast<uint8_t>(values[i]) << unused);
    values[i] = IsSigned(dtype) ? static_cast<std::byte>(static_cast<int8_t>(shifted) >> unused)
                                : static_cast<std::byte>(shifted >> unused);
  }
}

}  // namespace lazuli::hlo
