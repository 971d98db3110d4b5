#include "lazuli/nn/init.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/internal/fail.h"

namespace lazuli::nn::init {
namespace {

using lazuli::internal::Fail;

void Check(const Tensor& t, const char* function, SourceLocation loc) {
  if (t.defined()) return;
  Fail(ErrorCode::kInvalidArgument, std::string(function) + ": the tensor is undefined", loc);
}

void Set(Tensor& t, const Tensor& value) { t.copy_(value); }

void SetUniform(Tensor& t, double low, double high, const OptionalGenerator& generator) {
  Set(t, rand(t.sizes(), t.dtype(), t.device(), generator) * (high - low) + low);
}
void SetNormal(Tensor& t, double mean, double deviation, const OptionalGenerator& generator) {
  Set(t, randn(t.sizes(), t.dtype(), t.device(), generator) * deviation + mean);
}

struct Fans {
  double in, out;
};
Fans FansOf(const Tensor& t, const char* function, SourceLocation loc) {
  Check(t, function, loc);
  if (t.dim() < 2) {
    Fail(ErrorCode::kInvalidArgument,
         std::string(function) + ": takes a weight of rank 2 or more, not of rank " +
             std::to_string(t.dim()),
         loc);
  }
  double field = 1;  // positions of a convolution's kernel
  for (std::int64_t d = 2; d < t.dim(); ++d) field *= static_cast<double>(t.size(d));
  return {static_cast<double>(t.size(1)) * field, static_cast<double>(t.size(0)) * field};
}

double KaimingDeviation(const Tensor& t, const KaimingOptions& o, const char* function,
                        SourceLocation loc) {
  const Fans fans = FansOf(t, function, loc);
  return calculate_gain(o.nonlinearity, o.slope) /
         std::sqrt(o.fan == Fan::kIn ? fans.in : fans.out);
}

// Rows of `length` numbers one behind the other, made orthogonal to those before and of length 1
// (Gram and Schmidt; twice, since rounding leaves a part of what is taken away).
void MakeOrthogonal(std::vector<double>& rows, std::size_t length) {
  for (std::size_t i = 0; i < rows.size(); i += length) {
    const std::span<double> row(&rows[i], length);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < i; j += length) {
        const double share = std::inner_product(row.begin(), row.end(), &rows[j], 0.0);
        for (std::size_t k = 0; k < length; ++k) row[k] -= share * rows[j + k];
      }
    }
    const double norm = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
    for (double& x : row) x /= norm;
  }
}

}  // namespace

double calculate_gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::kLinear:
    case Nonlinearity::kSigmoid:
      return 1;
    case Nonlinearity::kTanh:
      return 5.0 / 3;
    case Nonlinearity::kReLU:
      return std::sqrt(2.0);
    case Nonlinearity::kLeakyReLU:
      return std::sqrt(2.0 / (1 + slope * slope));
    case Nonlinearity::kSELU:
      return 0.75;
  }
  return 1;
}

void uniform_(Tensor t, double low, double high, const OptionalGenerator& generator,
              SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  Check(t, "uniform_", loc);
  SetUniform(t, low, high, generator);
}

void normal_(Tensor t, double mean, double deviation, const OptionalGenerator& generator,
             SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  Check(t, "normal_", loc);
  SetNormal(t, mean, deviation, generator);
}

// By inversion: a uniform number between the probabilities of the limits, and the inverse of the
// normal distribution there - Newton's method on erf, from a start that suffices within 5
// deviations.
void trunc_normal_(Tensor t, double mean, double deviation, double low, double high,
                   const OptionalGenerator& generator, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  Check(t, "trunc_normal_", loc);
  if (!(low < high) || !(deviation > 0)) {
    Fail(ErrorCode::kInvalidArgument,
         "trunc_normal_: low must be below high, and the deviation above 0", loc);
  }
  const auto probability = [&](double v) {
    return std::erf((v - mean) / deviation / std::sqrt(2.0));
  };
  const double from = probability(low), to = probability(high);
  const Tensor p =
      rand(t.sizes(), kFloat64, t.device(), generator) * (to - from) + from;  // erf of the result
  // Winitzki's approximation, then three steps of Newton.
  const Tensor l = log1p(-(p * p)), a = l * 0.5 + 4.330746750799873;
  Tensor x = sign(p) * sqrt(sqrt(a * a - l * 6.802721088435374) - a);
  for (int i = 0; i < 3; ++i) x = x - (erf(x) - p) * exp(x * x) * 0.886226925452758;
  Set(t, clamp(x * (deviation * std::sqrt(2.0)) + mean, low, high));
}

void constant_(Tensor t, double value, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  Check(t, "constant_", loc);
  t.fill_(value);
}
void ones_(Tensor t, SourceLocation loc) { constant_(std::move(t), 1, loc); }
void zeros_(Tensor t, SourceLocation loc) { constant_(std::move(t), 0, loc); }

void eye_(Tensor t, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  Check(t, "eye_", loc);
  if (t.dim() != 2) {
    Fail(ErrorCode::kInvalidArgument, "eye_: takes rank 2, not rank " + std::to_string(t.dim()),
         loc);
  }
  const Tensor rows = unsqueeze(arange(t.size(0), kInt64, t.device()), 1);
  Set(t, rows == unsqueeze(arange(t.size(1), kInt64, t.device()), 0));
}

void xavier_uniform_(Tensor t, double gain, const OptionalGenerator& generator,
                     SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  const Fans fans = FansOf(t, "xavier_uniform_", loc);
  const double bound = gain * std::sqrt(6 / (fans.in + fans.out));
  SetUniform(t, -bound, bound, generator);
}
void xavier_normal_(Tensor t, double gain, const OptionalGenerator& generator, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  const Fans fans = FansOf(t, "xavier_normal_", loc);
  SetNormal(t, 0, gain * std::sqrt(2 / (fans.in + fans.out)), generator);
}

void kaiming_uniform_(Tensor t, const KaimingOptions& options, const OptionalGenerator& generator,
                      SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  const double bound = std::sqrt(3.0) * KaimingDeviation(t, options, "kaiming_uniform_", loc);
  SetUniform(t, -bound, bound, generator);
}
void kaiming_normal_(Tensor t, const KaimingOptions& options, const OptionalGenerator& generator,
                     SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  SetNormal(t, 0, KaimingDeviation(t, options, "kaiming_normal_", loc), generator);
}

void orthogonal_(Tensor t, double gain, const OptionalGenerator& generator, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  FansOf(t, "orthogonal_", loc);
  if (t.numel() == 0) return;
  const std::int64_t rows = t.size(0), columns = t.numel() / rows;
  const bool wide = rows <= columns;  // then the rows are orthogonal
  const Dims dims = wide ? Dims{rows, columns} : Dims{columns, rows};
  std::vector<double> numbers = randn(dims, kFloat64, t.device(), generator).to_vector<double>();
  MakeOrthogonal(numbers, static_cast<std::size_t>(dims[1]));
  const Tensor made = tensor(numbers, dims, t.device()) * gain;
  Set(t, reshape(wide ? made : made.t(), t.sizes()));
}

void dirac_(Tensor t, std::int64_t groups, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  Check(t, "dirac_", loc);
  if (t.dim() < 3 || t.dim() > 5) {
    Fail(ErrorCode::kInvalidArgument,
         "dirac_: takes rank 3 to 5, not rank " + std::to_string(t.dim()), loc);
  }
  if (groups < 1 || t.size(0) % groups != 0) {
    Fail(ErrorCode::kInvalidArgument,
         "dirac_: " + std::to_string(t.size(0)) + " channels do not divide into " +
             std::to_string(groups) + " groups",
         loc);
  }
  // Channel o of a group is kept by input channel o, if there is one, in the middle of the kernel.
  const std::int64_t per_group = t.size(0) / groups, inputs = t.size(1);
  std::int64_t field = 1, middle = 0;
  for (std::int64_t d = 2; d < t.dim(); ++d) {
    middle = middle * t.size(d) + t.size(d) / 2;
    field *= t.size(d);
  }
  if (field == 0 && t.size(0) > 0)
    Fail(ErrorCode::kOutOfRange, "dirac_: a kernel without elements has no middle", loc);
  std::vector<double> numbers(static_cast<std::size_t>(t.numel()));
  for (std::int64_t o = 0; o < t.size(0); ++o) {
    if (const std::int64_t i = o % per_group; i < inputs)
      numbers[static_cast<std::size_t>((o * inputs + i) * field + middle)] = 1;
  }
  Set(t, tensor(numbers, t.sizes(), t.device()));
}

void sparse_(Tensor t, double sparsity, double deviation, const OptionalGenerator& generator,
             SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  Check(t, "sparse_", loc);
  if (t.dim() != 2) {
    Fail(ErrorCode::kInvalidArgument, "sparse_: takes rank 2, not rank " + std::to_string(t.dim()),
         loc);
  }
  const auto zeros =
      static_cast<std::int64_t>(std::ceil(sparsity * static_cast<double>(t.size(0))));
  // The places of a column in a random order.
  const Tensor places = argsort(argsort(rand(t.sizes(), kFloat32, t.device(), generator), 0), 0);
  SetNormal(t, 0, deviation, generator);
  Set(t, masked_fill(t, places < zeros, 0));
}

}  // namespace lazuli::nn::init
