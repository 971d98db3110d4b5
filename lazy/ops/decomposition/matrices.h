// Matrices, the last two dims of a tensor, as gradients and functions of linear algebra speak of them.
#pragma once

#include <string_view>

#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {

Tensor Adjoint(const Tensor& x);     // conjugate and transposed
Tensor DiagonalOf(const Tensor& x);  // [..., m, n] to [..., n], m at least n
Tensor WithDiagonal(const Tensor& x,
                    const Tensor& diagonal);  // in place of its own, of matrices that are not wide
Tensor IdentityLike(const Tensor& x);         // of the size of its columns, without a batch
Tensor FirstColumns(const Tensor& x, int64_t count);
Tensor FirstRows(const Tensor& x, int64_t count);
// x - x^H.
Tensor TwiceSkew(const Tensor& x);
// The rows in an order of their own for each matrix: indices [..., m] of x [..., m, n].
Tensor RowsInOrder(const Tensor& x, const Tensor& order);

// --- checks of functions: what they refuse, with the words of PyTorch
void CheckElements(std::string_view op, const Tensor& A);  // neither integers nor narrow floats
void CheckOfMatrices(std::string_view op, const Tensor& A, std::string_view name = "A");
void CheckSquare(std::string_view op, const Tensor& A, std::string_view name = "A");
void CheckSameElements(std::string_view op, const Tensor& A, const Tensor& B);
// Whether B holds one vector per matrix of A, with as many elements as the matrix has rows.
bool HoldsVectors(const Tensor& A, const Tensor& B);
// Matrices of one batch: both with the dims that their batches broadcast to.
std::pair<Tensor, Tensor> WithOneBatch(std::string_view op, const Tensor& A, const Tensor& B);

}  // namespace lazuli::lazy
