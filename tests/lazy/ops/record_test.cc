// Recording: what is refused, with which words, and that nothing is left behind then.

#include "lazy/ops/core/record.h"

#include <set>

#include "lazy/ops/op_list.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;

TEST(RecordTest, ShapesThatDoNotFitAreRefusedAtTheCall) {
  const Tensor x = Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), y = Of<float>({2}, {1, 2});
  const Tensor matrix = Of<float>({2, 2}, {1, 2, 3, 4}), number = Of<float>({}, {1});
  EXPECT_STATUS(kInvalidArgument, "add: shapes f32[2,3] and f32[2] do not broadcast", x + y);
  EXPECT_STATUS(kInvalidArgument, "eq: shapes f32[2,3] and f32[2] do not broadcast", Eq(x, y));
  EXPECT_STATUS(kInvalidArgument, "matmul: inner dimensions differ: f32[2,3] x f32[2,2]",
                Matmul(x, matrix));
  EXPECT_STATUS(kInvalidArgument, "matmul: inner dimensions differ: f32[2,3] x f32[2]",
                Matmul(x, y));
  EXPECT_STATUS(kInvalidArgument, "matmul: operands must have rank 1 or more: f32[] x f32[2]",
                Matmul(number, y));
}

TEST(RecordTest, DevicesAndUndefinedTensorsAreRefused) {
  const Tensor x = Floats({1, 2}), other = Of<float>({2}, {1, 2}, /*ordinal=*/1);
  EXPECT_STATUS(
      kInvalidArgument,
      "mul: operands are on different devices: interpreter:0 and interpreter:1; move one with to()",
      x * other);
  EXPECT_STATUS(kInvalidArgument, "sub: operand 1 is an undefined tensor", x - Tensor());
  EXPECT_STATUS(kInvalidArgument, "exp: operand 0 is an undefined tensor", Exp(Tensor()));
  EXPECT_STATUS(kInvalidArgument, "matmul: operand 1 is an undefined tensor", Matmul(x, Tensor()));
}

TEST(RecordTest, DtypesThatDoNotFitAreRefused) {
  const Tensor x = Floats({1, 2}), i = Of<int32_t>({2}, {1, 2});
  const Tensor wide = Of<uint64_t>({2}, {1, 2});
  EXPECT_STATUS(kInvalidArgument, "bitwise_and: takes pred or integers, not f32", BitwiseAnd(x, x));
  EXPECT_STATUS(kInvalidArgument,
                "add: dtypes of s32[2] and u64[2] have no common type; convert one with to()",
                i + wide);
  EXPECT_STATUS(kInvalidArgument, "mean: takes floats, not s32[2]; convert with to()", Mean(i));
  EXPECT_STATUS(kInvalidArgument, "where: condition must be pred, is s32[2]", Where(i, x, x));
  EXPECT_STATUS(kInvalidArgument, "dropout: takes floats, not s32[2]", Dropout(i, 0.5));
  EXPECT_STATUS(kInvalidArgument,
                "mse_loss: takes floats, not s32[2] and s32[2]; convert with to()",
                MseLoss(i, i, Reduction::kSum));
  EXPECT_STATUS(kInvalidArgument, "rand: makes f16, bf16, f32 or f64, not s32",
                Rand({2}, DType::kS32, TestDevice()));
}

TEST(RecordTest, ArgumentsThatDoNotFitAreRefused) {
  const Tensor x = Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_STATUS(kOutOfRange, "sum: dim 2 is out of range for rank 2", Sum(x, {2}));
  EXPECT_STATUS(kOutOfRange, "sum: dim -3 is out of range for rank 2", Sum(x, {-3}));
  EXPECT_STATUS(kInvalidArgument, "sum: a dim is named twice in (0, -2)", Sum(x, {0, -2}));
  EXPECT_STATUS(kOutOfRange, "softmax: dim 5 is out of range for rank 2", Softmax(x, 5));
  EXPECT_STATUS(kInvalidArgument, "reshape: f32[2,3] has 6 elements, which do not fit dims (4, -1)",
                Reshape(x, {4, -1}));
  EXPECT_STATUS(kInvalidArgument, "reshape: dims (-1, -1) have more than one unknown",
                Reshape(x, {-1, -1}));
  EXPECT_STATUS(kInvalidArgument, "permute: dims (0, 0) are not a permutation of f32[2,3]",
                Permute(x, {0, 0}));
  EXPECT_STATUS(kOutOfRange, "narrow: [2, 4) is out of range for dim 1 of f32[2,3]",
                Narrow(x, 1, 2, 2));
  EXPECT_STATUS(kInvalidArgument, "flatten: start_dim 1 comes after end_dim 0", Flatten(x, 1, 0));
  EXPECT_STATUS(kInvalidArgument, "one_hot: classes must be at least 1, is 0",
                OneHot(Of<int32_t>({1}, {0}), 0, DType::kF32));
  EXPECT_STATUS(kInvalidArgument, "dropout: p must be in [0, 1], is 1.5", Dropout(x, 1.5));
  EXPECT_STATUS(kInvalidArgument, "cat: needs at least one tensor", Cat({}, 0));
  EXPECT_STATUS(kInvalidArgument, "cat: f32[2,3] and f32[2] differ in more than dim 0",
                Cat({x, Floats({1, 2})}, 0));
}

TEST(RecordTest, NumbersTakeTheTypeBesideThem) {
  EXPECT_EQ(Number(2.0).TypeBeside(DType::kBF16), DType::kBF16);
  EXPECT_EQ(Number(2.0).TypeBeside(DType::kS32), DType::kF32);
  EXPECT_EQ(Number(2).TypeBeside(DType::kU8), DType::kU8);
  EXPECT_EQ(Number(2).TypeBeside(DType::kPred), DType::kS64);
  EXPECT_EQ(Number(true).TypeBeside(DType::kS8), DType::kS8);
  EXPECT_EQ(Number(2.0).DefaultType(), DType::kF32);
  EXPECT_EQ(Number(2).DefaultType(), DType::kS64);
  EXPECT_EQ(Number(true).DefaultType(), DType::kPred);
}

template <class T>
T CellOf(const Number& number, DType dtype) {
  const uint64_t cell = static_cast<const ScalarNode&>(*number.Slot(dtype).node).cell();
  T value;
  std::memcpy(&value, &cell, sizeof value);
  return value;
}

TEST(RecordTest, NumbersAreStoredExactlyOrRefused) {
  EXPECT_EQ(CellOf<float>(0.1, DType::kF32), 0.1f);
  EXPECT_EQ(CellOf<double>(0.1, DType::kF64), 0.1);
  EXPECT_EQ(CellOf<int64_t>(Number((int64_t{1} << 62) + 1), DType::kS64), (int64_t{1} << 62) + 1);
  EXPECT_EQ(CellOf<int8_t>(-128, DType::kS8), -128);
  EXPECT_EQ(CellOf<uint8_t>(-1, DType::kU8), 255);
  EXPECT_EQ(CellOf<int32_t>(2.9, DType::kS32), 2);
  EXPECT_EQ(CellOf<bool>(0.5, DType::kPred), true);
  EXPECT_STATUS(kInvalidArgument, "the number 300 does not fit u8", Number(300).Slot(DType::kU8));
  EXPECT_STATUS(kInvalidArgument, "the number 128 does not fit s8", Number(128).Slot(DType::kS8));
  EXPECT_STATUS(kInvalidArgument, "the number 1e+30 does not fit s64",
                Number(1e30).Slot(DType::kS64));
  EXPECT_STATUS(kInvalidArgument, "the number nan does not fit s32",
                Number(std::nan("")).Slot(DType::kS32));
  EXPECT_STATUS(kInvalidArgument, "the number (0+1j) does not fit f32",
                Number(std::complex<double>(0, 1)).Slot(DType::kF32));
  EXPECT_EQ(Number(std::complex<double>(0, 1)).Slot(DType::kC128).shape(), Shape(DType::kC128));
}

TEST(RecordTest, NodesHaveTheLineOfTheOutermostScope) {
  const Tensor x = Floats({1, 2});
  const SiteId site = ir::InternSite("train.cc", "main", 41);
  const SiteScope outer(site);
  const SiteScope inner(ir::InternSite("layers.cc", "Linear", 3));
  const Tensor y = Softmax(x, 0);
  const Context::Lock lock(Context::Current());
  EXPECT_EQ(Context::Current().PendingValue(y.storage()).node->site(), site);
}

TEST(RecordTest, InPlaceKeepsShapeAndType) {
  const Tensor x = Floats({1, 2});
  EXPECT_STATUS(
      kInvalidArgument,
      "copy_: the result f32[3] does not fit the tensor f32[2], which is changed in place",
      Assign("copy_", x, Floats({1, 2, 3})));
  EXPECT_THAT(Values(x), ElementsAre(1, 2));
}

TEST(OpListTest, NamesAreUniqueAndOpsDocumented) {
  std::set<std::string_view> names;
  AllOps::ForEach([&]<class T>() {
    const std::string_view name = std::is_same_v<T, PowNumberOp>    ? "pow(number)"
                                  : std::is_same_v<T, PowIntegerOp> ? "pow(integer)"
                                                                    : T::kName;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_THAT(std::string(T::kDumpName),
                testing::AnyOf(testing::StartsWith("aten::"), testing::StartsWith("prim::"),
                               testing::StartsWith("xla::")));
    EXPECT_FALSE(T::kDoc.text.empty()) << T::kName;
    EXPECT_EQ(T::kDoc.text.back(), '.') << T::kName;
  });
  EXPECT_EQ(names.size(), AllOps::kSize);
}

// Keys tell ops apart by a hash of their types' names.
TEST(OpListTest, NoTwoOpsHaveTheSameIdInKeys) {
  std::set<uint64_t> ids;
  AllOps::ForEach([&]<class T>() { ids.insert(ir::StableTypeId<T>()); });
  EXPECT_EQ(ids.size(), AllOps::kSize);
}

}  // namespace
}  // namespace lazuli::lazy
