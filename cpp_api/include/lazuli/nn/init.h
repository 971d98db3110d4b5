// Starting values of parameters, set in place and without history. PyTorch's formulas; the numbers
// are lazuli's (ops.h: random numbers).
#pragma once

#include <cstdint>

#include "lazuli/ops.h"

namespace lazuli::nn::init {

LAZULI_API void uniform_(Tensor t, double low = 0, double high = 1, LAZULI_LOC);
LAZULI_API void normal_(Tensor t, double mean = 0, double deviation = 1, LAZULI_LOC);
// Normal, limited to [low, high] by drawing from the part of the distribution that lies there.
LAZULI_API void trunc_normal_(Tensor t, double mean = 0, double deviation = 1, double low = -2,
                              double high = 2, LAZULI_LOC);
LAZULI_API void constant_(Tensor t, double value, LAZULI_LOC);
LAZULI_API void ones_(Tensor t, LAZULI_LOC);
LAZULI_API void zeros_(Tensor t, LAZULI_LOC);
LAZULI_API void eye_(Tensor t, LAZULI_LOC);  // rank 2

// Glorot and Bengio (2010): variance 2 gain^2 / (fan_in + fan_out).
LAZULI_API void xavier_uniform_(Tensor t, double gain = 1, LAZULI_LOC);
LAZULI_API void xavier_normal_(Tensor t, double gain = 1, LAZULI_LOC);

// He et al. (2015): variance gain^2 / fan, with the gain of the activation that follows.
enum class Fan : std::uint8_t { kIn, kOut };
enum class Nonlinearity : std::uint8_t { kLinear, kSigmoid, kTanh, kReLU, kLeakyReLU, kSELU };
// `slope` is leaky_relu's.
LAZULI_API double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);
struct KaimingOptions {
  double slope = 0;
  Fan fan = Fan::kIn;
  Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU;
};
LAZULI_API void kaiming_uniform_(Tensor t, const KaimingOptions& options = {}, LAZULI_LOC);
LAZULI_API void kaiming_normal_(Tensor t, const KaimingOptions& options = {}, LAZULI_LOC);

}  // namespace lazuli::nn::init
