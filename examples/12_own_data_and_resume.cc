// Lesson 12: a data set of your own, and a run that goes on where it was stopped: model, optimiser and
// epoch lie in one file.
//
//   12_own_data_and_resume [FOLDER]      where the file goes (default: the temporary folder)
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>

#include <lazuli/lazuli.h>

namespace lz = lazuli;
namespace F = lz::nn::functional;

// Two kinds of waves, which it makes when they are asked for; a data set of files would read them here.
// A thread of the loader's calls get(), ahead of the loop that trains.
class Waves : public lz::data::Dataset {
 public:
  std::int64_t size() const override { return 512; }
  lz::data::HostBatch get(std::span<const std::int64_t> indices) const override {
    const auto n = static_cast<std::int64_t>(indices.size());
    lz::data::HostBatch batch{lz::data::HostArray::zeros({n, kPoints}, lz::kFloat32),
                              lz::data::HostArray::zeros({n}, lz::kInt64)};
    float* x = batch.x.data<float>();
    auto* y = batch.y.data<std::int64_t>();
    for (const std::int64_t i : indices) {
      const bool fast = i % 2 == 0;
      for (std::int64_t t = 0; t < kPoints; ++t)
        *x++ = std::sin(static_cast<float>(i) + static_cast<float>(t) * (fast ? 1.3f : 0.4f));
      *y++ = fast ? 1 : 0;
    }
    return batch;
  }
  static constexpr std::int64_t kPoints = 24;
};

struct Net : lz::nn::Module {
  lz::nn::Linear first{Waves::kPoints, 32}, second{32, 2};
  Net() { register_modules({{"first", first}, {"second", second}}); }
  lz::Tensor forward(const lz::Tensor& x) { return second(lz::relu(first(x))); }
};

// One epoch; the order of its samples is the epoch's own, so that it is the same in a run that goes on.
float Train(Net& net, lz::optim::Optimizer& opt, std::uint64_t epoch) {
  lz::data::DataLoader loader(Waves(), {.batch_size = 64, .shuffle = true, .seed = epoch});
  lz::Tensor loss;
  for (auto& [x, y] : loader) {
    opt.zero_grad();
    loss = F::cross_entropy(net.forward(x), y);
    loss.backward();
    opt.step();
    lz::mark_step();
  }
  return loss.item<float>();
}

void Save(const Net& net, const lz::optim::Optimizer& opt, int epoch, const std::string& path) {
  lz::StateDict checkpoint;
  checkpoint.insert("model", net.state_dict());
  checkpoint.insert("optimizer", opt.state_dict());
  checkpoint.metadata["epoch"] = std::to_string(epoch);
  // The file is written under another name and renamed: a crash leaves the old one.
  lz::save_safetensors(checkpoint, path);
}

// The epoch after that of the file; 0 without one.
int Resume(Net& net, lz::optim::Optimizer& opt, const std::string& path) {
  if (!std::filesystem::exists(path)) return 0;
  const lz::StateDict checkpoint = lz::load_safetensors(path);
  net.load_state_dict(checkpoint.part("model"));
  opt.load_state_dict(checkpoint.part("optimizer"));
  return std::stoi(checkpoint.metadata.at("epoch")) + 1;
}

// Trains up to an epoch, from where the file says. A crash anywhere loses one epoch at most.
float Run(int epochs, const std::string& path) {
  lz::manual_seed(1);
  Net net;
  lz::optim::Adam opt(net.parameters(), {.lr = 3e-3});
  float loss = 0;
  for (int epoch = Resume(net, opt, path); epoch < epochs; ++epoch) {
    loss = Train(net, opt, static_cast<std::uint64_t>(epoch));
    std::cout << "epoch " << epoch << ": loss " << loss << "\n";
    Save(net, opt, epoch, path);
  }
  return loss;
}

int main(int argc, char** argv) try {
  const std::filesystem::path folder =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  const std::string path = folder / "lesson12.safetensors";

  std::filesystem::remove(path);
  const float at_once = Run(4, path);

  std::filesystem::remove(path);
  Run(2, path);  // is stopped after two epochs
  const float resumed = Run(4, path);

  // A state is tensors by name.
  for (const auto& [name, tensor] : lz::load_safetensors(path).part("model"))
    std::cout << name << " " << lz::to_string(tensor.dtype()) << " of " << tensor.sizes() << "\n";
  std::cout << (at_once == resumed ? "the same to the last bit\n" : "it differs\n");
  return at_once == resumed ? 0 : 1;
} catch (const lz::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
