"""Histories: the nodes of recorded ops, and the tensors that they save."""

import contextlib

from lazuli import _C
from lazuli._C import Tensor


class Node:
    """An op of a history, as returned by tensor.grad_fn. Its class has the op's name:
    MulBackward0."""

    def __init__(self, node):
        self._node = node

    def name(self):
        """The name of its class."""
        return self._node.name()

    @property
    def next_functions(self):
        """For each operand, the node that receives its gradient, or None, and the index of that
        node's result."""
        return tuple((None if node is None else node_of(node), index)
                     for node, index in self._node.edges())

    @property
    def variable(self):
        """For the node AccumulateGrad, the leaf."""
        leaf = self._node.variable()
        if leaf is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute 'variable'")
        return leaf

    @property
    def saved_tensors(self):
        """The tensors that a Function saved for backward."""
        return tuple(self._node.saved())

    @property
    def metadata(self):
        """The line that recorded the op."""
        return {"site": self._node.site()}

    def register_hook(self, fn):
        """Calls fn(grad_inputs, grad_outputs) after the node has run; a result that is not None
        replaces grad_inputs."""
        return self._node.register_hook(fn, False)

    def register_prehook(self, fn):
        """Calls fn(grad_outputs) before the node runs; a result that is not None replaces them."""
        return self._node.register_hook(fn, True)

    def _sequence_nr(self):
        return self._node.sequence()

    def __eq__(self, other):
        return isinstance(other, Node) and self._node == other._node

    def __hash__(self):
        return hash(self._node)

    def __repr__(self):
        return f"<{type(self).__name__} object at {hash(self._node) << 4:#x}>"


_classes = {}


def node_of(node):
    """The Node for a node of C++, of the class with its name."""
    name = node.name()
    if name not in _classes:
        _classes[name] = type(name, (Node,), {})
    return _classes[name](node)


class saved_tensors_hooks:
    """A context in which ops save pack_hook(tensor) for backward, which then uses unpack_hook() of
    it."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        _C._push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception):
        _C._pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keeps tensors that ops save for backward on the host's device."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()),
                         lambda packed: packed[1].to(packed[0]))


class _MultiHandle:
    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Calls fn with the gradients of all tensors, or None for those without, after all have
    arrived; with mode "any", with the first one."""
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode is 'all' or 'any', not {mode!r}")
    tensors = tuple(tensors)
    seen, called = [None] * len(tensors), [False]

    def hook_of(i):
        def hook(gradient):
            if mode == "any":
                if not called[0]:
                    called[0] = True
                    fn(gradient)
                return
            seen[i] = gradient
            if all(g is not None for g in seen):
                gradients = seen[:]
                seen[:] = [None] * len(seen)
                fn(gradients)
        return hook

    return _MultiHandle(tensor.register_hook(hook_of(i)) for i, tensor in enumerate(tensors))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """A context in which saved_tensors_hooks raise an error with this message."""
    entered = saved_tensors_hooks.__enter__

    def refuse(self):
        raise RuntimeError(error_message)

    saved_tensors_hooks.__enter__ = refuse
    try:
        yield
    finally:
        saved_tensors_hooks.__enter__ = entered


def get_gradient_edge(tensor):
    """The node that receives the tensor's gradient, and the index of the node's result that the
    tensor is."""
    if not isinstance(tensor, Tensor) or not tensor.requires_grad:
        raise RuntimeError("get_gradient_edge: the tensor requires no gradient")
    return tensor.grad_fn, 0
