// Lesson 13: a recurrent model. An LSTM learns to add two of the numbers of a sequence: those that are marked.
#include <iostream>
#include <tuple>

#include <lazuli/lazuli.h>

namespace lz = lazuli;
namespace F = lazuli::nn::functional;

struct Adder : lz::nn::Module {
  lz::nn::LSTM rnn{2, 32, [] {
                     lz::nn::LSTMOptions options;
                     options.batch_first = true;
                     return options;
                   }()};
  lz::nn::Linear out{32, 1};
  Adder() { register_modules({{"rnn", rnn}, {"out", out}}); }
  lz::Tensor forward(const lz::Tensor& x) const {
    const auto [states, last] = rnn(x);
    return out(std::get<0>(last)[0]).squeeze(1);
  }
};

int main() {
  constexpr std::int64_t kBatch = 64, kSteps = 12;
  lz::manual_seed(0);
  const Adder net;
  lz::optim::Adam opt(net.parameters(), {.lr = 0.01});
  float last_loss = 1;
  for (int step = 0; step <= 400; ++step) {
    const lz::Tensor numbers = lz::rand({kBatch, kSteps});
    const lz::Tensor places = lz::rand({kBatch, kSteps}).argsort(1);
    const lz::Tensor marks = (places < 2).to(lz::kFloat32);
    opt.zero_grad();
    lz::Tensor loss =
        F::mse_loss(net.forward(lz::stack({numbers, marks}, 2)), (numbers * marks).sum(1));
    loss.backward();
    lz::nn::utils::clip_grad_norm_(net.parameters(), 1.0);
    opt.step();
    lz::mark_step();
    if (step % 100 == 0) {
      last_loss = loss.item<float>();
      std::cout << "step " << step << ": loss " << last_loss << "\n";
    }
  }
  return last_loss < 0.1 ? 0 : 1;
}
