#include "lazuli/autograd.h"

#include "cpp_api/src/operands.h"
#include "lazy/autograd/backward.h"
#include "lazy/tensor/tape.h"

namespace lazuli {
namespace {

// Undefined ones stay so.
lazy::Tensors Unwrapped(const std::vector<Tensor>& tensors) {
  lazy::Tensors result;
  for (const Tensor& t : tensors) result.push_back(TensorAccess::Unwrap(t));
  return result;
}

}  // namespace

bool grad_enabled() { return lazy::GradEnabled(); }
NoGrad::NoGrad() : saved_(lazy::SetGradEnabled(false)) {}
NoGrad::~NoGrad() { lazy::SetGradEnabled(saved_); }

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
                    {options.retain_graph, options.create_graph}, options.allow_unused))
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

}  // namespace lazuli
