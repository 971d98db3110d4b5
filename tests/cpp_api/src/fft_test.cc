// Fourier transforms in C++: values that are known, the ways there and back, and what is refused.
#include <cmath>
#include <complex>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lazuli/lazuli.h"
#include "tests/support/expect_error.h"

namespace lazuli {
namespace {

using testing::ElementsAre;

std::vector<float> Parts(const Tensor& z) { return view_as_real(z).to_vector<float>(); }

double Largest(const Tensor& x) { return abs(x).max().item<double>(); }

TEST(FftTest, GivesKnownSpectra) {
  const Tensor x = tensor({1.f, 2.f, 3.f, 4.f});
  EXPECT_THAT(Parts(fft::fft(x)), ElementsAre(10, 0, -2, 2, -2, 0, -2, -2));
  EXPECT_THAT(Parts(fft::rfft(x)), ElementsAre(10, 0, -2, 2, -2, 0));
  EXPECT_THAT(Parts(fft::ihfft(x)), ElementsAre(2.5, 0, -0.5, -0.5, -0.5, 0));
  EXPECT_THAT(Parts(fft::rfft(x, 2, -1, "ortho")), testing::Each(testing::Not(testing::IsNan())));
  EXPECT_THAT(Parts(fft::fft(x, 1)), ElementsAre(1, 0));
  EXPECT_THAT(Parts(fft::fft(tensor({2}), 2, 0, "forward")), ElementsAre(1, 0, 1, 0));
}

TEST(FftTest, InversesGoBack) {
  manual_seed(1);
  const Tensor x = randn({3, 4, 5}, kFloat64);
  for (const char* norm : {"backward", "ortho", "forward"}) {
    SCOPED_TRACE(norm);
    EXPECT_LT(Largest(fft::irfft(fft::rfft(x, {}, 1, norm), 4, 1, norm) - x), 1e-14);
    EXPECT_LT(Largest(fft::irfftn(fft::rfftn(x, {}, {}, norm), {{3, 4, 5}}, {}, norm) - x), 1e-14);
    EXPECT_LT(Largest(fft::hfftn(fft::ihfftn(x, {}, {}, norm), {{3, 4, 5}}, {}, norm) - x), 1e-14);
    const Tensor z = complex(x, flip(x, {0}));
    EXPECT_LT(Largest(fft::ifft2(fft::fft2(z, {}, {0, 2}, norm), {}, {0, 2}, norm) - z), 1e-14);
  }
  EXPECT_TRUE(equal(fft::ifftshift(fft::fftshift(x)), x));
}

TEST(FftTest, FrequenciesAreThoseOfSpectra) {
  EXPECT_THAT(fft::fftfreq(5, 0.5).to_vector<float>(), ElementsAre(0, 0.4f, 0.8f, -0.8f, -0.4f));
  EXPECT_THAT(fft::rfftfreq(4).to_vector<float>(), ElementsAre(0, 0.25f, 0.5f));
  EXPECT_THAT(fft::fftshift(fft::fftfreq(4)).to_vector<float>(),
              ElementsAre(-0.5f, -0.25f, 0, 0.25f));
}

TEST(FftTest, SignalsComeBackFromTheirFrames) {
  manual_seed(2);
  const Tensor x = randn({2, 50}, kFloat64), window = hann_window(8, true, kFloat64);
  const Tensor y = stft(x, 8, 2, std::nullopt, window, true, "reflect", false, std::nullopt, true);
  EXPECT_EQ(y.sizes(), Dims({2, 5, 26}));
  const Tensor back = istft(y, 8, 2, std::nullopt, window, true, false, std::nullopt, 50);
  EXPECT_LT(Largest(back - x), 1e-14);
  const Tensor gaps = istft(y, 8, 8, std::nullopt, window, false);
  EXPECT_THROW(gaps.sum().item<double>(), Error);  // the window begins with 0
}

TEST(FftTest, RefusesWhatTorchRefuses) {
  const Tensor x = ones({3, 4}), z = complex(x, x);
  EXPECT_ERROR(kInvalidArgument, "fft.fft: invalid number of data points (0)", fft::fft(x, 0));
  EXPECT_ERROR(kOutOfRange, "fft.ifft: dim 2 is out of range for rank 2",
               fft::ifft(x, std::nullopt, 2));
  EXPECT_ERROR(kInvalidArgument,
               "fft.fft: norm \"foo\" is not \"forward\", \"backward\" or \"ortho\"",
               fft::fft(x, std::nullopt, -1, "foo"));
  EXPECT_ERROR(kWrongType, "fft.rfft: expects a real input, not c64[3,4]", fft::rfft(z));
  EXPECT_ERROR(kWrongType, "fft.fft: does not transform f16: convert f16[3,4] to f32 or f64",
               fft::fft(x.to(kFloat16)));
  EXPECT_ERROR(kInvalidArgument, "fft.fftn: dims must be unique, are (0, -2)",
               fft::fftn(x, std::nullopt, {{0, -2}}));
  EXPECT_ERROR(kInvalidArgument,
               "fft.fftn: dim and s must have the same length, not (0, 1) and (2)",
               fft::fftn(x, {{2}}, {{0, 1}}));
  EXPECT_ERROR(kInvalidArgument, "fft.irfftn: must transform at least one dim of x",
               fft::irfftn(z, std::nullopt, Dims{}));
  EXPECT_ERROR(kInvalidArgument, "stft: requires return_complex for real signals and windows",
               stft(x, 4));
}

}  // namespace
}  // namespace lazuli
