#include "lazy/ops/loss/reduction.h"

namespace lazuli::lazy {

Tensor Reduced(const Tensor& loss, Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone:
      return loss;
    case Reduction::kSum:
      return Sum(loss);
    case Reduction::kMean:
      return Mean(loss);
  }
  return loss;
}

}  // namespace lazuli::lazy
