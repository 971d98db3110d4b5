// Attention as one thunk: softmax(query key^T) value, and its gradient, without an array of all
// weights.
//
// The forward pass takes the keys in blocks and keeps, for each query, the largest score so far,
// the sum of the exponentials and what they give of the values; a larger score scales these down.
// The gradient computes the weights of some queries again, from the largest scores and the sums.
// Scratch memory is linear in the lengths. What is computed is defined by the instructions that
// passes/fuse_attention.h makes one fusion of. As for every product of matrices, results lie within
// a bound of the evaluator's; they do not depend on the number of threads. Hidden keys are skipped
// only where all that they would multiply by 0 is finite, so NaN and infinities show as they do
// there.
//
// Arrays of bf16 and f16 are read and written as they lie, and all between is in f32. Where the
// processor multiplies bf16 (bf16_tiles.h), the forward pass has it multiply query and key, and the
// values by weights that are rounded to bf16 as well.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// A matrix for each member of the batch; strides in elements.
struct AttentionArray {
  BufferId buffer = -1;          // -1: there is none
  DType dtype = DType::kF32;     // the spec's, or bf16 or f16 beside f32; pred of a mask
  std::vector<int64_t> offsets;  // of each member's first element
  int64_t row = 0, column = 0;
  double factor = 1;  // results are multiplied by it before they are rounded
  LAZULI_ATTRS(buffer, dtype, offsets, row, column, factor);
};

// What happens to scores between the product and softmax, in order.
struct AttentionStep {
  enum class Kind : uint8_t {
    kScale,   // times the number
    kAdd,     // plus the array's element
    kHide,    // the number, where the array's element is not `shown`
    kCausal,  // the number, for keys behind the query's own position plus `shift`
  };
  Kind kind = Kind::kScale;
  double number = 1;
  bool shown = true;
  int64_t shift = 0;
  AttentionArray array{};  // [rows, keys]
  LAZULI_ATTRS(kind, number, shown, shift, array);
};

struct AttentionSpec {
  DType dtype = DType::kF32;  // that it computes in: f32 or f64
  int64_t batch = 0, rows = 0, keys = 0, depth = 0, width = 0;
  double query_scale = 1, key_scale = 1;  // of query and key before they are multiplied
  std::vector<AttentionStep> steps;
  bool safe = false;                // a query that sees nothing gives 0, not NaN
  AttentionArray query, key;        // [rows, depth], [keys, depth]
  AttentionArray value, result;     // [keys, width], [rows, width]
  AttentionArray largest, divisor;  // [rows, 1]: weights are exp(score - largest) / divisor
  bool is_gradient = false;         // reads the gradient of the result, largest and divisor
  AttentionArray dresult, dquery, dkey, dvalue;
  int64_t threads = 1;  // at most: scratch memory has room for so many
  BufferId scratch = -1;
  LAZULI_ATTRS(dtype, batch, rows, keys, depth, width, query_scale, key_scale, steps, safe, query,
               key, value, result, largest, divisor, is_gradient, dresult, dquery, dkey, dvalue,
               threads, scratch);
};

// The bytes of scratch memory, of which the spec then names the buffer.
int64_t AttentionScratch(const AttentionSpec& spec);
std::unique_ptr<Thunk> MakeAttentionThunk(const hlo::Instruction& instruction, AttentionSpec spec);
ThunkKind AttentionThunkKind();

}  // namespace lazuli::cpu
