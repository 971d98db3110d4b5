"""Trees: tensors in tuples, lists and dicts of each other, as arguments and results of functions.

Named tuples keep their class, and other classes of tuples become tuples. Dicts are matched by their
keys. Classes that are registered (lazuli.tree) are what their functions say. All else is a leaf:
None, and objects of other classes, lists and dicts among them.
"""

from collections import OrderedDict


class Structure:
    """A tree without its leaves: str() writes each as *."""

    __slots__ = ("_children", "_context", "_kind")

    def __init__(self, kind, context, children):
        self._kind, self._context, self._children = kind, context, children

    def build(self, leaves):
        """The tree with these leaves."""
        return self._built(iter(leaves))

    def _built(self, leaves):
        if self._kind is None:
            return next(leaves)
        items = [child._built(leaves) for child in self._children]
        return _joined(self._kind, items, self._context)

    def leaves(self, tree):
        """The leaves of a tree that has this structure; None if the tree has another one."""
        if self._kind is None:
            return None if kind_of(tree) else [tree]
        return self._entries(tree, Structure.leaves)

    def spread(self, tree):
        """An entry for each leaf of this structure, from a tree that looks like its upper part;
        None if the tree does not."""
        if self._kind is None:
            return None if kind_of(tree) else [tree]
        if kind_of(tree) is None:
            return [tree] * self.count()
        return self._entries(tree, Structure.spread)

    def upper(self, tree):
        """For each leaf of this structure what a tree has in its place, which may go on there; None
        if the tree does not have this structure above."""
        return [tree] if self._kind is None else self._entries(tree, Structure.upper)

    def _entries(self, tree, entries):
        """The lists that `entries(child, item)` gives for the items of a tree, one after the other;
        None if the tree has other items or one of the lists is None."""
        if kind_of(tree) is not self._kind:
            return None
        items, context = apart(self._kind, tree)
        if len(items) != len(self._children):
            return None
        if _is_dict(self._kind):
            if any(key not in tree for key in self._context):
                return None
            items = [tree[key] for key in self._context]
        elif context != self._context:
            return None
        found = [entries(child, item) for child, item in zip(self._children, items, strict=True)]
        return None if None in found else [entry for some in found for entry in some]

    def paths(self, before=""):
        """Where each leaf is, as it is written behind the tree: ['h'][0]."""
        if self._kind is None:
            return [before]
        keys = self._context if _is_dict(self._kind) else range(len(self._children))
        return [path for key, child in zip(keys, self._children, strict=True)
                for path in child.paths(f"{before}[{key!r}]")]

    def count(self):
        """How many leaves there are."""
        if self._kind is None:
            return 1
        return sum(child.count() for child in self._children)

    def shown(self, words):
        """The tree with these words for its leaves."""
        return self._shown(iter(words))

    def _shown(self, words):
        if self._kind is None:
            return next(words)
        items = [child._shown(words) for child in self._children]
        if _is_dict(self._kind):
            pairs = zip(self._context, items, strict=True)
            inside = "{" + ", ".join(f"{key!r}: {item}" for key, item in pairs) + "}"
            return inside if self._kind is dict else f"{self._kind.__name__}({inside})"
        inside = ", ".join(items)
        if self._kind is list:
            return f"[{inside}]"
        if self._kind is tuple:
            return f"({inside}{',' if len(items) == 1 else ''})"
        context = "" if self._context is None else f"[{self._context!r}]"
        return f"{self._kind.__name__}{context}({inside})"

    def __str__(self):
        return self.shown(["*"] * self.count())

    __repr__ = __str__

    def __eq__(self, other):
        if not isinstance(other, Structure):
            return NotImplemented
        if self._kind is not other._kind or len(self._children) != len(other._children):
            return False
        if _is_dict(self._kind):
            return (dict(zip(self._context, self._children, strict=True))
                    == dict(zip(other._context, other._children, strict=True)))
        return self._context == other._context and self._children == other._children

    def __hash__(self):
        return hash((self._kind, len(self._children)))


_LEAF = Structure(None, None, ())
_registered = {}  # by class: the functions that take an object apart and join it


def register(cls, flatten_fn, unflatten_fn):
    """Makes nodes of the objects of a class: flatten_fn(tree) is (items, context), and
    unflatten_fn(items, context) a tree."""
    _registered[cls] = flatten_fn, unflatten_fn


def is_registered(cls):
    """Whether the class has such functions."""
    return cls in _registered


def kind_of(tree):
    """The class with which a tree is rebuilt; None for a leaf."""
    kind = type(tree)
    if kind is tuple or kind is list or kind is dict or kind in _registered or kind is OrderedDict:
        return kind
    if isinstance(tree, tuple):
        return kind if hasattr(kind, "_fields") else tuple
    return None


def _is_dict(kind):
    return kind is dict or kind is OrderedDict and kind not in _registered


def apart(kind, tree):
    """(the items of a tree of this kind, what else it is made of)."""
    if kind is list or kind is tuple:
        return tree, None
    if kind in _registered:
        items, context = _registered[kind][0](tree)
        return list(items), context
    return (list(tree.values()), list(tree)) if _is_dict(kind) else (tree, None)


def _joined(kind, items, context):
    if kind is list:
        return items
    if kind in _registered:
        return _registered[kind][1](items, context)
    if _is_dict(kind):
        return kind(zip(context, items, strict=True))
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def flatten(tree, is_leaf=None):
    """(the leaves of a tree, its Structure). What is_leaf(tree) is true for is a leaf, too."""
    kind = kind_of(tree)
    if kind is None or is_leaf is not None and is_leaf(tree):
        return [tree], _LEAF
    items, context = apart(kind, tree)
    leaves, children = [], []
    for item in items:
        found, child = flatten(item, is_leaf)
        leaves += found
        children.append(child)
    return leaves, Structure(kind, context, children)


def tree_map(function, tree):
    """The tree with function(leaf) for each leaf."""
    leaves, structure = flatten(tree)
    return structure.build(function(leaf) for leaf in leaves)
