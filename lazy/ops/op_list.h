// Every op, once: bindings, documentation, dumps and the test sweep iterate this list.
#pragma once

#include <string_view>
#include <vector>

#include "lazy/ops/activation.h"
#include "lazy/ops/barrier.h"
#include "lazy/ops/call.h"
#include "lazy/ops/collective.h"
#include "lazy/ops/complex.h"
#include "lazy/ops/create.h"
#include "lazy/ops/ctc.h"
#include "lazy/ops/elementwise.h"
#include "lazy/ops/foreach.h"
#include "lazy/ops/gradient_ops.h"
#include "lazy/ops/index.h"
#include "lazy/ops/linear.h"
#include "lazy/ops/loss.h"
#include "lazy/ops/norm.h"
#include "lazy/ops/pointwise.h"
#include "lazy/ops/pool.h"
#include "lazy/ops/random.h"
#include "lazy/ops/reduce.h"
#include "lazy/ops/require.h"
#include "lazy/ops/shape_ops.h"
#include "lazy/ops/special.h"
#include "lazy/ops/statistics.h"
#include "lazy/ops/strided.h"

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
#include "lazy/ops/unary.def"
#undef LAZULI_UNARY
#define LAZULI_BINARY(struct_name, ...) struct_name,
#include "lazy/ops/binary.def"
#undef LAZULI_BINARY
#define LAZULI_COMPARE(struct_name, ...) struct_name,
#include "lazy/ops/compare.def"
#undef LAZULI_COMPARE
    RemainderOp, FloorDivideOp, ReluOp, CloneOp, WhereOp, ClampOp, PowNumberOp, PowIntegerOp,
    ToDTypeOp, ConstantOp, RealOp, ImagOp, ComplexOp, ConjOp, ErfcOp, ErfcxOp, ErfinvOp, LogitOp,
    LgammaOp, SignBitOp, HypotOp, GcdOp, NextAfterOp, UnaffectedOp, RequireOp, BesselIOp, BesselOp,
    PolynomialOp, IncompleteGammaOp, CtcOp, FrexpOp, GeluOp, EluOp, LogSigmoidOp, SumOp, ProdOp,
    AmaxOp, AminOp, SharedGradientOp, MaxAlongOp, ArgMaxOp, VarOp, StdOp, NormOp, ReshapeOp,
    BroadcastToOp, PermuteOp, SliceOp, SelectOp, PadOp, FlipOp, CatOp, IndexSelectOp, IndexAddOp,
    GatherOp, ScatterAddOp, ScatterOp, ScatterReduceOp, IndexCopyOp, MaskPositionsOp, CumSumOp,
    SortOp, MatMulOp, LinearOp, Conv2dOp, Conv2dInputGradOp, Conv2dWeightGradOp, MaxPool2dOp,
    MaxPool2dGradOp, MaxPool2dPickOp, AvgPool2dOp, AvgPool2dGradOp, LayerNormOp, BatchNormOp,
    SoftmaxOp, SafeSoftmaxOp, LogSoftmaxOp, CrossEntropyOp, NllLossOp, BceWithLogitsOp, BceOp,
    HuberOp, OneHotOp, FullOp, PositionsOp, UniformOp, NormalOp, RandomIntegerOp,
    RandomPermutationOp, ProbabilitiesOp, BarrierOp, CallOp, AllReduceOp, AllGatherOp,
    ReduceScatterOp, AllToAllOp, CollectivePermuteOp, ForeachSgdOp, ForeachAdamOp, ForeachRmspropOp,
    ForeachAdagradOp, ForeachUpdateOp, ForeachClipNormOp, AsStridedOp, AsStridedScatterOp>;

}  // namespace lazuli::lazy
