#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cpp_api/optim/options.h"
#include "lazuli/autograd.h"
#include "lazuli/ops.h"

namespace lazuli::optim {
namespace {

constexpr char kMatchAdamW[] = "match_rms_adamw";

// Nearly U V^T of the singular value decomposition U S V^T. In bfloat16, of which each product is
// rounded once, as PyTorch's are: a polynomial of five steps makes much of a rounding more.
Tensor Orthogonal(const Tensor& x, const MuonOptions& o) {
  const auto [a, b, c] = o.ns_coefficients;
  const auto rounded = [](const Tensor& t) { return t.to(kBFloat16).to(kFloat32); };
  const bool high = x.size(0) > x.size(1);
  Tensor y = rounded(x);
  if (high) y = y.t();
  y = rounded(y / rounded(y.norm().clamp(o.eps)));
  for (std::int64_t i = 0; i < o.ns_steps; ++i) {
    const Tensor gram = rounded(y.matmul(y.t()));
    const Tensor update = rounded(addmm(gram, gram, gram, b, c));
    y = rounded(addmm(y, update, y, a));
  }
  return high ? y.t() : y;
}

}  // namespace

const Algorithm& AlgorithmOf(const MuonOptions&) {
  static const Algorithm algorithm{
      .name = "Muon", .numbers = {}, .states = {"momentum_buffer"}, .matrices = true};
  return algorithm;
}

void Check(const MuonOptions& o, SourceLocation loc) {
  CheckAtLeastZero("Muon", "lr", o.lr, loc);
  CheckAtLeastZero("Muon", "momentum", o.momentum, loc);
  CheckAtLeastZero("Muon", "weight_decay", o.weight_decay, loc);
  if (o.ns_steps < 0 || o.ns_steps >= 100) {
    FailOptions("Muon", "ns_steps is " + std::to_string(o.ns_steps) + ", it must be from 0 to 99",
                loc);
  }
  if (o.adjust_lr_fn && *o.adjust_lr_fn != "original" && *o.adjust_lr_fn != kMatchAdamW) {
    FailOptions(
        "Muon",
        "adjust_lr_fn is '" + *o.adjust_lr_fn + "', it must be 'original' or '" + kMatchAdamW + "'",
        loc);
  }
}

void Update(Batch& batch, const MuonOptions& o) {
  const NoGrad no_grad;
  Fill(batch, 0);
  for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
    if (batch.parameters[i].is_complex())
      FailOptions("Muon", "takes no complex parameters", SourceLocation::current());
    Tensor p = batch.parameters[i], mean = batch.states[0][i];
    const Tensor& gradient = batch.gradients[i];
    mean.lerp_(gradient, 1 - o.momentum);
    const Tensor move = Orthogonal(o.nesterov ? gradient.lerp(mean, o.momentum) : mean, o);
    const auto rows = static_cast<double>(p.size(0)), columns = static_cast<double>(p.size(1));
    const double ratio = o.adjust_lr_fn == kMatchAdamW ? 0.2 * std::sqrt(std::max(rows, columns))
                                                       : std::sqrt(std::max(1.0, rows / columns));
    p.mul_(1 - o.lr * o.weight_decay);
    p.sub_(move * (o.lr * ratio));
  }
}

}  // namespace lazuli::optim
