// What training says to mistakes: one sentence with the user's line.
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/training/train.h"

namespace lazuli::test {
namespace {

using testing::HasSubstr;

template <class F>
std::string MessageOf(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(BadInputTest, ALabelOutOfRangeFailsTheRunAtTheLineOfTheLoss) {
  for (const std::int64_t label : {10, -1}) {
    const Tensor logits = ones({2, 10}), target = tensor<std::int64_t>({3, label});
    std::string place;
    Tensor loss;
    place = Place(), loss = nn::functional::cross_entropy(logits, target);
    const std::string message = MessageOf([&] { loss.item(); });
    EXPECT_THAT(message, HasSubstr("cross_entropy"));
    EXPECT_THAT(message, HasSubstr(std::to_string(label)));
    EXPECT_THAT(message, HasSubstr("(" + place + ")"));
    // What came of it stays an error; what comes after is not touched.
    EXPECT_NE(MessageOf([&] { loss.item(); }), "nothing was thrown");
    EXPECT_EQ(sum(ones({3})).item(), 3);
  }
}

TEST(BadInputTest, AFailedStepDoesNotEndTraining) {
  manual_seed(1);
  nn::Linear net(4, 3);
  const Tensor x = ones({2, 4});
  mark_step();  // what is computed in a failed run has failed with it; the parameters are not
  EXPECT_NE(MessageOf([&] {
              nn::functional::cross_entropy(net(x), tensor<std::int64_t>({0, 3})).item();
            }),
            "nothing was thrown");
  EXPECT_GT(nn::functional::cross_entropy(net(x), tensor<std::int64_t>({0, 2})).item(), 0);
}

TEST(BadInputTest, AWrongShapeIsFoundWhereTheLayerIsCalled) {
  const nn::Linear fc1(9216, 128);
  EXPECT_ERROR(kInvalidArgument,
               "linear: the last dim of x must be 9216, as weight is f32[128,9216], but x is "
               "f32[64,12544]",
               fc1(ones({64, 12544})));
  const std::string message = MessageOf([] { nn::Conv2d(3, 8, 3)(ones({2, 1, 28, 28})); });
  EXPECT_THAT(message, HasSubstr("f32[2,1,28,28]"));
  EXPECT_THAT(message, HasSubstr("(bad_input_test.cc:"));
}

TEST(BadInputTest, NothingIsRecordedByACallThatFails) {
  mark_step();
  const std::int64_t recorded = metrics::counter("graph.nodes_recorded");
  const Tensor x = tensor({1.0f, 2.0f});
  MessageOf([&] { matmul(x, tensor({1.0f, 2.0f, 3.0f})); });
  EXPECT_EQ(metrics::counter("graph.nodes_recorded"), recorded);
}

TEST(BadInputTest, LossesOfWrongShapesAndTypes) {
  const Tensor logits = ones({2, 10});
  EXPECT_THAT(
      MessageOf([&] { nn::functional::cross_entropy(logits, tensor<std::int64_t>({1, 2, 3})); }),
      testing::AllOf(HasSubstr("cross_entropy"), HasSubstr("f32[2,10]"), HasSubstr("s64[3]"),
                     HasSubstr("(bad_input_test.cc:")));
  EXPECT_THAT(MessageOf([&] { nn::functional::cross_entropy(logits, ones({2})); }),
              testing::AllOf(HasSubstr("cross_entropy"), HasSubstr("f32[2]")));
}

TEST(BadInputTest, BackwardOfNoScalarAndBackwardTwiceSayWhatToDo) {
  const Tensor x = tensor({1.0f, 2.0f}).set_requires_grad(true);
  EXPECT_THAT(MessageOf([&] { (x * 2.0).backward(); }),
              testing::AllOf(HasSubstr("backward"), HasSubstr("f32[2]"), HasSubstr("gradient"),
                             HasSubstr("(bad_input_test.cc:")));
  const Tensor y = sum(x * x);
  y.backward();
  EXPECT_THAT(MessageOf([&] { y.backward(); }),
              testing::AllOf(HasSubstr("retain_graph"), HasSubstr("(bad_input_test.cc:")));
  EXPECT_THAT(MessageOf([&] { sum(ones({2})).backward(); }),
              testing::AllOf(HasSubstr("backward"), HasSubstr("(bad_input_test.cc:")));
}

TEST(BadInputTest, AnUnknownDeviceNamesThoseThatExist) {
  EXPECT_THAT(MessageOf([] { Device("tpu"); }),
              testing::AllOf(HasSubstr("tpu"), HasSubstr("cpu"), HasSubstr("interpreter")));
}

}  // namespace
}  // namespace lazuli::test
