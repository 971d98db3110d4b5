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
// Groups of parameters have options of their own; a group without takes the optimiser's:
//
//   lazuli::optim::SGD opt({{head.parameters(), SGDOptions{.lr = 0.1}}, {body.parameters()}},
//                          {.lr = 0.01});
//   opt.param_groups()[1].options<SGDOptions>().lr = 0.02;
//
// The arithmetic is PyTorch's. A step is one node of the graph for each group, and a hyper-parameter
// one number of the compiled program, whatever the number of parameters: it may change before any
// step without a compilation, except to or from 0 where 0 turns a term off. lr_scheduler.h changes
// learning rates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lazuli/foreach.h"
#include "lazuli/internal/options_of.h"
#include "lazuli/internal/pending_update.h"
#include "lazuli/ops.h"
#include "lazuli/state_dict.h"
#include "lazuli/tensor.h"

namespace lazuli::optim {

// Parameters with options of their own.
class LAZULI_API ParamGroup {
 public:
  ParamGroup(std::vector<Tensor> params)  // NOLINT(google-explicit-constructor)
      : params_(std::move(params)) {}
  template <class O>
    requires requires(O o) { o.lr; }
  ParamGroup(std::vector<Tensor> params, const O& options)
      : params_(std::move(params)), options_(std::make_unique<OptionsOf<O>>(options)) {}
  ParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  ParamGroup(const ParamGroup& other);
  ParamGroup(ParamGroup&&) noexcept = default;
  ParamGroup& operator=(const ParamGroup&) = delete;
  ParamGroup& operator=(ParamGroup&&) noexcept = default;
  ~ParamGroup() = default;

  const std::vector<Tensor>& params() const { return params_; }
  // Those of an optimiser have all options, which may be changed before any step.
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() { return *options_; }
  const OptimizerOptions& options() const { return *options_; }
  // Options of this type; throws std::bad_cast if they are of another.
  template <class O>
  O& options() {
    return dynamic_cast<OptionsOf<O>&>(*options_).get();
  }

 private:
  friend class Optimizer;
  friend class LRScheduler;
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
  std::optional<double> initial_lr_;  // when the first scheduler was made: what all start from
};

struct Algorithm;  // cpp_api/optim/algorithms.h
struct Batch;

class LAZULI_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Of all groups, in order.
  const std::vector<Tensor>& parameters() const { return parameters_; }
  std::vector<ParamGroup>& param_groups() { return groups_; }
  const std::vector<ParamGroup>& param_groups() const { return groups_; }
  // The options of a group that is added without.
  const OptimizerOptions& defaults() const { return *defaults_; }
  // Throws Error(kInvalidArgument) for a parameter that another group has.
  void add_param_group(ParamGroup group, LAZULI_LOC);

  // Records one update of every parameter that has a gradient. Throws with nothing changed:
  // Error(kInvalidArgument) if a gradient or a state no longer fits its parameter.
  // If the update before is still pending, nobody syncs: then this does first, so that a loop
  // without mark_step() runs one program a step, too.
  void step(LAZULI_LOC);
  // Calls the closure, which computes the loss and its gradients, and then steps.
  virtual Tensor step(const std::function<Tensor()>& closure, LAZULI_LOC);
  // Drops the gradients: grad() is undefined until the next backward(). Otherwise they become 0.
  void zero_grad(bool set_to_none = true, LAZULI_LOC);

  // The learning rate, which all optimisers have: of the first group, and of all.
  double lr() const { return groups_[0].options().get_lr(); }
  void set_lr(double lr, LAZULI_LOC);

  // What a training run goes on from: the options of each group, what is counted for each parameter,
  // and tensors such as "3.momentum_buffer" of parameter 3.
  virtual StateDict state_dict() const;
  // Throws Error(kInvalidArgument), with nothing changed, for the state of another optimiser, of
  // other groups or of parameters of other shapes.
  virtual void load_state_dict(const StateDict& state, LAZULI_LOC);

 protected:
  // An option by name, for state_dict().
  struct Option {
    std::string name;
    std::variant<double*, bool*, std::int64_t*, std::optional<double>*,
                 std::optional<std::int64_t>*, std::optional<std::string>*>
        value;
  };

  // Throws Error(kInvalidArgument) if there is no parameter, or an undefined or repeated one, and
  // for options out of range.
  Optimizer(const Algorithm& algorithm, std::unique_ptr<OptimizerOptions> defaults,
            SourceLocation loc);
  void AddGroups(std::vector<ParamGroup> groups, SourceLocation loc);
  // Takes the options for all groups; throws with nothing changed.
  void SetOptions(const OptimizerOptions& options, SourceLocation loc);

  virtual std::vector<Option> OptionsIn(OptimizerOptions& options) const = 0;
  // Throws Error(kInvalidArgument) for options out of range, or of another optimiser.
  virtual void CheckOptions(const OptimizerOptions& options, SourceLocation loc) const = 0;
  // Records the update of a batch by one foreach_* call.
  virtual void Update(Batch& batch, const OptimizerOptions& options) = 0;
  // One of the algorithm's states of each parameter; undefined until made.
  const std::vector<Tensor>& state(std::size_t i) const {
    Settle();
    return states_[i];
  }

 private:
  friend class LRScheduler;
  void Refuse(const std::string& what, SourceLocation loc) const;
  void CheckGroup(const ParamGroup& group, std::size_t first, SourceLocation loc) const;
  // Puts the parameters of a group that have gradients into batches of one dtype and device.
  void MakeBatches(const ParamGroup& group, std::size_t first, std::size_t number);
  Batch& BatchFor(std::size_t parameter, std::size_t group);
  // Whether an update has made this state, of all of the batch.
  bool IsNew(const Batch& batch, std::size_t state) const;
  // Names the states that an update has made.
  void NameStates(Batch& batch) const;
  // Takes over a batch's states and counts its steps.
  void Keep(const Batch& batch) noexcept;
  void Parse(const std::string& name, const std::string& text, const Option& option,
             SourceLocation loc) const;
  // A step whose outcome is not known yet: what was before it.
  struct Recorded;
  void Remember(internal::UpdateOutcome outcome);
  // Takes back what steps have counted and made that were not taken.
  void Settle() const;
  void TakeBack(std::size_t recorded) const;

  const Algorithm& algorithm_;
  std::unique_ptr<OptimizerOptions> defaults_;
  std::vector<ParamGroup> groups_;
  std::vector<Tensor> parameters_;
  mutable std::vector<std::vector<double>> numbers_;  // of each parameter, what the algorithm counts
  mutable std::vector<std::vector<Tensor>> states_;   // of each state, one for a parameter
  mutable std::vector<Batch> batches_;      // of the step being made; between steps they are empty
  mutable std::vector<Recorded> recorded_;  // oldest first; those behind are memory for the next
  mutable std::size_t num_recorded_ = 0;
  internal::PendingUpdate update_;  // the newest step's
};

// An optimiser with options of a type.
template <class O>
class LAZULI_API Configured : public Optimizer {
 public:
  explicit Configured(std::vector<Tensor> parameters, const O& options = {}, LAZULI_LOC);
  explicit Configured(std::vector<ParamGroup> groups, const O& options = {}, LAZULI_LOC);
  // Those of a group.
  const O& options(std::size_t group = 0) const;
  // Throws Error(kInvalidArgument), with nothing changed, for options out of range.
  void set_options(const O& options, LAZULI_LOC);

 private:
  std::vector<Option> OptionsIn(OptimizerOptions& options) const override;
  void CheckOptions(const OptimizerOptions& options, SourceLocation loc) const override;
  void Update(Batch& batch, const OptimizerOptions& options) override;
};

// Stochastic gradient descent. With momentum, v = momentum * v + (1 - dampening) * grad moves the
// parameter instead of grad; the first v is grad.
struct LAZULI_API SGDOptions {
  double lr = 1e-3;         // >= 0
  double momentum = 0;      // >= 0; 0 = off
  double dampening = 0;     // any, but 0 with nesterov; 0 = off
  double weight_decay = 0;  // >= 0, adds weight_decay * parameter to grad; 0 = off
  bool nesterov = false;    // moves by grad + momentum * v; needs momentum
  bool maximize = false;    // here and below: moves so that what backward() was called of grows
};
class LAZULI_API SGD : public Configured<SGDOptions> {
 public:
  using Configured::Configured;
  // v of each parameter; undefined before its first step and without momentum.
  const std::vector<Tensor>& momentum_buffers() const { return state(0); }
};

// Adam (Kingma and Ba, 2015): the parameter moves by lr * m / (sqrt(v) + eps), with m and v the
// running means of grad and of its square, corrected for their start at 0.
struct LAZULI_API AdamOptions {
  double lr = 1e-3;                             // >= 0
  std::pair<double, double> betas{0.9, 0.999};  // each in [0, 1)
  double eps = 1e-8;                            // >= 0
  double weight_decay = 0;  // >= 0, adds weight_decay * parameter to grad; 0 = off
  bool amsgrad = false;     // divides by the largest v so far (Reddi et al., 2018)
  bool maximize = false;
  bool decoupled_weight_decay = false;  // as AdamW
};
class LAZULI_API Adam : public Configured<AdamOptions> {
 public:
  using Configured::Configured;
};

// Adam with decoupled weight decay (Loshchilov and Hutter, 2019): the parameter is first multiplied
// by 1 - lr * weight_decay.
struct LAZULI_API AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};
class LAZULI_API AdamW : public Configured<AdamWOptions> {
 public:
  using Configured::Configured;
};

// Adam with Nesterov's momentum (Dozat, 2016).
struct LAZULI_API NAdamOptions {
  double lr = 2e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;  // >= 0
  bool decoupled_weight_decay = false;
  bool maximize = false;
};
class LAZULI_API NAdam : public Configured<NAdamOptions> {
 public:
  using Configured::Configured;
};

// Adam whose variance is rectified; the first steps, in which it is not known, use none (Liu et al.,
// 2020).
struct LAZULI_API RAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
  bool maximize = false;
};
class LAZULI_API RAdam : public Configured<RAdamOptions> {
 public:
  using Configured::Configured;
};

// Adam with the largest gradient so far, decayed, in place of the variance (Kingma and Ba, 2015).
struct LAZULI_API AdamaxOptions {
  double lr = 2e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
};
class LAZULI_API Adamax : public Configured<AdamaxOptions> {
 public:
  using Configured::Configured;
};

// RMSprop (Hinton, 2012): the parameter moves by lr * grad / (sqrt(v) + eps), with v the running
// mean of the gradient's square; with momentum, by lr * (momentum * what it was + that quotient).
struct LAZULI_API RMSpropOptions {
  double lr = 1e-2;         // >= 0
  double alpha = 0.99;      // >= 0: how much of v stays
  double eps = 1e-8;        // >= 0
  double weight_decay = 0;  // >= 0; 0 = off
  double momentum = 0;      // >= 0; 0 = off
  bool centered = false;    // v minus the square of the gradient's running mean
  bool maximize = false;
};
class LAZULI_API RMSprop : public Configured<RMSpropOptions> {
 public:
  using Configured::Configured;
};

// Adagrad (Duchi et al., 2011): the parameter moves by lr / (1 + steps * lr_decay) * grad /
// (sqrt(sum of squares of the gradients so far) + eps).
struct LAZULI_API AdagradOptions {
  double lr = 1e-2;                      // >= 0
  double lr_decay = 0;                   // >= 0
  double weight_decay = 0;               // >= 0; 0 = off
  double initial_accumulator_value = 0;  // >= 0
  double eps = 1e-10;                    // >= 0
  bool maximize = false;
};
class LAZULI_API Adagrad : public Configured<AdagradOptions> {
 public:
  using Configured::Configured;
};

// Adadelta (Zeiler, 2012): the size of a move comes from the running means of squares of the
// gradients and of the moves before.
struct LAZULI_API AdadeltaOptions {
  double lr = 1;            // >= 0
  double rho = 0.9;         // in [0, 1]: how much of the means stays
  double eps = 1e-6;        // >= 0
  double weight_decay = 0;  // >= 0; 0 = off
  bool maximize = false;
};
class LAZULI_API Adadelta : public Configured<AdadeltaOptions> {
 public:
  using Configured::Configured;
};

// Averaged stochastic gradient descent (Polyak and Juditsky, 1992): state "ax" is the average.
struct LAZULI_API ASGDOptions {
  double lr = 1e-2;         // >= 0
  double lambd = 1e-4;      // decay
  double alpha = 0.75;      // power of the learning rate's decay
  double t0 = 1e6;          // the step from which on averages are taken
  double weight_decay = 0;  // >= 0; 0 = off
  bool maximize = false;
};
class LAZULI_API ASGD : public Configured<ASGDOptions> {
 public:
  using Configured::Configured;
};

// Resilient propagation (Riedmiller and Braun, 1993): each element has a step of its own, which
// grows while the gradient keeps its sign. For whole batches.
struct LAZULI_API RpropOptions {
  double lr = 1e-2;                                // >= 0, the first step
  std::pair<double, double> etas{0.5, 1.2};        // 0 < first < 1 < second
  std::pair<double, double> step_sizes{1e-6, 50};  // the smallest and the largest step
  bool maximize = false;
};
class LAZULI_API Rprop : public Configured<RpropOptions> {
 public:
  using Configured::Configured;
};

// Lion (Chen et al., 2023): the parameter moves by lr in the direction of a mean's sign, after decay
// as in AdamW.
struct LAZULI_API LionOptions {
  double lr = 1e-4;                            // >= 0
  std::pair<double, double> betas{0.9, 0.99};  // each in [0, 1)
  double weight_decay = 0;                     // >= 0; 0 = off
  bool maximize = false;
};
class LAZULI_API Lion : public Configured<LionOptions> {
 public:
  using Configured::Configured;
};

// Adafactor (Shazeer and Stern, 2018): the variance of a matrix is kept as that of its rows and
// columns.
struct LAZULI_API AdafactorOptions {
  double lr = 1e-2;           // >= 0
  double beta2_decay = -0.8;  // <= 0
  // The smallest root of the variance - nothing: what is added to 1 and still seen - and the
  // smallest size of a parameter, in whose shares the learning rate is. Each >= 0.
  std::pair<std::optional<double>, double> eps{std::nullopt, 1e-3};
  double d = 1;             // >= 1, what a move's root mean square is limited to
  double weight_decay = 0;  // >= 0, decoupled; 0 = off
  bool maximize = false;
};
class LAZULI_API Adafactor : public Configured<AdafactorOptions> {
 public:
  using Configured::Configured;
};

// Muon (Jordan, 2024), of matrices alone: the parameter moves by the gradient's running mean, made
// orthogonal by a polynomial that is applied several times.
struct LAZULI_API MuonOptions {
  double lr = 1e-3;           // >= 0
  double weight_decay = 0.1;  // >= 0, decoupled
  double momentum = 0.95;     // >= 0
  bool nesterov = true;       // moves by the mean of the gradient and the running mean
  std::array<double, 3> ns_coefficients{3.4445, -4.7750, 2.0315};  // of x, x^3 and x^5
  double eps = 1e-7;                             // the least norm that is divided by
  std::int64_t ns_steps = 5;                     // below 100
  std::optional<std::string> adjust_lr_fn = {};  // "original", as none is, or "match_rms_adamw"
};
class LAZULI_API Muon : public Configured<MuonOptions> {
 public:
  using Configured::Configured;
};

// L-BFGS (Nocedal and Wright, Numerical Optimization, algorithm 7.4): a step calls the closure
// several times, and reads the losses that it gives. It takes one group of parameters.
struct LAZULI_API LBFGSOptions {
  double lr = 1;                              // >= 0
  std::int64_t max_iter = 20;                 // of a step
  std::optional<std::int64_t> max_eval = {};  // calls of the closure in a step; none: 5/4 max_iter
  double tolerance_grad = 1e-7;               // a step ends where no gradient is larger,
  double tolerance_change = 1e-9;             // and where parameters or the loss change by less
  std::int64_t history_size = 100;            // >= 1, changes that the direction is made of
  std::optional<std::string> line_search_fn = {};  // none, or "strong_wolfe"
};
class LAZULI_API LBFGS : public Configured<LBFGSOptions> {
 public:
  using Configured::Configured;
  // Moves the parameters as long as it pays. Returns the loss before. Without a closure it throws
  // Error(kInvalidArgument).
  Tensor step(const std::function<Tensor()>& closure, LAZULI_LOC) override;
  using Optimizer::step;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state, LAZULI_LOC) override;

 private:
  // Of all steps; tensors are flat, undefined before the first.
  struct History {
    std::int64_t iterations = 0, evaluations = 0;
    double t = 0, loss = 0;                        // the newest step's length, and the loss before
    Tensor direction, gradient, scale;             // the newest; what the inverse begins as
    std::vector<Tensor> changes, steps, inverses;  // of gradients, of parameters, 1 / their product
  };
  class Run;
  History history_;
};

// state_dict() as a safetensors file (serialize.h).
LAZULI_API void save(const Optimizer& optimizer, const std::string& path, LAZULI_LOC);
LAZULI_API void load(Optimizer& optimizer, const std::string& path, LAZULI_LOC);

}  // namespace lazuli::optim
