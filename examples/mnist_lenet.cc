// Trains LeNet on MNIST and tells what it took: accuracy, steps per second, and how often something
// was compiled.
//
// Run by `./lz demo`; `mnist_lenet --help` lists the options. 05_lenet.cc is the same training
// without the reporting.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "examples/progress.h"
#include <lazuli/lazuli.h>

namespace lz = lazuli;

namespace {

struct Net : lz::nn::Module {
  lz::nn::Conv2d conv1{1, 32, 3}, conv2{32, 64, 3};
  lz::nn::Linear fc1{9216, 128}, fc2{128, 10};
  Net() { register_modules({{"conv1", conv1}, {"conv2", conv2}, {"fc1", fc1}, {"fc2", fc2}}); }
  lz::Tensor forward(const lz::Tensor& x) {
    auto h = lz::relu(conv2(lz::relu(conv1(x))));
    h = lz::flatten(lz::max_pool2d(h, 2), 1);
    return fc2(lz::relu(fc1(h)));
  }
};

// --- the command line

struct Options {
  std::string data = "data/mnist", device = lz::Device().name();
  long epochs = 0, batch_size = 64, limit = 0;  // 0: by the device
  double lr = 0.02;
};

constexpr const char* kHelp = R"(usage: mnist_lenet [OPTION VALUE]...

  --data DIR        folder with MNIST's four IDX files (default: data/mnist)
  --epochs N        times through the training images (default: 2; on npu 1)
  --batch-size N    images in a step (default: 64)
  --lr X            learning rate of SGD, whose momentum is 0.9 (default: 0.02)
  --device NAME     where to train: cpu, npu, interpreter (default: PJRT_DEVICE, else cpu)
  --limit N         use the first N images for training and for the test (default: all;
                    on npu, which is simulated, as many as make 300 steps)
)";

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The number that `text` is; throws if it is none or below `at_least`.
double Number(const std::string& flag, const std::string& text, long at_least, bool whole = true) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const bool number = used == text.size() && value >= static_cast<double>(at_least) && value < 1e9;
  if (!number || (whole && value != std::floor(value))) {
    throw UsageError(flag + " takes a " + (whole ? "whole " : "") + "number from " +
                     std::to_string(at_least) + " on, not '" + text + "'");
  }
  return value;
}

Options Parse(const std::vector<std::string>& args) {
  Options options;
  for (std::size_t i = 0; i < args.size(); i += 2) {
    const std::string& flag = args[i];
    const auto known = {"--data", "--epochs", "--batch-size", "--lr", "--device", "--limit"};
    if (std::find(known.begin(), known.end(), flag) == known.end()) {
      throw UsageError("there is no option " + flag);
    }
    if (i + 1 == args.size()) throw UsageError(flag + " takes a value");
    const std::string& value = args[i + 1];
    if (flag == "--data") options.data = value;
    if (flag == "--epochs") options.epochs = static_cast<long>(Number(flag, value, 1));
    if (flag == "--batch-size") options.batch_size = static_cast<long>(Number(flag, value, 1));
    if (flag == "--lr") options.lr = Number(flag, value, 0, /*whole=*/false);
    if (flag == "--device") options.device = value;
    if (flag == "--limit") options.limit = static_cast<long>(Number(flag, value, 1));
  }
  return options;
}

lz::data::DataLoader Loader(const Options& options, bool train) {
  lz::data::Mnist mnist(options.data, train);
  std::vector<std::int64_t> indices(options.limit > 0 ? std::min<long>(options.limit, mnist.size())
                                                      : mnist.size());
  std::iota(indices.begin(), indices.end(), 0);
  return lz::data::DataLoader(lz::data::Subset(std::move(mnist), std::move(indices)),
                              {.batch_size = options.batch_size, .shuffle = train});
}

// --- what was compiled

// Compilations by the kind of step that caused them. A kind of step is a program: it is compiled
// when it is first met.
class Compilations {
 public:
  // What has been compiled since the last call was for a step of this kind.
  void CountFor(const std::string& kind) {
    const std::int64_t now = lz::metrics::counter("UncachedCompile");
    const bool known =
        std::any_of(kinds_.begin(), kinds_.end(), [&](const auto& k) { return k.first == kind; });
    if (!known) kinds_.emplace_back(kind, 0);
    for (auto& [name, count] : kinds_) {
      if (name == kind) count += now - seen_;
    }
    seen_ = now;
  }
  void Print() const {
    std::int64_t all = 0;
    for (const auto& [kind, count] : kinds_) all += count;
    std::printf("Compilations     %lld\n", static_cast<long long>(all));
    for (const auto& [kind, count] : kinds_) {
      std::printf("  %-32s %lld\n", kind.c_str(), static_cast<long long>(count));
    }
  }
  std::int64_t seen() const { return seen_; }

 private:
  std::int64_t seen_ = lz::metrics::counter("UncachedCompile");
  std::vector<std::pair<std::string, std::int64_t>> kinds_;
};

// --- training

// One epoch. Returns its steps per second.
double Train(Net& net, lz::optim::SGD& opt, lz::data::DataLoader& loader, const Options& options,
             long epoch, Compilations& compilations) {
  const long steps = loader.size();
  Progress progress("epoch " + std::to_string(epoch) + "/" + std::to_string(options.epochs), steps);
  net.train();
  long step = 0;
  float shown = 0;
  for (auto& [x, y] : loader) {
    opt.zero_grad();
    lz::Tensor loss = lz::nn::functional::cross_entropy(net.forward(x), y);
    loss.backward();
    opt.step();
    lz::mark_step();
    ++step;
    compilations.CountFor(x.size(0) != options.batch_size ? "last partial batch"
                          : epoch == 1 && step == 1       ? "first step"
                                                          : "steady step");
    // Reading waits for the device, which then has nothing to do meanwhile: not at every step.
    if (step % 50 == 1 || step == steps) shown = loss.item<float>();
    char note[32];
    std::snprintf(note, sizeof note, "loss %.4f", shown);
    progress.Update(step, note);
  }
  lz::sync(/*wait=*/true);
  return static_cast<double>(steps) / progress.Seconds();
}

// The share of test images whose digit the network finds.
double Evaluate(Net& net, lz::data::DataLoader& loader, const Options& options,
                Compilations& compilations) {
  const lz::NoGrad no_grad;
  net.eval();
  std::vector<lz::Tensor> counts;
  for (auto& [x, y] : loader) {
    counts.push_back(lz::sum(lz::argmax(net.forward(x), 1) == y));
    lz::mark_step();
    compilations.CountFor(x.size(0) == options.batch_size ? "evaluation"
                                                          : "last partial evaluation batch");
  }
  double correct = 0;
  for (const lz::Tensor& count : counts) correct += count.item();
  return correct / static_cast<double>(loader.dataset().size());
}

void Run(Options options) {
  lz::set_device_type(options.device);  // throws if there is none
  const bool simulated = lz::device_type() == "npu";
  if (options.epochs == 0) options.epochs = simulated ? 1 : 2;
  if (options.limit == 0 && simulated) options.limit = 300 * options.batch_size;

  lz::manual_seed(1);
  lz::data::DataLoader train = Loader(options, /*train=*/true);
  lz::data::DataLoader test = Loader(options, /*train=*/false);
  Net net;
  lz::optim::SGD opt(net.parameters(), {.lr = options.lr, .momentum = 0.9});
  std::printf("LeNet, %lld parameters, on %s; %lld training and %lld test images\n",
              static_cast<long long>(net.num_parameters()), lz::Device().name().c_str(),
              static_cast<long long>(train.dataset().size()),
              static_cast<long long>(test.dataset().size()));

  Compilations compilations;
  double accuracy = 0, steps_per_second = 0;
  for (long epoch = 1; epoch <= options.epochs; ++epoch) {
    const std::int64_t compiled = compilations.seen();
    steps_per_second = Train(net, opt, train, options, epoch, compilations);
    accuracy = Evaluate(net, test, options, compilations);
    std::printf("epoch %ld: test accuracy %.2f %%, %.1f steps/s, %lld compilations\n", epoch,
                100 * accuracy, steps_per_second,
                static_cast<long long>(compilations.seen() - compiled));
  }

  std::printf("\nTest accuracy    %.2f %%\n", 100 * accuracy);
  std::printf("Steps per second %.1f (last epoch)\n", steps_per_second);
  compilations.Print();
  std::printf(R"(
Where to look next
  examples/01_tensors.cc      the first of eleven lessons; 05_lenet.cc is this training in 30 lines
  docs/architecture.md        how an expression becomes a program, folder by folder
  XLA_SAVE_TENSORS_FILE=graphs.txt XLA_SAVE_TENSORS_FMT=hlo ./lz demo
                              the programs that were compiled; also text and dot
)");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (std::find(args.begin(), args.end(), "--help") != args.end()) {
    std::cout << kHelp;
    return 0;
  }
  try {
    Run(Parse(args));
  } catch (const UsageError& error) {
    std::cerr << "mnist_lenet: " << error.what() << "; --help lists the options\n";
    return 2;
  } catch (const lz::Error& error) {
    std::cerr << "mnist_lenet: " << error.what() << "\n";
    return 1;
  }
}
