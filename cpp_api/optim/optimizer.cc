#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cpp_api/optim/options.h"
#include "lazuli/internal/fail.h"
#include "lazuli/optim.h"

namespace lazuli::optim {

using lazuli::internal::Fail;

Optimizer::Optimizer(std::vector<Tensor> parameters, const char* name, SourceLocation loc)
    : parameters_(std::move(parameters)) {
  if (parameters_.empty()) {
    Fail(ErrorCode::kInvalidArgument,
         std::string(name) + ": there are no parameters; does the model register its modules?",
         loc);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::string which = "parameter " + std::to_string(i);
    if (!parameters_[i].defined()) {
      Fail(ErrorCode::kInvalidArgument, std::string(name) + ": " + which + " is undefined", loc);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!parameters_[i].is_same(parameters_[j])) continue;
      Fail(ErrorCode::kInvalidArgument,
           std::string(name) + ": " + which + " is also parameter " + std::to_string(j) +
               "; it would be moved twice a step",
           loc);
    }
  }
}

void Optimizer::zero_grad(SourceLocation loc) {
  for (Tensor& p : parameters_) p.set_grad({}, loc);
}

void CheckAtLeastZero(const char* optimizer, const char* option, double value, SourceLocation loc) {
  if (value >= 0) return;  // false for NaN
  Fail(ErrorCode::kInvalidArgument,
       std::string(optimizer) + ": " + option + " is " + NumberText(value) +
           ", it must be at least 0",
       loc);
}

std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void NameState(Tensor& state, const Tensor& parameter, const char* name) {
  if (!parameter.name().empty()) state.set_name(parameter.name() + "." + name);
}

}  // namespace lazuli::optim
