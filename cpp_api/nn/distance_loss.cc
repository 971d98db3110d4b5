#include <string>

#include "lazuli/internal/fail.h"
#include "lazuli/internal/text.h"
#include "lazuli/nn/functional.h"

namespace lazuli::nn::functional {

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative,
                                         const DistanceFunction& distance_function, double margin,
                                         bool swap, Reduction reduction, SourceLocation loc) {
  const SiteScope site(loc);
  constexpr char kName[] = "triplet_margin_with_distance_loss: ";
  if (!(margin > 0)) {
    lazuli::internal::Fail(
        ErrorCode::kInvalidArgument,
        std::string(kName) + "margin must be above 0, is " + lazuli::internal::NumberText(margin),
        loc);
  }
  if (anchor.dim() != positive.dim() || anchor.dim() != negative.dim()) {
    lazuli::internal::Fail(ErrorCode::kInvalidArgument,
                           std::string(kName) + "the tensors must have the same number of dims",
                           loc);
  }
  const auto distance = [&](const Tensor& x, const Tensor& y) {
    return distance_function ? distance_function(x, y) : pairwise_distance(x, y);
  };
  Tensor far = distance(anchor, negative);
  if (swap) far = minimum(far, distance(positive, negative));
  Tensor loss = (distance(anchor, positive) - far + margin).clamp(0);
  if (reduction == Reduction::kNone) return loss;
  return reduction == Reduction::kMean ? loss.mean() : loss.sum();
}

}  // namespace lazuli::nn::functional
