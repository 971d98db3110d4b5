// Attributes of instructions: one aggregate for each family of opcodes; no opcode has a class of its
// own.
//
// attr_rows.h lists the members, with what text and protobuf call them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/hlo/devices/groups.h"
#include "ir/hlo/devices/sharding.h"
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
  LAZULI_ATTRS(size, stride, pad_low, pad_high, base_dilation, window_dilation, reversal);
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
};
struct ParameterAttrs {
  int64_t number = 0;
  bool operator==(const ParameterAttrs&) const = default;
};
struct ConstantAttrs {
  std::shared_ptr<const Literal> value;
  bool operator==(const ConstantAttrs& other) const { return value->BitsEqual(*other.value); }
};
// broadcast, transpose, reverse, concatenate, reduce, map, all-gather, get-dimension-size, ...
struct DimensionsAttrs {
  Dims dimensions;
  bool operator==(const DimensionsAttrs&) const = default;
};
struct IotaAttrs {
  int64_t iota_dimension = 0;
  bool operator==(const IotaAttrs&) const = default;
};
struct TupleIndexAttrs {
  int64_t index = 0;
  bool operator==(const TupleIndexAttrs&) const = default;
};
struct CompareAttrs {
  ComparisonDirection direction = ComparisonDirection::kEq;
  ComparisonType type = ComparisonType::kDefault;
  bool operator==(const CompareAttrs&) const = default;
};
struct SliceAttrs {
  Dims starts, limits, strides;
  bool operator==(const SliceAttrs&) const = default;
};
struct DynamicSliceAttrs {
  Dims dynamic_slice_sizes;
  bool operator==(const DynamicSliceAttrs&) const = default;
};
struct PadAttrs {
  Dims low, high, interior;
  bool operator==(const PadAttrs&) const = default;
};
struct GatherAttrs {
  Dims offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
      start_indices_batching_dims;
  int64_t index_vector_dim = 0;
  Dims slice_sizes;
  bool indices_are_sorted = false;
  bool operator==(const GatherAttrs&) const = default;
};
struct ScatterAttrs {
  Dims update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, input_batching_dims,
      scatter_indices_batching_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
  bool unique_indices = false;
  bool operator==(const ScatterAttrs&) const = default;
};
struct DotAttrs {
  Dims lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims;
  std::string operand_precision;  // as in the text, without braces; empty = default
  std::string algorithm;
  bool operator==(const DotAttrs&) const = default;
};
struct RaggedDotAttrs {
  Dims lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims, lhs_ragged_dims,
      rhs_group_dims;
  std::string operand_precision;
  bool operator==(const RaggedDotAttrs&) const = default;
};
struct ConvolutionAttrs {
  Window window;
  ConvDims dim_labels;
  int64_t feature_group_count = 1;
  int64_t batch_group_count = 1;
  std::string operand_precision;
  bool operator==(const ConvolutionAttrs&) const = default;
};
struct WindowAttrs {
  Window window;
  bool operator==(const WindowAttrs&) const = default;
};
struct SortAttrs {
  int64_t dimension = 0;
  bool is_stable = false;
  bool operator==(const SortAttrs&) const = default;
};
struct ScanAttrs {
  int64_t dimension = 0;
  int64_t num_carries = 0;
  bool is_reverse = false;
  bool is_associative = false;
  bool operator==(const ScanAttrs&) const = default;
};
struct TopKAttrs {
  int64_t k = 0;
  bool largest = true;
  bool operator==(const TopKAttrs&) const = default;
};
struct FftAttrs {
  FftType fft_type = FftType::kFft;
  Dims fft_length;
  bool operator==(const FftAttrs&) const = default;
};
struct CholeskyAttrs {
  bool lower = false;
  bool operator==(const CholeskyAttrs&) const = default;
};
struct TriangularSolveAttrs {
  bool left_side = false, lower = false, unit_diagonal = false;
  TransposeKind transpose_a = TransposeKind::kNoTranspose;
  bool operator==(const TriangularSolveAttrs&) const = default;
};
struct RngAttrs {
  RngDistribution distribution = RngDistribution::kUniform;
  bool operator==(const RngAttrs&) const = default;
};
struct RngBitGeneratorAttrs {
  RngAlgorithm algorithm = RngAlgorithm::kDefault;
  bool operator==(const RngBitGeneratorAttrs&) const = default;
};
struct RngStateAttrs {
  int64_t delta = 0;
  bool operator==(const RngStateAttrs&) const = default;
};
struct ReducePrecisionAttrs {
  int64_t exponent_bits = 0, mantissa_bits = 0;
  bool operator==(const ReducePrecisionAttrs&) const = default;
};
struct BatchNormAttrs {
  float epsilon = 0;
  int64_t feature_index = 0;
  bool operator==(const BatchNormAttrs&) const = default;
};
struct FusionAttrs {
  FusionKind kind = FusionKind::kLoop;
  bool operator==(const FusionAttrs&) const = default;
};
struct HostFunction;  // ir/evaluator/custom_calls.h
struct CustomCallAttrs {
  std::string custom_call_target;
  bool custom_call_has_side_effect = false;
  std::string api_version;
  std::string operand_layout_constraints;
  std::string output_to_operand_aliasing;
  // What this process runs in place of what is registered for the target; text does not have it.
  // It lives as long as an instruction has it.
  std::shared_ptr<const HostFunction> host;
  bool operator==(const CustomCallAttrs&) const = default;
};
// all-reduce, all-gather, reduce-scatter, all-to-all, ...
struct CollectiveAttrs {
  std::optional<int64_t> channel_id = {};
  ReplicaGroups replica_groups = {};
  bool constrain_layout = false;
  Dims dimensions = {};
  bool use_global_device_ids = false;
  bool operator==(const CollectiveAttrs&) const = default;
};
struct PermuteAttrs {
  std::optional<int64_t> channel_id = {};
  DevicePairs source_target_pairs = {};
  bool operator==(const PermuteAttrs&) const = default;
};
// send, recv and the ends of both.
struct TransferAttrs {
  std::optional<int64_t> channel_id = {};
  bool is_host_transfer = false;
  bool operator==(const TransferAttrs&) const = default;
};
struct InfeedAttrs {
  std::string infeed_config;
  bool operator==(const InfeedAttrs&) const = default;
};
struct OutfeedAttrs {
  std::optional<Shape> outfeed_shape;
  std::string outfeed_config;
  bool operator==(const OutfeedAttrs&) const = default;
};
struct AsyncAttrs {
  std::string async_execution_thread;
  bool operator==(const AsyncAttrs&) const = default;
};
struct DomainAttrs {
  ShardingPtr entry, exit;
  bool operator==(const DomainAttrs&) const = default;
};

// Order of AttrsKind = order of the alternatives.
using Attrs =
    std::variant<NoAttrs, ParameterAttrs, ConstantAttrs, DimensionsAttrs, IotaAttrs,
                 TupleIndexAttrs, CompareAttrs, SliceAttrs, DynamicSliceAttrs, PadAttrs,
                 GatherAttrs, ScatterAttrs, DotAttrs, RaggedDotAttrs, ConvolutionAttrs, WindowAttrs,
                 SortAttrs, ScanAttrs, TopKAttrs, FftAttrs, CholeskyAttrs, TriangularSolveAttrs,
                 RngAttrs, RngBitGeneratorAttrs, RngStateAttrs, ReducePrecisionAttrs,
                 BatchNormAttrs, FusionAttrs, CustomCallAttrs, CollectiveAttrs, PermuteAttrs,
                 TransferAttrs, InfeedAttrs, OutfeedAttrs, AsyncAttrs, DomainAttrs>;
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
  kPermute,
  kTransfer,
  kInfeed,
  kOutfeed,
  kAsync,
  kDomain,
};

}  // namespace lazuli::hlo
