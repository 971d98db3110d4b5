#include "lazuli/execution.h"
#include "lazuli/internal/fail.h"
#include "lazuli/nn.h"

namespace lazuli::nn {

#define LAZULI_ACTIVATION(name, function) \
  Tensor name::forward(const Tensor& x, SourceLocation loc) const { return function(x, loc); }
LAZULI_ACTIVATION(ReLU, relu)
LAZULI_ACTIVATION(Tanh, tanh)
LAZULI_ACTIVATION(Sigmoid, sigmoid)
LAZULI_ACTIVATION(SiLU, silu)
LAZULI_ACTIVATION(SELU, selu)
LAZULI_ACTIVATION(LogSigmoid, log_sigmoid)
LAZULI_ACTIVATION(ReLU6, relu6)
LAZULI_ACTIVATION(Hardsigmoid, hardsigmoid)
LAZULI_ACTIVATION(Hardswish, hardswish)
LAZULI_ACTIVATION(Mish, mish)
LAZULI_ACTIVATION(Softsign, softsign)
#undef LAZULI_ACTIVATION

Tensor Identity::forward(const Tensor& x, SourceLocation) const { return x; }
Tensor GELU::forward(const Tensor& x, SourceLocation loc) const { return gelu(x, tanh_, loc); }
Tensor LeakyReLU::forward(const Tensor& x, SourceLocation loc) const {
  return leaky_relu(x, slope_, loc);
}
Tensor ELU::forward(const Tensor& x, SourceLocation loc) const { return elu(x, alpha_, loc); }
Tensor Softplus::forward(const Tensor& x, SourceLocation loc) const {
  return softplus(x, beta_, threshold_, loc);
}
Tensor Hardtanh::forward(const Tensor& x, SourceLocation loc) const {
  return hardtanh(x, low_, high_, loc);
}

PReLU::PReLU(std::int64_t channels, double init, SourceLocation loc) {
  const SiteScope site(loc);
  if (channels < 1) {
    lazuli::internal::Fail(
        ErrorCode::kInvalidArgument,
        "PReLU: channels is " + std::to_string(channels) + ", it must be at least 1", loc);
  }
  weight = register_parameter("weight", full({channels}, init));
}
Tensor PReLU::forward(const Tensor& x, SourceLocation loc) const { return prelu(x, weight, loc); }

Tensor Softmax::forward(const Tensor& x, SourceLocation loc) const { return softmax(x, dim_, loc); }
Tensor LogSoftmax::forward(const Tensor& x, SourceLocation loc) const {
  return log_softmax(x, dim_, loc);
}

}  // namespace lazuli::nn
