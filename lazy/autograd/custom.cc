#include "lazy/autograd/custom.h"

#include <algorithm>

#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

bool IsDifferentiable(DType dtype) { return IsFloat(dtype) || IsComplex(dtype); }

// Whether dims of `from` stretch to those of `to`.
bool Stretches(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int64_t i = 1; i <= from.rank(); ++i) {
    const int64_t n = from.dim(from.rank() - i);
    if (n != 1 && n != to.dim(to.rank() - i)) return false;
  }
  return true;
}

}  // namespace

CustomNode::CustomNode(std::string name, absl::Span<const Tensor> inputs, Function backward)
    : GradNode(CurrentSite()), name_(std::move(name)), backward_(std::move(backward)) {
  for (const Tensor& input : inputs) {
    edges_.push_back(input.defined() ? GradEdge(input) : Edge());
    inputs_.push_back(input.defined() ? input.shape() : Shape());
  }
}

void CustomNode::Finish(absl::Span<const Tensor> inputs, absl::Span<Tensor> results,
                        absl::Span<const Result> kinds, absl::Span<const Tensor> saved) {
  num_outputs = static_cast<uint32_t>(results.size());
  const absl::InlinedVector<Tensor, 4> returned(results.begin(), results.end());
  for (std::size_t i = 0; i < results.size(); ++i) {
    Tensor& result = results[i];
    const bool is_input = std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& input) {
      return input.defined() && input.impl() == result.impl();
    });
    outputs_.push_back(result.shape());
    devices_.push_back(result.device());
    const AutogradMeta* meta = result.impl()->autograd();
    if (kinds[i].dirty && meta != nullptr && meta->requires_grad && !meta->grad_fn) {
      throw StatusError(FailedPrecondition(
          name_, ": a leaf tensor that requires a gradient is changed in place"));
    }
    if (!kinds[i].dirty && (is_input || meta != nullptr)) result = Detach(result);
    if (!kinds[i].differentiable || !IsDifferentiable(result.dtype())) continue;
    result.impl()->mutable_autograd().SetHistory(IntrusivePtr<GradNode>(this),
                                                 static_cast<uint32_t>(i));
  }
  for (const Tensor& tensor : saved) {
    const auto of = std::find_if(returned.begin(), returned.end(), [&](const Tensor& r) {
      return tensor.defined() && r.impl() == tensor.impl();
    });
    const bool is_input = std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& input) {
      return tensor.defined() && input.defined() && input.impl() == tensor.impl();
    });
    const auto output = static_cast<uint32_t>(of - returned.begin());
    const bool is_result = of != returned.end() && (!is_input || kinds[output].dirty);
    saved_.emplace_back(tensor.defined() ? SavedTensor(tensor, is_result) : SavedTensor(),
                        is_result ? output : 0);
  }
}

Tensors CustomNode::Saved() const {
  if (released) {
    throw StatusError(FailedPrecondition(
        name_, ": the saved tensors were freed by an earlier backward; pass retain_graph to it"));
  }
  Tensors tensors;
  for (const auto& [tensor, output] : saved_)
    tensors.push_back(tensor.defined() ? tensor.Get(*this, output) : Tensor());
  return tensors;
}

Tensors CustomNode::Backward(absl::Span<const Tensor> dys) {
  Tensors given(dys.begin(), dys.end());
  for (std::size_t i = 0; i < given.size() && materialize_; ++i) {
    if (!given[i].defined()) given[i] = FullConstant(outputs_[i], 0, devices_[i]);
  }
  Tensors gradients = backward_(*this, given);
  while (gradients.size() > inputs_.size() && !gradients.back().defined()) gradients.pop_back();
  if (gradients.size() != inputs_.size()) {
    throw StatusError(FailedPrecondition("function ", name_,
                                         " returned an incorrect number of gradients (expected ",
                                         inputs_.size(), ", got ", gradients.size(), ")"));
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Tensor& gradient = gradients[i];
    if (!gradient.defined() || !edges_[i]) continue;
    const Shape& shape = inputs_[i];
    if (!Stretches(shape, gradient.shape())) {
      throw StatusError(FailedPrecondition("function ", name_,
                                           " returned an invalid gradient at index ", i, ": got ",
                                           gradient.shape(), " for the input ", shape));
    }
    if (!(gradient.shape() == shape)) gradient = SumToShape(gradient, shape);
  }
  return gradients;
}

void CustomNode::ReleaseSaved() {
  for (auto& [tensor, output] : saved_) tensor.Reset();
  released = !saved_.empty();  // what saved nothing may run again
}

}  // namespace lazuli::lazy
