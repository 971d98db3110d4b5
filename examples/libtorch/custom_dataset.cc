// A data set of one's own, in LibTorch's words: pictures that it draws when they are asked for, and a network made of
// functions and layers that learns what is on them.
//
//   libtorch_custom_dataset [EPOCHS]
//
// One line is not LibTorch's: lazuli::mark_step(), where a step ends.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <lazuli/torch.h>

namespace torch = lazuli::torch_names;

struct Options {
  int image_size = 32;
  std::size_t train_batch_size = 8;
  std::size_t test_batch_size = 50;
  std::size_t iterations = 4;
  std::size_t log_interval = 20;
  torch::DeviceType device = torch::kCPU;
};
static Options options;

// What is to be drawn, and by which random numbers.
struct Picture {
  int kind;
  unsigned seed;
};
using Data = std::vector<Picture>;
constexpr std::array<const char*, 4> kKinds = {"bars", "columns", "disc", "frame"};

bool Inked(int kind, int x, int y, int phase, int size) {
  const int dx = x - size / 2, dy = y - size / 2, r = size / 4 + phase;
  switch (kind) {
    case 0:
      return (y + phase) / 4 % 2 == 0;
    case 1:
      return (x + phase) / 4 % 2 == 0;
    case 2:
      return dx * dx + dy * dy < r * r;
    default:
      return std::max(std::abs(dx), std::abs(dy)) < r &&
             std::max(std::abs(dx), std::abs(dy)) > r - 4;
  }
}

class CustomDataset : public torch::data::datasets::Dataset<CustomDataset> {
  using Example = torch::data::Example<>;

 public:
  explicit CustomDataset(const Data& data) : data(data) {}

  Example get(std::size_t index) override {
    const int size = options.image_size;
    std::mt19937 random(data[index].seed);
    const int phase = static_cast<int>(random() % 4);
    std::vector<std::uint8_t> bytes;  // height, width, channels
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        const bool ink = Inked(data[index].kind, x, y, phase, size);
        for (int c = 0; c < 3; ++c)
          bytes.push_back(static_cast<std::uint8_t>((ink ? 160 : 40) + random() % 60));
      }
    }
    auto tdata = torch::from_blob(bytes.data(), {size, size, 3}, torch::kByte)
                     .to(torch::kFloat)
                     .div_(255)
                     .permute({2, 0, 1});
    auto tlabel = torch::tensor({data[index].kind}, torch::kLong);
    return {tdata, tlabel};
  }
  torch::optional<std::size_t> size() const override { return data.size(); }

 private:
  Data data;
};

std::pair<Data, Data> Pictures() {
  Data train, test;
  for (unsigned i = 0; i < 600; ++i)
    (i % 3 == 0 ? test : train).push_back({static_cast<int>(i % kKinds.size()), i});
  return {train, test};
}

// A network of layers and functions, one after the other.
struct NetworkImpl : torch::nn::SequentialImpl {
  NetworkImpl() {
    using namespace torch::nn;
    auto stride = torch::ExpandingArray<2>({2, 2});
    torch::ExpandingArray<2> shape({-1, 16 * 5 * 5});
    push_back(Conv2d(Conv2dOptions(3, 8, 5).stride(1).padding(0)));
    push_back(Functional(torch::relu));
    push_back(Functional(torch::max_pool2d, 2, stride, 0, 1, false));
    push_back(Conv2d(Conv2dOptions(8, 16, 5)));
    push_back(Functional(torch::relu));
    push_back(Functional(torch::max_pool2d, 2, stride, 0, 1, false));
    push_back(Functional(torch::reshape, shape));
    push_back(Dropout(0.2));
    push_back(Linear(16 * 5 * 5, 32));
    push_back(Functional(torch::relu));
    push_back(Linear(32, kKinds.size()));
    push_back(Functional(torch::log_softmax, 1, torch::nullopt));
  }
};
TORCH_MODULE(Network);

template <typename DataLoader>
void train(Network& network, DataLoader& loader, torch::optim::Optimizer& optimizer,
           std::size_t epoch, std::size_t data_size) {
  std::size_t index = 0;
  network->train();
  float Loss = 0, Acc = 0;
  for (auto& batch : loader) {
    auto data = batch.data.to(options.device);
    auto targets = batch.target.to(options.device).view({-1});
    auto output = network->forward(data);
    auto loss = torch::nll_loss(output, targets);
    auto acc = output.argmax(1).eq(targets).sum();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    lazuli::mark_step();

    Loss += loss.template item<float>();
    Acc += acc.template item<float>();
    if (++index % options.log_interval == 0) {
      const auto end = static_cast<float>(std::min(data_size, index * options.train_batch_size));
      std::printf("train epoch %zu %3.0f/%zu loss %.4f acc %.3f\n", epoch, end, data_size,
                  Loss / static_cast<float>(index), Acc / end);
    }
  }
}

template <typename DataLoader>
void test(Network& network, DataLoader& loader, std::size_t data_size) {
  network->eval();
  torch::NoGradGuard no_grad;
  float Loss = 0, Acc = 0;
  for (const auto& batch : loader) {
    auto data = batch.data.to(options.device);
    auto targets = batch.target.to(options.device).view({-1});
    auto output = network->forward(data);
    Loss += torch::nll_loss(output, targets, {}, torch::Reduction::Sum).template item<float>();
    Acc += output.argmax(1).eq(targets).sum().template item<float>();
  }
  const auto size = static_cast<float>(data_size);
  std::printf("test loss %.4f acc %.3f\n", Loss / size, Acc / size);
}

int main(int argc, char** argv) {
  torch::manual_seed(1);
  if (argc > 1) options.iterations = std::strtoul(argv[1], nullptr, 10);
  if (torch::cuda::is_available()) options.device = torch::kCUDA;

  auto data = Pictures();
  auto train_set = CustomDataset(data.first).map(torch::data::transforms::Stack<>());
  auto train_size = train_set.size().value();
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(train_set), options.train_batch_size);
  auto test_set = CustomDataset(data.second).map(torch::data::transforms::Stack<>());
  auto test_size = test_set.size().value();
  auto test_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(test_set), options.test_batch_size);

  Network network;
  network->to(options.device);
  torch::optim::SGD optimizer(network->parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
  for (std::size_t i = 0; i < options.iterations; ++i) {
    train(network, *train_loader, optimizer, i + 1, train_size);
    test(network, *test_loader, test_size);
  }
}
