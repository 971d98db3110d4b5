// Data sets, samplers and loaders as programs for LibTorch write them, and a network that learns
// from them.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/training/digits.h"
#include <lazuli/torch.h>

namespace torch = lazuli::torch_names;

namespace {

using testing::ElementsAre;

// x is i, the target i^2.
struct Squares : torch::data::Dataset<Squares> {
  explicit Squares(std::size_t n) : n(n) {}
  torch::data::Example<> get(std::size_t index) override {
    const auto x = static_cast<double>(index);
    return {torch::full({1}, x), torch::full({1}, x * x)};
  }
  torch::optional<std::size_t> size() const override { return n; }
  std::size_t n;
};

TEST(TorchDataTest, LoaderStacksBatchesInOrder) {
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Squares(5)
          .map(
              torch::data::transforms::TensorLambda<>([](const torch::Tensor& x) { return x + 1; }))
          .map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions(2).workers(2));
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::vector<float>> data, targets;
    for (auto& batch : *loader) {
      data.push_back(batch.data.flatten().to_vector<float>());
      targets.push_back(batch.target.flatten().to_vector<float>());
    }
    EXPECT_THAT(data, ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4), ElementsAre(5)));
    EXPECT_THAT(targets, ElementsAre(ElementsAre(0, 1), ElementsAre(4, 9), ElementsAre(16)));
  }
}

TEST(TorchDataTest, BatchesWithoutStackAreVectors) {
  auto loader = torch::data::make_data_loader(
      Squares(5), torch::data::DataLoaderOptions().batch_size(2).drop_last(true));
  int batches = 0;
  for (std::vector<torch::data::Example<>>& batch : *loader) {
    EXPECT_EQ(batch.size(), 2U);
    const float x = batch[1].data.item<float>();
    EXPECT_EQ(batch[1].target.item<float>(), x * x);
    ++batches;
  }
  EXPECT_EQ(batches, 2);
  EXPECT_THAT([&] { torch::data::make_data_loader(Squares(5), 0); },
              testing::ThrowsMessage<lazuli::Error>(
                  "make_data_loader: batch_size is 0, it must be at least 1"));
}

TEST(TorchDataTest, RandomSamplerDrawsEachOnceAndFollowsTheSeed) {
  const auto draw = [](torch::data::samplers::RandomSampler& sampler) {
    sampler.reset();
    std::vector<std::size_t> all;
    while (auto batch = sampler.next(3)) all.insert(all.end(), batch->begin(), batch->end());
    return all;
  };
  torch::data::samplers::RandomSampler sampler(8);
  torch::manual_seed(3);
  const auto first = draw(sampler), second = draw(sampler);
  EXPECT_THAT(first, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_NE(first, second);
  torch::manual_seed(3);
  EXPECT_EQ(draw(sampler), first);
}

TEST(TorchDataTest, TensorsAreDatasets) {
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      torch::data::datasets::TensorDataset(torch::arange(6).reshape({3, 2}))
          .map(torch::data::transforms::Stack<torch::data::TensorExample>()),
      2);
  EXPECT_EQ(loader->begin()->data.sizes(), (lazuli::Dims{2, 2}));
}

// Counts on, however often it is asked.
struct Counter
    : torch::data::datasets::StreamDataset<Counter, std::vector<torch::data::Example<>>> {
  std::vector<torch::data::Example<>> get_batch(std::size_t size) override {
    std::vector<torch::data::Example<>> batch;
    for (std::size_t i = 0; i < size; ++i, ++next)
      batch.emplace_back(torch::full({1}, next), torch::full({1}, -next));
    return batch;
  }
  torch::optional<std::size_t> size() const override { return torch::nullopt; }
  double next = 0;
};

TEST(TorchDataTest, StreamsAreAskedForNumbersOfExamples) {
  auto loader = torch::data::make_data_loader(Counter().map(torch::data::transforms::Stack<>()),
                                              torch::data::samplers::StreamSampler(5), 2);
  std::vector<std::vector<float>> data;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *loader) {
      data.push_back(batch.data.flatten().to_vector<float>());
      EXPECT_TRUE(torch::equal(batch.target, -batch.data));
    }
  }
  EXPECT_THAT(data, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4),
                                ElementsAre(5, 6), ElementsAre(7, 8), ElementsAre(9)));
}

// Powers of two below a bound.
struct Powers
    : torch::data::datasets::StatefulDataset<Powers, std::vector<torch::data::TensorExample>> {
  explicit Powers(double bound) : bound(bound) {}
  void reset() override { next = 1; }
  torch::optional<std::vector<torch::data::TensorExample>> get_batch(std::size_t size) override {
    std::vector<torch::data::TensorExample> batch;
    for (; batch.size() < size && next < bound; next *= 2)
      batch.emplace_back(torch::full({1}, next));
    if (batch.empty()) return torch::nullopt;
    return batch;
  }
  torch::optional<std::size_t> size() const override { return torch::nullopt; }
  double bound, next = 1;
};

TEST(TorchDataTest, StatefulDataSetsEndTheEpochThemselves) {
  using torch::data::TensorExample;
  auto set = Powers(20).map(torch::data::transforms::Stack<TensorExample>());
  static_assert(decltype(set)::is_stateful);
  auto loader = torch::data::make_data_loader(std::move(set), 2);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::vector<float>> data;
    for (TensorExample& batch : *loader) data.push_back(batch.data.flatten().to_vector<float>());
    EXPECT_THAT(data, ElementsAre(ElementsAre(1, 2), ElementsAre(4, 8), ElementsAre(16)));
  }
}

TEST(TorchDataTest, NetworkLearnsDigits) {
  const std::string folder = testing::TempDir() + "torch_digits";
  lazuli::test::WriteDigits(folder, 256, 64);
  torch::manual_seed(1);
  const torch::data::datasets::MNIST digits(folder);
  const torch::Tensor bytes = digits.images() * 255;
  EXPECT_TRUE(torch::equal(bytes, bytes.round()));
  EXPECT_EQ(digits.targets().sizes(), (lazuli::Dims{256}));

  auto train_set = torch::data::datasets::MNIST(folder)
                       .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                       .map(torch::data::transforms::Stack<>());
  auto test_set = torch::data::datasets::MNIST(folder, torch::data::datasets::MNIST::Mode::kTest)
                      .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                      .map(torch::data::transforms::Stack<>());
  const std::size_t test_size = test_set.size().value();
  auto loader = torch::data::make_data_loader(std::move(train_set), 32);
  auto test_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(test_set), 32);
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 5).stride(2)),
                            torch::nn::ReLU(), torch::nn::Flatten(),
                            torch::nn::Linear(8 * 12 * 12, 10));
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int epoch = 0; epoch < 8; ++epoch) {
    for (auto& batch : *loader) {
      sgd.zero_grad();
      const torch::Tensor loss =
          torch::nll_loss(torch::log_softmax(net->forward(batch.data), 1), batch.target);
      loss.backward();
      sgd.step();
      lazuli::mark_step();
    }
  }
  const torch::NoGradGuard no_grad;
  net->eval();
  std::int64_t correct = 0;
  for (const auto& batch : *test_loader) {
    correct +=
        net->forward(batch.data).argmax(1).eq(batch.target).sum().template item<std::int64_t>();
  }
  EXPECT_GT(static_cast<double>(correct) / static_cast<double>(test_size), 0.9);
}

}  // namespace
