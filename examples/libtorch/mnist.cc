// Learns handwritten digits with a small convolutional network, in LibTorch's words.
//
//   libtorch_mnist [FOLDER [EPOCHS]]     the folder of MNIST's four files, data/mnist by default
//
// One line is not LibTorch's: lazuli::mark_step(), where a step ends.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>

#include <lazuli/torch.h>

namespace torch = lazuli::torch_names;

constexpr std::size_t kTrainBatch = 64, kTestBatch = 250, kLogEvery = 10;

struct Net : torch::nn::Module {
  Net()
      : conv1(torch::nn::Conv2dOptions(1, 10, /*kernel_size=*/5)),
        conv2(torch::nn::Conv2dOptions(10, 20, /*kernel_size=*/5)),
        fc1(320, 50),
        fc2(50, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv2_drop", conv2_drop);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(conv2_drop->forward(conv2->forward(x)), 2));
    x = x.view({-1, 320});
    x = torch::relu(fc1->forward(x));
    x = torch::dropout(x, /*p=*/0.5, /*train=*/is_training());
    x = fc2->forward(x);
    return torch::log_softmax(x, /*dim=*/1);
  }

  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Dropout2d conv2_drop;
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};

template <typename DataLoader>
void train(std::size_t epoch, Net& model, torch::Device device, DataLoader& data_loader,
           torch::optim::Optimizer& optimizer, std::size_t dataset_size) {
  model.train();
  std::size_t batch_idx = 0;
  for (auto& batch : data_loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    optimizer.zero_grad();
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets);
    loss.backward();
    optimizer.step();
    lazuli::mark_step();

    if (batch_idx++ % kLogEvery == 0) {
      TORCH_CHECK(!std::isnan(loss.template item<float>()), "the loss is not a number in batch ",
                  batch_idx);
      std::printf("train epoch %zu [%5zu/%5zu] loss %.4f\n", epoch,
                  batch_idx * static_cast<std::size_t>(batch.data.size(0)), dataset_size,
                  loss.template item<float>());
    }
  }
}

template <typename DataLoader>
void test(Net& model, torch::Device device, DataLoader& data_loader, std::size_t dataset_size) {
  torch::NoGradGuard no_grad;
  model.eval();
  double test_loss = 0;
  std::int64_t correct = 0;
  for (const auto& batch : data_loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto output = model.forward(data);
    test_loss += torch::nll_loss(output, targets, /*weight=*/{}, torch::Reduction::Sum)
                     .template item<float>();
    auto pred = output.argmax(1);
    correct += pred.eq(targets).sum().template item<int64_t>();
  }
  const auto size = static_cast<double>(dataset_size);
  std::printf("test set: average loss %.4f, accuracy %.3f\n", test_loss / size,
              static_cast<double>(correct) / size);
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "data/mnist";
  const std::size_t epochs = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 10;
  torch::manual_seed(1);

  torch::DeviceType device_type = torch::kCPU;
  if (torch::cuda::is_available()) device_type = torch::kCUDA;
  torch::Device device(device_type);

  Net model;
  model.to(device);

  auto train_dataset = torch::data::datasets::MNIST(folder)
                           .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                           .map(torch::data::transforms::Stack<>());
  const std::size_t train_size = train_dataset.size().value();
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(train_dataset), kTrainBatch);
  auto test_dataset =
      torch::data::datasets::MNIST(folder, torch::data::datasets::MNIST::Mode::kTest)
          .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
          .map(torch::data::transforms::Stack<>());
  const std::size_t test_size = test_dataset.size().value();
  auto test_loader = torch::data::make_data_loader(std::move(test_dataset), kTestBatch);

  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01).momentum(0.5));
  for (std::size_t epoch = 1; epoch <= epochs; ++epoch) {
    train(epoch, model, device, *train_loader, optimizer, train_size);
    test(model, device, *test_loader, test_size);
  }
}
