// Tensor: handles, creation, reading, conversion, in-place ops, names.
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;

std::vector<float> FloatsIn(const Tensor& tensor) { return tensor.to_vector<float>(); }

TEST(TensorTest, CopiesAreHandlesOfOneTensor) {
  Tensor x = tensor({1.f, 2.f});
  const Tensor same = x, other = tensor({1.f, 2.f});
  EXPECT_TRUE(x.is_same(same));
  EXPECT_FALSE(x.is_same(other));
  x.add_(1.0);
  EXPECT_THAT(FloatsIn(same), ElementsAre(2, 3));
  Tensor moved = std::move(x);
  EXPECT_TRUE(moved.is_same(same));
  EXPECT_FALSE(Tensor().defined());
}

TEST(TensorTest, KnowsItsShapeWithoutRunningAnything) {
  const Tensor x = zeros({2, 3, 4}, kFloat64);
  const std::int64_t runs = metrics::counter("UncachedCompile") + metrics::counter("CachedCompile");
  const Tensor y = x.sum({1});
  EXPECT_EQ(y.sizes(), (Dims{2, 4}));
  EXPECT_EQ(y.dim(), 2);
  EXPECT_EQ(y.size(-1), 4);
  EXPECT_EQ(y.numel(), 8);
  EXPECT_EQ(y.dtype(), kFloat64);
  EXPECT_EQ(y.device(), Device());
  EXPECT_EQ(metrics::counter("UncachedCompile") + metrics::counter("CachedCompile"), runs);
}

TEST(TensorTest, EveryWayToMakeOneGivesTheSameElements) {
  const std::vector<float> values{1, 2, 3, 4};
  EXPECT_EQ(FloatsIn(tensor({{1.f, 2.f}, {3.f, 4.f}})), values);
  EXPECT_EQ(FloatsIn(tensor(values, {2, 2})), values);
  EXPECT_EQ(FloatsIn(from_data(values.data(), kFloat32, {4})), values);
  EXPECT_EQ(FloatsIn(arange(5).to(kFloat32) - 0.0), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(FloatsIn(full({2}, 2.5)), (std::vector<float>{2.5, 2.5}));
  EXPECT_EQ(FloatsIn(eye(2)), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(FloatsIn(ones_like(zeros({2}))), (std::vector<float>{1, 1}));
}

TEST(TensorTest, DataIsCopiedWhenItIsGiven) {
  std::vector<float> values{1, 2};
  const Tensor x = tensor(values, {2});
  values[0] = 100;
  EXPECT_THAT(FloatsIn(x), ElementsAre(1, 2));
}

TEST(TensorTest, ItemConvertsAndSaturates) {
  EXPECT_EQ(tensor({2.9f}).item<int>(), 2);
  EXPECT_EQ(tensor({-1.5f}).item(), -1.5);
  EXPECT_TRUE(tensor({0.5f}).item<bool>());
  const std::int64_t large = (std::int64_t{1} << 62) + 1;
  EXPECT_EQ(tensor<std::int64_t>({large}).item<std::int64_t>(), large);
  EXPECT_EQ(tensor({std::numeric_limits<float>::infinity()}).item<std::int64_t>(),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(tensor({std::nanf("")}).item<std::int64_t>(), 0);
}

TEST(TensorTest, ReadsBoolsAndPrints) {
  EXPECT_EQ((tensor({1.f, 3.f}) > 2.0).to_vector<bool>(), (std::vector<bool>{false, true}));
  std::ostringstream out;
  out << tensor({1.f, 2.5f});
  EXPECT_EQ(out.str(), "f32[2] {1, 2.5}");
}

TEST(TensorTest, DtypesPromoteAsNumbersAndTensorsDo) {
  const Tensor i = tensor<std::int32_t>({1, 2}), f = tensor({0.5f, 0.5f});
  EXPECT_EQ((i + 1).dtype(), kInt32);
  EXPECT_EQ((i + 1.5).dtype(), kFloat32);
  EXPECT_EQ((i / 2).dtype(), kFloat32);
  EXPECT_EQ((i + f).dtype(), kFloat32);
  EXPECT_EQ((i == 2).dtype(), kBool);
  EXPECT_THAT(FloatsIn(i / 2), ElementsAre(0.5, 1));
  EXPECT_THAT(FloatsIn(1 - f), ElementsAre(0.5, 0.5));
  EXPECT_THAT(FloatsIn(f.to(kFloat64).to(kFloat32)), ElementsAre(0.5, 0.5));
}

TEST(TensorTest, InPlaceOpsWriteWhatIsShared) {
  Tensor x = tensor({1.f, 2.f});
  const Tensor alias = x.detach(), copy = x.clone();
  x.add_(tensor({10.f, 20.f})).mul_(2.0).sub_(tensor({1.f, 1.f}), 2.0).div_(4.0);
  EXPECT_THAT(FloatsIn(x), ElementsAre(5, 10.5));
  EXPECT_THAT(FloatsIn(alias), ElementsAre(5, 10.5));
  EXPECT_THAT(FloatsIn(copy), ElementsAre(1, 2));
  x.copy_(tensor<std::int64_t>({7}));
  EXPECT_THAT(FloatsIn(alias), ElementsAre(7, 7));
  x.zero_();
  EXPECT_THAT(FloatsIn(alias), ElementsAre(0, 0));
  x.fill_(3);
  EXPECT_THAT(FloatsIn(alias), ElementsAre(3, 3));
}

TEST(TensorTest, SetDataReplacesDtypeAndElements) {
  Tensor x = tensor({1.f, 2.f});
  const Tensor held = x;
  x.set_data(tensor<std::int32_t>({4, 5, 6}));
  EXPECT_EQ(held.dtype(), kInt32);
  EXPECT_EQ(held.sizes(), (Dims{3}));
}

TEST(TensorTest, MovesBetweenDevicesAndBack) {
  const Tensor x = tensor({1.f, 2.f}).to(Device("interpreter:0"));
  EXPECT_EQ(x.device().name(), "interpreter:0");
  EXPECT_THAT(FloatsIn((x * 2.0).to(Device("cpu:0"))), ElementsAre(2, 4));
  EXPECT_TRUE(x.is_same(x.to(Device("interpreter:0"))));
}

TEST(TensorTest, OneScalarIsOneSlotAndBareNumbersAreFreshOnes) {
  const Tensor x = tensor({1.f, 2.f});
  const Scalar rate(0.5);
  auto parameters = [] {
    const std::string hlo = debug::last_hlo();
    int count = 0;
    for (std::size_t at = 0; (at = hlo.find(" parameter(", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const Tensor a = x * rate, b = x + rate;
  sync(/*wait=*/true);
  EXPECT_EQ(parameters(), 2);
  const Tensor c = x * 0.5, d = x + 0.5;
  sync(/*wait=*/true);
  EXPECT_EQ(parameters(), 3);
}

TEST(TensorTest, NamesReachTheProgram) {
  // Of dims that no other test has: names are no part of a program's key, so a program that another
  // test compiled would have that test's.
  Tensor w = ones({3, 1, 7, 1});
  sync(/*wait=*/true);
  EXPECT_EQ(w.name(), "");
  w.set_name("fc.weight");
  EXPECT_EQ(w.name(), "fc.weight");
  const Tensor y = tanh(w);
  sync(/*wait=*/true);
  EXPECT_NE(debug::last_hlo().find("fc.weight"), std::string::npos);
}

TEST(TensorTest, GradientsAreReadSetAndDropped) {
  Tensor w = tensor({1.f, 2.f}).set_requires_grad(true);
  EXPECT_FALSE(w.grad().defined());
  (w * w).sum().backward();
  EXPECT_THAT(FloatsIn(w.grad()), ElementsAre(2, 4));
  w.set_grad(tensor({7.f, 8.f}));
  EXPECT_THAT(FloatsIn(w.grad()), ElementsAre(7, 8));
  EXPECT_ERROR(kInvalidArgument, "set_grad: the gradient is f32[3], the tensor f32[2]",
               w.set_grad(zeros({3})));
  w.set_grad({});
  EXPECT_FALSE(w.grad().defined());
  const NoGrad off;
  EXPECT_FALSE((w * w).requires_grad());
}

}  // namespace
}  // namespace lazuli
