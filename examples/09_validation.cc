// Lesson 9: a training loop with validation: some of the training images are held back, tell when
// the network stops getting better, and the best weights are kept.
//
//   09_validation [FOLDER]      MNIST's IDX files are in FOLDER (default: data/mnist)
#include <iostream>
#include <string>
#include <utility>

#include <lazuli/lazuli.h>

namespace lz = lazuli;
namespace F = lz::nn::functional;

struct Scores {
  double loss, accuracy;
};

// Sums stay tensors until the end: reading each batch's would wait for the device each time.
Scores Evaluate(lz::nn::Sequential& net, lz::data::DataLoader& loader) {
  const lz::NoGrad no_grad;
  net.eval();  // batch normalisation by its running statistics, no dropout
  lz::Tensor loss = lz::zeros({}), correct = lz::zeros({}, lz::kInt64);
  for (auto& [x, y] : loader) {
    const lz::Tensor logits = net(x);
    loss.add_(F::cross_entropy(logits, y, {}, {}, lz::nn::Reduction::kSum));
    correct.add_(lz::sum(lz::argmax(logits, 1) == y));
    lz::mark_step();
  }
  net.train();
  const auto n = static_cast<double>(loader.dataset().size());
  return {loss.item() / n, correct.item() / n};
}

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "data/mnist";
  lz::manual_seed(1);
  lz::data::Mnist images(folder, /*train=*/true);
  const std::int64_t held_back = images.size() / 10, used = images.size() - held_back;
  auto parts = lz::data::random_split(std::move(images), {used, held_back});
  lz::data::DataLoader train(std::move(parts[0]),
                             {.batch_size = 50, .shuffle = true, .drop_last = true});
  lz::data::DataLoader validation(std::move(parts[1]), {.batch_size = 50});

  lz::nn::Sequential net(
      lz::nn::Conv2d(1, 8, 3, {.stride = 2, .bias = false}), lz::nn::BatchNorm2d(8), lz::nn::SiLU(),
      lz::nn::Conv2d(8, 16, 3, {.stride = 2}), lz::nn::SiLU(), lz::nn::AdaptiveAvgPool2d(3),
      lz::nn::Flatten(), lz::nn::Dropout(0.1), lz::nn::Linear(144, 10));
  lz::optim::AdamW opt(net.parameters(), {.lr = 1e-2});
  lz::optim::ReduceLROnPlateau schedule(opt, {.factor = 0.3, .patience = 0});

  double best = 1e9;
  lz::StateDict best_state;
  int without_progress = 0;
  for (int epoch = 1; epoch <= 8 && without_progress < 3; ++epoch) {
    for (auto& [x, y] : train) {
      opt.zero_grad();
      F::cross_entropy(net(x), y).backward();
      // One exploding batch does not spoil the weights.
      lz::nn::utils::clip_grad_norm_(net.parameters(), 1.0);
      opt.step();
      lz::mark_step();
    }
    const Scores scores = Evaluate(net, validation);
    schedule.step(scores.loss);
    without_progress = scores.loss < best ? 0 : without_progress + 1;
    if (scores.loss < best) {
      best = scores.loss;
      // State dicts hold the parameters themselves; a clone's stay as they are now.
      best_state = lz::nn::clone(net).state_dict();
    }
    std::cout << "epoch " << epoch << ": validation loss " << scores.loss << ", accuracy "
              << 100 * scores.accuracy << " %, rate " << opt.lr() << "\n";
  }
  net.load_state_dict(best_state);
  lz::data::DataLoader test(lz::data::Mnist(folder, /*train=*/false), {.batch_size = 50});
  std::cout << "best validation loss " << best << ", test accuracy "
            << 100 * Evaluate(net, test).accuracy << " %\n";
} catch (const lz::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
