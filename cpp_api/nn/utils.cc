#include "lazuli/nn/utils.h"

#include <algorithm>

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

bool HaveOneDtype(const TensorList& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const Tensor& t) { return t.dtype() == tensors[0].dtype(); });
}

// Of tensors of several dtypes, which one update does not take.
Tensor ClipApart(TensorList& gradients, const Scalar& max_norm, double order) {
  const NoGrad no_grad;
  DType wide = kFloat32;
  std::vector<Tensor> norms;
  for (const Tensor& grad : gradients) {
    norms.push_back(norm(grad, order));
    if (norms.back().dtype() == kFloat64) wide = kFloat64;
  }
  for (Tensor& part : norms) part = part.to(wide);
  const Tensor total = norm(stack(norms), order);
  const Tensor scale = clamp_max(max_norm.value() / (total + 1e-6), 1.0);
  for (Tensor& grad : gradients) grad.mul_(scale.to(grad.dtype()));
  return total;
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
  TensorList gradients = Gradients(parameters);
  if (gradients.empty()) return zeros({});
  return HaveOneDtype(gradients) ? foreach_clip_norm_(gradients, max_norm, order)
                                 : ClipApart(gradients, max_norm, order);
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
