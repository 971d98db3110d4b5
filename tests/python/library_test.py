"""Ops of the user's and callbacks, whose functions are Python's."""

import gc
import pathlib
import re
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import lazuli as lz


@lz.library.custom_op("library_test::power", mutates_args=())
def power(x: lz.Tensor, exponent: int = 2) -> lz.Tensor:
    return x.numpy() ** exponent


@power.register_fake
def _(x, exponent=2):
    return lz.empty_like(x)


def power_setup(ctx, inputs, output):
    x, ctx.exponent = inputs
    ctx.save_for_backward(x)


def power_backward(ctx, dy):
    (x,) = ctx.saved_tensors
    return dy * ctx.exponent * x ** (ctx.exponent - 1), None


power.register_autograd(power_backward, setup_context=power_setup)


def test_op_is_a_node_of_its_name():
    x = lz.tensor([1.0, 2.0, 3.0])
    y = power(x, exponent=3)
    assert "library_test::power(%0)" in lz.debug.graph_text([y])
    assert "config={x=*, exponent=3}" in lz.debug.graph_text([y])
    assert y.tolist() == [1, 8, 27]
    assert 'custom_call_target="library_test::power"' in lz.debug.last_hlo()


def test_gradients_of_any_order_and_mode():
    x = lz.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (dx,) = lz.autograd.grad(power(x, 3).sum(), x, create_graph=True)
    assert dx.tolist() == [3, 12, 27]
    assert lz.autograd.grad(dx.sum(), x)[0].tolist() == [6, 12, 18]
    assert lz.func.grad(lambda v: power(v).sum())(x).tolist() == [2, 4, 6]
    v = lz.ones(3)
    assert lz.func.jvp(power, (x.detach(),), (v,))[1].tolist() == [2, 4, 6]
    assert lz.library.opcheck(power, (x,)) == {"test_faketensor": "SUCCESS",
                                               "test_autograd_registration": "SUCCESS"}


def test_vmap_calls_it_for_each_sample_or_by_its_rule():
    x = lz.arange(6.0).reshape(3, 2)
    assert lz.vmap(power)(x).tolist() == [[0, 1], [4, 9], [16, 25]]
    sizes = []

    @lz.library.custom_op("library_test::double", mutates_args=())
    def double(x, y):
        sizes.append(x.shape)
        return (x + x).numpy(), y.numpy() * 2

    double.register_fake(lambda x, y: (lz.empty_like(x), lz.empty_like(y)))

    @double.register_vmap
    def _(info, in_dims, x, y):
        assert (info.batch_size, in_dims) == (3, (0, None))
        return double(x, y), (0, None)

    a, b = lz.vmap(double, in_dims=(0, None))(x, lz.tensor([1.0]))
    assert a.tolist() == [[0, 2], [4, 6], [8, 10]]
    assert b.tolist() == [[2], [2], [2]]
    assert sizes == [(3, 2)]


def test_arguments_are_changed_in_place():
    @lz.library.custom_op("library_test::append", mutates_args=("into",))
    def append(into: lz.Tensor, x: lz.Tensor, scale: float) -> None:
        into.add_(x * scale)

    total = lz.zeros(2)
    for i in range(3):
        append(total, lz.tensor([1.0, 2.0]), 0.5)
    assert total.tolist() == [1.5, 3]


def test_kernels_of_devices():
    @lz.library.custom_op("library_test::where", mutates_args=(), device_types="cpu")
    def where(x):
        return x.numpy() + 1

    where.register_fake(lz.empty_like)
    lz.library.register_kernel("library_test::where", "interpreter", lambda x: x.numpy() + 2)
    x = lz.zeros(1)
    assert where(x).item() == 1
    assert where(x.to("interpreter:0")).item() == 2
    message = "library_test::where: it has no kernel for npu, only for cpu, interpreter"
    with pytest.raises(NotImplementedError, match=message):
        where(x.to("npu:0"))


def test_mistakes_name_the_op():
    @lz.library.custom_op("library_test::wrong", mutates_args=())
    def wrong(x, how):
        if how == "raise":
            raise KeyError("no such row")
        return {"shape": x.numpy()[:1], "dtype": x.numpy().astype(np.int32), "pair": (x, x)}[how]

    x = lz.zeros(2)
    lz.sync(wait=True)  # the run that fails does not compute x
    with pytest.raises(RuntimeError, match="library_test::wrong: the shapes of its results are not known"):
        wrong(x, "raise")
    wrong.register_fake(lambda x, how: lz.empty_like(x))
    for how, message in {"raise": r"KeyError: 'no such row' \(library_test.py:\d+\)",
                         "shape": r"result 0 is float32\[1\], but its shape was said to be float32\[2\]",
                         "dtype": r"result 0 is int32\[2\], but its shape was said to be float32\[2\]",
                         "pair": r"TypeError: the function gives \(\*, \*\), but the shape function \*"}.items():
        y = wrong(x, how)
        with pytest.raises(lz.Error, match=rf"library_test__wrong: {message}.*library_test.py:\d+"):
            y.tolist()
    with pytest.raises(ValueError, match="there is an op named library_test::wrong already"):
        lz.library.custom_op("library_test::wrong", lambda x: x, mutates_args=())
    with pytest.raises(TypeError, match="library_test::wrong: takes tensors, numbers.*not object"):
        wrong(x, object())
    with pytest.raises(NotImplementedError, match="no derivative"):
        wrong(lz.zeros(2, requires_grad=True), "shape")
    assert lz.tensor(1.0).item() == 1


def test_pure_callback_takes_trees():
    def sums(x, pair, scale):
        return {"sum": np.float32(x.numpy().sum() * scale.item()), "rest": pair[0].numpy() - pair[1].numpy()}

    x = lz.arange(3.0)
    made = lz.pure_callback(sums, {"sum": lz.zeros(()), "rest": np.zeros(3, np.float32)}, x, (x, x + 1), scale=2.0)
    assert made["sum"].item() == 6
    assert made["rest"].tolist() == [-1, -1, -1]


def test_callbacks_in_batches():
    def f(how):
        return lz.vmap(lambda x, y: lz.pure_callback(seen, x, x, y, vmap_method=how), in_dims=(0, None))

    shapes = []

    def seen(x, y):
        shapes.append((x.shape, y.shape))
        return x.numpy() + y.numpy()

    x, y = lz.arange(6.0).reshape(3, 2), lz.ones(2)
    for how, expected in {"sequential": [((2,), (2,))] * 3, "expand_dims": [((3, 2), (1, 2))],
                          "broadcast_all": [((3, 2), (3, 2))]}.items():
        shapes.clear()
        assert f(how)(x, y).tolist() == (x + 1).tolist()
        assert shapes == expected
    with pytest.raises(NotImplementedError, match="pure_callback.seen does not say how it is called"):
        f(None)(x, y)
    with pytest.raises(TypeError, match="pure_callback: takes a str or None as `vmap_method`, not set"):
        f(set())(x, y)
    with pytest.raises(NotImplementedError, match="io_callback.lambda is ordered, and samples have no order"):
        lz.vmap(lambda v: lz.io_callback(lambda a: a.numpy(), v, v, ordered=True))(x)


def test_effects_in_batches_happen_for_each_sample():
    seen, x = [], lz.arange(6.0).reshape(3, 2)

    def f(v):
        lz.debug.callback(lambda a: seen.append(a.tolist()), v)
        return (v * lz.io_callback(lambda a: a.numpy() + 1, v, v).detach()).sum()

    assert lz.vmap(f)(x).tolist() == [2, 18, 50]
    assert seen == x.tolist()
    seen.clear()
    assert lz.vmap(lz.func.grad(f))(x).tolist() == (x + 1).tolist() and seen == x.tolist()
    seen.clear()
    assert lz.vmap(lambda v, w: (lz.debug.callback(lambda a: seen.append(a.tolist()), w), v)[1], in_dims=(0, None))(x, x[0]).shape == (3, 2)
    lz.sync(wait=True)
    assert seen == [[0, 1]]  # what all samples share happens once

    def squared(v):
        lz.debug.callback(lambda a: seen.append(a.tolist()), v)
        return v * v

    for transform in (lambda g: lz.func.grad(lambda x: g(x).sum())(x), lambda g: lz.func.jvp(g, (x,), (lz.ones(3, 2),))[1]):
        seen.clear()
        assert transform(lz.vmap(squared)).tolist() == (2 * x).tolist()
        lz.sync(wait=True)
        assert seen == x.tolist()  # and not again by derivatives


def test_effects_run_once_and_in_order():
    seen = []

    def note(x, name):
        seen.append((name.item(), x.item()))

    def step(x):
        lz.io_callback(note, None, x * 2, lz.tensor(1), ordered=True)
        y = x + 1
        with lz.after(y):
            lz.io_callback(note, None, x, lz.tensor(2), ordered=True)
        return y

    x = lz.tensor(1.0)
    for _ in range(3):
        x = step(x)
        lz.mark_step()
    lz.sync(wait=True)
    assert seen == [(1, 2), (2, 1), (1, 4), (2, 2), (1, 6), (2, 3)]
    assert "control-predecessors={" in lz.debug.last_hlo()
    assert x.item() == 4 and len(seen) == 6


def test_a_loop_compiles_its_callback_once():
    class Model:
        def log(self, x):
            self.last = x.item()

    model, x = Model(), lz.tensor(1.0)
    compiled = []
    for _ in range(4):
        x = x * 2
        lz.io_callback(model.log, None, x)
        lz.mark_step()
        compiled.append(lz.metrics.counter("UncachedCompile"))
    lz.sync(wait=True)
    assert model.last == 16
    assert compiled[1:] == [compiled[1]] * 3  # in the first call the number was not data yet


def test_functions_live_as_long_as_programs_that_call_them():
    class Function:
        def __call__(self, x):
            return x.numpy() + 1

    function = Function()
    alive = weakref.ref(function)
    y = lz.pure_callback(function, lz.zeros(1), lz.zeros(1))
    del function
    assert y.item() == 1
    assert alive() is not None  # the program may run again
    del y
    (lz.ones(1) + 1).item()  # a thread keeps its last program
    lz.clear_cache()
    gc.collect()
    assert alive() is None


def test_callbacks_in_loops_and_compiled_functions():
    seen = []

    def step(i, x):
        lz.io_callback(lambda a: seen.append(a.item()), None, x)
        return x + 1

    assert lz.control.fori_loop(0, 3, step, lz.tensor(0.0)).item() == 3
    assert seen == [0, 1, 2]
    calls = []

    @lz.compile
    def compiled(x):
        y = lz.pure_callback(np.sin, x, x)
        lz.io_callback(lambda a: calls.append(a.item()), None, y.sum())
        return y * 2

    for _ in range(4):
        assert compiled(lz.zeros(2)).tolist() == [0, 0]
    lz.sync(wait=True)
    assert calls == [0.0] * 4


def test_callbacks_of_several_threads_do_not_wait_for_each_other():
    """Each thread records under Python's lock while runs of all of them call Python."""
    def work(results, i):
        x = lz.tensor(float(i))
        for _ in range(20):
            x = lz.pure_callback(lambda a: a.numpy() + 1, x, x)
            lz.mark_step()
        results[i] = x.item()

    results = [None] * 3
    threads = [threading.Thread(target=work, args=(results, i)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [20, 21, 22]


def test_a_function_may_use_tensors_and_run_programs():
    weight = lz.tensor([2.0, 3.0])
    lz.sync(wait=True)
    x = lz.ones(2)
    for _ in range(4):
        x = lz.pure_callback(lambda a: a * weight + 0, x, x)
        lz.mark_step()
    assert x.tolist() == [16, 81]
    pending = weight * 2
    y = lz.pure_callback(lambda a: a + pending, x, x)
    with pytest.raises(lz.Error, match="uses a tensor that another thread has not synced|not computed yet"):
        y.tolist()


def test_debug_print_and_callback(capfd):
    x = lz.tensor([1.0, 2.0], requires_grad=True)
    lz.debug.print("x is {}, {name}", x, name=x.sum())
    got = []
    lz.debug.callback(lambda a: got.append(a.tolist()), x)
    (x * 2).sum().backward()
    lz.sync(wait=True)
    assert capfd.readouterr().out == "x is [1. 2.], 3.0\n"
    assert got == [[1, 2]]


def test_a_process_ends_while_a_callback_runs():
    program = """
import time, lazuli as lz
def slow(x):
    time.sleep(0.3)
    print("done", flush=True)
lz.io_callback(slow, None, lz.ones(1))
lz.mark_step()
"""
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (made.returncode, made.stdout) == (0, "done\n"), made


def test_instructions_of_hlo():
    x, w = lz.arange(6.0).reshape(2, 3).requires_grad_(), lz.ones(3, 2)
    y = lz.hlo.dot_general(x, w, (((1,), (0,)), ((), ())))
    assert " hlo::dot(%" in lz.debug.graph_text([y])
    assert "config={lhs_contracting_dims=[1], rhs_contracting_dims=[0]}" in lz.debug.graph_text([y])
    assert y.tolist() == [[3, 3], [12, 12]]
    assert lz.autograd.grad((y * y).sum(), x)[0].tolist() == [[12] * 3, [48] * 3]
    assert lz.vmap(lambda v: lz.hlo.negate(v))(x).tolist() == (-x).tolist()
    assert lz.hlo.slice(x, slice=[slice(0, 2), slice(0, 3, 2)]).tolist() == [[0, 2], [3, 5]]
    assert lz.hlo.and_(lz.tensor([6, 3]), lz.tensor([3, 5])).tolist() == [2, 1]
    assert lz.hlo.convert(x, dtype=lz.int32).dtype == lz.int32
    values, places = lz.hlo.topk(lz.tensor([1.0, 5.0, 3.0]), k=2, largest=True)
    assert (values.tolist(), places.tolist()) == ([5, 3], [1, 2])
    assert lz.hlo.iota(iota_dimension=0, shape=(3,), dtype=lz.int32).tolist() == [0, 1, 2]
    assert "Attributes: direction." in lz.hlo.compare.__doc__


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: lz.hlo.broadcast(x, dimensions=[0], shape=[1, 1.5]), r"broadcast: shape= takes integers, not \[1, 1.5\]"),
    (lambda x: lz.hlo.broadcast(x, dimensions=[0, 1], shape=[2, 2**64]), r"broadcast: shape= takes sizes of 63 bits, not \(2, 18446744073709551616\)"),
    (lambda x: lz.hlo.broadcast(x, dimensions=[0, 1], shape=[-1, 2]), r"broadcast: shape= takes sizes of 63 bits, not \(-1, 2\)"),
    (lambda x: lz.hlo.transpose(x, dimension=[1, 0]), "transpose: it has no attribute dimension, only dimensions"),
    (lambda x: lz.hlo.compare(x, x), "compare: its attribute direction is missing"),
    (lambda x: lz.hlo.transpose(x, dimensions="down"), "transpose: 'down' is not a value of its attribute dimensions"),
    (lambda x: lz.hlo.add(x), "add: takes 2 operands, not 1"),
    (lambda x: lz.hlo.add(x, lz.zeros(3)), "add: operands differ in dimensions"),
    (lambda x: lz.hlo.broadcast(x, dimensions=[0, 1]), "the result's shape must be declared"),
])
def test_mistakes_in_instructions(call, message):
    with pytest.raises((lz.Error, TypeError, ValueError), match=message):
        call(lz.zeros(2, 2))


def test_every_instruction_has_a_function():
    names = [opcode.name for opcode in lz._C._library.hlo_opcodes()]
    assert len(names) > 80 and {"dot", "gather", "fft", "convolution"} <= set(names)
    assert not {"parameter", "tuple", "all-reduce", "infeed", "while", "custom-call", "opt-barrier"} & set(names)


def test_composites_have_their_name_and_are_written_out():
    @lz.composite("library_test.gelu")
    def gelu(x, scale, approximate=False):
        return {"y": scale * x * (1 + (x / 2 ** 0.5).erf()) * weight, "approximate": approximate}

    weight = lz.tensor([2.0, 3.0], requires_grad=True)
    x = lz.tensor([1.0, -1.0], requires_grad=True)
    made = gelu(x, 0.5, approximate=True)
    assert made["approximate"] is True
    text = lz.debug.graph_text([made["y"]])
    assert " library_test.gelu(%" in text
    dx, dw = lz.autograd.grad(made["y"].sum(), [x, weight], create_graph=True)
    expected = lz.nn.functional.gelu(x) * weight
    assert lz.allclose(made["y"], expected)
    assert 'is_composite=true, frontend_attributes={composite.name="library_test.gelu"}' in lz.debug.last_hlo()
    assert " call(" not in lz.debug.last_optimized_hlo()
    ex, ew = lz.autograd.grad(expected.sum(), [x, weight], create_graph=True)
    assert lz.allclose(dx, ex) and lz.allclose(dw, ew)
    assert lz.allclose(lz.autograd.grad(dx.sum(), x)[0], lz.autograd.grad(ex.sum(), x)[0])


def test_composites_keep_gradients_of_their_own():
    @lz.func.custom_vjp
    def straight(x):
        return x.round()

    straight.defvjp(lambda x: (x.round(), None), lambda _, dy: (dy,))
    rounded = lz.composite("library_test.round")(lambda x: straight(x) * 2)
    x = lz.tensor([0.4, 1.7], requires_grad=True)
    y = rounded(x)
    assert y.tolist() == [0, 4]
    assert lz.autograd.grad(y.sum(), x)[0].tolist() == [2, 2]


def test_optimization_barrier():
    x = lz.tensor([1.0, 2.0], requires_grad=True)
    tree = lz.optimization_barrier({"a": x * 2, "b": (x + 1, 3)})
    assert tree["b"][1] == 3
    y = (tree["a"] * tree["b"][0]).sum()
    assert lz.autograd.grad(y, x)[0].tolist() == [6, 10]
    assert lz.debug.last_hlo().count("opt-barrier(") == 2
    assert lz.optimization_barrier(x).tolist() == [1, 2]


def test_the_examples_of_the_page_run():
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "custom_ops.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    names = {"lz": lz}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)  # noqa: S102
