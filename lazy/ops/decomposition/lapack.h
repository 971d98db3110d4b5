// Custom calls of LAPACK in programs. They have the targets, attributes and layouts that JAX emits for
// the CPU, so that XLA runs the programs, too. Matrices are the last two dims; the dims before them
// are a batch.
//
// LAPACK does not take matrices without elements: the results of ops are constants then.
#pragma once

#include <string_view>
#include <vector>

#include "lowering/builder/builder.h"

namespace lazuli::lazy {

// How LAPACK names a routine for real and for complex numbers, without the letter of the type.
struct LapackRoutine {
  std::string_view real, complex;
};

// An array of a call. Matrices lie in it column by column.
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

// Whether LAPACK has routines for elements of the dtype: floats and complex numbers with parts of 32
// or 64 bits.
bool IsOfLapack(DType dtype);
// The distance from 1 to the next number of the dtype, or of its parts.
double EpsilonOf(DType dtype);
// An error unless x holds matrices of such elements, and square ones if `square`.
absl::Status CheckMatrices(const Shape& x, bool square);

// --- shapes of arrays that belong to matrices x [..., m, n]
Dims BatchOf(const Shape& x);
Shape MatrixShape(const Shape& x, int64_t rows, int64_t columns);
Shape VectorShape(DType dtype, const Shape& x, int64_t size);  // a vector per matrix
Shape InfoShape(const Shape& x);                               // an s32 per matrix
inline int64_t RowsOf(const Shape& x) { return x.dim(x.rank() - 2); }
inline int64_t ColumnsOf(const Shape& x) { return x.dim(x.rank() - 1); }

// --- matrices in programs
lowering::Op Identity(lowering::Builder& b, const Shape& matrices);
// Zeros above, or below, the diagonal.
lowering::Op LowerTriangle(lowering::Op x);
lowering::Op UpperTriangle(lowering::Op x);
// Matrices of another size: the first rows and columns, with zeros after them where there are more.
lowering::Op WithSize(lowering::Op x, int64_t rows, int64_t columns);

}  // namespace lazuli::lazy
