// Lesson 6: modules of modules, and their state in a file. A run that is saved and loaded goes on
// as if it had never stopped.
//
//   06_modules_and_saving [FOLDER]      where the two files go (default: the temporary folder)
#include <filesystem>
#include <iostream>
#include <string>

#include <lazuli/lazuli.h>

namespace lz = lazuli;
namespace F = lz::nn::functional;

// A block is a module like any other: a struct of layers that registers them. Names of parameters
// are the path to them: "first.linear.weight".
struct Block : lz::nn::Module {
  lz::nn::Linear linear;
  lz::nn::LayerNorm norm;
  Block(std::int64_t in, std::int64_t out) : linear(in, out), norm(out) {
    register_modules({{"linear", linear}, {"norm", norm}});
  }
  lz::Tensor forward(const lz::Tensor& x) { return lz::gelu(norm(linear(x))); }
};

struct Net : lz::nn::Module {
  Block first{8, 32}, second{32, 32};
  lz::nn::Linear head{32, 1};
  Net() { register_modules({{"first", first}, {"second", second}, {"head", head}}); }
  lz::Tensor forward(const lz::Tensor& x) { return head(second.forward(first.forward(x))); }
};

// One step toward the sum of the inputs' squares.
float Step(Net& net, lz::optim::Optimizer& opt) {
  const lz::Tensor x = lz::randn({64, 8}), y = lz::sum(x * x, {1}, /*keepdim=*/true);
  opt.zero_grad();
  lz::Tensor loss = F::smooth_l1_loss(net.forward(x), y);
  loss.backward();
  lz::nn::utils::clip_grad_norm_(net.parameters(), 5.0);
  opt.step();
  lz::mark_step();
  return loss.item<float>();
}

int main(int argc, char** argv) try {
  const std::filesystem::path folder =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  const std::string weights = folder / "lesson6.safetensors";
  const std::string state = folder / "lesson6_optimizer.safetensors";

  lz::manual_seed(1);
  Net net;
  // A module's parameters start as PyTorch's do; nn::init has the other ways.
  lz::nn::init::kaiming_normal_(net.head.weight);
  for (const auto& [name, parameter] : net.named_parameters())
    std::cout << name << "  " << parameter.numel() << " numbers\n";

  lz::optim::AdamW opt(net.parameters(), {.lr = 3e-3});
  for (int step = 0; step < 50; ++step) Step(net, opt);

  // The file is safetensors: Python's libraries read it. It is written under another name and then
  // renamed, so a crash leaves the old one. The optimiser has a state, too: its running means and
  // how many steps they saw.
  lz::nn::save(net, weights);
  lz::optim::save(opt, state);

  // A module is a handle: `shared` has the same parameters as net. clone() makes a copy.
  Net shared = net;
  const Net copy = lz::nn::clone(net);
  std::cout << "shared: " << shared.head.weight.is_same(net.head.weight)
            << ", cloned: " << copy.head.weight.is_same(net.head.weight) << "\n";

  // Another process would make the same objects and load them. Names, shapes and dtypes must fit;
  // what does not is in the message.
  Net loaded;
  lz::optim::AdamW continued(loaded.parameters());
  lz::nn::load(loaded, weights);
  lz::optim::load(continued, state);
  lz::manual_seed(2);
  const float here = Step(net, opt);
  lz::manual_seed(2);
  const float there = Step(loaded, continued);
  std::cout << "the next loss: " << here << ", after loading: " << there
            << (here == there ? ", the same to the last bit\n" : ", which differs\n");

  try {
    lz::nn::Linear other(3, 3);
    lz::nn::load(other, weights);
  } catch (const lz::Error& error) {
    std::cout << "an error reads: " << error.what() << "\n";
  }
} catch (const lz::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
