// Gradient mode. tensor.h has backward(), grad() and set_requires_grad().
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "lazuli/tensor.h"

namespace lazuli {

LAZULI_API bool grad_enabled();
// From now on, of this thread; NoGrad and EnableGrad give back what was before them.
LAZULI_API void set_grad_enabled(bool on);

// While alive, ops of this thread record no history.
class LAZULI_API NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool saved_;
};

// The same with history, within one.
class LAZULI_API EnableGrad {
 public:
  EnableGrad();
  ~EnableGrad();
  EnableGrad(const EnableGrad&) = delete;
  EnableGrad& operator=(const EnableGrad&) = delete;

 private:
  bool saved_;
};

// While alive, ops of this thread record no history, and what they make is never part of one: an op
// that would save it for backward refuses it.
class LAZULI_API InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true);
  ~InferenceMode();
  static bool is_enabled();
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

 private:
  bool grad_, saved_;
};

// While alive, backward() of any thread throws where a gradient is NaN, and names the op that gave
// it and the line that recorded the op. Each backward() syncs at its end.
class LAZULI_API DetectAnomaly {
 public:
  explicit DetectAnomaly(bool check_nan = true);
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  bool enabled_, check_nan_;
};

// What mutable_grad() gives: the gradient, which assignment replaces.
class LAZULI_API GradPlace : public Tensor {
 public:
  GradPlace(const Tensor& owner, SourceLocation loc)
      : Tensor(owner.grad()), owner_(owner), loc_(loc) {}
  // Of the owner; undefined: none.
  GradPlace& operator=(const Tensor& grad) {
    owner_.set_grad(grad, loc_);
    static_cast<Tensor&>(*this) = grad;
    return *this;
  }
  void reset() { *this = Tensor(); }

 private:
  Tensor owner_;
  SourceLocation loc_;
};

// What register_hook() gives.
class LAZULI_API HookHandle {
 public:
  HookHandle() = default;
  HookHandle(std::weak_ptr<void> hooks, std::uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  void remove();  // gradients pass by again; nothing if that is so already

 private:
  std::weak_ptr<void> hooks_;
  std::uint64_t id_ = 0;
};

// What the two halves of a Function tell each other.
class LAZULI_API AutogradContext {
 public:
  // Of forward().
  void save_for_backward(std::vector<Tensor> tensors) { saved_ = std::move(tensors); }
  void mark_dirty(std::vector<Tensor> inputs) { dirty_ = std::move(inputs); }  // changed in place
  void mark_non_differentiable(std::vector<Tensor> results) { plain_ = std::move(results); }
  // Whether backward() gets zeros for results that nobody used, instead of undefined tensors.
  void set_materialize_grads(bool on) { materialize_ = on; }
  // Whether the gradient of argument i is wanted; counted among all arguments.
  bool needs_input_grad(std::size_t i) const { return i < needs_.size() && needs_[i]; }
  // Of backward(): throws if they were changed in place or freed since.
  std::vector<Tensor> get_saved_variables() const;
  // Anything; of numbers it is the kind that was saved: saved_data["scale"].to<double>().
  struct Saved : std::any {
    using any::any;
    template <class T>
    T to() const {
      return std::any_cast<T>(*this);
    }
    double toDouble() const { return Number<double>(); }
    std::int64_t toInt() const { return Number<std::int64_t>(); }
    bool toBool() const { return Number<bool>(); }
    Tensor toTensor() const { return to<Tensor>(); }

   private:
    // A number of any kind.
    template <class T>
    T Number() const {
      if (const auto* v = std::any_cast<double>(this)) return static_cast<T>(*v);
      if (const auto* v = std::any_cast<float>(this)) return static_cast<T>(*v);
      if (const auto* v = std::any_cast<int>(this)) return static_cast<T>(*v);
      if (const auto* v = std::any_cast<bool>(this)) return static_cast<T>(*v);
      return static_cast<T>(std::any_cast<std::int64_t>(*this));
    }
  };
  std::map<std::string, Saved> saved_data;

 private:
  template <class T>
  friend class Function;
  friend struct FunctionCall;
  std::vector<Tensor> saved_, dirty_, plain_;
  std::vector<bool> needs_;
  bool materialize_ = true;
  const void* node_ = nullptr;  // while backward() runs
};

// A function with a gradient of its own:
//
//   struct Exp : lazuli::Function<Exp> {
//     static Tensor forward(AutogradContext* ctx, const Tensor& x) {
//       Tensor y = lazuli::exp(x);
//       ctx->save_for_backward({y});
//       return y;
//     }
//     static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> dys) {
//       return {dys[0] * ctx->get_saved_variables()[0]};
//     }
//   };
//   Tensor y = Exp::apply(x);
//
// forward() runs without history; it takes anything and returns a tensor or a vector of them.
// backward() returns a gradient for each argument, undefined for those that are no tensors; under
// create_graph what it records has a history of its own.
using Backward = std::function<std::vector<Tensor>(AutogradContext*, std::vector<Tensor>)>;
struct LAZULI_API FunctionCall {
  static void Finish(const char* name, const std::shared_ptr<AutogradContext>& context,
                     const std::vector<Tensor>& inputs, std::vector<Tensor>& results,
                     Backward backward, SourceLocation loc);
};
template <class T>
class Function {
 public:
  template <class... A>
  static auto apply(const A&... arguments) {
    auto context = std::make_shared<AutogradContext>();
    const std::vector<Tensor> inputs{AsTensor(arguments)...};
    for (const Tensor& x : inputs)
      context->needs_.push_back(x.defined() && x.requires_grad() && grad_enabled());
    auto made = [&] {
      const NoGrad no_grad;
      return T::forward(context.get(), arguments...);
    }();
    constexpr bool kOne = std::is_same_v<decltype(made), Tensor>;
    std::vector<Tensor> results;
    if constexpr (kOne)
      results = {std::move(made)};
    else
      results = std::move(made);
    FunctionCall::Finish(typeid(T).name(), context, inputs, results, &T::backward,
                         SourceLocation::current());
    if constexpr (kOne)
      return results[0];
    else
      return results;
  }

 private:
  template <class A>
  static Tensor AsTensor(const A& argument) {
    if constexpr (std::is_same_v<A, Tensor>)
      return argument;
    else
      return {};
  }
};

// function(inputs) without keeping what its ops save for backward: they run again there, on the same
// elements and with the same random numbers, behind a barrier that keeps the compiler from using the
// values of the first time.
LAZULI_API std::vector<Tensor> checkpoint(
    std::function<std::vector<Tensor>(const std::vector<Tensor>&)> function,
    const std::vector<Tensor>& inputs, bool preserve_rng_state = true, LAZULI_LOC);

// While alive, tensors that this thread saves for backward are given to `pack`, without history, and
// what it returns is kept; backward gets what `unpack` makes of that.
class LAZULI_API SavedTensorsHooks {
 public:
  SavedTensorsHooks(std::function<std::any(const Tensor&)> pack,
                    std::function<Tensor(const std::any&)> unpack);
  ~SavedTensorsHooks();
  SavedTensorsHooks(const SavedTensorsHooks&) = delete;
  SavedTensorsHooks& operator=(const SavedTensorsHooks&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The gradients of the outputs with respect to the inputs, which may be leaves or results of ops;
// .grad stays as it is. `gradients` are those of the outputs: none, or one each, of which those of
// scalars may be undefined.
struct GradOptions {
  // Keeps what the forward pass saved; create_graph does, too, and records the gradients' own
  // history.
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  // an input the outputs do not depend on is no error: undefined
  // The gradients of the outputs are zeros, and the results are only differentiated for them, which is
  // forward mode. With create_graph; loops that have no backward then have this derivative.
  bool is_transposed = false;
};
LAZULI_API std::vector<Tensor> grad(const std::vector<Tensor>& outputs,
                                    const std::vector<Tensor>& inputs,
                                    const std::vector<Tensor>& gradients = {},
                                    const GradOptions& options = {}, LAZULI_LOC);
// Tensor::backward() of several outputs at once.
LAZULI_API void backward(const std::vector<Tensor>& outputs,
                         const std::vector<Tensor>& gradients = {},
                         Tensor::BackwardOptions options = {}, LAZULI_LOC);

// The same, but only to .grad of these tensors, leaves or results.
LAZULI_API void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
                         const std::vector<Tensor>& inputs, Tensor::BackwardOptions options = {},
                         LAZULI_LOC);

// Gradients of a scalar function at these inputs by central differences, compared with backward():
// the largest difference relative to max(1, |numeric|). Inputs should be f64 for a meaningful
// bound. `eps` is the step.
LAZULI_API double gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                            const std::vector<Tensor>& inputs, double eps = 1e-6,
                            SourceLocation loc = SourceLocation::current());
// The same of the function's gradient, with gradients of the results drawn at random.
LAZULI_API double gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                const std::vector<Tensor>& inputs, double eps = 1e-6, LAZULI_LOC);

template <class F>
  requires std::same_as<std::invoke_result_t<F, const Tensor&>, void>
HookHandle Tensor::register_hook(F hook, SourceLocation loc) {
  return register_hook(std::function<Tensor(const Tensor&)>([hook](const Tensor& grad) {
                         hook(grad);
                         return Tensor();
                       }),
                       loc);
}

}  // namespace lazuli
