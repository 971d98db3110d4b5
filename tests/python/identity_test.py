"""One tensor is one object, as long as somebody has it: programs ask `is`, and keep tensors by id()."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import lazuli as lz
from lazuli import nn

X = lz.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("same", [
    "x.to(x.dtype)", "x.to(lz.float32)", "x.float()", "x.cpu()", "x.to('cpu')", "x.to(x.device)", "x.to(x)", "x.type(lz.float32)", "x.type_as(x)",
    "lz.as_tensor(x)", "lz.asarray(x)", "x.contiguous()", "x.to(lz.float32, copy=False)", "x[0]._base", "x.t()._base", "x.add_(0)",
    "x.requires_grad_(False)", "nn.Identity()(x)", "nn.Dropout().eval()(x)", "nn.functional.dropout(x, training=False)", "lz.atleast_1d(x)",
    "x.real", "x.conj()", "lz.abs(-x, out=x)", "x.pin_memory()", "x.resolve_conj()", "x.detach_()"])
def test_what_changes_nothing_gives_the_tensor_itself(same):
    x = lz.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert eval(same, {"x": x, "lz": lz, "nn": nn}) is x


@pytest.mark.parametrize("other", ["x.to(lz.float64)", "x.clone()", "x.detach()", "x.view(4)", "x[:]", "x.to(lz.float32, copy=True)", "lz.tensor(x)", "x.data"])
def test_what_makes_a_tensor_gives_another_one(other):
    assert eval(other, {"x": X, "lz": lz}) is not X


def test_a_gradient_and_a_base_are_one_object():
    x = lz.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is x.grad and x.grad is not x
    view = x[1:]
    assert view._base is x and view[0]._base is x
    base = view._base
    del x
    assert view._base is base


def test_a_parameter_is_one_object_wherever_it_is_read():
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    assert second.weight is first.weight and second.weight is second.weight and isinstance(second.weight, nn.Parameter)
    net = nn.Module()
    net.scale = nn.Parameter(lz.ones(2))
    assert net.scale is net.scale and net.scale[0]._base is net.scale and net.scale.to(lz.float32) is net.scale
    assert [p is q for p, q in zip(net.parameters(), net.parameters(), strict=True)] == [True]
    optimizer = lz.optim.SGD(first.parameters(), lr=0.1)
    assert optimizer.param_groups[0]["params"][0] is first.weight
    buffer = lz.zeros(2)
    net.register_buffer("mean", buffer)
    assert net.mean is buffer


def test_a_tensor_of_the_constructor_and_of_a_class_is_one_object():
    class Named(lz.Tensor):
        pass

    for x in (lz.Tensor([1.0, 2.0]), lz.FloatTensor([1.0]), nn.Parameter(lz.ones(2)), Named([1.0])):
        assert x.to(x.dtype) is x and x[:1]._base is x


def test_an_object_that_is_gone_is_not_given_again():
    gone = weakref.ref(X.sum())
    gc.collect()
    assert gone() is None
    x = lz.ones(2)
    view = x[:1]
    del x
    again = view._base
    assert again.tolist() == [1, 1] and view._base is again
    parameter = nn.Parameter(lz.ones(2))
    part = parameter[:1]
    del parameter
    assert part._base.tolist() == [1, 1]
    for _ in range(1000):  # addresses come again
        assert lz.ones(1).tolist() == [1] and nn.Parameter(lz.zeros(1)).tolist() == [0]


def test_as_tensor_keeps_the_history():
    x = lz.ones(2, requires_grad=True)
    lz.as_tensor(x, dtype=lz.float64).sum().backward()
    assert x.grad.tolist() == [1, 1] and lz.as_tensor(np.float64([1])).dtype == lz.float64 and lz.as_tensor([1], dtype=lz.float32).dtype == lz.float32


def test_a_device_of_the_cpu_is_called_cpu():
    assert str(X.device) == "cpu" and str(lz.device("cpu")) == "cpu" and f"{X.device}" == "cpu" and lz.device(str(X.device)) == X.device


def test_tensors_have_attributes_of_their_own():
    """As programs mark parameters; copies have them, too."""
    layer = nn.Linear(2, 2)
    layer.weight.no_decay = True
    layer.bias.kind = ["bias"]
    assert [p.__dict__ for p in layer.parameters()] == [{"no_decay": True}, {"kind": ["bias"]}]
    copied, restored = copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))
    assert copied.weight.no_decay and restored.weight.no_decay and copied.bias.kind == ["bias"]
    assert copied.bias.kind is not layer.bias.kind and copy.copy(layer.bias).kind is layer.bias.kind
    x = lz.ones(2)
    x.name_of_mine = "x"
    assert x.add_(1) is x and x.name_of_mine == "x" and not hasattr(x * 1, "name_of_mine")
    del x.name_of_mine
    with pytest.raises(AttributeError, match="name_of_mine"):
        x.name_of_mine  # noqa: B018
    with pytest.raises(AttributeError):
        x.shape = 3


def test_a_tensor_in_its_own_attribute_is_freed():
    def make(through_dict):
        x = lz.ones(2)
        if through_dict:
            x.__dict__["me"] = [x]
        else:
            x.me = [x]
        return weakref.ref(x)

    gone = [make(False), make(True)]
    gc.collect()
    assert [ref() for ref in gone] == [None, None]
