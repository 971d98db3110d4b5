#include <charconv>
#include <cmath>
#include <cstring>

#include "ir/types/literal.h"

namespace lazuli::ir {
namespace {

// What the text of a float needs to know about its type.
struct FloatFormat {
  int mantissa_bits;  // stored ones
  int digits;         // tried first
  int max_digits;     // always read back as the same value
};

template <DType kType>
constexpr FloatFormat FormatOf() {
  switch (kType) {
    case DType::kF64:
    case DType::kC128:
      return {52, 15, 17};
    case DType::kF32:
    case DType::kC64:
      return {23, 6, 9};
    case DType::kF16:
      return {10, 5, 5};
    case DType::kBF16:
      return {7, 4, 4};
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0FNU:
      return {2, 2, 2};
    default:
      return {3, 3, 3};
  }
}

template <class T>
uint64_t Bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// nan, -nan, or with the mantissa where it is not that of the default NaN: nan(0x7).
template <class T>
void AppendNaN(std::string& out, T value, bool negative, const FloatFormat& format) {
  if (negative) out += '-';
  out += "nan";
  if constexpr (sizeof(T) > 1) {
    const uint64_t payload = Bits(value) & ((uint64_t{1} << format.mantissa_bits) - 1);
    if (payload == uint64_t{1} << (format.mantissa_bits - 1)) return;
    char buffer[24];
    auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, payload, 16);
    out += "(0x";
    out.append(buffer, end);
    out += ')';
  }
}

template <class T>
void AppendFloat(std::string& out, T value, const FloatFormat& format) {
  double wide;
  if constexpr (std::is_same_v<T, double>) {
    wide = value;
  } else {
    wide = static_cast<double>(static_cast<float>(value));
  }
  if (std::isnan(wide)) return AppendNaN(out, value, std::signbit(wide), format);
  if (std::isinf(wide)) {
    out += wide < 0 ? "-inf" : "inf";
    return;
  }
  if (wide == 0 && std::signbit(wide)) {
    out += "-0.0";
    return;
  }
  char buffer[40];
  auto end =
      std::to_chars(buffer, buffer + sizeof buffer, wide, std::chars_format::general, format.digits)
          .ptr;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    T back{};
    std::from_chars(buffer, end, back);
    if (back != value) {
      end = std::to_chars(buffer, buffer + sizeof buffer, wide, std::chars_format::general,
                          format.max_digits)
                .ptr;
    }
  }
  out.append(buffer, end);
}

template <DType kType>
void AppendElement(std::string& out, HostType<kType> value) {
  if constexpr (kType == DType::kPred) {
    out += value ? '1' : '0';
  } else if constexpr (CategoryOf<kType>() == DTypeCategory::kComplex) {
    out += '(';
    AppendFloat(out, value.real(), FormatOf<kType>());
    out += ", ";
    AppendFloat(out, value.imag(), FormatOf<kType>());
    out += ')';
  } else if constexpr (CategoryOf<kType>() == DTypeCategory::kFloat) {
    AppendFloat(out, value, FormatOf<kType>());
  } else {
    ir::AppendTo(out, value);
  }
}

// The rows of `dims` from `level` on, the next of which begins at `values`; `position` is that of
// this level in the one above. The depth of recursion is the rank, which Shape::Make bounds.
template <DType kType>
void AppendArray(std::string& out, absl::Span<const int64_t> dims, std::size_t level,
                 int64_t position, const HostType<kType>*& values) {
  const int64_t size = dims[level];
  const bool row = level + 1 == dims.size();
  if (row && size == 0) {
    out += "{}";
    return;
  }
  out += dims.size() == 1 ? "{" : "{ ";
  if (dims.size() >= 4 && level >= 1 && !row) {
    out += "/*i";
    ir::AppendTo(out, level - 1);
    out += '=';
    ir::AppendTo(out, position);
    out += size > 0 ? "*/ " : "*/";
  }
  for (int64_t i = 0; i < size; ++i) {
    if (i > 0) out += ", ";
    if (row) {
      AppendElement<kType>(out, *values++);
    } else {
      AppendArray<kType>(out, dims, level + 1, i, values);
    }
  }
  out += dims.size() == 1 ? "}" : " }";
}

}  // namespace

void Literal::AppendTo(std::string& out) const {
  if (shape_.IsTuple()) {
    out += "( ";
    for (std::size_t i = 0; i < tuple_.size(); ++i) {
      if (i > 0) out += ", ";
      tuple_[i].AppendTo(out);
    }
    out += " )";
    return;
  }
  if (!shape_.IsArray()) return;  // a token has no text
  VisitDType(shape_.dtype(), [&]<DType kType>() {
    const auto* values = reinterpret_cast<const HostType<kType>*>(raw());
    if (!shape_.IsScalar()) {
      AppendArray<kType>(out, shape_.dims(), 0, 0, values);
    } else if constexpr (kType == DType::kPred) {
      out += *values ? "true" : "false";
    } else {
      AppendElement<kType>(out, *values);
    }
  });
}

std::string Literal::ToString() const {
  std::string out;
  AppendTo(out);
  return out;
}

}  // namespace lazuli::ir
