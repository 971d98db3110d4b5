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
// The arithmetic is PyTorch's. A step is one node of the graph, and a hyper-parameter one number of
// the compiled program, whatever the number of parameters: it may change before any step without a
// compilation, except to or from 0 where 0 turns a term off. lr_scheduler.h changes learning rates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lazuli/foreach.h"
#include "lazuli/internal/pending_update.h"
#include "lazuli/ops.h"
#include "lazuli/state_dict.h"
#include "lazuli/tensor.h"

namespace lazuli::optim {

class LAZULI_API Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::vector<Tensor>& parameters() const { return parameters_; }
  // Records one update of every parameter that has a gradient. Throws with nothing changed:
  // Error(kInvalidArgument) if a gradient or a state no longer fits its parameter.
  // If the update before is still pending, nobody syncs: then this does first, so that a loop
  // without mark_step() runs one program a step, too.
  void step(LAZULI_LOC);
  // Drops the gradients: grad() is undefined until the next backward().
  void zero_grad(LAZULI_LOC);

  // The learning rate, which all optimisers have.
  virtual double lr() const = 0;
  virtual void set_lr(double lr, LAZULI_LOC) = 0;

  // What a training run goes on from: the options, how many steps each parameter made, and tensors
  // such as "3.momentum" of parameter 3.
  StateDict state_dict() const;
  // Throws Error(kInvalidArgument), with nothing changed, for the state of another optimiser or of
  // parameters of other shapes.
  void load_state_dict(const StateDict& state, LAZULI_LOC);

 protected:
  // An option by name, for state_dict().
  struct Option {
    const char* name;
    std::variant<double*, bool*> value;
  };
  // Parameters that one foreach_* call can update, with their gradients and states.
  struct Group {
    std::vector<std::size_t> indices;
    std::int64_t steps = 0;  // made by each, this one included; 0 unless GroupsBySteps()
    TensorList parameters, gradients;
    std::vector<TensorList> states;  // by state; all of one are defined, or none
    bool empty() const { return indices.empty(); }
    void Clear();
  };

  // `states` names the tensors that a parameter may have: "momentum". Throws
  // Error(kInvalidArgument) if there is no parameter, or an undefined or repeated one.
  Optimizer(std::vector<Tensor> parameters, const char* name,
            const std::vector<const char*>& states, SourceLocation loc);
  virtual std::vector<Option> Options() = 0;
  // Checks the options after a change: throws Error(kInvalidArgument).
  virtual void CheckOptions(SourceLocation loc) const = 0;

  // Records the update of a group by one foreach_* call. States that it makes are kept when those
  // of all groups are recorded.
  virtual void Update(Group& group) = 0;
  // Whether parameters that made different numbers of steps are updated apart.
  virtual bool GroupsBySteps() const { return false; }
  // Makes the undefined ones of a group's states; they start as `value`.
  static void Fill(Group& group, std::size_t state, double value = 0);
  const std::vector<Tensor>& state(std::size_t i) const { return states_[i].tensors; }

 private:
  friend class LRScheduler;
  struct State {
    const char* name;
    std::vector<Tensor> tensors;  // one per parameter; undefined until made
  };
  // Puts the parameters that have gradients into groups of one dtype and device.
  void MakeGroups();
  Group& GroupFor(std::size_t parameter);
  // Names the states that an update has made.
  void NameStates(Group& group) const;
  // Takes over a group's states and counts its steps.
  void Keep(const Group& group) noexcept;

  const char* name_;
  std::vector<Tensor> parameters_;
  std::vector<std::int64_t> steps_;
  std::vector<State> states_;
  std::vector<Group> groups_;         // of the step being made; between steps they are empty
  internal::PendingUpdate update_;    // the newest step's
  std::optional<double> initial_lr_;  // when the first scheduler was made: what all start from
};

// An optimiser with options of a type.
template <class O>
class Configured : public Optimizer {
 public:
  double lr() const override { return options_.lr; }
  void set_lr(double lr, LAZULI_LOC) override {
    O options = options_;
    options.lr = lr;
    set_options(options, loc);
  }
  const O& options() const { return options_; }
  // Throws Error(kInvalidArgument), with nothing changed, for options out of range.
  void set_options(const O& options, LAZULI_LOC) {
    const O old = std::exchange(options_, options);
    try {
      CheckOptions(loc);
    } catch (...) {
      options_ = old;
      throw;
    }
  }

 protected:
  Configured(std::vector<Tensor> parameters, const O& options, const char* name,
             const std::vector<const char*>& states, SourceLocation loc)
      : Optimizer(std::move(parameters), name, states, loc), options_(options) {}
  O options_;
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
class LAZULI_API SGD : public Configured<SGDOptions> {
 public:
  explicit SGD(std::vector<Tensor> parameters, const SGDOptions& options = {}, LAZULI_LOC);
  // v of each parameter; undefined before its first step and without momentum.
  const std::vector<Tensor>& momentum_buffers() const { return state(0); }

 private:
  std::vector<Option> Options() override;
  void CheckOptions(SourceLocation loc) const override;
  void Update(Group& group) override;
};

// Adam (Kingma and Ba, 2015): the parameter moves by lr * m / (sqrt(v) + eps), with m and v the
// running means of grad and of its square, corrected for their start at 0.
struct AdamOptions {
  double lr = 1e-3;                             // >= 0
  std::pair<double, double> betas{0.9, 0.999};  // each in [0, 1)
  double eps = 1e-8;                            // >= 0
  double weight_decay = 0;  // >= 0, adds weight_decay * parameter to grad; 0 = off
  bool amsgrad = false;     // divides by the largest v so far (Reddi et al., 2018)
};
class LAZULI_API Adam : public Configured<AdamOptions> {
 public:
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {}, LAZULI_LOC)
      : Adam(std::move(parameters), options, "Adam", /*decoupled=*/false, loc) {}

 protected:
  Adam(std::vector<Tensor> parameters, const AdamOptions& options, const char* name, bool decoupled,
       SourceLocation loc);

 private:
  std::vector<Option> Options() override;
  void CheckOptions(SourceLocation loc) const override;
  void Update(Group& group) override;
  bool GroupsBySteps() const override { return true; }
  const char* optimizer_;
  bool decoupled_;
};

// Adam with decoupled weight decay (Loshchilov and Hutter, 2019): the parameter is first multiplied
// by 1 - lr * weight_decay.
struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
};
class LAZULI_API AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& o = {}, LAZULI_LOC)
      : Adam(std::move(parameters), ToAdam(o), "AdamW", /*decoupled=*/true, loc) {}
  AdamWOptions options() const {
    return {options_.lr, options_.betas, options_.eps, options_.weight_decay, options_.amsgrad};
  }
  void set_options(const AdamWOptions& options, LAZULI_LOC) {
    Adam::set_options(ToAdam(options), loc);
  }

 private:
  static AdamOptions ToAdam(const AdamWOptions& o) {
    return {o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad};
  }
};

// RMSprop (Hinton, 2012): the parameter moves by lr * grad / (sqrt(v) + eps), with v the running
// mean of the gradient's square; with momentum, by lr * (momentum * what it was + that quotient).
struct RMSpropOptions {
  double lr = 1e-2;         // >= 0
  double alpha = 0.99;      // in [0, 1): how much of v stays
  double eps = 1e-8;        // >= 0
  double weight_decay = 0;  // >= 0; 0 = off
  double momentum = 0;      // >= 0; 0 = off
  bool centered = false;    // v minus the square of the gradient's running mean
};
class LAZULI_API RMSprop : public Configured<RMSpropOptions> {
 public:
  explicit RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options = {}, LAZULI_LOC);

 private:
  std::vector<Option> Options() override;
  void CheckOptions(SourceLocation loc) const override;
  void Update(Group& group) override;
};

// Adagrad (Duchi et al., 2011): the parameter moves by lr / (1 + steps * lr_decay) * grad /
// (sqrt(sum of squares of the gradients so far) + eps).
struct AdagradOptions {
  double lr = 1e-2;                      // >= 0
  double lr_decay = 0;                   // >= 0
  double weight_decay = 0;               // >= 0; 0 = off
  double initial_accumulator_value = 0;  // >= 0
  double eps = 1e-10;                    // >= 0
};
class LAZULI_API Adagrad : public Configured<AdagradOptions> {
 public:
  explicit Adagrad(std::vector<Tensor> parameters, const AdagradOptions& options = {}, LAZULI_LOC);

 private:
  std::vector<Option> Options() override;
  void CheckOptions(SourceLocation loc) const override;
  void Update(Group& group) override;
  bool GroupsBySteps() const override { return true; }
};

// state_dict() as a safetensors file (serialize.h).
LAZULI_API void save(const Optimizer& optimizer, const std::string& path, LAZULI_LOC);
LAZULI_API void load(Optimizer& optimizer, const std::string& path, LAZULI_LOC);

}  // namespace lazuli::optim
