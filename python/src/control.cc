// lazuli._C._control: loops and branches over lists of tensors. The package's control.py makes
// functions of trees of them.
#include "lazuli/control.h"

#include <utility>

#include "python/src/arguments.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/caller.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

using List = std::vector<Tensor>;

TensorsFunction OfPython(const py::function& function) {
  return [function](const List& in) { return function(py::cast(in)).cast<List>(); };
}

LoopBound ToBound(py::handle bound) {
  if (py::isinstance<Tensor>(bound)) return bound.cast<Tensor>();
  return bound.cast<std::int64_t>();
}

List WhileLoop(const py::function& cond, const py::function& body, const List& init) {
  const Caller caller;
  const auto more = [&](const List& in) { return cond(py::cast(in)).cast<Tensor>(); };
  return while_loop(more, OfPython(body), init);
}

List ForLoop(py::handle lower, py::handle upper, const py::function& body, const List& init) {
  const Caller caller;
  const auto step = [&](const Tensor& i, const List& in) {
    return body(i, py::cast(in)).cast<List>();
  };
  return fori_loop(ToBound(lower), ToBound(upper), step, init);
}

std::pair<List, List> Scan(const py::function& f, const List& init, const List& xs,
                           std::optional<std::int64_t> length, bool reverse, std::int64_t every) {
  const Caller caller;
  const auto step = [&](const List& carry, const List& x) {
    auto [next, results] = f(py::cast(carry), py::cast(x)).cast<std::pair<List, List>>();
    return Scanned{std::move(next), std::move(results)};
  };
  Scanned all = scan(step, init, xs, {.length = length, .reverse = reverse, .every = every});
  return {std::move(all.carry), std::move(all.results)};
}

List Map(const py::function& f, const List& xs) {
  const Caller caller;
  return map(OfPython(f), xs);
}

List AssociativeScan(const py::function& f, const List& xs, std::int64_t dim, bool reverse) {
  const Caller caller;
  const auto combine = [&](const List& left, const List& right) {
    return f(py::cast(left), py::cast(right)).cast<List>();
  };
  return associative_scan(CombineFunction(combine), xs, {.reverse = reverse, .dim = dim});
}

List Cond(const Tensor& pred, const py::function& true_fn, const py::function& false_fn,
          const List& operands) {
  const Caller caller;
  return cond(pred, OfPython(true_fn), OfPython(false_fn), operands);
}

List Switch(const Tensor& index, const std::vector<py::function>& branches, const List& operands) {
  const Caller caller;
  std::vector<TensorsFunction> functions;
  for (const py::function& branch : branches) functions.push_back(OfPython(branch));
  return switch_case(index, functions, operands);
}

}  // namespace

void BindControl(py::module_& module) {
  py::module_ control = module.def_submodule("_control", "Loops and branches over lists.");
  control.def("while_loop", &WhileLoop);
  control.def("fori_loop", &ForLoop);
  control.def("scan", &Scan);
  control.def("map", &Map);
  control.def("associative_scan", &AssociativeScan);
  control.def("cond", &Cond);
  control.def("switch", &Switch);
}

}  // namespace lazuli::python
