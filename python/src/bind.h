// Functions of the library as functions and methods of Python; those of lazy/ops/functions: rows.h.
//
//   DefineMethod<&Tensor::fill_>("fill_", "(x, value)", "Every element becomes the number.");
//
// The types of the parameters come from the C++ function, names and defaults from the text.
// An options struct among the parameters stands for its fields. What Python
// calls sorts its arguments, loads them and opens the caller's line; a mistake is a TypeError that
// names function, parameter and type.
#pragma once

#include <array>
#include <cstddef>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "python/src/aggregate.h"
#include "python/src/arguments.h"
#include "python/src/caller.h"
#include "python/src/errors.h"

namespace lazuli::python {

struct Parameter {
  std::string name;
  std::string_view type;
  PyObject* key = nullptr;       // the name, interned
  PyObject* fallback = nullptr;  // the default; null: required
};

// What Python sees of a function. Signatures live as long as the process.
struct Signature {
  std::string name, doc, result;
  std::vector<Parameter> parameters = {};
  int gathers = -1;  // the parameter that several arguments in a row stand for: reshape(2, 3)
  bool gathers_tensors = false;  // einsum("i,i", x, y)
  bool takes_out = false;        // as a function it takes out=, too
  bool overloaded = false;       // there are others of its name, which may take what it does not

  // "(x, dims=(), keepdim=False)"; with types, as in a stub; gathered, "(x, *dims, keepdim=False)";
  // with that of out=.
  std::string Text(bool types, bool gathered = false, bool out = false) const;
  // Sorts the arguments of a call into one slot a parameter. `first` is the object of a method or
  // null; `names` those of the keyword arguments, which come last. `gathered` keeps what it makes.
  void Sort(PyObject* first, PyObject* const* arguments, std::size_t positional, PyObject* names,
            std::span<PyObject*> slots, py::object& gathered) const;
};

using ParameterText = std::pair<std::string, std::string>;  // name, and default or ""
// A signature of this name, without parameters yet.
void Restart(Signature& signature, std::string_view name, std::string_view doc);
// Adds a parameter; a default makes it optional.
void AddParameter(Signature& signature, std::string_view name, std::string_view type,
                  py::object fallback);
// The number of a tensor of rank 0 that wants no gradient, which is read, as PyTorch takes one where
// it takes a number; null where a tensor may not stand for its number: another signature of the
// name may take the tensor itself.
py::object NumberOf(const Signature& signature, PyObject* object);
// While one exists, no overload takes the arguments of the call as they are.
class NoneFits {
 public:
  NoneFits() : outer_(std::exchange(active_, true)) {}
  ~NoneFits() { active_ = outer_; }
  NoneFits(const NoneFits&) = delete;
  NoneFits& operator=(const NoneFits&) = delete;
  static bool active() { return active_; }

 private:
  static thread_local bool active_;
  bool outer_;
};
[[noreturn]] void ThrowWrongType(const Signature& signature, std::size_t parameter, PyObject* got);

enum class Kind { kFunction, kMethod };
// All that was defined, for stubs: (class or submodule, whether it is a method, name, parameters,
// those where integers in a row are gathered or "", result, doc).
py::list Definitions();
// Makes the C function an attribute of a module or type.
void Publish(py::handle owner, Kind kind, const Signature& signature,
             _PyCFunctionFastWithKeywords function);

// The same for what is called in several ways.
void PublishOverloads(py::handle owner, Kind kind, const std::vector<const Signature*>& signatures,
                      _PyCFunctionFastWithKeywords function);

template <class F>
struct FunctionTraits;
template <class R, class... P>
struct FunctionTraits<R (*)(P...)> {
  using Result = R;
  using Parameters = std::tuple<std::remove_cvref_t<P>...>;
  static constexpr bool kTakesLine =
      (std::is_same_v<std::remove_cvref_t<P>, SourceLocation> || ...);
  static constexpr std::size_t kArity = sizeof...(P) - (kTakesLine ? 1 : 0);
};

// A method of Tensor that changes it and gives it back: its first parameter is the tensor.
template <class... P>
struct FunctionTraits<Tensor& (Tensor::*)(P...)> {
  using Result = void;
  using Parameters = std::tuple<Tensor, std::remove_cvref_t<P>...>;
  static constexpr bool kTakesLine =
      (std::is_same_v<std::remove_cvref_t<P>, SourceLocation> || ...);
  static constexpr std::size_t kArity = 1 + sizeof...(P) - (kTakesLine ? 1 : 0);
};

// A struct that a function returns, as a dict.
template <Aggregate T>
py::dict FieldsDict(const T& value) {
  py::dict dict;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((dict[py::str(std::string(kFieldNames<T>[I]))] = std::get<I>(Fields(value))), ...);
  }(std::make_index_sequence<kFieldCount<T>>());
  return dict;
}

// How many parameters of Python a parameter of C++ is.
template <class T>
constexpr std::size_t SlotCount() {
  if constexpr (Aggregate<T>)
    return kFieldCount<T>;
  else
    return 1;
}

template <class T>
constexpr bool kIsNumber =
    std::is_same_v<T, Scalar> || std::is_same_v<T, double> ||
    std::is_same_v<T, std::optional<Scalar>> || std::is_same_v<T, std::optional<double>>;

// A C++ argument while the call lasts.
template <class T, bool kFields = Aggregate<T>>
struct Loaded {
  typename Argument<T>::Stored stored{};
  void Load(const Signature& signature, std::size_t first, std::span<PyObject*> slots) {
    // None is an undefined tensor, which only an optional one may be.
    const bool absent = std::is_same_v<T, Tensor> && slots[first] == Py_None &&
                        signature.parameters[first].fallback != Py_None;
    // dim=None is all dims where that is the default.
    const bool all = std::is_same_v<T, Dims> && slots[first] == Py_None &&
                     signature.parameters[first].fallback != nullptr;
    if (all) slots[first] = signature.parameters[first].fallback;
    if (absent || !(Argument<T>::Load(slots[first], stored) || Read(signature, slots[first])))
      ThrowWrongType(signature, first, slots[first]);
  }
  bool Read(const Signature& signature, PyObject* object) {
    if (!kIsNumber<T>) return false;
    const py::object number = NumberOf(signature, object);
    return number && Argument<T>::Load(number.ptr(), stored);
  }
  decltype(auto) Pass() { return Argument<T>::Pass(stored); }
};
template <class T>
struct Loaded<T, true> {
  T options;
  void Load(const Signature& signature, std::size_t first, std::span<PyObject*> slots) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (LoadField<I>(signature, first + I, slots), ...);
    }(std::make_index_sequence<kFieldCount<T>>());
  }
  const T& Pass() const { return options; }

 private:
  template <std::size_t I>
  void LoadField(const Signature& signature, std::size_t slot, std::span<PyObject*> slots) {
    Loaded<FieldType<T, I>> field;
    field.Load(signature, slot, slots);
    std::get<I>(Fields(options)) = field.Pass();
  }
};

// Adds a parameter of type T with this name and default: its fields if it is an options struct.
template <class T>
void AddParameterOf(Signature& signature, const ParameterText& text) {
  const auto& [name, fallback] = text;
  if constexpr (Aggregate<T>) {
    T options;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (AddParameter(signature, kFieldNames<T>[I], Argument<FieldType<T, I>>::kType,
                    Argument<FieldType<T, I>>::ToPython(std::get<I>(Fields(options)))),
       ...);
    }(std::make_index_sequence<kFieldCount<T>>());
  } else {
    py::object object;
    if (!fallback.empty()) {
      if constexpr (requires { Argument<T>::Default(fallback); })
        object = Argument<T>::Default(fallback);
      else
        throw std::logic_error(signature.name + ": no default for " + name);
    }
    if (std::is_same_v<T, Dims>) signature.gathers = static_cast<int>(signature.parameters.size());
    AddParameter(signature, name, Argument<T>::kType, std::move(object));
  }
}

// The parameters P... with the names and defaults in "(x, dims = {}, keepdim = false)".
using ParameterAdder = void (*)(Signature&, const ParameterText&);
void AddAll(Signature& signature, std::string_view text, std::span<const ParameterAdder> adders);
// Finds the parameter that several arguments in a row stand for, once all are added.
void FindGathered(Signature& signature);
template <class... P>
void AddParameters(Signature& signature, std::string_view text) {
  static constexpr std::array<ParameterAdder, sizeof...(P)> kAdders{&AddParameterOf<P>...};
  AddAll(signature, text, kAdders);
}

// Calls f with the arguments of types P... from their slots, within the caller's line.
template <class... P, class F>
decltype(auto) CallLoaded(const Signature& signature, std::span<PyObject*> slots, F&& f) {
  std::tuple<Loaded<P>...> loaded;
  std::size_t slot = 0;
  std::apply(
      [&](auto&... one) { ((one.Load(signature, slot, slots), slot += SlotCount<P>()), ...); },
      loaded);
  const Caller caller;
  return std::apply([&](auto&... one) -> decltype(auto) { return f(one.Pass()...); }, loaded);
}

// Calls of functions of type F: one piece of code for all of a type.
template <class F>
class Calls {
  using Traits = FunctionTraits<F>;
  using Result = typename Traits::Result;
  template <std::size_t I>
  using Type = std::tuple_element_t<I, typename Traits::Parameters>;
  using Indices = std::make_index_sequence<Traits::kArity>;

 public:
  static PyObject* Run(F function, const Signature& signature, PyObject* first,
                       PyObject* const* arguments, std::size_t n, PyObject* names) noexcept {
    return Guarded([&] {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        std::array<PyObject*, (SlotCount<Type<I>>() + ... + 0)> slots{};
        py::object gathered;
        signature.Sort(first, arguments, n, names, slots, gathered);
        return CallLoaded<Type<I>...>(signature, slots, [&](const auto&... values) {
          if constexpr (std::is_void_v<Result>) {  // in place: returns the object
            Invoke(function, values...);
            return Py_NewRef(kInPlace ? slots[0] : Py_None);
          } else {
            return ToPython(Invoke(function, values...)).release().ptr();
          }
        });
      }(Indices());
    });
  }

  static void Describe(Signature& signature, std::string_view parameters) {
    signature.result = ResultName();
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      AddParameters<Type<I>...>(signature, parameters);
    }(Indices());
  }

 private:
  // Of functions without a result, those of a tensor return it.
  static constexpr bool kInPlace = [] {
    if constexpr (Traits::kArity == 0)
      return false;
    else
      return std::is_same_v<Type<0>, Tensor>;
  }();
  static constexpr std::string_view ResultName() {
    if (std::is_void_v<Result> && !kInPlace) return "None";
    if (std::is_same_v<Result, double>) return "float";
    if (std::is_same_v<Result, std::pair<Tensor, Tensor>>) return "tuple[Tensor, Tensor]";
    if (std::is_same_v<Result, std::vector<Tensor>>) return "list[Tensor]";
    return "Tensor";
  }

  template <class... V>
  static decltype(auto) Invoke(F function, const V&... values) {
    if constexpr (std::is_member_pointer_v<F>)
      InvokeOn(function, values...);
    else if constexpr (Traits::kTakesLine)
      return function(values..., SourceLocation::current());
    else
      return function(values...);
  }
  // `self` is a handle of the same tensor.
  template <class... V>
  static void InvokeOn(F function, Tensor self, const V&... values) {
    if constexpr (Traits::kTakesLine)
      (self.*function)(values..., SourceLocation::current());
    else
      (self.*function)(values...);
  }
};

// The C functions that Python calls for kFunction.
template <auto kFunction>
class Bound {
  using All = Calls<decltype(kFunction)>;

 public:
  static Signature& Describe(std::string_view name, std::string_view parameters,
                             std::string_view doc) {
    Restart(signature_, name, doc);
    All::Describe(signature_, parameters);
    return signature_;
  }
  static PyObject* Function(PyObject*, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
    return All::Run(kFunction, signature_, nullptr, arguments, static_cast<std::size_t>(n), names);
  }
  static PyObject* Method(PyObject* self, PyObject* const* arguments, Py_ssize_t n,
                          PyObject* names) {
    return All::Run(kFunction, signature_, self, arguments, static_cast<std::size_t>(n), names);
  }

 private:
  static inline Signature signature_;
};

// A method of Tensor.
template <auto kFunction>
void DefineMethod(std::string_view name, std::string_view parameters, std::string_view doc) {
  const Signature& signature = Bound<kFunction>::Describe(name, parameters, doc);
  Publish(reinterpret_cast<PyObject*>(tensor_type), Kind::kMethod, signature,
          &Bound<kFunction>::Method);
}

// A function of `module`.
template <auto kFunction>
void DefineFunction(py::module_& module, std::string_view name, std::string_view parameters,
                    std::string_view doc) {
  const Signature& signature = Bound<kFunction>::Describe(name, parameters, doc);
  Publish(module, Kind::kFunction, signature, &Bound<kFunction>::Function);
}
// Makes a new object for an __init__ of the sorted arguments.
using Maker = void* (*)(const Signature& signature, std::span<PyObject*> slots);
// An __init__ of the type whose arguments take so many slots, its __doc__, and its signature for stubs.
void DefineConstructor(py::handle type, Signature& signature, std::size_t slots, Maker make,
                       std::string_view doc);

// The same, making a T of (P...), and of the caller's line if T takes it.
template <class T, class... P>
void DefineConstructor(py::handle type, std::string_view parameters, std::string_view doc) {
  static Signature signature;
  signature.name = "__init__";
  signature.result = "None";
  AddParameters<P...>(signature, parameters);
  const Maker make = [](const Signature& of, std::span<PyObject*> slots) -> void* {
    return CallLoaded<P...>(of, slots, [](const auto&... values) {
      if constexpr (std::is_constructible_v<T, decltype(values)..., SourceLocation>)
        return new T(values..., SourceLocation::current());
      else
        return new T(values...);
    });
  };
  DefineConstructor(type, signature, (SlotCount<P>() + ... + 0), make, doc);
}

}  // namespace lazuli::python
