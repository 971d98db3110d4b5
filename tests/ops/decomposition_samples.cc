// Decompositions of matrices. Devices all call LAPACK, but programs around the calls sum in orders of
// their own, so they agree within a bound.
#include <algorithm>
#include <cmath>

#include "lazy/ops/decomposition/check_info.h"
#include "lazy/ops/decomposition/factors.h"
#include "lazy/ops/decomposition/ldl.h"
#include "lazy/ops/decomposition/matrix_exp.h"
#include "lazy/ops/decomposition/orthogonal.h"
#include "lazy/ops/decomposition/pseudo_inverse.h"
#include "lazy/ops/decomposition/spectral.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

constexpr double kTolerance = 1e-4;

// Matrices [..., n, n] with `plus` added to the diagonal, symmetric ones if they have to be.
Literal Square(DType dtype, std::initializer_list<int64_t> dims, double plus, bool symmetric,
               uint64_t seed = 0) {
  const Literal random = Random(dtype, dims, seed);
  return Build(random.shape(), [&](const Index& index) {
    Index other = index;
    std::swap(other[other.size() - 1], other[other.size() - 2]);
    const bool diagonal = other == index;
    const double value = At(random, index);
    return (symmetric ? (value + At(random, other)) / 2 : value) + (diagonal ? plus : 0);
  });
}

Literal Pivots(std::initializer_list<int32_t> values) {
  return Literal::FromValues<int32_t>({static_cast<int64_t>(values.size())}, values);
}

void AddTriangularFactors(Table& table) {
  table.Op<CholeskyOp>()
      .AddEdge({.upper = false}, {Square(DType::kF64, {2, 3, 3}, 6, true)})
      .AddEdge({.upper = true}, {Square(DType::kF32, {5, 5}, 9, true)})
      .AddEdge({.upper = false}, {Random(DType::kF32, {2, 0, 0})})
      .GradientsOf(0)
      .DeviceTolerance(kTolerance)
      .Error("cholesky: takes square matrices, not f32[2,3]", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)RecordAll(CholeskyOp{false}, {{x[0]}}); });
  table.Op<LuOp>()
      .Add({}, {Square(DType::kF64, {2, 3, 3}, 1, false)})
      .Add({}, {Random(DType::kF64, {4, 2})})
      .Add({}, {Random(DType::kF64, {2, 4})})
      .AddEdge({}, {Random(DType::kF32, {0, 3, 3})})
      .AddEdge({}, {Random(DType::kC128, {3, 2})})
      .DeviceTolerance(kTolerance)
      .Error("lu_factor: takes floats or complex numbers of 32 bits or more, not s32[2,2]",
             {Random(DType::kS32, {2, 2})},
             [](const Tensors& x) { (void)RecordAll(LuOp{}, {{x[0]}}); });
  table.Op<PermutationOp>()
      .Add({.size = 4}, {Pivots({3, 3, 4})})
      .Add({.size = 2}, {Pivots({2, 2})})
      .Reference([](const PermutationOp& op, const Literals& in) {
        Literal out(Shape(DType::kS32, {op.size}));
        const auto rows = out.mutable_data<int32_t>();
        for (int64_t i = 0; i < op.size; ++i)
          rows[static_cast<std::size_t>(i)] = static_cast<int32_t>(i);
        const auto pivots = in[0].data<int32_t>();
        for (std::size_t i = 0; i < pivots.size(); ++i)
          std::swap(rows[i], rows[static_cast<std::size_t>(pivots[i]) - 1]);
        return out;
      })
      .AddEdge({.size = 3}, {Random(DType::kS32, {2, 0})});
}

void AddSolvers(Table& table) {
  const Literal A = Square(DType::kF64, {2, 2, 2}, 4, false), B = Random(DType::kF64, {2, 2, 3}, 1),
                C = Random(DType::kF64, {2, 1, 2}, 2);
  table.Op<TriangularSolveOp>()
      .Add({true, false, false, false}, {A, B})
      .Add({true, true, true, false}, {A, B})
      .Add({false, true, false, true}, {A, C})
      .Add({false, false, true, false}, {A, C})
      .AddEdge({true, true, true, true},
               {Random(DType::kC64, {3, 3}), Random(DType::kC64, {3, 2}, 1)})
      .AddEdge({true, true, false, false},
               {Random(DType::kF32, {2, 2}), Random(DType::kF32, {2, 0})})
      .DeviceTolerance(kTolerance)
      .Error("solve_triangular: A f64[2,2,2] and B f64[2,1,2] do not fit each other", {A, C},
             [](const Tensors& x) {
               (void)Record(TriangularSolveOp{true, true, false, false}, x[0], x[1]);
             });
  table.Op<SolveOp>()
      .Add({}, {A, B})
      .Add({}, {Square(DType::kF64, {3, 3}, 0, false), Random(DType::kF64, {3, 1}, 1)})
      .AddEdge({}, {Random(DType::kF32, {0, 0}), Random(DType::kF32, {0, 2})})
      .AddEdge({}, {Square(DType::kF32, {9, 9}, 5, false), Random(DType::kF32, {9, 2}, 1)})
      .GradientsOfResults(1)
      .DeviceTolerance(kTolerance)
      .Error("solve: A f64[2,2,2] and B f64[2,1,2] do not fit each other", {A, C},
             [](const Tensors& x) { (void)RecordAll(SolveOp{}, {{x[0], x[1]}}); });
  table.Op<DetOp>()
      .Add({}, {A})
      .Add({}, {Square(DType::kF64, {3, 3}, 0, false)})
      .AddEdge({}, {Random(DType::kF32, {2, 0, 0})})
      .GradientsOfResults(1)
      .DeviceTolerance(kTolerance);
  table.Op<SlogdetOp>()
      .Add({}, {A})
      .Add({}, {Square(DType::kF64, {3, 3}, 0, false)})
      .AddEdge({}, {Random(DType::kC64, {2, 2})})
      .GradientsOfResults(2)
      .DeviceTolerance(kTolerance);
  table.Op<LdlOp>()
      .Add({.hermitian = false}, {Square(DType::kF32, {3, 3}, 0, true)})
      .Add({.hermitian = true}, {Random(DType::kC64, {1, 2, 2})})
      .AddEdge({.hermitian = false}, {Random(DType::kF32, {0, 0})});
  table.Op<LdlSolveOp>()
      .Add({.hermitian = false},
           {Square(DType::kF32, {3, 3}, 2, true), Pivots({1, 2, 3}), Random(DType::kF32, {3, 2})})
      .Add({.hermitian = true},
           {Random(DType::kC64, {2, 2}), Pivots({1, 2}), Random(DType::kC64, {2, 1})});
}

void AddOrthogonal(Table& table) {
  table.Op<QrOp>()
      .Add({QrMode::kReduced}, {Random(DType::kF64, {2, 3, 2})})
      .Add({QrMode::kReduced}, {Random(DType::kF64, {2, 4})})
      .Add({QrMode::kComplete}, {Random(DType::kF64, {3, 3})})
      .AddEdge({QrMode::kComplete}, {Random(DType::kC64, {3, 2})})
      .AddEdge({QrMode::kReduced}, {Random(DType::kF32, {3, 0})})
      .DeviceTolerance(kTolerance);
  table.Op<GeqrfOp>()
      .Add({}, {Random(DType::kF32, {2, 3, 2})})
      .AddEdge({}, {Random(DType::kF32, {0, 3, 2})});
  table.Op<HouseholderProductOp>()
      .Add({}, {Random(DType::kF64, {2, 3, 2}), Random(DType::kF64, {2, 2}, 1)})
      .Add({}, {Random(DType::kF64, {3, 2}), Random(DType::kF64, {1}, 1)})
      .AddEdge({}, {Random(DType::kF32, {3, 2}), Random(DType::kF32, {0})})
      .AddEdge({}, {Random(DType::kC64, {2, 2}), Random(DType::kC64, {2}, 1)})
      .DeviceTolerance(kTolerance)
      .Error("householder_product: A f32[2,3] and tau f32[2] do not fit each other",
             {Random(DType::kF32, {2, 3}), Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)Record(HouseholderProductOp{}, x[0], x[1]); });
}

void AddSpectral(Table& table) {
  table.Op<EighOp>()
      .AddEdge({.lower = true, .vectors = true}, {Square(DType::kF64, {2, 3, 3}, 0, true)})
      .AddEdge({.lower = false, .vectors = false}, {Random(DType::kF32, {3, 3})})
      .AddEdge({.lower = true, .vectors = true}, {Random(DType::kC64, {1, 1})})
      .AddEdge({.lower = true, .vectors = true}, {Random(DType::kF32, {2, 0, 0})})
      .GradientsOf(0)
      .DeviceTolerance(kTolerance);
  table.Op<EigOp>()
      .Add({.vectors = true}, {Random(DType::kF64, {2, 3, 3})})
      .AddEdge({.vectors = false}, {Random(DType::kC64, {2, 2})})
      .AddEdge({.vectors = true}, {Random(DType::kF32, {0, 0})})
      .GradientsOfResults(1)  // vectors have any phase
      .DeviceTolerance(kTolerance);
  table.Op<SvdOp>()
      .Add({.full_matrices = false, .vectors = true}, {Random(DType::kF64, {2, 3, 2})})
      .Add({.full_matrices = false, .vectors = true}, {Random(DType::kF64, {2, 4})})
      .AddEdge({.full_matrices = true, .vectors = true}, {Random(DType::kF32, {2, 3})})
      .AddEdge({.full_matrices = true, .vectors = true}, {Random(DType::kF32, {0, 3})})
      .AddEdge({.full_matrices = false, .vectors = true}, {Random(DType::kC64, {1, 1})})
      .DeviceTolerance(kTolerance);
  table.Op<PinvOp>()
      .AddEdge({}, {Random(DType::kF64, {3, 2}), Random(DType::kF64, {2, 3}, 1)})
      .GradientsOf(0)
      .DeviceTolerance(kTolerance);
  table.Op<MatrixExpOp>()
      .Add({}, {Random(DType::kF64, {2, 2, 2})})
      .Add({}, {Square(DType::kF64, {2, 2}, -3, false)})
      .AddEdge({}, {Random(DType::kF32, {0, 0})})
      .AddEdge({}, {Random(DType::kC64, {3, 3})})
      .DeviceTolerance(kTolerance);
}

void AddChecks(Table& table) {
  const Literal zeros(Shape(DType::kS32, {2})), phase(Shape(DType::kF64, {2}));
  table.Op<CheckInfoOp>()
      .Add({Algorithm::kInverse}, {zeros, Random(DType::kF64, {2, 2})})
      .Add({Algorithm::kSvd}, {zeros, Random(DType::kF64, {2}), Random(DType::kF64, {3})});
  table.Op<CheckGaugeOp>().Add({Gauge::kSvd}, {Random(DType::kF64, {2, 2}), phase}).GradientsOf(1);
}

}  // namespace

void AddDecompositionSamples(Table& table) {
  AddTriangularFactors(table);
  AddSolvers(table);
  AddOrthogonal(table);
  AddSpectral(table);
  AddChecks(table);
}

}  // namespace lazuli::lazy::test
