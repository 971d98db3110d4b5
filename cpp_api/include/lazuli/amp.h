// Mixed precision: functions that choose narrow floats by themselves, and scales of losses.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "lazuli/dtype.h"
#include "lazuli/optim.h"
#include "lazuli/tensor.h"

namespace lazuli::amp {

// While alive, functions of this thread choose the dtypes that they compute in, as PyTorch's do on a
// CPU: products and convolutions of floats take `dtype`, losses, Fourier transforms and decompositions
// float32, and cat() and its kin the widest of their arguments. The rows of the functions say which
// (docs/functions.md). float64 stays as it is. Gradients have the dtype of what they belong to.
//
//   const amp::Autocast narrow;  // bfloat16
//   Tensor loss = nn::functional::cross_entropy(net.forward(x), y);
class LAZULI_API Autocast {
 public:
  // bfloat16 or float16; another dtype is an error. An Autocast that is not enabled switches off one
  // around it.
  explicit Autocast(DType dtype = kBFloat16, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  std::optional<DType> saved_;
};

// What functions of this thread narrow to; none where no Autocast lives.
LAZULI_API std::optional<DType> autocast_dtype();
// From now on, of this thread.
LAZULI_API void set_autocast_dtype(std::optional<DType> dtype);

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2, backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  // steps in a row with finite gradients
  bool enabled = true;
};

// Multiplies a loss so that its gradients do not vanish in narrow floats, and leaves out steps whose
// gradients are not finite.
//
//   scaler.scale(loss).backward();
//   scaler.step(opt);
//   scaler.update();
//
// Throws Error(kInvalidArgument) for options out of range, and for calls out of order.
class LAZULI_API GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {}, LAZULI_LOC);

  bool is_enabled() const { return options_.enabled; }
  double get_scale() const { return options_.enabled ? scale_ : 1; }

  Tensor scale(const Tensor& loss, LAZULI_LOC) const;
  // Divides the gradients of the optimiser's parameters by the factor, once between two updates, and
  // reads whether all are finite.
  void unscale_(optim::Optimizer& optimizer, LAZULI_LOC);
  // unscale_() if that was not called, and the optimiser's step if all gradients are finite: whether
  // it was made.
  bool step(optim::Optimizer& optimizer, LAZULI_LOC);
  // The factor of the next step: `new_scale`, or less after gradients that were not finite, and more
  // after growth_interval steps in a row.
  void update(std::optional<double> new_scale = std::nullopt, LAZULI_LOC);

  StateDict state_dict() const;  // the factor and the number of good steps
  void load_state_dict(const StateDict& state, LAZULI_LOC);

 private:
  GradScalerOptions options_;
  double scale_;
  std::int64_t good_steps_ = 0;
  std::map<const optim::Optimizer*, bool> finite_;  // of those unscaled since the last update
};

}  // namespace lazuli::amp
