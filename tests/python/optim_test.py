"""Groups of parameters, states and schedules as programs for PyTorch use them; values are compared in tests/peers."""

import copy
import pickle

import numpy as np
import pytest

import lazuli as lz


def compiled():
    return lz.metrics.counter("UncachedCompile")


class Net(lz.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = lz.nn.Linear(3, 4)
        self.head = lz.nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())


def step(net, opt):
    opt.zero_grad()
    net(lz.ones(2, 3)).sum().backward()
    opt.step()
    lz.mark_step()


def test_groups_change_in_place_and_compile_nothing():
    net = Net()
    head = list(map(id, net.head.parameters()))
    opt = lz.optim.AdamW([{"params": [p for p in net.parameters() if id(p) not in head]},
                          {"params": net.head.parameters(), "lr": 0.0}], lr=0.1, foreach=True)
    before = net.head.weight.tolist()
    step(net, opt)
    step(net, opt)
    assert net.head.weight.tolist() == before and len(opt.param_groups[0]["params"]) == 2
    programs, nodes = compiled(), lz.metrics.counter("graph.nodes_recorded")
    for rate in (0.5, 0.1, 0.2):
        opt.param_groups[1]["lr"] = rate
        opt.param_groups[0]["betas"] = (0.5, 1 - rate / 10)
        step(net, opt)
    assert compiled() == programs and net.head.weight.tolist() != before
    opt.zero_grad()
    net(lz.ones(2, 3)).sum().backward()
    nodes = lz.metrics.counter("graph.nodes_recorded")
    opt.step()
    assert lz.metrics.counter("graph.nodes_recorded") - nodes == 2  # one for each group


def test_parameters_are_the_same_objects_each_time():
    net = Net()
    assert [id(p) for p in net.parameters()] == [id(p) for p in net.parameters()]
    assert net.head.weight is list(net.head.parameters())[0] and isinstance(net.head.weight, lz.nn.Parameter)
    own = lz.nn.Parameter(lz.ones(2))
    net.scale = own
    assert net.scale is own
    opt = lz.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    step(net, opt)
    assert opt.state[net.body.weight]["momentum_buffer"].shape == (4, 3)
    assert copy.deepcopy(net).head.weight is not net.head.weight
    assert pickle.loads(pickle.dumps(net)).head.weight.tolist() == net.head.weight.tolist()


def test_the_state_is_pytorchs_dict():
    net = Net()
    opt = lz.optim.NAdam([{"params": net.body.parameters()}, {"params": net.head.parameters(), "weight_decay": 0.1}])
    step(net, opt)
    state = opt.state_dict()
    assert list(state["state"][3]) == ["step", "mu_product", "exp_avg", "exp_avg_sq"] and state["state"][0]["step"].item() == 1
    assert [g["params"] for g in state["param_groups"]] == [[0, 1], [2, 3]] and state["param_groups"][1]["weight_decay"] == 0.1
    other = lz.optim.NAdam([{"params": net.body.parameters()}, {"params": net.head.parameters()}])
    other.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert other.param_groups[1]["weight_decay"] == 0.1 and other.param_groups[1]["params"][0] is net.head.weight
    again = other.state_dict()["state"][2]
    assert all(again[key].tolist() == state["state"][2][key].tolist() for key in again)
    with pytest.raises(ValueError, match="the state is of 2 groups of parameters, there are 1"):
        lz.optim.NAdam(net.parameters()).load_state_dict(state)
    with pytest.raises(ValueError, match="a parameter is in one group"):
        other.add_param_group({"params": [net.head.bias]})


def test_an_optimiser_of_ones_own_is_known_to_schedules_and_hooks():
    class Plain(lz.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, dict(lr=lr))

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    self.state[p]["seen"] = True
                    p.data.add_(p.grad, alpha=-group["lr"])

    w = lz.nn.Parameter(lz.ones(2))
    opt, seen = Plain([w], lr=0.5), []
    opt.register_step_post_hook(lambda optimizer, args, kwargs: seen.append(optimizer is opt))
    schedule = lz.optim.lr_scheduler.LambdaLR(opt, lambda t: 1 / (1 + t))
    for _ in range(2):
        w.grad = lz.ones(2)
        opt.step()
        schedule.step()
    assert w.tolist() == [0.25, 0.25] and seen == [True, True] and opt.state[w] == {"seen": True}
    assert schedule.get_last_lr() == [pytest.approx(0.5 / 3)]


def test_lbfgs_finds_a_minimum_and_compiles_few_programs():
    w = lz.nn.Parameter(lz.tensor([-1.2, 1.0]))
    opt = lz.optim.LBFGS([w], line_search_fn="strong_wolfe", max_iter=40)

    def closure():
        opt.zero_grad()
        loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss

    before = compiled()
    opt.step(closure)
    assert np.allclose(w.tolist(), [1, 1], atol=1e-2) and compiled() - before < 60
    before = compiled()
    opt.step(closure)
    assert compiled() - before < 12  # the history grew


def test_averages_of_models():
    net = Net()
    ema = lz.optim.swa_utils.AveragedModel(net, multi_avg_fn=lz.optim.swa_utils.get_ema_multi_avg_fn(0.5))
    ema.update_parameters(net)
    start = net.head.bias.numpy().copy()
    with lz.no_grad():
        net.head.bias.add_(1.0)
    ema.update_parameters(net)
    assert np.allclose(ema.module.head.bias.numpy(), start + 0.5) and ema.n_averaged.item() == 2


def test_a_module_added_to_a_sequential_is_a_step():
    net = lz.nn.Sequential(lz.nn.ReLU())
    net.add_module("last", lz.nn.Linear(2, 1))
    assert len(net) == 2 and net(lz.ones(3, 2)).shape == (3, 1)

    class Array:  # as a tensor of another library is one
        def __array__(self, dtype=None, copy=None):
            return np.ones(2)

    assert lz.tensor(Array()).dtype == lz.float64 and lz.tensor([1.0]).dtype == lz.float32
    assert lz.LongTensor([1, 2]).dtype == lz.int64 and lz.FloatTensor(2, 3).shape == (2, 3)


COMPLEX = [
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), ("SGD", {"momentum": 0.9, "dampening": 0.5}), ("Adam", {"amsgrad": True}),
    ("Adam", {"weight_decay": 0.1}), ("AdamW", {"maximize": True}), ("NAdam", {}), ("RAdam", {}), ("Adamax", {"weight_decay": 0.1}),
    ("RMSprop", {"centered": True, "momentum": 0.5}), ("RMSprop", {"weight_decay": 0.1}), ("Adagrad", {"initial_accumulator_value": 0.5}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1}), ("Adadelta", {}), ("ASGD", {}), ("Rprop", {}), ("Lion", {})]


@pytest.mark.parametrize(("name", "options"), COMPLEX)
def test_complex_parameters_move_as_pairs_of_reals(name, options):
    def complex_of(parts):
        return lz.view_as_complex(lz.tensor(parts))

    draw = np.random.default_rng(0)
    parts = [draw.standard_normal((*shape, 2)).astype(np.float32) for shape in ((2, 3), ())]
    pairs = [lz.nn.Parameter(lz.tensor(x)) for x in parts]
    numbers = [lz.nn.Parameter(complex_of(x)) for x in parts]
    optimizers = [getattr(lz.optim, name)(params, lr=0.1, **options) for params in (pairs, numbers)]
    for _ in range(7):
        for pair, number in zip(pairs, numbers, strict=True):
            gradient = draw.standard_normal(pair.shape).astype(np.float32)
            pair.grad, number.grad = lz.tensor(gradient), complex_of(gradient)
        for optimizer in optimizers:
            optimizer.step()
    for pair, number in zip(pairs, numbers, strict=True):
        assert lz.view_as_real(number.detach()).tolist() == pair.tolist()
    for of_pair, of_number in zip(*(o.state_dict()["state"].values() for o in optimizers), strict=True):
        for key, value in of_number.items():
            assert key == "step" or not value.is_complex() or lz.view_as_real(value).tolist() == of_pair[key].tolist()


def test_lbfgs_finds_complex_minima():
    z = lz.nn.Parameter(lz.tensor([1 + 1j, -2j]))
    optimizer = lz.optim.LBFGS([z], lr=0.5, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (lz.view_as_real(z - lz.tensor([0.5 - 1j, 2 + 0j])) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert np.allclose(z.detach().numpy(), [0.5 - 1j, 2])


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_matrices_of_complex_numbers_are_refused_as_in_pytorch(name):
    z = lz.nn.Parameter(lz.ones(2, 2, dtype=lz.complex64))
    z.grad = lz.ones_like(z.detach())
    with pytest.raises(RuntimeError, match=f"{name}.*complex"):
        getattr(lz.optim, name)([z]).step()


NARROW = [("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("AdamW", {}),
          ("NAdam", {}), ("RAdam", {}), ("Adamax", {}), ("RMSprop", {"centered": True, "momentum": 0.5}), ("Adagrad", {"lr_decay": 0.1}), ("Adadelta", {}),
          ("ASGD", {}), ("Rprop", {}), ("Lion", {}), ("Adafactor", {}), ("Muon", {})]


@pytest.mark.parametrize("dtype", [lz.bfloat16, lz.float16])
@pytest.mark.parametrize(("name", "options"), NARROW)
def test_floats_of_16_bits_move_as_those_of_32_rounded(name, options, dtype):
    shapes = [(2, 3)] if name == "Muon" else [(), (2, 3)]  # a number first: it is not rounded with the others
    narrow = [lz.nn.Parameter(lz.linspace(-1, 2, 6)[:np.prod(s, dtype=int)].reshape(s).to(dtype)) for s in shapes]
    wide = [lz.nn.Parameter(p.detach().float()) for p in narrow]
    optimizers = [getattr(lz.optim, name)(params, lr=0.125, **options) for params in (narrow, wide)]
    for steps in range(3):
        for p, q in zip(narrow, wide, strict=True):
            p.grad = (p.detach().float() * 1.5).to(dtype)
            q.grad = p.grad.float()
        for optimizer in optimizers:
            optimizer.step()
        for p, q in zip(narrow, wide, strict=True):
            assert p.dtype == dtype and lz.allclose(p.float(), q, rtol=0.02, atol=0.02)
            assert steps or name in ("Adafactor", "Muon") or p.tolist() == q.to(dtype).tolist()


@pytest.mark.parametrize("shape", [(5, 1), (1,), (), (0, 4), (3, 1, 1), (3, 4)])
@pytest.mark.parametrize("key", ["row_var", "col_var"])
def test_variances_of_other_dims_are_refused(key, shape):
    w = lz.nn.Parameter(lz.ones(3, 4))
    w.grad = lz.ones(3, 4)
    optimizer = lz.optim.Adafactor([w])
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    state["state"][0][key] = lz.ones(shape)
    with pytest.raises(lz.Error, match=r"state 0 is f32\[.*\] and must be f32\["):
        optimizer.load_state_dict(state)
        optimizer.step()
