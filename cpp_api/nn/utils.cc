#include "lazuli/nn/utils.h"

#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/foreach.h"
#include "lazuli/internal/fail.h"
#include "lazuli/internal/text.h"

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

Tensor parameters_to_vector(const std::vector<Tensor>& parameters, SourceLocation loc) {
  const SiteScope site(loc);
  std::vector<Tensor> flat;
  for (const Tensor& p : parameters) flat.push_back(p.reshape({-1}));
  return cat(flat);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters,
                          SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  std::int64_t elements = 0, at = 0;
  for (const Tensor& p : parameters) elements += p.numel();
  if (vector.dim() != 1 || vector.numel() != elements)
    lazuli::internal::Fail(ErrorCode::kInvalidArgument,
                           "vector_to_parameters: the vector is " +
                               lazuli::internal::ShapeText(vector) + ", the parameters have " +
                               std::to_string(elements) + " elements",
                           loc);
  for (Tensor p : parameters) {
    p.copy_(vector.slice(0, at, at + p.numel()).reshape(p.sizes()));
    at += p.numel();
  }
}

}  // namespace lazuli::nn::utils
