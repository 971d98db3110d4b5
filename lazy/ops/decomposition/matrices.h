// Operations on matrices, the last two dims of tensors, for functions of linear algebra and gradients.
#pragma once

#include <string_view>

#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {

Tensor Adjoint(const Tensor& x);     // conjugate and transposed
Tensor DiagonalOf(const Tensor& x);  // [..., m, n] to [..., n], m at least n
// x [..., m, n], m at least n, with another diagonal.
Tensor WithDiagonal(const Tensor& x, const Tensor& diagonal);
Tensor IdentityLike(const Tensor& x);  // [n, n] for x [..., m, n]
Tensor FirstColumns(const Tensor& x, int64_t count);
Tensor FirstRows(const Tensor& x, int64_t count);
// x - x^H.
Tensor TwiceSkew(const Tensor& x);
// The rows of x [..., m, n] in an order per matrix, indices [..., m].
Tensor RowsInOrder(const Tensor& x, const Tensor& order);

// --- checks of operands, with PyTorch's messages
void CheckElements(std::string_view op, const Tensor& A);  // neither integers nor narrow floats
void CheckOfMatrices(std::string_view op, const Tensor& A, std::string_view name = "A");
void CheckSquare(std::string_view op, const Tensor& A, std::string_view name = "A");
void CheckSameElements(std::string_view op, const Tensor& A, const Tensor& B);
// Whether B holds one vector per matrix of A, with as many elements as the matrix has rows.
bool HoldsVectors(const Tensor& A, const Tensor& B);
// Matrices of one batch: both with the dims that their batches broadcast to.
std::pair<Tensor, Tensor> WithOneBatch(std::string_view op, const Tensor& A, const Tensor& B);

}  // namespace lazuli::lazy
