// Samplers of distributions whose parameters are tensors, by rejection: gamma, Poisson, binomial.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// Numbers of gamma distributions with these shape parameters and rate 1, by the method of Marsaglia
// and Tsang (2000). All elements draw again until each has accepted what it drew.
struct StandardGammaOp {
  LAZULI_OP("standard_gamma", "aten::_standard_gamma");
  static constexpr OpDoc kDoc{"Numbers of the gamma distribution, Philox 4x32-10.",
                              {"alpha", "seed_low", "seed_high", "offset_low", "offset_high"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op alpha, lowering::Op seed_low,
                     lowering::Op seed_high, lowering::Op offset_low,
                     lowering::Op offset_high) const;
};

// Poisson numbers of these rates: below 10 by inversion, from there on by the transformed rejection
// of Hoermann (1993).
struct PoissonOp {
  LAZULI_OP("poisson", "aten::poisson");
  static constexpr OpDoc kDoc{"Poisson numbers, Philox 4x32-10.",
                              {"rate", "seed_low", "seed_high", "offset_low", "offset_high"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op rate, lowering::Op seed_low,
                     lowering::Op seed_high, lowering::Op offset_low,
                     lowering::Op offset_high) const;
};

// Binomial numbers of counts and probabilities, which have equal dims and dtypes, by the same two
// methods.
struct BinomialOp {
  LAZULI_OP("binomial", "aten::binomial");
  static constexpr OpDoc kDoc{
      "Binomial numbers, Philox 4x32-10.",
      {"count", "prob", "seed_low", "seed_high", "offset_low", "offset_high"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op count, lowering::Op prob,
                     lowering::Op seed_low, lowering::Op seed_high, lowering::Op offset_low,
                     lowering::Op offset_high) const;
};

// The sample, with a gradient for alpha: that of a sample which moves with alpha so that the share of
// the distribution below it stays (Figurnov, Mohamed and Mnih, 2018).
struct GammaPathOp {
  LAZULI_OP("gamma_path", "aten::gamma_path");
  static constexpr OpDoc kDoc{
      "The sample, which has a gradient for the shape parameter of its gamma distribution.",
      {"alpha", "sample"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder&, lowering::Op, lowering::Op sample) const { return sample; }
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// The same for a sample of a Dirichlet distribution.
struct DirichletPathOp {
  LAZULI_OP("dirichlet_path", "aten::dirichlet_path");
  static constexpr OpDoc kDoc{
      "The sample, which has a gradient for the concentration of its Dirichlet distribution.",
      {"alpha", "sample"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder&, lowering::Op, lowering::Op sample) const { return sample; }
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
