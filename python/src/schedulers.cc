// optim: the schedules of learning rates.
#include <functional>
#include <vector>

#include "lazuli/lr_scheduler.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/cycles.h"
#include "python/src/stl.h"

namespace lazuli::python {

// An optimiser as a parameter.
template <>
struct Argument<std::reference_wrapper<optim::Optimizer>> {
  static constexpr std::string_view kType = "Optimizer";
  using Stored = std::optional<std::reference_wrapper<optim::Optimizer>>;
  static bool Load(PyObject* object, Stored& out) {
    if (!py::isinstance<optim::Optimizer>(object)) return false;
    out.emplace(*py::handle(object).cast<optim::Optimizer*>());
    return true;
  }
  static const std::reference_wrapper<optim::Optimizer>& Pass(const Stored& stored) {
    return *stored;
  }
};

namespace {

using SchedulerPtr = std::shared_ptr<optim::LRScheduler>;
using Reference = std::reference_wrapper<optim::Optimizer>;
// The optimiser is among the arguments, and must outlive the scheduler.
constexpr py::keep_alive<1, 2> kKeepArguments;
constexpr py::keep_alive<1, 3> kKeepKeywords;

template <class S, class... P>
void BindScheduler(py::module_& optim, const char* name, std::string_view parameters,
                   const char* doc) {
  py::class_<S, optim::LRScheduler, std::shared_ptr<S>> type(optim, name, WithPatients());
  DefineConstructor<S, Reference, P...>(type, parameters, doc, kKeepArguments, kKeepKeywords);
}

double Factor(py::handle function, std::int64_t t) {
  const lazy::SiteOverride none(ir::kNoSite);  // what it records has lines of its own
  const py::object given = function(t);
  double factor = 0;
  if (!LoadReal(given.ptr(), factor))
    ThrowTypeError("LambdaLR: the function must give a float, not " +
                   std::string(Py_TYPE(given.ptr())->tp_name));
  return factor;
}

// Those that are made of Python's objects, which they keep.
void BindSchedulesOfUsers(py::module_& optim) {
  py::class_<optim::LambdaLR, optim::LRScheduler, std::shared_ptr<optim::LambdaLR>>(
      optim, "LambdaLR", WithPatients(), "base * factor(t).")
      .def(py::init([](optim::Optimizer& optimizer, const py::function& factor) {
             const Caller caller;
             return std::make_shared<optim::LambdaLR>(
                 optimizer,
                 [borrowed = py::handle(factor)](std::int64_t t) { return Factor(borrowed, t); });
           }),
           py::arg("optimizer"), py::arg("factor"), py::keep_alive<1, 2>(), py::keep_alive<1, 3>());
  py::class_<optim::SequentialLR, optim::LRScheduler, std::shared_ptr<optim::SequentialLR>>(
      optim, "SequentialLR", WithPatients(),
      "One schedule after the other: schedule i + 1 begins, at its step 0, at milestone i.")
      .def(
          "__init__",
          [](py::detail::value_and_holder& made, optim::Optimizer& optimizer,
             const std::vector<SchedulerPtr>& schedules, std::vector<std::int64_t> milestones) {
            const Caller caller;
            made.value_ptr() =
                std::make_unique<optim::SequentialLR>(
                    optimizer, optim::SequentialLR::Schedules(schedules.begin(), schedules.end()),
                    std::move(milestones))
                    .release();  // pybind11 makes the holder
            // Not the list, which may change.
            for (const SchedulerPtr& schedule : schedules)
              Keep(reinterpret_cast<PyObject*>(made.inst), py::cast(schedule));
          },
          py::detail::is_new_style_constructor(), py::arg("optimizer"), py::arg("schedules"),
          py::arg("milestones"), py::keep_alive<1, 2>());
}

}  // namespace

void BindSchedulers(py::module_& module) {
  py::module_ optim = module.attr("optim").cast<py::module_>();
  py::class_<optim::LRScheduler, SchedulerPtr>(
      optim, "LRScheduler", "Sets the learning rate of its optimiser at once and at each step().")
      .def(
          "step",
          [](optim::LRScheduler& s) {
            const Caller caller;
            s.step();
          },
          "Goes on to the next step.")
      .def(
          "set_step",
          [](optim::LRScheduler& s, std::int64_t step) {
            const Caller caller;
            s.set_step(step);
          },
          py::arg("step"), "Goes to a step: what continues a saved run.")
      .def(
          "lr_at",
          [](const optim::LRScheduler& s, std::int64_t step) {
            const Caller caller;
            return s.lr_at(step);
          },
          py::arg("step"), "The learning rate at a step.")
      .def(
          "get_last_lr",
          [](const optim::LRScheduler& s) {
            const Caller caller;
            return std::vector<double>{s.lr()};
          },
          "The present learning rate as a list of one, as PyTorch gives it for each group.")
      .def_property_readonly("steps", &optim::LRScheduler::steps)
      .def_property_readonly("lr", [](const optim::LRScheduler& s) {
        const Caller caller;
        return s.lr();
      });
  constexpr std::string_view kOptions = "(optimizer, options = {})";
  BindScheduler<optim::StepLR, optim::StepLROptions>(optim, "StepLR", kOptions,
                                                     "base * gamma^(t / size), rounded down.");
  BindScheduler<optim::MultiStepLR, optim::MultiStepLROptions>(
      optim, "MultiStepLR", kOptions, "base * gamma^(number of milestones up to t).");
  BindScheduler<optim::ExponentialLR, double>(optim, "ExponentialLR", "(optimizer, gamma)",
                                              "base * gamma^t.");
  BindScheduler<optim::CosineAnnealingLR, optim::CosineAnnealingLROptions>(
      optim, "CosineAnnealingLR", kOptions,
      "From the base along half a cosine to min at step `steps`, and back.");
  BindScheduler<optim::LinearLR, optim::LinearLROptions>(
      optim, "LinearLR", kOptions,
      "base times a factor that goes in a line from start to end over `steps` and stays there.");
  BindScheduler<optim::PolynomialLR, optim::PolynomialLROptions>(
      optim, "PolynomialLR", kOptions, "base * (1 - t / steps)^power, 0 from step `steps` on.");
  BindScheduler<optim::OneCycleLR, optim::OneCycleLROptions>(
      optim, "OneCycleLR", kOptions,
      "One cycle of `steps`: from max_lr / div up to max_lr, then down to max_lr / div / "
      "final_div (Smith and Topin, 2017).");
  BindSchedulesOfUsers(optim);
  py::class_<optim::ReduceLROnPlateau> plateau(optim, "ReduceLROnPlateau", WithPatients());
  DefineConstructor<optim::ReduceLROnPlateau, Reference, optim::ReduceLROnPlateauOptions>(
      plateau, kOptions,
      "Multiplies the learning rate by factor once a metric has not improved for more than "
      "patience steps.",
      kKeepArguments, kKeepKeywords);
  plateau
      .def(
          "step",
          [](optim::ReduceLROnPlateau& s, double metric) {
            const Caller caller;
            s.step(metric);
          },
          py::arg("metric"))
      .def_property_readonly("best", &optim::ReduceLROnPlateau::best);
}

}  // namespace lazuli::python
