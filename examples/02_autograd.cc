// Lesson 2: gradients.
#include <iostream>
#include <vector>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

int main() {
  // Ops on a tensor that requires a gradient remember how to go back.
  lz::Tensor x = lz::tensor({1.0f, 2.0f, 3.0f}).set_requires_grad(true);
  lz::Tensor y = lz::sum(x * x * x);

  // backward() records the ops of the gradient; they run with everything else. dy/dx = 3 x^2.
  y.backward();
  std::cout << "dy/dx = " << x.grad() << "\n";

  // Gradients add up, until they are dropped.
  lz::sum(x * x * x).backward();
  std::cout << "twice = " << x.grad() << "\n";
  x.set_grad({});

  // Under NoGrad nothing is remembered: for evaluation, and for updates of parameters.
  {
    lz::NoGrad no_grad;
    std::cout << "requires_grad of x + 1: " << (x + 1).requires_grad() << "\n";
  }

  // gradcheck compares backward() with differences, in f64.
  const lz::Tensor point = lz::tensor({0.1, -0.7, 1.5}).set_requires_grad(true);
  const double error = lz::gradcheck(
      [](const std::vector<lz::Tensor>& in) { return lz::sum(lz::tanh(in[0]) * lz::exp(in[0])); },
      {point});
  std::cout << "gradients are right: " << (error < 1e-6) << "\n";

  // What the graph held is gone after backward(), so doing it again is a mistake.
  try {
    y.backward();
  } catch (const lz::Error& again) {
    std::cout << again.what() << "\n";
  }
}
