// Fields of HloInstructionProto for each family of attributes (attrs.h): a row for each member, for
// reading and writing alike.

#include "ir/hlo/proto/proto_internal.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/parser_internal.h"

namespace lazuli::hlo::internal {
namespace {

// Fields that several families share.
constexpr Tag kDimensions = 14, kWindow = 15, kIndicesAreSorted = 67, kPrecision = 51;

// Words of PrecisionConfig, by number.
constexpr std::string_view kPrecisions[] = {"default", "high", "highest", "packed_nibble"};
constexpr std::string_view kAlgorithms[] = {"",
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
constexpr std::string_view kApiVersions[] = {
    "", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};

// An enum's number as a word of the text; the word of number `unsaid` is not written there.
void NumberAsWord(FieldReader& v, Tag tag, std::string& word,
                  std::span<const std::string_view> words, std::size_t unsaid = 0) {
  std::size_t number = unsaid;
  v.Enum(tag, number, static_cast<int64_t>(words.size()));
  if (number != unsaid) word = words[number];
}
void NumberAsWord(FieldWriter& v, Tag tag, const std::string& word,
                  std::span<const std::string_view> words, std::size_t unsaid = 0) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return v.Int(tag, static_cast<int64_t>(i == 0 ? unsaid : i));
  }
}

// "highest,default" as a list of numbers; all of them at their default is the empty text.
void PrecisionWords(FieldReader& v, std::string& text) {
  bool said = false;
  std::string words;
  v.ForEachInt(1, [&](int64_t number) {
    if (number < 0 || number >= static_cast<int64_t>(std::size(kPrecisions)))
      return v.error().Note("there is no precision ", number);
    said = said || number != 0;
    words += Str(words.empty() ? "" : ",", kPrecisions[number]);
  });
  if (said) text = words;
}
void PrecisionWords(FieldWriter& v, const std::string& text) {
  Dims numbers;
  Cursor in(text);
  while (!in.AtEnd()) {
    const std::string_view word = in.Word();
    for (std::size_t i = 0; i < std::size(kPrecisions); ++i) {
      if (kPrecisions[i] == word) numbers.push_back(static_cast<int64_t>(i));
    }
    if (!in.Try(',')) break;
  }
  if (!numbers.empty()) v.Ints(1, numbers);
}

// "f32[4]{0}, f32[]" as a list of shapes.
void LayoutConstraints(FieldReader& v, std::string& text) {
  bool constrained = false;
  v.Bool(56, constrained);
  if (!v.AtMessage(57)) return;
  Shape shape;
  ReadShape(v.in().get_message(), v.error(), &shape);
  text += Str(text.empty() ? "" : ", ", shape.ToString(true));
}
void LayoutConstraints(FieldWriter& v, const std::string& text) {
  if (text.empty()) return;
  Cursor in(text);
  v.Bool(56, true);
  do {
    Shape shape;
    if (!ParseShape(in, &shape)) return;
    v.Message(57, [&](FieldWriter& w) { WriteShape(w.out(), shape); });
  } while (in.Try(','));
}

// "{0}: (1, {}), {1}: (2, {0})": outputs that share the memory of operands.
void OutputAliasing(FieldReader& v, std::string& text) {
  if (!v.AtMessage(74)) return;
  Dims output, operand;
  int64_t index = 0;
  FieldReader::ReadAll(v.in().get_message(), v.error(), [&](FieldReader& pair) {
    pair.Ints(1, output);
    pair.Int(2, index);
    pair.Ints(3, operand);
  });
  text += Str(text.empty() ? "" : ", ", "{", Join(output, ","), "}: (", index, ", {",
              Join(operand, ","), "})");
}
void OutputAliasing(FieldWriter& v, const std::string& text) {
  Cursor in(text);
  while (!in.AtEnd()) {
    Dims output, operand;
    int64_t index = 0;
    if (!ParseDims(in, &output) || !in.Expect(':') || !in.Expect('(') || !in.Integer(&index) ||
        !in.Expect(',') || !ParseDims(in, &operand) || !in.Expect(')'))
      return;
    v.Message(74, [&](FieldWriter& pair) {
      pair.Ints(1, output);
      pair.Int(2, index);
      pair.Ints(3, operand);
    });
    in.Try(',');
  }
}

template <class V>
void Precision(V& v, typename V::template Ref<std::string> precision,
               typename V::template Ref<std::string> algorithm) {
  v.Message(kPrecision, [&](V& config) {
    PrecisionWords(config, precision);
    NumberAsWord(config, 2, algorithm, kAlgorithms);
  });
}

// A truth value of three: unsaid, yes, no.
void YesOrNo(FieldReader& v, Tag tag, bool& value) {
  int64_t number = value ? 1 : 2;
  v.Int(tag, number);
  value = number == 1;
}
void YesOrNo(FieldWriter& v, Tag tag, bool value) { v.Int(tag, value ? 1 : 2); }

template <class V>
void WindowRows(V& v, typename V::template Ref<Window> window) {
  v.Message(kWindow, [&](V& w) {
    w.Messages(1, window, [](V& d, auto& dim) {
      d.Int(1, dim.size);
      d.Int(2, dim.stride);
      d.Int(3, dim.pad_low);
      d.Int(4, dim.pad_high);
      d.Int(5, dim.window_dilation);
      d.Int(6, dim.base_dilation);
      d.Bool(7, dim.reversal);
    });
  });
}

// --- a function for each family

template <class V>
void Rows(V&, typename V::template Ref<NoAttrs>) {}
template <class V>
void Rows(V& v, typename V::template Ref<ParameterAttrs> a) {
  v.Int(9, a.number);
}
void Rows(FieldReader& v, ConstantAttrs& a) {
  if (!v.AtMessage(8)) return;
  Literal literal;
  ReadLiteral(v.in().get_message(), v.error(), &literal);
  a.value = std::make_shared<const Literal>(std::move(literal));
}
void Rows(FieldWriter& v, const ConstantAttrs& a) {
  v.Message(8, [&](FieldWriter& w) { WriteLiteral(w.out(), *a.value); });
}
template <class V>
void Rows(V& v, typename V::template Ref<DimensionsAttrs> a) {
  v.Ints(kDimensions, a.dimensions);
}
template <class V>
void Rows(V& v, typename V::template Ref<IotaAttrs> a) {
  v.Only(kDimensions, a.iota_dimension);
}
template <class V>
void Rows(V& v, typename V::template Ref<TupleIndexAttrs> a) {
  v.Int(13, a.index);
}
template <class V>
void Rows(V& v, typename V::template Ref<CompareAttrs> a) {
  v.Word(63, a.direction, EnumWords<ComparisonDirection>());
  v.Word(72, a.type, EnumWords<ComparisonType>());
}
template <class V>
void Rows(V& v, typename V::template Ref<SliceAttrs> a) {
  v.Columns(17, std::array{&a.starts, &a.limits, &a.strides});
}
template <class V>
void Rows(V& v, typename V::template Ref<DynamicSliceAttrs> a) {
  v.Ints(20, a.dynamic_slice_sizes);
}
template <class V>
void Rows(V& v, typename V::template Ref<PadAttrs> a) {
  v.Message(21, [&](V& config) { config.Columns(1, std::array{&a.low, &a.high, &a.interior}); });
}
template <class V>
void Rows(V& v, typename V::template Ref<GatherAttrs> a) {
  v.Message(33, [&](V& d) {
    d.Ints(1, a.offset_dims);
    d.Ints(2, a.collapsed_slice_dims);
    d.Ints(3, a.start_index_map);
    d.Int(4, a.index_vector_dim);
    d.Ints(5, a.operand_batching_dims);
    d.Ints(6, a.start_indices_batching_dims);
  });
  v.Ints(34, a.slice_sizes);
  v.Bool(kIndicesAreSorted, a.indices_are_sorted);
}
template <class V>
void Rows(V& v, typename V::template Ref<ScatterAttrs> a) {
  v.Message(48, [&](V& d) {
    d.Ints(1, a.update_window_dims);
    d.Ints(2, a.inserted_window_dims);
    d.Ints(3, a.scatter_dims_to_operand_dims);
    d.Int(4, a.index_vector_dim);
    d.Ints(5, a.input_batching_dims);
    d.Ints(6, a.scatter_indices_batching_dims);
  });
  v.Bool(kIndicesAreSorted, a.indices_are_sorted);
  v.Bool(69, a.unique_indices);
}
// Message DotDimensionNumbers, for every kind of dot.
template <class V, class A>
void DotDims(V& v, Tag tag, A& a) {
  v.Message(tag, [&](V& d) {
    d.Ints(1, a.lhs_contracting_dims);
    d.Ints(2, a.rhs_contracting_dims);
    d.Ints(3, a.lhs_batch_dims);
    d.Ints(4, a.rhs_batch_dims);
  });
}
template <class V>
void Rows(V& v, typename V::template Ref<DotAttrs> a) {
  DotDims(v, 30, a);
  Precision(v, a.operand_precision, a.algorithm);
}
template <class V>
void Rows(V& v, typename V::template Ref<RaggedDotAttrs> a) {
  v.Message(90, [&](V& d) {
    DotDims(d, 1, a);
    d.Ints(2, a.lhs_ragged_dims);
    d.Ints(3, a.rhs_group_dims);
  });
  std::string no_algorithm;
  Precision(v, a.operand_precision, no_algorithm);
}
template <class V>
void Rows(V& v, typename V::template Ref<ConvolutionAttrs> a) {
  WindowRows(v, a.window);
  v.Message(16, [&](V& d) {
    d.Int(3, a.dim_labels.kernel_input_feature);
    d.Int(4, a.dim_labels.kernel_output_feature);
    d.Ints(6, a.dim_labels.kernel_spatial);
    d.Int(7, a.dim_labels.input_batch);
    d.Int(8, a.dim_labels.input_feature);
    d.Int(9, a.dim_labels.output_batch);
    d.Int(10, a.dim_labels.output_feature);
    d.Ints(11, a.dim_labels.input_spatial);
    d.Ints(12, a.dim_labels.output_spatial);
  });
  v.Int(50, a.feature_group_count);
  v.Int(58, a.batch_group_count);
  std::string no_algorithm;
  Precision(v, a.operand_precision, no_algorithm);
}
template <class V>
void Rows(V& v, typename V::template Ref<WindowAttrs> a) {
  WindowRows(v, a.window);
}
template <class V>
void Rows(V& v, typename V::template Ref<SortAttrs> a) {
  v.Only(kDimensions, a.dimension);
  v.Bool(60, a.is_stable);
}
template <class V>
void Rows(V& v, typename V::template Ref<ScanAttrs> a) {
  v.Only(kDimensions, a.dimension);
  v.Bool(94, a.is_reverse);
  v.Int(95, a.num_carries);
  YesOrNo(v, 96, a.is_associative);
}
template <class V>
void Rows(V& v, typename V::template Ref<TopKAttrs> a) {
  v.Int(81, a.k);
  v.Bool(85, a.largest);
}
template <class V>
void Rows(V& v, typename V::template Ref<FftAttrs> a) {
  v.Enum(31, a.fft_type, 4);
  v.Ints(32, a.fft_length);
}
template <class V>
void Rows(V& v, typename V::template Ref<CholeskyAttrs> a) {
  v.Message(62, [&](V& options) { options.Bool(1, a.lower); });
}
template <class V>
void Rows(V& v, typename V::template Ref<TriangularSolveAttrs> a) {
  v.Message(59, [&](V& options) {
    options.Bool(1, a.left_side);
    options.Bool(2, a.lower);
    options.Bool(3, a.unit_diagonal);
    options.Enum(4, a.transpose_a, 3, 1);
  });
}
template <class V>
void Rows(V& v, typename V::template Ref<RngAttrs> a) {
  v.Enum(23, a.distribution, 2, 1);
}
template <class V>
void Rows(V& v, typename V::template Ref<RngBitGeneratorAttrs> a) {
  v.Enum(70, a.algorithm, 3);
}
template <class V>
void Rows(V& v, typename V::template Ref<RngStateAttrs> a) {
  v.Int(66, a.delta);
}
template <class V>
void Rows(V& v, typename V::template Ref<ReducePrecisionAttrs> a) {
  v.Int(18, a.exponent_bits);
  v.Int(19, a.mantissa_bits);
}
template <class V>
void Rows(V& v, typename V::template Ref<BatchNormAttrs> a) {
  v.Float(24, a.epsilon);
  v.Int(25, a.feature_index);
}
template <class V>
void Rows(V& v, typename V::template Ref<FusionAttrs> a) {
  v.Word(11, a.kind, EnumWords<FusionKind>());
}
template <class V>
void Rows(V& v, typename V::template Ref<CustomCallAttrs> a) {
  v.Text(28, a.custom_call_target);
  v.Bool(65, a.custom_call_has_side_effect);
  NumberAsWord(v, 77, a.api_version, kApiVersions, 1);
  LayoutConstraints(v, a.operand_layout_constraints);
  OutputAliasing(v, a.output_to_operand_aliasing);
}
template <class V>
void Rows(V& v, typename V::template Ref<CollectiveAttrs> a) {
  v.Ints(kDimensions, a.dimensions);
}

}  // namespace

void ReadAttrsField(FieldReader& field, Attrs* attrs) {
  std::visit([&](auto& a) { Rows(field, a); }, *attrs);
}

void WriteAttrs(protozero::pbf_writer& out, const Attrs& attrs) {
  FieldWriter v(out);
  std::visit([&](const auto& a) { Rows(v, a); }, attrs);
}

}  // namespace lazuli::hlo::internal
