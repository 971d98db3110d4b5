"""lazuli.control: loops and branches beside the same loops in Python, their gradients, programs, random numbers and errors."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import lazuli as lz
from lazuli import control


def compiles():
    return lz.metrics.counter("UncachedCompile")


def runs():
    return compiles() + lz.metrics.counter("CachedCompile")


def close(a, b, bound=1e-6):
    assert a.shape == b.shape and (a - b).abs().max().item() < bound


def test_a_scan_is_the_loop_of_its_steps_and_one_program():
    w, h0, xs = lz.randn(3, 3), lz.randn(3), lz.randn(1000, 3)
    lz.sync()
    calls, before, ran = [], compiles(), runs()

    def step(carry, x):
        calls.append(x)
        h = (w @ carry["h"] * 0.5 + x).tanh()
        return {"h": h, "n": carry["n"] + 1}, (h, h.sum())

    carry, (hs, sums) = control.scan(step, {"h": h0, "n": 0}, xs)
    assert carry["n"].item() == 1000 and len(calls) == 1
    assert (compiles() - before, runs() - ran) == (1, 1)
    assert hs.shape == (1000, 3) and sums.shape == (1000,)
    h = h0
    for i in range(4):
        h = (w @ h * 0.5 + xs[i]).tanh()
        close(hs[i], h)


def test_the_gradient_of_a_scan_is_that_of_the_loop():
    lz.manual_seed(3)
    w, h0, xs = (lz.randn(*dims).requires_grad_() for dims in ((3, 3), (3,), (6, 3)))

    def step(h, x):
        h = (w @ h + x * x).tanh()
        return h, h * w[0]

    h, ys = control.scan(step, h0, xs)
    (h.sum() + (ys * ys).sum()).backward()
    found = [t.grad.clone() for t in (w, h0, xs)]
    for t in (w, h0, xs):
        t.grad = None
    h, loss = h0, 0
    for i in range(6):
        h, y = step(h, xs[i])
        loss = loss + (y * y).sum()
    (h.sum() + loss).backward()
    for f, t in zip(found, (w, h0, xs)):
        close(f, t.grad, 1e-4)


def test_no_steps_leave_the_carry_and_its_gradient():
    x = lz.ones(2, requires_grad=True)
    carry, ys = control.scan(lambda c, v: (c * v, c), x, lz.zeros(0, 2))
    assert carry.tolist() == [1, 1] and ys.shape == (0, 2)
    (carry.sum() + control.fori_loop(3, 1, lambda i, c: c * 5, x).sum()).backward()
    assert x.grad.tolist() == [2, 2]


def test_gradcheck():
    w = lz.randn(2, 2, dtype=lz.float64).requires_grad_()
    x = lz.randn(3, 2, dtype=lz.float64).requires_grad_()

    def scanned(w, x):
        return control.scan(lambda c, v: ((w @ c).sin() + v, c * v), x[0], x)

    def looped(w, x):
        return control.fori_loop(0, 3, lambda i, c: (w @ c + x[i]).cos(), x[1])

    def chosen(w, x):
        return control.cond(w.sum() > 100, lambda a: a @ w, lambda a: (a * a) @ w, x)

    def nested(w, x):
        def step(c, v):
            return control.switch(1, [lambda t: t, lambda t: (w @ t).tanh()], c) + v, None
        return control.scan(step, x[0], x)[0]

    for f in (scanned, looped, chosen, nested):
        assert lz.autograd.gradcheck(f, (w, x))


class Cube(lz.autograd.Function):
    """x, with the gradient of x^3."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        return 3 * x * x * dy


def unrolled(step, carry, xs):
    ys = []
    for i in range(len(xs)):
        carry, y = step(carry, xs[i])
        ys.append(y)
    return carry, lz.stack(ys)


def nested(transforms, f):
    for transform in transforms:
        f = transform(f)
    return f


# Steps, of the carry, an element and w, with what their history holds of its own.
STEPS = {
    "plain": lambda c, v, w: ((w @ c + v).sin(), c * v),
    "detach": lambda c, v, w: (c * c.detach() * v + w[0] * w[1].detach(), c * v.detach()),
    "custom": lambda c, v, w: (Cube.apply(c) * w[0], Cube.apply(c * v)),
    "unused carry": lambda c, v, w: (c + v * v, w @ v * v),
    "branch": lambda c, v, w: (control.cond(v.sum() > 0, lambda t: (t * v).sin(), lambda t: t * t * w[0], c), c),
    "lapack": lambda c, v, w: (lz.linalg.solve(w + 3 * lz.eye(2, dtype=w.dtype), c).sin() + v, c),
}


def number_of(run, step):
    """A function of one tensor, which is part of the first carry, of elements and of what comes from outside."""
    def f(w):
        x = lz.cat([w, w * 2, w.sin()])
        carry, ys = run(lambda c, v: step(c, v, w), w[0], x)
        return (carry * carry).sum() + (ys * ys).sum()
    return f


@pytest.mark.parametrize("name", STEPS)
def test_a_scan_has_all_derivatives(name):
    lz.manual_seed(5)
    w = lz.randn(2, 2, dtype=lz.float64) * 0.6
    v = lz.randn(2, 2, dtype=lz.float64)

    def pushed(f):
        return lambda x: (lz.func.jvp(f, (x,), (v,))[1]).sum()

    def pulled(f):
        return lambda x: (lz.func.grad(f)(x) * v).sum()

    for chain in ((pulled, pulled), (pushed, pushed), (pulled, pulled, pulled), (pushed, pulled, pushed)):
        found, wanted = (nested(chain, number_of(run, STEPS[name]))(w) for run in (control.scan, unrolled))
        assert abs(found.item() - wanted.item()) < 1e-9 * max(1, abs(wanted.item())), (chain, found, wanted)


def test_a_reversed_scan_and_a_loop_have_all_derivatives():
    x = lz.randn(3, dtype=lz.float64)

    def reverse(x):
        return control.scan(lambda c, v: ((c * v).sin(), c), x.sum(), x, reverse=True)[1].sum()

    def reverse_unrolled(x):
        return unrolled(lambda c, v: ((c * v).sin(), c), x.sum(), x.flip(0))[1].sum()

    def loop(x):
        return control.fori_loop(1, 3, lambda i, c: c * c * x[i], x).sum()

    def loop_unrolled(x):
        return ((x * x * x[1])**2 * x[2]).sum()

    for f, g in ((reverse, reverse_unrolled), (loop, loop_unrolled)):
        for transform in (lz.func.hessian, lambda h: lz.func.jacfwd(lz.func.jacfwd(lz.func.grad(h)))):
            close(transform(f)(x), transform(g)(x), 1e-9)


def run_of_noisy_steps(count, **options):
    """The carry, results, gradients and a draw behind a scan whose steps draw."""
    lz.manual_seed(4)
    w, h, xs = (lz.randn(*dims, dtype=lz.float64).requires_grad_() for dims in ((3, 3), (3,), (count, 3)))

    def step(c, v):
        c = (w @ c + v).tanh() * (0.5 + lz.rand(3, dtype=lz.float64))
        return c, c * v

    c, ys = control.scan(step, h, xs, **options)
    return [c, ys, lz.rand(2), *lz.autograd.grad((c * c).sum() + (ys * ys).sum(), (w, h, xs))]


@pytest.mark.parametrize("every", [2, 3, 50])
def test_a_scan_with_checkpoints_is_the_same_scan(every):
    for count, reverse in ((1, False), (9, True), (10, False), (10, True)):
        for kept, plain in zip(run_of_noisy_steps(count, reverse=reverse, every=every), run_of_noisy_steps(count, reverse=reverse)):
            close(kept, plain, 1e-12)
    w = lz.randn(2, 2, dtype=lz.float64)
    kept, plain = (number_of(lambda *a, k=k: control.scan(*a, every=k), STEPS["plain"]) for k in (every, 1))
    for transform in (lz.func.hessian, lambda h: lz.func.jacfwd(lz.func.jacfwd(h))):
        close(transform(kept)(w), transform(plain)(w), 1e-12)
    close(lz.vmap(lz.func.grad(kept))(lz.stack([w, 2 * w])), lz.vmap(lz.func.grad(plain))(lz.stack([w, 2 * w])), 1e-12)


def test_a_scan_with_checkpoints_keeps_few_carries():
    def peak(every):
        w = lz.rand(512).requires_grad_()
        lz.sync()
        last, _ = control.scan(lambda c, _: ((c * w).sin(), None), lz.ones(512), None, length=1024, every=every)
        lz.autograd.grad(last.sum(), w)[0].tolist()
        return lz.debug.last_memory_plan()["peak"]

    assert peak(32) < 0.1 * peak(1)
    assert peak(1) > 4 * 512 * 1024


def test_a_branch_has_all_derivatives():
    x = lz.tensor([0.5, -2.0], dtype=lz.float64)

    def chosen(x):
        return control.cond(x[0] > 0, lambda a: (a * a).sin() * x, lambda a: a, x).sum() + control.switch(
            1, [lambda a: a, lambda a: a**3 * a.detach()], x).sum()

    def plain(x):
        return ((x * x).sin() * x).sum() + (x**3 * x.detach()).sum()

    for transform in (lz.func.hessian, lambda h: lz.func.jacrev(lz.func.hessian(h)), lambda h: lz.func.jacfwd(lz.func.jacfwd(h))):
        close(transform(chosen)(x), transform(plain)(x), 1e-9)
    close(lz.func.vmap(lz.func.hessian(chosen))(lz.stack([x, -x]))[0], lz.func.hessian(plain)(x), 1e-9)


def test_a_while_loop_has_forward_mode():
    def root(a):
        return control.while_loop(lambda v: (v * v - a).abs() > 1e-12, lambda v: 0.5 * (v + a / v), a)

    a = lz.tensor(2.0, dtype=lz.float64)
    one = lz.ones_like(a)
    value, tangent = lz.func.jvp(root, (a,), (one,))
    assert abs(value.item() - 2**0.5) < 1e-12 and abs(tangent.item() - 0.5 / 2**0.5) < 1e-9
    second = lz.func.jvp(lambda x: lz.func.jvp(root, (x,), (one,))[1], (a,), (one,))[1]
    assert abs(second.item() + 0.25 / 2**1.5) < 1e-6
    close(lz.func.vmap(lz.func.jacfwd(root))(lz.stack([a, 4 * a])), 0.5 / lz.stack([a, 4 * a]).sqrt(), 1e-9)
    out, push = lz.func.linearize(root, a)
    assert abs(push(one * 2).item() - 1 / 2**0.5) < 1e-9
    n = lz.tensor(3)
    pushed = lz.func.jacfwd(lambda x: control.fori_loop(0, n, lambda i, c: c * x * c.detach(), x))(a)
    x, t = 2.0, 1.0
    for _ in range(3):
        x, t = x * 2.0 * x, x * (2.0 * t + x)
    assert pushed.item() == pytest.approx(t)
    with pytest.raises(RuntimeError, match="while_loop: backward through a loop needs the number of its steps"):
        lz.func.grad(root)(a)


def test_random_steps_have_derivatives_of_the_same_draws():
    def walk(x):
        return control.scan(lambda c, v: (c * (v + lz.rand(2, dtype=lz.float64)), c), x, x.repeat(3, 1))[0].sum()

    x, step = lz.tensor([0.5, 1.5], dtype=lz.float64), 1e-5

    def slope(x):
        lz.manual_seed(2)
        return lz.func.grad(walk)(x)

    for i in range(2):
        by = lz.zeros(2, dtype=lz.float64)
        by[i] = step
        lz.manual_seed(2)
        found = lz.func.hessian(walk)(x)[i]
        close(found, (slope(x + by) - slope(x - by)) / (2 * step), 1e-6)


def test_other_bounds_run_the_same_program():
    def powers(n):
        return control.fori_loop(0, n, lambda i, v: v * 2, lz.ones(2))

    assert powers(3).tolist() == [8, 8]
    before = compiles()
    assert [powers(n).tolist()[0] for n in (0, 5, 20)] == [1, 32, 2**20]
    assert compiles() == before
    assert [powers(lz.tensor(n)).tolist()[0] for n in (0, 5, 20)] == [1, 32, 2**20]
    assert compiles() == before + 1


def test_a_while_loop_of_trees():
    def newton(a):
        def more(state):
            return (state["x"] * state["x"] - a).abs() > 1e-5

        def step(state):
            return {"x": 0.5 * (state["x"] + a / state["x"]), "steps": state["steps"] + 1}

        return control.while_loop(more, step, {"x": a, "steps": 0})

    found = newton(lz.tensor(9.0))
    assert abs(found["x"].item() - 3) < 1e-5 and 3 < found["steps"].item() < 10
    before = compiles()
    found = newton(lz.tensor(1.0))
    assert found["x"].item() == 1 and found["steps"].item() == 0
    assert compiles() == before


def test_branches_choose_by_a_value_and_not_by_a_program():
    def f(pred, x):
        return control.cond(pred, lambda x: {"y": x * 2}, lambda x: {"y": x.exp()}, x)["y"]

    x = lz.tensor([0.0, 0.0])
    assert f(x.sum() > 1, x).tolist() == [1, 1]
    before = compiles()
    x = lz.tensor([1.0, 1.0])
    assert f(x.sum() > 1, x).tolist() == [2, 2]
    assert compiles() == before
    assert f(True, x).tolist() == [2, 2]
    branches = [lambda: lz.tensor(10), lambda: lz.tensor(11), lambda: lz.tensor(12)]
    assert [control.switch(i, branches).item() for i in (-5, 0, 1, 2, 7)] == [10, 10, 11, 12, 12]


def test_associative_scan_and_map():
    x = lz.arange(1.0, 8.0)
    assert control.associative_scan(lambda a, b: a * b, x).tolist() == [1, 2, 6, 24, 120, 720, 5040]
    assert control.associative_scan(lambda a, b: a + b, x, reverse=True).tolist() == [28, 27, 25, 22, 18, 13, 7]
    assert control.map(lambda v: {"a": v + 1, "b": v * v}, x[:3])["b"].tolist() == [1, 4, 9]
    for size in (1, 3, 7, 9):
        made = control.map(lambda v: {"a": v[0] * v[1].sum(), "b": None, "c": 3.0}, (x, lz.ones(7, 2)), batch_size=size)
        assert made["a"].tolist() == (2 * x).tolist() and made["b"] is None and made["c"].tolist() == [3] * 7
    assert control.map(lambda v: v.sum(), lz.zeros(0, 2), batch_size=2).shape == (0,)


def test_torchs_names():
    x = lz.arange(6.0).reshape(2, 3)
    assert lz.cond(x.sum() > 0, lambda a: a + 1, lambda a: a, (x,)).sum().item() == 21
    i, v = lz.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (lz.tensor(0), lz.tensor(1.0)))
    assert (i.item(), v.item()) == (3, 8)
    carry, ys = lz.scan(lambda c, v: (c + v, c * 1), lz.zeros(2), x, dim=1)
    assert carry.tolist() == [3, 12] and ys.tolist() == [[0, 0, 1], [0, 3, 7]]
    assert lz.associative_scan(lambda a, b: a + b, x, 1, combine_mode="generic").tolist() == [[0, 1, 3], [3, 7, 12]]


def test_steps_draw_their_own_numbers_wherever_a_sync_falls():
    def drawn(sync):
        lz.manual_seed(11)
        first = lz.rand(2)
        if sync:
            lz.sync()
        _, numbers = control.scan(lambda c, _: (c, lz.rand(2)), lz.tensor(0.0), None, length=50)
        return numbers, lz.rand(2)

    (a, after), (b, again) = drawn(False), drawn(True)
    assert a.tolist() == b.tolist() and after.tolist() == again.tolist()
    assert len(set(a.flatten().tolist())) == 100 and 0.3 < a.mean().item() < 0.7
    kept = control.fori_loop(0, 200, lambda i, c: c + lz.nn.functional.dropout(lz.ones(4), 0.5).sum(), lz.tensor(0.0))
    assert 700 < kept.item() < 900
    with pytest.raises(lz.Error, match="come from the default generator"):
        generator = lz.Generator()
        control.fori_loop(0, 2, lambda i, c: c + lz.rand(1, generator=generator), lz.zeros(1))


def test_batches_inside_draw_other_numbers_in_each_step():
    def drawn(x, how):
        lz.manual_seed(3)
        return control.scan(lambda c, _: (lz.vmap(lambda v: v * (1 + lz.rand(())), randomness=how)(c), c), x, None, length=4)[0]

    for how, different in (("different", 12), ("same", 4)):
        numbers = control.map(lambda x: lz.vmap(lambda v: v + lz.rand(()), randomness=how)(x), lz.zeros(4, 3))
        assert len(set(numbers.flatten().tolist())) == different
        x = lz.ones(3)
        close(lz.func.grad(lambda x: drawn(x, how).sum())(x), drawn(x, how), 1e-5)
        close(lz.func.jvp(lambda x: drawn(x, how), (x,), (x,))[1], drawn(x, how), 1e-5)
    assert len(set(control.map(lambda v: v + lz.rand(()), lz.zeros(7), batch_size=3).tolist())) == 7


def test_a_layer_trains_inside():
    lz.manual_seed(0)
    cell, out = lz.nn.GRUCell(1, 8), lz.nn.Linear(8, 1)
    parameters = [*cell.parameters(), *out.parameters()]
    opt = lz.optim.Adam(parameters, lr=0.02)
    losses = []
    for _ in range(60):
        x = lz.randn(10, 16, 1)
        h, _ = control.scan(lambda h, v: (cell(v, h), None), lz.zeros(16, 8), x)
        loss = ((out(h) - x.sum(0) * 0.3) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        lz.mark_step()
        losses.append(loss)
    assert losses[-1].item() < 0.3 * losses[0].item()


def test_a_check_inside_is_an_error_of_the_run():
    table = lz.arange(4.0)
    _, found = control.scan(lambda c, i: (c, table[i]), lz.tensor(0), lz.tensor([1, 2, 3]))
    assert found.tolist() == [1, 2, 3]
    _, found = control.scan(lambda c, i: (c, table[i]), lz.tensor(0), lz.tensor([1, 2, 9]))
    with pytest.raises(IndexError, match=r"9 is out of range.*control_test.py"):
        found.tolist()


def refused(match, f, error=lz.Error):
    with pytest.raises(error, match=match):
        f()


def test_mistakes_are_named():
    x = lz.ones(2)
    scan = control.scan
    refused(r"scan: carried tensor 0 is f32\[2\] before a step, and f32\[\] after it.*control_test.py",
            lambda: scan(lambda c, v: (c.sum(), v), x, x))
    refused(r"scan: carried tensor 0 is f32\[2\] before a step, and f64\[2\]", lambda: scan(lambda c, v: (c.double(), v), x, x))
    refused(r"scan: init\['h'\]\[1\] is float32\[2\] before a step, and int64\[2\] after it; shape and dtype must stay the same in "
            r"<lambda> \(control_test.py:\d+\)", lambda: scan(lambda c, v: ({"n": None, "h": (c["h"][0], c["h"][1].long())}, v), {"n": None, "h": (x, x)}, x))
    refused(r"while_loop: init_val\[0\] is float32\[2\] before a step, and float32\[1\] after it",
            lambda: control.while_loop(lambda c: c[1] < 3, lambda c: (c[0][:1], c[1] + 1), (x, 0)))
    refused(r"scan: the function returns \(\*, \*\), but init is \*", lambda: scan(lambda c, v: ((c, c), v), x, x), TypeError)
    refused(r"must return a pair \(carry, result\), not Tensor", lambda: scan(lambda c, v: c, x, x), TypeError)
    refused("scan: without xs it needs a length", lambda: scan(lambda c, v: (c, v), x))
    refused(r"one of xs is f32\[3\], of 3 elements instead of 2", lambda: scan(lambda c, v: (c, None), x, (x, lz.ones(3))))
    refused(r"cond: result 0 is f32\[2\] of true_fn, and f32\[\] of false_fn",
            lambda: control.cond(True, lambda: x, lambda: x.sum()))
    refused(r"cond: the predicate must be one bool, not f32\[2\]", lambda: control.cond(x, lambda: x, lambda: x))
    refused(r"cond: false_fun returns \(\*, None\), but what the first function returns is \*",
            lambda: control.cond(True, lambda: x, lambda: (x, None)), TypeError)
    refused(r"while_loop: the condition must return one bool without dims, not pred\[2\]",
            lambda: control.while_loop(lambda c: c < 1, lambda c: c, x))
    refused("body_fun must be a function, not int", lambda: control.while_loop(lambda c: c, 3, x), TypeError)
    refused("scan: every must be 1 or more, not 0", lambda: scan(lambda c, v: (c, v), x, x, every=0))
    refused("scan: every must be an int, not float", lambda: scan(lambda c, v: (c, v), x, x, every=2.0), TypeError)
    refused("scan: unroll must be an int, not str", lambda: scan(lambda c, v: (c, v), x, x, unroll="2"), TypeError)
    refused("map: batch_size must be 1 or more, not 0", lambda: control.map(lambda v: v, x, batch_size=0), ValueError)
    refused("fori_loop: a bound must be an int or a tensor, not float", lambda: control.fori_loop(0, 1.5, lambda i, c: c, x), TypeError)


def test_what_a_function_cannot_do_is_named_with_its_line():
    x, w = lz.ones(2), lz.ones(2, requires_grad=True)
    refused("nothing runs while a function is traced.*control_test.py", lambda: control.scan(lambda c, v: (c + v.item(), v), x, x))
    refused("nothing runs while a function is traced", lambda: control.fori_loop(0, 2, lambda i, c: c if c.sum() > 0 else -c, x))
    refused("nothing runs while a function is traced", lambda: control.fori_loop(0, 2, lambda i, c: c + x.sum().item(), x))
    refused(r"add_: a tensor from outside of the function, f32\[2\], is changed in place.*control_test.py",
            lambda: control.fori_loop(0, 2, lambda i, c: c + x.add_(1), x))
    refused("the gradient of a tensor from outside of the function",
            lambda: control.fori_loop(0, 2, lambda i, c: ((w * 2).sum().backward(), c)[1], x))
    assert x.tolist() == [1, 1] and w.grad is None
    ours = control.fori_loop(0, 2, lambda i, c: c.add_(1).mul_(2), x)  # what is carried is the function's own
    assert ours.tolist() == [10, 10] and x.tolist() == [1, 1]
    endless = control.while_loop(lambda c: c.sum() < 5, lambda c: c * w + 1, x)
    refused("while_loop: backward through a loop needs the number of its steps", lambda: endless.sum().backward())


def test_an_error_of_the_function_is_its_own():
    class Own(Exception):
        pass

    def fails(c, v):
        raise Own

    with pytest.raises(Own):
        control.scan(fails, lz.ones(2), lz.ones(2))
    assert (lz.ones(2) + 1).tolist() == [2, 2]  # recorded where it was before


def seen_by(f):
    """(what f returns as lists, what its callbacks were given, how many ops the evaluator ran as it had no code for them)."""
    seen, before = [], lz.metrics.counter("fallback")
    result = f(lambda x: lz.debug.callback(lambda a: seen.append(a.item()), x))
    lz.sync(wait=True)
    return result.tolist(), seen, lz.metrics.counter("fallback") - before


def test_callbacks_inside_run_once_for_each_step_and_in_compiled_code():
    x = lz.tensor(2.0)

    def scanned(x, note):
        return control.scan(lambda c, v: ((note(c), c * v)[1], None), x, lz.arange(1.0, 4.0))[0]

    def looped(x, note):
        return control.while_loop(lambda c: c < 20, lambda c: (note(c), c * x)[1], x)

    def chosen(x, note):
        return control.cond(x > 0, lambda a: (note(a), a * a)[1], lambda a: (note(-a), a)[1], x)

    for f, steps in ((scanned, [2, 2, 4]), (looped, [2, 4, 8, 16]), (chosen, [2])):
        assert seen_by(lambda note: f(x, note))[1:] == (steps, 0)
        assert seen_by(lambda note: lz.func.jvp(lambda x: f(x, note), (x,), (x,))[1])[1:] == (steps, 0)
    assert seen_by(lambda note: lz.func.grad(lambda x: scanned(x, note))(x)) == (6, [2, 2, 4], 0)
    assert seen_by(lambda note: lz.func.grad(lambda x: chosen(x, note))(x)) == (4, [2], 0)
    assert seen_by(lambda note: control.fori_loop(0, 3, lambda i, c: (note(i), c + 1)[1], x)) == (5, [0, 1, 2], 0)


def test_derivatives_that_were_made_outside_are_used_inside():
    def f(x):
        return (x * x).sin() * x.sum()

    x, v = lz.tensor([0.5, -0.3, 0.2]), lz.tensor([1.0, 2.0, -1.0])
    _, back = lz.func.vjp(f, x)
    _, push = lz.func.linearize(f, x)
    for product in (lambda u: back(u)[0], push):
        wanted = product(product(v))
        assert lz.allclose(control.fori_loop(0, 2, lambda i, u: product(u), v), wanted)
        assert lz.allclose(control.scan(lambda u, _: (product(u), None), v, None, 2)[0], wanted)
        assert lz.allclose(control.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, product(c[1])), (0, v))[1], wanted)
        assert lz.allclose(control.cond(lz.tensor(True), lambda u: product(product(u)), lambda u: u, v), wanted)
        assert lz.allclose(control.map(product, product(v)[None]), wanted[None])
        assert lz.allclose(lz.vmap(lambda u: control.fori_loop(0, 2, lambda i, u: product(u), u))(v[None]), wanted[None])
        inner = control.scan(lambda u, _: (control.fori_loop(0, 1, lambda i, u: product(u), u), None), v, None, 2)[0]
        assert lz.allclose(inner, wanted)


def test_gradients_inside_go_through_what_was_computed_outside():
    w = lz.tensor([1.0, 2.0]).requires_grad_()
    y, z = w**3, w * 2

    def step(c, _):
        of_w, = lz.autograd.grad((y * c.detach() + z).sum(), w, create_graph=True)
        of_z, = lz.autograd.grad((y * z * c.detach()).sum(), z, create_graph=True)
        return c + of_w, of_z

    def looped(c):
        results = []
        for _ in range(3):
            c, of_z = step(c, None)
            results.append(of_z)
        return c, lz.stack(results)

    made, wanted = control.scan(step, lz.ones(2), None, 3), looped(lz.ones(2))
    assert lz.allclose(made[0], wanted[0]) and lz.allclose(made[1], wanted[1])
    gradients = [lz.autograd.grad(c.sum() + r.sum(), w, retain_graph=True)[0] for c, r in (made, wanted)]
    assert lz.allclose(*gradients)


def test_callbacks_of_inner_loops_run_once_though_derivatives_compute_the_inner_loop_again():
    def gradient(inner):
        seen = []

        def step(c, _):
            lz.debug.callback(lambda a: seen.append(a.item()), c)
            return (c * 1.5).sin(), c

        x = lz.tensor(0.5).requires_grad_()
        control.scan(lambda c, _: (inner(step, c), c), x, None, 4)[0].backward()
        return x.grad.item(), seen

    loops = [lambda step, c: control.scan(step, c, None, 3)[0], lambda step, c: control.fori_loop(0, 3, lambda i, c: step(c, i)[0], c),
             lambda step, c: control.cond(c < 9, lambda c: control.scan(step, c, None, 3)[0], lambda c: c, c)]
    results = [gradient(loop) for loop in loops]
    assert all(r == results[0] for r in results) and len(results[0][1]) == 12


def test_a_callback_inside_needs_a_gradient_only_if_somebody_wants_one():
    def f(x):
        return control.scan(lambda c, v: (lz.pure_callback(lambda a: a.numpy() * 2, c, c) + v, c), x, lz.arange(3.0))[0].sum()

    assert f(lz.zeros(2)).item() == 8
    with pytest.raises(lz.Error, match="pure_callback.*an argument wants a gradient.*control_test.py"):
        lz.func.grad(f)(lz.zeros(2))


PROGRAM = """
import lazuli as lz
from lazuli import control
w = lz.arange(9.0).reshape(3, 3).mul(0.1).requires_grad_()
def step(h, x):
    h = control.cond(x.sum() > 0, lambda h: (w @ h + x).tanh(), lambda h: h - x, h)
    return h, h.sum()
h, sums = control.scan(step, lz.ones(3), lz.arange(12.0).reshape(4, 3) - 5)
sums.sum().backward()
n = control.while_loop(lambda c: c < 50, lambda c: c * 3, lz.tensor(1.0))
print([round(v, 4) for v in sums.tolist() + w.grad.flatten().tolist()], n.item())
"""


def test_a_while_loop_deep_inside_refuses_backward_alone():
    """Loops inside record their backward where they are recorded, since they do not know whether somebody wants it."""
    def grown(c):
        return control.while_loop(lambda s: s.sum() < 5, lambda s: s * 2, c)

    def of_scan(x):
        return control.fori_loop(0, 2, lambda i, c: control.scan(lambda c, _: (grown(c), c), c, None, length=2)[0], x)

    def of_branch(x):
        return control.fori_loop(0, 2, lambda i, c: control.cond(c.sum() > 0, grown, lambda c: c, c), x)

    for f in (of_scan, of_branch):
        x = lz.tensor([1.0, 0.5])
        assert f(x).tolist() == [4, 2]
        assert lz.func.jvp(f, (x,), (lz.tensor([1.0, 3.0]),))[1].tolist() == [4, 12]
        with pytest.raises(lz.Error, match="while_loop: backward through a loop needs the number of its steps"):
            f(x.requires_grad_()).sum().backward()


def test_every_device_has_the_same_values():
    outputs = set()
    for device in ("cpu", "interpreter", "npu"):
        run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=os.environ | {"PJRT_DEVICE": device})
        assert run.returncode == 0, run.stderr
        outputs.add(run.stdout)
    assert len(outputs) == 1, outputs


def test_the_examples_of_the_page_run():
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "control_flow.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) > 4
    names = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)  # noqa: S102


def test_a_derivative_inside_gives_the_loop_no_history():
    """The leaf that jvp() makes of a tensor from outside is nobody's outside of the loop."""
    x, v = lz.ones(3), lz.ones(3)

    def pushed(x, v):
        return lz.func.jvp(lambda x: (x**4).sum() * x, (x,), (v,))[1]

    for made in (control.fori_loop(0, 2, lambda i, s: pushed(x, s), v), control.scan(lambda c, _: (pushed(x, c), None), v, None, length=2)[0],
                 control.cond(lz.tensor(True), lambda c: pushed(x, c), lambda c: c, v), lz.vmap(lambda c: pushed(x, c))(lz.ones(2, 3))):
        assert not made.requires_grad
    x.requires_grad_()
    made = control.fori_loop(0, 2, lambda i, s: pushed(x, s), v)
    (by_loop,) = lz.autograd.grad(made.sum(), x)
    (by_hand,) = lz.autograd.grad(pushed(x, pushed(x, v)).sum(), x)
    assert by_loop.tolist() == by_hand.tolist() and by_loop[0].item() > 0


def test_the_condition_of_a_counted_loop_needs_no_kernel():
    results = control.scan(lambda c, x: (c + x, c * x), lz.zeros(4), lz.ones(6, 4))
    lz.sync()
    assert results[0].tolist() == [6] * 4 and results[1][5].tolist() == [5] * 4
    control.scan(lambda c, x: (c + x, c * x), lz.zeros(4), lz.ones(7, 4))[0].tolist()
    assert re.search(r" while .* 0 \+ \d+ thunks an iteration", lz.debug.last_optimized_hlo())
