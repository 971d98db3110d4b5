#include <cmath>
#include <cstring>
#include <limits>

#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/parser_internal.h"

namespace lazuli::hlo {
namespace internal {
namespace {

// A number as text: from a digit, '-', '.', or a letter to what ends it.
std::string_view NumberToken(Cursor& in) {
  in.Peek();
  const char* start = in.position();
  const char* p = start;
  const char* end = start + in.remaining();
  auto belongs = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '+';
  };
  while (p < end && belongs(*p)) ++p;
  in.set_position(p);
  return {start, static_cast<std::size_t>(p - start)};
}

// nan, -nan, nan(0x7): the mantissa of a type with `bits` mantissa bits, or its default.
template <class T, class Bits>
T MakeNaN(bool negative, std::optional<uint64_t> payload, int mantissa_bits, int exponent_bits) {
  const uint64_t mantissa = payload.value_or(uint64_t{1} << (mantissa_bits - 1));
  const uint64_t exponent = (uint64_t{1} << exponent_bits) - 1;
  const auto bits = static_cast<Bits>((uint64_t{negative} << (mantissa_bits + exponent_bits)) |
                                      (exponent << mantissa_bits) | mantissa);
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  return value;
}

template <class T>
bool NaNOf(Cursor& in, bool negative, std::optional<uint64_t> payload, T* value) {
  const int mantissa_bits = sizeof(T) == 8            ? 52
                            : sizeof(T) == 4          ? 23
                            : std::is_same_v<T, half> ? 10
                                                      : 7;
  if (payload && (*payload == 0 || (sizeof(T) > 1 && *payload >> mantissa_bits) != 0)) {
    return in.Fail("this type has no NaN of that payload");
  }
  if constexpr (sizeof(T) == 8) {
    *value = MakeNaN<T, uint64_t>(negative, payload, 52, 11);
  } else if constexpr (sizeof(T) == 4) {
    *value = MakeNaN<T, uint32_t>(negative, payload, 23, 8);
  } else if constexpr (std::is_same_v<T, half>) {
    *value = MakeNaN<T, uint16_t>(negative, payload, 10, 5);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    *value = MakeNaN<T, uint16_t>(negative, payload, 7, 8);
  } else {
    if (payload) return in.Fail("this type has no NaN of that payload");
    const float nan = std::numeric_limits<float>::quiet_NaN();
    *value = static_cast<T>(negative ? -nan : nan);
    if (!std::isnan(static_cast<float>(*value))) return in.Fail("this type has no NaN");
  }
  return true;
}

template <DType kType, class T>
bool FinishFloat(Cursor& in, std::string_view token, double wide, T* value) {
  if constexpr (std::is_same_v<T, double>) {
    *value = wide;
  } else {
    StoreAs(kType, wide, value);
  }
  const auto back = static_cast<double>(
      static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(*value));
  const bool overflow = std::isfinite(wide) && (!std::isfinite(back) ||
                                                (kType == DType::kF4E2M1FN && std::fabs(wide) > 6));
  return !overflow || in.FailAt(token.data(), token, " is out of range for ", DTypeText(kType));
}

template <DType kType, class T>
bool ParseFloat(Cursor& in, T* value) {
  std::string_view token = NumberToken(in);
  const bool negative = token.starts_with('-');
  const std::string_view magnitude = negative ? token.substr(1) : token;
  if (magnitude == "nan") {
    std::optional<uint64_t> payload;
    if (in.remaining() > 0 && *in.position() == '(') {
      if (!in.Try("(0x")) return in.Fail("expected '(0x'");
      const std::string_view digits = in.Word();
      payload.emplace(0);
      const auto result =
          std::from_chars(digits.data(), digits.data() + digits.size(), *payload, 16);
      if (result.ec != std::errc() || result.ptr != digits.data() + digits.size() ||
          !in.Expect(')')) {
        return in.Fail("expected a hexadecimal number");
      }
    }
    return NaNOf(in, negative, payload, value);
  }
  if (magnitude == "inf") {
    const double inf = std::numeric_limits<double>::infinity();
    if (!FinishFloat<kType>(in, token, negative ? -inf : inf, value)) return false;
    return std::isinf(static_cast<float>(*value)) || in.Fail(DTypeText(kType), " has no infinity");
  }
  if (magnitude.empty() || ((magnitude[0] < '0' || magnitude[0] > '9') && magnitude[0] != '.')) {
    return in.FailAt(token.data(), "expected a number, not '", token, "'");
  }
  const char* end = token.data() + token.size();
  if constexpr (std::is_same_v<T, float>) {
    const auto result = std::from_chars(token.data(), end, *value);
    if (result.ec == std::errc() && result.ptr == end) return true;
  }
  double wide = 0;
  const auto result = std::from_chars(token.data(), end, wide);
  if (result.ptr != end) return in.FailAt(token.data(), "expected a number, not '", token, "'");
  if (result.ec == std::errc::result_out_of_range) {
    // Too small is zero, too large is an error.
    const std::size_t e = token.find_first_of("eE");
    const bool small = e != std::string_view::npos && e + 1 < token.size() && token[e + 1] == '-';
    if (!small) return in.FailAt(token.data(), token, " is out of range for ", DTypeText(kType));
    wide = negative ? -0.0 : 0.0;
  }
  return FinishFloat<kType>(in, token, wide, value);
}

template <DType kType, class T>
bool ParseInteger(Cursor& in, T* value) {
  const std::string_view token = NumberToken(in);
  const char* end = token.data() + token.size();
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  Wide wide = 0;
  const auto result = std::from_chars(token.data(), end, wide);
  const bool negative_unsigned = std::is_unsigned_v<T> && token.starts_with('-');
  if (result.ec == std::errc::invalid_argument && !negative_unsigned)
    return in.FailAt(token.data(), "expected a whole number, not '", token, "'");
  if (result.ptr != end && !negative_unsigned)
    return in.FailAt(token.data(), "expected a whole number, not '", token, "'");
  const int unused = 64 - Row(kType).bits;
  // Shifting the unused bits out and back in changes whatever does not fit.
  const Wide fitted =
      unused == 0 ? wide : static_cast<Wide>(static_cast<uint64_t>(wide) << unused) >> unused;
  if (result.ec != std::errc() || negative_unsigned || fitted != wide) {
    return in.FailAt(token.data(), token, " is out of range for ", DTypeText(kType));
  }
  *value = static_cast<T>(wide);
  return true;
}

bool ParsePred(Cursor& in, bool* value) {
  const std::string_view token = NumberToken(in);
  if (token != "true" && token != "false" && token != "0" && token != "1") {
    return in.FailAt(token.data(), "expected true, false, 0 or 1, not '", token, "'");
  }
  *value = token == "true" || token == "1";
  return true;
}

template <DType kType>
bool ParseElement(Cursor& in, HostType<kType>* value) {
  using T = HostType<kType>;
  if constexpr (kType == DType::kPred) {
    return ParsePred(in, value);
  } else if constexpr (CategoryOf<kType>() == DTypeCategory::kComplex) {
    constexpr DType kPart = kType == DType::kC64 ? DType::kF32 : DType::kF64;
    typename T::value_type real, imag;
    if (!in.Expect('(') || !ParseFloat<kPart>(in, &real) || !in.Expect(',') ||
        !ParseFloat<kPart>(in, &imag) || !in.Expect(')')) {
      return false;
    }
    *value = {real, imag};
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    return ParseInteger<kType>(in, value);
  } else {
    return ParseFloat<kType>(in, value);
  }
}

// The elements from dimension `level` on. The depth of recursion is the rank, which Shape::Make
// bounds.
template <DType kType>
bool ParseArray(Cursor& in, const Shape& shape, int64_t level, HostType<kType>*& values) {
  if (level == shape.rank()) return ParseElement<kType>(in, values++);
  if (in.Peek() != '{') return in.Fail("expected '{': dimension ", level, " of ", shape);
  in.Expect('{');
  if (in.Peek() == '.') return in.Fail("the constant's values were left out of this text");
  for (int64_t i = 0; i < shape.dim(level); ++i) {
    if (i > 0) in.Try(',');
    if (in.Peek() == '}')
      return in.Fail("expected ", shape.dim(level), " elements in dimension ", level, " of ",
                     shape);
    if (!ParseArray<kType>(in, shape, level + 1, values)) return false;
  }
  return in.Try('}') || in.Fail("expected '}' after ", shape.dim(level), " elements in dimension ",
                                level, " of ", shape);
}

}  // namespace

bool ParseLiteral(Cursor& in, const Shape& shape, Literal* literal) {
  if (shape.IsTuple()) {
    if (!in.Expect('(')) return false;
    std::vector<Literal> elements;
    for (const Shape& element : shape.tuple()) {
      if (!elements.empty() && !in.Expect(',')) return false;
      if (!ParseLiteral(in, element, &elements.emplace_back())) return false;
    }
    *literal = Literal::Tuple(std::move(elements));
    return in.Expect(')');
  }
  if (!shape.IsArray()) return in.Fail(shape, " has no constants");
  if (in.Peek() == '{' && in.Try("{...}"))
    return in.Fail("the constant's values were left out of this text");
  // Every element takes a character at least, so text bounds the memory.
  if (shape.num_elements() > in.remaining())
    return in.Fail("the text has fewer elements than ", shape);
  *literal = Literal::Uninitialized(shape);
  return VisitDType(shape.dtype(), [&]<DType kType>() {
    auto* values = reinterpret_cast<HostType<kType>*>(literal->mutable_raw());
    return ParseArray<kType>(in, shape, 0, values);
  });
}

}  // namespace internal

absl::StatusOr<Literal> ParseLiteral(std::string_view text, const Shape& shape) {
  Cursor in(text);
  Literal literal;
  if (internal::ParseLiteral(in, shape, &literal) && !in.AtEnd())
    in.Fail("expected nothing after the literal");
  if (in.failed()) return in.Error();
  return literal;
}

}  // namespace lazuli::hlo
