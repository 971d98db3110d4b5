#include "python/src/bind.h"

#include <algorithm>

#include "python/src/bindings.h"

namespace lazuli::python {
namespace {

struct Definition {
  py::handle owner;
  const Signature* signature;
  Kind kind;
};
std::vector<Definition>& All() {
  static auto* all = new std::vector<Definition>;
  return *all;
}

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string_view::npos ? "" : text.substr(first, last - first + 1);
}

[[noreturn]] void ThrowArity(const Signature& signature, const std::string& what) {
  ThrowTypeError(signature.name + ": " + what + "; it takes " + signature.Text(/*types=*/false));
}

// ", did you mean 'bias'?" of the parameter whose name is nearest to one that nobody has; "" if none is near.
std::string DidYouMean(std::string_view name, const std::vector<Parameter>& parameters) {
  py::list names;
  for (const Parameter& p : parameters) names.append(p.name);
  const py::list near = py::module_::import("difflib").attr("get_close_matches")(
      py::str(name.data(), name.size()), names, 1);
  return near.empty() ? "" : ", did you mean '" + std::string(py::str(near[0])) + "'?";
}

// PyTorch's and NumPy's names of what rows call otherwise: (theirs, ours). A name of the row's own
// comes first.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"T_max", "steps"},
    {"a", "low"},
    {"a", "slope"},
    {"axis", "dim"},
    {"axis", "dims"},
    {"b", "high"},
    {"clip_value", "limit"},
    {"dim", "dims"},
    {"div_factor", "div"},
    {"elementwise_affine", "affine"},
    {"embedding_dim", "dim"},
    {"end_factor", "end"},
    {"eta_min", "min"},
    {"exponent", "y"},
    {"fill_value", "value"},
    {"final_div_factor", "final_div"},
    {"indices_or_sections", "indices"},
    {"indices_or_sections", "sections"},
    {"input", "log_probs"},
    {"input", "logits"},
    {"input", "on_true"},
    {"input", "x"},
    {"keepdims", "keepdim"},
    {"kernel_size", "kernel"},
    {"mat2", "y"},
    {"max", "high"},
    {"max_val", "high"},
    {"min", "low"},
    {"min_val", "low"},
    {"mode", "fan"},
    {"norm_type", "order"},
    {"num_channels", "channels"},
    {"num_classes", "classes"},
    {"num_embeddings", "rows"},
    {"num_features", "channels"},
    {"num_groups", "groups"},
    {"num_parameters", "channels"},
    {"operands", "xs"},
    {"other", "on_false"},
    {"other", "y"},
    {"output_size", "size"},
    {"param", "slope"},
    {"params", "parameters"},
    {"pct_start", "rise"},
    {"repeats", "counts"},
    {"shape", "dims"},
    {"size", "dims"},
    {"split_size", "size"},
    {"split_size_or_sections", "split_size"},
    {"src", "source"},
    {"start_factor", "start"},
    {"std", "deviation"},
    {"step_size", "size"},
    {"target", "y"},
    {"tensor", "t"},
    {"tensor", "x"},
    {"tensors", "xs"},
    {"total_iters", "steps"},
    {"total_steps", "steps"},
    {"unbiased", "correction"},
    {"val", "value"},
    {"vec", "y"},
    {"vec2", "y"},
    {"x1", "x"},
    {"x2", "y"},
};

// The parameter that a keyword means; all of them if none.
std::size_t ParameterOf(const Signature& signature, PyObject* keyword) {
  const std::vector<Parameter>& parameters = signature.parameters;
  const auto find = [&](auto&& is_it) {
    return static_cast<std::size_t>(std::find_if(parameters.begin(), parameters.end(), is_it) -
                                    parameters.begin());
  };
  std::size_t found = find([&](const Parameter& p) { return p.key == keyword; });
  if (found < parameters.size()) return found;
  const std::string_view name = TextOf(keyword);  // not interned, another name, or unknown
  found = find([&](const Parameter& p) { return p.name == name; });
  for (const auto& [theirs, ours] : kOtherNames) {
    if (found < parameters.size()) break;
    if (name == theirs) found = find([&, own = ours](const Parameter& p) { return p.name == own; });
  }
  return found;
}

// Whether a keyword says how PyTorch lays out what it makes, which the compiler decides here.
bool IsOfMemory(const Signature& signature, PyObject* keyword) {
  const std::string_view name = TextOf(keyword);
  if (name != "layout" && name != "pin_memory" && name != "memory_format") return false;
  if (name == "memory_format" && (signature.name == "clone" || signature.name == "contiguous"))
    return true;
  const std::vector<Parameter>& all = signature.parameters;
  return std::any_of(all.begin(), all.end(), [](const Parameter& p) { return p.name == "device"; });
}

bool IsDim(PyObject* object) {
  return !PyBool_Check(object) && !PyFloat_Check(object) && AsTensor(object) == nullptr &&
         PyIndex_Check(object);
}

// Whether arguments from here on are gathered: two integers or more, or tensors.
bool Gathers(const Signature& signature, PyObject* const* arguments, std::size_t count) {
  if (signature.gathers_tensors) return AsTensor(arguments[0]) != nullptr;
  return count > 1 && IsDim(arguments[0]) && IsDim(arguments[1]);
}

// The names and defaults in "(x, dims = {}, keepdim = false)".
std::vector<ParameterText> ParseParameters(std::string_view text) {
  std::vector<ParameterText> parameters;
  text = text.substr(1, text.size() - 2);  // the brackets
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, comma);
    const std::size_t equals = one.find('=');
    parameters.emplace_back(Trimmed(one.substr(0, equals)), equals == std::string_view::npos
                                                                ? ""
                                                                : Trimmed(one.substr(equals + 1)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parameters;
}

}  // namespace

void Restart(Signature& signature, std::string_view name, std::string_view doc) {
  signature.name = name;
  signature.doc = doc;
  signature.parameters.clear();
}

void AddAll(Signature& signature, std::string_view text, std::span<const ParameterAdder> adders) {
  const std::vector<ParameterText> rows = ParseParameters(text);
  if (rows.size() != adders.size())
    throw std::logic_error(signature.name + " has another number of parameters than " +
                           std::string(text));
  for (std::size_t i = 0; i < rows.size(); ++i) adders[i](signature, rows[i]);
  FindGathered(signature);
}

void FindGathered(Signature& signature) {
  // Tensors in a row stand for a list that comes last, after something else.
  if (signature.parameters.size() > 1 &&
      signature.parameters.back().type == Argument<std::vector<Tensor>>::kType) {
    signature.gathers = static_cast<int>(signature.parameters.size()) - 1;
    signature.gathers_tensors = true;
  }
  // Integers in a row are dims only if no other parameter takes them, and what follows is optional.
  const auto takes_dims = [](const Parameter& p) {
    return p.type == Argument<Dims>::kType || p.type == Argument<DimsOrNone>::kType;
  };
  if (!signature.gathers_tensors &&
      std::count_if(signature.parameters.begin(), signature.parameters.end(), takes_dims) > 1)
    signature.gathers = -1;
  for (auto p = static_cast<std::size_t>(signature.gathers + 1);
       signature.gathers >= 0 && p < signature.parameters.size(); ++p) {
    if (signature.parameters[p].fallback == nullptr) signature.gathers = -1;
  }
}

void AddParameter(Signature& signature, std::string_view name, std::string_view type,
                  py::object fallback) {
  PyObject* key = PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
  PyUnicode_InternInPlace(&key);
  signature.parameters.push_back({std::string(name), type, key, fallback.release().ptr()});
}

py::list OwnNames(std::string_view name) {
  py::list names;
  for (const auto& [theirs, ours] : kOtherNames) {
    if (name == theirs) names.append(py::str(ours.data(), ours.size()));
  }
  return names;
}

std::string Signature::Text(bool types, bool gathered, bool out) const {
  std::string text = "(";
  for (const Parameter& p : parameters) {
    if (text.size() > 1) text += ", ";
    if (gathered && &p == &parameters[static_cast<std::size_t>(gathers)]) {
      text += "*" + p.name + (!types ? "" : gathers_tensors ? ": Tensor" : ": int");
      continue;
    }
    text += p.name;
    const bool none =
        p.fallback == Py_None || (p.type == Argument<Dims>::kType && p.fallback != nullptr);
    if (types) {
      text += ": " + std::string(p.type);
      if (none && p.type.find("None") == std::string_view::npos) text += " | None";
    }
    if (p.fallback == nullptr) continue;
    text += types ? " = " : "=";
    // Without types as a string, which is taken, too, and which inspect.signature() can read.
    const std::string quote = types ? "" : "'";
    text += py::isinstance<DType>(p.fallback)
                ? quote + std::string(PythonName(py::cast<DType>(py::handle(p.fallback)))) + quote
                : std::string(py::str(py::repr(p.fallback)));
  }
  if (out) {
    text += gathered ? ", " : ", *, ";
    text += types ? "out: " + result + " | None = None" : "out=None";
  }
  return text + ")";
}

void Signature::Sort(PyObject* first, PyObject* const* arguments, std::size_t positional,
                     PyObject* names, std::span<PyObject*> slots, py::object& gathered) const {
  std::size_t slot = 0;
  if (first != nullptr) slots[slot++] = first;
  for (std::size_t i = 0; i < positional; ++i, ++slot) {
    if (static_cast<int>(slot) == gathers && Gathers(*this, arguments + i, positional - i)) {
      std::size_t end = i;
      while (end < positional && (gathers_tensors || IsDim(arguments[end]))) ++end;
      py::tuple row(end - i);
      for (std::size_t d = i; d < end; ++d)
        row[d - i] = py::reinterpret_borrow<py::object>(arguments[d]);
      i = end - 1;
      slots[slot] = row.ptr();
      gathered = std::move(row);
      continue;
    }
    if (slot >= slots.size()) ThrowArity(*this, "too many arguments");
    slots[slot] = arguments[i];
  }
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    const std::size_t p = ParameterOf(*this, name);
    if (p == parameters.size() && IsOfMemory(*this, name)) continue;
    if (p == parameters.size())
      ThrowArity(*this, "there is no argument '" + std::string(TextOf(name)) + "'" +
                            DidYouMean(TextOf(name), parameters));
    if (slots[p] != nullptr) ThrowArity(*this, "'" + parameters[p].name + "' is given twice");
    slots[p] = arguments[positional + static_cast<std::size_t>(i)];
  }
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (slots[p] != nullptr) continue;
    slots[p] = parameters[p].fallback;
    if (slots[p] == nullptr) ThrowArity(*this, "'" + parameters[p].name + "' is missing");
  }
}

namespace {

// The arguments of an __init__, sorted.
void SortOf(const Signature& signature, const py::args& args, const py::kwargs& kwargs,
            std::span<PyObject*> slots, py::object& gathered) {
  std::vector<PyObject*> arguments;
  for (const py::handle& a : args) arguments.push_back(a.ptr());
  py::list names;
  for (const auto& [name, value] : kwargs) {
    names.append(name);
    arguments.push_back(value.ptr());
  }
  signature.Sort(nullptr, arguments.data(), args.size(), py::tuple(names).ptr(), slots, gathered);
}

}  // namespace

void DefineConstructor(py::handle type, Signature& signature, std::size_t slots, Maker make,
                       std::string_view doc) {
  const auto init = [&signature, slots, make](py::detail::value_and_holder& made,
                                              const py::args& args, const py::kwargs& kwargs) {
    std::vector<PyObject*> sorted(slots);
    py::object gathered;
    SortOf(signature, args, kwargs, sorted, gathered);
    made.value_ptr() = make(signature, sorted);
  };
  py::setattr(type, "__init__",
              py::cpp_function(init, py::name("__init__"), py::is_method(type),
                               py::detail::is_new_style_constructor()));
  signature.name = py::str(type.attr("__name__"));
  type.attr("__doc__") =
      py::str(signature.name + signature.Text(/*types=*/false) + "\n\n" + std::string(doc));
  type.attr("__init_signature__") = py::str(signature.Text(/*types=*/true));
}

thread_local bool NoneFits::active_ = false;

py::object NumberOf(const Signature& signature, PyObject* object) {
  if (signature.overloaded && !NoneFits::active()) return {};
  const Tensor* const tensor = AsTensor(object);
  if (tensor == nullptr || !tensor->defined() || tensor->dim() != 0 || tensor->requires_grad())
    return {};
  return py::handle(object).attr("item")();
}

void ThrowWrongType(const Signature& signature, std::size_t parameter, PyObject* got) {
  const std::string type = PyType_Check(got) != 0 ? "type" : Py_TYPE(got)->tp_name;
  std::string message = signature.name + ": " + signature.parameters[parameter].name + " must be " +
                        std::string(signature.parameters[parameter].type) + ", not " + type;
  const bool wants_tensor = signature.parameters[parameter].type.starts_with("Tensor");
  if (wants_tensor && (type == "numpy.ndarray" || type == "list" || type == "tuple"))
    message += "; convert it by lazuli.tensor()";
  ThrowTypeError(message);
}

namespace {

// What is defined again is no longer what it was.
void Forget(py::handle owner, std::string_view name) {
  std::erase_if(
      All(), [&](const Definition& d) { return d.owner.is(owner) && d.signature->name == name; });
}

// What inspect.signature() says of several ways to call a function: the parameters that all begin with, then anything.
std::string CommonText(Kind kind, const std::vector<const Signature*>& signatures) {
  std::size_t common = signatures[0]->parameters.size();
  for (const Signature* s : signatures) {
    const auto [end, _] =
        std::mismatch(s->parameters.begin(), s->parameters.end(), signatures[0]->parameters.begin(),
                      signatures[0]->parameters.end(), [](const Parameter& a, const Parameter& b) {
                        return a.name == b.name && a.fallback == nullptr && b.fallback == nullptr;
                      });
    common = std::min(common, static_cast<std::size_t>(end - s->parameters.begin()));
  }
  std::string text = "(";
  for (std::size_t p = 0; p < common; ++p) {
    const std::string& name = signatures[0]->parameters[p].name;
    text += kind == Kind::kMethod && p == 0 ? "$self, " : name + ", ";
  }
  return text + "*args, **kwargs)";
}

// Python keeps the definition and its texts as long as the function, which is for ever.
void Define(py::handle owner, Kind kind, const Signature& signature, std::string text,
            _PyCFunctionFastWithKeywords function) {
  auto* doc = new std::string(std::move(text));
  auto* definition = new PyMethodDef{
      signature.name.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)),
      METH_FASTCALL | METH_KEYWORDS, doc->c_str()};
  PyObject* made = kind == Kind::kMethod
                       ? PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(owner.ptr()), definition)
                       : PyCFunction_NewEx(definition, nullptr, owner.attr("__name__").ptr());
  if (made == nullptr) throw py::error_already_set();
  owner.attr(signature.name.c_str()) = py::reinterpret_steal<py::object>(made);
}

}  // namespace

void Publish(py::handle owner, Kind kind, const Signature& signature,
             _PyCFunctionFastWithKeywords function) {
  Forget(owner, signature.name);
  All().push_back({owner, &signature, kind});
  std::string text = signature.Text(/*types=*/false);
  if (kind == Kind::kMethod && text.starts_with("(" + signature.parameters[0].name))
    text = "($self" + text.substr(1 + signature.parameters[0].name.size());
  Define(owner, kind, signature, signature.name + text + "\n--\n\n" + signature.doc, function);
}

void PublishOverloads(py::handle owner, Kind kind, const std::vector<const Signature*>& signatures,
                      _PyCFunctionFastWithKeywords function) {
  std::string doc = signatures[0]->name + CommonText(kind, signatures) + "\n--\n\n";
  const std::size_t head = doc.size();
  Forget(owner, signatures[0]->name);
  for (const Signature* s : signatures) {
    All().push_back({owner, s, kind});
    doc += (doc.size() == head ? "" : "\n\n") + s->name + s->Text(/*types=*/false) + " -> " +
           s->result + "\n" + s->doc;
  }
  Define(owner, kind, *signatures[0], std::move(doc), function);
}

py::list Definitions() {
  py::list list;
  for (const Definition& d : All()) {
    const bool out = d.kind == Kind::kFunction && d.signature->takes_out;
    list.append(py::make_tuple(d.owner.attr("__name__"), d.kind == Kind::kMethod, d.signature->name,
                               d.signature->Text(/*types=*/true, /*gathered=*/false, out),
                               d.signature->gathers < 0 ? "" : d.signature->Text(true, true, out),
                               d.signature->result, d.signature->doc));
  }
  return list;
}

}  // namespace lazuli::python
