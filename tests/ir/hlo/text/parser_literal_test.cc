#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/hlo/text/parser.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

struct LiteralCase {
  const char* shape;
  const char* text;
  const char* expected;  // printed, or the error
};

std::string Read(const char* shape, std::string_view text) {
  const auto literal = ParseLiteral(text, *ParseShape(shape));
  if (literal.ok()) return literal->ToString();
  const std::string message = ErrorOf(literal.status());
  return message.substr(0, message.find('\n'));
}

TEST(ParseLiteralTest, Values) {
  for (const LiteralCase& c : {
           LiteralCase{"f32[]", "1", "1"},
           LiteralCase{"f32[]", "5.", "5"},
           LiteralCase{"f32[]", "-1.5e3", "-1500"},
           LiteralCase{"f32[]", "-inf", "-inf"},
           LiteralCase{"f32[]", "nan", "nan"},
           LiteralCase{"f32[]", "-nan", "-nan"},
           LiteralCase{"f32[]", "nan(0x7)", "nan(0x7)"},
           LiteralCase{"f32[]", "-0", "-0.0"},
           LiteralCase{"f32[]", "-0.0", "-0.0"},
           LiteralCase{"f32[]", "1e-50", "0"},
           LiteralCase{"f32[]", "1e-500", "0"},
           LiteralCase{"f32[]", "-1e-500", "-0.0"},
           LiteralCase{"f32[]", "16777217", "16777216"},
           LiteralCase{"f32[]", "3.4028235e38", "3.40282347e+38"},
           LiteralCase{"f64[]", "0.1", "0.1"},
           LiteralCase{"f64[]", "1e-400", "0"},
           LiteralCase{"f16[]", "65504", "65504"},
           LiteralCase{"bf16[]", "1.234", "1.234"},
           LiteralCase{"f8e4m3fn[]", "448", "448"},
           LiteralCase{"f8e5m2[]", "inf", "inf"},
           LiteralCase{"f8e4m3fn[]", "nan", "nan"},
           LiteralCase{"f8e8m0fnu[]", "2", "2"},
           LiteralCase{"f4e2m1fn[]", "6", "6"},
           LiteralCase{"pred[]", "true", "true"},
           LiteralCase{"pred[]", "0", "false"},
           LiteralCase{"pred[3]", "{1, false, true}", "{1, 0, 1}"},
           LiteralCase{"s32[]", "-2147483648", "-2147483648"},
           LiteralCase{"u64[]", "18446744073709551615", "18446744073709551615"},
           LiteralCase{"s64[]", "-9223372036854775808", "-9223372036854775808"},
           LiteralCase{"s4[2]", "{-8, 7}", "{-8, 7}"},
           LiteralCase{"u4[]", "15", "15"},
           LiteralCase{"c64[]", "(1, -2.5)", "(1, -2.5)"},
           LiteralCase{"c128[2]", "{(nan, inf), (0, 1)}", "{(nan, inf), (0, 1)}"},
           LiteralCase{"f32[2,2]", "{{1,2},{3,4}}", "{ { 1, 2 }, { 3, 4 } }"},
           LiteralCase{"f32[2]", "{1 2}", "{1, 2}"},
           LiteralCase{"s32[3]", "{1,/*i*/2,3}", "{1, 2, 3}"},
           LiteralCase{"f32[0]", "{}", "{}"},
           LiteralCase{"f32[0,2]", "{}", "{  }"},
           LiteralCase{"f32[2,0]", "{{},{}}", "{ {}, {} }"},
           LiteralCase{"(f32[], s32[2], (pred[]))", "(1, {2, 3}, (true))",
                       "( 1, {2, 3}, ( true ) )"},
       }) {
    EXPECT_EQ(Read(c.shape, c.text), c.expected) << c.shape << " " << c.text;
  }
}

TEST(ParseLiteralTest, Errors) {
  for (const LiteralCase& c : {
           LiteralCase{"f32[]", "x", "1:1: expected a number, not 'x'"},
           LiteralCase{"f32[]", "", "1:1: the text has fewer elements than f32[]"},
           LiteralCase{"f32[]", "1e39", "1:1: 1e39 is out of range for f32"},
           LiteralCase{"f32[]", "+1", "1:1: expected a number, not '+1'"},
           LiteralCase{"f32[]", "0x1p3", "1:1: expected a number, not '0x1p3'"},
           LiteralCase{"f32[]", "{1}", "1:1: expected a number, not ''"},
           LiteralCase{"f32[]", "1 2", "1:3: expected nothing after the literal"},
           LiteralCase{"f64[]", "1e400", "1:1: 1e400 is out of range for f64"},
           LiteralCase{"f16[]", "65520", "1:1: 65520 is out of range for f16"},
           LiteralCase{"bf16[]", "3.5e38", "1:1: 3.5e38 is out of range for bf16"},
           LiteralCase{"f8e4m3fn[]", "500", "1:1: 500 is out of range for f8e4m3fn"},
           LiteralCase{"f8e4m3fn[]", "inf", "1:4: f8e4m3fn has no infinity"},
           LiteralCase{"f4e2m1fn[]", "7", "1:1: 7 is out of range for f4e2m1fn"},
           LiteralCase{"f4e2m1fn[]", "nan", "1:4: this type has no NaN"},
           LiteralCase{"f32[]", "nan(0xffffff)", "1:14: this type has no NaN of that payload"},
           LiteralCase{"pred[]", "2", "1:1: expected true, false, 0 or 1, not '2'"},
           LiteralCase{"s32[]", "1.0", "1:1: expected a whole number, not '1.0'"},
           LiteralCase{"s32[]", "2147483648", "1:1: 2147483648 is out of range for s32"},
           LiteralCase{"s64[]", "9223372036854775808",
                       "1:1: 9223372036854775808 is out of range for s64"},
           LiteralCase{"u8[]", "-1", "1:1: -1 is out of range for u8"},
           LiteralCase{"s4[]", "8", "1:1: 8 is out of range for s4"},
           LiteralCase{"c64[]", "1", "1:1: expected '('"},
           LiteralCase{"f32[2,2]", "{1,2,3,4}", "1:2: expected '{': dimension 1 of f32[2,2]"},
           LiteralCase{"f32[2]", "{1}", "1:3: expected 2 elements in dimension 0 of f32[2]"},
           LiteralCase{"f32[2]", "{1,2,3}",
                       "1:5: expected '}' after 2 elements in dimension 0 of f32[2]"},
           LiteralCase{"f32[2]", "{...}", "1:6: the constant's values were left out of this text"},
           LiteralCase{"f32[2,2]", "{{...},{...}}",
                       "1:3: the constant's values were left out of this text"},
           LiteralCase{"f32[1000000]", "{1}", "1:1: the text has fewer elements than f32[1000000]"},
       }) {
    EXPECT_EQ(Read(c.shape, c.text), c.expected) << c.shape << " " << c.text;
  }
}

// --- text -> literal -> text, and literal -> text -> literal

TEST(ParseLiteralTest, EveryNarrowFloatRoundTrips) {
  for (int i = 0; i < kNumArrayDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!IsFloat(dtype) || Row(dtype).bits > 16) continue;
    SCOPED_TRACE(DTypeText(dtype));
    const int64_t codes = int64_t{1} << Row(dtype).bits;
    Literal all(Shape(dtype, {codes}));
    for (int64_t code = 0; code < codes; ++code) {
      std::memcpy(all.mutable_raw() + code * ByteWidth(dtype), &code,
                  static_cast<std::size_t>(ByteWidth(dtype)));
    }
    const auto back = ParseLiteral(all.ToString(), all.shape());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->ToString(), all.ToString());
    for (int64_t code = 0; code < codes; ++code) {
      // NaNs of 8-bit formats have no payload in text.
      if (Row(dtype).bits <= 8 && std::isnan(all.AsDouble(code))) continue;
      const auto offset = code * ByteWidth(dtype);
      ASSERT_EQ(std::memcmp(back->raw() + offset, all.raw() + offset,
                            static_cast<std::size_t>(ByteWidth(dtype))),
                0)
          << code;
    }
  }
}

TEST(ParseLiteralTest, RandomBitsOfEveryTypeRoundTrip) {
  std::mt19937_64 random(1);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128, DType::kS32, DType::kU64,
                      DType::kS64, DType::kS8, DType::kU16}) {
    SCOPED_TRACE(DTypeText(dtype));
    Literal literal(Shape(dtype, {2, 5, 1, 50}));
    for (int64_t i = 0; i < literal.byte_size(); i += 2) {
      const auto bits = static_cast<uint16_t>(random());
      std::memcpy(literal.mutable_raw() + i, &bits, 2);
    }
    const auto back = ParseLiteral(literal.ToString(), literal.shape());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(back->BitsEqual(literal));
  }
}

}  // namespace
}  // namespace lazuli::hlo
