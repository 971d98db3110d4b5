// data: the data sets and the loader of C++. A data set may also be written in Python.
#include "lazuli/data.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>

#include <pthread.h>

#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/cycles.h"
#include "python/src/gil.h"
#include "python/src/numpy.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

data::HostArray ToHost(const py::object& values) {
  const py::module_ numpy = py::module_::import("numpy");
  py::object array = numpy.attr("asarray")(values);
  // Numbers of Python are taken as lazuli.tensor() takes them.
  if (!array.is(values) && py::str(array.attr("dtype").attr("name")).equal(py::str("float64")))
    array = array.attr("astype")("float32");
  const ArrayView view = ViewArray(array, "data set");
  const auto* bytes = static_cast<const std::byte*>(view.data);
  return {.dtype = view.dtype, .dims = view.dims, .bytes = {bytes, bytes + view.bytes}};
}

py::object ToArray(data::HostArray host) {
  auto owner = std::make_shared<data::HostArray>(std::move(host));
  return MakeArray(owner->dtype, owner->dims, owner->bytes.data(), owner);
}

// A Python object with len() and either get(indices) for a whole batch or [i] for one sample.
// Borrowed: the Python objects whose C++ ones have this data set keep it alive.
class PythonDataset final : public data::Dataset {
 public:
  explicit PythonDataset(const py::object& object) : object_(object) {
    if (py::hasattr(object_, "__len__") &&
        (py::hasattr(object_, "get") || py::hasattr(object_, "__getitem__")))
      return;
    throw py::type_error(
        "DataLoader: a data set has __len__() and either get(indices) or "
        "__getitem__(i), " +
        std::string(Py_TYPE(object_.ptr())->tp_name) + " has not");
  }

  std::int64_t size() const override {
    const AcquiredGil acquire;
    return static_cast<std::int64_t>(py::len(object_));
  }
  data::HostBatch get(std::span<const std::int64_t> indices) const override {
    const AcquiredGil acquire;
    const lazy::SiteOverride none(ir::kNoSite);  // what it records has lines of its own
    if (py::hasattr(object_, "get")) {
      py::list list;
      for (const std::int64_t i : indices) list.append(i);
      const py::tuple pair = object_.attr("get")(list);
      return {ToHost(pair[0]), ToHost(pair[1])};
    }
    py::list xs, ys;
    for (const std::int64_t i : indices) {
      const py::object sample = object_[py::int_(i)];
      if (!(PyTuple_Check(sample.ptr()) || PyList_Check(sample.ptr())) || py::len(sample) != 2) {
        ThrowTypeError("data set: sample " + std::to_string(i) +
                       " must be a pair of an input and a target, not " +
                       std::string(Py_TYPE(sample.ptr())->tp_name));
      }
      const py::tuple pair = sample;
      xs.append(pair[0]);
      ys.append(pair[1]);
    }
    const py::object stack = py::module_::import("numpy").attr("stack");
    return {ToHost(stack(xs)), ToHost(stack(ys))};
  }
  py::object object() const { return py::reinterpret_borrow<py::object>(object_); }

 private:
  py::handle object_;
};

using DatasetPtr = std::shared_ptr<data::Dataset>;

DatasetPtr AsDataset(const py::object& object) {
  if (py::isinstance<data::Dataset>(object)) return object.cast<DatasetPtr>();
  return std::make_shared<PythonDataset>(object);
}

// One loop over a loader. Waiting for a batch lets other threads run: the loader's own may need the
// interpreter to make it.
class Epoch {
 public:
  explicit Epoch(data::DataLoader& loader) : loop_(Begin(loader)) { Live().insert(this); }
  ~Epoch() {
    Close();
    Live().erase(this);
  }
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  py::tuple Next() {
    const Caller caller;
    std::optional<data::Batch> batch;
    {
      const ReleasedGil release;
      const std::shared_ptr<Loop> loop = loop_;
      const std::lock_guard turn(loop->turn);
      if (loop->started && loop->iterator != std::default_sentinel) ++loop->iterator;
      loop->started = true;
      if (loop->iterator != std::default_sentinel) batch = std::move(*loop->iterator);
    }
    if (!batch) throw py::stop_iteration();
    return py::make_tuple(ToPython(std::move(batch->x)), ToPython(std::move(batch->y)));
  }
  // Afterwards no thread of the loop calls the data set, even if two threads close it at once.
  void Close() {
    const std::shared_ptr<Loop> loop = loop_;  // another thread may drop this meanwhile
    const ReleasedGil release;
    const std::lock_guard turn(loop->turn);
    loop->iterator = {};
  }
  // The collector's: its thread would call what is about to be cleared.
  static void Finalize(PyObject* self) {
    auto* instance = reinterpret_cast<py::detail::instance*>(self);
    const auto held = instance->get_value_and_holder();
    if (held.holder_constructed()) held.value_ptr<Epoch>()->Close();
  }
  // Before the interpreter goes, no thread may be left that would call it, nor a call of a daemon thread.
  static void CloseAll() {
    CallsWithoutGil::End();
    while (!Live().empty()) {
      Epoch* epoch = *Live().begin();
      Live().erase(epoch);
      epoch->Close();
    }
    const ReleasedGil release;
    CallsWithoutGil::WaitForOthers();
  }
  // In the child of a fork: threads that were in calls are gone.
  static void StartAnew() {
    CallsWithoutGil::ForgetOthers();
    for (const Epoch* epoch : Live()) new (&epoch->loop_->turn) std::mutex;
  }

 private:
  struct Loop {
    std::mutex turn;  // taken without Python's lock
    data::DataLoader::Iterator iterator;
    bool started = false;
  };
  static std::shared_ptr<Loop> Begin(data::DataLoader& loader) {
    const ReleasedGil release;
    auto loop = std::make_shared<Loop>();
    loop->iterator = loader.begin();
    return loop;
  }
  static std::set<Epoch*>& Live() {
    static auto* live = new std::set<Epoch*>;
    return *live;
  }
  const std::shared_ptr<Loop> loop_;
};

void BindDatasets(py::module_& data) {
  py::class_<data::Dataset, DatasetPtr>(
      data, "Dataset",
      "Inputs and targets by index. One of Python needs no base: any object with "
      "len() and either get(indices) or [i] will do.")
      .def("__len__", &data::Dataset::size)
      .def(
          "get",
          [](const data::Dataset& set, const std::vector<std::int64_t>& indices) {
            for (const std::int64_t i : indices) {
              if (i < 0 || i >= set.size())
                throw py::index_error("get: index " + std::to_string(i) +
                                      " is out of range for a data set of " +
                                      std::to_string(set.size()) + " samples");
            }
            const data::HostBatch batch = set.get(indices);
            return py::make_tuple(ToArray(batch.x), ToArray(batch.y));
          },
          py::arg("indices"), "The samples at these indices, as NumPy arrays.");
  py::class_<data::Mnist, data::Dataset, std::shared_ptr<data::Mnist>>(
      data, "Mnist", "Handwritten digits: x f32 [n, 1, 28, 28], normalised; y s64 [n].")
      .def(py::init([](const std::string& folder, bool train) {
             const Caller caller;
             return std::make_shared<data::Mnist>(folder, train);
           }),
           py::arg("folder"), py::arg("train") = true);
  py::class_<data::Cifar10, data::Dataset, std::shared_ptr<data::Cifar10>>(
      data, "Cifar10", "Photographs: x f32 [n, 3, 32, 32], normalised; y s64 [n].")
      .def(py::init([](const std::string& folder, bool train) {
             const Caller caller;
             return std::make_shared<data::Cifar10>(folder, train);
           }),
           py::arg("folder"), py::arg("train") = true)
      .def_static(
          "classes",
          [] {
            const auto& names = data::Cifar10::classes();
            return std::vector<std::string>(names.begin(), names.end());
          },
          "The names of the classes.");
  py::class_<data::TensorDataset, data::Dataset, std::shared_ptr<data::TensorDataset>>(
      data, "TensorDataset", "Rows of two tensors or arrays with the same first dim.")
      .def(py::init([](const py::object& x, const py::object& y) {
             const Caller caller;
             return std::make_shared<data::TensorDataset>(ToTensor(x), ToTensor(y));
           }),
           py::arg("x"), py::arg("y"));
  py::class_<data::Subset, data::Dataset, std::shared_ptr<data::Subset>>(
      data, "Subset", WithPatients(), "Some samples of another data set.")
      .def(py::init([](const py::object& dataset, std::vector<std::int64_t> indices) {
             const Caller caller;
             return std::make_shared<data::Subset>(AsDataset(dataset), std::move(indices));
           }),
           py::arg("dataset"), py::arg("indices"), py::keep_alive<1, 2>());
  py::class_<data::Repeat, data::Dataset, std::shared_ptr<data::Repeat>>(
      data, "Repeat", WithPatients(),
      "Another data set several times over: an epoch that is that much longer.")
      .def(py::init([](const py::object& dataset, std::int64_t times) {
             const Caller caller;
             return std::make_shared<data::Repeat>(AsDataset(dataset), times);
           }),
           py::arg("dataset"), py::arg("times"), py::keep_alive<1, 2>());
  data.def(
      "random_split",
      [](const py::object& dataset, const std::vector<std::int64_t>& sizes,
         std::optional<std::uint64_t> seed) {
        const Caller caller;
        py::list parts;
        for (data::Subset& part : data::random_split(AsDataset(dataset), sizes, seed)) {
          parts.append(std::make_shared<data::Subset>(std::move(part)));
          Keep(parts[parts.size() - 1], dataset);
        }
        return parts;
      },
      py::arg("dataset"), py::arg("sizes"), py::arg("seed") = py::none(),
      "Parts with these numbers of samples, which no two parts share, drawn at random.");
}

}  // namespace

void BindData(py::module_& module) {
  py::module_ data = module.attr("data").cast<py::module_>();
  BindDatasets(data);
  // Everything a loader takes besides the data set is a field of its options.
  static Signature signature;
  signature.name = "DataLoader";
  AddParameters<data::DataLoaderOptions>(signature, "(options = {})");
  py::class_<Epoch>(data, "Epoch", WithPatients(&Epoch::Finalize), "One loop over a DataLoader.")
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &Epoch::Next);
  py::class_<data::DataLoader>(data, "DataLoader", WithPatients(),
                               "Loops over a data set in batches.")
      .def(py::init([](const py::object& dataset, const py::kwargs& kwargs) {
             std::array<PyObject*, kFieldCount<data::DataLoaderOptions>> slots{};
             std::vector<PyObject*> values;
             py::list names;
             for (const auto& [name, value] : kwargs) {
               names.append(name);
               values.push_back(value.ptr());
             }
             py::object gathered;
             signature.Sort(nullptr, values.data(), 0, py::tuple(names).ptr(), slots, gathered);
             DatasetPtr set = AsDataset(dataset);
             return CallLoaded<data::DataLoaderOptions>(
                 signature, slots, [&](const data::DataLoaderOptions& options) {
                   return std::make_unique<data::DataLoader>(
                       std::shared_ptr<const data::Dataset>(std::move(set)), options);
                 });
           }),
           py::arg("dataset"), py::keep_alive<1, 2>())
      .def("__len__", &data::DataLoader::size, "Batches in an epoch.")
      .def_property_readonly("dataset",
                             [](const data::DataLoader& loader) -> py::object {
                               const data::Dataset& set = loader.dataset();
                               if (const auto* python = dynamic_cast<const PythonDataset*>(&set))
                                 return python->object();
                               return py::cast(&set, py::return_value_policy::reference);
                             })
      .def(
          "__iter__",
          [](data::DataLoader& loader) {
            const Caller caller;
            return std::make_unique<Epoch>(loader);
          },
          py::keep_alive<0, 1>());
  py::module_::import("atexit").attr("register")(py::cpp_function(&Epoch::CloseAll));
  pthread_atfork(nullptr, nullptr, &Epoch::StartAnew);
}

}  // namespace lazuli::python
