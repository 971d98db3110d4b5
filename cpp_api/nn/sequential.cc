#include "lazuli/nn/sequential.h"

#include <cstddef>
#include <string>
#include <utility>

#include "lazuli/execution.h"
#include "lazuli/internal/fail.h"

namespace lazuli::nn {

using lazuli::internal::Fail;

void Sequential::Append(const std::string& name, AnyModule module, SourceLocation loc) {
  register_module(name, module, loc);
  modules_.push_back(std::move(module));
}

Tensor Sequential::forward(const Tensor& x, SourceLocation loc) const {
  const SiteScope site(loc);
  Tensor y = x;
  for (const AnyModule& module : modules_) y = module(y);
  return y;
}

const AnyModule& Sequential::at(std::size_t i, SourceLocation loc) const {
  if (i >= modules_.size()) {
    Fail(ErrorCode::kOutOfRange,
         "Sequential: there is no module " + std::to_string(i) + ", the size is " +
             std::to_string(modules_.size()),
         loc);
  }
  return modules_[i];
}

}  // namespace lazuli::nn
