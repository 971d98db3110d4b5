"""What is only in a reference cycle goes: Python's collector sees what our objects hold."""

import gc
import sys
import weakref

import numpy as np
import pytest

import lazuli as lz


class Thing:
    """What a cycle passes through, to be asked whether it has gone."""


class Samples(Thing):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return np.full(2, i, np.float32), np.int64(i)


class Batches(Samples):
    def get(self, indices):
        return np.zeros((len(indices), 2), np.float32), np.asarray(indices)


class Net(lz.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = lz.nn.Linear(16, 16)
        self.log = []

    def note(self, gradient):
        self.log.append(gradient)

    def forward(self, x):
        return self.fc(x)


def bound_method():
    net = Net()
    net.act = net.note
    return net


def closure():
    net = Net()
    net.act = lambda: net
    return net


def parent():
    net = Net()
    net.child = Net()
    object.__setattr__(net.child, "parent", net)
    return net


def layer_alone():
    layer = lz.nn.Linear(16, 16)
    object.__setattr__(layer, "me", layer)
    return layer


def sequential():
    net = lz.nn.Sequential(lz.nn.Linear(16, 16), lz.nn.ReLU())
    net.append(lambda x: (net, x)[1])
    return net


def optimizer_and_model():
    net = Net()
    net.opt = lz.optim.SGD(net.parameters(), lr=0.1)
    net.step = net.opt.step
    net.schedule = lz.optim.StepLR(net.opt, 2)
    net.later = lz.optim.LambdaLR(net.opt, lambda t: (net, 1.0)[1])
    return net


def schedules():
    net = Net()
    opt = lz.optim.SGD(net.parameters(), lr=0.1)
    first = lz.optim.LambdaLR(opt, lambda t: (net, 1.0)[1])
    net.both = lz.optim.SequentialLR(opt, [first, lz.optim.StepLR(opt, 2)], [3])
    net.both.step()
    return net


def traceback():
    net = Net()
    try:
        net(lz.zeros(3, 3))
    except ValueError as error:
        net.error = error
    return net


def dataset_of_its_loader():
    data = Samples()
    data.loader = lz.data.DataLoader(data, batch_size=2)
    return data


def dataset_of_its_parts():
    data = Batches()
    data.train, data.test = lz.data.random_split(data, [3, 1])
    data.loader = lz.data.DataLoader(lz.data.Repeat(lz.data.Subset(data.train, [0, 2]), 3))
    return data


def dataset_in_the_middle_of_an_epoch(prefetch=2):
    data = Batches()
    data.epoch = iter(lz.data.DataLoader(data, prefetch=prefetch))
    next(data.epoch)
    return data


def dataset_in_an_epoch_without_a_thread():
    return dataset_in_the_middle_of_an_epoch(prefetch=0)


def wants_gradient():
    x = lz.ones(256)
    x.requires_grad = True
    return x


def hook_of_a_leaf_on_itself():
    """A hook is not an attribute, so what holds it and is asked for is a thing beside it."""
    x, thing = wants_gradient(), Thing()
    x.register_hook(lambda g: (x, thing) and None)
    return thing


def hook_of_a_result_on_itself():
    x, thing = wants_gradient(), Thing()
    y = x * 2
    y.register_hook(lambda g: (y, thing) and None)
    return thing


def hook_on_what_is_computed_later():
    x, thing = wants_gradient(), Thing()
    y = x * 2
    loss = (y + 1).sum()
    y.register_hook(lambda g: (loss, thing) and None)
    return thing


def hook_of_a_parameter_on_its_module():
    net = Net()
    for parameter in net.parameters():
        parameter.register_hook(net.note)
    net.opt = lz.optim.SGD(net.parameters(), lr=0.1)
    return net


def hook_of_an_activation_on_its_module():
    net = Net()
    net.hidden = net.fc(lz.ones(2, 16))
    net.hidden.register_hook(net.note)
    net.hidden.sum().backward()
    net.loss = net.hidden * 2
    return net


def hook_after_a_training_step():
    net = hook_of_a_parameter_on_its_module()
    net.loss = net(lz.ones(2, 16)).sum()
    net.loss.backward()
    net.opt.step()
    assert len(net.log) == 2
    return net


HOOKS = [hook_of_a_leaf_on_itself, hook_of_a_result_on_itself, hook_on_what_is_computed_later, hook_of_a_parameter_on_its_module,
         hook_of_an_activation_on_its_module, hook_after_a_training_step]
CYCLES = [*HOOKS, bound_method, closure, parent, layer_alone, sequential, optimizer_and_model, schedules, traceback,
          dataset_of_its_loader, dataset_of_its_parts, dataset_in_the_middle_of_an_epoch, dataset_in_an_epoch_without_a_thread]


def bytes_in_use():
    lz.sync(True)
    gc.collect()
    return lz.memory_stats()["bytes_in_use"]


@pytest.mark.parametrize("make", CYCLES, ids=lambda make: make.__name__)
def test_a_cycle_is_freed(make):
    make()
    before = bytes_in_use()
    gone = [weakref.ref(make()) for _ in range(5)]
    lz.sync(True)
    gc.collect()
    assert [r() for r in gone] == [None] * 5
    assert bytes_in_use() == before


@pytest.mark.parametrize("make", [make for make in CYCLES if make not in HOOKS[:3]], ids=lambda make: make.__name__)
def test_a_cycle_that_is_in_use_stays(make):
    thing = make()
    names = set(vars(thing))
    for _ in range(3):
        gc.collect()
    assert set(vars(thing)) == names
    if isinstance(thing, lz.nn.Module):
        assert thing(lz.ones(2, 16)).shape == (2, 16)
        assert sum(p.numel() for p in thing.parameters()) >= 16 * 16
    else:
        assert len(list(lz.data.DataLoader(thing))) == 4


def test_a_thing_outside_is_not_held():
    """One reference each way is counted once: nothing is lost while it is used, nothing is kept afterwards."""
    thing, net = Thing(), Net()
    net.thing = thing
    count = sys.getrefcount(thing)
    gc.collect()
    assert sys.getrefcount(thing) == count and net.thing is thing
    held = weakref.ref(thing)
    del thing, net
    assert held() is None  # at once: there is no cycle


def called(keep):
    """What the hooks saw that were registered before keep() dropped what Python holds besides what it returns."""
    seen = []
    last = keep(lambda g: seen.append(g.sum().item()))
    for _ in range(3):
        gc.collect()
    last.sum().backward()
    return seen


def test_a_hook_stays_while_a_history_leads_to_it():
    def of_a_leaf(hook):
        x = wants_gradient()
        x.register_hook(lambda g: x is not None and hook(g))
        return x * 2

    def of_a_result(hook):
        y = wants_gradient() * 1
        y.register_hook(lambda g: y is not None and hook(g))
        return (y * y).exp() * 0

    def of_a_parameter(hook):
        net = Net()
        net.fc.weight.register_hook(lambda g: net is not None and hook(g))
        return net(lz.ones(2, 16))

    assert called(of_a_leaf) == [512]
    assert called(of_a_result) == [0]
    assert called(of_a_parameter) == [512]


def test_a_hook_stays_while_a_module_or_an_optimizer_leads_to_it():
    seen = []

    def module():
        net = Net()
        net.fc.weight.register_hook(lambda g: net is not None and seen.append(1))
        return net.fc

    def optimizer():
        net = Net()
        net.fc.weight.register_hook(lambda g: net is not None and seen.append(2))
        return lz.optim.SGD(net.parameters(), lr=0.1)

    layer, opt = module(), optimizer()
    gc.collect()
    layer(lz.ones(2, 16)).sum().backward()
    opt.param_groups[0]["params"][0].sum().backward()
    assert seen == [1, 2]


def test_a_hook_that_is_removed_is_dropped_at_once():
    x, thing = wants_gradient(), Thing()
    gone = weakref.ref(thing)
    handle = x.register_hook(lambda g, thing=thing: None)
    del thing
    handle.remove()
    assert gone() is None


def test_a_collection_in_a_hook_is_fine():
    x = wants_gradient()
    x.register_hook(lambda g: (gc.collect(), None)[1])
    y = x * 3
    y.register_hook(lambda g: (gc.collect(), None)[1])
    y.sum().backward()
    assert x.grad.sum().item() == 3 * 256


def test_results_dropped_in_any_order_show_their_hooks():
    random = np.random.default_rng(1)
    x = lz.ones(2, requires_grad=True)
    kept, things = [], []
    for i in range(2000):
        y = x * 2
        if i % 10 == 0:
            things.append(Thing())
            y.register_hook(lambda gradient, own=[y, things[-1]]: None)
        kept.append(y)
        if len(kept) > 50:
            del kept[random.integers(len(kept))]
    alive = [weakref.ref(thing) for thing in things]
    references = [weakref.ref(y) for y in kept]
    del y
    things.clear()
    gc.collect()
    held = sum(1 for y in kept if gc.is_tracked(y))  # those with hooks are shown to the collector
    assert sum(thing() is not None for thing in alive) == held < 50
    assert all(reference() is not None for reference in references)
    kept.clear()
    gc.collect()
    assert not any(reference() for reference in references)
    assert not any(thing() for thing in alive)
