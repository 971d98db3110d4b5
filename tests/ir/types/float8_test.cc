#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ir/types/dtype.h"

namespace lazuli::ir {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// What the format's paper says; ml_dtypes agrees on every code.
struct Facts {
  DType dtype;
  float max, smallest;
  int nan_codes, inf_codes;
  uint8_t one, negative_zero, from_nan, from_inf, from_large;  // codes that values become
};
constexpr Facts kFacts[] = {
    {DType::kF8E5M2, 57344, 1.52587890625e-05f, 6, 2, 0x3c, 0x80, 0x7e, 0x7c, 0x7c},
    {DType::kF8E4M3, 240, 0.001953125f, 14, 2, 0x38, 0x80, 0x7c, 0x78, 0x78},
    {DType::kF8E4M3FN, 448, 0.001953125f, 2, 0, 0x38, 0x80, 0x7f, 0x7f, 0x7f},
    {DType::kF8E4M3B11FNUZ, 30, 0.0001220703125f, 1, 0, 0x58, 0x00, 0x80, 0x80, 0x80},
    {DType::kF8E4M3FNUZ, 240, 0.0009765625f, 1, 0, 0x40, 0x00, 0x80, 0x80, 0x80},
    {DType::kF8E5M2FNUZ, 57344, 7.62939453125e-06f, 1, 0, 0x40, 0x00, 0x80, 0x80, 0x80},
    {DType::kF8E3M4, 15.5f, 0.015625f, 30, 2, 0x30, 0x80, 0x78, 0x70, 0x70},
    {DType::kF8E8M0FNU, 1.7014118346046923e+38f, 5.877471754111438e-39f, 1, 0, 0x7f, 0xff, 0xff,
     0xff, 0xff},
    {DType::kF4E2M1FN, 6, 0.5f, 0, 0, 0x02, 0x08, 0x08, 0x07, 0x07},
};

template <class F>
void ForEachFormat(F&& f) {
  for (const Facts& facts : kFacts) {
    SCOPED_TRACE(DTypeText(facts.dtype));
    VisitDType(facts.dtype, [&]<DType kType>() {
      if constexpr (sizeof(HostType<kType>) == 1 && CategoryOf<kType>() == DTypeCategory::kFloat) {
        f.template operator()<HostType<kType>>(facts);
      }
    });
  }
}

template <class T>
T FromCode(int code) {
  T value;
  value.bits = static_cast<uint8_t>(code);
  return value;
}

TEST(Float8Test, FormatsHaveTheirRanges) {
  ForEachFormat([]<class T>(const Facts& facts) {
    const int codes = 1 << Row(facts.dtype).bits;
    float max = 0, smallest = kInf;
    int nans = 0, infs = 0;
    for (int code = 0; code < codes; ++code) {
      const auto value = static_cast<float>(FromCode<T>(code));
      nans += std::isnan(value);
      infs += std::isinf(value);
      if (std::isfinite(value)) max = std::max(max, value);
      if (value > 0) smallest = std::min(smallest, value);
    }
    EXPECT_EQ(max, facts.max);
    EXPECT_EQ(smallest, facts.smallest);
    EXPECT_EQ(nans, facts.nan_codes);
    EXPECT_EQ(infs, facts.inf_codes);
  });
}

TEST(Float8Test, SpecialValuesHaveTheirCodes) {
  ForEachFormat([]<class T>(const Facts& facts) {
    EXPECT_EQ(T(1.0f).bits, facts.one);
    EXPECT_EQ(T(-0.0f).bits, facts.negative_zero);
    EXPECT_EQ(T(kNaN).bits, facts.from_nan);
    EXPECT_EQ(T(kInf).bits, facts.from_inf);
    EXPECT_EQ(T(3e38f).bits, facts.from_large);
  });
}

TEST(Float8Test, EveryValueKeepsItsCode) {
  ForEachFormat([]<class T>(const Facts& facts) {
    for (int code = 0; code < (1 << Row(facts.dtype).bits); ++code) {
      const auto value = static_cast<float>(FromCode<T>(code));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(static_cast<float>(T(value)))) << code;
      } else {
        EXPECT_EQ(T(value).bits, code);
      }
    }
  });
}

TEST(Float8Test, RoundsToTheNearestAndTiesToEven) {
  ForEachFormat([]<class T>(const Facts& facts) {
    const int positive = 1 << (Row(facts.dtype).bits - (facts.dtype == DType::kF8E8M0FNU ? 0 : 1));
    for (int code = 1; code + 1 < positive; ++code) {
      const auto low = static_cast<float>(FromCode<T>(code)),
                 high = static_cast<float>(FromCode<T>(code + 1));
      if (!(low < high) || !std::isfinite(high)) continue;
      const float middle = low + (high - low) / 2;
      const int even = facts.dtype == DType::kF8E8M0FNU ? code + 1 : code + code % 2;
      EXPECT_EQ(T(middle).bits, even) << code;
      EXPECT_EQ(T(std::nextafter(middle, 0.0f)).bits, code) << code;
      EXPECT_EQ(T(std::nextafter(middle, kInf)).bits, code + 1) << code;
    }
  });
}

TEST(Float8Test, OverflowBeginsHalfAStepAboveTheGreatestValue) {
  EXPECT_EQ(static_cast<float>(Float8<3>(463.9f)), 448.0f);
  EXPECT_EQ(static_cast<float>(Float8<3>(464.0f)), 448.0f);  // a tie; 448 is even
  EXPECT_TRUE(std::isnan(static_cast<float>(Float8<3>(464.1f))));
  EXPECT_EQ(static_cast<float>(Float8<1>(61439.0f)), 57344.0f);
  EXPECT_EQ(static_cast<float>(Float8<1>(61440.0f)), kInf);
  EXPECT_EQ(static_cast<float>(Float8<9>(-100.0f)), -6.0f);
}

}  // namespace
}  // namespace lazuli::ir
