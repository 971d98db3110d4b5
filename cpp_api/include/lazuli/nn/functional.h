// Losses and layers as functions of tensors.
#pragma once

#include <cstdint>
#include <optional>

#include "lazuli/ops.h"

namespace lazuli::nn {

// What a loss does with the losses of its elements.
enum class Reduction : std::uint8_t { kNone, kMean, kSum };

// Losses, and the functions of ops.h that networks use under PyTorch's roof.
namespace functional {

using lazuli::adaptive_avg_pool2d;
using lazuli::avg_pool2d;
using lazuli::celu;
using lazuli::conv2d;
using lazuli::dropout;
using lazuli::elu;
using lazuli::gelu;
using lazuli::glu;
using lazuli::hardsigmoid;
using lazuli::hardswish;
using lazuli::hardtanh;
using lazuli::leaky_relu;
using lazuli::linear;
using lazuli::log_sigmoid;
using lazuli::log_softmax;
using lazuli::max_pool2d;
using lazuli::mish;
using lazuli::one_hot;
using lazuli::prelu;
using lazuli::relu;
using lazuli::relu6;
using lazuli::selu;
using lazuli::sigmoid;
using lazuli::silu;
using lazuli::softmax;
using lazuli::softplus;
using lazuli::softsign;
using lazuli::tanh;

// --- losses
// -log(softmax(logits)) at the target class: logits [N, C, ...] of a float dtype, target [N, ...]
// of integers in [0, C), or probabilities in the shape and dtype of logits. A label out of range
// fails the run. weight [C], if defined, multiplies the loss of each class, and the mean is by
// weight; labels equal to ignore_index do not count; label_smoothing in [0, 1] is the share of an
// even distribution in the target. kNone gives [N, ...], else a scalar.
LAZULI_API Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                                const Tensor& weight = {},
                                std::optional<std::int64_t> ignore_index = std::nullopt,
                                Reduction reduction = Reduction::kMean, double label_smoothing = 0,
                                LAZULI_LOC);
// -log_probs at the target class; shapes, weight and ignore_index as cross_entropy's.
LAZULI_API Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const Tensor& weight = {},
                           std::optional<std::int64_t> ignore_index = std::nullopt,
                           Reduction reduction = Reduction::kMean, LAZULI_LOC);
// (x - y)^2, broadcasting.
LAZULI_API Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::kMean,
                           LAZULI_LOC);
// |x - y|, broadcasting.
LAZULI_API Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::kMean,
                          LAZULI_LOC);
// Of d = |x - y|: d^2 / (2 beta) where d is below beta, which is above 0, and d - beta / 2
// elsewhere.
LAZULI_API Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, const Scalar& beta = 1.0,
                                 Reduction reduction = Reduction::kMean, LAZULI_LOC);
// Of d = |x - y|: d^2 / 2 where d is at most delta, which is above 0, and delta (d - delta / 2)
// elsewhere.
LAZULI_API Tensor huber_loss(const Tensor& x, const Tensor& y, const Scalar& delta = 1.0,
                             Reduction reduction = Reduction::kMean, LAZULI_LOC);
// target (log(target) - log_probs), 0 where the target is 0. The mean is of all elements; the
// divergence is the sum over the classes.
LAZULI_API Tensor kl_div(const Tensor& log_probs, const Tensor& target, bool log_target = false,
                         Reduction reduction = Reduction::kMean, LAZULI_LOC);
// -(y log(x) + (1 - y) log(1 - x)) with logarithms of at least -100; x and y in [0, 1]. A weight
// that is defined multiplies the loss of each element.
LAZULI_API Tensor binary_cross_entropy(const Tensor& x, const Tensor& target,
                                       const Tensor& weight = {},
                                       Reduction reduction = Reduction::kMean, LAZULI_LOC);
// The same of x = sigmoid(logits), without overflow. pos_weight, if defined, multiplies the term of
// y = 1.
LAZULI_API Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                                   const Tensor& weight = {},
                                                   const Tensor& pos_weight = {},
                                                   Reduction reduction = Reduction::kMean,
                                                   LAZULI_LOC);

// --- layers. Weights and biases may be undefined where they have a default.
// The rows of weight [n, d] at the indices: [...] to [..., d]. An index outside [0, n) fails the
// run; the row padding_idx gets no gradient.
LAZULI_API Tensor embedding(const Tensor& index, const Tensor& weight,
                            std::optional<std::int64_t> padding_idx = std::nullopt, LAZULI_LOC);
// To mean 0 and variance 1 over the last dims, then times weight plus bias.
LAZULI_API Tensor layer_norm(const Tensor& x, const Dims& normalized_shape,
                             const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5,
                             LAZULI_LOC);
// x / sqrt(mean of x^2 + eps) over the last dims, then times weight.
LAZULI_API Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                           double eps = 1e-5, LAZULI_LOC);
// As layer_norm over groups of channels of x [N, C, ...]; weight and bias [C].
LAZULI_API Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight = {},
                             const Tensor& bias = {}, double eps = 1e-5, LAZULI_LOC);
// Each channel of x [N, C, ...] to mean 0 and variance 1, then times weight plus bias. In training
// by the batch's own mean and variance, toward which the running ones are moved in place, by
// momentum; in evaluation by the running ones. Without running ones always by the batch's.
LAZULI_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean = {},
                             const Tensor& running_var = {}, const Tensor& weight = {},
                             const Tensor& bias = {}, bool training = false,
                             const Scalar& momentum = 0.1, double eps = 1e-5, LAZULI_LOC);

}  // namespace functional
}  // namespace lazuli::nn
