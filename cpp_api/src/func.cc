#include "lazuli/func.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cpp_api/src/facade.h"
#include "cpp_api/src/func_access.h"
#include "cpp_api/src/hlo_access.h"
#include "ir/types/leaves.h"
#include "lazuli/ops.h"
#include "lazy/execution/capture.h"
#include "lazy/tensor/random.h"
#include "lazy/tensor/sampled_draws.h"
#include "lowering/builder/builder.h"
#include "lowering/transforms/batch.h"

namespace lazuli {
namespace {

using OptionalDims = std::vector<std::optional<std::int64_t>>;

lazy::ProgramPtr BatchProgram(const lazy::Program& program, const std::vector<bool>& batched,
                              int64_t size, lowering::BatchRandom random,
                              std::vector<bool>* depends = nullptr) {
  const auto checks = static_cast<int64_t>(program.checks().size());
  auto made = lazy::ValueOrThrow(
      lowering::Batch(program.module(), batched, size,
                      {.random = random, .broadcast_results = true, .checks = checks}));
  if (depends != nullptr) {
    made.depends.resize(program.results().size());
    *depends = std::move(made.depends);
  }
  return std::make_shared<lazy::Program>(std::move(made.module), program.checks());
}

// A dim of an array of this rank, counted from the front.
int64_t DimOf(int64_t dim, int64_t rank, std::string_view what, std::size_t number) {
  if (dim < -rank || dim >= rank) {
    throw lazy::StatusError(ir::InvalidArgument("vmap: dim ", dim, " of ", what, " ", number,
                                                " is out of range for rank ", rank));
  }
  return dim < 0 ? dim + rank : dim;
}

void CheckCount(std::string_view what, std::size_t given, std::size_t wanted) {
  if (given == 0 || given == wanted) return;
  throw lazy::StatusError(
      ir::InvalidArgument("vmap: ", given, " ", what, " for ", wanted, " arrays"));
}

// The order of dims in which the first one comes to `dim`.
ir::Dims FirstTo(int64_t dim, int64_t rank) {
  ir::Dims order;
  for (int64_t d = 1; d < rank; ++d) order.push_back(d);
  order.insert(order.begin() + dim, 0);
  return order;
}
ir::Dims ToFirst(int64_t dim, int64_t rank) {
  ir::Dims order{dim};
  for (int64_t d = 0; d < rank; ++d) {
    if (d != dim) order.push_back(d);
  }
  return order;
}

// The leaves of a value in order, and a value of other leaves.
void AppendLeaves(lowering::Builder& b, lowering::Op value, std::vector<lowering::Op>& leaves) {
  const ir::Shape shape = value.shape();  // NOLINT: a copy, for the original moves
  if (!shape.IsTuple()) leaves.push_back(value);
  for (std::size_t k = 0; k < shape.tuple().size(); ++k)
    AppendLeaves(b, b.GetTupleElement(value, static_cast<int64_t>(k)), leaves);
}
lowering::Op FromLeaves(lowering::Builder& b, const ir::Shape& shape,
                        const std::vector<lowering::Op>& leaves, std::size_t* next) {
  if (!shape.IsTuple()) return leaves[(*next)++];
  std::vector<lowering::Op> elements;
  for (const ir::Shape& element : shape.tuple())
    elements.push_back(FromLeaves(b, element, leaves, next));
  return b.Tuple(elements);
}

ir::Shape Transposed(const ir::Shape& shape, const ir::Dims& order) {
  ir::Dims dims;
  for (const int64_t d : order) dims.push_back(shape.dim(d));
  return {shape.dtype(), dims};
}

// Puts the batch dims of a module, which are the first ones, where they are wanted: an entry around the
// entry.
class DimMover {
 public:
  DimMover(hlo::Module& module, const OptionalDims& in_dims, const std::vector<int64_t>& out_dims)
      : module_(module), in_dims_(in_dims), out_dims_(out_dims), b_(&module, "vmap") {}

  void Run() {
    hlo::Computation* const inner = module_.entry();
    std::vector<lowering::Op> arguments;
    for (const hlo::Instruction* parameter : inner->parameters()) {
      const ir::Shape outer = Outer(parameter->shape());
      const lowering::Op whole =
          b_.Parameter(parameter->parameter_number(), outer, parameter->name());
      arguments.push_back(Argument(whole, parameter->shape()));
    }
    std::vector<lowering::Op> results;
    const lowering::Op called = b_.Call(inner, arguments);
    const ir::Shape shape = called.shape();  // NOLINT: a copy, for the original moves
    AppendLeaves(b_, called, results);
    for (std::size_t k = 0; k < results.size() && k < out_dims_.size(); ++k) {
      const int64_t rank = results[k].rank();
      if (out_dims_[k] != 0)
        results[k] =
            b_.Transpose(results[k], FirstTo(DimOf(out_dims_[k], rank, "result", k), rank));
    }
    std::size_t next = 0;
    module_.set_entry(lazy::ValueOrThrow(b_.Finish(FromLeaves(b_, shape, results, &next))));
    module_.aliases().clear();
  }

 private:
  int64_t Dim(std::size_t leaf, int64_t rank) const {
    return leaf < in_dims_.size() && in_dims_[leaf]
               ? DimOf(*in_dims_[leaf], rank, "parameter", leaf)
               : 0;
  }
  ir::Shape Outer(const ir::Shape& shape) {
    if (!shape.IsTuple())
      return Transposed(shape, FirstTo(Dim(outer_++, shape.rank()), shape.rank()));
    std::vector<ir::Shape> elements;
    for (const ir::Shape& element : shape.tuple()) elements.push_back(Outer(element));
    return ir::Shape::Tuple(std::move(elements));
  }
  lowering::Op Argument(lowering::Op whole, const ir::Shape& shape) {
    std::vector<lowering::Op> leaves;
    AppendLeaves(b_, whole, leaves);
    for (lowering::Op& leaf : leaves) {
      const int64_t dim = Dim(inner_++, leaf.rank());
      if (dim != 0) leaf = b_.Transpose(leaf, ToFirst(dim, leaf.rank()));
    }
    std::size_t next = 0;
    return FromLeaves(b_, shape, leaves, &next);
  }

  hlo::Module& module_;
  const OptionalDims& in_dims_;
  const std::vector<int64_t>& out_dims_;
  lowering::Builder b_;
  std::size_t outer_ = 0, inner_ = 0;
};

bool IsZero(const OptionalDims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const auto& dim) { return !dim || *dim == 0; });
}

}  // namespace

HloModule HloModule::vmap(std::int64_t size, const OptionalDims& in_dims,
                          const std::vector<std::int64_t>& out_dims) const {
  return Guarded([&] {
    const lazy::Program& program = *impl_->program;
    CheckCount("in_dims", in_dims.size(), program.parameters().size());
    CheckCount("out_dims", out_dims.size(), program.results().size());
    std::vector<bool> batched(program.parameters().size(), true);
    for (std::size_t k = 0; k < in_dims.size(); ++k) batched[k] = in_dims[k].has_value();
    lazy::ProgramPtr made = BatchProgram(program, batched, size, lowering::BatchRandom::kSame);
    const bool moves = !IsZero(in_dims) || std::any_of(out_dims.begin(), out_dims.end(),
                                                       [](int64_t dim) { return dim != 0; });
    if (!moves) return HloAccess::Wrap(std::move(made));
    std::shared_ptr<hlo::Module> module = made->module().Clone();
    DimMover(*module, in_dims, out_dims).Run();
    return HloAccess::Wrap(std::make_shared<lazy::Program>(std::move(module), made->checks()));
  });
}

namespace func {
namespace {

lazy::SampledDraws::Kind DrawsOf(Randomness randomness) {
  switch (randomness) {
    case Randomness::kError:
      return lazy::SampledDraws::Kind::kRefused;
    case Randomness::kDifferent:
      return lazy::SampledDraws::Kind::kDifferent;
    case Randomness::kSame:
      break;
  }
  return lazy::SampledDraws::Kind::kSame;
}

ir::Shape SampleShape(const Tensor& argument, bool batched) {
  const ir::Shape shape = TensorAccess::Impl(argument)->storage()->shape().WithDefaultLayout();
  return batched ? ir::Shape(shape.dtype(), shape.dims().subspan(1)) : shape;
}

}  // namespace

BatchedFunction BatchFunction(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& record,
    const std::vector<Tensor>& arguments, const std::vector<bool>& batched, std::int64_t size,
    Randomness randomness, const std::string& name) {
  Initialize();
  std::vector<Tensor> outputs;
  lazy::Capture capture(lazy::Capture::FromOutside::kReadOnly);
  capture.KeepDraws();
  {
    const lazy::SampledDraws draws(DrawsOf(randomness), size);
    std::vector<Tensor> samples;
    Guarded([&] {
      for (std::size_t k = 0; k < arguments.size(); ++k)
        samples.push_back(TensorAccess::Wrap(capture.Parameter(
            SampleShape(arguments[k], batched[k]), DeviceAccess::Unwrap(arguments[k].device()))));
    });
    outputs = record(samples);  // lines of its own
  }
  return Guarded([&]() -> BatchedFunction {
    std::vector<lazy::Tensor> results;
    for (const Tensor& output : outputs) results.push_back(TensorAccess::Unwrap(output));
    const lazy::ProgramPtr program = lazy::ValueOrThrow(capture.Finish(results, name));
    std::vector<bool> all = batched;
    all.resize(program->parameters().size(), false);
    const auto random = randomness == Randomness::kDifferent ? lowering::BatchRandom::kDifferent
                                                             : lowering::BatchRandom::kSame;
    std::vector<bool> depends;
    lazy::ProgramPtr batch = BatchProgram(*program, all, size, random, &depends);
    BatchedFunction made{
        .program = HloAccess::Wrap(std::move(batch)), .outside = {}, .depends = depends};
    for (const lazy::Tensor& tensor : capture.outside())
      made.outside.push_back(TensorAccess::Wrap(tensor));
    return made;
  });
}

namespace {

// f for each sample of the arguments, of which those that are batched count `size` samples by dim 0.
std::vector<Tensor> AtOnce(const TensorsFunction& f, std::vector<Tensor> arguments,
                           const std::vector<bool>& batched, std::int64_t size,
                           Randomness randomness, SourceLocation loc) {
  const BatchedFunction made = BatchFunction(f, arguments, batched, size, randomness, "vmap");
  arguments.insert(arguments.end(), made.outside.begin(), made.outside.end());
  return made.program.call(arguments, loc);
}

// The same for at most so many samples at a time as the options say.
std::vector<Tensor> InChunks(const TensorsFunction& f, const std::vector<Tensor>& arguments,
                             const std::vector<bool>& batched, std::int64_t size,
                             const VmapOptions& options, SourceLocation loc) {
  const std::int64_t chunk = options.chunk_size.value_or(size);
  if (chunk >= size) return AtOnce(f, arguments, batched, size, options.randomness, loc);
  const lazy::PhiloxState draws = lazy::DefaultGenerator().state();
  std::vector<std::vector<Tensor>> columns;
  for (std::int64_t start = 0; start < size; start += chunk) {
    if (options.randomness == Randomness::kSame) lazy::DefaultGenerator().Exchange(draws);
    const std::int64_t count = std::min(chunk, size - start);
    std::vector<Tensor> part = arguments;
    for (std::size_t k = 0; k < part.size(); ++k)
      if (batched[k]) part[k] = part[k].narrow(0, start, count, loc);
    const std::vector<Tensor> results = AtOnce(f, part, batched, count, options.randomness, loc);
    columns.resize(results.size());
    for (std::size_t k = 0; k < results.size(); ++k) columns[k].push_back(results[k]);
  }
  std::vector<Tensor> joined;
  for (const std::vector<Tensor>& column : columns) joined.push_back(cat(column, 0, loc));
  return joined;
}

}  // namespace

std::vector<Tensor> vmap(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                         const std::vector<Tensor>& arguments, const VmapOptions& options,
                         SourceLocation loc) {
  std::vector<Tensor> moved;
  std::vector<bool> batched;
  std::optional<int64_t> size;
  Call(loc, [&] {
    CheckCount("in_dims", options.in_dims.size(), arguments.size());
    if (options.chunk_size.value_or(1) < 1) {
      throw lazy::StatusError(
          ir::InvalidArgument("vmap: chunk_size must be 1 or more, not ", *options.chunk_size));
    }
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const std::optional<int64_t> dim =
          options.in_dims.empty() ? std::optional<int64_t>(0) : options.in_dims[k];
      batched.push_back(dim.has_value());
      if (!dim) {
        moved.push_back(arguments[k]);
        continue;
      }
      const int64_t at = DimOf(*dim, arguments[k].dim(), "argument", k);
      const int64_t count = arguments[k].size(at);
      if (size.value_or(count) != count) {
        throw lazy::StatusError(
            ir::InvalidArgument("vmap: arguments have ", *size, " and ", count, " samples"));
      }
      size = count;
      moved.push_back(at == 0 ? arguments[k] : movedim(arguments[k], {at}, {0}));
    }
    if (!size) throw lazy::StatusError(ir::InvalidArgument("vmap: no argument counts the samples"));
  });
  std::vector<Tensor> results = InChunks(f, moved, batched, *size, options, loc);
  return Call(loc, [&] {
    CheckCount("out_dims", options.out_dims.size(), results.size());
    for (std::size_t k = 0; k < options.out_dims.size(); ++k) {
      const int64_t at = DimOf(options.out_dims[k], results[k].dim(), "result", k);
      if (at != 0) results[k] = movedim(results[k], {0}, {at});
    }
    return std::move(results);
  });
}

}  // namespace func
}  // namespace lazuli
