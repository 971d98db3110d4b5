// custom_jvp() and custom_vjp(), whose rules the user writes; stop_gradient() and remat().
#include <algorithm>
#include <string>
#include <utility>

#include "cpp_api/src/facade.h"
#include "cpp_api/src/tensor_lists.h"
#include "lazuli/autograd.h"
#include "lazuli/func.h"
#include "lazuli/ops.h"
#include "lazy/autograd/custom.h"
#include "lazy/tensor/random.h"
#include "lazy/tensor/tape.h"

namespace lazuli::func {
namespace {

using Tensors = std::vector<Tensor>;

bool HasTangent(const Tensor& x) {
  return x.defined() && (x.is_floating_point() || x.is_complex());
}
bool WantsHistory(const Tensors& tensors) {
  return grad_enabled() && std::any_of(tensors.begin(), tensors.end(), [](const Tensor& x) {
           return x.defined() && x.requires_grad();
         });
}
Tensors FirstOf(const Tensors& tensors, std::size_t count) {
  return {tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(count)};
}

void CheckReturned(const char* rule, const char* what, std::size_t given, std::size_t wanted) {
  if (given == wanted) return;
  throw Error(ErrorCode::kInvalidArgument,
              ir::Str(rule, ": the rule returns ", given, " ", what, " instead of ", wanted));
}

// Gradients of the arguments, from what was saved and cotangents of the results.
using RuleGradients = std::function<Tensors(const Tensors& saved, const Tensors& cotangents)>;

void GiveRuleHistory(const char* name, const Tensors& arguments, const Tensors& saved,
                     Tensors& results, RuleGradients gradients) {
  const lazy::Tensors inputs = Unwrapped(arguments);
  const auto call = [gradients = std::move(gradients)](const lazy::CustomNode& node,
                                                       absl::Span<const lazy::Tensor> dys) {
    const lazy::SiteOverride none(ir::kNoSite);  // what it records has lines of its own
    return Unwrapped(gradients(Wrapped(node.Saved()), Wrapped(dys)));
  };
  const auto node = ir::MakeIntrusive<lazy::CustomNode>(name, inputs, call);
  std::vector<lazy::CustomNode::Result> kinds;
  for (const Tensor& result : results)
    kinds.push_back({.dirty = false, .differentiable = HasTangent(result)});
  lazy::Tensors made = Unwrapped(results);
  node->Finish(inputs, absl::MakeSpan(made), kinds, Unwrapped(saved));
  results = Wrapped(made);
}

// The transpose of the rule, which is linear in the tangents.
Tensors TransposeOf(const JvpRule& rule, Tensors primals, const Tensors& cotangents) {
  const bool further = grad_enabled();  // whether these gradients are differentiated
  const EnableGrad histories;
  Tensors vectors, wanted, roots, weights;
  for (Tensor& primal : primals) {
    if (!further) primal = primal.detach();
    vectors.push_back(zeros_like(primal));
    if (!HasTangent(primal)) continue;
    vectors.back().requires_grad_(true);
    wanted.push_back(vectors.back());
  }
  const Jvp made = rule(primals, vectors);
  CheckReturned("custom_jvp", "tangents", made.tangents.size(), cotangents.size());
  for (std::size_t k = 0; k < cotangents.size(); ++k) {
    if (!made.tangents[k].defined() || !made.tangents[k].requires_grad()) continue;
    roots.push_back(made.tangents[k]);
    weights.push_back(cotangents[k]);
  }
  Tensors found(wanted.size());
  if (!roots.empty()) {
    found = lazuli::grad(roots, wanted, weights,
                         {.retain_graph = true,
                          .create_graph = further,
                          .allow_unused = true,
                          .is_transposed = lazy::IsTransposed()});
  }
  Tensors gradients;
  std::size_t next = 0;
  for (const Tensor& primal : primals)
    gradients.push_back(HasTangent(primal) ? found[next++] : Tensor());
  return gradients;
}

}  // namespace

TensorsFunction custom_jvp(TensorsFunction f, JvpRule rule, SourceLocation loc) {
  return [f = std::move(f), rule = std::move(rule), loc](const Tensors& arguments) {
    if (!WantsHistory(arguments)) return f(arguments);
    const lazy::PhiloxState draws = lazy::DefaultGenerator().state();
    Tensors results;
    {
      const NoGrad no_history;
      results = f(arguments);
    }
    Call(loc, [&] {
      GiveRuleHistory("custom_jvp", arguments, arguments, results,
                      [rule, draws](const Tensors& saved, const Tensors& cotangents) {
                        const lazy::Replay again(lazy::DefaultGenerator(), draws);
                        return TransposeOf(rule, saved, cotangents);
                      });
    });
    return results;
  };
}

TensorsFunction custom_vjp(TensorsFunction f, VjpForward forward, VjpBackward backward,
                           SourceLocation loc) {
  return [f = std::move(f), forward = std::move(forward), backward = std::move(backward),
          loc](const Tensors& arguments) {
    if (!WantsHistory(arguments)) return f(arguments);
    const lazy::PhiloxState draws = lazy::DefaultGenerator().state();
    WithResiduals made;
    {
      const NoGrad no_history;
      made = forward(arguments);
    }
    Tensors saved = arguments;
    saved.insert(saved.end(), made.residuals.begin(), made.residuals.end());
    const auto gradients = [forward, backward, draws, count = arguments.size()](
                               const Tensors& all, const Tensors& cotangents) {
      Tensors residuals(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
      if (grad_enabled()) {  // derivatives of the gradients also go through the residuals
        const lazy::Replay again(lazy::DefaultGenerator(), draws);
        residuals = forward(FirstOf(all, count)).residuals;
      }
      Tensors found = backward(residuals, cotangents);
      CheckReturned("custom_vjp", "gradients", found.size(), count);
      return found;
    };
    Call(loc, [&] { GiveRuleHistory("custom_vjp", arguments, saved, made.results, gradients); });
    return std::move(made.results);
  };
}

Tensors stop_gradient(const Tensors& tensors, SourceLocation loc) {
  Tensors constants;
  for (const Tensor& tensor : tensors)
    constants.push_back(tensor.defined() ? tensor.detach(loc) : Tensor());
  return constants;
}

TensorsFunction remat(TensorsFunction f, SourceLocation loc) {
  return [f = std::move(f), loc](const Tensors& arguments) {
    return lazuli::checkpoint(f, arguments, true, loc);
  };
}

}  // namespace lazuli::func
