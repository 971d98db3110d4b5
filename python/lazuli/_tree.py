"""Trees: tensors in tuples, lists and dicts of each other, as arguments and results of functions.

Named tuples keep their class, and other classes of tuples become tuples. Dicts are matched by their
keys. All else is a leaf: None, and objects of other classes of lists and dicts.
"""

from collections import OrderedDict


class Structure:
    """A tree without its leaves: str() writes each as *."""

    __slots__ = ("_children", "_keys", "_kind")

    def __init__(self, kind, keys, children):
        self._kind, self._keys, self._children = kind, keys, children

    def build(self, leaves):
        """The tree with these leaves."""
        return self._built(iter(leaves))

    def _built(self, leaves):
        if self._kind is None:
            return next(leaves)
        items = [child._built(leaves) for child in self._children]
        if self._keys is not None:
            return self._kind(zip(self._keys, items, strict=True))
        return self._kind(*items) if hasattr(self._kind, "_fields") else self._kind(items)

    def leaves(self, tree):
        """The leaves of a tree that has this structure; None if the tree has another one."""
        if self._kind is None:
            return None if _kind(tree) else [tree]
        return self._joined(tree, Structure.leaves)

    def spread(self, tree):
        """An entry for each leaf of this structure, from a tree that looks like its upper part;
        None if the tree does not."""
        if self._kind is None:
            return None if _kind(tree) else [tree]
        if _kind(tree) is None:
            return [tree] * self.count()
        return self._joined(tree, Structure.spread)

    def _joined(self, tree, entries):
        """The lists that `entries(child, item)` gives for the items of a tree, one after the other;
        None if the tree has other items or one of the lists is None."""
        if _kind(tree) is not self._kind or len(tree) != len(self._children):
            return None
        if self._keys is not None:
            if any(key not in tree for key in self._keys):
                return None
            tree = [tree[key] for key in self._keys]
        found = [entries(child, item) for child, item in zip(self._children, tree, strict=True)]
        return None if None in found else [entry for some in found for entry in some]

    def paths(self, before=""):
        """Where each leaf is, as it is written behind the tree: ['h'][0]."""
        if self._kind is None:
            return [before]
        keys = range(len(self._children)) if self._keys is None else self._keys
        return [path for key, child in zip(keys, self._children, strict=True)
                for path in child.paths(f"{before}[{key!r}]")]

    def count(self):
        """How many leaves there are."""
        if self._kind is None:
            return 1
        return sum(child.count() for child in self._children)

    def __str__(self):
        if self._kind is None:
            return "*"
        items = [str(child) for child in self._children]
        if self._keys is not None:
            items = [f"{key!r}: {item}" for key, item in zip(self._keys, items, strict=True)]
            return "{" + ", ".join(items) + "}"
        if self._kind is list:
            return "[" + ", ".join(items) + "]"
        return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"


_LEAF = Structure(None, None, ())


def _kind(tree):
    """The class with which a tree is rebuilt; None for a leaf."""
    if isinstance(tree, tuple):
        return type(tree) if hasattr(tree, "_fields") else tuple
    return type(tree) if type(tree) in (list, dict, OrderedDict) else None


def flatten(tree):
    """(the leaves of a tree, its Structure)."""
    kind = _kind(tree)
    if kind is None:
        return [tree], _LEAF
    keys, items = (list(tree), tree.values()) if hasattr(kind, "keys") else (None, tree)
    leaves, children = [], []
    for item in items:
        found, child = flatten(item)
        leaves += found
        children.append(child)
    return leaves, Structure(kind, keys, children)


def tree_map(function, tree):
    """The tree with function(leaf) for each leaf."""
    leaves, structure = flatten(tree)
    return structure.build(function(leaf) for leaf in leaves)
