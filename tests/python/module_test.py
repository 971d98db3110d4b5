"""Modules are found, named, held, stored and copied as PyTorch's; the expected names are what PyTorch gives for the same class."""

import collections
import copy
import pickle

import pytest

import lazuli as lz
from lazuli import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(collections.OrderedDict(fc=nn.Linear(4, 8), bn=nn.BatchNorm1d(8), act=nn.ReLU(), out=nn.Linear(8, 4)))
        self.scale = nn.Parameter(lz.ones(1))
        self.tied = self.body.fc
        self.register_parameter("none", None)
        self.register_buffer("kept", lz.zeros(3))
        self.register_buffer("lost", lz.zeros(2), persistent=False)
        self.register_buffer("later", None)
        self.dict = nn.ModuleDict({"x": nn.Linear(1, 2), "y": nn.ReLU()})
        self.list = nn.ParameterList([nn.Parameter(lz.zeros(2)), lz.ones(3)])

    def forward(self, x):
        return self.body(x) * self.scale


def names(pairs):
    return [name for name, _ in pairs]


BODY = ["body.fc.weight", "body.fc.bias", "body.bn.weight", "body.bn.bias", "body.out.weight", "body.out.bias"]
TIED = ["tied.weight", "tied.bias"]
REST = ["dict.x.weight", "dict.x.bias", "list.0", "list.1"]


def test_parameters_stand_in_pytorchs_order():
    net = Net()
    assert names(net.named_parameters()) == ["scale", *BODY, *REST]
    assert names(net.named_parameters(remove_duplicate=False)) == ["scale", *BODY, *TIED, *REST]
    assert names(net.named_parameters(recurse=False)) == ["scale"]
    assert names(net.named_parameters(prefix="net"))[:2] == ["net.scale", "net.body.fc.weight"]
    assert next(net.parameters()) is net.scale and net.none is None


def test_buffers_may_come_later_and_need_not_be_kept():
    net, stats = Net(), ["body.bn.running_mean", "body.bn.running_var", "body.bn.num_batches_tracked"]
    assert names(net.named_buffers()) == ["kept", "lost", *stats]
    assert list(net.state_dict()) == ["scale", "kept", *BODY[:4], *stats, *BODY[4:], *TIED, *REST]
    net.later = lz.full((2,), 7.0)
    assert net.get_buffer("later").tolist() == [7, 7] and "later" in net.state_dict()
    assert names(net.named_buffers(recurse=False)) == ["kept", "lost", "later"]


def test_modules_are_found_by_dotted_names():
    net = Net()
    assert names(net.named_modules()) == ["", "body", "body.fc", "body.bn", "body.act", "body.out", "dict", "dict.x", "dict.y", "list"]
    assert names(net.named_children()) == ["body", "tied", "dict", "list"]
    assert net.get_submodule("body.fc") is net.tied and net.get_submodule("") is net
    net.body.out.bias.requires_grad = False  # frozen, and a parameter all the same
    assert net.get_parameter("body.out.bias").shape == (4,)
    for name, why in (("body.no.weight", "Sequential has no attribute `no`"), ("body", "`body` is not a tensor"),
                      ("kept", "`kept` is not a parameter")):
        with pytest.raises(AttributeError, match=why):
            net.get_parameter(name)
    net.add_module("more", nn.Tanh())
    assert names(net.named_children())[-1] == "more"


def test_a_state_loads_into_what_has_its_names():
    net, other = Net(), Net()
    report = other.load_state_dict(net.state_dict())
    assert report == ([], []) and repr(report) == "<All keys matched successfully>"
    assert other.body.fc.weight.equal(net.tied.weight) and not other.body.out.weight.is_same(net.body.out.weight)
    report = other.load_state_dict({"scale": lz.full((1,), 3.0), "zz": lz.ones(1)}, strict=False)
    assert report.unexpected_keys == ["zz"] and "kept" in report.missing_keys and "lost" not in report.missing_keys
    assert other.scale.item() == 3


def test_sequential_is_cut_grown_and_renumbered():
    steps = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Tanh())
    assert names(steps[1:].named_children()) == ["1", "2"] and steps[-1] is steps[2]
    steps.insert(1, nn.Identity())
    del steps[0]
    assert names(steps.named_children()) == ["0", "1", "2"] and [type(s).__name__ for s in steps] == ["Identity", "ReLU", "Tanh"]
    assert type(steps.pop()).__name__ == "Tanh" and len(steps + nn.Sequential(nn.ELU(), abs)) == 4
    assert names(Net().body[:2].named_children()) == ["fc", "bn"]
    with pytest.raises(TypeError, match="Sequential: '1' is neither a module nor a function but int"):
        nn.Sequential(nn.ReLU(), 3)


def test_dicts_and_lists_hold_modules_and_parameters():
    modules = Net().dict
    assert list(modules) == ["x", "y"] and "x" in modules and modules["y"] is modules.y
    modules.update({"z": nn.Tanh()})
    assert type(modules.pop("x")).__name__ == "Linear" and names(modules.items()) == ["y", "z"]
    with pytest.raises(TypeError, match="ModuleDict: 'f' is not a module but function"):
        modules["f"] = lambda x: x
    with pytest.raises(KeyError, match="'pop' is an attribute of ModuleDict already"):
        modules["pop"] = nn.ReLU()
    weights = nn.ParameterDict({"a": lz.ones(2, 3)})
    assert isinstance(weights["a"], nn.Parameter) and names(weights.named_parameters()) == ["a"]
    assert repr(weights) == "ParameterDict(\n    (a): Parameter containing: [torch.FloatTensor of size 2x3]\n)"
    assert len(Net().list) == 2 and Net().list[-1].tolist() == [1, 1, 1] and len(Net().list[1:]) == 1
    with pytest.raises(NotImplementedError, match="a ModuleDict has no forward"):
        modules(lz.ones(1))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_and_pickles_are_modules_of_their_own(again):
    net, x = Net().eval(), lz.randn(2, 4)
    net.body.fc.weight.requires_grad = False
    other = again(net)
    assert other(x).equal(net(x)) and other.tied is other.body.fc and not other.training
    assert list(other.state_dict()) == list(net.state_dict()) and names(other.named_buffers()) == names(net.named_buffers())
    assert [p.requires_grad for p in other.parameters()] == [p.requires_grad for p in net.parameters()]
    other.scale.data.fill_(2)
    assert net.scale.item() == 1
    assert repr(other) == repr(net)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.scale = nn.Linear(2, 2), nn.Linear(2, 2, bias=False), nn.Parameter(lz.ones(2))
        self.second.weight = self.first.weight
        self.seen = (self.first.weight, self.scale, self.second)
        self.register_buffer("mean", lz.zeros(2))
        self.mean_again = self.mean

    def forward(self, x):
        return self.second(self.first(x)) * self.scale


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_copies_have_one_tensor_where_the_originals_have_one(copied):
    def check(net, first, second):
        assert net is not None and first.weight is second.weight
        optimizer = lz.optim.SGD(net.parameters(), lr=0.5)
        net(lz.ones(1, 2)).sum().backward()
        optimizer.step()
        assert lz.equal(first.weight, second.weight)

    net = Tied()
    made = copied(net)
    assert len(list(made.parameters())) == 3 and list(made.state_dict()) == list(net.state_dict())
    assert made.seen[0] is made.first.weight and made.seen[1] is made.scale and made.seen[2] is made.second and made.mean is made.mean_again
    check(made, made.first, made.second)
    assert not lz.equal(made.first.weight, net.first.weight) and net.first.weight.grad is None
    both = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    both[1].weight = both[0].weight
    check(made := copied(both), made[0], made[1])
    later = nn.Linear(2, 2, bias=False)
    later.bias = nn.Parameter(lz.ones(2))
    assert lz.equal(copied(later)(lz.ones(1, 2)), later(lz.ones(1, 2)))


def test_the_dicts_of_a_module_are_its_attributes():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1, bias=False))
    assert list(net._modules) == ["0", "1", "2"] and net._modules["0"] is net[0] and len(net._modules) == 3
    assert list(net[1]._parameters) == ["weight", "bias"] and list(net[1]._buffers) == ["running_mean", "running_var", "num_batches_tracked"]
    assert net[0]._parameters["weight"] is net[0].weight and net[2]._parameters["bias"] is None and "gone" not in net[2]._parameters
    net._modules["1"] = nn.ReLU()
    net[0]._parameters["weight"] = nn.Parameter(lz.ones(2, 2))
    net[0]._parameters["bias"] = None
    assert net(lz.ones(1, 2)).shape == (1, 1) and lz.equal(net[:2](lz.ones(1, 2)), lz.full((1, 2), 2.0))
    for name, module in list(net._modules.items()):
        if isinstance(module, nn.ReLU):
            del net._modules[name]
    assert [type(m).__name__ for m in net] == ["Linear", "Linear"]
    net.register_buffer("later", None)
    assert net._buffers == {"later": None} and dict(net._parameters) == {} and repr(net._buffers) == "{'later': None}"
    with pytest.raises(KeyError):
        del net._modules["7"]
    net._modules = {"only": nn.Tanh()}
    assert [name for name, _ in net.named_children()] == ["only"]


def test_gradients_are_dropped_or_zeroed():
    layer = nn.Linear(2, 1)
    layer(lz.ones(2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0, 0]]
    layer.zero_grad()
    assert layer.weight.grad is None


# --- parameters that take each other's place


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.fixed = nn.Parameter(lz.ones(2), requires_grad=False)
        self.index = nn.Parameter(lz.tensor([1, 2]), requires_grad=False)
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x * self.fixed)


def test_a_parameter_may_be_fixed():
    net = Frozen()
    for made in (net, copy.deepcopy(net), pickle.loads(pickle.dumps(net)), net.double()):
        assert [(n, p.requires_grad) for n, p in made.named_parameters()] == [
            ("fixed", False), ("index", False), ("linear.weight", True), ("linear.bias", True)]
        assert made.index.dtype == lz.int64
    net(lz.ones(1, 2, dtype=lz.float64)).sum().backward()
    assert net.fixed.grad is None and net.linear.bias.grad.tolist() == [1, 1]
    net.linear.weight = nn.Parameter(lz.zeros(2, 2, dtype=lz.float64), requires_grad=False)
    assert names(net.linear.named_parameters()) == ["weight", "bias"] and not net.linear.weight.requires_grad
    assert nn.Parameter().shape == (0,) and nn.Parameter(data=lz.ones(1)).requires_grad


@pytest.mark.parametrize("wrong", [lz.ones(2, 2), 3])
def test_a_parameter_gives_way_to_parameters_alone(wrong):
    net = Net()
    for module, name in ((net.dict["x"], "weight"), (net, "scale")):
        kind = type(wrong).__name__
        with pytest.raises(TypeError, match=rf"^cannot assign '{kind}' as parameter '{name}' \(lazuli.nn.Parameter or None expected\)"):
            setattr(module, name, wrong)
    assert net.scale.tolist() == [1]


def test_layers_do_without_a_parameter_that_is_taken_away():
    for take in (lambda layer: setattr(layer, "bias", None), lambda layer: delattr(layer, "bias"), lambda layer: layer.register_parameter("bias", None)):
        layer = nn.Linear(2, 2)
        x, was = lz.ones(1, 2), layer.bias.detach().clone()
        y = layer(x)
        take(layer)
        assert names(layer.named_parameters()) == ["weight"] and layer.bias is None
        assert lz.allclose(layer(x) + was, y)
        assert list(copy.deepcopy(layer).state_dict()) == list(pickle.loads(pickle.dumps(layer)).state_dict()) == ["weight"]
        layer.bias = nn.Parameter(lz.zeros(2))
        assert names(layer.named_parameters()) == ["weight", "bias"]
    norm = nn.BatchNorm1d(2)
    norm.running_mean = norm.running_var = None
    assert lz.allclose(norm(lz.tensor([[1.0, 2.0], [3.0, 6.0]])), lz.tensor([[-1.0, -1.0], [1.0, 1.0]]), atol=1e-4)


def test_signatures_of_constructors():
    import inspect

    assert str(inspect.signature(nn.Linear)) == "(in_features, out_features, bias=True, device=None, dtype=None)"
    for layer in (nn.Linear, nn.Conv2d, nn.MaxPool1d):
        own, init = inspect.signature(layer).parameters, inspect.signature(layer.__init__).parameters
        assert list(init) == ["self", *own]


class Scale(nn.Module):
    """Keeps a number besides tensors."""

    def __init__(self):
        super().__init__()
        self.weight, self.times = nn.Parameter(lz.ones(2)), 3
        self.register_buffer("gone", lz.zeros(1), persistent=False)

    def get_extra_state(self):
        return {"times": self.times}

    def set_extra_state(self, state):
        self.times = state["times"]


def test_states_have_what_a_module_keeps_besides_tensors():
    net, other = nn.Sequential(Scale(), nn.Linear(2, 2)), nn.Sequential(Scale(), nn.Linear(2, 2))
    net[0].times = 9
    state = net.state_dict(prefix="x.")
    assert list(state) == ["x.0.weight", "x.0._extra_state", "x.1.weight", "x.1.bias"]
    assert str(other.load_state_dict({name[2:]: value for name, value in state.items()})) == "<All keys matched successfully>"
    assert other[0].times == 9
    with pytest.raises(RuntimeError, match=r'loading state_dict for Sequential:\n\tMissing key\(s\) in state_dict: "0._extra_state". $'):
        other.load_state_dict({name[2:]: value for name, value in state.items() if "extra" not in name})
    with pytest.raises(RuntimeError, match="no extra state"):
        nn.Linear(1, 1).get_extra_state()


def test_messages_of_states_are_pytorchs():
    with pytest.raises(RuntimeError) as said:
        nn.Linear(2, 2).load_state_dict({"weight": lz.ones(2, 2), "bad": lz.ones(1)})
    assert str(said.value) == ('Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n\t'
                               'Unexpected key(s) in state_dict: "bad". ')
    keys = nn.Linear(2, 2).load_state_dict({"weight": lz.ones(2, 2), "bad": lz.ones(1)}, strict=False)
    assert repr(keys) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['bad'])"


def test_hooks_of_states():
    net, seen = nn.Sequential(Scale()), []
    net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append((prefix, keep_vars)))
    handle = net[0].register_state_dict_post_hook(lambda module, state, prefix, metadata: state.pop(prefix + "_extra_state"))
    assert list(net.state_dict()) == ["0.weight"] and seen == [("", False)]
    handle.remove()
    assert list(copy.deepcopy(net).state_dict()) == ["0.weight", "0._extra_state"] and seen[1:] == [("", False)]

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state[prefix + "weight"] = state.pop(prefix + "old")

    net[0].register_load_state_dict_pre_hook(rename)
    state = {"0.old": lz.full((2,), 5.0)}
    net[0].register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.remove("0._extra_state"))
    assert not any(net.load_state_dict(state)) and net[0].weight.tolist() == [5, 5] and list(state) == ["0.old"]

    def complain(module, state, prefix, metadata, strict, missing, unexpected, errors):
        errors.append("nothing fits")

    net[0].register_load_state_dict_pre_hook(complain)
    with pytest.raises(RuntimeError, match="nothing fits"):
        net.load_state_dict(state, strict=False)


def test_set_submodule():
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    net.set_submodule("1.0", nn.Tanh())
    net.set_submodule("0", nn.Identity())
    assert isinstance(net[1][0], nn.Tanh) and net(lz.tensor([0.0])).tolist() == [0] and len(list(net.parameters())) == 0
    for target, kind, words in (("", ValueError, "without a target name"), ("1.5", AttributeError, "Sequential has no attribute `5`")):
        with pytest.raises(kind, match=words):
            net.set_submodule(target, nn.ReLU(), strict=True)


def test_types_of_all_tensors():
    norm = nn.BatchNorm1d(2).type(lz.float64)
    assert {t.dtype for t in (*norm.parameters(), *norm.buffers())} == {lz.float64}
    assert norm.to_empty(device="cpu") is norm and norm.compile() is None
    with pytest.raises(NotImplementedError, match="cuda: there is no GPU"):
        norm.cuda()


def test_children_of_dicts_are_keys_whoever_gives_them():
    modules = nn.ModuleDict({"a": nn.ReLU()})
    modules.add_module("b", nn.Tanh())
    modules.c = nn.ELU()
    modules.register_module("d", nn.SELU())
    assert list(modules) == list(modules.keys()) == ["a", "b", "c", "d"] and len(modules) == 4 and "c" in modules and modules["b"] is modules.b
    assert [type(m).__name__ for m in modules.values()] == ["ReLU", "Tanh", "ELU", "SELU"] == [type(m).__name__ for m in modules.children()]
    modules["a"] = nn.Tanh()
    del modules.b
    assert list(modules) == ["a", "c", "d"] and type(modules.pop("c")).__name__ == "ELU" and "c" not in modules and not hasattr(modules, "c")
    again = pickle.loads(pickle.dumps(modules))
    assert list(again) == list(copy.deepcopy(modules)) == ["a", "d"] and (names(again.named_children())) == ["a", "d"]
    with pytest.raises(KeyError):
        del modules["c"]
    modules.clear()
    assert len(modules) == 0 and not list(modules.children())


class Block(nn.ModuleDict):
    """As torchvision's DenseNet."""

    def __init__(self):
        super().__init__()
        for i in range(3):
            self.add_module(f"layer{i}", nn.Linear(2, 2))

    def forward(self, x):
        for _, layer in self.items():
            x = layer(x)
        return x


def test_a_block_of_a_dict_runs_through_its_layers():
    block, x = Block(), lz.ones(1, 2)
    assert lz.equal(block(x), block.layer2(block.layer1(block.layer0(x)))) and len(block) == 3


def test_children_of_lists_keep_their_places():
    modules = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    modules.add_module("2", nn.ELU())
    modules[0] = nn.SELU()
    assert [type(m).__name__ for m in modules] == ["SELU", "Tanh", "ELU"] and names(modules.named_children()) == ["0", "1", "2"]
    steps = nn.Sequential(nn.ReLU(), abs, nn.Tanh())
    steps[0] = abs
    steps[1] = nn.ELU()
    steps.tail = nn.SELU()
    assert [getattr(m, "__name__", type(m).__name__) for m in steps] == ["abs", "ELU", "Tanh", "SELU"]
    del steps.tail
    del steps[0]
    assert [type(m).__name__ for m in steps] == ["ELU", "Tanh"] and names(steps.named_children()) == ["0", "1"] and lz.equal(steps(lz.ones(2)), lz.ones(2).tanh())
    parameters = nn.ParameterDict({"a": lz.ones(1)})
    parameters["b"] = lz.zeros(1)
    del parameters.a
    assert list(parameters) == ["b"] and [n for n, _ in parameters.named_parameters()] == ["b"]


def test_states_of_other_dtypes_are_converted():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    state = {name: tensor.to(lz.float64) * 2 for name, tensor in net.state_dict().items()}
    state["0.bias"] = [1, 2]
    weight = net[0].weight
    expected = (weight * 2).tolist()
    assert repr(net.load_state_dict(state)) == "<All keys matched successfully>"
    assert net[0].weight is weight and weight.dtype == lz.float32 and weight.tolist() == expected and net[0].bias.tolist() == [1, 2]
    assert net[1].num_batches_tracked.dtype == lz.int64
    net.load_state_dict({"0.weight": lz.ones(2, 2, dtype=lz.float16)}, strict=False, assign=True)
    assert net[0].weight is weight and weight.dtype == lz.float16 and weight.tolist() == [[1, 1], [1, 1]] and weight.requires_grad
    with pytest.raises(lz.InvalidArgumentError, match=r"1.weight is f64\[3\] in the state and f32\[2\] here"):
        net.load_state_dict({"1.weight": lz.ones(3, dtype=lz.float64)}, strict=False)


def test_gradients_move_with_their_parameters():
    layer = nn.Linear(2, 1)
    layer(lz.ones(1, 2)).sum().backward()
    layer.to(lz.float64)
    assert layer.weight.grad.dtype == lz.float64 and layer.weight.grad.tolist() == [[1, 1]]
    assert layer.half().weight.grad.dtype == lz.float16
    assert layer.to("interpreter").bias.grad.device.type == "interpreter"


def test_a_parameter_whose_data_a_loop_replaces_is_trained():
    w = nn.Parameter(lz.tensor([2.0]))
    optimizer = lz.optim.SGD([w], lr=0.5)
    (w * w).sum().backward()
    w.data = w.data * 3
    assert w.grad.tolist() == [4] and w.tolist() == [6]
    optimizer.step()
    assert w.tolist() == [4]
    (w * w).sum().backward()
    assert w.grad.tolist() == [12]
    w.data = lz.ones(2)  # of another shape: as torch, the gradient is that of before
    assert w.grad.tolist() == [12]
    optimizer.zero_grad()
    (w * 3).sum().backward()
    assert w.grad.tolist() == [3, 3]


def test_names_of_buffers_and_parameters_are_free():
    layer = lz.nn.Linear(2, 2)
    layer.kept = 3
    for register, value in ((layer.register_buffer, lz.ones(1)), (layer.register_parameter, lz.nn.Parameter(lz.ones(1)))):
        for name in ("kept", "forward"):
            with pytest.raises(KeyError, match=f"attribute '{name}' already exists"):
                register(name, value)
        with pytest.raises(KeyError, match="name can.*t be empty string"):
            register("", value)
        with pytest.raises(KeyError, match="name can.*t contain"):
            register("a.b", value)
    with pytest.raises(KeyError, match="attribute 'weight' already exists"):
        layer.register_buffer("weight", lz.ones(1))
    layer.register_buffer("count", lz.ones(1))
    layer.register_parameter("extra", None)
    layer.register_parameter("extra", lz.nn.Parameter(lz.ones(1)))
    assert (layer.count.item(), layer.extra.item(), layer.kept) == (1, 1, 3)
