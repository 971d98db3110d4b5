// Random generators, and what is drawn with them; with a generator the rows of random.txt, too.
#include "lazuli/random.h"

#include <optional>

#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/stl.h"

namespace lazuli::python {

template <>
struct Argument<Generator> {
  static constexpr std::string_view kType = "Generator";
  using Stored = const Generator*;
  static bool Load(PyObject* object, Stored& out) {
    if (!py::isinstance<Generator>(object)) return false;
    out = &py::cast<const Generator&>(py::handle(object));
    return true;
  }
  static const Generator& Pass(Stored stored) { return *stored; }
};

namespace {

using RandomSource = const OptionalGenerator&;

// In place: the first parameter is a handle of the tensor that changes.
void DrawUniform(const Tensor& x, const double& low, const double& to, RandomSource generator,
                 SourceLocation loc) {
  Tensor target = x;
  uniform_(target, low, to, generator, loc);
}
void DrawNormal(const Tensor& x, const double& mean, const double& std, RandomSource generator,
                SourceLocation loc) {
  Tensor target = x;
  normal_(target, mean, std, generator, loc);
}
void DrawLogNormal(const Tensor& x, const double& mean, const double& std, RandomSource generator,
                   SourceLocation loc) {
  Tensor target = x;
  log_normal_(target, mean, std, generator, loc);
}
void DrawExponential(const Tensor& x, const double& lambd, RandomSource generator,
                     SourceLocation loc) {
  Tensor target = x;
  exponential_(target, lambd, generator, loc);
}
void DrawCauchy(const Tensor& x, const double& median, const double& sigma, RandomSource generator,
                SourceLocation loc) {
  Tensor target = x;
  cauchy_(target, median, sigma, generator, loc);
}
void DrawGeometric(const Tensor& x, const double& p, RandomSource generator, SourceLocation loc) {
  Tensor target = x;
  geometric_(target, p, generator, loc);
}
void DrawBernoulli(const Tensor& x, const Operand& p, RandomSource generator, SourceLocation loc) {
  Tensor target = x;
  if (p.tensor() != nullptr)
    bernoulli_(target, *p.tensor(), generator, loc);
  else
    bernoulli_(target, p.scalar()->value(), generator, loc);
}
// random_(from, to), random_(to), random_().
void DrawInteger(const Tensor& x, const std::optional<std::int64_t>& low,
                 const std::optional<std::int64_t>& to, RandomSource generator,
                 SourceLocation loc) {
  Tensor target = x;
  if (low && !to)
    random_(target, 0, low, generator, loc);
  else
    random_(target, low.value_or(0), to, generator, loc);
}

Tensor DrawnBernoulli(const Tensor& x, const std::optional<double>& p, RandomSource generator,
                      SourceLocation loc) {
  return p ? bernoulli(x, *p, generator, loc) : bernoulli(x, generator, loc);
}
Tensor DrawnMultinomial(const Tensor& x, const std::int64_t& num_samples, const bool& replacement,
                        RandomSource generator, SourceLocation loc) {
  return multinomial(x, num_samples, replacement, generator, loc);
}
Tensor Wanting(bool requires_grad, Tensor made) {
  if (requires_grad) made.set_requires_grad(true);
  return made;
}
Tensor Drawn(const Dims& dims, const std::optional<DType>& dtype, const Device& device,
             RandomSource generator, const bool& requires_grad, SourceLocation loc) {
  return Wanting(requires_grad,
                 rand(dims, dtype.value_or(default_dtype()), device, generator, loc));
}
Tensor DrawnNormal(const Dims& dims, const std::optional<DType>& dtype, const Device& device,
                   RandomSource generator, const bool& requires_grad, SourceLocation loc) {
  return Wanting(requires_grad,
                 randn(dims, dtype.value_or(default_dtype()), device, generator, loc));
}
Tensor DrawnIntegers(const std::int64_t& low, const std::int64_t& high, const Dims& dims,
                     const DType& dtype, const Device& device, RandomSource generator,
                     SourceLocation loc) {
  return randint(low, high, dims, dtype, device, generator, loc);
}
Tensor DrawnOrder(const std::int64_t& n, const DType& dtype, const Device& device,
                  RandomSource generator, SourceLocation loc) {
  return randperm(n, dtype, device, generator, loc);
}
Tensor DrawnAround(const Operand& mean, const Operand& std, RandomSource generator,
                   SourceLocation loc) {
  if (mean.tensor() != nullptr && std.tensor() != nullptr)
    return normal(*mean.tensor(), *std.tensor(), generator, loc);
  if (mean.tensor() != nullptr)
    return normal(*mean.tensor(), std.scalar()->value(), generator, loc);
  if (std.tensor() != nullptr) return normal(mean.scalar()->value(), *std.tensor(), generator, loc);
  ThrowTypeError("normal: takes a tensor as mean or std, or a size");
}
Tensor DrawnNormals(const double& mean, const double& std, const Dims& dims,
                    const std::optional<DType>& dtype, const Device& device, RandomSource generator,
                    SourceLocation loc) {
  return normal(mean, std, dims, dtype.value_or(default_dtype()), device, generator, loc);
}

}  // namespace

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

  constexpr const char* kMade =
      "(dims, dtype = nullopt, device = Device(), generator = nullopt, requires_grad = false)";
  DefineFunction<&Drawn>(module, "rand", kMade, "Random numbers uniform in [0, 1).");
  DefineFunction<&DrawnNormal>(module, "randn", kMade,
                               "Random numbers from the standard normal distribution.");
  DefineFunction<&DrawnOrder>(module, "randperm",
                              "(n, dtype = kInt64, device = Device(), generator = nullopt)",
                              "The integers below n in a random order.");
  DefineFunction<&DrawnIntegers>(
      module, "_randint",
      "(low, high, dims, dtype = kInt64, device = Device(), generator = nullopt)",
      "Random integers in [low, high), which the dtype must hold.");
  DefineFunction<&DrawnAround>(module, "_normal_around", "(mean, std, generator = nullopt)",
                               "Normal random numbers, each with its mean and deviation.");
  DefineFunction<&DrawnNormals>(
      module, "_normal",
      "(mean, std, dims, dtype = nullopt, device = Device(), generator = nullopt)",
      "Normal random numbers of one mean and deviation.");
  constexpr const char* kBernoulli =
      "1 with probability p, or with the probability that an element of x is, else 0.";
  DefineFunction<&DrawnBernoulli>(module, "bernoulli", "(x, p = nullopt, generator = nullopt)",
                                  kBernoulli);
  DefineMethod<&DrawnBernoulli>("bernoulli", "(x, p = nullopt, generator = nullopt)", kBernoulli);
  constexpr const char* kMultinomial =
      "Positions along the last dim of x, drawn with the weights that stand there.";
  constexpr const char* kWeights = "(x, num_samples, replacement = false, generator = nullopt)";
  DefineFunction<&DrawnMultinomial>(module, "multinomial", kWeights, kMultinomial);
  DefineMethod<&DrawnMultinomial>("multinomial", kWeights, kMultinomial);

  DefineMethod<&DrawUniform>("uniform_", "(x, low = 0, to = 1, generator = nullopt)",
                             "Uniform random numbers in [low, to), in place.");
  DefineMethod<&DrawNormal>("normal_", "(x, mean = 0, std = 1, generator = nullopt)",
                            "Normal random numbers, in place.");
  DefineMethod<&DrawLogNormal>("log_normal_", "(x, mean = 1, std = 2, generator = nullopt)",
                               "exp() of normal random numbers, in place.");
  DefineMethod<&DrawExponential>("exponential_", "(x, lambd = 1, generator = nullopt)",
                                 "Exponential random numbers, in place.");
  DefineMethod<&DrawCauchy>("cauchy_", "(x, median = 0, sigma = 1, generator = nullopt)",
                            "Random numbers of Cauchy's distribution, in place.");
  DefineMethod<&DrawGeometric>("geometric_", "(x, p, generator = nullopt)",
                               "How many trials it takes until one with probability p succeeds, in "
                               "place.");
  DefineMethod<&DrawBernoulli>("_bernoulli_", "(x, p, generator = nullopt)",
                               "1 with probability p, a number or a tensor, else 0; in place.");
  DefineMethod<&DrawInteger>(
      "random_", "(x, low = nullopt, to = nullopt, generator = nullopt)",
      "Random integers in [low, to), or below the only one that is given, or "
      "all that the dtype holds; in place.");
}

}  // namespace lazuli::python
