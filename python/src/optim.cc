// optim: the optimisers of C++, whose options are keyword arguments.
#include "lazuli/optim.h"

#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/cycles.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

// An optimiser with one options struct: its fields are the arguments of the constructor and of
// set_options(), and the items of `options`.
template <class O, class Options>
void BindOptimizer(py::module_& optim, const char* name, const char* doc) {
  py::class_<O, optim::Optimizer> type(optim, name, WithPatients());
  DefineConstructor<O, std::vector<Tensor>, Options>(type, "(parameters, options = {})", doc);
  constexpr auto kIndices = std::make_index_sequence<kFieldCount<Options>>();
  type.def_property_readonly("options", [](const O& o) {
    py::dict dict;
    const Options options = o.options();
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((dict[py::str(std::string(kFieldNames<Options>[I]))] =
            Argument<FieldType<Options, I>>::ToPython(std::get<I>(Fields(options)))),
       ...);
    }(kIndices);
    return dict;
  });
  type.def("__repr__", [name](const py::object& o) {
    std::string text;
    for (const auto& [option, value] : o.attr("options").cast<py::dict>())
      text += (text.empty() ? "" : ", ") + std::string(py::str(option)) + "=" +
              std::string(py::str(py::repr(value)));
    return name + ("(" + text + ")");
  });
  type.def(
      "set_options",
      [name](O& o, const py::kwargs& kwargs) {
        const Caller caller;
        Options options = o.options();
        std::size_t used = 0;
        const auto set = [&]<std::size_t I>() {
          const std::string field(kFieldNames<Options>[I]);
          if (!kwargs.contains(field)) return;
          ++used;
          using Field = Argument<FieldType<Options, I>>;
          typename Field::Stored stored{};
          const py::object value = kwargs[field.c_str()];
          if (!Field::Load(value.ptr(), stored))
            ThrowTypeError(std::string(name) + ": " + field + " must be " +
                           std::string(Field::kType));
          std::get<I>(Fields(options)) = Field::Pass(stored);
        };
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          (set.template operator()<I>(), ...);
        }(kIndices);
        if (used != kwargs.size())
          ThrowTypeError(std::string(name) + ": no such option in " +
                         std::string(py::str(py::list(kwargs.attr("keys")()))));
        o.set_options(options);
      },
      "Changes options; no program is compiled again unless 0 turns a term on or off.");
}

}  // namespace

void BindOptim(py::module_& module) {
  py::module_ optim = module.attr("optim").cast<py::module_>();
  py::class_<optim::Optimizer> type(optim, "Optimizer", WithPatients(),
                                    "What all optimisers have.");
  BindOptimizerState(optim, type);
  type.def_property_readonly("parameters", &optim::Optimizer::parameters)
      .def(
          "step",
          [](optim::Optimizer& o) {
            const Caller caller;
            o.step();
          },
          "Records one update of every parameter that has a gradient.")
      .def(
          "zero_grad",
          [](optim::Optimizer& o) {
            const Caller caller;
            o.zero_grad();
          },
          "Drops the gradients.")
      .def_property(
          "lr", &optim::Optimizer::lr,
          [](optim::Optimizer& o, double lr) {
            const Caller caller;
            o.set_lr(lr);
          },
          "The learning rate; changing it compiles nothing.");
  BindOptimizer<optim::SGD, optim::SGDOptions>(
      optim, "SGD", "Stochastic gradient descent, with momentum if it is not 0.");
  BindOptimizer<optim::Adam, optim::AdamOptions>(optim, "Adam", "Adam (Kingma and Ba, 2015).");
  BindOptimizer<optim::AdamW, optim::AdamWOptions>(
      optim, "AdamW", "Adam with decoupled weight decay (Loshchilov and Hutter, 2019).");
  BindOptimizer<optim::RMSprop, optim::RMSpropOptions>(optim, "RMSprop", "RMSprop (Hinton, 2012).");
  BindOptimizer<optim::Adagrad, optim::AdagradOptions>(optim, "Adagrad",
                                                       "Adagrad (Duchi et al., 2011).");
}

}  // namespace lazuli::python
