// Derivatives of functions: runs of the function with a history, and backward passes over it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"

#include "cpp_api/src/facade.h"
#include "ir/support/error_place.h"
#include "ir/support/thread_local.h"
#include "lazuli/autograd.h"
#include "lazuli/func.h"
#include "lazuli/ops.h"
#include "lazy/tensor/tape.h"

namespace lazuli::func {
namespace {

using List = std::vector<Tensor>;
using Function = std::function<List(const List&)>;

// The leaves that runs of functions made.
using Leaves = std::vector<lazy::Tensor>;
struct RunsOfThread {
  int depth = 0;  // how many transforms run their functions now
  Leaves own;     // of these
};
RunsOfThread& Runs() { return ir::PerThread<RunsOfThread>::Get(); }

// While it lives a transform runs its function, with histories.
class Level {
 public:
  Level() { ++Runs().depth; }
  ~Level() {
    if (--Runs().depth == 0) Runs().own.clear();
  }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  // Whether results may have a history: NoGrad around a transform turns off only that of its results.
  bool recorded() const { return recorded_; }

 private:
  bool recorded_ = grad_enabled();
  EnableGrad histories_;
};

bool IsAmong(const lazy::TensorImpl* leaf, const Leaves& own) {
  return std::any_of(own.begin(), own.end(),
                     [leaf](const lazy::Tensor& x) { return x.impl() == leaf; });
}

// Whether the history of the tensors begins at a leaf that is not one of `own`.
bool BeginsElsewhere(const List& tensors, const Leaves& own) {
  absl::flat_hash_set<const lazy::GradNode*> seen;
  std::vector<lazy::Edge> edges;
  for (const Tensor& tensor : tensors)
    edges.push_back(lazy::GradEdge(TensorAccess::Unwrap(tensor)));
  while (!edges.empty()) {
    const lazy::Edge edge = edges.back();
    edges.pop_back();
    if (edge.leaf && !IsAmong(edge.leaf.get(), own)) return true;
    if (!edge.node || !seen.insert(edge.node.get()).second) continue;
    edges.insert(edges.end(), edge.node->edges().begin(), edge.node->edges().end());
  }
  return false;
}

// Gradients of those of the outputs that have a history; zeros where there is none.
List GradientsOf(const List& outputs, const List& inputs, const List& weights,
                 const GradOptions& options, const SourceLocation& loc) {
  List chosen, chosen_weights, found(inputs.size());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k].requires_grad()) continue;
    chosen.push_back(outputs[k]);
    chosen_weights.push_back(weights[k]);
  }
  if (!chosen.empty()) found = lazuli::grad(chosen, inputs, chosen_weights, options, loc);
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (!found[k].defined()) found[k] = zeros_like(inputs[k], std::nullopt, {}, loc);
  return found;
}
GradOptions Recorded(bool create_graph, bool is_transposed = false) {
  return {.retain_graph = true,
          .create_graph = create_graph,
          .allow_unused = true,
          .is_transposed = is_transposed};
}

// A run of a function in a level, differentiated for some arguments.
class Run {
 public:
  Run(std::string name, const Level& level, const Function& f, const List& arguments,
      const std::vector<std::size_t>& argnums, SourceLocation loc)
      : name_(std::move(name)), loc_(loc), recorded_(level.recorded()) {
    List given;
    Call(loc_, [&] { given = Given(arguments, argnums); });
    outputs = f(given);  // lines of its own
    own_ = Runs().own;
    nested_ = Runs().depth > 1;
    kept = recorded_ && (nested_ || BeginsElsewhere(outputs, own_));
  }

  List Gradients(const List& weights, bool create_graph) const {
    return GradientsOf(outputs, inputs, weights, Recorded(create_graph), loc_);
  }
  // Vectors for the outputs, and products with them, which are zeros: their derivatives for the
  // vectors are products with tangents.
  std::pair<List, List> Transposed() {
    List vectors;
    for (const Tensor& output : outputs) {
      const Tensor zero = zeros_like(output, std::nullopt, {}, loc_).detach(loc_);
      vectors.push_back(output.requires_grad() ? Own(zero) : zero);
    }
    List products = GradientsOf(outputs, inputs, vectors, Recorded(true, true), loc_);
    return {std::move(vectors), std::move(products)};
  }
  // Results as the caller gets them: without a history, or with one that begins elsewhere, too.
  List Finished(List tensors, bool is_kept) const {
    for (Tensor& tensor : tensors) {
      const bool keeps = is_kept && (nested_ || own_.empty() || BeginsElsewhere({tensor}, own_));
      if (tensor.requires_grad() && !keeps) tensor = tensor.detach(loc_);
    }
    return tensors;
  }
  // The products with these weights after the run has left its level.
  List Later(const List& weights) {
    return Later(weights, [&](bool keeps) { return Gradients(weights, keeps); });
  }
  // The same for other products with them, of which `product` is told whether they keep a history.
  List Later(const List& weights, const std::function<List(bool)>& product) {
    RunsOfThread& runs = Runs();
    nested_ = runs.depth > 0;
    if (nested_) runs.own.insert(runs.own.end(), own_.begin(), own_.end());
    const bool wanted = std::any_of(weights.begin(), weights.end(),
                                    [](const Tensor& w) { return w.requires_grad(); });
    const bool keeps = grad_enabled() && (nested_ || kept || wanted);
    return Finished(product(keeps), keeps);
  }
  // Throws unless there is one weight for each of `like`, of its shape.
  void Check(const char* what, const List& weights, const char* of, const List& like) const {
    if (weights.size() != like.size()) {
      Refuse(ir::InvalidArgument(weights.size(), " ", what, " for ", like.size(), " ", of));
    }
    for (std::size_t k = 0; k < like.size(); ++k) {
      const bool fits = weights[k].defined() && weights[k].sizes() == like[k].sizes();
      if (!fits) Refuse(ir::InvalidArgument(what, " ", k, " does not have the shape of the ", of));
    }
  }
  void CheckScalar() const {
    if (outputs.size() != 1 || !outputs[0].defined() || outputs[0].dim() != 0)
      Refuse(ir::InvalidArgument("the function must return one tensor without dims"));
  }
  void Refuse(const absl::Status& status) const {
    Call(loc_, [&] { throw lazy::StatusError(ir::AddPlace(status, name_, "")); });
  }

  List inputs, outputs;
  bool kept = false;  // whether results keep a history

 private:
  List Given(const List& arguments, const std::vector<std::size_t>& argnums) {
    std::vector<bool> is_wanted(arguments.size(), argnums.empty());
    for (const std::size_t i : argnums) {
      if (i >= arguments.size())
        Refuse(ir::InvalidArgument("argnums has ", i, ", but there are ", arguments.size(),
                                   " arguments"));
      is_wanted[i] = true;
    }
    List given;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Tensor& x = arguments[i];
      if (!x.defined()) Refuse(ir::InvalidArgument("argument ", i, " is an undefined tensor"));
      const bool has_outer = recorded_ && x.requires_grad();
      given.push_back(is_wanted[i] ? Input(x, i, has_outer) : has_outer ? x : x.detach(loc_));
      if (is_wanted[i]) inputs.push_back(given.back());
    }
    return given;
  }
  Tensor Input(const Tensor& x, std::size_t i, bool has_outer) {
    if (!x.is_floating_point() && !x.is_complex())
      Refuse(ir::InvalidArgument("argument ", i, " is ", TensorAccess::Unwrap(x).shape(),
                                 ": only floats and complex numbers have derivatives"));
    return has_outer ? x.view_as(x, loc_) : Own(x.detach(loc_));
  }
  Tensor Own(Tensor leaf) {
    leaf.requires_grad_(true, loc_);
    Runs().own.push_back(TensorAccess::Unwrap(leaf));
    own_.push_back(TensorAccess::Unwrap(leaf));
    return leaf;
  }

  std::string name_;
  SourceLocation loc_;
  bool recorded_, nested_ = false;
  Leaves own_;
};

std::vector<std::int64_t> Joined(const Tensor& first, const Tensor& second) {
  const Dims before = first.sizes(), behind = second.sizes();
  std::vector<std::int64_t> dims(before.begin(), before.end());
  dims.insert(dims.end(), behind.begin(), behind.end());
  return dims;
}

// The gradients of each element of an output: for each input [*output.shape, *input.shape]. One
// batched pass, or one pass for each element where the gradients keep a history.
List Rows(const Tensor& output, const List& inputs, bool kept, const SourceLocation& loc) {
  List rows;
  const std::int64_t count = output.numel();
  const auto one = [&](const List& weight) {
    return GradientsOf({output}, inputs, weight, Recorded(kept), loc);
  };
  if (count == 0 || !output.requires_grad()) {
    for (const Tensor& x : inputs)
      rows.push_back(zeros(Joined(output, x), x.dtype(), x.device(), loc));
    return rows;
  }
  const Dims sizes = output.sizes();
  std::vector<std::int64_t> dims(sizes.begin(), sizes.end());
  dims.insert(dims.begin(), count);
  const Tensor every = eye(count, output.dtype(), output.device(), loc).reshape(dims, loc);
  if (kept) {
    std::vector<List> columns(inputs.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const List row = one({every.select(0, i, loc)});
      for (std::size_t k = 0; k < row.size(); ++k) columns[k].push_back(row[k]);
    }
    for (const List& column : columns) rows.push_back(stack(column, 0, loc));
  } else {
    const NoGrad no_history;
    rows = vmap(one, {every}, {.randomness = Randomness::kSame}, loc);
  }
  for (std::size_t k = 0; k < rows.size(); ++k)
    rows[k] = rows[k].reshape(Joined(output, inputs[k]), loc);
  return rows;
}

// [*input.shape, *output.shape] with the dims of the output first.
Tensor OutputFirst(const Tensor& block, const Tensor& input, const SourceLocation& loc) {
  std::vector<std::int64_t> order;
  for (std::int64_t d = input.dim(); d < block.dim(); ++d) order.push_back(d);
  for (std::int64_t d = 0; d < input.dim(); ++d) order.push_back(d);
  return block.permute(order, loc);
}

}  // namespace

ValueAndGrad value_and_grad(const std::function<Tensor(const List&)>& f, const List& arguments,
                            const DerivativeOptions& options, SourceLocation loc) {
  const Level level;
  const auto one = [&](const List& in) { return List{f(in)}; };
  Run run("grad", level, one, arguments, options.argnums, loc);
  run.CheckScalar();
  List gradients = run.Finished(run.Gradients({Tensor()}, run.kept), run.kept);
  return {.value = run.Finished(run.outputs, run.kept)[0], .gradients = std::move(gradients)};
}

List grad(const std::function<Tensor(const List&)>& f, const List& arguments,
          const DerivativeOptions& options, SourceLocation loc) {
  return value_and_grad(f, arguments, options, loc).gradients;
}

Vjp vjp(const Function& f, const List& primals, SourceLocation loc) {
  const Level level;
  const auto run = std::make_shared<Run>("vjp", level, f, primals, std::vector<std::size_t>(), loc);
  const auto products = [run](const List& cotangents) {
    run->Check("cotangents", cotangents, "results", run->outputs);
    return run->Later(cotangents);
  };
  return {.results = run->Finished(run->outputs, run->kept), .products = products};
}

Jvp jvp(const Function& f, const List& primals, const List& tangents, SourceLocation loc) {
  const Level level;
  Run run("jvp", level, f, primals, {}, loc);
  run.Check("tangents", tangents, "arguments", run.inputs);
  const auto [vectors, products] = run.Transposed();
  const bool kept = run.kept || (level.recorded() &&
                                 std::any_of(tangents.begin(), tangents.end(),
                                             [](const Tensor& t) { return t.requires_grad(); }));
  return {.results = run.Finished(run.outputs, run.kept),
          .tangents =
              run.Finished(GradientsOf(products, vectors, tangents, Recorded(kept), loc), kept)};
}

Linearized linearize(const Function& f, const List& primals, SourceLocation loc) {
  const Level level;
  const auto run =
      std::make_shared<Run>("linearize", level, f, primals, std::vector<std::size_t>(), loc);
  auto [vectors, products] = run->Transposed();
  const auto pushed = [run, loc, vectors = std::move(vectors),
                       products = std::move(products)](const List& tangents) {
    run->Check("tangents", tangents, "arguments", run->inputs);
    return run->Later(tangents, [&](bool keeps) {
      return GradientsOf(products, vectors, tangents, Recorded(keeps), loc);
    });
  };
  return {.results = run->Finished(run->outputs, run->kept), .products = pushed};
}

Blocks jacrev(const Function& f, const List& arguments, const DerivativeOptions& options,
              SourceLocation loc) {
  const Level level;
  const Run run("jacrev", level, f, arguments, options.argnums, loc);
  Blocks blocks;
  for (const Tensor& output : run.outputs)
    blocks.push_back(run.Finished(Rows(output, run.inputs, run.kept, loc), run.kept));
  return blocks;
}

Blocks jacfwd(const Function& f, const List& arguments, const DerivativeOptions& options,
              SourceLocation loc) {
  const Level level;
  Run run("jacfwd", level, f, arguments, options.argnums, loc);
  const auto [vectors, products] = run.Transposed();
  Blocks blocks(run.outputs.size());
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    const List columns = Rows(products[i], vectors, run.kept, loc);
    for (std::size_t o = 0; o < columns.size(); ++o)
      blocks[o].push_back(OutputFirst(columns[o], run.inputs[i], loc));
  }
  for (List& row : blocks) row = run.Finished(row, run.kept);
  return blocks;
}

Blocks hessian(const std::function<Tensor(const List&)>& f, const List& arguments,
               const DerivativeOptions& options, SourceLocation loc) {
  return jacrev([&](const List& in) { return grad(f, in, options, loc); }, arguments, options, loc);
}

}  // namespace lazuli::func
