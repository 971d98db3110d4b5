#include "ir/hlo/monoid.h"

#include <cmath>

#include <gtest/gtest.h>

namespace lazuli::hlo {
namespace {

// f(identity, x) is x for every x of the type but zeros of the other sign; a type without
// infinities has its greatest finite value in their place, not NaN.
TEST(MonoidTest, IdentitiesAreValuesOfEveryFloatType) {
  constexpr DType kTypes[] = {
#define LAZULI_DTYPE(name, ...) DType::name,
#include "ir/types/dtype.def"
#undef LAZULI_DTYPE
  };
  for (DType dtype : kTypes) {
    if (!IsFloat(dtype)) continue;
    SCOPED_TRACE(DTypeText(dtype));
    const double least = IdentityOf(Opcode::kMaximum, dtype).AsDouble(0);
    const double greatest = IdentityOf(Opcode::kMinimum, dtype).AsDouble(0);
    ASSERT_FALSE(std::isnan(least) || std::isnan(greatest));
    for (const double x : {-1.0, 0.5, 1.0}) {
      const double value = Literal::Full(Shape(dtype), x).AsDouble(0);
      if (std::isnan(value)) continue;  // no sign
      EXPECT_LE(least, value);
      EXPECT_GE(greatest, value);
    }
  }
}

TEST(MonoidTest, TypesWithoutInfinitiesStartFromTheirLastFiniteValues) {
  EXPECT_EQ(IdentityOf(Opcode::kMaximum, DType::kF8E4M3FN).AsDouble(0), -448);
  EXPECT_EQ(IdentityOf(Opcode::kMinimum, DType::kF4E2M1FN).AsDouble(0), 6);
  EXPECT_EQ(IdentityOf(Opcode::kMaximum, DType::kF8E8M0FNU).AsDouble(0), std::ldexp(1.0, -127));
  EXPECT_EQ(IdentityOf(Opcode::kMaximum, DType::kF8E5M2).AsDouble(0), -HUGE_VAL);
}

}  // namespace
}  // namespace lazuli::hlo
