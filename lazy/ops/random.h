// Random numbers of other distributions than rand() and randn(), made of these.
#pragma once

#include <optional>
#include <string_view>

#include "lazy/ops/functions.h"
#include "lazy/ops/op.h"
#include "lazy/tensor/random.h"

namespace lazuli::lazy {

// Probabilities, or weights along the last dim of which at least `at_least` are not 0: the operand,
// but for a run that fails where one is negative, not finite, or beyond `most`.
struct ProbabilitiesOp {
  double most;
  int64_t at_least;
  LAZULI_OP("probabilities", "aten::probabilities", most, at_least);
  static constexpr OpDoc kDoc{
      "x; an element that is negative, not finite, or above `most` fails the run, and so does a "
      "row "
      "with fewer than `at_least` elements that are not 0.",
      {"x"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x) const;
};

// rand() and others with a generator of their own.
Tensor Rand(absl::Span<const int64_t> dims, DType dtype, backend::Device device,
            Generator& generator);
Tensor Randn(absl::Span<const int64_t> dims, DType dtype, backend::Device device,
             Generator& generator);
Tensor Randint(int64_t low, int64_t high, absl::Span<const int64_t> dims, DType dtype,
               backend::Device device, Generator& generator);
Tensor Randperm(int64_t n, DType dtype, backend::Device device, Generator& generator);

Tensor Normal(const Tensor& mean, const Tensor& std, Generator& generator);
Tensor Normal(const Tensor& mean, double std, Generator& generator);
Tensor Normal(double mean, const Tensor& std, Generator& generator);
Tensor Normal(double mean, double std, absl::Span<const int64_t> dims, DType dtype,
              backend::Device device, Generator& generator);
Tensor Bernoulli(const Tensor& x, Generator& generator);
Tensor Bernoulli(const Tensor& x, double p, Generator& generator);
Tensor Multinomial(const Tensor& x, int64_t num_samples, bool replacement, Generator& generator);

// Elements with the shape, dtype and device of x, for what changes x in place.
Tensor DrawUniform(const Tensor& x, double low, double high, Generator& generator);
Tensor DrawNormal(std::string_view op, const Tensor& x, double mean, double std,
                  Generator& generator);
Tensor DrawLogNormal(const Tensor& x, double mean, double std, Generator& generator);
Tensor DrawExponential(const Tensor& x, double lambd, Generator& generator);
Tensor DrawCauchy(const Tensor& x, double median, double sigma, Generator& generator);
Tensor DrawGeometric(const Tensor& x, double p, Generator& generator);
// In [low, high); without `high` up to what the dtype holds, of floats every integer up to.
Tensor DrawInteger(const Tensor& x, int64_t low, std::optional<int64_t> high, Generator& generator);

}  // namespace lazuli::lazy
