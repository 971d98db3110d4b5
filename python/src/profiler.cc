// lazuli.profiler: profiles, and the parts of a program that it marks.
#include "lazuli/profiler.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>

#include "lazuli/execution.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/caller.h"
#include "python/src/gil.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

using profiler::By;
using profiler::Profile;

template <class T>
py::list DictsOf(const std::vector<T>& values) {
  py::list list;
  for (const T& value : values) list.append(FieldsDict(value));
  return list;
}

// A Scope or StepTrace for `with`, which makes and ends it.
template <class T>
class Held {
 public:
  explicit Held(std::string name, std::int64_t number) : name_(std::move(name)), number_(number) {}
  void Enter() {
    const Caller caller;
    if constexpr (std::is_same_v<T, profiler::StepTrace>)
      held_.emplace(name_, number_);
    else
      held_.emplace(name_);
  }
  void Exit(bool failed) {
    const Caller caller;
    const ReleasedGil release;
    if constexpr (std::is_same_v<T, profiler::StepTrace>) {
      if (failed) held_->cancel();
    } else {
      static_cast<void>(failed);
    }
    held_.reset();
  }

 private:
  std::string name_;
  std::int64_t number_;
  std::optional<T> held_;
};

template <class T>
py::class_<Held<T>> BindHeld(py::module_& module, const char* name, const char* doc) {
  return py::class_<Held<T>>(module, name, doc)
      .def("__enter__",
           [](py::object self) {
             self.cast<Held<T>&>().Enter();
             return self;
           })
      .def("__exit__", [](Held<T>& self, const py::object& type, const py::object&,
                          const py::object&) { self.Exit(!type.is_none()); });
}

void BindProfile(py::module_& module) {
  py::class_<Profile>(module, "Profile", "What was collected.")
      .def(
          "events", [](const Profile& profile) { return DictsOf(profile.events()); },
          "What happened, in order, as dicts.")
      .def(
          "rows",
          [](const Profile& profile, const std::string& by) {
            return DictsOf(profile.rows(profiler::by(by)));
          },
          py::arg("by") = "line",
          "A dict for each line, op, scope, thunk, pass or stage, the most expensive first.")
      .def(
          "table",
          [](const Profile& profile, const std::string& by, std::int64_t rows) {
            return profile.table(profiler::by(by), rows);
          },
          py::arg("by") = "line", py::arg("rows") = 20, "The first of the rows, as text.")
      .def(
          "save", [](const Profile& profile, py::handle path) { profile.save(ToPath(path)); },
          py::arg("path"),
          "Writes a trace for Perfetto and chrome://tracing; where the path ends in '/', a folder "
          "for TensorBoard.");
}

}  // namespace

void BindProfiler(py::module_& module) {
  py::module_ m = module.attr("profiler").cast<py::module_>();
  BindProfile(m);
  m.def(
      "start",
      [](std::int64_t skip_first, std::int64_t wait, std::int64_t warmup, std::int64_t active,
         std::int64_t repeat, std::function<void(const Profile&)> on_ready) {
        const ReleasedGil release;
        profiler::start({skip_first, wait, warmup, active, repeat, std::move(on_ready)});
      },
      py::arg("skip_first") = 0, py::arg("wait") = 0, py::arg("warmup") = 0, py::arg("active") = 0,
      py::arg("repeat") = 0, py::arg("on_ready") = py::none(),
      "Begins a profile: of everything until stop(), or, after skip_first steps, of the active "
      "steps of the cycle wait, warmup, active, which comes `repeat` times; on_ready(profile) is "
      "called when they have ended.");
  m.def(
      "step",
      [] {
        const ReleasedGil release;
        profiler::step();
      },
      "A step ends here; StepTrace calls it.");
  m.def(
      "stop",
      [] {
        const ReleasedGil release;
        return profiler::stop();
      },
      "Ends the profile and returns it, of several cycles the last.");
  m.def("running", &profiler::running, "Whether a profile is under way.");
  m.def("current", &profiler::current,
        "The last profile, or what there is so far of the one under way.");
  m.def(
      "table",
      [](const std::string& by, std::int64_t rows) {
        return profiler::table(profiler::by(by), rows);
      },
      py::arg("by") = "line", py::arg("rows") = 20, "current().table().");
  BindHeld<profiler::Scope>(m, "Scope",
                            "A part of the program with a name: with Scope('load'): ...")
      .def(py::init([](std::string name) {
             return std::make_unique<Held<profiler::Scope>>(std::move(name), 0);
           }),
           py::arg("name"));
  BindHeld<NameScope>(module, "NameScope",
                      "What is recorded inside is part of something with a name, in the text of "
                      "graphs, in HLO and in profiles: with NameScope('decoder'): ...")
      .def(py::init([](std::string name) {
             return std::make_unique<Held<NameScope>>(std::move(name), 0);
           }),
           py::arg("name"));
  BindHeld<profiler::StepTrace>(
      m, "StepTrace",
      "A step of the program: where it ends, what is recorded is synced and the schedule goes on.")
      .def(py::init([](std::string name, std::int64_t step_num) {
             return std::make_unique<Held<profiler::StepTrace>>(std::move(name), step_num);
           }),
           py::arg("name"), py::arg("step_num") = 0);
}

}  // namespace lazuli::python
