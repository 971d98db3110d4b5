#include "lazuli/autograd.h"

#include <algorithm>
#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include <cxxabi.h>

#include "cpp_api/src/operands.h"
#include "cpp_api/src/tensor_lists.h"
#include "lazy/autograd/backward.h"
#include "lazy/autograd/checkpoint.h"
#include "lazy/autograd/custom.h"
#include "lazy/tensor/tape.h"

namespace lazuli {
namespace {

// "Exp" of typeid(Exp).name().
std::string ClassName(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  const std::string name = text ? text.get() : mangled;
  return name.substr(name.rfind(':') + 1);
}

}  // namespace

bool grad_enabled() { return lazy::GradEnabled(); }
void set_grad_enabled(bool on) { lazy::SetGradEnabled(on); }
NoGrad::NoGrad() : saved_(lazy::SetGradEnabled(false)) {}
NoGrad::~NoGrad() { lazy::SetGradEnabled(saved_); }
EnableGrad::EnableGrad() : saved_(lazy::SetGradEnabled(true)) {}
EnableGrad::~EnableGrad() { lazy::SetGradEnabled(saved_); }
InferenceMode::InferenceMode(bool enabled)
    : grad_(lazy::SetGradEnabled(!enabled)), saved_(lazy::SetInferenceMode(enabled)) {}
InferenceMode::~InferenceMode() {
  lazy::SetInferenceMode(saved_);
  lazy::SetGradEnabled(grad_);
}
bool InferenceMode::is_enabled() { return lazy::InferenceMode(); }
DetectAnomaly::DetectAnomaly(bool check_nan)
    : enabled_(lazy::GetAnomalyMode().enabled), check_nan_(lazy::GetAnomalyMode().check_nan) {
  lazy::SetAnomalyMode({true, check_nan});
}
DetectAnomaly::~DetectAnomaly() { lazy::SetAnomalyMode({enabled_, check_nan_}); }

void HookHandle::remove() {
  lazy::RemoveHook({std::static_pointer_cast<lazy::GradHooks>(hooks_.lock()), id_});
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& gradients, const GradOptions& options,
                         SourceLocation loc) {
  return Call(loc, [&] {
    std::vector<Tensor> result;
    for (lazy::Tensor& gradient :
         lazy::Grad(In(outputs, "grad"), In(inputs, "grad"), Unwrapped(gradients),
                    {options.retain_graph, options.create_graph, options.is_transposed},
                    options.allow_unused))
      result.push_back(TensorAccess::Wrap(std::move(gradient)));
    return result;
  });
}

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
              Tensor::BackwardOptions options, SourceLocation loc) {
  Call(loc, [&] {
    lazy::Backward(Unwrapped(outputs), Unwrapped(gradients),
                   {options.retain_graph, options.create_graph});
  });
}

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
              const std::vector<Tensor>& inputs, Tensor::BackwardOptions options,
              SourceLocation loc) {
  Call(loc, [&] {
    lazy::BackwardTo(Unwrapped(outputs), Unwrapped(gradients), In(inputs, "backward"),
                     {options.retain_graph, options.create_graph});
  });
}

// --- functions with gradients of their own

std::vector<Tensor> AutogradContext::get_saved_variables() const {
  if (node_ == nullptr) return saved_;
  return Wrapped(static_cast<const lazy::CustomNode*>(node_)->Saved());
}

void FunctionCall::Finish(const char* name, const std::shared_ptr<AutogradContext>& context,
                          const std::vector<Tensor>& inputs, std::vector<Tensor>& results,
                          Backward backward, SourceLocation loc) {
  const std::vector<bool>& needs = context->needs_;
  if (std::find(needs.begin(), needs.end(), true) == needs.end()) return;
  Call(loc, [&] {
    const lazy::Tensors in = Unwrapped(inputs);
    const auto call = [context, backward = std::move(backward)](
                          const lazy::CustomNode& node, absl::Span<const lazy::Tensor> dys) {
      const lazy::SiteOverride none(ir::kNoSite);  // what it records has lines of its own
      context->node_ = &node;
      const absl::Cleanup end = [&] { context->node_ = nullptr; };
      return Unwrapped(backward(context.get(), Wrapped(dys)));
    };
    const auto node = ir::MakeIntrusive<lazy::CustomNode>(ClassName(name) + "Backward", in, call);
    node->set_materialize(context->materialize_);
    const auto among = [](const Tensor& tensor, const std::vector<Tensor>& list) {
      return std::any_of(list.begin(), list.end(),
                         [&](const Tensor& other) { return other.is_same(tensor); });
    };
    std::vector<lazy::CustomNode::Result> kinds;
    for (const Tensor& result : results)
      kinds.push_back({among(result, context->dirty_), !among(result, context->plain_)});
    lazy::Tensors out = Unwrapped(results);
    node->Finish(in, absl::MakeSpan(out), kinds, Unwrapped(std::exchange(context->saved_, {})));
    results = Wrapped(out);
  });
}

std::vector<Tensor> checkpoint(
    std::function<std::vector<Tensor>(const std::vector<Tensor>&)> function,
    const std::vector<Tensor>& inputs, bool preserve_rng_state, SourceLocation loc) {
  return Call(loc, [&] {
    const auto call = [function = std::move(function)](absl::Span<const lazy::Tensor> given) {
      const lazy::SiteOverride none(ir::kNoSite);
      return Unwrapped(function(Wrapped(given)));
    };
    return Wrapped(lazy::Checkpoint(call, Unwrapped(inputs), preserve_rng_state));
  });
}

struct SavedTensorsHooks::Impl {
  lazy::PackHook hook;
  lazy::PackScope scope{&hook};
};

namespace {
class PackedByUser final : public lazy::Packed {
 public:
  PackedByUser(std::any kept, const std::function<Tensor(const std::any&)>& unpack)
      : kept_(std::move(kept)), unpack_(unpack) {}
  lazy::Tensor Unpack() override { return TensorAccess::Unwrap(unpack_(kept_)); }

 private:
  std::any kept_;
  std::function<Tensor(const std::any&)> unpack_;
};
}  // namespace

SavedTensorsHooks::SavedTensorsHooks(std::function<std::any(const Tensor&)> pack,
                                     std::function<Tensor(const std::any&)> unpack)
    : impl_(std::make_unique<Impl>()) {
  impl_->hook = [pack = std::move(pack), unpack = std::move(unpack)](const lazy::Tensor& tensor) {
    const lazy::SiteOverride none(ir::kNoSite);
    return std::make_unique<PackedByUser>(pack(TensorAccess::Wrap(tensor)), unpack);
  };
}
SavedTensorsHooks::~SavedTensorsHooks() = default;

}  // namespace lazuli
