#include "lazy/control/traced.h"

#include <algorithm>
#include <utility>

#include "lazy/autograd/backward.h"
#include "lazy/autograd/custom.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/program/call.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"

namespace lazuli::lazy {
namespace {

bool HasHistory(const Tensor& tensor) { return static_cast<bool>(GradEdge(tensor)); }

// While it lives what this thread records is recorded in the trace.
class Resumed {
 public:
  Resumed(Capture& capture, Capture::OwnEffects effects) : capture_(capture) {
    capture_.Resume(effects);
  }
  ~Resumed() { capture_.Suspend(); }
  Resumed(const Resumed&) = delete;
  Resumed& operator=(const Resumed&) = delete;

 private:
  Capture& capture_;
};

Tensors Differentiated(const Tensors& roots, const Tensors& seeds, const Tensors& wanted,
                       BackwardOptions options) {
  options.ends_outside = true;
  if (roots.empty() || wanted.empty()) return Tensors(wanted.size());
  return Grad(roots, wanted, seeds, options, /*allow_unused=*/true);
}

// The gradients of a call's inputs for cotangents that are zeros: zeros whose history goes forward.
class ForwardHistory {
 public:
  ForwardHistory(const ControlDerivatives& derivatives, const Tensors& inputs)
      : count_(inputs.size()), wanted_(derivatives.wanted) {
    for (const std::size_t i : wanted_) {
      shapes_.push_back(inputs[i].shape());
      device_ = inputs[i].device();
    }
  }

  Tensors Gradients(const ControlDerivatives& derivatives, const Tensors& saved,
                    absl::Span<const Tensor> dys) const {
    std::vector<bool> asked;
    for (const Tensor& dy : dys) asked.push_back(dy.defined());
    Tensors zeros, gradients(count_);
    for (const Shape& shape : shapes_) zeros.push_back(ZerosOf(shape, device_));
    const auto node =
        MakeIntrusive<CustomNode>(Str(derivatives.name, "_forward"), dys,
                                  [forward = derivatives.forward, asked](
                                      const CustomNode& self, absl::Span<const Tensor> tangents) {
                                    return forward(self.Saved(), tangents, asked);
                                  });
    const std::vector<CustomNode::Result> kinds(zeros.size());
    node->Finish(dys, absl::MakeSpan(zeros), kinds, saved);
    for (std::size_t k = 0; k < zeros.size(); ++k) gradients[wanted_[k]] = zeros[k];
    return gradients;
  }

 private:
  std::size_t count_;
  std::vector<std::size_t> wanted_;
  std::vector<Shape> shapes_;
  backend::Device device_;
};

}  // namespace

Part Stage::At(std::size_t first, int64_t blocks) const {
  Part part{program};
  for (std::size_t i = 0; i < outside.size(); ++i) {
    if (!outside[i].defined()) part.states.push_back({first + i, blocks});
  }
  return part;
}

bool Stage::Uses(std::size_t i) const {
  return !program->module().entry()->parameters()[i]->users().empty();
}

Tensors Stage::Others(std::size_t first) const {
  Tensors others;
  Append(others, absl::MakeConstSpan(values.parameters).subspan(first));
  Append(others, outside);
  return others;
}

Tracing::Tracing(std::string name, absl::Span<const TracedParameter> parameters,
                 backend::Device device, TracedFunction function)
    : name_(std::move(name)),
      device_(device),
      is_differentiable_(GradEnabled()),
      capture_(Capture::FromOutside::kReadOnly) {
  capture_.EndHistoriesOutside();
  capture_.DrawFromParameter(device);
  TracedValues values;
  Tensors given;
  for (const TracedParameter& parameter : parameters) {
    const Tensor leaf = capture_.Parameter(parameter.shape.WithDefaultLayout(), device);
    values.parameters.push_back(leaf);
    given.push_back(leaf);
    if (!parameter.differentiable || !is_differentiable_ || !HasGradient(parameter.shape.dtype()))
      continue;
    leaf.impl()->mutable_autograd().requires_grad = true;
    given.back() = Clone(leaf);  // the function may write to it
  }
  values.results = function(given);
  function_ = Closed(std::move(values), name_);
  capture_.Suspend();
}

Stage Tracing::Continue(const std::string& name, absl::FunctionRef<TracedValues()> more,
                        Capture::OwnEffects effects) {
  const Resumed resumed(capture_, effects);
  return Closed(more(), name);
}

Tensor Tracing::Parameter(const Shape& shape) {
  Tensor parameter = capture_.Parameter(shape.WithDefaultLayout(), device_);
  if (GradEnabled() && HasGradient(shape.dtype()))
    parameter.impl()->mutable_autograd().requires_grad = true;
  return parameter;
}

Stage Tracing::Closed(TracedValues values, const std::string& name) {
  capture_.UseParameters(values.parameters);
  Stage stage;
  stage.program = ValueOrThrow(capture_.Finish(values.results, name));
  stage.outside = capture_.outside();
  stage.values = std::move(values);
  if (capture_.draws()) stage.blocks = capture_.draws()->blocks;
  return stage;
}

Tensors GradientsOf(const Tensors& results, const Tensors& cotangents, const Tensors& wanted) {
  Tensors roots, seeds;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!HasGradient(results[i].dtype()) || !HasHistory(results[i]) || !cotangents[i].defined())
      continue;
    roots.push_back(results[i]);
    seeds.push_back(cotangents[i]);
  }
  Tensors gradients =
      Differentiated(roots, seeds, wanted, {.retain_graph = true, .create_graph = GradEnabled()});
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = ZerosOf(wanted[i].shape(), wanted[i].device());
  }
  return gradients;
}

Tensors TangentsOf(const Tensors& results, const Tensors& wanted, const Tensors& tangents) {
  const GradModeGuard histories(true);
  Tensors roots, zeros, made;
  for (const Tensor& result : results) {
    if (!HasGradient(result.dtype()) || !HasHistory(result)) continue;
    roots.push_back(result);
    zeros.push_back(ZerosOf(result.shape(), result.device()));
    zeros.back().impl()->mutable_autograd().requires_grad = true;
  }
  const Tensors products = Differentiated(
      roots, zeros, wanted, {.retain_graph = true, .create_graph = true, .is_transposed = true});
  Tensors linear, seeds;
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (!products[i].defined() || !HasHistory(products[i])) continue;
    linear.push_back(products[i]);
    seeds.push_back(tangents[i]);
  }
  const Tensors found =
      Differentiated(linear, seeds, zeros, {.retain_graph = true, .create_graph = true});
  std::size_t next = 0;
  for (const Tensor& result : results) {
    if (!HasGradient(result.dtype())) continue;
    const Tensor tangent = HasHistory(result) ? found[next++] : Tensor();
    made.push_back(tangent.defined() ? tangent : ZerosOf(result.shape(), result.device()));
  }
  return made;
}

absl::Status WhyNotDifferentiable(absl::FunctionRef<void()> trace) {
  try {
    trace();
  } catch (const StatusError& error) {
    if (!absl::IsUnimplemented(error.status())) throw;
    return error.status();
  }
  return absl::OkStatus();
}

std::vector<std::size_t> WithHistory(const Tensors& tensors) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].defined() && HasGradient(tensors[i].dtype()) && HasHistory(tensors[i]))
      positions.push_back(i);
  }
  return positions;
}

Tensors AtPositions(const Tensors& tensors, absl::Span<const std::size_t> positions) {
  Tensors some;
  for (const std::size_t i : positions) some.push_back(tensors[i]);
  return some;
}

std::vector<std::size_t> DifferentiableAt(absl::Span<const Shape> shapes) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (HasGradient(shapes[i].dtype())) positions.push_back(i);
  }
  return positions;
}

ProgramPtr Composed(const std::string& name, absl::Span<const Shape> parameters,
                    backend::Device device, TracedFunction function) {
  Capture capture(Capture::FromOutside::kReadOnly);
  const GradModeGuard no_history(false);
  Tensors given;
  for (const Shape& shape : parameters)
    given.push_back(capture.Parameter(shape.WithDefaultLayout(), device));
  ProgramPtr program = ValueOrThrow(capture.Finish(function(given), name));
  LAZULI_CHECK(capture.outside().empty(), name, " uses something from outside");
  return program;
}

Tensors WithState(const Tensors& outside, backend::Device device) {
  Tensors arguments = outside;
  for (Tensor& argument : arguments) {
    if (argument.defined()) continue;
    constexpr int64_t kWords = int64_t{1} << 32;
    const Tensor seed =
        To(Randint(0, kWords, {2}, DType::kS64, device, DefaultGenerator()), DType::kU32);
    argument = Cat({seed, FullConstant(Shape(DType::kU32, {2}), 0, device)});
  }
  return arguments;
}

namespace {

// Where `tensor` is among `all`; their number if it is not there.
std::size_t PositionOf(const Tensor& tensor, const Tensors& all, Match match) {
  const auto is_same = [match, &tensor](const Tensor& x) {
    if (!x.defined() || !tensor.defined()) return x.defined() == tensor.defined();
    if (&x.storage() != &tensor.storage()) return false;
    const Edge a = GradEdge(x), b = GradEdge(tensor);
    return match == Match::kElements ||
           (a.node == b.node && a.leaf == b.leaf && a.index == b.index);
  };
  return static_cast<std::size_t>(std::find_if(all.begin(), all.end(), is_same) - all.begin());
}

}  // namespace

std::vector<std::size_t> PositionsIn(Tensors& all, const Tensors& some, Match match) {
  std::vector<std::size_t> positions;
  for (const Tensor& tensor : some) {
    positions.push_back(PositionOf(tensor, all, match));
    if (positions.back() == all.size()) all.push_back(tensor);
  }
  return positions;
}

Tensors ArgumentsFor(const Tensors& some, const Tensors& all, absl::Span<const Tensor> arguments) {
  Tensors found;
  for (const Tensor& tensor : some) {
    if (const std::size_t i = PositionOf(tensor, all, Match::kHistory); i < all.size()) {
      found.push_back(arguments[i]);
      continue;
    }
    const std::size_t i = PositionOf(tensor, all, Match::kElements);
    found.push_back(i == all.size() ? tensor : Detach(arguments[i]));
  }
  return found;
}

bool WantsGradient(const Tensors& tensors) {
  return WantsGrad(std::vector<Operand>(tensors.begin(), tensors.end()));
}

void Append(Tensors& all, absl::Span<const Tensor> more) {
  all.insert(all.end(), more.begin(), more.end());
}

Tensor ZerosOf(const Shape& shape, backend::Device device) {
  return FullConstant(shape.WithDefaultLayout(), 0, device);
}

std::vector<Shape> ShapesOf(absl::Span<const Tensor> tensors) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape());
  return shapes;
}

Tensors CallWithoutHistory(const ProgramPtr& program, absl::Span<const Tensor> arguments,
                           backend::Device device) {
  const GradModeGuard no_history(false);
  return Call(program, arguments, device);
}

void AttachHistory(ControlDerivatives derivatives, const Tensors& inputs, const Tensors& saved,
                   Tensors& results) {
  const std::string name = derivatives.name;
  const ForwardHistory ahead(derivatives, inputs);
  const std::vector<CustomNode::Result> kinds(results.size());
  const auto node =
      MakeIntrusive<CustomNode>(name, inputs,
                                [derivatives = std::move(derivatives), ahead](
                                    const CustomNode& self, absl::Span<const Tensor> dys) {
                                  if (IsTransposed())
                                    return ahead.Gradients(derivatives, self.Saved(), dys);
                                  return derivatives.backward(self.Saved(), dys);
                                });
  node->set_materialize(false);
  node->Finish(inputs, absl::MakeSpan(results), kinds, saved);
}

}  // namespace lazuli::lazy
