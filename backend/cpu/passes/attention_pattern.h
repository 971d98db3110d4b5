// AttentionPattern: the instructions that make up attention, or its gradient, wherever they come
// from: the composite op, JAX's or PyTorch's primitives.
//
//   scores    = dot(query, key)
//   logits    = steps of: scores * number, scores + array, select(mask, scores, number)
//   weights   = exp(logits - largest) / divisor       // broadcast along the keys
//   result    = dot(weights, value)
//
//   dweights  = dot(dresult, value)
//   dlogits   = weights * (dweights - sum(dweights * weights))
//   dscores   = the steps of dlogits
//   dquery, dkey, dvalue = dot(dscores, key), dot(dscores, query), dot(weights, dresult)
//
// All of it is in f32 or f64. Operands may be conversions of 16-bit floats, and results may be
// multiplied by a number and rounded to such floats: the pattern holds these, too.
//
// Dimensions have roles: those of the weights, of which one counts queries (row), one keys, and the
// others the batch, and one more that an operand is contracted along (inner).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/cpu/passes/strided_view.h"
#include "ir/hlo/module.h"

namespace lazuli::cpu {

struct PatternStep {
  enum class Kind : uint8_t { kScale, kAdd, kHide };
  Kind kind = Kind::kScale;
  double number = 1;
  bool shown = true;                  // of kHide: which elements of the array stay
  hlo::Instruction* array = nullptr;  // of the shape of the weights
};

// A matrix for each member of the batch.
struct PatternMatrix {
  hlo::Instruction* base = nullptr;
  int64_t offset = 0;
  double scale = 1;
  std::vector<StridedView::Axis> batch;  // of each role of the batch, in order
  int64_t row = 0, column = 0;           // strides
  bool operator==(const PatternMatrix&) const = default;
  // The offset of each member of the batch.
  std::vector<int64_t> Offsets() const;
};

// A product that leaves the pattern, times a factor and rounded to fewer bits where the only user
// of each does that; null where there is none, or nobody wants it.
struct PatternResult {
  hlo::Instruction *dot = nullptr, *made = nullptr;  // the product, and what leaves
  std::vector<int64_t> roles;                        // of the dims of both
  double factor = 1;
};

struct AttentionPattern {
  hlo::Instruction *scores = nullptr, *logits = nullptr, *weights = nullptr;
  hlo::Instruction *largest = nullptr, *divisor = nullptr;
  std::vector<PatternStep> steps;
  bool safe = false;  // 0, not NaN, where all logits are -infinity
  Dims dims;          // of the weights
  int64_t row_role = -1, key_role = -1, depth = 0, width = 0;
  PatternMatrix query, key, value;  // [rows, depth], [keys, depth], [keys, width]
  PatternResult result;
  PatternMatrix dresult;  // [rows, width]
  PatternResult dquery, dkey, dvalue;
  // What only the pattern may read.
  std::vector<hlo::Instruction*> inside;

  bool has_gradient() const { return dresult.base != nullptr; }
  int64_t inner_role() const { return static_cast<int64_t>(dims.size()); }
  int64_t rows() const { return dims[static_cast<std::size_t>(row_role)]; }
  int64_t keys() const { return dims[static_cast<std::size_t>(key_role)]; }
  int64_t batch() const;
  // Roles of an array that has the weights' dims, and of one that lacks the keys.
  std::vector<int64_t> WeightRoles() const;
  std::vector<int64_t> RowRoles() const;
  // The matrix of these roles, from which dimensions of others are missing; nothing if rows or
  // columns are not evenly apart.
  std::optional<PatternMatrix> MatrixOf(const StridedView& view, const std::vector<int64_t>& roles,
                                        int64_t row_role, int64_t column_role) const;
};

// If all that a step's mask says is that query i sees keys 0 to i + shift: the shift.
std::optional<int64_t> CausalShift(const AttentionPattern& pattern, const PatternStep& step);

// What `weights` is part of. With `is_body`: of a fusion that was made of a pattern, whose largest
// and divisor may be parameters, and whose root says what is wanted.
std::optional<AttentionPattern> MatchAttention(hlo::Instruction* weights, bool is_body);
// The pattern in the body of a fusion that FuseAttention made, all of whose arrays are parameters of
// the body. Nothing if the body has no such pattern.
std::optional<AttentionPattern> MatchAttentionBody(const hlo::Computation& body);
// Whether nothing else reads what would never be in memory.
bool IsClosed(const AttentionPattern& pattern);

}  // namespace lazuli::cpu
