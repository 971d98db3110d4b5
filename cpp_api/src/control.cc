#include "lazuli/control.h"

#include <algorithm>

#include "cpp_api/src/facade.h"
#include "cpp_api/src/tensor_lists.h"
#include "lazy/control/associative.h"
#include "lazy/control/branches.h"
#include "lazy/control/loops.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"

namespace lazuli {
namespace {

lazy::Tensors UnwrapAll(const char* function, const std::vector<Tensor>& tensors) {
  lazy::Tensors all;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) {
      lazy::ThrowRecordError(function,
                             ir::InvalidArgument("tensor ", i, " of a list is undefined"));
    }
    all.push_back(TensorAccess::Unwrap(tensors[i]));
  }
  return all;
}

// A function of the user's, in which ops have lines of their own.
template <class F>
auto OfUser(const char* function, F call) {
  return [function, call = std::move(call)](absl::Span<const lazy::Tensor> in) {
    const lazy::SiteOverride none(ir::kNoSite);
    return UnwrapAll(function, call(Wrapped(in)));
  };
}

// Where the op runs: where its tensors are.
backend::Device DeviceOf(std::initializer_list<const lazy::Tensors*> lists) {
  for (const lazy::Tensors* list : lists) {
    if (!list->empty()) return list->front().device();
  }
  return DeviceAccess::Unwrap(Device());
}

std::vector<Tensor> ListOf(Tensor tensor) {
  std::vector<Tensor> list;
  list.push_back(std::move(tensor));
  return list;
}

lazy::Bound ToBound(const LoopBound& bound, backend::Device device) {
  if (bound.number()) {
    const lazy::Number number(*bound.number());
    return {lazy::Tensor(lazy::Context::Current().NewStorage(number.Slot(ir::DType::kS64), device)),
            bound.number()};
  }
  if (!bound.tensor().defined())
    lazy::ThrowRecordError("fori_loop", ir::InvalidArgument("a bound is an undefined tensor"));
  const lazy::Tensor tensor = TensorAccess::Unwrap(bound.tensor());
  if (tensor.rank() != 0 || !ir::IsIntegral(tensor.dtype())) {
    lazy::ThrowRecordError(
        "fori_loop",
        ir::InvalidArgument("a bound is an integer without dims, not ", tensor.shape()));
  }
  return {lazy::To(tensor, ir::DType::kS64), {}};
}

// The length of the first dim of all xs.
std::int64_t LengthOf(const char* function, const lazy::Tensors& xs,
                      const std::optional<std::int64_t>& given) {
  std::optional<std::int64_t> length = given;
  for (const lazy::Tensor& x : xs) {
    if (x.rank() == 0)
      lazy::ThrowRecordError(function, ir::InvalidArgument("one of xs has no dim to go along"));
    if (length && *length != x.dim(0)) {
      lazy::ThrowRecordError(function,
                             ir::InvalidArgument("one of xs is ", x.shape(), ", of ", x.dim(0),
                                                 " elements instead of ", *length));
    }
    length = x.dim(0);
  }
  if (!length || *length < 0)
    lazy::ThrowRecordError(function,
                           ir::InvalidArgument("without xs it needs a length of 0 or more"));
  return *length;
}

std::pair<lazy::Tensors, std::size_t> ScanLists(
    const char* function,
    const std::function<Scanned(const std::vector<Tensor>&, const std::vector<Tensor>&)>& f,
    const std::vector<Tensor>& init, const std::vector<Tensor>& xs, const ScanOptions& options) {
  lazy::ScanArguments arguments{.name = function,
                                .init = UnwrapAll(function, init),
                                .xs = UnwrapAll(function, xs),
                                .count = 0,
                                .reverse = options.reverse,
                                .every = options.every,
                                .device = {}};
  arguments.count = LengthOf(function, arguments.xs, options.length);
  if (options.every < 1) {
    lazy::ThrowRecordError(function,
                           ir::InvalidArgument("every must be 1 or more, not ", options.every));
  }
  arguments.device = DeviceOf({&arguments.init, &arguments.xs});
  const std::size_t carried = init.size();
  const auto step = OfUser(function, [&](const std::vector<Tensor>& in) {
    const auto middle = in.begin() + static_cast<std::ptrdiff_t>(carried);
    Scanned made = f({in.begin(), middle}, {middle, in.end()});
    if (made.carry.size() != carried) {
      lazy::ThrowRecordError(
          function,
          ir::InvalidArgument("the function is given ", carried, " carried tensors and returns ",
                              made.carry.size(), "; it must return each of them anew"));
    }
    made.carry.insert(made.carry.end(), made.results.begin(), made.results.end());
    return std::move(made.carry);
  });
  return {lazy::Scan(arguments, step), carried};
}

// The number of a branch, s32[].
lazy::Tensor ToIndex(const char* function, const Tensor& given, std::size_t count) {
  if (!given.defined())
    lazy::ThrowRecordError(function, ir::InvalidArgument("the index is an undefined tensor"));
  const lazy::Tensor index = TensorAccess::Unwrap(given);
  if (index.shape().num_elements() != 1 || !ir::IsIntegral(index.dtype())) {
    lazy::ThrowRecordError(
        function, ir::InvalidArgument("the index must be one integer, not ", index.shape()));
  }
  const lazy::Tensor limited = lazy::Clamp(lazy::Reshape(index, {}), lazy::Number(std::int64_t{0}),
                                           lazy::Number(static_cast<std::int64_t>(count) - 1));
  return lazy::To(limited, ir::DType::kS32);
}

// 0 for true, 1 for false.
lazy::Tensor ToIndex(const Tensor& given) {
  if (!given.defined())
    lazy::ThrowRecordError("cond", ir::InvalidArgument("the predicate is an undefined tensor"));
  const lazy::Tensor pred = TensorAccess::Unwrap(given);
  if (pred.shape().num_elements() != 1 || pred.dtype() != ir::DType::kPred) {
    lazy::ThrowRecordError(
        "cond", ir::InvalidArgument("the predicate must be one bool, not ", pred.shape()));
  }
  return lazy::To(lazy::LogicalNot(lazy::Reshape(pred, {})), ir::DType::kS32);
}

lazy::Tensors ChooseOf(const char* function, lazy::Tensor index, std::vector<std::string> names,
                       const std::vector<TensorsFunction>& branches,
                       const std::vector<Tensor>& operands) {
  lazy::BranchArguments arguments{.name = function,
                                  .index = std::move(index),
                                  .branches = std::move(names),
                                  .operands = UnwrapAll(function, operands),
                                  .device = {}};
  arguments.device = arguments.index.device();
  std::vector<std::function<lazy::Tensors(absl::Span<const lazy::Tensor>)>> functions;
  for (const TensorsFunction& branch : branches) functions.push_back(OfUser(function, branch));
  const std::vector<lazy::TracedFunction> calls(functions.begin(), functions.end());
  return lazy::Branch(arguments, calls);
}

}  // namespace

std::vector<Tensor> while_loop(const std::function<Tensor(const std::vector<Tensor>&)>& cond,
                               const TensorsFunction& body, const std::vector<Tensor>& init,
                               SourceLocation loc) {
  Initialize();
  return Call(loc, [&] {
    constexpr auto kName = "while_loop";
    const lazy::Tensors carried = UnwrapAll(kName, init);
    const auto more =
        OfUser(kName, [&](const std::vector<Tensor>& in) { return ListOf(cond(in)); });
    return Wrapped(
        lazy::WhileLoop(kName, carried, DeviceOf({&carried}), more, OfUser(kName, body)));
  });
}

Tensor while_loop(const TensorFunction& cond, const TensorFunction& body, const Tensor& init,
                  SourceLocation loc) {
  return while_loop([&](const std::vector<Tensor>& in) { return cond(in[0]); },
                    [&](const std::vector<Tensor>& in) { return ListOf(body(in[0])); },
                    ListOf(init), loc)[0];
}

std::vector<Tensor> fori_loop(
    const LoopBound& lower, const LoopBound& upper,
    const std::function<std::vector<Tensor>(const Tensor&, const std::vector<Tensor>&)>& body,
    const std::vector<Tensor>& init, SourceLocation loc) {
  Initialize();
  return Call(loc, [&] {
    constexpr auto kName = "fori_loop";
    const lazy::Tensors carried = UnwrapAll(kName, init);
    const backend::Device device = DeviceOf({&carried});
    const auto step = OfUser(kName, [&](const std::vector<Tensor>& in) {
      return body(in[0], {in.begin() + 1, in.end()});
    });
    return Wrapped(lazy::ForLoop(
        {kName, ToBound(lower, device), ToBound(upper, device), carried, device}, step));
  });
}

Tensor fori_loop(const LoopBound& lower, const LoopBound& upper,
                 const std::function<Tensor(const Tensor&, const Tensor&)>& body,
                 const Tensor& init, SourceLocation loc) {
  return fori_loop(
      lower, upper,
      [&](const Tensor& i, const std::vector<Tensor>& in) { return ListOf(body(i, in[0])); },
      ListOf(init), loc)[0];
}

Scanned scan(
    const std::function<Scanned(const std::vector<Tensor>&, const std::vector<Tensor>&)>& f,
    const std::vector<Tensor>& init, const std::vector<Tensor>& xs, const ScanOptions& options,
    SourceLocation loc) {
  Initialize();
  return Call(loc, [&] {
    const auto [results, carried] = ScanLists("scan", f, init, xs, options);
    const absl::Span<const lazy::Tensor> all = results;
    return Scanned{Wrapped(all.first(carried)), Wrapped(all.subspan(carried))};
  });
}

std::pair<Tensor, Tensor> scan(
    const std::function<std::pair<Tensor, Tensor>(const Tensor&, const Tensor&)>& f,
    const Tensor& init, const Tensor& xs, const ScanOptions& options, SourceLocation loc) {
  Scanned all = scan(
      [&](const std::vector<Tensor>& carry, const std::vector<Tensor>& x) {
        auto [next, result] = f(carry[0], x[0]);
        return Scanned{ListOf(next), ListOf(result)};
      },
      ListOf(init), ListOf(xs), options, loc);
  return {std::move(all.carry[0]), std::move(all.results[0])};
}

std::vector<Tensor> map(const TensorsFunction& f, const std::vector<Tensor>& xs,
                        SourceLocation loc) {
  Initialize();
  return Call(loc, [&] {
    const auto step = [&](const std::vector<Tensor>&, const std::vector<Tensor>& x) {
      return Scanned{{}, f(x)};
    };
    return Wrapped(ScanLists("map", step, {}, xs, {}).first);
  });
}

Tensor map(const TensorFunction& f, const Tensor& xs, SourceLocation loc) {
  return map([&](const std::vector<Tensor>& x) { return ListOf(f(x[0])); }, ListOf(xs), loc)[0];
}

std::vector<Tensor> associative_scan(const CombineFunction& f, const std::vector<Tensor>& xs,
                                     const AssociativeScanOptions& options, SourceLocation loc) {
  Initialize();
  return Call(loc, [&] {
    constexpr auto kName = "associative_scan";
    lazy::Tensors given = UnwrapAll(kName, xs);
    std::int64_t dim = options.dim;
    for (lazy::Tensor& x : given) {
      dim = lazy::NormalizeDim(kName, options.dim, x.rank());
      if (x.dim(dim) != given[0].dim(dim)) {
        lazy::ThrowRecordError(kName,
                               ir::InvalidArgument("one of xs is ", x.shape(), " and has not ",
                                                   given[0].dim(dim), " elements along dim ", dim));
      }
      if (options.reverse) x = lazy::Flip(x, {dim});
    }
    const auto combine = [&](absl::Span<const lazy::Tensor> left,
                             absl::Span<const lazy::Tensor> right) {
      const lazy::SiteOverride none(ir::kNoSite);
      return UnwrapAll(kName, f(Wrapped(left), Wrapped(right)));
    };
    lazy::Tensors results = lazy::AssociativeScan(kName, given, dim, combine);
    if (options.reverse) {
      for (lazy::Tensor& result : results) result = lazy::Flip(result, {dim});
    }
    return Wrapped(results);
  });
}

Tensor associative_scan(const std::function<Tensor(const Tensor&, const Tensor&)>& f,
                        const Tensor& xs, const AssociativeScanOptions& options,
                        SourceLocation loc) {
  return associative_scan(
      [&](const std::vector<Tensor>& left, const std::vector<Tensor>& right) {
        return ListOf(f(left[0], right[0]));
      },
      ListOf(xs), options, loc)[0];
}

std::vector<Tensor> cond(const Tensor& pred, const TensorsFunction& true_fn,
                         const TensorsFunction& false_fn, const std::vector<Tensor>& operands,
                         SourceLocation loc) {
  Initialize();
  return Call(loc, [&] {
    return Wrapped(
        ChooseOf("cond", ToIndex(pred), {"true_fn", "false_fn"}, {true_fn, false_fn}, operands));
  });
}

Tensor cond(const Tensor& pred, const TensorFunction& true_fn, const TensorFunction& false_fn,
            const Tensor& operand, SourceLocation loc) {
  const auto of_list = [](const TensorFunction& f) {
    return [&f](const std::vector<Tensor>& in) { return ListOf(f(in[0])); };
  };
  return cond(pred, TensorsFunction(of_list(true_fn)), TensorsFunction(of_list(false_fn)),
              ListOf(operand), loc)[0];
}

std::vector<Tensor> switch_case(const Tensor& index, const std::vector<TensorsFunction>& branches,
                                const std::vector<Tensor>& operands, SourceLocation loc) {
  Initialize();
  return Call(loc, [&] {
    constexpr auto kName = "switch";
    if (branches.empty()) lazy::ThrowRecordError(kName, ir::InvalidArgument("there is no branch"));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < branches.size(); ++i) names.push_back(ir::Str("branch ", i));
    return Wrapped(ChooseOf(kName, ToIndex(kName, index, branches.size()), std::move(names),
                            branches, operands));
  });
}

}  // namespace lazuli
