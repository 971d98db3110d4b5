// Histories as Python sees them: nodes, functions with gradients of their own, checkpoints, hooks of
// saved tensors, and the modes. The package's autograd.py makes PyTorch's classes of these.
#include "lazuli/autograd.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/functional.h>

#include "cpp_api/src/facade.h"
#include "lazy/autograd/backward.h"
#include "lazy/autograd/checkpoint.h"
#include "lazy/autograd/custom.h"
#include "lazy/autograd/grad_name.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/gil.h"
#include "python/src/held_object.h"
#include "python/src/hooks.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

// A node of a history, or the leaf that one leads to.
struct HistoryNode {
  ir::IntrusivePtr<lazy::GradNode> op;
  ir::IntrusivePtr<lazy::TensorImpl> leaf;
  const void* id() const { return op ? static_cast<const void*>(op.get()) : leaf.get(); }
};

py::object ToPythonOrNone(lazy::Tensor tensor) {
  if (!tensor.defined()) return py::none();
  return ToPython(TensorAccess::Wrap(std::move(tensor)));
}
py::list ToList(absl::Span<const lazy::Tensor> tensors) {
  py::list list;
  for (const lazy::Tensor& t : tensors) list.append(ToPythonOrNone(t));
  return list;
}
lazy::Tensor FromPython(py::handle object, const char* what) {
  if (object.is_none()) return {};
  if (const Tensor* tensor = AsTensor(object.ptr())) return TensorAccess::Unwrap(*tensor);
  ThrowTypeError(std::string(what) + " must be Tensors or None, not " +
                 Py_TYPE(object.ptr())->tp_name);
}
lazy::Tensors FromList(py::handle objects, const char* what) {
  lazy::Tensors tensors;
  for (const py::handle object : objects) tensors.push_back(FromPython(object, what));
  return tensors;
}

// f() with the caller's line, and errors of the library as Error.
template <class F>
auto InCall(F&& f) {
  const Caller caller;
  return Call(SourceLocation::current(), std::forward<F>(f));
}

// --- functions with gradients of their own

py::list Custom(const std::string& name, py::function call, const py::list& inputs,
                const py::list& results, const std::vector<bool>& dirty,
                const std::vector<bool>& differentiable, const py::list& saved, bool materialize) {
  return InCall([&] {
    const auto backward = [held = HoldObject(std::move(call))](const lazy::CustomNode& node,
                                                               absl::Span<const lazy::Tensor> dys) {
      const AcquiredGil acquire;
      const lazy::SiteOverride none(ir::kNoSite);  // what it records has lines of its own
      HistoryNode self{ir::IntrusivePtr<lazy::GradNode>(const_cast<lazy::CustomNode*>(&node)), {}};
      return FromList(held->get()(py::cast(std::move(self)), ToList(dys)), "gradients");
    };
    const lazy::Tensors in = FromList(inputs, "inputs");
    lazy::Tensors out = FromList(results, "results");
    std::vector<lazy::CustomNode::Result> kinds;
    for (std::size_t i = 0; i < out.size(); ++i) kinds.push_back({dirty[i], differentiable[i]});
    const auto node = ir::MakeIntrusive<lazy::CustomNode>(name, in, backward);
    node->set_materialize(materialize);
    node->Finish(in, absl::MakeSpan(out), kinds, FromList(saved, "saved tensors"));
    return ToList(out);
  });
}

py::list Checkpoint(py::function function, const py::list& inputs, bool keep_random) {
  return InCall([&] {
    const auto call = [held =
                           HoldObject(std::move(function))](absl::Span<const lazy::Tensor> given) {
      const AcquiredGil acquire;
      const lazy::SiteOverride none(ir::kNoSite);
      return FromList(held->get()(ToList(given)), "results");
    };
    return ToList(lazy::Checkpoint(call, FromList(inputs, "inputs"), keep_random));
  });
}

// --- hooks of saved tensors

class PackedObject final : public lazy::Packed {
 public:
  PackedObject(py::object packed, HeldObjectPtr unpack)
      : packed_(HoldObject(std::move(packed))), unpack_(std::move(unpack)) {}
  lazy::Tensor Unpack() override {
    const AcquiredGil acquire;
    const lazy::SiteOverride none(ir::kNoSite);
    lazy::Tensor tensor = FromPython(unpack_->get()(packed_->get()), "what unpack_hook gives");
    if (!tensor.defined()) ThrowTypeError("unpack_hook must give a Tensor, not None");
    return tensor;
  }

 private:
  HeldObjectPtr packed_, unpack_;
};

struct SavedHooks {
  SavedHooks(py::function pack, py::function unpack)
      : hook([pack = HoldObject(std::move(pack)), unpack = HoldObject(std::move(unpack))](
                 const lazy::Tensor& tensor) -> std::unique_ptr<lazy::Packed> {
          const AcquiredGil acquire;
          const lazy::SiteOverride none(ir::kNoSite);
          return std::make_unique<PackedObject>(pack->get()(ToPythonOrNone(tensor)), unpack);
        }),
        scope(&hook) {}
  lazy::PackHook hook;
  lazy::PackScope scope;
};
std::vector<std::unique_ptr<SavedHooks>>& SavedHooksOfThread() {
  thread_local std::vector<std::unique_ptr<SavedHooks>> hooks;
  return hooks;
}

// --- nodes

py::list Edges(const HistoryNode& node) {
  py::list edges;
  if (!node.op) return edges;
  for (const lazy::Edge& edge : node.op->edges()) {
    if (edge)
      edges.append(py::make_tuple(HistoryNode{edge.node, edge.leaf}, edge.index));
    else
      edges.append(py::make_tuple(py::none(), 0));
  }
  return edges;
}

HookHandle RegisterNodeHook(const HistoryNode& node, py::function function, bool before) {
  if (!node.op) ThrowTypeError("register_hook: a leaf takes hooks itself: tensor.register_hook()");
  const auto call = [held = HoldObject(std::move(function)), before](
                        lazy::Tensors& gradients, absl::Span<const lazy::Tensor> dys) {
    const AcquiredGil acquire;
    const py::tuple of(ToList(gradients));
    const py::object given = before ? held->get()(of) : held->get()(of, py::tuple(ToList(dys)));
    if (given.is_none()) return;
    lazy::Tensors changed = FromList(
        AsTensor(given.ptr()) != nullptr ? py::object(py::make_tuple(given)) : given, "gradients");
    if (changed.size() != gradients.size()) {
      throw lazy::StatusError(ir::FailedPrecondition("register_hook: the hook gave ",
                                                     changed.size(), " gradients in place of ",
                                                     gradients.size()));
    }
    gradients = std::move(changed);
  };
  const lazy::HookHandle handle =
      lazy::AddHook(*node.op, call,
                    before ? lazy::GradHook::When::kBeforeNode : lazy::GradHook::When::kAfterNode);
  return HookHandle(handle.hooks, handle.id);
}

void BindNodes(py::module_& module) {
  py::class_<HistoryNode>(module, "_Node", "An op of a history, or a leaf.")
      .def("name",
           [](const HistoryNode& node) {
             return node.op ? lazy::GradName(*node.op) : std::string("AccumulateGrad");
           })
      .def("edges", &Edges)
      .def("variable",
           [](const HistoryNode& node) { return ToPythonOrNone(lazy::Tensor(node.leaf)); })
      .def("saved",
           [](const HistoryNode& node) {
             const auto* custom = dynamic_cast<const lazy::CustomNode*>(node.op.get());
             if (custom == nullptr) return py::list();
             return InCall([&] { return ToList(custom->Saved()); });
           })
      .def("site",
           [](const HistoryNode& node) {
             return node.op ? ir::GetSite(node.op->site()).ToString() : std::string();
           })
      .def("sequence", [](const HistoryNode& node) { return node.op ? node.op->sequence() : 0; })
      .def("register_hook", &RegisterNodeHook, py::arg("hook"), py::arg("before"))
      .def("__eq__",
           [](const HistoryNode& a, py::handle b) {
             return py::isinstance<HistoryNode>(b) &&
                    a.id() == py::cast<const HistoryNode&>(b).id();
           })
      .def("__hash__", [](const HistoryNode& node) {
        return reinterpret_cast<std::uintptr_t>(node.id()) >> 4;
      });
  module.def(
      "_grad_fn",
      [](const Tensor& x) -> py::object {
        const lazy::AutogradMeta* meta = TensorAccess::Impl(x)->autograd();
        if (meta == nullptr || !meta->grad_fn) return py::none();
        return py::cast(HistoryNode{meta->grad_fn, {}});
      },
      py::arg("x"));
}

void BindTensor() {
  py::class_<Tensor> type(
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(tensor_type)));
  type.def_property_readonly("is_leaf", &Tensor::is_leaf, "Whether no recorded op made the tensor.")
      .def_property_readonly("retains_grad", &Tensor::retains_grad,
                             "Whether retain_grad() was called for this result.")
      .def(
          "retain_grad",
          [](Tensor& x) {
            const Caller caller;
            x.retain_grad();
          },
          "Keeps the gradient of a result in .grad, as that of a leaf.")
      .def("is_inference", &Tensor::is_inference, "Whether it was made in inference_mode.")
      .def(
          "register_post_accumulate_grad_hook",
          [](Tensor& x, py::function hook) {
            const Caller caller;
            return x.register_post_accumulate_grad_hook(
                [held = HoldObject(std::move(hook))](const Tensor& leaf) {
                  const AcquiredGil acquire;
                  held->get()(ToPython(leaf));
                });
          },
          py::arg("hook"), "Calls hook(tensor) whenever backward has added to the leaf's .grad.");
}

}  // namespace

void BindAutograd(py::module_& module) {
  BindNodes(module);
  BindTensor();
  module.def("_custom", &Custom, py::arg("name"), py::arg("call"), py::arg("inputs"),
             py::arg("results"), py::arg("dirty"), py::arg("differentiable"), py::arg("saved"),
             py::arg("materialize"));
  module.def("_checkpoint", &Checkpoint, py::arg("function"), py::arg("inputs"),
             py::arg("keep_random"));
  module.def(
      "_push_saved_hooks",
      [](py::function pack, py::function unpack) {
        SavedHooksOfThread().push_back(
            std::make_unique<SavedHooks>(std::move(pack), std::move(unpack)));
      },
      py::arg("pack"), py::arg("unpack"));
  module.def("_pop_saved_hooks", [] { SavedHooksOfThread().pop_back(); });
  module.def("_set_inference_mode", &lazy::SetInferenceMode, py::arg("enabled"));
  module.def("is_inference_mode_enabled", &lazy::InferenceMode, "Whether inference_mode is on.");
  module.def(
      "_set_anomaly",
      [](bool enabled, bool check_nan) { lazy::SetAnomalyMode({enabled, check_nan}); },
      py::arg("enabled"), py::arg("check_nan"));
  module.def("_anomaly", [] {
    const lazy::AnomalyMode mode = lazy::GetAnomalyMode();
    return std::pair(mode.enabled, mode.check_nan);
  });
  module.def(
      "_backward_to",
      [](const std::vector<Tensor>& outputs, const py::list& gradients,
         const std::vector<Tensor>& inputs, bool retain_graph, bool create_graph) {
        InCall([&] {
          lazy::Tensors roots, leaves;
          for (const Tensor& t : outputs) roots.push_back(TensorAccess::Unwrap(t));
          for (const Tensor& t : inputs) leaves.push_back(TensorAccess::Unwrap(t));
          lazy::BackwardTo(roots, FromList(gradients, "gradients"), leaves,
                           {retain_graph, create_graph});
        });
      },
      py::arg("outputs"), py::arg("gradients"), py::arg("inputs"), py::arg("retain_graph"),
      py::arg("create_graph"));
}

}  // namespace lazuli::python
