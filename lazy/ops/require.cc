#include "lazy/ops/require.h"

#include <array>

namespace lazuli::lazy {
namespace {

struct Words {
  std::string_view before, after;
};
const Words& WordsOf(Requirement what) {
  static constexpr std::array<Words, 3> kWords = {{
      {"offsets[0] has to be 0, but is ", ""},
      {"offset ", " is below the one before it, or above the number of indices"},
      {"the element at position ", " makes the range of the bins one that is not finite"},
  }};
  return kWords[static_cast<std::size_t>(what)];
}

}  // namespace

lowering::Op RequireOp::Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op bad,
                              lowering::Op value) const {
  const Words& words = WordsOf(what);
  c.CheckNone(bad, value,
              {std::string(kName), std::string(words.before), std::string(words.after)});
  return x;
}

Tensor Require(const Tensor& x, Requirement what, const Tensor& bad, const Tensor& value) {
  return Record(RequireOp{what}, x, bad, value);
}

Tensor RequireAll(const Tensor& x, Requirement what, const Tensor& good) {
  const int64_t count = good.shape().num_elements();
  if (count == 0) return x;
  return Require(x, what, LogicalNot(Reshape(good, {-1})), Arange(count, DType::kS64, x.device()));
}

}  // namespace lazuli::lazy
