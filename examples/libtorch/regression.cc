// Fits a polynomial of degree 4 to points on a line, in LibTorch's words: a layer, its parameters moved by hand.
//
//   libtorch_regression
#include <cstdlib>
#include <iomanip>
#include <iostream>

#include <lazuli/torch.h>

namespace torch = lazuli::torch_names;

constexpr std::int64_t kDegree = 4;

// A column of x becomes the columns x, x^2, x^3, x^4.
torch::Tensor Powers(torch::Tensor x) {
  x = x.unsqueeze(1);
  std::vector<torch::Tensor> columns;
  for (int n = 1; n <= kDegree; ++n) columns.push_back(x.pow(n));
  return torch::cat(columns, 1);
}

// "y = +1.23 x^1 -0.50 x^2 ... +0.10": weights [1, degree], one bias.
std::string Text(const torch::Tensor& weights, const torch::Tensor& bias) {
  const auto w = weights.view(-1);
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << std::showpos << "y =";
  for (std::int64_t n = 0; n < w.size(0); ++n)
    text << ' ' << w[n].item<float>() << " x^" << std::noshowpos << n + 1 << std::showpos;
  text << ' ' << bias.item<float>();
  return text.str();
}

int main() {
  torch::manual_seed(1);
  const torch::Tensor true_weights = torch::randn({kDegree, 1}) * 5;
  const torch::Tensor true_bias = torch::randn({1}) * 5;

  auto fc = torch::nn::Linear(true_weights.size(0), 1);
  float loss = 0;
  std::int64_t step = 0;
  do {
    const torch::Tensor x = torch::randn({32});
    const torch::Tensor features = Powers(x);
    const torch::Tensor y = features.mm(true_weights) + true_bias;

    fc->zero_grad();
    const auto output = torch::smooth_l1_loss(fc(features), y);
    output.backward();
    for (auto& parameter : fc->parameters()) {
      torch::NoGradGuard no_grad;
      parameter -= 0.1 * parameter.grad();
    }
    loss = output.item<float>();
    ++step;
  } while (loss > 1e-3 && step < 5000);

  std::cout << "loss " << loss << " after " << step << " steps\n"
            << "learned  " << Text(fc->weight, fc->bias) << '\n'
            << "function " << Text(true_weights, true_bias) << '\n';
  return loss <= 1e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
