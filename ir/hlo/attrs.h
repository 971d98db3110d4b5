// Attributes of instructions: one aggregate for each family of opcodes, each listing its members
// once (LAZULI_ATTRS).
//
// Printer, parser, equality, hash and clone visit the lists; no opcode has a class of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/support/attrs.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"

namespace lazuli::hlo {

enum class ComparisonDirection : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
enum class ComparisonType : uint8_t { kDefault, kFloat, kTotalOrder, kSigned, kUnsigned };
enum class FusionKind : uint8_t { kLoop, kInput, kOutput, kCustom };
enum class RngAlgorithm : uint8_t { kDefault, kThreeFry, kPhilox };
enum class RngDistribution : uint8_t { kUniform, kNormal };
enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };
enum class TransposeKind : uint8_t { kNoTranspose, kTranspose, kAdjoint };

// One dimension of a convolution's, reduce-window's or select-and-scatter's window.
struct WindowDim {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t pad_low = 0;
  int64_t pad_high = 0;
  int64_t base_dilation = 1;    // lhs_dilate
  int64_t window_dilation = 1;  // rhs_dilate
  bool reversal = false;        // rhs_reversal
  bool operator==(const WindowDim&) const = default;
};
using Window = absl::InlinedVector<WindowDim, 4>;

// Positions of the logical dimensions of a convolution: "b01f_01io->b01f".
struct ConvDims {
  int64_t input_batch = 0, input_feature = 1;
  Dims input_spatial;
  int64_t kernel_input_feature = 1, kernel_output_feature = 0;
  Dims kernel_spatial;
  int64_t output_batch = 0, output_feature = 1;
  Dims output_spatial;
  bool operator==(const ConvDims&) const = default;
};

struct NoAttrs {
  bool operator==(const NoAttrs&) const = default;
  LAZULI_ATTRS();
};
struct ParameterAttrs {
  int64_t number = 0;
  bool operator==(const ParameterAttrs&) const = default;
  LAZULI_ATTRS(number);
};
struct ConstantAttrs {
  std::shared_ptr<const Literal> value;
  bool operator==(const ConstantAttrs& other) const { return value->BitsEqual(*other.value); }
  LAZULI_ATTRS(value);
};
// broadcast, transpose, reverse, concatenate, reduce, map, all-gather, get-dimension-size, ...
struct DimensionsAttrs {
  Dims dimensions;
  bool operator==(const DimensionsAttrs&) const = default;
  LAZULI_ATTRS(dimensions);
};
struct IotaAttrs {
  int64_t iota_dimension = 0;
  bool operator==(const IotaAttrs&) const = default;
  LAZULI_ATTRS(iota_dimension);
};
struct TupleIndexAttrs {
  int64_t index = 0;
  bool operator==(const TupleIndexAttrs&) const = default;
  LAZULI_ATTRS(index);
};
struct CompareAttrs {
  ComparisonDirection direction = ComparisonDirection::kEq;
  ComparisonType type = ComparisonType::kDefault;
  bool operator==(const CompareAttrs&) const = default;
  LAZULI_ATTRS(direction, type);
};
struct SliceAttrs {
  Dims starts, limits, strides;
  bool operator==(const SliceAttrs&) const = default;
  LAZULI_ATTRS(starts, limits, strides);
};
struct DynamicSliceAttrs {
  Dims dynamic_slice_sizes;
  bool operator==(const DynamicSliceAttrs&) const = default;
  LAZULI_ATTRS(dynamic_slice_sizes);
};
struct PadAttrs {
  Dims low, high, interior;
  bool operator==(const PadAttrs&) const = default;
  LAZULI_ATTRS(low, high, interior);
};
struct GatherAttrs {
  Dims offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
      start_indices_batching_dims;
  int64_t index_vector_dim = 0;
  Dims slice_sizes;
  bool indices_are_sorted = false;
  bool operator==(const GatherAttrs&) const = default;
  LAZULI_ATTRS(offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
               start_indices_batching_dims, index_vector_dim, slice_sizes, indices_are_sorted);
};
struct ScatterAttrs {
  Dims update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, input_batching_dims,
      scatter_indices_batching_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
  bool unique_indices = false;
  bool operator==(const ScatterAttrs&) const = default;
  LAZULI_ATTRS(update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims,
               input_batching_dims, scatter_indices_batching_dims, index_vector_dim,
               indices_are_sorted, unique_indices);
};
struct DotAttrs {
  Dims lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims;
  std::string operand_precision;  // as in the text, without braces; empty = default
  std::string algorithm;
  bool operator==(const DotAttrs&) const = default;
  LAZULI_ATTRS(lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims,
               operand_precision, algorithm);
};
struct RaggedDotAttrs {
  Dims lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims, lhs_ragged_dims,
      rhs_group_dims;
  std::string operand_precision;
  bool operator==(const RaggedDotAttrs&) const = default;
  LAZULI_ATTRS(lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims,
               lhs_ragged_dims, rhs_group_dims, operand_precision);
};
struct ConvolutionAttrs {
  Window window;
  ConvDims dim_labels;
  int64_t feature_group_count = 1;
  int64_t batch_group_count = 1;
  std::string operand_precision;
  bool operator==(const ConvolutionAttrs&) const = default;
  LAZULI_ATTRS(window, dim_labels, feature_group_count, batch_group_count, operand_precision);
};
struct WindowAttrs {
  Window window;
  bool operator==(const WindowAttrs&) const = default;
  LAZULI_ATTRS(window);
};
struct SortAttrs {
  int64_t dimension = 0;
  bool is_stable = false;
  bool operator==(const SortAttrs&) const = default;
  LAZULI_ATTRS(dimension, is_stable);
};
struct ScanAttrs {
  int64_t dimension = 0;
  int64_t num_carries = 0;
  bool is_reverse = false;
  bool is_associative = false;
  bool operator==(const ScanAttrs&) const = default;
  LAZULI_ATTRS(dimension, num_carries, is_reverse, is_associative);
};
struct TopKAttrs {
  int64_t k = 0;
  bool largest = true;
  bool operator==(const TopKAttrs&) const = default;
  LAZULI_ATTRS(k, largest);
};
struct FftAttrs {
  FftType fft_type = FftType::kFft;
  Dims fft_length;
  bool operator==(const FftAttrs&) const = default;
  LAZULI_ATTRS(fft_type, fft_length);
};
struct CholeskyAttrs {
  bool lower = false;
  bool operator==(const CholeskyAttrs&) const = default;
  LAZULI_ATTRS(lower);
};
struct TriangularSolveAttrs {
  bool left_side = false, lower = false, unit_diagonal = false;
  TransposeKind transpose_a = TransposeKind::kNoTranspose;
  bool operator==(const TriangularSolveAttrs&) const = default;
  LAZULI_ATTRS(left_side, lower, unit_diagonal, transpose_a);
};
struct RngAttrs {
  RngDistribution distribution = RngDistribution::kUniform;
  bool operator==(const RngAttrs&) const = default;
  LAZULI_ATTRS(distribution);
};
struct RngBitGeneratorAttrs {
  RngAlgorithm algorithm = RngAlgorithm::kDefault;
  bool operator==(const RngBitGeneratorAttrs&) const = default;
  LAZULI_ATTRS(algorithm);
};
struct RngStateAttrs {
  int64_t delta = 0;
  bool operator==(const RngStateAttrs&) const = default;
  LAZULI_ATTRS(delta);
};
struct ReducePrecisionAttrs {
  int64_t exponent_bits = 0, mantissa_bits = 0;
  bool operator==(const ReducePrecisionAttrs&) const = default;
  LAZULI_ATTRS(exponent_bits, mantissa_bits);
};
struct BatchNormAttrs {
  float epsilon = 0;
  int64_t feature_index = 0;
  bool operator==(const BatchNormAttrs&) const = default;
  LAZULI_ATTRS(epsilon, feature_index);
};
struct FusionAttrs {
  FusionKind kind = FusionKind::kLoop;
  bool operator==(const FusionAttrs&) const = default;
  LAZULI_ATTRS(kind);
};
struct CustomCallAttrs {
  std::string custom_call_target;
  bool custom_call_has_side_effect = false;
  std::string api_version;
  std::string operand_layout_constraints;
  std::string output_to_operand_aliasing;
  bool operator==(const CustomCallAttrs&) const = default;
  LAZULI_ATTRS(custom_call_target, custom_call_has_side_effect, api_version,
               operand_layout_constraints, output_to_operand_aliasing);
};
// Collectives, infeed and the rest that one CPU process only passes through: attributes kept as
// written.
struct CollectiveAttrs {
  Dims dimensions;
  std::string text;
  bool operator==(const CollectiveAttrs&) const = default;
  LAZULI_ATTRS(dimensions, text);
};

// Order of AttrsKind = order of the alternatives.
using Attrs =
    std::variant<NoAttrs, ParameterAttrs, ConstantAttrs, DimensionsAttrs, IotaAttrs,
                 TupleIndexAttrs, CompareAttrs, SliceAttrs, DynamicSliceAttrs, PadAttrs,
                 GatherAttrs, ScatterAttrs, DotAttrs, RaggedDotAttrs, ConvolutionAttrs, WindowAttrs,
                 SortAttrs, ScanAttrs, TopKAttrs, FftAttrs, CholeskyAttrs, TriangularSolveAttrs,
                 RngAttrs, RngBitGeneratorAttrs, RngStateAttrs, ReducePrecisionAttrs,
                 BatchNormAttrs, FusionAttrs, CustomCallAttrs, CollectiveAttrs>;
enum class AttrsKind : uint8_t {
  kNone,
  kParameter,
  kConstant,
  kDimensions,
  kIota,
  kTupleIndex,
  kCompare,
  kSlice,
  kDynamicSlice,
  kPad,
  kGather,
  kScatter,
  kDot,
  kRaggedDot,
  kConvolution,
  kWindow,
  kSort,
  kScan,
  kTopK,
  kFft,
  kCholesky,
  kTriangularSolve,
  kRng,
  kRngBitGenerator,
  kRngState,
  kReducePrecision,
  kBatchNorm,
  kFusion,
  kCustomCall,
  kCollective,
};

template <class... T>
constexpr bool AllAttrsListed(const std::variant<T...>*) {
  return (AllFieldsListed<T> && ...);
}
static_assert(AllAttrsListed(static_cast<const Attrs*>(nullptr)),
              "a member is missing from a LAZULI_ATTRS list");

}  // namespace lazuli::hlo
