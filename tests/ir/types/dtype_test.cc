#include "ir/types/dtype.h"

#include <string>

#include <gtest/gtest.h>

namespace lazuli::ir {
namespace {

TEST(DTypeTest, EveryTextParsesBack) {
  for (int i = 0; i < kNumArrayDTypes + 2; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(DTypeText(dtype)), dtype) << DTypeText(dtype);
    EXPECT_FALSE(Row(dtype).doc.empty());
  }
}

TEST(DTypeTest, OtherTextsDoNotParse) {
  for (const char* text :
       {"", "f", "f33", "F32", "tuple", "tf32", "s128", "f8e4m3fnuzz", "pred "}) {
    EXPECT_EQ(ParseDType(text), std::nullopt) << text;
  }
}

TEST(DTypeTest, CategoriesAndWidths) {
  EXPECT_TRUE(IsFloat(DType::kF8E4M3FN) && IsFloat(DType::kBF16) && !IsFloat(DType::kC64));
  EXPECT_TRUE(IsSigned(DType::kS4) && IsUnsigned(DType::kU64) && IsIntegral(DType::kS8) &&
              !IsIntegral(DType::kPred));
  EXPECT_TRUE(IsComplex(DType::kC128));
  EXPECT_FALSE(IsArray(DType::kToken) || IsArray(DType::kTuple));
  EXPECT_EQ(Row(DType::kS4).bits, 4);
  EXPECT_EQ(ByteWidth(DType::kS4), 1);
  EXPECT_EQ(ByteWidth(DType::kC128), 16);
}

TEST(DTypeTest, VisitGivesTheHostType) {
  for (int i = 0; i < kNumArrayDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::size_t size =
        VisitDType(dtype, []<DType kType>() { return sizeof(HostType<kType>); });
    EXPECT_EQ(static_cast<int>(size), ByteWidth(dtype));
  }
  EXPECT_EQ(DTypeOf<bfloat16>(), DType::kBF16);
  EXPECT_EQ(DTypeOf<int8_t>(), DType::kS8);
}

// torch.promote_types of the types that torch has; "." where it refuses.
TEST(PromotionTest, IsTorchs) {
  constexpr DType kTypes[] = {DType::kPred, DType::kU8,  DType::kS8,   DType::kS16,
                              DType::kS32,  DType::kS64, DType::kU16,  DType::kU32,
                              DType::kU64,  DType::kF16, DType::kBF16, DType::kF32,
                              DType::kF64,  DType::kC64, DType::kC128, DType::kF8E5M2};
  std::string table;
  for (DType a : kTypes) {
    for (DType b : kTypes) {
      const auto promoted = Promote(a, b);
      table += promoted ? std::string(DTypeText(*promoted)) : std::string(".");
      table += b == kTypes[std::size(kTypes) - 1] ? '\n' : ' ';
    }
  }
  EXPECT_EQ(table,
            "pred u8 s8 s16 s32 s64 . . . f16 bf16 f32 f64 c64 c128 .\n"
            "u8 u8 s16 s16 s32 s64 . . . f16 bf16 f32 f64 c64 c128 .\n"
            "s8 s16 s8 s16 s32 s64 . . . f16 bf16 f32 f64 c64 c128 .\n"
            "s16 s16 s16 s16 s32 s64 . . . f16 bf16 f32 f64 c64 c128 .\n"
            "s32 s32 s32 s32 s32 s64 . . . f16 bf16 f32 f64 c64 c128 .\n"
            "s64 s64 s64 s64 s64 s64 . . . f16 bf16 f32 f64 c64 c128 .\n"
            ". . . . . . u16 . . f16 bf16 f32 f64 . . .\n"
            ". . . . . . . u32 . f16 bf16 f32 f64 . . .\n"
            ". . . . . . . . u64 f16 bf16 f32 f64 . . .\n"
            "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128 .\n"
            "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128 .\n"
            "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128 .\n"
            "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128 .\n"
            "c64 c64 c64 c64 c64 c64 . . . c64 c64 c64 c128 c64 c128 .\n"
            "c128 c128 c128 c128 c128 c128 . . . c128 c128 c128 c128 c128 c128 .\n"
            ". . . . . . . . . . . . . . . f8e5m2\n");
}

TEST(PromotionTest, IsSymmetricAndKeepsEqualTypes) {
  for (int i = 0; i < kNumArrayDTypes; ++i) {
    const auto a = static_cast<DType>(i);
    EXPECT_EQ(Promote(a, a), a);
    for (int k = 0; k < kNumArrayDTypes; ++k) {
      const auto b = static_cast<DType>(k);
      EXPECT_EQ(Promote(a, b), Promote(b, a)) << DTypeText(a) << " " << DTypeText(b);
    }
  }
}

}  // namespace
}  // namespace lazuli::ir
