// The second script of the README: MNIST itself, one dense layer, Adam, 1,000 steps of batch 100.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/train.h"

namespace lazuli::test {
namespace {

// Where tools/fetch_mnist.sh puts MNIST or finds it; empty if it is in none of these.
std::string MnistFolder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string cache = variable("XDG_CACHE_HOME");
  for (const std::string& folder :
       {variable("LAZULI_DATA_DIR"), std::string("data/mnist"),
        (cache.empty() ? variable("HOME") + "/.cache" : cache) + "/lazuli/data/mnist"}) {
    if (!folder.empty() && std::filesystem::exists(folder + "/train-images-idx3-ubyte"))
      return folder;
  }
  return "";
}

TEST(MnistTrainingTest, ADenseLayerGetsPast88Percent) {
  const std::string folder = MnistFolder();
  if (folder.empty()) {
    GTEST_SKIP() << "MNIST IS NOT HERE, SO THIS WAS NOT TESTED; tools/fetch_mnist.sh gets it";
  }
  manual_seed(1);
  data::DataLoader train(data::Mnist(folder, true),
                         {.batch_size = 100, .shuffle = true, .drop_last = true});
  data::DataLoader test(data::Mnist(folder, false), {.batch_size = 1000});
  nn::Sequential net(nn::Flatten(), nn::Linear(784, 10));
  optim::Adam opt(net.parameters());
  const std::int64_t before = Compilations();
  TrainEpoch(net, opt, train);  // 600 steps
  int steps = 600;
  for (auto& [x, y] : train) {
    if (steps++ == 1000) break;
    opt.zero_grad();
    Tensor loss = nn::functional::cross_entropy(net.forward(x), y);
    loss.backward();
    opt.step();
    mark_step();
  }
  EXPECT_EQ(Compilations() - before, 2);
  const std::string program = debug::last_hlo();
  EXPECT_THAT(program, testing::HasSubstr("ENTRY"));
  EXPECT_THAT(program, testing::HasSubstr("1.weight.exp_avg_sq"));
  EXPECT_GT(Accuracy(net, test), 0.88);
}

}  // namespace
}  // namespace lazuli::test
