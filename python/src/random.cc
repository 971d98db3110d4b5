// Random generators.
#include "lazuli/random.h"

#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/stl.h"

namespace lazuli::python {

void BindRandom(py::module_& module) {
  py::class_<Generator>(module, "Generator", "A stream of random numbers.")
      .def(py::init([](py::handle device) { return Generator(ToDevice(device, "Generator")); }),
           py::arg("device") = py::none(), "Seeded with 0.")
      .def(
          "manual_seed",
          [](const py::object& self, const py::int_& seed) {  // negative ones stand for their bits
            int overflow = 0;
            PyLong_AsLongLongAndOverflow(seed.ptr(), &overflow);
            bool fits = overflow == 0;
            if (overflow > 0) {
              PyLong_AsUnsignedLongLong(seed.ptr());
              fits = PyErr_Occurred() == nullptr;
              PyErr_Clear();
            }
            if (!fits) {
              throw Error(ErrorCode::kInvalidArgument,
                          "manual_seed: the seed must be an integer of 64 bits");
            }
            py::cast<Generator&>(self).manual_seed(PyLong_AsUnsignedLongLongMask(seed.ptr()));
            return self;
          },
          py::arg("seed"), "Seeds it, and gives it back.")
      .def("seed", &Generator::seed, "Seeds it with what the system draws, which is the result.")
      .def("initial_seed", &Generator::initial_seed, "What it was seeded with.")
      .def("get_state", &Generator::get_state, "The state, as a tensor of 16 bytes.")
      .def(
          "set_state",
          [](const py::object& self, const Tensor& state) {
            py::cast<Generator&>(self).set_state(state);
            return self;
          },
          py::arg("state"), "Goes on from a state that get_state() gave.")
      .def("clone_state", &Generator::clone_state, "Another stream that goes on from here.")
      .def_static("default_generator", &Generator::default_generator, "The process' own.")
      .def_property_readonly("device", &Generator::device);
  module.def("initial_seed", &initial_seed, "What the random numbers were seeded with.");
  module.def("seed", &seed, "Seeds the random numbers with what the system draws.");
  module.def("get_rng_state", &get_rng_state, "The state of the random numbers: 16 bytes.");
  module.def("set_rng_state", &set_rng_state, py::arg("new_state"),
             "Goes on from a state that get_rng_state() gave.");
}

}  // namespace lazuli::python
