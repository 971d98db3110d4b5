"""A step with a bad label: the error is thrown once, nothing of the step is taken, and training goes on."""

import threading

import numpy as np
import pytest

import lazuli as lz

F = lz.nn.functional
OPTIMISERS = {
    "SGD": lambda p: lz.optim.SGD(p, lr=0.1),
    "momentum": lambda p: lz.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: lz.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: lz.optim.AdamW(p, lr=0.01, amsgrad=True),
    "NAdam": lambda p: lz.optim.NAdam(p, lr=0.01),
    "RMSprop": lambda p: lz.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "Adagrad": lambda p: lz.optim.Adagrad(p, lr=0.01),
}
GOOD, BAD = [0, 1, 2, 1], [0, 1, 7, 1]


class Run:
    def __init__(self, optimiser, dropout=True):
        lz.manual_seed(3)
        layers = [lz.nn.Linear(4, 8), lz.nn.BatchNorm1d(8), lz.nn.ReLU(), lz.nn.Linear(8, 3)]
        if dropout:
            layers.insert(3, lz.nn.Dropout(0.25))
        self.model = lz.nn.Sequential(*layers)
        self.opt = OPTIMISERS[optimiser](self.model.parameters())
        self.x = lz.tensor(np.linspace(-1, 1, 16, dtype="float32").reshape(4, 4))

    def step(self, labels, syncs=0):
        self.opt.zero_grad()
        loss = F.cross_entropy(self.model(self.x), lz.tensor(labels))
        if syncs > 0:
            lz.sync()
        loss.backward()
        if syncs > 1:
            lz.sync()
        self.opt.step()
        return loss

    def state(self):
        packed = self.opt.state_dict()["state"]
        kept = {i: {k: lz.as_tensor(v).tolist() for k, v in s.items()} for i, s in packed.items()}
        return {k: v.tolist() for k, v in self.model.state_dict().items()}, kept, lz.get_rng_state().tolist()


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("bad", [0, 2], ids=["first", "third"])
def test_training_goes_on_as_if_the_batch_had_not_been(optimiser, bad):
    run, expected = Run(optimiser), None
    for i in range(5):
        if i == bad:
            before = run.state()
            with pytest.raises(lz.Error, match=r"cross_entropy: label 7 is out of range \[0, 3\) \(failed_step_test.py:\d+\)"):
                run.step(BAD).item()
            lz.sync(wait=True)  # it is thrown once
            assert run.state() == before
        run.step(GOOD).item()
    skipped = run.state()
    run = Run(optimiser)
    for _ in range(5):
        run.step(GOOD).item()
    assert skipped == run.state()


@pytest.mark.parametrize("syncs", [1, 2])
@pytest.mark.parametrize("optimiser", ["momentum", "Adam"])
def test_a_step_of_several_programs_is_not_taken_either(optimiser, syncs):
    run = Run(optimiser, dropout=False)
    run.step(GOOD).item()
    before = run.state()
    with pytest.raises(lz.Error, match="7 is out of range"):
        run.step(BAD, syncs)
        lz.sync(wait=True)
    for _ in range(syncs + 1):  # the backward pass is a program of its own, with a check of its own
        lz.sync(wait=True)
    after = run.state()
    # Statistics of the first program, which ended well where the check is in another, stay.
    assert after[0]["0.weight"] == before[0]["0.weight"] and after[0]["3.bias"] == before[0]["3.bias"]
    assert after[1] == before[1]
    run.step(GOOD).item()
    assert run.state()[0]["0.weight"] != before[0]["0.weight"]


def test_a_loop_that_never_waits_skips_the_batch_alone():
    run, errors = Run("momentum", dropout=False), 0
    for i in range(8):
        try:
            run.step(BAD if i == 3 else GOOD)
            lz.mark_step()
        except lz.Error as error:
            assert "label 7" in str(error)
            errors += 1
    try:
        lz.sync(wait=True)
    except lz.Error:
        errors += 1
    assert errors == 1
    assert all(np.isfinite(p.tolist()).all() for p in run.model.parameters())


def test_gradients_left_over_do_not_poison_the_next_step():
    w = lz.ones(3, requires_grad=True)
    sgd = lz.optim.SGD([w], lr=0.5)
    x = lz.ones(1, 3)

    def step(label):
        F.cross_entropy(x * w, lz.tensor([label])).backward()  # no zero_grad before
        sgd.step()
        lz.sync(wait=True)
        sgd.zero_grad()

    step(1)
    kept = w.tolist()
    with pytest.raises(lz.Error, match="label 9"):
        step(9)
    assert w.tolist() == kept
    step(1)
    assert w.tolist() != kept


def test_a_hand_written_loop_that_replaces_data():
    w = lz.ones(3, requires_grad=True)

    def step(label):
        loss = F.cross_entropy((lz.ones(1, 3) * w), lz.tensor([label]))
        (g,) = lz.autograd.grad(loss, [w])
        w.data = w.data - 0.5 * g
        lz.sync(wait=True)

    step(1)
    kept = w.tolist()
    with pytest.raises(lz.Error, match="label 9"):
        step(9)
    assert w.tolist() == kept
    step(1)
    assert w.tolist() != kept


def test_an_error_that_another_thread_read_is_not_thrown_again():
    loss = F.cross_entropy(lz.ones(1, 3), lz.tensor([5]))
    lz.sync()
    read = []

    def reader():
        try:
            loss.item()
        except lz.Error as error:
            read.append(str(error))

    thread = threading.Thread(target=reader)
    thread.start()
    thread.join()
    assert "label 5" in read[0]
    assert (lz.ones(2) + 1).tolist() == [2, 2]


def test_counts_of_programs_do_not_change():
    run = Run("Adam", dropout=False)
    for _ in range(3):
        run.step(GOOD).item()
    compiled = lz.metrics.counter("UncachedCompile") if hasattr(lz.metrics, "counter") else None
    with pytest.raises(lz.Error):
        run.step(BAD).item()
    run.step(GOOD).item()
    if compiled is not None:
        assert lz.metrics.counter("UncachedCompile") == compiled
