// Conversions between element types: every type is read into one of four wide types and written
// from it.
//
// Reading loses nothing: integers are exact in 64 bits, every float is exact in double. So each
// conversion rounds once.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/support/float_mode.h"
#include "ir/types/literal.h"

namespace lazuli::ir {
namespace {

// The value of `x` to be rounded to a type narrower than f32, as f32: truncated, its last bit set
// if anything was lost
// ("round to odd"), so that rounding it again gives what rounding x once does.
float RoundToOdd(double x) {
  auto f = static_cast<float>(x);
  if (!std::isfinite(x)) return f;
  if (static_cast<double>(f) == x) return f;
  if (std::fabs(static_cast<double>(f)) > std::fabs(x)) f = std::nextafter(f, 0.0f);
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  bits |= 1;
  std::memcpy(&f, &bits, sizeof bits);
  return f;
}

// Bounds of an integer type of `bits` bits stored in T.
template <class T>
struct IntegerRange {
  T low, high;
  explicit IntegerRange(int bits) {
    const int unused = static_cast<int>(sizeof(T)) * 8 - bits;
    high = static_cast<T>(std::numeric_limits<T>::max() >> unused);
    low = static_cast<T>(std::numeric_limits<T>::min() >> unused);
  }
};

// The low bits of `x`, sign extended where T is signed.
template <class T, class Wide>
T Wrap(Wide x, int bits) {
  const int unused = 64 - bits;
  const uint64_t shifted = static_cast<uint64_t>(x) << unused;
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(static_cast<int64_t>(shifted) >> unused);
  } else {
    return static_cast<T>(shifted >> unused);
  }
}

template <class T>
T Saturate(double x, int bits) {
  const IntegerRange<T> range(bits);
  if (std::isnan(x)) return 0;
  // The bounds as doubles are powers of two or exact, so these comparisons decide correctly.
  if (x <= static_cast<double>(range.low)) return range.low;
  if (x >= static_cast<double>(range.high)) return range.high;
  return static_cast<T>(x);
}

template <DType kTo, class Wide>
HostType<kTo> Narrow(Wide x) {
  using T = HostType<kTo>;
  if constexpr (std::is_same_v<Wide, std::complex<double>>) {
    if constexpr (std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      return static_cast<T>(x);
    } else if constexpr (std::is_same_v<T, bool>) {
      return x != 0.0;
    } else {
      return Narrow<kTo>(x.real());
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    return x != 0;
  } else if constexpr (std::is_integral_v<T>) {
    const int bits = Row(kTo).bits;
    if constexpr (std::is_same_v<Wide, double>) {
      return Saturate<T>(x, bits);
    } else {
      return Wrap<T>(x, bits);
    }
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return static_cast<T>(x);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return {static_cast<float>(x), 0.0f};
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return {static_cast<double>(x), 0.0};
  } else if constexpr (std::is_same_v<Wide, double>) {
    return static_cast<T>(RoundToOdd(x));
  } else {
    return static_cast<T>(
        static_cast<float>(x));  // integers reach the narrow floats through f32, as in XLA
  }
}

// The wide type that holds every value of a category.
template <DTypeCategory kCategory>
using WideType =
    std::conditional_t<kCategory == DTypeCategory::kSigned, int64_t,
                       std::conditional_t<kCategory == DTypeCategory::kFloat, double,
                                          std::conditional_t<kCategory == DTypeCategory::kComplex,
                                                             std::complex<double>, uint64_t>>>;

template <DType kFrom, class Wide>
void ReadAs(const std::byte* from, int64_t count, Wide* to) {
  const auto* values = reinterpret_cast<const HostType<kFrom>*>(from);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Wide, double>) {
      if constexpr (std::is_same_v<HostType<kFrom>, double>) {
        to[i] = values[i];
      } else {
        to[i] = static_cast<double>(static_cast<float>(values[i]));
      }
    } else {
      to[i] = static_cast<Wide>(values[i]);
    }
  }
}

template <class Wide>
void Write(DType dtype, const Wide* from, int64_t count, std::byte* to) {
  VisitDType(dtype, [&]<DType kTo>() {
    auto* values = reinterpret_cast<HostType<kTo>*>(to);
    for (int64_t i = 0; i < count; ++i) values[i] = Narrow<kTo>(from[i]);
  });
}

constexpr int64_t kBlock = 512;  // elements converted at a time, on the stack

template <class Wide, class Read>
void ConvertBlocks(Read&& read, int64_t count, int from_bytes, const std::byte* from,
                   DType to_dtype, std::byte* to) {
  Wide block[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    read(from + begin * from_bytes, n, block);
    Write(to_dtype, block, n, to + begin * ByteWidth(to_dtype));
  }
}

}  // namespace

Literal Literal::Converted(DType dtype) const {
  LAZULI_CHECK(shape_.IsArray() && ir::IsArray(dtype), "conversion of ", shape_);
  if (dtype == shape_.dtype()) return *this;
  Shape shape = shape_;
  shape.set_dtype(dtype);
  Literal result = Uninitialized(shape);
  const int64_t count = shape.num_elements();
  VisitDType(shape_.dtype(), [&]<DType kFrom>() {
    constexpr DTypeCategory kCategory = CategoryOf<kFrom>();
    using Wide = WideType<kCategory>;
    ConvertBlocks<Wide>(
        [](const std::byte* from, int64_t n, Wide* to) { ReadAs<kFrom>(from, n, to); }, count,
        ByteWidth(kFrom), raw(), dtype, result.mutable_raw());
  });
  return result;
}

double Literal::AsDouble(int64_t index) const {
  LAZULI_CHECK(shape_.IsArray() && index >= 0 && index < shape_.num_elements(), "element ", index,
               " of ", shape_);
  const ScopedFloatMode mode;
  const std::byte* from = raw() + index * ByteWidth(shape_.dtype());
  return VisitDType(shape_.dtype(), [&]<DType kFrom>() -> double {
    WideType<CategoryOf<kFrom>()> wide;
    ReadAs<kFrom>(from, 1, &wide);
    if constexpr (std::is_same_v<decltype(wide), std::complex<double>>) {
      return wide.real();
    } else {
      return static_cast<double>(wide);
    }
  });
}

void Literal::SetFromDouble(int64_t index, double value) {
  LAZULI_CHECK(shape_.IsArray() && index >= 0 && index < shape_.num_elements(), "element ", index,
               " of ", shape_);
  const ScopedFloatMode mode;
  Write(shape_.dtype(), &value, 1, mutable_raw() + index * ByteWidth(shape_.dtype()));
}

void StoreAs(DType dtype, double value, void* to) {
  // What recording a number mostly asks for. The float mode decides about subnormals alone.
  if (dtype == DType::kF32 &&
      (std::abs(value) >= std::numeric_limits<float>::min() || value == 0)) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(to, &narrow, sizeof narrow);
    return;
  }
  const ScopedFloatMode mode;
  Write(dtype, &value, 1, static_cast<std::byte*>(to));
}

Literal Literal::Full(const Shape& shape, double value) {
  Literal literal = Uninitialized(shape);
  const auto width = static_cast<std::size_t>(ByteWidth(shape.dtype()));
  std::byte element[sizeof(std::complex<double>)];
  const ScopedFloatMode mode;
  Write(shape.dtype(), &value, 1, element);
  std::byte* to = literal.mutable_raw();
  for (int64_t i = 0; i < shape.num_elements(); ++i)
    std::memcpy(to + static_cast<std::size_t>(i) * width, element, width);
  return literal;
}

}  // namespace lazuli::ir
