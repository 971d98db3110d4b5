#include "ir/support/str.h"
#include "lazuli/autograd.h"
#include "lazuli/internal/fail.h"
#include "lazuli/torch/out.h"

namespace lazuli::internal {

Tensor& WriteOut(const char* function, Tensor& out, const Tensor& result, SourceLocation loc) {
  if (!out.defined())
    Fail(ErrorCode::kInvalidArgument, ir::Str(function, ": out is an undefined tensor"), loc);
  if (grad_enabled() && (result.requires_grad() || out.requires_grad()))
    Fail(
        ErrorCode::kFailedPrecondition,
        ir::Str(function, ": has no gradient; detach() what requires one, or call it under NoGrad"),
        loc);
  if (!can_cast(result.dtype(), out.dtype()))
    Fail(ErrorCode::kInvalidArgument,
         ir::Str(function, ": the result is ", to_string(result.dtype()), ", out is ",
                 to_string(out.dtype())),
         loc);
  if (out.sizes() != result.sizes()) out.resize_(result.sizes(), loc);
  return out.copy_(result, loc);
}

}  // namespace lazuli::internal
