// The usual layers.
#pragma once

#include <cstdint>
#include <optional>

#include "lazuli/nn/module.h"
#include "lazuli/ops.h"

namespace lazuli::nn {

using lazuli::Size2;

// x weight^T + bias: [..., in_features] to [..., out_features].
struct LinearOptions {
  bool bias = true;
};
class LAZULI_API Linear : public Layer<Linear> {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options = {},
         LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  Parameter weight;  // [out_features, in_features]
  Parameter bias;    // [out_features], or undefined
};

// Cross-correlation: [N, in_channels, H, W] to [N, out_channels, H', W'].
struct Conv2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
class LAZULI_API Conv2d : public Layer<Conv2d> {
 public:
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel,
         const Conv2dOptions& options = {}, LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  Parameter weight;  // [out_channels, in_channels / groups, kernel height, kernel width]
  Parameter bias;    // [out_channels], or undefined

 private:
  lazuli::Conv2dOptions options_;
};

// The largest or the mean of each window: [N, C, H, W] to [N, C, H', W'].
struct MaxPool2dOptions {
  Size2 stride = 0;  // 0: the kernel's size
  Size2 padding = 0;
  bool ceil_mode = false;  // windows that do not end in x count, too
};
class LAZULI_API MaxPool2d : public Layer<MaxPool2d> {
 public:
  explicit MaxPool2d(Size2 kernel, const MaxPool2dOptions& options = {}, LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  Size2 kernel_;
  MaxPool2dOptions options_;
};
struct AvgPool2dOptions {
  Size2 stride = 0;  // 0: the kernel's size
  Size2 padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
class LAZULI_API AvgPool2d : public Layer<AvgPool2d> {
 public:
  explicit AvgPool2d(Size2 kernel, const AvgPool2dOptions& options = {}, LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  Size2 kernel_;
  AvgPool2dOptions options_;
};
// The mean of windows that give this height and width.
class LAZULI_API AdaptiveAvgPool2d : public Layer<AdaptiveAvgPool2d> {
 public:
  explicit AdaptiveAvgPool2d(Size2 size) : size_(size) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  Size2 size_;
};

// Each channel to mean 0 and variance 1, times weight plus bias; functional::batch_norm says how.
struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;               // weight and bias, at first 1 and 0
  bool track_running_stats = true;  // without, evaluation normalises by the batch, too
};
class LAZULI_API BatchNorm : public Layer<BatchNorm> {
 public:
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  Parameter weight, bias;                                    // [channels], or undefined
  Parameter running_mean, running_var, num_batches_tracked;  // buffers, or undefined

 protected:
  BatchNorm(const char* name, std::int64_t min_rank, std::int64_t max_rank, std::int64_t channels,
            const BatchNormOptions& options, SourceLocation loc);

 private:
  const char* name_;
  std::int64_t min_rank_, max_rank_;
  BatchNormOptions options_;
};
struct LAZULI_API BatchNorm1d : BatchNorm {  // x [N, C] or [N, C, L]
  explicit BatchNorm1d(std::int64_t channels, const BatchNormOptions& options = {}, LAZULI_LOC)
      : BatchNorm("BatchNorm1d", 2, 3, channels, options, loc) {}
};
struct LAZULI_API BatchNorm2d : BatchNorm {  // x [N, C, H, W]
  explicit BatchNorm2d(std::int64_t channels, const BatchNormOptions& options = {}, LAZULI_LOC)
      : BatchNorm("BatchNorm2d", 4, 4, channels, options, loc) {}
};

// To mean 0 and variance 1 over the last dims, which are `normalized_shape`, times weight plus
// bias.
struct LayerNormOptions {
  double eps = 1e-5;
  bool affine = true;  // weight and bias, at first 1 and 0
  bool bias = true;    // affine without it has the weight only
};
class LAZULI_API LayerNorm : public Layer<LayerNorm> {
 public:
  explicit LayerNorm(const Dims& normalized_shape, const LayerNormOptions& options = {},
                     LAZULI_LOC);
  explicit LayerNorm(std::int64_t last_dim, const LayerNormOptions& options = {}, LAZULI_LOC)
      : LayerNorm(Dims{last_dim}, options, loc) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  Parameter weight, bias;  // [normalized_shape], or undefined

 private:
  Dims dims_;
  double eps_;
};

// As LayerNorm over groups of channels of x [N, C, ...]; weight and bias [channels].
struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
class LAZULI_API GroupNorm : public Layer<GroupNorm> {
 public:
  GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options = {},
            LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  Parameter weight, bias;

 private:
  std::int64_t groups_;
  double eps_;
};

// x / sqrt(mean of x^2 + eps) over the last dims, times weight.
class LAZULI_API RMSNorm : public Layer<RMSNorm> {
 public:
  explicit RMSNorm(const Dims& normalized_shape, double eps = 1e-5, LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  Parameter weight;  // [normalized_shape]

 private:
  Dims dims_;
  double eps_;
};

// Rows of a table: integers [...] to [..., dim]. An index outside [0, rows) fails the run.
struct EmbeddingOptions {
  std::optional<std::int64_t> padding_idx = std::nullopt;  // a row that is 0 and stays so
};
class LAZULI_API Embedding : public Layer<Embedding> {
 public:
  Embedding(std::int64_t rows, std::int64_t dim, const EmbeddingOptions& options = {}, LAZULI_LOC);
  Tensor forward(const Tensor& index, LAZULI_LOC) const;
  Parameter weight;  // [rows, dim], at first normal

 private:
  std::optional<std::int64_t> padding_idx_;
};

// One dim in place of dims start_dim to end_dim.
class LAZULI_API Flatten : public Layer<Flatten> {
 public:
  explicit Flatten(std::int64_t start_dim = 1, std::int64_t end_dim = -1)
      : start_(start_dim), end_(end_dim) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  std::int64_t start_, end_;
};

// In training, zeroes each element with probability p and scales the rest by 1 / (1 - p); nothing
// in evaluation.
class LAZULI_API Dropout : public Layer<Dropout> {
 public:
  explicit Dropout(double p = 0.5, LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  double p_;
};

// Elementwise; ops.h has the formulas.
#define LAZULI_ACTIVATION(name)                        \
  struct LAZULI_API name : Layer<name> {               \
    Tensor forward(const Tensor& x, LAZULI_LOC) const; \
  }
LAZULI_ACTIVATION(ReLU);
LAZULI_ACTIVATION(Tanh);
LAZULI_ACTIVATION(Sigmoid);
LAZULI_ACTIVATION(SiLU);
LAZULI_ACTIVATION(SELU);
LAZULI_ACTIVATION(LogSigmoid);
LAZULI_ACTIVATION(ReLU6);
LAZULI_ACTIVATION(Hardsigmoid);
LAZULI_ACTIVATION(Hardswish);
LAZULI_ACTIVATION(Mish);
LAZULI_ACTIVATION(Softsign);
LAZULI_ACTIVATION(Identity);  // x
#undef LAZULI_ACTIVATION
class LAZULI_API GELU : public Layer<GELU> {
 public:
  explicit GELU(bool tanh = false) : tanh_(tanh) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  bool tanh_;
};
class LAZULI_API LeakyReLU : public Layer<LeakyReLU> {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : slope_(negative_slope) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  double slope_;
};
class LAZULI_API ELU : public Layer<ELU> {
 public:
  explicit ELU(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  double alpha_;
};
class LAZULI_API Softplus : public Layer<Softplus> {
 public:
  explicit Softplus(double beta = 1, double threshold = 20) : beta_(beta), threshold_(threshold) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  double beta_, threshold_;
};
class LAZULI_API Hardtanh : public Layer<Hardtanh> {
 public:
  explicit Hardtanh(double low = -1, double high = 1) : low_(low), high_(high) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  double low_, high_;
};
// A slope that is learned, at first `init`: one, or one per channel.
class LAZULI_API PReLU : public Layer<PReLU> {
 public:
  explicit PReLU(std::int64_t channels = 1, double init = 0.25, LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  Parameter weight;  // [channels]
};

// Along a dim.
class LAZULI_API Softmax : public Layer<Softmax> {
 public:
  explicit Softmax(std::int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  std::int64_t dim_;
};
class LAZULI_API LogSoftmax : public Layer<LogSoftmax> {
 public:
  explicit LogSoftmax(std::int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  std::int64_t dim_;
};

}  // namespace lazuli::nn
