// Lesson 8: a convolutional network on CIFAR-10's photographs, and a data set of one's own.
//
//   08_cifar_cnn [FOLDER [STEPS]]
//
// FOLDER holds the binary version of CIFAR-10 (default: data/cifar10; tools/fetch_cifar10.sh gets
// it). Where it is not there, the network learns from made-up images instead, and says so.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

// Stripes: the class is their direction, of ten; colours, width and noise are by chance. A data set
// has a size and gives the samples at some indices, in host memory. The same index is the same
// image: the loader may ask on a thread of its own, in any order.
class Stripes final : public lz::data::Dataset {
 public:
  Stripes(std::int64_t size, unsigned seed) : size_(size), seed_(seed) {}
  std::int64_t size() const override { return size_; }
  lz::data::HostBatch get(std::span<const std::int64_t> indices) const override {
    const auto n = static_cast<std::int64_t>(indices.size());
    lz::data::HostBatch batch{lz::data::HostArray::zeros({n, 3, 32, 32}, lz::kFloat32),
                              lz::data::HostArray::zeros({n}, lz::kInt64)};
    auto* x = batch.x.data<float>();
    auto* y = batch.y.data<std::int64_t>();
    for (const std::int64_t index : indices) {
      Draw(index, x);
      *y++ = index % 10;
      x += 3 * 32 * 32;
    }
    return batch;
  }

 private:
  void Draw(std::int64_t index, float* pixels) const {
    std::mt19937 random(seed_ + static_cast<unsigned>(index));
    std::uniform_real_distribution<float> uniform(0, 1);
    const float angle = 3.14159265f * static_cast<float>(index % 10) / 10;
    const float width = 0.5f + uniform(random), phase = 6.28f * uniform(random);
    for (int channel = 0; channel < 3; ++channel) {
      const float strength = 0.5f + uniform(random);
      for (int row = 0; row < 32; ++row) {
        for (int column = 0; column < 32; ++column) {
          const float along = std::cos(angle) * static_cast<float>(column) +
                              std::sin(angle) * static_cast<float>(row);
          *pixels++ = strength * std::sin(width * along + phase) + 0.5f * (uniform(random) - 0.5f);
        }
      }
    }
  }
  std::int64_t size_;
  unsigned seed_;
};

// Two blocks of two convolutions and a pooling, then two dense layers.
struct Cnn : lz::nn::Module {
  lz::nn::Conv2d conv1{3, 32, 3, {.padding = 1}}, conv2{32, 32, 3};
  lz::nn::Conv2d conv3{32, 64, 3, {.padding = 1}}, conv4{64, 64, 3};
  lz::nn::Linear fc1{64 * 6 * 6, 512}, fc2{512, 10};
  lz::nn::Dropout drop1{0.25}, drop2{0.25}, drop3{0.5};
  Cnn() {
    register_modules({{"conv1", conv1}, {"conv2", conv2}, {"conv3", conv3}, {"conv4", conv4}});
    register_modules({{"fc1", fc1}, {"fc2", fc2}});
    register_modules({{"drop1", drop1}, {"drop2", drop2}, {"drop3", drop3}});
  }
  lz::Tensor forward(const lz::Tensor& x) {
    auto h = lz::relu(conv2(lz::relu(conv1(x))));
    h = drop1(lz::max_pool2d(h, 2));
    h = lz::relu(conv4(lz::relu(conv3(h))));
    h = drop2(lz::max_pool2d(h, 2));
    return fc2(drop3(lz::relu(fc1(lz::flatten(h, 1)))));
  }
};

double Accuracy(Cnn& net, lz::data::DataLoader& loader) {
  const lz::NoGrad no_grad;
  net.eval();
  double correct = 0;
  for (auto& [x, y] : loader) correct += lz::sum(lz::argmax(net.forward(x), 1) == y).item();
  net.train();
  return correct / static_cast<double>(loader.dataset().size());
}

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "data/cifar10";
  const long steps = argc > 2 ? std::stol(argv[2]) : 2000;
  const bool real = std::filesystem::exists(std::filesystem::path(folder) / "data_batch_1.bin");
  std::shared_ptr<const lz::data::Dataset> train_images, test_images;
  if (real) {
    train_images = std::make_shared<lz::data::Cifar10>(folder, /*train=*/true);
    test_images = std::make_shared<lz::data::Cifar10>(folder, /*train=*/false);
  } else {
    train_images = std::make_shared<Stripes>(10000, 0);
    test_images = std::make_shared<Stripes>(500, 1000000);
  }
  std::cout << (real ? "CIFAR-10 from " + folder
                     : "made-up images: there is no CIFAR-10 in " + folder)
            << ", " << train_images->size() << " for training\n";

  lz::manual_seed(1);
  Cnn net;
  lz::optim::RMSprop opt(net.parameters(), {.lr = 1e-4});
  lz::data::DataLoader train(train_images, {.batch_size = 32, .shuffle = true, .drop_last = true});
  lz::data::DataLoader test(test_images, {.batch_size = 100});
  std::cout << net.num_parameters() << " parameters\n";
  for (long step = 0; step < steps;) {
    for (auto& [x, y] : train) {
      opt.zero_grad();
      lz::Tensor loss = lz::nn::functional::cross_entropy(net.forward(x), y);
      loss.backward();
      opt.step();
      lz::mark_step();
      if (step % 100 == 0) std::cout << "step " << step << ": loss " << loss.item<float>() << "\n";
      if (++step == steps) break;
    }
  }
  std::cout << "test accuracy " << 100 * Accuracy(net, test) << " % on "
            << (real ? "CIFAR-10" : "made-up images") << "\n";
} catch (const lz::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
