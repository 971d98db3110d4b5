#include "lazuli/nn/utils.h"

#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/foreach.h"
#include "lazuli/internal/fail.h"

namespace lazuli::nn::utils {
namespace {

TensorList Gradients(const std::vector<Tensor>& parameters) {
  TensorList gradients;
  for (const Tensor& p : parameters) {
    if (Tensor grad = p.grad(); grad.defined()) gradients.push_back(std::move(grad));
  }
  return gradients;
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, const Scalar& max_norm, double order,
                       SourceLocation loc) {
  const SiteScope site(loc);
  if (!(max_norm.value() >= 0)) {
    lazuli::internal::Fail(
        ErrorCode::kInvalidArgument,
        "clip_grad_norm_: max_norm must be at least 0, is " + std::to_string(max_norm.value()),
        loc);
  }
  const TensorList gradients = Gradients(parameters);
  return gradients.empty() ? zeros({}) : foreach_clip_norm_(gradients, max_norm, order);
}

void clip_grad_value_(const std::vector<Tensor>& parameters, const Scalar& limit,
                      SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  if (!(limit.value() >= 0)) {
    lazuli::internal::Fail(
        ErrorCode::kInvalidArgument,
        "clip_grad_value_: limit must be at least 0, is " + std::to_string(limit.value()), loc);
  }
  const Scalar low(-limit.value());
  for (Tensor& grad : Gradients(parameters)) grad.copy_(clamp(grad, low, limit));
}

}  // namespace lazuli::nn::utils
