#include "ir/hlo/shapes/shape_inference.h"

#include <gtest/gtest.h>

#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

// Computations that the cases call.
constexpr const char* kCallees = R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ge { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE }
negate { a = f32[] parameter(0)
  ROOT r = f32[] negate(a) }
argmax { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  k = s32[] parameter(3)
  ROOT t = (f32[], s32[]) tuple(a, i) }
by_first { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
small { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[4]) parameter(0)
  ROOT r = (s32[], f32[4]) copy(s) }
vector { v = f32[4] parameter(0)
  ROOT r = f32[4] negate(v) }
)";

struct ShapeCase {
  std::vector<const char*> operands;  // shapes of p0, p1, ...
  const char* instruction;
  const char* expected;  // the result's shape, or the error
};

// The shape of the instruction's result as inferred (or, if the text declares one, as checked), or
// the error without position.
std::string Infer(const ShapeCase& c) {
  std::string text = Str(kCallees, "ENTRY e {\n");
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    text += Str("  p", i, " = ", c.operands[i], " parameter(", i, ")\n");
  }
  text += Str("  ROOT r = ", c.instruction, "\n}\n");
  const auto module = ParseModule(text);
  if (module.ok()) return (*module)->entry()->root()->shape().ToString();
  const std::string message = ErrorOf(module.status());
  const std::size_t start = message.find(": ") + 2;
  return message.substr(start, message.find('\n') - start);
}

void Check(const std::vector<ShapeCase>& cases) {
  for (const ShapeCase& c : cases) EXPECT_EQ(Infer(c), c.expected) << c.instruction;
}

TEST(ShapeInferenceTest, Elementwise) {
  Check({
      {{"f32[2,3]"}, "exponential(p0)", "f32[2,3]"},
      {{"s32[2]"},
       "exponential(p0)",
       "exponential: needs floating-point or complex operands, got s32[2]"},
      {{"f32[2]"}, "is-finite(p0)", "pred[2]"},
      {{"c64[2]"}, "abs(p0)", "f32[2]"},
      {{"c128[2]"}, "imag(p0)", "f64[2]"},
      {{"f32[2]"}, "real(p0)", "f32[2]"},
      {{"u8[2]"}, "abs(p0)", "abs: needs signed, floating-point or complex operands, got u8[2]"},
      {{"(f32[2])"}, "negate(p0)", "negate: needs array operands, got (f32[2])"},
      {{"f32[2]", "f32[2]"}, "add(p0, p1)", "f32[2]"},
      {{"f32[2]{0}", "f32[2]"}, "add(p0)", "add: takes 2 operands, not 1"},
      {{"f32[2]", "f32[3]"},
       "add(p0, p1)",
       "add: operands differ in dimensions: f32[2] and f32[3]"},
      {{"f32[2]", "f64[2]"},
       "add(p0, p1)",
       "add: operands differ in element type: f32[2] and f64[2]"},
      {{"f32[2]", "f32[]"}, "add(p0, p1)", "add: operands differ in dimensions: f32[2] and f32[]"},
      {{"f32[2]", "f32[2]"}, "and(p0, p1)", "and: needs integer or pred operands, got f32[2]"},
      {{"f32[2]", "f32[2]"}, "complex(p0, p1)", "c64[2]"},
      {{"f16[2]", "f16[2]"}, "complex(p0, p1)", "complex: parts are f32 or f64, not f16[2]"},
      {{"f32[2]", "f32[2]"}, "compare(p0, p1), direction=LT", "pred[2]"},
      {{"c64[2]", "c64[2]"},
       "compare(p0, p1), direction=LT",
       "compare: complex numbers have no order: c64[2]"},
      {{"s32[2]", "s32[2]"},
       "compare(p0, p1), direction=LT, type=TOTALORDER",
       "compare: the comparison type does not fit operands of s32[2]"},
      {{"pred[2]", "f32[2]", "f32[2]"}, "select(p0, p1, p2)", "f32[2]"},
      {{"pred[]", "f32[2]", "f32[2]"}, "select(p0, p1, p2)", "f32[2]"},
      {{"pred[3]", "f32[2]", "f32[2]"},
       "select(p0, p1, p2)",
       "select: predicate pred[3] is neither a scalar nor as large as f32[2]"},
      {{"s32[2]", "f32[2]", "f32[2]"},
       "select(p0, p1, p2)",
       "select: the first operand must be pred, not s32[2]"},
      {{"f32[]", "f32[2]", "f32[2]"}, "clamp(p0, p1, p2)", "f32[2]"},
      {{"f32[3]", "f32[2]", "f32[2]"},
       "clamp(p0, p1, p2)",
       "clamp: bound f32[3] is neither a scalar of the type of f32[2] nor as large"},
      {{"f32[2]"}, "s32[2] convert(p0)", "s32[2]"},
      {{"f32[2]"},
       "s32[3] convert(p0)",
       "convert: changes the element type only: f32[2] to s32[3]"},
      {{"f32[2]"}, "convert(p0)", "convert: the result's shape must be declared"},
      {{"f32[2]"}, "u32[2] bitcast-convert(p0)", "u32[2]"},
      {{"f32[2]"}, "u8[2,4] bitcast-convert(p0)", "u8[2,4]"},
      {{"u16[3,2]"}, "f32[3] bitcast-convert(p0)", "f32[3]"},
      {{"f32[2]"},
       "u8[2,2] bitcast-convert(p0)",
       "bitcast-convert: the bits of f32[2] are not those of u8[2,2]"},
      {{"f32[2]"},
       "f32[3] negate(p0)",
       "negate: the result is f32[2], not the declared f32[3] (operands f32[2])"},
      {{"f32[2]"}, "reduce-precision(p0), exponent_bits=5, mantissa_bits=10", "f32[2]"},
      {{"f32[2]"},
       "reduce-precision(p0), exponent_bits=0, mantissa_bits=10",
       "reduce-precision: exponent_bits=0, mantissa_bits=10 is not a floating-point format"},
  });
}

TEST(ShapeInferenceTest, ShapesAndMovement) {
  Check({
      {{}, "s32[2,3] iota(), iota_dimension=1", "s32[2,3]"},
      {{},
       "s32[2,3] iota(), iota_dimension=2",
       "iota: iota_dimension=2 is out of range for s32[2,3]"},
      {{"f32[3]"}, "f32[2,3] broadcast(p0), dimensions={1}", "f32[2,3]"},
      {{"f32[3]"},
       "f32[2,3] broadcast(p0), dimensions={0}",
       "broadcast: dimension 0 of f32[3] is not dimension 0 of f32[2,3]"},
      {{"f32[3]"}, "f32[2,3] broadcast(p0), dimensions={}", "broadcast: 0 dimensions for f32[3]"},
      {{"f32[3,3]"},
       "f32[3,3] broadcast(p0), dimensions={0,0}",
       "broadcast: dimension 0 is twice in dimensions={0,0}"},
      {{"f32[]"}, "f32[2] broadcast(p0), dimensions={}", "f32[2]"},
      {{"f32[2,3]"}, "f32[6] reshape(p0)", "f32[6]"},
      {{"f32[2,3]"},
       "f32[5] reshape(p0)",
       "reshape: keeps the number of elements: f32[2,3] to f32[5]"},
      {{"f32[2,3,4]"}, "transpose(p0), dimensions={2,0,1}", "f32[4,2,3]"},
      {{"f32[2,3,4]"},
       "transpose(p0), dimensions={2,0,3}",
       "transpose: dimension 3 of dimensions={2,0,3} is out of range for rank 3"},
      {{"f32[2,3]"}, "reverse(p0), dimensions={1,0}", "f32[2,3]"},
      {{"f32[2,3]", "f32[2,4]"}, "concatenate(p0, p1), dimensions={1}", "f32[2,7]"},
      {{"f32[2,3]", "f32[2,4]"},
       "concatenate(p0, p1), dimensions={0}",
       "concatenate: operands differ outside dimension 0: f32[2,3] and f32[2,4]"},
      {{"f32[8]"}, "slice(p0), slice={[1:8:3]}", "f32[3]"},
      {{"f32[8]"}, "slice(p0), slice={[3:3]}", "f32[0]"},
      {{"f32[8]"},
       "slice(p0), slice={[3:9]}",
       "slice: [3:9] is out of range for dimension 0 of f32[8]"},
      {{"f32[8]"}, "slice(p0), slice={[3:5:0]}", "slice: stride 0 of dimension 0 is not positive"},
      {{"f32[8,4]", "s32[]", "s32[]"},
       "dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,4}",
       "f32[2,4]"},
      {{"f32[8,4]", "s32[2]"}, "dynamic-slice(p0, p1), dynamic_slice_sizes={2,4}", "f32[2,4]"},
      {{"f32[8,4]", "s32[]"},
       "dynamic-slice(p0, p1), dynamic_slice_sizes={2,4}",
       "dynamic-slice: 1 start indices for f32[8,4]"},
      {{"f32[8]", "f32[]"},
       "dynamic-slice(p0, p1), dynamic_slice_sizes={2}",
       "dynamic-slice: start index f32[] is not an integer scalar"},
      {{"f32[8]", "s32[]"},
       "dynamic-slice(p0, p1), dynamic_slice_sizes={9}",
       "dynamic-slice: size 9 is out of range for dimension 0 of f32[8]"},
      {{"f32[8]", "f32[3]", "s32[]"}, "dynamic-update-slice(p0, p1, p2)", "f32[8]"},
      {{"f32[8]", "f32[9]", "s32[]"},
       "dynamic-update-slice(p0, p1, p2)",
       "dynamic-update-slice: update f32[9] does not fit into f32[8]"},
      {{"f32[4,2]", "f32[]"}, "pad(p0, p1), padding=1_2_1x0_-1", "f32[10,1]"},
      {{"f32[0]", "f32[]"}, "pad(p0, p1), padding=1_2_3", "f32[3]"},
      {{"f32[4]", "f32[]"},
       "pad(p0, p1), padding=-3_-2",
       "pad: padding -3_-2_0 of dimension 0 of f32[4] leaves no valid size"},
      {{"f32[4]", "f32[1]"},
       "pad(p0, p1), padding=0_0",
       "pad: padding value f32[1] is not a scalar of the type of f32[4]"},
      {{"f32[4]", "s32[2]"}, "tuple(p0, p1)", "(f32[4], s32[2])"},
      {{"(f32[4], s32[2])"}, "get-tuple-element(p0), index=1", "s32[2]"},
      {{"(f32[4], s32[2])"},
       "get-tuple-element(p0), index=2",
       "get-tuple-element: index 2 is out of range for (f32[4], s32[2])"},
      {{"f32[4]"},
       "get-tuple-element(p0), index=0",
       "get-tuple-element: operand f32[4] is not a tuple"},
      {{"(f32[4], s32[2])"}, "opt-barrier(p0)", "(f32[4], s32[2])"},
      {{"token[]"}, "after-all(p0)", "token[]"},
      {{"f32[2]"}, "after-all(p0)", "after-all: operand f32[2] is not a token"},
      {{"f32[2,3]"}, "get-dimension-size(p0), dimensions={1}", "s32[]"},
  });
}

TEST(ShapeInferenceTest, GatherAndScatter) {
  Check({
      {{"f32[4,6]", "s32[5,1]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, "
       "slice_sizes={1,6}",
       "f32[5,6]"},
      {{"f32[4,6]", "s32[5]"},
       "gather(p0, p1), offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={1}, "
       "index_vector_dim=1, "
       "slice_sizes={2,3}",
       "f32[2,3,5]"},
      {{"f32[3,4,6]", "s32[3,5,1]"},
       "gather(p0, p1), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
       "operand_batching_dims={0}, "
       "start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,6}",
       "f32[3,5,6]"},
      {{"f32[4,6]", "f32[5,1]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, "
       "slice_sizes={1,6}",
       "gather: indices f32[5,1] are not integers"},
      {{"f32[4,6]", "s32[5,2]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, "
       "slice_sizes={1,6}",
       "gather: indices s32[5,2] have 2 components, the index map has 1"},
      {{"f32[4,6]", "s32[5,1]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, "
       "slice_sizes={2,6}",
       "gather: dimension 0 of f32[4,6] is dropped, but its slice size is 2"},
      {{"f32[4,6]", "s32[5,1]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, "
       "slice_sizes={1,7}",
       "gather: slice size 7 is out of range for dimension 1 of f32[4,6]"},
      // Slices without elements have none to give, and none to leave out.
      {{"u8[1,0]", "s32[5,1]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,0}",
       "gather: dimension 1 of u8[1,0] is dropped, but its slice size is 0"},
      {{"f32[3,6]", "s32[3,1]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, "
       "slice_sizes={0,6}",
       "gather: dimension 0 of f32[3,6] is dropped, but its slice size is 0"},
      {{"f32[0,6]", "s32[0,1]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, "
       "slice_sizes={0,6}",
       "f32[0,6]"},
      {{"u8[1,0]", "s32[5,1]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,0}",
       "u8[5,0]"},
      // A dimension has one position.
      {{"f32[3,6]", "s32[3,2]"},
       "gather(p0, p1), offset_dims={}, collapsed_slice_dims={1}, start_index_map={0,1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, "
       "slice_sizes={1,1}",
       "gather: dimension 0 is in index map and in operand batching dims"},
      {{"f32[3,6]", "s32[3,1]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, "
       "slice_sizes={1,6}",
       "gather: dimension 0 is in collapsed_slice_dims and in operand batching dims"},
      {{"f32[1,6]", "s32[3,1]"},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={1}, index_vector_dim=1, "
       "slice_sizes={1,6}",
       "gather: index_vector_dim=1 is one of the batching dims {1} of the indices"},
      {{"f32[3,6]", "s32[3,1]", "f32[3]"},
       "scatter(p0, p1, p2), update_window_dims={}, inserted_window_dims={0,1}, "
       "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
       "scatter_indices_batching_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter: dimension 0 is in inserted_window_dims and in operand batching dims"},
      {{"f32[4,6]", "s32[5,1]", "f32[5,6]"},
       "scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, "
       "index_vector_dim=1, to_apply=add",
       "f32[4,6]"},
      {{"f32[4,6]", "s32[5,1]", "f32[4,6]"},
       "scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, "
       "index_vector_dim=1, to_apply=add",
       "scatter: dimension 0 of updates f32[4,6] does not fit indices s32[5,1] into f32[4,6]"},
      {{"f32[4,6]", "s32[5,1]", "f32[5,6]"},
       "scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, "
       "index_vector_dim=1, to_apply=ge",
       "scatter: to_apply ge returns pred[], not f32[]"},
      {{"f32[4,6]", "s32[5,1]", "f64[5,6]"},
       "scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, "
       "index_vector_dim=1, to_apply=add",
       "scatter: updates f64[5,6] are not of the type of f32[4,6]"},
  });
}

TEST(ShapeInferenceTest, Contractions) {
  Check({
      {{"f32[8,16]", "f32[16,4]"},
       "dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       "f32[8,4]"},
      {{"f32[8,16]", "f32[4,4]"},
       "dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       "dot: contracting dimensions differ: dimension 1 of f32[8,16] and dimension 0 of f32[4,4]"},
      {{"f32[2,8,16]", "f32[2,4,16]"},
       "dot(p0, p1), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
       "rhs_contracting_dims={2}",
       "f32[2,8,4]"},
      {{"f32[2,8,16]", "f32[3,4,16]"},
       "dot(p0, p1), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
       "rhs_contracting_dims={2}",
       "dot: batch dimensions differ: dimension 0 of f32[2,8,16] and dimension 0 of f32[3,4,16]"},
      {{"f32[2]", "f32[3]"}, "dot(p0, p1)", "f32[2,3]"},
      {{"bf16[2]", "bf16[2]"},
       "f32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
       "f32[]"},
      {{"s8[2]", "u8[2]"},
       "dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
       "dot: operands differ in element type: s8[2] x u8[2]"},
      {{"f32[2,9,8,3]", "f32[3,2,3,5]"},
       "convolution(p0, p1), window={size=3x2 stride=2x1 pad=1_1x0_1}, dim_labels=b01f_01io->b01f",
       "f32[2,5,8,5]"},
      {{"f32[64,1,28,28]", "f32[32,1,3,3]"},
       "convolution(p0, p1), window={size=3x3}, dim_labels=bf01_oi01->bf01",
       "f32[64,32,26,26]"},
      {{"f32[2,5,6]", "f32[3,2,4]"},
       "convolution(p0, p1), window={size=3 lhs_dilate=2 rhs_dilate=2}, dim_labels=b0f_0io->b0f, "
       "feature_group_count=3",
       "convolution: 4 output features do not divide into 3 groups"},
      {{"f32[2,5,6]", "f32[3,2,6]"},
       "convolution(p0, p1), window={size=3 lhs_dilate=2 rhs_dilate=2}, dim_labels=b0f_0io->b0f, "
       "feature_group_count=3",
       "f32[2,5,6]"},
      {{"f32[2,5,6]", "f32[3,6,4]"},
       "convolution(p0, p1), window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2",
       "f32[1,3,4]"},
      {{"f32[2,6]", "f32[6,4]"}, "convolution(p0, p1), dim_labels=bf_io->bf", "f32[2,4]"},
      {{"f32[2,5,6]", "f32[3,5,4]"},
       "convolution(p0, p1), window={size=3}, dim_labels=b0f_0io->b0f",
       "convolution: input f32[2,5,6] has 6 features in 1 groups, kernel f32[3,5,4] takes 5"},
      {{"f32[2,5,6]", "f32[3,6,4]"},
       "convolution(p0, p1), window={size=2}, dim_labels=b0f_0io->b0f",
       "convolution: window size 2 is not that of kernel f32[3,6,4]"},
      {{"c64[4]"}, "fft(p0), fft_type=IFFT, fft_length={4}", "c64[4]"},
      {{"f32[3,8]"}, "fft(p0), fft_type=RFFT, fft_length={8}", "c64[3,5]"},
      {{"c64[3,5]"}, "fft(p0), fft_type=IRFFT, fft_length={8}", "f32[3,8]"},
      {{"f32[3,0]"}, "fft(p0), fft_type=RFFT, fft_length={0}", "c64[3,0]"},
      {{"c64[3,0]"}, "fft(p0), fft_type=IRFFT, fft_length={0}", "f32[3,0]"},
      {{"c64[3,1]"}, "fft(p0), fft_type=IRFFT, fft_length={0}", "f32[3,0]"},
      {{"c64[3,5]"},
       "fft(p0), fft_type=IRFFT, fft_length={7}",
       "fft: fft_length={7} does not fit c64[3,5]"},
      {{"f32[3,3]"}, "cholesky(p0), lower=true", "f32[3,3]"},
      {{"f32[3,4]"},
       "cholesky(p0)",
       "cholesky: operand f32[3,4] is not a batch of square floating-point or complex matrices"},
      {{"f32[3,3]", "f32[3,2]"}, "triangular-solve(p0, p1), left_side=true", "f32[3,2]"},
      {{"f32[3,3]", "f32[3,2]"},
       "triangular-solve(p0, p1)",
       "triangular-solve: right-hand side f32[3,2] does not fit f32[3,3]"},
  });
}

TEST(ShapeInferenceTest, Regions) {
  Check({
      {{"f32[4,6]", "f32[]"}, "reduce(p0, p1), dimensions={1}, to_apply=add", "f32[4]"},
      {{"f32[4,6]", "f32[]"}, "reduce(p0, p1), dimensions={}, to_apply=add", "f32[4,6]"},
      {{"f32[4,6]", "f32[]"},
       "reduce(p0, p1), dimensions={2}, to_apply=add",
       "reduce: dimension 2 of dimensions={2} is out of range for rank 2"},
      {{"f32[4,6]", "f64[]"},
       "reduce(p0, p1), dimensions={1}, to_apply=add",
       "reduce: initial value f64[] is not a scalar of the type of f32[4,6]"},
      {{"f32[4,6]", "f32[]"},
       "reduce(p0, p1), dimensions={1}, to_apply=ge",
       "reduce: to_apply ge returns pred[], not f32[]"},
      {{"s32[4,6]", "s32[]"},
       "reduce(p0, p1), dimensions={1}, to_apply=add",
       "reduce: parameter 0 of to_apply add is f32[], not s32[]"},
      {{"f32[4,6]", "f32[]"},
       "reduce(p0, p1), dimensions={1}, to_apply=negate",
       "reduce: to_apply negate has 1 parameters, not 2"},
      {{"f32[4,6]", "s32[4,6]", "f32[]", "s32[]"},
       "reduce(p0, p1, p2, p3), dimensions={1}, to_apply=argmax",
       "(f32[4], s32[4])"},
      {{"f32[4,6]", "f32[]"},
       "reduce-window(p0, p1), window={size=2x2 stride=2x2}, to_apply=add",
       "f32[2,3]"},
      {{"f32[4,6]", "f32[]"},
       "reduce-window(p0, p1), window={size=2x2 stride=1x2 pad=1_1x1_1 lhs_dilate=1x2 "
       "rhs_dilate=1x2}, to_apply=add",
       "f32[5,6]"},
      {{"f32[4,6]", "f32[]"},
       "reduce-window(p0, p1), window={size=2}, to_apply=add",
       "reduce-window: window of 1 dimensions for f32[4,6]"},
      {{"f32[4,6]", "f32[]"},
       "reduce-window(p0, p1), window={size=2x2 stride=1x0}, to_apply=add",
       "reduce-window: window dimension of size 2, stride 0, padding 0_0, dilations 1 and 1 is "
       "invalid"},
      {{"f32[4,6]", "f32[2,3]", "f32[]"},
       "select-and-scatter(p0, p1, p2), window={size=2x2 stride=2x2}, select=ge, scatter=add",
       "f32[4,6]"},
      {{"f32[4,6]", "f32[3,3]", "f32[]"},
       "select-and-scatter(p0, p1, p2), window={size=2x2 stride=2x2}, select=ge, scatter=add",
       "select-and-scatter: source f32[3,3] is not what the window makes of f32[4,6]"},
      {{"f32[4,6]", "f32[2,3]", "f32[]"},
       "select-and-scatter(p0, p1, p2), window={size=2x2 stride=2x2}, select=add, scatter=add",
       "select-and-scatter: select add returns f32[], not pred[]"},
      {{"f32[4]"}, "map(p0), dimensions={0}, to_apply=negate", "f32[4]"},
      {{"f32[4]"},
       "map(p0), dimensions={}, to_apply=negate",
       "map: dimensions={} are not all of f32[4] in order"},
      {{"f32[4]", "s32[4]"}, "sort(p0, p1), dimensions={0}, to_apply=by_first", "(f32[4], s32[4])"},
      {{"f32[4]"}, "sort(p0), dimensions={0}, to_apply=ge", "f32[4]"},
      {{"f32[4]"},
       "sort(p0), dimensions={1}, to_apply=ge",
       "sort: dimension 1 is out of range for f32[4]"},
      {{"f32[4]"},
       "sort(p0), dimensions={0}, to_apply=add",
       "sort: to_apply add returns f32[], not pred[]"},
      {{"f32[4,6]"}, "topk(p0), k=2, largest=true", "(f32[4,2], s32[4,2])"},
      {{"f32[4,6]"},
       "topk(p0), k=7",
       "topk: k=7 is out of range for the last dimension of f32[4,6]"},
      {{"(s32[], f32[4])"}, "while(p0), condition=small, body=step", "(s32[], f32[4])"},
      {{"(s32[], f32[4])"},
       "while(p0), condition=step, body=step",
       "while: condition step returns (s32[], f32[4]), not pred[]"},
      {{"(s32[], f32[5])"},
       "while(p0), condition=small, body=step",
       "while: parameter 0 of condition small is (s32[], f32[4]), not (s32[], f32[5])"},
      {{"pred[]", "f32[4]"},
       "conditional(p0, p1, p1), true_computation=vector, false_computation=vector",
       "f32[4]"},
      {{"s32[]", "f32[4]"},
       "conditional(p0, p1, p1, p1), branch_computations={vector, vector, vector}",
       "f32[4]"},
      {{"s32[]", "f32[4]"},
       "conditional(p0, p1), branch_computations={vector, vector}",
       "conditional: 2 branches for 1 arguments"},
      {{"f32[]", "f32[4]"},
       "conditional(p0, p1), branch_computations={vector}",
       "conditional: the first operand must be pred[] or s32[], not f32[]"},
      {{"f32[4]"}, "call(p0), to_apply=vector", "f32[4]"},
      {{"f32[5]"},
       "call(p0), to_apply=vector",
       "call: parameter 0 of callee vector is f32[4], not f32[5]"},
      {{"f32[4]"}, "f32[4] fusion(p0), kind=kLoop, calls=vector", "f32[4]"},
  });
}

TEST(ShapeInferenceTest, RandomNumbersNormalisationAndCollectives) {
  Check({
      {{"u64[2]"},
       "(u64[2], u32[4]) rng-bit-generator(p0), algorithm=rng_philox",
       "(u64[2], u32[4])"},
      {{"u64[2]"},
       "(u64[2], f32[4]) rng-bit-generator(p0), algorithm=rng_philox",
       "rng-bit-generator: the result is (u64[2], bits of integers), not the declared (u64[2], "
       "f32[4])"},
      {{"u32[2]"},
       "(u32[2], u32[4]) rng-bit-generator(p0), algorithm=rng_philox",
       "rng-bit-generator: the state must be u64[2] or u64[3], not u32[2]"},
      {{"f32[]", "f32[]"}, "f32[4] rng(p0, p1), distribution=rng_normal", "f32[4]"},
      {{"f32[2,3,4]", "f32[3]", "f32[3]"},
       "batch-norm-training(p0, p1, p2), epsilon=0.001, feature_index=1",
       "(f32[2,3,4], f32[3], f32[3])"},
      {{"f32[2,3,4]", "f32[4]", "f32[3]"},
       "batch-norm-training(p0, p1, p2), epsilon=0.001, feature_index=1",
       "batch-norm-training: operand 1 is f32[4], not f32[3]"},
      {{"f32[4]"}, "all-reduce(p0), replica_groups={}, to_apply=add", "f32[4]"},
      {{"f32[4]"},
       "all-reduce(p0), replica_groups={}, dimensions={0}, to_apply=add",
       "all-reduce: takes no dimensions, got {0}"},
      {{"f32[4]"},
       "collective-broadcast(p0), replica_groups={}, dimensions={-1}",
       "collective-broadcast: takes no dimensions, got {-1}"},
      {{"f32[4]", "f32[2]"},
       "all-reduce(p0, p1), replica_groups={}, to_apply=add",
       "(f32[4], f32[2])"},
      {{}, "replica-id()", "u32[]"},
      {{"f32[4]"}, "f32[8] custom-call(p0), custom_call_target=\"t\"", "f32[8]"},
      {{"f32[4]"},
       "custom-call(p0), custom_call_target=\"t\"",
       "custom-call: the result's shape must be declared"},
  });
}

TEST(ShapeInferenceTest, ResultsThatNoMemoryHoldsAreRefused) {
  Check({
      {{"f32[1000000]", "f32[1000000]"},
       "dot(p0, p1)",
       "dot: result f32[1000000,1000000] is larger than 1099511627776 bytes"},
      {{"f32[]"},
       "f32[1000000,1000000] broadcast(p0), dimensions={}",
       "f32[1000000,1000000] is larger than 1099511627776 bytes"},
      {{"f32[4]", "f32[]"},
       "pad(p0, p1), padding=0_0_9000000000000000000",
       "pad: padding 0_0_9000000000000000000 of dimension 0 of f32[4] leaves no valid size"},
  });
}

TEST(ShapeInferenceTest, CalleesThatAreNotKnownYetAreNotChecked) {
  const Shape x(DType::kF32, {4, 6}), init(DType::kF32);
  const Shape* operands[] = {&x, &init};
  const auto shape = InferShape(Opcode::kReduce, operands, DimensionsAttrs{{0}});
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->ToString(), "f32[6]");
}

TEST(ShapeInferenceTest, AttributesOfAnotherOpcodeAreRefused) {
  const Shape x(DType::kF32, {4, 6});
  const Shape* operands[] = {&x};
  EXPECT_EQ(ErrorOf(InferShape(Opcode::kTranspose, operands, NoAttrs{}).status()),
            "transpose: has the attributes of another opcode");
}

TEST(ShapeInferenceTest, WhatOnlyAProgramCanLeaveOutIsNamed) {
  EXPECT_EQ(ErrorOf(InferShape(Opcode::kConstant, {}, ConstantAttrs{}).status()),
            "constant: has no value");
  Module module("m");
  Computation* callee = module.AddComputation("callee");
  const Shape x(DType::kF32);
  callee->AddParameter(1, x);
  const Shape* operands[] = {&x, &x};
  EXPECT_EQ(ErrorOf(InferShape(Opcode::kCall, operands, NoAttrs{}, {&callee, 1}, &x).status()),
            "call: callee callee has no parameter 0");
}

TEST(ShapeInferenceTest, InferredShapesHaveNoLayout) {
  const Shape x = Shape(DType::kF32, {4, 6}).WithLayout({0, 1});
  const Shape* operands[] = {&x};
  EXPECT_FALSE(InferShape(Opcode::kNegate, operands, NoAttrs{})->has_layout());
  // A declared one keeps its own.
  EXPECT_EQ(*InferShape(Opcode::kNegate, operands, NoAttrs{}, {}, &x), x);
}

TEST(WindowedSizeTest, CountsWindowPositions) {
  EXPECT_EQ(WindowedSize(5, {.size = 2}), 4);
  EXPECT_EQ(WindowedSize(5, {.size = 2, .stride = 2}), 2);
  EXPECT_EQ(WindowedSize(5, {.size = 3, .pad_low = 1, .pad_high = 1}), 5);
  EXPECT_EQ(WindowedSize(3, {.size = 2, .base_dilation = 3}), 6);
  EXPECT_EQ(WindowedSize(7, {.size = 3, .window_dilation = 2}), 3);
  EXPECT_EQ(WindowedSize(2, {.size = 3}), 0);
  EXPECT_EQ(WindowedSize(0, {.size = 1}), 0);
  EXPECT_EQ(WindowedSize(3, {.size = 2, .pad_low = -1}), 1);
}

// --- properties over the table of opcodes

TEST(ShapeInferenceTest, EveryElementwiseOpcodeKeepsDimensions) {
  for (int i = 0; i < NumOpcodes(); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const OpcodeTraits& traits = Traits(opcode);
    if (!traits.elementwise || traits.attrs != AttrsKind::kNone) continue;
    SCOPED_TRACE(traits.text);
    for (DType dtype : {DType::kF32, DType::kS32, DType::kU8, DType::kC64, DType::kPred}) {
      const Shape x(dtype, {2, 3}), pred(DType::kPred, {2, 3});
      std::vector<const Shape*> operands(static_cast<std::size_t>(traits.arity), &x);
      if (opcode == Opcode::kSelect) operands[0] = &pred;
      const bool declared = opcode == Opcode::kConvert || opcode == Opcode::kStochasticConvert;
      const auto shape = InferShape(opcode, operands, NoAttrs{}, {}, declared ? &x : nullptr);
      if (opcode == Opcode::kStochasticConvert) continue;  // wants unsigned random bits
      EXPECT_EQ(shape.ok(), Accepts(opcode, dtype)) << x.ToString() << " " << shape.status();
      if (shape.ok()) {
        EXPECT_TRUE(SameDims(*shape, x));
      }
    }
  }
}

TEST(ShapeInferenceTest, NoOpcodeAcceptsOperandsItDoesNotTake) {
  for (int i = 0; i < NumOpcodes(); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const OpcodeTraits& traits = Traits(opcode);
    if (traits.arity < 0) continue;
    const Shape x(DType::kF32, {2});
    const std::vector<const Shape*> operands(static_cast<std::size_t>(traits.arity) + 1, &x);
    const auto shape = InferShape(opcode, operands, NoAttrs{}, {}, &x);
    EXPECT_NE(ErrorOf(shape.status()).find(": takes "), std::string::npos) << traits.text;
  }
}

}  // namespace
}  // namespace lazuli::hlo
