// A program of its own operator new: shapes-only building must not allocate once it has warmed up.
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "ir/support/status.h"
#include "lowering/builder/builder.h"

namespace {
thread_local int64_t allocations = 0;

void* Allocate(std::size_t size) {
  ++allocations;
  void* p = std::malloc(size == 0 ? 1 : size);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
}  // namespace

// NOLINTBEGIN(misc-new-delete-overloads)
void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
// NOLINTEND(misc-new-delete-overloads)

namespace lazuli::lowering {
namespace {

// What the ops of a convolutional network's training step ask of the builder.
void BuildOnce(Builder& b) {
  b.Reset();
  const Op x = b.Parameter(0, Shape(DType::kF32, {64, 1, 28, 28}));
  const Op kernel = b.Parameter(1, Shape(DType::kF32, {32, 1, 3, 3}));
  hlo::ConvolutionAttrs conv;
  conv.window = {{.size = 3}, {.size = 3}};
  conv.dim_labels.input_spatial = conv.dim_labels.kernel_spatial =
      conv.dim_labels.output_spatial = {2, 3};
  conv.dim_labels.kernel_input_feature = 1;
  conv.dim_labels.kernel_output_feature = 0;
  const Op features = b.Convolution(x, kernel, conv);
  const auto [sum, bias] =
      b.BroadcastTogether(features, b.Parameter(2, Shape(DType::kF32, {32, 1, 1})));
  const Op biased = b.Plus(sum, bias);
  const Op relu = b.Maximum(biased, b.ZerosLike(biased));
  const hlo::Window window = {{}, {}, {.size = 2, .stride = 2}, {.size = 2, .stride = 2}};
  const Op pooled = b.ReduceWindow(Opcode::kMaximum, relu, window);
  b.SelectAndScatter(relu, pooled, window);
  const Op flat = b.Reshape(pooled, {64, 32 * 13 * 13});
  hlo::DotAttrs dot;
  dot.lhs_contracting_dims = dot.rhs_contracting_dims = {1};
  const Op logits = b.Dot(flat, b.Parameter(3, Shape(DType::kF32, {10, 32 * 13 * 13})), dot);
  const Op max = b.Reduce(Opcode::kMaximum, logits, {1});
  const Op shifted = b.Minus(logits, b.Broadcast(max, {64, 10}, {0}));
  const Op mask = b.Compare(hlo::ComparisonDirection::kEq, b.Iota(Shape(DType::kS64, {64, 10}), 1),
                            b.Broadcast(b.Parameter(4, Shape(DType::kS64, {64})), {64, 10}, {0}));
  b.Reduce(Opcode::kAdd, b.Select(mask, shifted, b.ZerosLike(shifted)), {0, 1});
  b.Convert(b.Transpose(b.Slice(logits, {0, 0}, {32, 10}, {1, 1}), {1, 0}), DType::kF64);
  b.Concatenate({logits, logits}, 0);
  b.Pad(logits, b.Scalar(DType::kF32, 0), {1, 0}, {0, 1}, {0, 0});
}

TEST(ShapesOnlyTest, AllocatesNothingAfterWarmUp) {
  Builder b(Builder::Mode::kShapesOnly);
  BuildOnce(b);
  ASSERT_TRUE(b.status().ok()) << Message(b.status());
  const int64_t before = allocations;
  EXPECT_GT(before, 0);
  for (int i = 0; i < 100; ++i) BuildOnce(b);
  EXPECT_EQ(allocations - before, 0);
  EXPECT_TRUE(b.status().ok());
}

}  // namespace
}  // namespace lazuli::lowering
