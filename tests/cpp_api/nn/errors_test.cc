// Mistakes in losses, layers and updates: the words, the user's own line, and that nothing was
// recorded.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

namespace F = nn::functional;

// Ones that lie on the device: making them records nothing.
Tensor Data(const Dims& dims) {
  std::size_t count = 1;
  for (const std::int64_t d : dims) count *= static_cast<std::size_t>(d);
  return tensor(std::vector<float>(count, 1), dims);
}

class NnErrorsTest : public testing::Test {
 protected:
  const Tensor x_ = Data({2, 3}), y_ = Data({2}), i_ = tensor<std::int64_t>({0, 0}),
               column_ = i_.reshape({2, 1});
  const Tensor image_ = Data({2, 4, 5, 5});
};

TEST_F(NnErrorsTest, LossesOfShapesThatDoNotFit) {
  EXPECT_REFUSED(kInvalidArgument, "mse_loss: shapes f32[2,3] and f32[2] do not broadcast",
                 F::mse_loss(x_, y_));
  EXPECT_REFUSED(kInvalidArgument, "l1_loss: shapes f32[2,3] and f32[2] do not broadcast",
                 F::l1_loss(x_, y_));
  EXPECT_REFUSED(kInvalidArgument, "smooth_l1_loss: shapes f32[2,3] and f32[2] do not broadcast",
                 F::smooth_l1_loss(x_, y_));
  EXPECT_REFUSED(kInvalidArgument, "huber_loss: shapes f32[2,3] and f32[2] do not broadcast",
                 F::huber_loss(x_, y_));
  EXPECT_REFUSED(kInvalidArgument, "kl_div: shapes f32[2,3] and f32[2] do not broadcast",
                 F::kl_div(x_, y_));
  EXPECT_REFUSED(kInvalidArgument, "binary_cross_entropy: shapes differ: f32[2,3] and f32[2]",
                 F::binary_cross_entropy(x_, y_));
  EXPECT_REFUSED(kInvalidArgument,
                 "binary_cross_entropy_with_logits: shapes differ: f32[2,3] and f32[2]",
                 F::binary_cross_entropy_with_logits(x_, y_));
  EXPECT_REFUSED(kInvalidArgument,
                 "nll_loss: takes [N, C, ...] and target [N, ...], not f32[2,3] and s64[2,1]",
                 F::nll_loss(x_, column_));
  EXPECT_REFUSED(kInvalidArgument,
                 "cross_entropy: target must hold class indices (integers), is f32[2]",
                 F::cross_entropy(x_, y_));
}

TEST_F(NnErrorsTest, LossesOfNumbersOutOfRange) {
  EXPECT_REFUSED(kInvalidArgument, "huber_loss: delta must be above 0, is 0",
                 F::huber_loss(x_, x_, nn::Reduction::kMean, 0.0));
  EXPECT_REFUSED(kInvalidArgument, "smooth_l1_loss: beta must be above 0, is -1",
                 F::smooth_l1_loss(x_, x_, -1.0));
}

TEST_F(NnErrorsTest, NormsOfShapesThatDoNotFit) {
  EXPECT_REFUSED(kInvalidArgument, "layer_norm: x is f32[2,3], its last dims must be (4)",
                 F::layer_norm(x_, {4}));
  EXPECT_REFUSED(kInvalidArgument, "layer_norm: weight is f32[2], its dims must be (3)",
                 F::layer_norm(x_, {3}, Data({2})));
  EXPECT_REFUSED(kInvalidArgument, "rms_norm: x is f32[2,3], its last dims must be (2, 4)",
                 F::rms_norm(x_, {2, 4}));
  EXPECT_REFUSED(kInvalidArgument,
                 "group_norm: 3 groups do not divide the channels (dim 1) of f32[2,4,5,5]",
                 F::group_norm(image_, 3));
  EXPECT_REFUSED(kInvalidArgument, "group_norm: weight is f32[5], its dims must be (4)",
                 F::group_norm(image_, 2, Data({5})));
  EXPECT_REFUSED(kInvalidArgument, "batch_norm: running_mean is f32[3], its dims must be (4)",
                 F::batch_norm(image_, Data({3}), Data({4})));
  EXPECT_REFUSED(kInvalidArgument, "batch_norm: takes x [N, C, ...], not f32[2]",
                 F::batch_norm(y_));
  EXPECT_REFUSED(kInvalidArgument,
                 "batch_norm: training needs more than one value a channel, x is f32[1,3]",
                 F::batch_norm(Data({1, 3}), {}, {}, {}, {}, /*training=*/true));
  EXPECT_REFUSED(kInvalidArgument, "layer_norm: takes floats, not s64[2]", F::layer_norm(i_, {2}));
}

TEST_F(NnErrorsTest, AnF64InputDoesNotMakeTheModelF64) {
  const nn::Linear fc(3, 4);
  const Tensor x = x_.to(kFloat64);
  EXPECT_REFUSED(kInvalidArgument,
                 "linear: x is f64[2,3], but weight is f32[4,3]: both must be of one dtype; "
                 "convert x, or the module",
                 fc(x));
  EXPECT_REFUSED(kInvalidArgument, "batch_norm: eps must be positive, is 0",
                 F::batch_norm(x_, {}, {}, {}, {}, true, 0.1, 0.0));
}

TEST_F(NnErrorsTest, ABatchThatIsRefusedIsNotCounted) {
  const nn::BatchNorm2d norm(4);
  mark_step();
  EXPECT_REFUSED(kInvalidArgument, "BatchNorm2d: takes rank 4, not 2", norm(x_));
  EXPECT_REFUSED(kInvalidArgument,
                 "batch_norm: training needs more than one value a channel, x is f32[1,4,1,1]",
                 norm(Data({1, 4, 1, 1})));
  EXPECT_EQ(norm.num_batches_tracked.item(), 0);
}

TEST_F(NnErrorsTest, LayersOfShapesThatDoNotFit) {
  EXPECT_REFUSED(kInvalidArgument, "linear: bias f32[3] does not fit the 4 rows of weight f32[4,3]",
                 linear(x_, Data({4, 3}), Data({3})));
  EXPECT_REFUSED(kInvalidArgument,
                 "conv2d: bias f32[4] does not fit the 8 channels of weight f32[8,4,3,3]",
                 conv2d(image_, Data({8, 4, 3, 3}), Data({4})));
  EXPECT_REFUSED(
      kInvalidArgument,
      "conv2d: kernel of weight f32[8,4,7,7] is larger than the padded input f32[2,4,5,5]",
      conv2d(image_, Data({8, 4, 7, 7}), Data({8})));
  EXPECT_REFUSED(kInvalidArgument,
                 "max_pool2d: kernel 7x7 is larger than the padded input f32[2,4,5,5]",
                 max_pool2d(image_, 7));
  EXPECT_REFUSED(kInvalidArgument, "max_pool2d: takes x [N, C, H, W], not f32[2,3]",
                 max_pool2d(x_, 2));
  EXPECT_REFUSED(kInvalidArgument,
                 "avg_pool2d: kernel 2x2, stride 2x2, padding 2x2: sizes and strides start at 1, "
                 "padding is at most half the kernel",
                 avg_pool2d(image_, 2, 2, 2));
  EXPECT_REFUSED(
      kInvalidArgument,
      "adaptive_avg_pool2d: takes x [N, C, H, W] and a size from 1 on, not f32[2,4,5,5] and 0x0",
      adaptive_avg_pool2d(image_, 0));
  EXPECT_REFUSED(
      kInvalidArgument,
      "prelu: weight f32[3] is neither one number nor one for each channel (dim 1) of f32[2,4,5,5]",
      prelu(image_, Data({3})));
  EXPECT_REFUSED(kInvalidArgument, "glu: dim 1 of f32[2,3] is odd and cannot be halved",
                 glu(x_, 1));
  EXPECT_REFUSED(kInvalidArgument, "dropout: p must be in [0, 1], is 1.5", dropout(x_, 1.5));
  EXPECT_REFUSED(kInvalidArgument, "one_hot: takes integers, not f32[2]", one_hot(y_, 3));
}

TEST_F(NnErrorsTest, EmbeddingsOfWrongArguments) {
  EXPECT_REFUSED(kInvalidArgument, "embedding: indices must be integers, not f32[2]",
                 F::embedding(y_, x_));
  EXPECT_REFUSED(kInvalidArgument, "embedding: weight must have rank 2, is f32[2]",
                 F::embedding(i_, y_));
  EXPECT_REFUSED(kOutOfRange, "embedding: padding_idx 2 is out of range for 2 rows",
                 F::embedding(i_, x_, 2));
  EXPECT_REFUSED(kOutOfRange, "Embedding: padding_idx 3 is out of range for 3 rows",
                 nn::Embedding(3, 2, {.padding_idx = 3}));
}

// The value is known at the run only; the line is the call's all the same.
TEST_F(NnErrorsTest, AnIndexOutOfRangeFailsTheRunAtItsCall) {
  const std::string place = test::Place();
  const Tensor rows = F::embedding(tensor<std::int64_t>({0, 2}), x_);
  const std::string line = place.substr(0, place.find(':') + 1) +
                           std::to_string(std::stoi(place.substr(place.find(':') + 1)) + 1);
  try {
    rows.to_vector<float>();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("index 2"));
    EXPECT_THAT(error.what(), testing::HasSubstr("(" + line + ")"));
  }
}

TEST_F(NnErrorsTest, UpdatesOfListsThatDoNotFit) {
  TensorList momenta;
  EXPECT_REFUSED(kInvalidArgument, "foreach_sgd: there are no tensors",
                 foreach_sgd_({}, {}, momenta, {.lr = 1}));
  EXPECT_REFUSED(kInvalidArgument, "foreach_sgd: there are 2 gradient for 1 parameters",
                 foreach_sgd_({x_}, {x_, x_}, momenta, {.lr = 1}));
  EXPECT_REFUSED(kInvalidArgument,
                 "foreach_sgd: gradient 0 is f32[2], its parameter f32[2,3] and the first one "
                 "f32[2,3]: dims and dtypes must agree",
                 foreach_sgd_({x_}, {y_}, momenta, {.lr = 1}));
  EXPECT_REFUSED(kWrongType,
                 "foreach_clip_norm: sqrt: needs floating-point or complex operands, got s64[]",
                 foreach_clip_norm_({i_}, 1.0));
  EXPECT_EQ(x_.to_vector<float>(), std::vector<float>(6, 1)) << "nothing was changed";
}

}  // namespace
}  // namespace lazuli
