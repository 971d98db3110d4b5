"""Functions whose calls are replayed: the same values as without, guards that fail, what is
refused."""

import pathlib
import re
import threading

import numpy as np
import pytest

import lazuli as lz
from lazuli import nn


def same(a, b):
    """Whether two tensors are equal bit for bit."""
    a, b = a.detach().numpy(), b.detach().numpy()
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_third_call_is_replayed_and_equal():
    def f(x, y):
        return lz.relu(x @ y) * 2.5 + x.sum()

    compiled = lz.compile(f)
    for step in range(6):
        x, y = lz.rand(3, 3), lz.rand(3, 3)
        assert same(compiled(x, y), f(x, y)), step
    assert compiled.replays == 4


def test_replay_records_no_nodes():
    compiled = lz.compile(lambda x: lz.exp(x) + 1)
    x = lz.rand(4)
    for _ in range(3):
        compiled(x)
    lz.sync()
    before = lz.metrics.counter("graph.nodes_recorded")
    compiled(x)
    assert lz.metrics.counter("graph.nodes_recorded") == before and compiled.replays == 2


def train(compiled, clips=False, steps=20, seed=3):
    """Parameters, losses and rates after some steps of a model with dropout, Adam and a
    schedule."""
    lz.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.BatchNorm1d(16),
                          nn.Linear(16, 3))
    optimizer = lz.optim.Adam(model.parameters(), lr=0.02, weight_decay=0.01)
    schedule = lz.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        schedule.step()
        return loss.detach()

    call = lz.compile(step) if compiled else step
    data = np.random.default_rng(0)
    losses, rates = [], []
    for _ in range(steps):
        x = lz.tensor(data.standard_normal((8, 6)), dtype=lz.float32)
        y = lz.tensor(data.integers(0, 3, 8))
        losses.append(call(x, y))
        lz.mark_step()
        rates.append(optimizer.param_groups[0]["lr"])
    counts = [state["step"] for state in optimizer.state.values()]
    tensors = [*model.parameters(), *model.buffers(), *losses,
               *(state[key] for state in optimizer.state.values()
                 for key in ("exp_avg", "exp_avg_sq")),
               *(p.grad for p in model.parameters())]
    return tensors, rates, counts, lz.rand(4), call


@pytest.mark.parametrize("clips", [False, True])
def test_training_is_that_of_the_plain_loop(clips):
    plain, rates, counts, drawn, _ = train(False, clips)
    tensors, its_rates, its_counts, its_drawn, call = train(True, clips)
    assert call.replays >= 14, call.explain()
    assert its_rates == rates and its_counts == counts and same(its_drawn, drawn)
    assert [same(a, b) for a, b in zip(tensors, plain, strict=True)] == [True] * len(plain)


def test_other_shape_dtype_and_device_are_recorded_and_said():
    compiled = lz.compile(lambda x: x * 2 + 1)
    for n in (4, 4, 4, 5, 5, 5, 4):
        assert same(compiled(lz.ones(n)), lz.full((n,), 3.0))
    assert compiled.replays == 3
    compiled(lz.ones(7))
    assert "argument 0 is f32[7]" in compiled.explain()
    for _ in range(3):
        assert compiled(lz.ones(4, dtype=lz.float64)).dtype == lz.float64
    assert compiled.replays == 4
    for _ in range(3):
        assert compiled(lz.ones(4, device="interpreter")).device == lz.device("interpreter")
    assert compiled.replays == 5


def test_replaced_parameter_and_loaded_state_are_seen():
    model = nn.Linear(2, 2)
    compiled = lz.compile(model)
    x = lz.ones(1, 2)
    with lz.no_grad():
        for _ in range(4):  # the first gives the layer attributes
            compiled(x)
        assert compiled.replays == 1
        model.load_state_dict({"weight": lz.ones(2, 2), "bias": lz.zeros(2)})
        assert compiled(x).tolist() == [[2, 2]]
        model.weight = nn.Parameter(lz.full((2, 2), 3.0))
        for _ in range(3):
            assert compiled(x).tolist() == [[6, 6]]
        model.weight.data = lz.full((2, 2), 4.0)
        for _ in range(3):
            assert compiled(x).tolist() == [[8, 8]]


def test_captured_tensors_are_read_and_written():
    total, scale = lz.zeros(3), lz.ones(3)

    def add(x):
        total.add_(x * scale)
        return total

    compiled = lz.compile(add)
    for step in range(1, 6):
        result = compiled(lz.ones(3))
        assert result.tolist() == [step] * 3 and total.tolist() == [step] * 3
    scale.fill_(10)
    compiled(lz.ones(3))
    assert total.tolist() == [15] * 3
    assert compiled.replays == 4, compiled.explain()


def test_arguments_that_are_written_to_and_returned():
    def f(x, y):
        x.add_(y)
        return x, y, x * 2

    compiled = lz.compile(f)
    for _ in range(4):
        x, y = lz.ones(3), lz.full((3,), 2.0)
        a, b, c = compiled(x, y)
        assert a is x and b is y and x.tolist() == [3] * 3 and c.tolist() == [6] * 3
    assert compiled.replays == 2


def test_the_same_tensor_twice_is_another_call():
    def f(x, y):
        x.mul_(2)
        return x + y

    compiled = lz.compile(f)
    for _ in range(3):
        assert compiled(lz.ones(2), lz.ones(2)).tolist() == [3, 3]
    for _ in range(3):
        x = lz.ones(2)
        assert compiled(x, x).tolist() == [4, 4]
    assert compiled(lz.ones(2), lz.ones(2)).tolist() == [3, 3]
    assert compiled.replays == 3


def test_views_as_arguments():
    def f(row, x):
        row.add_(1)
        return x.sum() + row.sum()

    compiled = lz.compile(f)
    for _ in range(4):
        x = lz.zeros(2, 3)
        assert compiled(x[0], x).item() == 6 and x.tolist() == [[1, 1, 1], [0, 0, 0]]
    assert compiled.replays == 2
    x = lz.zeros(2, 3)
    assert compiled(x[1], x).item() == 6 and x.tolist() == [[0, 0, 0], [1, 1, 1]]
    y = lz.zeros(2, 3)
    assert compiled(y[0], x).item() == 6


def test_results_that_are_views():
    def f(x):
        y = x * 2
        return y.t(), y[0], x[1], x.detach()

    compiled = lz.compile(f)
    for step in range(4):
        x = lz.full((2, 3), float(step))
        transposed, row, of_x, detached = compiled(x)
        assert transposed.shape == (3, 2) and transposed.stride() == (1, 3)
        row.fill_(7)
        assert transposed[:, 0].tolist() == [7] * 3 and transposed[:, 1].tolist() == [2 * step] * 3
        of_x.fill_(5)
        assert x[1].tolist() == [5] * 3 and detached[1].tolist() == [5] * 3
    assert compiled.replays == 2, compiled.explain()


def test_modes_are_guards():
    weight = lz.ones(3, requires_grad=True)

    def f(x):
        y = (x * weight).sum()
        if lz.is_grad_enabled():
            y.backward()
        return y.detach()

    compiled = lz.compile(f)
    for _ in range(3):
        compiled(lz.ones(3))
    with lz.no_grad():
        for _ in range(3):
            compiled(lz.ones(3))
    assert weight.grad.tolist() == [3] * 3
    compiled(lz.ones(3))
    assert weight.grad.tolist() == [4] * 3
    plain = lz.compile(lambda x: x @ x)
    x = lz.rand(4, 4)
    for _ in range(3):
        assert plain(x).dtype == lz.float32
    with lz.autocast("cpu", dtype=lz.bfloat16):
        for _ in range(3):
            assert plain(x).dtype == lz.bfloat16
    assert plain.replays == 2
    made = lz.compile(lambda: lz.ones(2))
    for _ in range(3):
        assert made().dtype == lz.float32
    lz.set_default_dtype(lz.float64)
    try:
        assert made().dtype == lz.float64
    finally:
        lz.set_default_dtype(lz.float32)


def test_training_mode_is_a_guard():
    model = nn.Dropout(0.5)
    compiled = lz.compile(model)
    x = lz.ones(100)
    with lz.no_grad():
        for _ in range(3):
            assert 0 < (compiled(x) == 0).sum().item() < 100
        model.eval()
        for _ in range(3):
            assert (compiled(x) == 0).sum().item() == 0
        model.train()
        assert 0 < (compiled(x) == 0).sum().item() < 100


def test_python_values_are_guards():
    options = {"scale": 2}

    def f(x, power, names=("a",)):
        return x * options["scale"] * power if names else x

    compiled = lz.compile(f)
    for _ in range(3):
        assert compiled(lz.ones(2), 3).tolist() == [6, 6]
    options["scale"] = 5
    for _ in range(3):
        assert compiled(lz.ones(2), 3).tolist() == [15, 15]
    assert compiled(lz.ones(2), 3.0).tolist() == [15, 15]
    assert compiled(lz.ones(2), 4).tolist() == [20, 20]
    assert compiled(lz.ones(2), 4, names=()).tolist() == [1, 1]
    assert compiled.replays == 2


def test_changes_of_python_objects_are_refused(capfd):
    seen = []

    def f(x):
        seen.append(1)
        return x + 1

    compiled = lz.compile(f)
    for step in range(1, 7):
        assert compiled(lz.ones(2)).tolist() == [2, 2] and len(seen) == step
    assert compiled.replays == 0 and "seen" in compiled.explain()
    assert capfd.readouterr().err.count("is not replayed") == 1


def test_reads_are_refused_with_their_line(capfd):
    def f(x):
        return x * (2 if x.sum() > 0 else 3)

    compiled = lz.compile(f)
    assert [compiled(lz.full((1,), v)).item() for v in (1.0, -1.0, 1.0, -1.0)] == [2, -3, 2, -3]
    text = capfd.readouterr().err
    assert text.count("is not replayed") == 1 and "reads" in text and "jit_test.py" in text


def test_history_of_results_is_refused():
    model = nn.Linear(2, 1)
    compiled = lz.compile(model)
    for _ in range(4):
        loss = compiled(lz.ones(1, 2)).sum()
        loss.backward()
    assert compiled.replays == 0 and model.weight.grad.tolist() == [[4, 4]]
    assert "it returns a tensor that requires a gradient, result 0, and" in compiled.explain()


def test_kept_tensors_are_refused():
    class Holder:
        kept = None

    holder = Holder()

    def f(x):
        holder.kept = x * 3
        return x + 1

    compiled = lz.compile(f)
    for step in range(5):
        compiled(lz.full((1,), float(step)))
        assert holder.kept.item() == 3 * step
    assert compiled.replays == 0


def test_iterators_are_refused():
    numbers = iter(range(100))
    compiled = lz.compile(lambda x: x * next(numbers))
    assert [compiled(lz.ones(1)).item() for _ in range(4)] == [0, 1, 2, 3]
    assert "numbers, an iterator" in compiled.explain()


def test_numbers_that_differ_are_not_replayed():
    clock = np.random.default_rng(0)
    drawn = []

    def f(x):
        return x * float(clock.random())

    compiled = lz.compile(f)
    for _ in range(12):
        drawn.append(compiled(lz.ones(1, dtype=lz.float64)).item())
    assert drawn == [float(v) for v in np.random.default_rng(0).random(12)]
    assert compiled.replays == 0 and "number" in compiled.explain()


def test_exceptions_pass_and_nothing_is_lost():
    weight = lz.zeros(2)

    def f(x, fail):
        weight.add_(x)
        if fail:
            raise KeyError("no")
        return weight * 1

    compiled = lz.compile(f)
    for step in range(1, 5):
        assert compiled(lz.ones(2), False).tolist() == [step] * 2
    for step in range(5, 9):
        with pytest.raises(KeyError):
            compiled(lz.ones(2), True)
        assert weight.tolist() == [step] * 2
    assert compiled(lz.ones(2), False).tolist() == [9, 9]


def test_failed_checks_leave_state_as_it_was():
    def run(compiled):
        table, count = lz.zeros(4, 2), lz.zeros(())

        def f(index):
            count.add_(1)
            return nn.functional.embedding(index, table) + count

        call = lz.compile(f) if compiled else f
        errors = []
        for i in (0, 1, 2, 9, 3):
            try:
                result = call(lz.tensor([i]))
                lz.mark_step()
                result.tolist()
            except lz.Error as error:
                errors.append((i, str(error).split(" (")[0]))
        return count.item(), errors

    assert run(True) == run(False)


def test_random_numbers_are_those_of_the_plain_loop():
    def f(x):
        return nn.functional.dropout(x, 0.5) + lz.rand(5)

    lz.manual_seed(11)
    plain = [f(lz.ones(5)) for _ in range(6)] + [lz.rand(3)]
    lz.manual_seed(11)
    compiled = lz.compile(f)
    again = [compiled(lz.ones(5)) for _ in range(6)] + [lz.rand(3)]
    assert compiled.replays == 4
    assert [same(a, b) for a, b in zip(again, plain, strict=True)] == [True] * 7


def test_hooks_of_gradients_are_seen():
    weight = lz.ones(2, requires_grad=True)

    def f(x):
        weight.grad = None
        (weight * x).sum().backward()

    compiled = lz.compile(f)
    for _ in range(4):
        compiled(lz.ones(2))
    handle = weight.register_hook(lambda gradient: gradient * 10)
    for _ in range(3):
        compiled(lz.ones(2))
        assert weight.grad.tolist() == [10, 10]
    handle.remove()
    for _ in range(3):
        compiled(lz.ones(2))
        assert weight.grad.tolist() == [1, 1]


def test_threads():
    weight = lz.ones(3)
    compiled = lz.compile(lambda x: x @ weight)
    wrong = []

    def work(n):
        for i in range(20):
            x = lz.full((3,), float(n + i))
            if compiled(x).item() != 3 * (n + i):
                wrong.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and compiled.replays > 40


def test_npu():
    compiled = lz.compile(lambda x, y: lz.tanh(x @ y))
    for _ in range(4):
        x, y = lz.rand(4, 4, device="npu"), lz.rand(4, 4, device="npu")
        assert same(compiled(x, y), lz.tanh(x @ y))
    assert compiled.replays == 2


def test_frequent_misses_are_said_once(capfd):
    compiled = lz.compile(lambda x: x + 1)
    for n in (2, 2):
        compiled(lz.ones(n))
    for n in range(3, 23):
        assert compiled(lz.ones(n)).shape == (n,)
    assert capfd.readouterr().err.count("recorded anew") == 1


def test_decorator_methods_and_nesting():
    @lz.jit
    def inner(x):
        return x * 2

    @lz.compile(fullgraph=False)
    def outer(x):
        return inner(x) + 1

    for _ in range(4):
        assert outer(lz.ones(1)).item() == 3
    assert outer.replays == 2 and inner.replays == 0

    class Scaler:
        def __init__(self, by):
            self.by = by

        @lz.jit
        def __call__(self, x):
            return x * self.by

    assert lz.jit(inner) is inner and lz.compile(len) is len
    a, b = Scaler(2), Scaler(3)
    assert [a.__call__(lz.ones(1)).item(), b.__call__(lz.ones(1)).item()] == [2, 3]


def test_trees_of_tensors():
    def f(batch, *, flags):
        return {"sum": batch["x"] + batch["y"][0], "kept": (flags[0], None)}

    compiled = lz.compile(f)
    for step in range(4):
        result = compiled({"x": lz.ones(2), "y": [lz.full((2,), float(step))]}, flags=("on",))
        assert result["sum"].tolist() == [step + 1] * 2 and result["kept"] == ("on", None)
    assert compiled.replays == 2


def test_a_captured_tensor_given_as_an_argument():
    weight = lz.ones(2)

    def f(x):
        weight.add_(1)
        return x * weight

    compiled = lz.compile(f)
    for _ in range(3):
        compiled(weight)
    other = lz.ones(2)
    now = weight.tolist()[0]
    assert compiled(other).tolist() == [now + 1] * 2
    assert compiled(weight).tolist() == [(now + 2) ** 2] * 2


def test_donated_arguments():
    @lz.jit(donate_argnames="state")
    def step(state, x):
        return state + x

    state = lz.zeros(3)
    for i in range(5):
        given, state = state, step(state, lz.ones(3))
        with pytest.raises(lz.Error, match="given to a compiled function"):
            given.tolist()
        assert state.tolist() == [i + 1] * 3
    assert step.replays == 3
    with pytest.raises(ValueError, match="no argument 'other'"):
        lz.jit(lambda x: x, donate_argnames=("other",))


def test_the_page_about_it_holds():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "compile.md").read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    exec(compile(program, "compile.md", "exec"), {"__name__": "page"})


def test_transforms_are_replayed():
    """They make leaves of their arguments, and of tensors from outside: nobody else sees those."""
    w = lz.tensor([1.0, 2.0, 3.0])

    def f(x):
        return (x**3 * w).sum()

    for transformed, values in ((lz.func.grad(f), [3, 24, 81]), (lz.func.hessian(f), [[6, 0, 0], [0, 24, 0], [0, 0, 54]]),
                                (lambda x: lz.func.jvp(f, (x,), (lz.ones(3),))[1], 108), (lz.func.vmap(lz.func.grad(lambda x: x**3)), [3, 12, 27])):
        compiled = lz.jit(transformed)
        for scale in (1, 2, 1):
            x = lz.tensor([1.0, 2.0, 3.0]) * scale
            assert compiled(x).tolist() == transformed(x).tolist()
        assert compiled(lz.tensor([1.0, 2.0, 3.0])).tolist() == values
        assert compiled.replays >= 1, compiled.explain()


def test_a_leaf_that_is_kept_is_not_replayed():
    kept = []

    @lz.jit
    def f(x):
        leaf = x.detach().requires_grad_()
        kept.append(leaf)
        return (leaf * 2).detach()

    for _ in range(4):
        assert f(lz.ones(2)).tolist() == [2, 2]
    assert len(kept) == 4 and f.replays == 0


def test_loops_and_branches_are_replayed():
    """Also such as draw random numbers, which are those of calls that are recorded."""
    def f(x):
        y, _ = lz.control.scan(lambda c, z: (c * 0.5 + z, c), lz.zeros(2), x)
        y = lz.control.fori_loop(0, 3, lambda i, y: y + lz.rand(2), y)
        return lz.control.cond(y.sum() > 100, lambda y: y * 2, lambda y: y + 1, y)

    compiled = lz.compile(f)
    lz.manual_seed(5)
    given = [lz.full((4, 2), float(i)) for i in range(6)]
    expected = [f(x).tolist() for x in given]
    lz.manual_seed(5)
    assert [compiled(x).tolist() for x in given] == expected
    assert compiled.replays == 4
