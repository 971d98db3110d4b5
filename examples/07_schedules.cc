// Lesson 7: learning rates that change. A number of an optimiser is a number that the compiled
// program is given, so changing it before every step compiles nothing.
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>

#include <lazuli/lazuli.h>

namespace lz = lazuli;
namespace optim = lazuli::optim;

void Draw(int step, double lr) {
  std::cout << std::setw(4) << step << "  " << std::setw(8) << lr << "  "
            << std::string(static_cast<std::size_t>(lr * 400), '#') << "\n";
}

int main() try {
  lz::manual_seed(1);
  lz::nn::Linear net(16, 1);
  optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9, .nesterov = true});

  // Ten steps of warmup in a line, then down along a cosine. A schedule sets the optimiser's
  // learning rate when it is made and whenever it steps.
  auto warmup = std::make_shared<optim::LinearLR>(
      opt, optim::LinearLROptions{.start_factor = 0.1, .total_iters = 10});
  auto cosine = std::make_shared<optim::CosineAnnealingLR>(
      opt, optim::CosineAnnealingLROptions{.T_max = 40, .eta_min = 0.001});
  optim::SequentialLR schedule(opt, {warmup, cosine}, {10});

  std::cout << "step  rate\n";
  float loss_now = 0;
  std::int64_t compiled = 0;
  for (int step = 0; step < 50; ++step) {
    if (step % 5 == 0) Draw(step, opt.lr());
    const lz::Tensor x = lz::randn({32, 16}), y = lz::sum(x, {1}, /*keepdim=*/true);
    opt.zero_grad();
    lz::Tensor loss = lz::nn::functional::mse_loss(net(x), y);
    loss.backward();
    opt.step();
    schedule.step();
    lz::mark_step();
    loss_now = loss.item<float>();
    if (step == 1) compiled = lz::metrics::counter("UncachedCompile");
  }
  std::cout << "loss " << loss_now << ", compilations after the second step: "
            << lz::metrics::counter("UncachedCompile") - compiled << "\n";

  // Where no formula fits, a metric may decide: the rate falls when it has not improved for a
  // while.
  opt.set_lr(0.1);
  optim::ReduceLROnPlateau plateau(opt, {.factor = 0.5, .patience = 2});
  for (const double validation_loss : {1.0, 0.5, 0.5, 0.5, 0.5}) plateau.step(validation_loss);
  std::cout << "after a plateau: " << opt.lr() << "\n";
} catch (const lz::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
