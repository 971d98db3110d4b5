// The members of each family of attributes (attrs.h), one row each: its name in text, when text has
// it, and the field of HloInstructionProto that holds it.
//
// Printer, parser, the reader and the writer of protobuf, hashes and tables of documentation walk
// the rows. How a value is spelled follows from its type, or from the row's form where the type does
// not tell. Rows stand in the order in which they are printed; those of one nested message stand
// together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "ir/hlo/attrs.h"
#include "ir/support/attrs.h"

namespace lazuli::hlo {

enum class Presence : uint8_t {
  kRequired,  // without it the instruction means nothing
  kAlways,    // printed always; text without it means the default
  kUnlessDefault,
};

namespace form {

struct Plain {};    // as the type says
struct Operand {};  // text has it among the operands
struct Single {};   // an integer that is the one element of a list: dimensions={1}
struct InList {};   // an integer that only protobuf holds as the one element of a list
struct FromOne {};  // an enum whose numbers in protobuf begin with 1
struct ByWord {};   // an enum that protobuf holds as a word
struct YesOrNo {};  // a bool that protobuf holds as 1 or 2
struct Quoted {};   // a string in quotes
// A word; protobuf holds its place in the list. The first one is unsaid: text does not have it, and
// protobuf holds it as the number kUnsaid.
template <const auto& kWords, std::size_t kUnsaid = 0>
struct WordOf {};
struct Precisions {};      // {highest,default}
struct ShapeList {};       // {f32[4]{0}, f32[]}
struct OutputAliasing {};  // {{0}: (1, {})}
struct Ranges {};          // {[0:4:2], [1:8]}: starts, limits, strides
struct Padding {};         // 1_1x0_2_1: low, high, interior
struct Domain {};          // {kind="sharding", entry={replicated}, exit={manual}}

}  // namespace form

inline constexpr std::string_view kDotAlgorithms[] = {"",
                                                      "dot_any_f8_any_f8_f32",
                                                      "dot_any_f8_any_f8_f32_fast_accum",
                                                      "dot_f16_f16_f16",
                                                      "dot_f16_f16_f32",
                                                      "dot_bf16_bf16_bf16",
                                                      "dot_bf16_bf16_f32",
                                                      "dot_bf16_bf16_f32_x3",
                                                      "dot_bf16_bf16_f32_x6",
                                                      "dot_tf32_tf32_f32",
                                                      "dot_tf32_tf32_f32_x3",
                                                      "dot_f32_f32_f32",
                                                      "dot_f64_f64_f64",
                                                      "dot_bf16_bf16_f32_x9"};
inline constexpr std::string_view kApiVersions[] = {
    "", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};

// Numbers of the fields that lead to a value: those of nested messages, then its own.
struct ProtoPath {
  std::array<uint32_t, 3> tags{};
  std::size_t depth = 0;
  constexpr ProtoPath() = default;
  template <class... T>
  constexpr explicit(false) ProtoPath(uint32_t first, T... inner)
      : tags{first, static_cast<uint32_t>(inner)...}, depth(1 + sizeof...(inner)) {}
  constexpr bool StartsWith(const ProtoPath& outer) const {
    for (std::size_t i = 0; i < outer.depth; ++i) {
      if (tags[i] != outer.tags[i]) return false;
    }
    return depth > outer.depth;
  }
  constexpr uint32_t last() const { return tags[depth - 1]; }
  // What this message has on the way to `to`.
  constexpr ProtoPath Next(const ProtoPath& to) const {
    ProtoPath next = to;
    next.depth = depth + 1;
    return next;
  }
};

// Several members in one row are columns: lists of the same length that are spelled element by
// element.
template <class Form, class A, class... T>
struct AttrRow {
  std::string_view name;
  Presence presence;
  ProtoPath path;
  std::tuple<T A::*...> members;

  static constexpr Form kForm{};
  static constexpr std::size_t kMembers = sizeof...(T);
  // Calls f with the members of `attrs`.
  template <class Attrs, class F>
  constexpr decltype(auto) Apply(Attrs& attrs, F&& f) const {
    return std::apply([&](auto... member) -> decltype(auto) { return f((attrs.*member)...); },
                      members);
  }
  bool AtDefault(const A& attrs) const {
    static const A defaults;
    return std::apply([&](auto... member) { return ((attrs.*member == defaults.*member) && ...); },
                      members);
  }
};

template <class Form = form::Plain, class A, class T>
constexpr auto Member(T A::* member, std::string_view name, Presence presence, ProtoPath path) {
  return AttrRow<Form, A, T>{name, presence, path, {member}};
}
template <class Form, class A, class... T>
constexpr auto Columns(std::string_view name, Presence presence, ProtoPath path, T A::*... member) {
  return AttrRow<Form, A, T...>{name, presence, path, {member...}};
}

namespace internal {

using enum Presence;

inline constexpr uint32_t kDimensions = 14, kWindow = 15, kChannel = 26, kPrecision = 51,
                          kConstrained = 56, kIndicesAreSorted = 67;

constexpr auto RowsOf(const NoAttrs*) { return std::tuple<>(); }
constexpr auto RowsOf(const ParameterAttrs*) {
  return std::tuple(Member<form::Operand>(&ParameterAttrs::number, "number", kRequired, 9));
}
constexpr auto RowsOf(const ConstantAttrs*) {
  return std::tuple(Member<form::Operand>(&ConstantAttrs::value, "value", kRequired, 8));
}
constexpr auto RowsOf(const DimensionsAttrs*) {
  return std::tuple(Member(&DimensionsAttrs::dimensions, "dimensions", kAlways, kDimensions));
}
constexpr auto RowsOf(const IotaAttrs*) {
  return std::tuple(
      Member<form::InList>(&IotaAttrs::iota_dimension, "iota_dimension", kRequired, kDimensions));
}
constexpr auto RowsOf(const TupleIndexAttrs*) {
  return std::tuple(Member(&TupleIndexAttrs::index, "index", kRequired, 13));
}
constexpr auto RowsOf(const CompareAttrs*) {
  using A = CompareAttrs;
  return std::tuple(Member<form::ByWord>(&A::direction, "direction", kRequired, 63),
                    Member<form::ByWord>(&A::type, "type", kUnlessDefault, 72));
}
constexpr auto RowsOf(const SliceAttrs*) {
  using A = SliceAttrs;
  return std::tuple(
      Columns<form::Ranges>("slice", kRequired, 17, &A::starts, &A::limits, &A::strides));
}
constexpr auto RowsOf(const DynamicSliceAttrs*) {
  return std::tuple(
      Member(&DynamicSliceAttrs::dynamic_slice_sizes, "dynamic_slice_sizes", kRequired, 20));
}
constexpr auto RowsOf(const PadAttrs*) {
  using A = PadAttrs;
  return std::tuple(
      Columns<form::Padding>("padding", kRequired, {21, 1}, &A::low, &A::high, &A::interior));
}
constexpr auto RowsOf(const GatherAttrs*) {
  using A = GatherAttrs;
  constexpr uint32_t kMessage = 33;
  return std::tuple(
      Member(&A::offset_dims, "offset_dims", kAlways, {kMessage, 1}),
      Member(&A::collapsed_slice_dims, "collapsed_slice_dims", kAlways, {kMessage, 2}),
      Member(&A::start_index_map, "start_index_map", kAlways, {kMessage, 3}),
      Member(&A::operand_batching_dims, "operand_batching_dims", kUnlessDefault, {kMessage, 5}),
      Member(&A::start_indices_batching_dims, "start_indices_batching_dims", kUnlessDefault,
             {kMessage, 6}),
      Member(&A::index_vector_dim, "index_vector_dim", kRequired, {kMessage, 4}),
      Member(&A::slice_sizes, "slice_sizes", kRequired, 34),
      Member(&A::indices_are_sorted, "indices_are_sorted", kUnlessDefault, kIndicesAreSorted));
}
constexpr auto RowsOf(const ScatterAttrs*) {
  using A = ScatterAttrs;
  constexpr uint32_t kMessage = 48;
  return std::tuple(
      Member(&A::update_window_dims, "update_window_dims", kAlways, {kMessage, 1}),
      Member(&A::inserted_window_dims, "inserted_window_dims", kAlways, {kMessage, 2}),
      Member(&A::scatter_dims_to_operand_dims, "scatter_dims_to_operand_dims", kAlways,
             {kMessage, 3}),
      Member(&A::input_batching_dims, "input_batching_dims", kUnlessDefault, {kMessage, 5}),
      Member(&A::scatter_indices_batching_dims, "scatter_indices_batching_dims", kUnlessDefault,
             {kMessage, 6}),
      Member(&A::index_vector_dim, "index_vector_dim", kRequired, {kMessage, 4}),
      Member(&A::indices_are_sorted, "indices_are_sorted", kUnlessDefault, kIndicesAreSorted),
      Member(&A::unique_indices, "unique_indices", kUnlessDefault, 69));
}
// Message DotDimensionNumbers, for every kind of dot.
template <class A, class... Tag>
constexpr auto DotDimRows(Tag... message) {
  return std::tuple(
      Member(&A::lhs_batch_dims, "lhs_batch_dims", kUnlessDefault, {message..., 3}),
      Member(&A::lhs_contracting_dims, "lhs_contracting_dims", kAlways, {message..., 1}),
      Member(&A::rhs_batch_dims, "rhs_batch_dims", kUnlessDefault, {message..., 4}),
      Member(&A::rhs_contracting_dims, "rhs_contracting_dims", kAlways, {message..., 2}));
}
template <class A>
constexpr auto PrecisionRow() {
  return Member<form::Precisions>(&A::operand_precision, "operand_precision", kUnlessDefault,
                                  {kPrecision, 1});
}
constexpr auto RowsOf(const DotAttrs*) {
  return std::tuple_cat(DotDimRows<DotAttrs>(30u),
                        std::tuple(PrecisionRow<DotAttrs>(), Member<form::WordOf<kDotAlgorithms>>(
                                                                 &DotAttrs::algorithm, "algorithm",
                                                                 kUnlessDefault, {kPrecision, 2})));
}
constexpr auto RowsOf(const RaggedDotAttrs*) {
  using A = RaggedDotAttrs;
  constexpr uint32_t kMessage = 90;
  return std::tuple_cat(
      DotDimRows<A>(kMessage, 1u),
      std::tuple(Member(&A::lhs_ragged_dims, "lhs_ragged_dims", kRequired, {kMessage, 2}),
                 Member(&A::rhs_group_dims, "rhs_group_dims", kUnlessDefault, {kMessage, 3}),
                 PrecisionRow<A>()));
}
constexpr auto RowsOf(const ConvolutionAttrs*) {
  using A = ConvolutionAttrs;
  return std::tuple(Member(&A::window, "window", kUnlessDefault, kWindow),
                    Member(&A::dim_labels, "dim_labels", kRequired, 16),
                    Member(&A::feature_group_count, "feature_group_count", kUnlessDefault, 50),
                    Member(&A::batch_group_count, "batch_group_count", kUnlessDefault, 58),
                    PrecisionRow<A>());
}
constexpr auto RowsOf(const WindowAttrs*) {
  return std::tuple(Member(&WindowAttrs::window, "window", kRequired, kWindow));
}
constexpr auto RowsOf(const SortAttrs*) {
  using A = SortAttrs;
  return std::tuple(Member<form::Single>(&A::dimension, "dimensions", kRequired, kDimensions),
                    Member(&A::is_stable, "is_stable", kUnlessDefault, 60));
}
constexpr auto RowsOf(const ScanAttrs*) {
  using A = ScanAttrs;
  return std::tuple(
      Member<form::Single>(&A::dimension, "dimensions", kRequired, kDimensions),
      Member(&A::is_reverse, "is_reverse", kUnlessDefault, 94),
      Member(&A::num_carries, "num_carries", kRequired, 95),
      Member<form::YesOrNo>(&A::is_associative, "is_associative", kUnlessDefault, 96));
}
constexpr auto RowsOf(const TopKAttrs*) {
  using A = TopKAttrs;
  return std::tuple(Member(&A::k, "k", kRequired, 81), Member(&A::largest, "largest", kAlways, 85));
}
constexpr auto RowsOf(const FftAttrs*) {
  using A = FftAttrs;
  return std::tuple(Member(&A::fft_type, "fft_type", kRequired, 31),
                    Member(&A::fft_length, "fft_length", kRequired, 32));
}
constexpr auto RowsOf(const CholeskyAttrs*) {
  return std::tuple(Member(&CholeskyAttrs::lower, "lower", kUnlessDefault, {62, 1}));
}
constexpr auto RowsOf(const TriangularSolveAttrs*) {
  using A = TriangularSolveAttrs;
  constexpr uint32_t kMessage = 59;
  return std::tuple(Member(&A::left_side, "left_side", kUnlessDefault, {kMessage, 1}),
                    Member(&A::lower, "lower", kUnlessDefault, {kMessage, 2}),
                    Member(&A::unit_diagonal, "unit_diagonal", kUnlessDefault, {kMessage, 3}),
                    Member<form::FromOne>(&A::transpose_a, "transpose_a", kAlways, {kMessage, 4}));
}
constexpr auto RowsOf(const RngAttrs*) {
  return std::tuple(Member<form::FromOne>(&RngAttrs::distribution, "distribution", kRequired, 23));
}
constexpr auto RowsOf(const RngBitGeneratorAttrs*) {
  return std::tuple(Member(&RngBitGeneratorAttrs::algorithm, "algorithm", kRequired, 70));
}
constexpr auto RowsOf(const RngStateAttrs*) {
  return std::tuple(Member(&RngStateAttrs::delta, "delta", kRequired, 66));
}
constexpr auto RowsOf(const ReducePrecisionAttrs*) {
  using A = ReducePrecisionAttrs;
  return std::tuple(Member(&A::exponent_bits, "exponent_bits", kRequired, 18),
                    Member(&A::mantissa_bits, "mantissa_bits", kRequired, 19));
}
constexpr auto RowsOf(const BatchNormAttrs*) {
  using A = BatchNormAttrs;
  return std::tuple(Member(&A::epsilon, "epsilon", kRequired, 24),
                    Member(&A::feature_index, "feature_index", kRequired, 25));
}
constexpr auto RowsOf(const FusionAttrs*) {
  return std::tuple(Member<form::ByWord>(&FusionAttrs::kind, "kind", kRequired, 11));
}
constexpr auto RowsOf(const CustomCallAttrs*) {
  using A = CustomCallAttrs;
  return std::tuple(
      Member<form::Quoted>(&A::custom_call_target, "custom_call_target", kRequired, 28),
      Member(&A::custom_call_has_side_effect, "custom_call_has_side_effect", kUnlessDefault, 65),
      Member<form::ShapeList>(&A::operand_layout_constraints, "operand_layout_constraints",
                              kUnlessDefault, 57),
      Member<form::OutputAliasing>(&A::output_to_operand_aliasing, "output_to_operand_aliasing",
                                   kUnlessDefault, 74),
      Member<form::WordOf<kApiVersions, 1>>(&A::api_version, "api_version", kUnlessDefault, 77));
}
template <class A>
constexpr auto ChannelRow() {
  return Member(&A::channel_id, "channel_id", kUnlessDefault, kChannel);
}
constexpr auto RowsOf(const CollectiveAttrs*) {
  using A = CollectiveAttrs;
  return std::tuple(ChannelRow<A>(),
                    Member(&A::replica_groups, "replica_groups", kUnlessDefault, 87),
                    Member(&A::constrain_layout, "constrain_layout", kUnlessDefault, kConstrained),
                    Member(&A::dimensions, "dimensions", kUnlessDefault, kDimensions),
                    Member(&A::use_global_device_ids, "use_global_device_ids", kUnlessDefault, 71));
}
constexpr auto RowsOf(const PermuteAttrs*) {
  using A = PermuteAttrs;
  return std::tuple(ChannelRow<A>(),
                    Member(&A::source_target_pairs, "source_target_pairs", kAlways, 52));
}
constexpr auto RowsOf(const TransferAttrs*) {
  using A = TransferAttrs;
  return std::tuple(ChannelRow<A>(),
                    Member(&A::is_host_transfer, "is_host_transfer", kUnlessDefault, 47));
}
constexpr auto RowsOf(const InfeedAttrs*) {
  return std::tuple(
      Member<form::Quoted>(&InfeedAttrs::infeed_config, "infeed_config", kUnlessDefault, 27));
}
constexpr auto RowsOf(const OutfeedAttrs*) {
  using A = OutfeedAttrs;
  return std::tuple(Member(&A::outfeed_shape, "outfeed_shape", kUnlessDefault, 29),
                    Member<form::Quoted>(&A::outfeed_config, "outfeed_config", kUnlessDefault, 22));
}
constexpr auto RowsOf(const AsyncAttrs*) {
  return std::tuple(Member<form::Quoted>(&AsyncAttrs::async_execution_thread,
                                         "async_execution_thread", kUnlessDefault, 79));
}
constexpr auto RowsOf(const DomainAttrs*) {
  using A = DomainAttrs;
  return std::tuple(Columns<form::Domain>("domain", kUnlessDefault, 54, &A::entry, &A::exit));
}

}  // namespace internal

template <class A>
inline constexpr auto kAttrRows = internal::RowsOf(static_cast<const A*>(nullptr));

// f(row) for every row of a family.
template <class A, class F>
constexpr void ForEachRow(F&& f) {
  std::apply([&](const auto&... row) { (f(row), ...); }, kAttrRows<A>);
}

// f(row) for those that text has as attributes.
template <class A, class F>
constexpr void ForEachTextRow(F&& f) {
  ForEachRow<A>([&]<class Row>(const Row& row) {
    if constexpr (!std::is_same_v<decltype(Row::kForm), const form::Operand>) f(row);
  });
}

// f(member) for every member of attributes.
template <class A, class F>
constexpr void ForEachMember(A& attrs, F&& f) {
  ForEachRow<std::remove_const_t<A>>(
      [&](const auto& row) { row.Apply(attrs, [&](auto&... member) { (f(member), ...); }); });
}

template <class A>
constexpr std::size_t MemberCount() {
  std::size_t count = 0;
  ForEachRow<A>([&](const auto& row) { count += row.kMembers; });
  return count;
}

// Members without a row, which only instructions of this process have: CustomCallAttrs::host.
template <class A>
inline constexpr std::size_t kUnwritten = std::is_same_v<A, CustomCallAttrs> ? 1 : 0;

namespace internal {

template <class... T>
constexpr bool EveryMemberHasARow(const std::variant<T...>*) {
  return ((ir::FieldCount<T>() == MemberCount<T>() + kUnwritten<T>) && ...);
}
static_assert(EveryMemberHasARow(static_cast<const Attrs*>(nullptr)));

}  // namespace internal
}  // namespace lazuli::hlo
