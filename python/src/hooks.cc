#include "python/src/hooks.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cpp_api/src/facade.h"
#include "lazuli/nn.h"
#include "lazy/tensor/tape.h"
#include "python/src/arguments.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/graveyard.h"
#include "python/src/tensor_object.h"

namespace lazuli::python {
namespace {

// A hook, as the collector knows it: a list with the function, which it can visit and clear.
struct Hook {
  explicit Hook(const py::function& function) {
    py::list one;
    one.append(function);
    list = one.release().ptr();
  }
  ~Hook() {
    {
      const std::lock_guard lock(mu);
      all.erase(id);
    }
    Graveyard::Get().Bury(list);  // backward may have ended anywhere
  }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  PyObject* list;
  std::uint64_t id = 0;  // that of the lazy::GradHook

  static std::mutex& mu;
  static std::unordered_map<std::uint64_t, Hook*>& all;
};
std::mutex& Hook::mu = *new std::mutex;  // NOLINT: outlives every thread that may drop a hook
std::unordered_map<std::uint64_t, Hook*>& Hook::all =
    *new std::unordered_map<std::uint64_t, Hook*>;  // NOLINT: as long as the mutex

Tensor CallHook(const Hook& hook, const Tensor& gradient) {
  const AcquiredGil acquire;
  if (PyList_GET_SIZE(hook.list) == 0) return {};  // the collector has freed what it was part of
  const auto function = py::reinterpret_borrow<py::object>(PyList_GET_ITEM(hook.list, 0));
  const py::object given = function(ToPython(gradient));
  if (given.is_none()) return {};
  if (const Tensor* tensor = AsTensor(given.ptr())) return *tensor;
  ThrowTypeError("register_hook: the hook must give a Tensor or None, not " +
                 std::string(Py_TYPE(given.ptr())->tp_name));
}

std::unordered_map<PyTypeObject*, std::vector<TensorMember>>& HeldBy() {
  static auto* held =
      new std::unordered_map<PyTypeObject*, std::vector<TensorMember>>;  // as long as the types
  return *held;
}

// What Python's objects lead to in C++, and what else holds it.
//
// Histories are held by tensors and by other histories, states of modules by modules and by other
// modules: of these it is known who leads to them. Tensors are held by anything; those with more
// references than are found here, and what they lead to, stay out of it.
class References {
 public:
  void AddObject(PyObject* object) {
    const auto& types = py::detail::all_type_info(Py_TYPE(object));
    if (types.size() != 1) return;
    void* value =
        reinterpret_cast<py::detail::instance*>(object)->get_value_and_holder().value_ptr();
    std::vector<std::size_t> roots;
    if (Is(object, *tensor_type)) {
      roots.push_back(Reach(*static_cast<const Tensor*>(value), /*references=*/1));
    } else if (py::isinstance<nn::Module>(object)) {
      const auto more = HeldBy().find(types[0]->type);
      if (more != HeldBy().end()) {
        for (const TensorMember member : more->second) {
          const Tensor& tensor = member(value);
          if (tensor.defined()) roots.push_back(Reach(tensor, 1));
        }
      }
      AddModule(*static_cast<const nn::Module*>(value), roots);
    } else {
      return;
    }
    owners_.emplace_back(object, std::move(roots));
  }

  // For each Python object the hooks that only it and its like lead to.
  std::unordered_map<PyObject*, std::vector<PyObject*>> Owned() {
    while (!todo_.empty()) {
      const auto [tensor, op] = Pop(todo_);
      if (tensor != nullptr)
        Follow(*tensor);
      else
        Follow(*op);
    }
    SpreadOutside();
    std::unordered_map<PyObject*, std::vector<PyObject*>> owned;
    for (const auto& [object, roots] : owners_) {
      std::vector<PyObject*> hooks = HooksFrom(roots);
      if (!hooks.empty()) owned.emplace(object, std::move(hooks));
    }
    return owned;
  }

 private:
  struct Node {
    lazy::TensorImpl* tensor = nullptr;  // or an op of a history
    std::uint32_t references = 0;        // to the tensor that were found
    bool outside = false;
    std::vector<std::size_t> leads_to = {};
    std::vector<PyObject*> hooks = {};
  };

  // The state of the module holds the tensors whose names have no dot; those of the modules in it
  // hold the others, each of which has been or will be added itself.
  void AddModule(const nn::Module& module, std::vector<std::size_t>& roots) {
    for (const auto& list : {module.named_parameters(), module.named_buffers()}) {
      for (const auto& [name, tensor] : list)
        roots.push_back(Reach(tensor, name.find('.') == std::string::npos ? 1 : 0));
    }
  }

  std::size_t Reach(const Tensor& tensor, std::uint32_t references) {
    return Reach(TensorAccess::Impl(tensor), references);
  }
  std::size_t Reach(lazy::TensorImpl* tensor, std::uint32_t references) {
    const auto [found, added] = index_.emplace(tensor, nodes_.size());
    if (added) {
      nodes_.push_back({.tensor = tensor});
      todo_.emplace_back(tensor, nullptr);
    }
    nodes_[found->second].references += references;
    return found->second;
  }
  std::size_t Reach(const lazy::GradNode* op) {
    const auto [found, added] = index_.emplace(op, nodes_.size());
    if (added) {
      nodes_.emplace_back();
      todo_.emplace_back(nullptr, op);
    }
    return found->second;
  }

  void Follow(const lazy::TensorImpl& tensor) {
    const lazy::AutogradMeta* meta = tensor.autograd();
    if (meta == nullptr) return;
    AddHooks(&tensor, meta->hooks);
    if (meta->grad_fn) Link(&tensor, Reach(meta->grad_fn.get()));
    if (meta->grad.defined()) Link(&tensor, Reach(meta->grad.impl(), 1));
  }
  void Follow(const lazy::GradNode& op) {
    AddHooks(&op, op.hooks);
    for (const lazy::Edge& edge : op.edges()) {
      if (edge.node) Link(&op, Reach(edge.node.get()));
      if (edge.leaf) Link(&op, Reach(edge.leaf.get(), 1));
    }
  }
  void Link(const void* from, std::size_t to) { nodes_[index_.at(from)].leads_to.push_back(to); }
  void AddHooks(const void* of, const std::shared_ptr<lazy::GradHooks>& hooks) {
    if (!hooks) return;
    for (const lazy::GradHook& hook : *hooks) {
      const auto found = Hook::all.find(hook.id);
      if (found != Hook::all.end()) nodes_[index_.at(of)].hooks.push_back(found->second->list);
    }
  }

  template <class T>
  static T Pop(std::vector<T>& list) {
    T last = list.back();
    list.pop_back();
    return last;
  }
  void SpreadOutside() {
    std::vector<std::size_t> todo;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      node.outside = node.tensor != nullptr && node.references != node.tensor->use_count();
      if (node.outside) todo.push_back(i);
    }
    while (!todo.empty()) {
      for (const std::size_t next : nodes_[Pop(todo)].leads_to) {
        if (!std::exchange(nodes_[next].outside, true)) todo.push_back(next);
      }
    }
  }
  std::vector<PyObject*> HooksFrom(std::vector<std::size_t> todo) const {
    std::vector<PyObject*> hooks;
    std::unordered_set<std::size_t> seen(todo.begin(), todo.end());
    todo.assign(seen.begin(), seen.end());
    while (!todo.empty()) {
      const Node& node = nodes_[Pop(todo)];
      if (node.outside) continue;  // and so is all behind it
      hooks.insert(hooks.end(), node.hooks.begin(), node.hooks.end());
      for (const std::size_t next : node.leads_to) {
        if (seen.insert(next).second) todo.push_back(next);
      }
    }
    return hooks;
  }

  std::vector<Node> nodes_;
  std::unordered_map<const void*, std::size_t> index_;
  std::vector<std::pair<const lazy::TensorImpl*, const lazy::GradNode*>> todo_;  // one of the two
  std::vector<std::pair<PyObject*, std::vector<std::size_t>>> owners_;
};

// What the collector is shown while it looks at everything.
struct ShownHooks {
  std::unordered_map<PyObject*, std::vector<PyObject*>> hooks;
  // So that a hook has a reference for each object that shows it, as if each held one.
  std::vector<py::object> references;
};
ShownHooks& HooksShown() {
  static auto* shown = new ShownHooks;  // as long as the interpreter
  return *shown;
}

void Show() {
  const std::lock_guard lock(Hook::mu);
  if (Hook::all.empty()) return;
  References references;
  std::unordered_set<py::detail::instance*> seen;
  for (const auto& [address, instance] : py::detail::get_internals().registered_instances) {
    if (!instance->owned || !instance->simple_layout || !seen.insert(instance).second) continue;
    if (instance->get_value_and_holder().holder_constructed())
      references.AddObject(reinterpret_cast<PyObject*>(instance));
  }
  for (py::detail::instance* instance : TensorObjects())
    references.AddObject(reinterpret_cast<PyObject*>(instance));
  HooksShown().hooks = references.Owned();
  std::unordered_set<PyObject*> counted;  // C++ has one reference of each
  for (const auto& [object, hooks] : HooksShown().hooks) {
    if (PyObject_GC_IsTracked(object) == 0) PyObject_GC_Track(object);
    for (PyObject* hook : hooks) {
      if (!counted.insert(hook).second)
        HooksShown().references.push_back(py::reinterpret_borrow<py::object>(hook));
    }
  }
}

void Hide() {
  HooksShown().hooks.clear();
  HooksShown().references.clear();
}

// What gc.callbacks calls.
void Collecting(const py::str& phase, const py::dict& info) {
  if (TextOf(phase.ptr()) == "stop") return Hide();
  if (info["generation"].cast<int>() != 2) return;
  try {
    Show();
  } catch (const std::exception&) {  // no memory for it: hooks stay
    Hide();
  }
}

void StartShowing() {
  static bool started = false;
  if (std::exchange(started, true)) return;
  py::module_::import("gc").attr("callbacks").attr("append")(py::cpp_function(&Collecting));
}

}  // namespace

HookHandle RegisterHook(Tensor& x, const py::function& function) {
  const auto hook = std::make_shared<Hook>(function);
  HookHandle handle =
      x.register_hook([hook](const Tensor& gradient) { return CallHook(*hook, gradient); });
  const lazy::AutogradMeta& meta = *TensorAccess::Impl(x)->autograd();
  hook->id = (meta.grad_fn ? meta.grad_fn->hooks : meta.hooks)->back().id;
  {
    const std::lock_guard lock(Hook::mu);
    Hook::all.emplace(hook->id, hook.get());
  }
  StartShowing();
  return handle;
}

int VisitHooks(PyObject* self, visitproc visit, void* arg) {
  if (HooksShown().hooks.empty()) return 0;
  const auto own = HooksShown().hooks.find(self);
  if (own == HooksShown().hooks.end()) return 0;
  for (PyObject* hook : own->second) Py_VISIT(hook);
  return 0;
}

void SetHeldTensors(PyTypeObject* type, std::vector<TensorMember> members) {
  HeldBy()[type] = std::move(members);
}

}  // namespace lazuli::python
