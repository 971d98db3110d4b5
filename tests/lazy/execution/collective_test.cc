// Collectives between devices of one process: values, gradients, errors, and that one compile serves
// all devices.
#include "lazy/ops/program/collective.h"

#include "lazy/autograd/backward.h"
#include "tests/lazy/execution/each_client.h"

namespace lazuli::lazy {
namespace {

using testing::HasSubstr;

class CollectiveRunTest : public OnEachClient {
 protected:
  static Tensor On(int ordinal, std::initializer_list<float> values) {
    return Of<float>({static_cast<int64_t>(values.size())}, values, ordinal);
  }
  static std::string ErrorOf(const Tensor& x) {
    try {
      (void)ToLiteral(x);
    } catch (const StatusError& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_P(CollectiveRunTest, TwoDevicesAllReduceWithOneCompile) {
  const Work work;
  for (int step = 1; step <= 3; ++step) {
    const auto f = static_cast<float>(step);
    const Tensor a = AllReduce(On(0, {f, 2}), "sum", {}),
                 b = AllReduce(On(1, {10, 20 * f}), "sum", {});
    ASSERT_TRUE(Sync().ok());
    EXPECT_EQ(Values(a), (std::vector<float>{f + 10, 2 + 20 * f}));
    EXPECT_EQ(Values(b), Values(a));
    EXPECT_EQ(a.device().ordinal, 0);
    EXPECT_EQ(b.device().ordinal, 1);
  }
  EXPECT_EQ(work.compiles(), 1);
  EXPECT_EQ(work.runs(), 6);
}

TEST_P(CollectiveRunTest, AProgramWithoutCollectivesIsCompiledOnceForBothDevices) {
  const Work work;
  const Tensor a = Add(On(0, {1, 2}), Slot(3)), b = Add(On(1, {5, 6}), Slot(7));
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(Values(a), (std::vector<float>{4, 5}));
  EXPECT_EQ(Values(b), (std::vector<float>{12, 13}));
  EXPECT_EQ(b.device().ordinal, 1);
  EXPECT_EQ(work.compiles(), 1);
}

TEST_P(CollectiveRunTest, APermuteSendsToAnotherDevice) {
  const int64_t zero[] = {0}, one[] = {1};
  const Tensor a = CollectivePermute(On(0, {1, 2}), zero, one),
               b = CollectivePermute(On(1, {3, 4}), zero, one);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(Values(a), (std::vector<float>{0, 0}));
  EXPECT_EQ(Values(b), (std::vector<float>{1, 2}));
}

TEST_P(CollectiveRunTest, DevicesMayHaveDifferentPrograms) {
  const Tensor a = AllReduce(On(0, {1, 2}), "sum", {}) * On(0, {2, 2}),
               b = AllReduce(-On(1, {3, 4}), "sum", {});
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(Values(a), (std::vector<float>{-4, -4}));
  EXPECT_EQ(Values(b), (std::vector<float>{-2, -2}));
}

TEST_P(CollectiveRunTest, DevicesThatComeWithDifferentCollectivesAreToldBoth) {
  const Tensor a = AllReduce(On(0, {1, 2}), "sum", {}), b = AllReduce(On(1, {3, 4}), "max", {});
  (void)Sync();
  EXPECT_THAT(ErrorOf(a), HasSubstr("one device is at all-reduce %"));
  EXPECT_THAT(ErrorOf(b), HasSubstr("f32[2] in the order {0,1}, another at all-reduce %"));
  const Tensor c = AllReduce(On(0, {1, 2}), "max", {}), d = AllReduce(On(1, {3, 4}), "max", {});
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(Values(c), (std::vector<float>{3, 4}));
  EXPECT_EQ(Values(d), (std::vector<float>{3, 4}));
}

TEST_P(CollectiveRunTest, GradientsCrossDevices) {
  const Tensor x0 = WithGrad(On(0, {1, 2})), x1 = WithGrad(On(1, {3, 5}));
  const Tensor loss0 = Sum(AllReduce(x0, "sum", {}) * On(0, {1, 10})),
               loss1 = Sum(AllReduce(x1, "sum", {}) * On(1, {100, 1000}));
  Backward(loss0, {}, {});
  Backward(loss1, {}, {});
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(Values(GradOf(x0)), (std::vector<float>{101, 1010}));
  EXPECT_EQ(Values(GradOf(x1)), (std::vector<float>{101, 1010}));
}

// What a device was asked for while the others were missing does not count for those who come later.
TEST_P(CollectiveRunTest, ADeviceThatIsAloneIsAnErrorAndTheNextStepIsRight) {
  ASSERT_TRUE(ir::SetFlag("LAZULI_COLLECTIVE_TIMEOUT", "1").ok());
  const Tensor alone = AllReduce(On(1, {1, 2}), "sum", {});
  EXPECT_FALSE(Sync().ok());
  EXPECT_THAT(ErrorOf(alone), HasSubstr(std::string(GetParam()) +
                                        ":0 has not come within 1 s (LAZULI_COLLECTIVE_TIMEOUT)"));
  ASSERT_TRUE(ir::SetFlag("LAZULI_COLLECTIVE_TIMEOUT", "60").ok());
  const Tensor a = AllReduce(On(0, {1, 2}), "sum", {}), b = AllReduce(On(1, {3, 4}), "sum", {});
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(Values(a), (std::vector<float>{4, 6}));
  EXPECT_EQ(Values(b), (std::vector<float>{4, 6}));
}

LAZULI_ON_EACH_CLIENT(CollectiveRunTest);

}  // namespace
}  // namespace lazuli::lazy
