// What lazuli.func makes vmap() of.
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cpp_api/src/func_access.h"
#include "lazy/tensor/random.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/stl.h"

namespace lazuli::python {

void BindFunc(py::module_& module) {
  module.def(
      "_batch_function",
      [](const py::function& record, const std::vector<Tensor>& arguments,
         const std::vector<bool>& batched, std::int64_t size, const std::string& randomness,
         const std::string& name) {
        const auto call = [&](const std::vector<Tensor>& samples) {
          std::vector<Tensor> results;
          for (const py::handle result : py::iterable(record(*py::cast(samples))))
            results.push_back(result.cast<Tensor>());
          return results;
        };
        const func::Randomness draws = randomness == "different" ? func::Randomness::kDifferent
                                       : randomness == "same"    ? func::Randomness::kSame
                                                                 : func::Randomness::kError;
        func::BatchedFunction made =
            func::BatchFunction(call, arguments, batched, size, draws, name);
        return std::tuple(std::move(made.program), std::move(made.outside),
                          std::move(made.depends));
      },
      py::arg("record"), py::arg("arguments"), py::arg("batched"), py::arg("size"),
      py::arg("randomness"), py::arg("name"));
  // Where the default generator is, as numbers: a tensor could not be read while a function is traced.
  module.def("_draw_state", [] {
    const lazy::PhiloxState state = lazy::DefaultGenerator().state();
    return std::pair(state.seed, state.offset);
  });
  module.def("_set_draw_state", [](std::uint64_t seed, std::uint64_t offset) {
    lazy::DefaultGenerator().Exchange({seed, offset});
  });
}

}  // namespace lazuli::python
