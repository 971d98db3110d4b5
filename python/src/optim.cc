// optim: the steps of the algorithms in C++, on param_groups and state as Python's optimisers have
// them (lazuli/optim).
#include "lazuli/optim.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpp_api/optim/algorithms.h"
#include "lazuli/internal/host_action.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/gil.h"

namespace lazuli::python {
namespace {

using optim::Algorithm;
using optim::Batch;

// --- options: items of a group's dict by the names of a struct's fields

bool LoadOption(PyObject* object, double& out) {
  if (const Tensor* tensor = AsTensor(object)) {
    out = tensor->item<double>();
    return true;
  }
  return LoadReal(object, out);
}
bool LoadOption(PyObject* object, bool& out) {
  const int truth = PyObject_IsTrue(object);
  if (truth < 0) throw py::error_already_set();
  out = truth != 0;
  return true;
}
bool LoadOption(PyObject* object, std::int64_t& out) {
  out = PyLong_Check(object) ? PyLong_AsLongLong(object) : 0;
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  return PyLong_Check(object);
}
bool LoadOption(PyObject* object, std::optional<std::string>& out) {
  if (object != Py_None && !PyUnicode_Check(object)) return false;
  if (object != Py_None) out = py::cast<std::string>(object);
  return true;
}
template <std::size_t N>
bool LoadOption(PyObject* object, std::array<double, N>& out) {
  if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
  if (PySequence_Fast_GET_SIZE(object) != static_cast<Py_ssize_t>(N)) return false;
  for (std::size_t i = 0; i < N; ++i) {
    if (!LoadOption(PySequence_Fast_GET_ITEM(object, static_cast<Py_ssize_t>(i)), out[i]))
      return false;
  }
  return true;
}
bool LoadOption(PyObject* object, std::optional<double>& out) {
  double number = 0;
  if (object != Py_None && !LoadOption(object, number)) return false;
  out = object == Py_None ? std::nullopt : std::optional(number);
  return true;
}
template <class A, class B>
bool LoadOption(PyObject* object, std::pair<A, B>& out) {
  return (PyTuple_Check(object) || PyList_Check(object)) && PySequence_Fast_GET_SIZE(object) == 2 &&
         LoadOption(PySequence_Fast_GET_ITEM(object, 0), out.first) &&
         LoadOption(PySequence_Fast_GET_ITEM(object, 1), out.second);
}

std::vector<PyObject*> Interned(const std::vector<const char*>& names) {
  std::vector<PyObject*> keys;
  for (const char* name : names) keys.push_back(PyUnicode_InternFromString(name));
  return keys;
}

// An option that the group lacks, as one of an older state, has its default.
template <class O>
O LoadOptions(const char* name, PyObject* group) {
  O options;
  const auto load = [&]<std::size_t I>() {
    static PyObject* key =
        PyUnicode_InternFromString(std::string(kFieldNames<O>[I]).c_str());  // for ever
    PyObject* value = PyDict_GetItemWithError(group, key);
    if (value == nullptr || LoadOption(value, std::get<I>(Fields(options)))) return;
    ThrowTypeError(std::string(name) + ": " + std::string(kFieldNames<O>[I]) +
                   " of a group cannot be a " + Py_TYPE(value)->tp_name);
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (load.template operator()<I>(), ...);
  }(std::make_index_sequence<kFieldCount<O>>());
  return options;
}

// --- steps

struct Keys {
  std::vector<PyObject*> numbers, states;
};

// A step whose outcome is not known yet: what was before it, and what it has made, by batch.
struct Recorded {
  struct Of {
    std::vector<py::object> owners, dicts;
    std::vector<double> before, after;
    std::vector<PyObject*> made;  // keys of states
  };
  lazuli::internal::UpdateOutcome outcome;
  const Keys* keys = nullptr;
  std::vector<Of> batches;
};

// What an optimiser keeps between steps besides what Python sees.
struct Stepper {
  lazuli::internal::PendingUpdate update;
  std::vector<Recorded> recorded;             // oldest first
  std::vector<Batch> batches;                 // between steps they are empty
  std::vector<std::vector<PyObject*>> dicts;  // of each batch's parameters; null: none yet
  std::vector<std::vector<PyObject*>> owners;
  std::vector<double> numbers;
  std::vector<Tensor> states;
};

// The state of a parameter: numbers that are 0 and tensors that are undefined until they are made.
void LoadState(const Algorithm& algorithm, const Keys& keys, PyObject* dict, Stepper& stepper) {
  stepper.numbers.assign(keys.numbers.size(), 0);
  stepper.states.assign(keys.states.size(), Tensor());
  if (dict == nullptr) return;
  for (std::size_t n = 0; n < keys.numbers.size(); ++n) {
    PyObject* value = PyDict_GetItemWithError(dict, keys.numbers[n]);
    if (value == nullptr) continue;
    if (PyFloat_CheckExact(value))
      stepper.numbers[n] = PyFloat_AS_DOUBLE(value);
    else if (!LoadOption(value, stepper.numbers[n]))
      ThrowTypeError(std::string(algorithm.name) + ": state '" + algorithm.numbers[n] +
                     "' must be a number");
  }
  for (std::size_t s = 0; s < keys.states.size(); ++s) {
    PyObject* value = PyDict_GetItemWithError(dict, keys.states[s]);
    if (value == nullptr || value == Py_None) continue;
    const Tensor* tensor = AsTensor(value);
    if (tensor == nullptr)
      ThrowTypeError(std::string(algorithm.name) + ": state '" + algorithm.states[s] +
                     "' must be a Tensor");
    stepper.states[s] = *tensor;
  }
}

std::size_t BatchFor(const Algorithm& algorithm, std::size_t group, const Tensor& p,
                     Stepper& stepper) {
  for (std::size_t i = 0; i < stepper.batches.size(); ++i) {
    Batch& batch = stepper.batches[i];
    if (batch.empty()) {
      batch.group = group;
      batch.numbers = stepper.numbers;
      return i;
    }
    if (batch.group == group && Fits(algorithm, batch, p, stepper.numbers,
                                     [&](std::size_t s) { return stepper.states[s].defined(); }))
      return i;
  }
  Batch& batch = stepper.batches.emplace_back();
  stepper.dicts.emplace_back();
  stepper.owners.emplace_back();
  batch.group = group;
  batch.numbers = stepper.numbers;
  batch.states.resize(algorithm.states.size());
  return stepper.batches.size() - 1;
}

void Gather(const Algorithm& algorithm, const Keys& keys, PyObject* groups, PyObject* state,
            Stepper& stepper) {
  static PyObject* params = PyUnicode_InternFromString("params");
  for (Py_ssize_t g = 0; g < PyList_GET_SIZE(groups); ++g) {
    PyObject* list = PyDict_GetItemWithError(PyList_GET_ITEM(groups, g), params);
    if (list == nullptr || !PyList_Check(list))
      ThrowTypeError(std::string(algorithm.name) + ": a group's 'params' must be a list");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      PyObject* object = PyList_GET_ITEM(list, i);
      const Tensor* p = AsTensor(object);
      if (p == nullptr)
        ThrowTypeError(std::string(algorithm.name) + ": a group's 'params' must be tensors");
      Tensor grad = p->grad();
      if (!grad.defined()) continue;
      PyObject* dict = PyDict_GetItemWithError(state, object);
      LoadState(algorithm, keys, dict, stepper);
      const std::size_t at = BatchFor(algorithm, static_cast<std::size_t>(g), *p, stepper);
      stepper.batches[at].Add(0, *p, std::move(grad),
                              [&](std::size_t s) -> const Tensor& { return stepper.states[s]; });
      stepper.dicts[at].push_back(dict);
      stepper.owners[at].push_back(object);
    }
  }
}

// Puts what the update of a batch has made and counted into the parameters' states.
void Keep(const Algorithm& algorithm, const Keys& keys, PyObject* state, const Batch& batch,
          std::vector<PyObject*>& dicts, const std::vector<PyObject*>& owners) {
  const auto set = [](PyObject* dict, PyObject* key, PyObject* value) {
    if (PyDict_SetItem(dict, key, value) != 0) throw py::error_already_set();
  };
  for (std::size_t s = 0; s < keys.states.size() && keys.numbers.empty(); ++s) {
    if (!batch.states[s].empty() && batch.states[s][0].defined()) break;
    if (s + 1 == keys.states.size()) return;  // nothing to keep: no state is made
  }
  for (std::size_t i = 0; i < dicts.size(); ++i) {
    if (dicts[i] != nullptr) continue;
    const py::dict made;
    set(state, owners[i], made.ptr());
    dicts[i] = made.ptr();
  }
  for (std::size_t n = 0; n < keys.numbers.size(); ++n) {
    const py::float_ number(batch.numbers[n]);
    for (PyObject* dict : dicts) set(dict, keys.numbers[n], number.ptr());
  }
  for (std::size_t s = 0; s < keys.states.size(); ++s) {
    if (batch.states[s].empty() || !batch.states[s][0].defined()) continue;
    for (std::size_t i = 0; i < dicts.size(); ++i) {
      PyObject* old = PyDict_GetItemWithError(dicts[i], keys.states[s]);
      if (old != nullptr && old != Py_None) continue;
      Tensor made = batch.states[s][i];
      const std::string owner = batch.parameters[i].name();
      if (!owner.empty()) made.set_name(owner + "." + algorithm.states[s]);
      set(dicts[i], keys.states[s], ToPython(std::move(made)).ptr());
    }
  }
}

// --- steps that are not taken

void SetDictItem(PyObject* dict, PyObject* key, PyObject* value) {
  if (PyDict_SetItem(dict, key, value) != 0) throw py::error_already_set();
}
void RemoveItem(PyObject* dict, PyObject* key) {
  if (PyDict_GetItemWithError(dict, key) == nullptr) return;
  if (PyDict_DelItem(dict, key) != 0) throw py::error_already_set();
}

// After the batch's states are kept.
void Complete(Recorded::Of& of, const Batch& batch, const std::vector<PyObject*>& owners,
              PyObject* state) {
  of.after = batch.numbers;
  for (PyObject* owner : owners) {
    PyObject* dict = PyDict_GetItemWithError(state, owner);
    if (dict == nullptr) continue;  // the algorithm keeps nothing
    of.owners.push_back(py::reinterpret_borrow<py::object>(owner));
    of.dicts.push_back(py::reinterpret_borrow<py::object>(dict));
  }
}

// Where a step came after, which counted on, the first number alone goes back, by one step.
void TakeBack(const Keys& keys, const Recorded::Of& of, PyObject* state) {
  for (std::size_t i = 0; i < of.dicts.size(); ++i) {
    PyObject* const dict = of.dicts[i].ptr();
    for (PyObject* key : of.made) RemoveItem(dict, key);
    for (std::size_t n = 0; n < keys.numbers.size(); ++n) {
      PyObject* const value = PyDict_GetItemWithError(dict, keys.numbers[n]);
      if (value == nullptr || !PyFloat_CheckExact(value)) continue;
      const double now = PyFloat_AS_DOUBLE(value);
      const double back =
          now == of.after[n] ? of.before[n] : now - (n == 0 ? of.after[n] - of.before[n] : 0);
      SetDictItem(dict, keys.numbers[n], py::float_(back).ptr());
    }
    // As before the first step.
    if (of.made.empty() || of.before != std::vector<double>(of.before.size())) continue;
    for (PyObject* key : keys.numbers) RemoveItem(dict, key);
    if (PyDict_GET_SIZE(dict) == 0 && PyDict_GetItemWithError(state, of.owners[i].ptr()) == dict)
      RemoveItem(state, of.owners[i].ptr());
  }
}

void Settle(Stepper& stepper, PyObject* state) {
  using State = lazuli::internal::UpdateOutcome::State;
  if (stepper.recorded.empty()) return;
  std::vector<Recorded> recorded = std::exchange(stepper.recorded, {});
  for (Recorded& step : recorded) {
    const State outcome = step.outcome.state();
    if (outcome == State::kNotTaken) {
      for (const Recorded::Of& of : step.batches) TakeBack(*step.keys, of, state);
    } else if (outcome == State::kUnknown) {
      stepper.recorded.push_back(std::move(step));
    }
  }
}

void Remember(Stepper& stepper, Recorded step) {
  // A device has two runs in flight and one graph pending. What is older will never be known: its graph
  // was dropped.
  constexpr std::size_t kMost = 8;
  if (stepper.recorded.size() == kMost) stepper.recorded.erase(stepper.recorded.begin());
  stepper.recorded.push_back(std::move(step));
}

// --- steps that are replayed

template <class O>
const Algorithm& TheAlgorithm() {
  static const Algorithm& algorithm = AlgorithmOf(O());
  return algorithm;
}
template <class O>
const Keys& TheKeys() {
  static const Keys keys{Interned(TheAlgorithm<O>().numbers), Interned(TheAlgorithm<O>().states)};
  return keys;
}

template <class O>
class StepAgain final : public lazuli::internal::HostAction {
 public:
  StepAgain(py::list groups, py::dict state, py::object stepper)
      : groups_(std::move(groups)), state_(std::move(state)), stepper_(std::move(stepper)) {}
  ~StepAgain() override {
    const AcquiredGil gil;
    groups_.release().dec_ref();
    state_.release().dec_ref();
    stepper_.release().dec_ref();
    parts_.clear();
  }
  StepAgain(const StepAgain&) = delete;
  StepAgain& operator=(const StepAgain&) = delete;

  // What the step did, whose batches are still there.
  void Keep(const Recorded& step) {
    const std::vector<Batch> batches = optim::BatchesOfReplay(TheStepper().batches);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      parts_.push_back({batches[i], step.batches[i]});
      is_whole_ = is_whole_ && step.batches[i].dicts.size() == batches[i].parameters.size();
    }
    num_groups_ = groups_.size();
  }
  void TakeNumbers() override {
    const AcquiredGil gil;
    Settle(TheStepper(), state_.ptr());
    if (groups_.size() != num_groups_) return;
    for (Part& part : parts_) {
      if (is_whole_ ? !IsAsItWas(part) : !TheAlgorithm<O>().numbers.empty()) return;
      PyObject* group = PyList_GET_ITEM(groups_.ptr(), static_cast<Py_ssize_t>(part.batch.group));
      Update(part.batch, LoadOptions<O>(TheAlgorithm<O>().name, group));
    }
  }
  void Commit() override {
    const AcquiredGil gil;
    const Keys& keys = TheKeys<O>();
    Recorded step{lazuli::internal::UpdateOutcome::OfRecording(), &keys, {}};
    for (Part& part : parts_) {
      part.of.after = part.batch.numbers;
      part.of.made.clear();
      for (std::size_t n = 0; n < keys.numbers.size(); ++n) {
        const py::float_ number(part.batch.numbers[n]);
        for (const py::object& dict : part.of.dicts)
          SetDictItem(dict.ptr(), keys.numbers[n], number.ptr());
      }
      step.batches.push_back(part.of);
    }
    Remember(TheStepper(), std::move(step));
  }
  const void* actor() const override { return stepper_.ptr(); }

 private:
  struct Part {
    Batch batch;
    Recorded::Of of;
  };

  Stepper& TheStepper() const { return stepper_.cast<Stepper&>(); }
  // The numbers and states are those of one batch still; takes the numbers.
  bool IsAsItWas(Part& part) {
    const Algorithm& algorithm = TheAlgorithm<O>();
    Stepper& stepper = TheStepper();
    for (std::size_t i = 0; i < part.of.dicts.size(); ++i) {
      PyObject* const dict = part.of.dicts[i].ptr();
      if (PyDict_GetItemWithError(state_.ptr(), part.of.owners[i].ptr()) != dict) return false;
      LoadState(algorithm, TheKeys<O>(), dict, stepper);
      if (i == 0) part.batch.numbers = stepper.numbers;
      if (stepper.numbers != part.batch.numbers) return false;
      for (std::size_t s = 0; s < stepper.states.size(); ++s) {
        const Tensor& now = stepper.states[s];
        const Tensor& then = part.batch.states[s][i];
        if (now.defined() != then.defined() || (now.defined() && !now.is_same(then))) return false;
      }
    }
    part.of.before = part.batch.numbers;
    return true;
  }

  py::list groups_;
  py::dict state_;
  py::object stepper_;
  std::vector<Part> parts_;
  std::size_t num_groups_ = 0;
  bool is_whole_ = true;  // each parameter has a state
};

template <class O>
void Step(const py::list& groups, const py::dict& state, const py::object& stepper_object) {
  static const Algorithm& algorithm = TheAlgorithm<O>();
  static const Keys& keys = TheKeys<O>();
  Stepper& stepper = stepper_object.cast<Stepper&>();
  const Caller caller;
  struct Clear {
    Stepper& stepper;
    ~Clear() {
      for (Batch& batch : stepper.batches) batch.Clear();
      for (auto& dicts : stepper.dicts) dicts.clear();
      for (auto& owners : stepper.owners) owners.clear();
    }
  } const clear{stepper};
  stepper.update.RunFirst(algorithm.name, SourceLocation::current());
  Settle(stepper, state.ptr());
  std::shared_ptr<StepAgain<O>> again;  // others than foreach_ functions record all that they do
  if (lazuli::internal::HostActionScope::IsWatched() && !algorithm.matrices)
    again = std::make_shared<StepAgain<O>>(groups, state, stepper_object);
  const lazuli::internal::HostActionScope acts(again);
  Recorded step{lazuli::internal::UpdateOutcome::OfRecording(), &keys, {}};
  Gather(algorithm, keys, groups.ptr(), state.ptr(), stepper);
  if (stepper.batches.empty() || stepper.batches[0].empty()) return;
  std::optional<std::pair<std::size_t, O>> options;  // of the group that they were read of
  ForeachTransaction together;
  for (Batch& batch : stepper.batches) {
    if (batch.empty()) continue;
    Recorded::Of& of = step.batches.emplace_back();
    of.before = batch.numbers;
    for (std::size_t s = 0; s < keys.states.size(); ++s) {
      if (!batch.states[s][0].defined()) of.made.push_back(keys.states[s]);
    }
    if (!options || options->first != batch.group) {
      PyObject* group = PyList_GET_ITEM(groups.ptr(), static_cast<Py_ssize_t>(batch.group));
      options.emplace(batch.group, LoadOptions<O>(algorithm.name, group));
    }
    Update(batch, options->second);
  }
  together.commit();
  for (std::size_t i = 0; i < stepper.batches.size(); ++i) {
    const Batch& batch = stepper.batches[i];
    if (batch.empty()) continue;
    Keep(algorithm, keys, state.ptr(), batch, stepper.dicts[i], stepper.owners[i]);
    Complete(step.batches[i], batch, stepper.owners[i], state.ptr());
  }
  if (again) again->Keep(step);
  Remember(stepper, std::move(step));
  stepper.update.Set();
}

template <class O>
void BindStep(py::module_& optim) {
  optim.def(("_step_" + std::string(AlgorithmOf(O()).name)).c_str(), &Step<O>);
}

}  // namespace

void BindOptim(py::module_& module) {
  py::module_ optim = module.attr("optim").cast<py::module_>();
  py::class_<Stepper>(optim, "_Stepper")
      .def(py::init<>())
      .def("run_first",
           [](Stepper& stepper, const std::string& who) {
             const Caller caller;
             stepper.update.RunFirst(who.c_str(), SourceLocation::current());
           })
      .def("set", [](Stepper& stepper) { stepper.update.Set(); })
      .def("settle", [](Stepper& stepper, const py::dict& state) { Settle(stepper, state.ptr()); });
  BindStep<optim::SGDOptions>(optim);
  BindStep<optim::AdamOptions>(optim);
  BindStep<optim::NAdamOptions>(optim);
  BindStep<optim::RAdamOptions>(optim);
  BindStep<optim::AdamaxOptions>(optim);
  BindStep<optim::RMSpropOptions>(optim);
  BindStep<optim::AdagradOptions>(optim);
  BindStep<optim::AdadeltaOptions>(optim);
  BindStep<optim::ASGDOptions>(optim);
  BindStep<optim::RpropOptions>(optim);
  BindStep<optim::LionOptions>(optim);
  BindStep<optim::AdafactorOptions>(optim);
  BindStep<optim::MuonOptions>(optim);
}

}  // namespace lazuli::python
