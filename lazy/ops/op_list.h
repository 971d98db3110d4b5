// Every op, once: bindings, documentation, dumps and the test sweep iterate this list.
#pragma once

#include <string_view>
#include <vector>

#include "lazy/ops/activation/activation.h"
#include "lazy/ops/activation/softmax.h"
#include "lazy/ops/convolution/convolution.h"
#include "lazy/ops/core/gradient_ops.h"
#include "lazy/ops/core/require.h"
#include "lazy/ops/create/create.h"
#include "lazy/ops/decomposition/check_info.h"
#include "lazy/ops/decomposition/factors.h"
#include "lazy/ops/decomposition/ldl.h"
#include "lazy/ops/decomposition/matrix_exp.h"
#include "lazy/ops/decomposition/orthogonal.h"
#include "lazy/ops/decomposition/pseudo_inverse.h"
#include "lazy/ops/decomposition/spectral.h"
#include "lazy/ops/elementwise/complex.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/elementwise/float_bits.h"
#include "lazy/ops/elementwise/gcd.h"
#include "lazy/ops/elementwise/logarithms.h"
#include "lazy/ops/elementwise/powers.h"
#include "lazy/ops/fourier/fourier.h"
#include "lazy/ops/index/index.h"
#include "lazy/ops/index/one_hot.h"
#include "lazy/ops/index/sort.h"
#include "lazy/ops/linear/attention.h"
#include "lazy/ops/linear/matmul.h"
#include "lazy/ops/loss/binary_cross_entropy.h"
#include "lazy/ops/loss/cross_entropy.h"
#include "lazy/ops/loss/ctc.h"
#include "lazy/ops/loss/regression.h"
#include "lazy/ops/normalization/normalization.h"
#include "lazy/ops/optim/foreach.h"
#include "lazy/ops/pool/pool.h"
#include "lazy/ops/program/barrier.h"
#include "lazy/ops/program/call.h"
#include "lazy/ops/program/collective.h"
#include "lazy/ops/random/draws.h"
#include "lazy/ops/random/samplers.h"
#include "lazy/ops/recurrent/recurrent.h"
#include "lazy/ops/reduce/cumulative.h"
#include "lazy/ops/reduce/reduce.h"
#include "lazy/ops/reduce/variance_and_norm.h"
#include "lazy/ops/shape/shape_ops.h"
#include "lazy/ops/shape/strided.h"
#include "lazy/ops/special/bessel.h"
#include "lazy/ops/special/error_function.h"
#include "lazy/ops/special/gamma.h"
#include "lazy/ops/special/incomplete_gamma.h"
#include "lazy/ops/special/modified_bessel.h"
#include "lazy/ops/special/orthogonal_polynomial.h"
#include "lazy/ops/special/sample_gradients.h"

namespace lazuli::lazy {

template <class... T>
struct OpList {
  static constexpr std::size_t kSize = sizeof...(T);
  template <class F>
  static void ForEach(F&& f) {
    (f.template operator()<T>(), ...);
  }
};

using AllOps = OpList<
#define LAZULI_UNARY(struct_name, ...) struct_name,
#include "lazy/ops/functions/unary.def"
#undef LAZULI_UNARY
#define LAZULI_BINARY(struct_name, ...) struct_name,
#include "lazy/ops/functions/binary.def"
#undef LAZULI_BINARY
#define LAZULI_COMPARE(struct_name, ...) struct_name,
#include "lazy/ops/functions/compare.def"
#undef LAZULI_COMPARE
    RemainderOp, FloorDivideOp, ReluOp, CloneOp, WhereOp, ClampOp, PowNumberOp, PowIntegerOp,
    ToDTypeOp, ConstantOp, RealOp, ImagOp, ComplexOp, ConjOp, ErfcOp, ErfcxOp, ErfinvOp, LogitOp,
    LgammaOp, SignBitOp, HypotOp, GcdOp, NextAfterOp, UnaffectedOp, RequireOp, AssertOp, BesselIOp,
    BesselOp, PolynomialOp, IncompleteGammaOp, CtcOp, FrexpOp, GeluOp, EluOp, LogSigmoidOp, SumOp,
    ProdOp, AmaxOp, AminOp, SharedGradientOp, MaxAlongOp, ArgMaxOp, VarOp, StdOp, NormOp, ReshapeOp,
    BroadcastToOp, PermuteOp, SliceOp, SelectOp, PadOp, FlipOp, CatOp, IndexSelectOp, IndexAddOp,
    GatherOp, ScatterAddOp, ScatterOp, ScatterReduceOp, IndexCopyOp, MaskPositionsOp, CumSumOp,
    CumulativeArgOp, SortOp, FftC2cOp, FftR2cOp, FftC2rOp, MatMulOp, LinearOp, AttentionOp,
    AttentionGradientOp, CholeskyOp, LuOp, PermutationOp, TriangularSolveOp, SolveOp, DetOp,
    SlogdetOp, QrOp, GeqrfOp, HouseholderProductOp, EighOp, EigOp, SvdOp, LdlOp, LdlSolveOp,
    MatrixExpOp, PinvOp, CheckInfoOp, CheckGaugeOp, RecurrentOp, RecurrentGradOp, Conv2dOp,
    Conv2dInputGradOp, Conv2dWeightGradOp, MaxPool2dOp, MaxPool2dGradOp, MaxPool2dPickOp,
    AvgPool2dOp, AvgPool2dGradOp, LayerNormOp, BatchNormOp, SoftmaxOp, SafeSoftmaxOp, LogSoftmaxOp,
    CrossEntropyOp, NllLossOp, BceWithLogitsOp, BceOp, HuberOp, OneHotOp, FullOp, PositionsOp,
    UniformOp, NormalOp, RandomIntegerOp, RandomPermutationOp, StandardGammaOp, PoissonOp,
    BinomialOp, GammaPathOp, DirichletPathOp, GammaSlopeOp, BetaSlopeOp, ProbabilitiesOp, BarrierOp,
    CallOp, AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, CollectivePermuteOp,
    ForeachSgdOp, ForeachAdamOp, ForeachRmspropOp, ForeachAdagradOp, ForeachUpdateOp,
    ForeachClipNormOp, AsStridedOp, AsStridedScatterOp>;

}  // namespace lazuli::lazy
