"""lazuli.tree: trees of tensors, and classes of users that are trees in transforms, loops and compiled functions."""

import dataclasses
from collections import OrderedDict, namedtuple

import pytest

import lazuli as lz
from lazuli import control, func


@dataclasses.dataclass
class Layer:
    weight: lz.Tensor
    bias: lz.Tensor
    name: str = dataclasses.field(default="dense", metadata={"static": True})


lz.tree.register_dataclass(Layer)


@lz.tree.register_pytree_node_class
class Pair:
    def __init__(self, first, second, unit="m"):
        self.first, self.second, self.unit = first, second, unit

    def tree_flatten(self):
        return (self.first, self.second), self.unit

    @classmethod
    def tree_unflatten(cls, unit, items):
        return cls(*items, unit)


class Box:
    def __init__(self, content):
        self.content = content


lz.tree.register_pytree_node(Box, lambda box: ([box.content], None), lambda items, _: Box(*items))


def pair():
    return Pair(lz.tensor([1.0, 2.0]), lz.tensor([3.0, 4.0]))


def energy(p):
    return (p.first * p.second**2).sum()


def test_functions_of_trees():
    tree = {"b": (1, [2, None]), "a": 3}
    leaves, structure = lz.tree.flatten(tree)
    assert leaves == [1, 2, None, 3] == lz.tree.leaves(tree) and lz.tree.unflatten(structure, leaves) == tree
    assert str(structure) == "{'b': (*, [*, *]), 'a': *}"
    assert structure == lz.tree.structure({"a": 0, "b": (0, [0, 0])}) and hash(structure) == hash(lz.tree.structure({"a": 0, "b": (0, [0, 0])}))
    assert structure != lz.tree.structure({"a": 0, "b": (0, (0, 0))}) and structure != 3
    assert lz.tree.map(lambda x, y: x + y, (1, {"k": 2}), (10, {"k": 20})) == (11, {"k": 22})
    assert lz.tree.map(lambda x, y: (x, y), (1, 2), ([3, 4], 5)) == ((1, [3, 4]), (2, 5))
    assert lz.tree.map(len, [(1, 2), (3,)], is_leaf=lambda t: isinstance(t, tuple)) == [2, 1]
    assert lz.tree.reduce(lambda x, y: x - y, [10, (1, 2)]) == 7 and lz.tree.reduce(max, [], 5) == 5
    assert lz.tree.all([True, (1,)]) and not lz.tree.all([True, (0,)]) and lz.tree.all(())
    Point = namedtuple("Point", "x y")
    assert str(lz.tree.structure(Point(1, OrderedDict(k=2)))) == "Point(*, OrderedDict({'k': *}))"
    assert lz.tree.map(lambda x: -x, Point(1, OrderedDict(k=2))) == Point(-1, OrderedDict(k=-2))


def test_mistakes_in_functions_of_trees():
    with pytest.raises(ValueError, match=r"tree.map: the trees must have one structure, \(\*, \*\), not \[\*, \*\]"):
        lz.tree.map(max, (1, 2), [1, 2])
    with pytest.raises(ValueError, match=r"tree.unflatten: \(\*, \*\) has 2 leaves, not 3"):
        lz.tree.unflatten(lz.tree.structure((1, 2)), [1, 2, 3])
    with pytest.raises(TypeError, match="tree.reduce: the tree has no leaves"):
        lz.tree.reduce(max, [])
    with pytest.raises(ValueError, match="register_pytree_node: dict is registered already"):
        lz.tree.register_pytree_node(dict, lambda d: (list(d), None), lambda items, _: items)
    with pytest.raises(ValueError, match="register_pytree_node_class: Pair is registered already"):
        lz.tree.register_pytree_node_class(Pair)
    with pytest.raises(TypeError, match="register_pytree_node: takes functions, not NoneType"):
        lz.tree.register_pytree_node(int, None, None)
    with pytest.raises(TypeError, match=r"register_pytree_node_class: int has no tree_flatten\(\)"):
        lz.tree.register_pytree_node_class(int)
    with pytest.raises(TypeError, match="is not a dataclass"):
        lz.tree.register_dataclass(int)


def test_objects_of_a_registered_class_are_differentiated_and_batched():
    g = func.grad(energy)(pair())
    assert type(g) is Pair and g.unit == "m" and (g.first.tolist(), g.second.tolist()) == ([9, 16], [6, 16])
    value, tangent = func.jvp(energy, (pair(),), (Pair(lz.ones(2), lz.zeros(2)),))
    assert (value.item(), tangent.item()) == (41, 25)
    batch = Pair(lz.ones(3, 2), lz.arange(6.0).view(3, 2))
    assert lz.vmap(energy)(batch).tolist() == [1, 13, 41]
    assert lz.vmap(energy, in_dims=(Pair(None, 0),))(Pair(lz.ones(2), batch.second)).tolist() == [1, 13, 41]
    made = lz.vmap(lambda p: Box(p.first + p.second), out_dims=Box(1))(batch)
    assert type(made) is Box and made.content.tolist() == [[1, 3, 5], [2, 4, 6]]
    layer = Layer(lz.ones(2, 2), lz.zeros(2))
    g = func.grad(lambda layer, x: (x @ layer.weight + layer.bias).square().sum())(layer, lz.ones(2))
    assert g.name == "dense" and g.weight.tolist() == [[4, 4], [4, 4]] and g.bias.tolist() == [4, 4]
    assert lz.tree.map(lambda p, g: p - g, layer, g).bias.tolist() == [-4, -4]


def test_what_is_not_a_tensor_must_agree():
    with pytest.raises(RuntimeError, match=r"tangents must have the structure of primals, \(Pair\['m'\]\(\*, \*\),\), not \(Pair\['km'\]\(\*, \*\),\)"):
        func.jvp(energy, (pair(),), (Pair(lz.ones(2), lz.zeros(2), "km"),))
    with pytest.raises(TypeError, match=r"while_loop: body_fun returns Pair\['km'\]\(\*, \*\), but init_val is Pair\['m'\]"):
        control.while_loop(lambda p: p.first.sum() < 3, lambda p: Pair(p.first, p.second, "km"), pair())


def test_objects_of_a_registered_class_go_through_loops_and_branches():
    last, sums = control.scan(lambda p, x: (Pair(p.second, p.first + x, p.unit), Box(p.first.sum())), pair(), lz.ones(3))
    assert type(last) is Pair and (last.first.tolist(), last.second.tolist()) == ([4, 5], [3, 4])
    assert type(sums) is Box and sums.content.tolist() == [3, 7, 5]
    chosen = control.cond(lz.tensor(True), lambda b: Box(b.content + 1), lambda b: b, Box(lz.ones(2)))
    assert chosen.content.tolist() == [2, 2]


def test_a_compiled_function_is_replayed_with_other_objects():
    step = func.jit(lambda p: Pair(p.first + 1, p.second * 2, p.unit))
    p = pair()
    for _ in range(6):
        p = step(p)
    assert type(p) is Pair and p.first.tolist() == [7, 8] and p.second.tolist() == [192, 256]
    assert step.replays == 4, step.explain()
    assert step(Pair(p.first, p.second, "km")).unit == "km" and step.replays == 4
