// Optimisers: each step() moves the parameters, in place, by their gradients.
//
//   lazuli::optim::SGD opt(net.parameters(), {.lr = 0.02, .momentum = 0.9});
//   for (...) {
//     opt.zero_grad();
//     loss(...).backward();
//     opt.step();
//     lazuli::mark_step();
//   }
//
// The arithmetic is PyTorch's. A hyper-parameter is one number of the compiled program, whatever
// the number of parameters: it may change before any step without a compilation, except to or from
// 0 where 0 turns a term off.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lazuli/ops.h"
#include "lazuli/tensor.h"

namespace lazuli::optim {

class LAZULI_API Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::vector<Tensor>& parameters() const { return parameters_; }
  // Records one update of every parameter that has a gradient. Throws Error(kInvalidArgument) for
  // options out of range.
  virtual void step(LAZULI_LOC) = 0;
  // Drops the gradients: grad() is undefined until the next backward().
  void zero_grad(LAZULI_LOC);

  // The learning rate, which all optimisers have.
  virtual double lr() const = 0;
  virtual void set_lr(double lr, LAZULI_LOC) = 0;

 protected:
  // Throws Error(kInvalidArgument) if there is no parameter, or an undefined or repeated one.
  Optimizer(std::vector<Tensor> parameters, const char* name, SourceLocation loc);

 private:
  std::vector<Tensor> parameters_;
};

// Stochastic gradient descent. With momentum, v = momentum * v + (1 - dampening) * grad moves the
// parameter instead of grad; the first v is grad.
struct SGDOptions {
  double lr = 1e-3;         // >= 0
  double momentum = 0;      // >= 0; 0 = off
  double dampening = 0;     // any, but 0 with nesterov; 0 = off
  double weight_decay = 0;  // >= 0, adds weight_decay * parameter to grad; 0 = off
  bool nesterov = false;    // moves by grad + momentum * v; needs momentum
};
class LAZULI_API SGD final : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> parameters, const SGDOptions& options = {}, LAZULI_LOC);
  void step(LAZULI_LOC) override;
  double lr() const override { return options_.lr; }
  void set_lr(double lr, LAZULI_LOC) override;
  const SGDOptions& options() const { return options_; }
  void set_options(const SGDOptions& options, LAZULI_LOC);
  // v of each parameter; undefined before its first step and without momentum.
  const std::vector<Tensor>& momentum_buffers() const { return momentum_; }

 private:
  SGDOptions options_;
  std::vector<Tensor> momentum_;
};

// Adam (Kingma and Ba, 2015): the parameter moves by lr * m / (sqrt(v) + eps), with m and v the
// running means of grad and of its square, corrected for their start at 0.
struct AdamOptions {
  double lr = 1e-3;                             // >= 0
  std::pair<double, double> betas{0.9, 0.999};  // each in [0, 1)
  double eps = 1e-8;                            // >= 0
  double weight_decay = 0;  // >= 0, adds weight_decay * parameter to grad; 0 = off
};
class LAZULI_API Adam final : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {}, LAZULI_LOC);
  void step(LAZULI_LOC) override;
  double lr() const override { return options_.lr; }
  void set_lr(double lr, LAZULI_LOC) override;
  const AdamOptions& options() const { return options_; }
  void set_options(const AdamOptions& options, LAZULI_LOC);

 private:
  struct Moments {
    std::int64_t steps = 0;
    Tensor mean, mean_square;
  };
  AdamOptions options_;
  std::vector<Moments> moments_;
};

}  // namespace lazuli::optim
