// Custom calls of LAPACK in programs: the targets, attributes and layouts that JAX emits for the CPU, so that XLA runs
// the programs, too. Matrices are the last two dims; what is before them is a batch.
//
// LAPACK takes no matrices without elements: an op that is given such makes its results of constants.
#pragma once

#include <string_view>
#include <vector>

#include "lowering/builder/builder.h"

namespace lazuli::lazy {

// How LAPACK names a routine for real and for complex numbers, without the letter of the type.
struct LapackRoutine {
  std::string_view real, complex;
};

// An array of a call; of matrices each lies column by column.
struct LapackArray {
  Shape shape;
  bool matrices = true;
};
struct LapackOperand {
  lowering::Op value;
  bool matrices = true;
};

// The results of the call, one or more, row by row again. `config` is its backend_config. The first
// result takes the memory of operand `aliased`, if that is not negative.
std::vector<lowering::Op> LapackCall(const LapackRoutine& routine,
                                     absl::Span<const LapackOperand> operands,
                                     absl::Span<const LapackArray> results, std::string_view config,
                                     int aliased = 0);

// Whether LAPACK has routines for elements of the dtype: floats and complex numbers of 32 bits and more.
bool IsOfLapack(DType dtype);
// The distance from 1 to the next number of the dtype, or of its parts.
double EpsilonOf(DType dtype);
// An error unless x holds matrices of such elements; square ones, if they have to be.
absl::Status CheckMatrices(const Shape& x, bool square);

// --- shapes of what belongs to matrices x [..., m, n]
Dims BatchOf(const Shape& x);
Shape MatrixShape(const Shape& x, int64_t rows, int64_t columns);
Shape VectorShape(DType dtype, const Shape& x, int64_t size);  // one for each matrix
Shape InfoShape(const Shape& x);                               // s32, one number for each
inline int64_t RowsOf(const Shape& x) { return x.dim(x.rank() - 2); }
inline int64_t ColumnsOf(const Shape& x) { return x.dim(x.rank() - 1); }

// --- matrices in programs
lowering::Op Identity(lowering::Builder& b, const Shape& matrices);
// Zeros above, or below, the diagonal.
lowering::Op LowerTriangle(lowering::Op x);
lowering::Op UpperTriangle(lowering::Op x);
// The first rows and columns, or zeros behind them.
lowering::Op WithSize(lowering::Op x, int64_t rows, int64_t columns);

}  // namespace lazuli::lazy
