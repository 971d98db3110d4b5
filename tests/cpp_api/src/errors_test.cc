// Mistakes as a user of the public API meets them: the words, the user's own line, and that nothing
// was recorded or changed.
#include <functional>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string MessageOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

class ErrorsTest : public testing::Test {
 protected:
  const Tensor x_ = ones({2, 3}), y_ = ones({2}), i_ = zeros({2, 3}, kInt64);
};

TEST_F(ErrorsTest, ShapesThatDoNotFitAreRefusedAtTheCall) {
  EXPECT_REFUSED(kInvalidArgument, "add: shapes f32[2,3] and f32[2] do not broadcast", x_ + y_);
  EXPECT_REFUSED(kInvalidArgument, "lt: shapes f32[2,3] and f32[2] do not broadcast", lt(x_, y_));
  EXPECT_REFUSED(kInvalidArgument, "matmul: inner dimensions differ: f32[2,3] x f32[2,3]",
                 matmul(x_, x_));
  EXPECT_REFUSED(kInvalidArgument, "matmul: inner dimensions differ: f32[2,3] x f32[2,3]",
                 x_.matmul(x_));
  EXPECT_REFUSED(kInvalidArgument,
                 "reshape: f32[2,3] has 6 elements, which do not fit dims (4, -1)",
                 x_.reshape({4, -1}));
  EXPECT_REFUSED(kInvalidArgument, "broadcast_to: shape f32[2] does not broadcast to f32[3]",
                 broadcast_to(y_, {3}));
  EXPECT_REFUSED(kInvalidArgument, "cat: f32[2,3] and f32[2] differ in more than dim 0",
                 cat({x_, y_}));
  EXPECT_REFUSED(kInvalidArgument, "stack: shapes differ: f32[2,3] and f32[2]", stack({x_, y_}));
  EXPECT_REFUSED(kInvalidArgument, "permute: dims (0, 0) are not a permutation of f32[2,3]",
                 x_.permute({0, 0}));
  EXPECT_REFUSED(kInvalidArgument,
                 "cross_entropy: takes [N, C, ...] and target [N, ...], not f32[2,3] and s64[2,3]",
                 nn::functional::cross_entropy(x_, i_));
}

TEST_F(ErrorsTest, OpAndPlaceAreDataToo) {
  try {
    x_.sum({2});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.op(), "sum");
    EXPECT_EQ(error.place(), "errors_test.cc:" + std::to_string(__LINE__ - 4));
    EXPECT_EQ(std::string(error.what()),
              "sum: dim 2 is out of range for rank 2 (" + error.place() + ")");
  }
  const Error ours(ErrorCode::kNotFound, "no such file");
  EXPECT_EQ(ours.op() + ours.place(), "");
}

TEST_F(ErrorsTest, DimsAndArgumentsOutOfRangeAreRefused) {
  EXPECT_REFUSED(kOutOfRange, "sum: dim 2 is out of range for rank 2", x_.sum({2}));
  EXPECT_REFUSED(kOutOfRange, "softmax: dim -3 is out of range for rank 2", softmax(x_, -3));
  EXPECT_REFUSED(kOutOfRange, "narrow: [2, 4) is out of range for dim 1 of f32[2,3]",
                 narrow(x_, 1, 2, 2));
  EXPECT_REFUSED(kInvalidArgument, "sum: a dim is named twice in (0, -2)", sum(x_, {0, -2}));
  EXPECT_REFUSED(kInvalidArgument, "dropout: p must be in [0, 1], is 1.5", dropout(x_, 1.5));
  EXPECT_REFUSED(kInvalidArgument, "one_hot: classes must be at least 1, is 0", one_hot(i_, 0));
  EXPECT_REFUSED(kInvalidArgument, "eye: n must not be negative, is -1", eye(-1));
  EXPECT_REFUSED(kInvalidArgument, "zeros: dimension -2 of f32[-2] is negative", zeros({-2}));
}

TEST_F(ErrorsTest, DtypesThatDoNotFitAreRefused) {
  EXPECT_REFUSED(kWrongType, "bitwise_and: takes pred or integers, not f32", bitwise_and(x_, x_));
  EXPECT_REFUSED(kWrongType, "mean: takes floats, not s64[2,3]; convert with to()", mean(i_));
  EXPECT_REFUSED(kWrongType, "where: condition must be pred, is f32[2,3]", where(x_, x_, x_));
  EXPECT_REFUSED(kWrongType, "pow: takes at least one tensor, not two numbers", pow(1, 2));
}

TEST_F(ErrorsTest, UndefinedTensorsAreNamed) {
  const Tensor undefined;
  EXPECT_REFUSED(kInvalidArgument, "add: operand 1 is an undefined tensor", x_ + undefined);
  EXPECT_REFUSED(kInvalidArgument, "mul: operand 0 is an undefined tensor", undefined * 2.0);
  EXPECT_REFUSED(kInvalidArgument, "exp: operand 0 is an undefined tensor", exp(undefined));
  EXPECT_REFUSED(kInvalidArgument, "item: the tensor is undefined", (void)undefined.item());
  EXPECT_REFUSED(kInvalidArgument, "backward: the tensor is undefined", undefined.backward());
}

TEST_F(ErrorsTest, InPlaceOpsThatDoNotFitChangeNothing) {
  Tensor target = ones({2}), integers = zeros({2}, kInt64);
  EXPECT_REFUSED(kInvalidArgument,
                 "add_: f32[2,3] does not broadcast to f32[2], which is changed in place",
                 target.add_(x_));
  EXPECT_REFUSED(kInvalidArgument,
                 "mul_: the result f32 would be cut to s64[2], which is changed in place",
                 integers.mul_(target));
  EXPECT_THAT(target.to_vector<float>(), ElementsAre(1, 1));
  EXPECT_THAT(integers.to_vector<std::int64_t>(), ElementsAre(0, 0));
  Tensor leaf = ones({2}).set_requires_grad(true);
  EXPECT_REFUSED(
      kFailedPrecondition,
      "add_: a leaf tensor that requires a gradient is changed in place; do it under NoGrad",
      leaf.add_(1.0));
  EXPECT_THAT(leaf.to_vector<float>(), ElementsAre(1, 1));
}

TEST_F(ErrorsTest, DataThatDoesNotFillItsDimsIsRefused) {
  EXPECT_REFUSED(kInvalidArgument, "tensor: 3 values do not fill dims (2, 2)",
                 tensor(std::vector<float>{1, 2, 3}, {2, 2}));
  EXPECT_EQ(MessageOf([] { (void)tensor({{1.f, 2.f}, {3.f}}); }), "tensor: rows differ in length");
}

TEST_F(ErrorsTest, ReadingAsAnotherTypeOrShapeSaysWhatToDo) {
  EXPECT_REFUSED(kInvalidArgument, "to_vector: asked for f64 of f32[2]; convert with to()",
                 (void)y_.to_vector<double>());
  EXPECT_REFUSED(kInvalidArgument, "item: f32[2] has 2 elements, not one; use to_vector()",
                 (void)y_.item());
}

TEST_F(ErrorsTest, AnUnknownDeviceIsAnsweredWithTheKnownOnes) {
  const std::string unknown = MessageOf([] { (void)Device("tpu:0"); });
  EXPECT_THAT(unknown, HasSubstr("no device \"tpu:0\""));
  EXPECT_THAT(unknown, HasSubstr("cpu"));
  EXPECT_THAT(unknown, HasSubstr("interpreter"));
  EXPECT_THAT(MessageOf([] { (void)Device("cpu:99"); }), HasSubstr("cpu:0"));
  EXPECT_THAT(MessageOf([] { (void)Device("cpu:x"); }),
              HasSubstr("is not a device name: one reads like cpu or cpu:0"));
}

TEST_F(ErrorsTest, DevicesDoNotMix) {
  const Tensor other = ones({2}, kFloat32, Device("interpreter:0"));
  EXPECT_REFUSED(kInvalidArgument,
                 "add: operands are on different devices: " + y_.device().name() +
                     " and interpreter:0; move one with to()",
                 y_ + other);
}

// --- backward

TEST_F(ErrorsTest, BackwardSaysWhatItNeeds) {
  const Tensor w = ones({2}).set_requires_grad(true);
  const Tensor y = w * w, plain = x_.sum();
  EXPECT_REFUSED(
      kInvalidArgument,
      "backward: f32[2] is not a scalar; reduce it (sum, mean) or pass the gradient of the result",
      y.backward());
  EXPECT_REFUSED(kInvalidArgument, "backward: the gradient is f32[2,3], the tensor f32[2]",
                 y.backward(x_, {}));
  EXPECT_REFUSED(kFailedPrecondition,
                 "backward: f32[] has no history; it was computed from no tensor that requires a "
                 "gradient, or under NoGrad",
                 plain.backward());
  EXPECT_FALSE(w.grad().defined());
}

TEST_F(ErrorsTest, BackwardTwiceNamesWhatWasFreed) {
  const Tensor w = ones({2}).set_requires_grad(true);
  const Tensor loss = (w * w).sum();
  loss.backward();
  const std::string message = MessageOf([&] { loss.backward(); });
  EXPECT_THAT(message, HasSubstr("backward: the values that "));
  EXPECT_THAT(message, HasSubstr("pass retain_graph to the first one to run it twice"));
  EXPECT_THAT(message, HasSubstr("errors_test.cc:"));
  EXPECT_THAT(w.grad().to_vector<float>(), ElementsAre(2, 2));
}

TEST_F(ErrorsTest, GradientsNeedFloatsAndLeaves) {
  Tensor integers = zeros({2}, kInt64);
  EXPECT_REFUSED(kInvalidArgument, "set_requires_grad: gradients need floats, not s64[2]",
                 integers.set_requires_grad(true));
  const Tensor w = ones({2}).set_requires_grad(true);
  Tensor y = w * 2.0;
  EXPECT_REFUSED(kFailedPrecondition,
                 "set_requires_grad: the tensor is a result, not a leaf; detach() it first",
                 y.set_requires_grad(false));
}

// --- what only a run can know

TEST_F(ErrorsTest, ALabelOutOfRangeIsReportedAtTheLineOfTheLoss) {
  const Tensor logits = zeros({2, 10}), labels = tensor<std::int64_t>({3, 12});
  sync();  // not part of the run that fails
  const std::string place = test::Place();
  const Tensor loss = nn::functional::cross_entropy(logits, labels);  // the line after `place`
  const auto colon = place.rfind(':') + 1;
  const std::string expected = "cross_entropy: label 12 is out of range [0, 10) (" +
                               place.substr(0, colon) +
                               std::to_string(std::stoi(place.substr(colon)) + 1) + ")";
  EXPECT_EQ(MessageOf([] { sync(/*wait=*/true); }), expected);
  EXPECT_NO_THROW(sync(/*wait=*/true));                        // said once
  EXPECT_EQ(MessageOf([&] { (void)loss.item(); }), expected);  // but the tensor stays failed
  EXPECT_EQ(MessageOf([&] { (void)loss.item(); }), expected);
  EXPECT_EQ(MessageOf([&] { (void)(loss * 2.0).item(); }), expected);
  EXPECT_FLOAT_EQ(static_cast<float>(
                      nn::functional::cross_entropy(logits, tensor<std::int64_t>({3, 9})).item()),
                  2.3025851f);
}

// The usual step(): nobody keeps the loss, so only its check is left of it.
TEST_F(ErrorsTest, ABadLabelIsReportedAlsoWhereTheLossIsDead) {
  const nn::Linear linear(3, 10);
  const auto step = [&] {
    const Tensor loss = nn::functional::cross_entropy(linear(x_), tensor<std::int64_t>({1, 99}));
    loss.backward();
  };
  step();
  mark_step();
  EXPECT_THAT(MessageOf([] { sync(/*wait=*/true); }),
              HasSubstr("cross_entropy: label 99 is out of range [0, 10) ("));
  EXPECT_THAT(MessageOf([&] { (void)linear.weight.grad().to_string(); }),
              HasSubstr("cross_entropy: index 99 is out of range [0, 10) ("));
  EXPECT_NO_THROW((void)linear.weight.to_string());
}

// What a few steps of Adam come to, with a batch between them that has a bad label, or without.
struct Trained {
  std::vector<float> w;
  std::string steps;
  std::vector<std::uint8_t> generator;
  bool operator==(const Trained&) const = default;
};
Trained Train(const Device& device, int bad) {
  manual_seed(1);
  Tensor w = ones({3, 4}).to(device);
  w.set_requires_grad(true);
  optim::Adam adam(std::vector<Tensor>{w}, {.lr = 0.1});
  const Tensor x = tensor<float>({1, 2, 3, 4, 5, 6}).reshape({2, 3}).to(device);
  const auto step = [&](std::int64_t label) {
    w.set_grad({});
    const Tensor labels = tensor<std::int64_t>({1, label}).to(device);
    const Tensor kept = nn::functional::dropout(x.matmul(w), 0.25);
    const Tensor loss = nn::functional::cross_entropy(kept, labels);
    loss.backward();
    adam.step();
    (void)loss.item();
  };
  for (int i = 0; i < 3; ++i) {
    if (i == bad) {
      EXPECT_THAT(MessageOf([&] { step(9); }), HasSubstr("label 9 is out of range"));
    }
    step(2);
  }
  return {w.to_vector<float>(), adam.state_dict().metadata.at("0.step"),
          get_rng_state().to_vector<std::uint8_t>()};
}

TEST_F(ErrorsTest, TrainingGoesOnAsIfTheBatchWithABadLabelHadNotBeen) {
  for (const char* device : {"cpu", "interpreter", "npu"}) {
    const Trained expected = Train(Device(device), -1);
    EXPECT_EQ(expected.steps, "3");
    for (const int bad : {0, 1, 2})
      EXPECT_EQ(Train(Device(device), bad), expected) << device << bad;
  }
}

TEST_F(ErrorsTest, WhatOnlyARunCanKnowIsReportedUnderTheFunctionThatWasCalled) {
  Tensor x = ones({2, 3});
  const Tensor far = tensor<std::int64_t>({0, 7});
  const auto message = [](const std::function<void()>& f) {
    f();
    return MessageOf([] { sync(/*wait=*/true); });
  };
  const nn::Embedding table(5, 2);
  EXPECT_THAT(message([&] { (void)table(far); }),
              HasSubstr("embedding: index 7 is out of range [0, 5) ("));
  EXPECT_THAT(message([&] { (void)index_select(x, 0, far); }),
              HasSubstr("index_select: index 7 is out of range [0, 2) ("));
  EXPECT_THAT(message([&] { (void)index(x, {far + 0}); }),
              HasSubstr("index: index 7 is out of range [0, 2) ("));
  EXPECT_THAT(message([&] { x.index_add_(0, far, ones({2, 3})); }),
              HasSubstr("index_add_: index 7 is out of range [0, 2) ("));
  EXPECT_EQ(MessageOf([&] { (void)x_.to_string(); }), "nothing was thrown");
}

// The name is read long after the function has returned, here after its stack was used again.
TEST_F(ErrorsTest, EveryFunctionIsNamedByTheErrorOfItsCheck) {
  namespace F = nn::functional;
  const Tensor far = tensor<std::int64_t>({0, 7}) + 0, x = ones({2, 3}), source = ones({2});
  const Tensor wide = far.unsqueeze(1).expand({2, 3});
  const Tensor mask = ones({2, 3}) > 0, weights = tensor<float>({1.0f, -1.0f}) + 0;
  const std::vector<std::pair<std::string, std::function<Tensor()>>> calls = {
      {"embedding_bag: index 7 is out of range [0, 5)",
       [&] { return F::embedding_bag(far.unsqueeze(0), ones({5, 2})); }},
      {"put: index 7 is out of range [0, 6)", [&] { return put(x, far, source); }},
      {"put_: index 7 is out of range [0, 6)", [&] { return ones({2, 3}).put_(far, source); }},
      {"scatter_reduce: index 7 is out of range [0, 2)",
       [&] { return scatter_reduce(x, 0, wide, ones({2, 3}), "amax"); }},
      {"scatter_reduce: index 7 is out of range [0, 2)",
       [&] { return scatter_reduce(x, 0, wide, ones({2, 3}), "sum"); }},
      {"index_reduce: index 7 is out of range [0, 2)",
       [&] { return index_reduce(x, 0, far, ones({2, 3}), "mean"); }},
      {"multi_margin_loss: index 7 is out of range [0, 3)",
       [&] { return F::multi_margin_loss(x, far); }},
      {"multilabel_margin_loss: index 7 is out of range [0, 2)",
       [&] { return F::multilabel_margin_loss(ones({2}), far); }},
      {"masked_scatter: index 5 is out of range [0, 2)",
       [&] { return masked_scatter(x, mask, source); }},
      {"searchsorted: index 7 is out of range [0, 2)",
       [&] { return searchsorted(source, source, false, false, std::nullopt, far); }},
      {"bernoulli: the element at position 1 is not a probability between 0 and 1",
       [&] { return bernoulli(weights); }},
      {"multinomial: the element at position 1 is negative",
       [&] { return multinomial(weights, 1); }},
      {"cov: the element at position 1 is negative",
       [&] { return cov(ones({3, 2}), 1, Tensor(), weights); }},
      {"cross_entropy: label 7 is out of range [0, 3)", [&] { return F::cross_entropy(x, far); }},
      {"embedding: index 7 is out of range [0, 5)",
       [&] { return F::embedding(far, ones({5, 2})); }},
      {"gather: index 7 is out of range [0, 2)", [&] { return gather(x, 0, wide); }},
  };
  sync();
  for (const auto& [message, call] : calls) {
    (void)call();
    EXPECT_THAT(MessageOf([] { sync(/*wait=*/true); }), StartsWith(message));
  }
}

TEST_F(ErrorsTest, WhatLayersRecordHasTheLineOfTheirCaller) {
  const nn::Linear linear(4, 2);
  EXPECT_ERROR(kInvalidArgument,
               "linear: the last dim of x must be 4, as weight is f32[2,4], but x is f32[2,3]",
               linear(x_));
}

TEST_F(ErrorsTest, AnUnknownCounterIsAnError) {
  EXPECT_EQ(MessageOf([] { (void)metrics::counter("nonsense"); }),
            "metrics: no counter is called 'nonsense'");
}

}  // namespace
}  // namespace lazuli
