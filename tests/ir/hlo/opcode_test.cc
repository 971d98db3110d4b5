#include "ir/hlo/opcode.h"

#include <set>

#include <gtest/gtest.h>

#include "ir/hlo/attrs.h"

namespace lazuli::hlo {
namespace {

TEST(OpcodeTest, EveryTextParsesBackAndIsThereOnce) {
  std::set<std::string_view> texts;
  for (int i = 0; i < NumOpcodes(); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_TRUE(texts.insert(OpcodeText(opcode)).second) << OpcodeText(opcode);
    EXPECT_EQ(ParseOpcode(OpcodeText(opcode)), opcode);
    EXPECT_LT(static_cast<std::size_t>(Traits(opcode).attrs), std::variant_size_v<Attrs>);
  }
  EXPECT_EQ(ParseOpcode("addd"), std::nullopt);
  EXPECT_EQ(ParseOpcode(""), std::nullopt);
}

TEST(OpcodeTest, NamesAreTheTextInPascalCase) {
  constexpr std::pair<std::string_view, std::string_view> kRows[] = {
#define LAZULI_OPCODE(name, text, ...) {#name, text},
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE
  };
  for (const auto& [name, text] : kRows) {
    std::string pascal = "k";
    bool upper = true;
    for (char c : text) {
      if (c == '-') {
        upper = true;
      } else {
        pascal += upper ? static_cast<char>(std::toupper(c)) : c;
        upper = false;
      }
    }
    EXPECT_EQ(name, pascal);
  }
}

TEST(OpcodeTest, PropertiesFitTogether) {
  for (int i = 0; i < NumOpcodes(); ++i) {
    const OpcodeTraits& traits = Traits(static_cast<Opcode>(i));
    SCOPED_TRACE(traits.text);
    if (traits.elementwise) {
      EXPECT_GE(traits.arity, 1);
      EXPECT_FALSE(traits.side_effects);
    }
    EXPECT_FALSE(traits.barrier && traits.side_effects);
    if (traits.commutative) {
      EXPECT_TRUE(traits.elementwise);
      EXPECT_EQ(traits.arity, 2);
    }
  }
}

TEST(OpcodeTest, TypesOfOperands) {
  EXPECT_TRUE(Accepts(Opcode::kExponential, DType::kBF16));
  EXPECT_FALSE(Accepts(Opcode::kExponential, DType::kS32));
  EXPECT_TRUE(Accepts(Opcode::kAdd, DType::kPred));
  EXPECT_FALSE(Accepts(Opcode::kAnd, DType::kF32));
  EXPECT_FALSE(Accepts(Opcode::kAdd, DType::kTuple));
  EXPECT_TRUE(Accepts(Opcode::kCopy, DType::kTuple));
  EXPECT_EQ(AcceptedTypes(Opcode::kAnd), "integer or pred");
}

}  // namespace
}  // namespace lazuli::hlo
