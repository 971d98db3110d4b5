"""Trees of tensors: tuples, lists and dicts, and objects of classes that are registered here.

Functions of lazuli.func, of lazuli.control, jit() and vmap() take and return such trees. All else
is a leaf, also None. The functions have the names of jax.tree; what registers a class has the names
and arguments of torch.utils._pytree and jax.tree_util.

    params = lz.tree.map(lambda p, g: p - 0.1 * g, params, grads)
"""

import dataclasses
from collections import OrderedDict

from lazuli import _tree
from lazuli._tree import Structure

__all__ = ["Structure", "all", "flatten", "leaves", "map", "reduce", "register_dataclass",
           "register_pytree_node", "register_pytree_node_class", "structure", "unflatten"]


def flatten(tree, is_leaf=None):
    """(the leaves of a tree, its structure). What is_leaf(tree) is true for is a leaf, too."""
    return _tree.flatten(tree, is_leaf)


def leaves(tree, is_leaf=None):
    """The leaves of a tree."""
    return _tree.flatten(tree, is_leaf)[0]


def structure(tree, is_leaf=None):
    """The tree without its leaves, which can be compared and printed."""
    return _tree.flatten(tree, is_leaf)[1]


def unflatten(structure, leaves):
    """The tree with this structure and these leaves."""
    leaves = list(leaves)
    if len(leaves) != structure.count():
        raise ValueError(f"tree.unflatten: {structure} has {structure.count()} leaves, not "
                         f"{len(leaves)}")
    return structure.build(leaves)


def map(function, tree, *rest, is_leaf=None):
    """The tree with function(leaf, ...) for each leaf, and what `rest` have in its place. They must
    look like the tree, and may go on below its leaves."""
    first, structure = _tree.flatten(tree, is_leaf)
    columns = [first]
    for other in rest:
        columns.append(structure.upper(other))
        if columns[-1] is None:
            raise ValueError(f"tree.map: the trees must have one structure, {structure}, not "
                             f"{_tree.flatten(other)[1]}")
    return structure.build(function(*column) for column in zip(*columns, strict=True))


_NONE = object()


def reduce(function, tree, initializer=_NONE, is_leaf=None):
    """function(function(first, second), third) and so on over the leaves; begins with the
    initializer if there is one."""
    found = iter(leaves(tree, is_leaf))
    value = next(found, _NONE) if initializer is _NONE else initializer
    if value is _NONE:
        raise TypeError("tree.reduce: the tree has no leaves, and there is no initializer")
    for leaf in found:
        value = function(value, leaf)
    return value


def all(tree, *, is_leaf=None):
    """Whether each leaf is true."""
    return not any(not leaf for leaf in leaves(tree, is_leaf))


def register_pytree_node(cls, flatten_fn, unflatten_fn):
    """Makes trees of the objects of a class, but not of those of its subclasses.

    flatten_fn(object) returns (items, context): a list of trees, and what else the object is made
    of, which can be compared. unflatten_fn(items, context) returns the object. Items may be of any
    kind there, not only tensors. This is PyTorch's order; JAX's unflatten_fn gets the context
    first.
    """
    _register("register_pytree_node", cls, flatten_fn, unflatten_fn)


def _register(name, cls, flatten_fn, unflatten_fn):
    if not isinstance(cls, type):
        raise TypeError(f"{name}: takes a class, not {type(cls).__name__}")
    for function in (flatten_fn, unflatten_fn):
        if not callable(function):
            raise TypeError(f"{name}: takes functions, not {type(function).__name__}")
    if cls in (tuple, list, dict, OrderedDict) or _tree.is_registered(cls):
        raise ValueError(f"{name}: {cls.__name__} is registered already")
    _tree.register(cls, flatten_fn, unflatten_fn)


def register_pytree_node_class(cls):
    """Registers a class with the methods tree_flatten(self), which returns (items, context), and
    tree_unflatten(context, items) of the class; returns the class."""
    for method in ("tree_flatten", "tree_unflatten"):
        if not hasattr(cls, method):
            raise TypeError(f"register_pytree_node_class: {cls.__name__} has no {method}()")
    _register("register_pytree_node_class", cls, cls.tree_flatten,
              lambda items, context: cls.tree_unflatten(context, tuple(items)))
    return cls


def register_dataclass(cls=None, data_fields=None, meta_fields=None):
    """Registers a dataclass, and returns it: data_fields are its items, and meta_fields, which can
    be compared, its context. Without them the fields with metadata={"static": True} are the
    context, and the others items. Without a class it is a decorator with these fields."""
    if cls is None:
        return lambda cls: register_dataclass(cls, data_fields, meta_fields)
    if (data_fields is None) != (meta_fields is None):
        raise TypeError("register_dataclass: takes both data_fields and meta_fields, or neither")
    if data_fields is None:
        if not dataclasses.is_dataclass(cls):
            raise TypeError(f"register_dataclass: {cls} is not a dataclass")
        fields = [field for field in dataclasses.fields(cls) if field.init]
        data_fields = [f.name for f in fields if not f.metadata.get("static")]
        meta_fields = [f.name for f in fields if f.metadata.get("static")]
    data_fields, meta_fields = tuple(data_fields), tuple(meta_fields)

    def flatten_fn(tree):
        return ([getattr(tree, name) for name in data_fields],
                tuple(getattr(tree, name) for name in meta_fields))

    def unflatten_fn(items, context):
        return cls(**dict(zip(data_fields, items, strict=True)),
                   **dict(zip(meta_fields, context, strict=True)))

    _register("register_dataclass", cls, flatten_fn, unflatten_fn)
    return cls
