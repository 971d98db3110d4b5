"""Hooks, gradients without .grad, and Einstein sums."""

import gc
import weakref

import numpy as np
import pytest

import lazuli as lz
from lazuli.autograd import backward, grad

INF, NAN = float("inf"), float("nan")


def test_a_hook_sees_and_replaces_a_gradient():
    x = lz.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    (y * y).sum().backward()
    assert seen == [[4, 8]] and x.grad.tolist() == [80, 160]
    handle.remove()
    (x.register_hook(lambda g: lz.zeros_like(g)))
    x.grad = None
    (x * 3).sum().backward()
    assert seen == [[4, 8]] and x.grad.tolist() == [0, 0]


def test_hooks_end_with_a_with():
    x = lz.tensor([1.0], requires_grad=True)
    with x.register_hook(lambda g: g * 5):
        (x * 1).backward()
    (x * 1).backward()
    assert x.grad.tolist() == [6]


def test_what_a_hook_raises_reaches_the_caller_of_backward():
    x = lz.tensor([1.0], requires_grad=True)

    def stop(gradient):
        raise KeyError("stop")

    x.register_hook(stop)
    with pytest.raises(KeyError, match="stop"):
        (x * 1).backward()
    y = lz.tensor([1.0], requires_grad=True)
    y.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="register_hook: the hook must give a Tensor or None, not int"):
        (y * 1).backward()
    with pytest.raises(RuntimeError, match=r"register_hook: f32\[1\] requires no gradient.*\(autograd_test.py:\d+\)"):
        lz.ones(1).register_hook(stop)


def test_a_hook_lives_as_long_as_its_tensor():
    class Hook:
        def __call__(self, gradient):
            return gradient

    hook = Hook()
    alive = weakref.ref(hook)
    x = lz.tensor([1.0], requires_grad=True)
    (x * 2).register_hook(hook)  # whose tensor is gone
    y = x * 3
    y.register_hook(hook)
    del hook
    gc.collect()
    assert alive() is not None
    del y
    gc.collect()
    assert alive() is None


def test_a_gradient_that_is_retained_follows_writes_in_place():
    x = lz.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y**2).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [12, 24] and x.grad.tolist() == [72, 144] and y.retains_grad
    y[0] = 5.0
    y.sum().backward()
    assert y.grad.tolist() == [13, 25]  # what it was, and that of its new elements
    base = x * 1
    part = base[1:]
    part.retain_grad()
    base.mul_(2)  # through the base
    (part * 7).sum().backward()
    assert part.grad.tolist() == [7]


def test_grad_leaves_grad_alone():
    x = lz.tensor([1.0, 2.0], requires_grad=True)
    w = lz.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    gx, gy = grad((y * y).sum(), [x, y], retain_graph=True)
    assert gx.tolist() == [18, 64] and gy.tolist() == [6, 16] and x.grad is None
    assert grad(y, w, grad_outputs=lz.tensor([1.0, 10.0]))[0].tolist() == [1, 20]
    unused = lz.tensor([1.0], requires_grad=True)
    assert grad((x * 2).sum(), [unused], allow_unused=True) == (None,)
    with pytest.raises(ValueError, match=r"grad: the outputs do not depend on input 0, f32\[1\].*\(autograd_test.py:\d+\)"):
        grad((x * 2).sum(), [unused])
    with pytest.raises(ValueError, match=r"grad: input 1, f32\[2\], requires no gradient"):
        grad((x * 2).sum(), [x, lz.ones(2)])


def test_gradients_of_gradients():
    x = lz.tensor([2.0, 3.0], requires_grad=True)
    first, = grad((x**3).sum(), x, create_graph=True)
    second, = grad(first.sum(), x, create_graph=True)
    assert first.tolist() == [12, 27] and second.tolist() == [12, 18]
    assert grad(second.sum(), x)[0].tolist() == [6, 6]


def test_a_penalty_on_the_gradient_trains():
    weight = lz.tensor([[0.5, -1.0]], requires_grad=True)
    x = lz.tensor([[1.0, 2.0]], requires_grad=True)
    slope, = grad(lz.tanh(x @ weight.t()).sum(), x, create_graph=True)
    (slope.norm() - 1).square().backward()
    assert weight.grad.shape == (1, 2) and x.grad is not None


def test_backward_of_several():
    x = lz.tensor([1.0, 2.0], requires_grad=True)
    backward([x * x, x.sum()], [lz.tensor([1.0, 10.0]), None])
    assert x.grad.tolist() == [3, 41]


def test_a_function_has_a_gradient_of_its_own():
    class Cube(lz.autograd.Function):
        @staticmethod
        def forward(ctx, x, by):
            ctx.save_for_backward(x)
            ctx.by = by
            return by * x**3

        @staticmethod
        def backward(ctx, dy):
            x, = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False)
            return 3 * ctx.by * x * x * dy, None

    x = lz.tensor([1.0, 2.0], dtype=lz.float64, requires_grad=True)
    y = Cube.apply(x, 2.0)
    assert repr(y) == "tensor([ 2., 16.], dtype=lazuli.float64, grad_fn=<CubeBackward>)"
    first, = grad(y.sum(), x, create_graph=True)
    assert first.tolist() == [6, 24] and grad(first.sum(), x)[0].tolist() == [12, 24]
    assert lz.autograd.gradcheck(Cube.apply, (x, 2.0)) and lz.autograd.gradgradcheck(Cube.apply, (x, 2.0))
    y.sum().backward()
    with pytest.raises(RuntimeError, match="freed by an earlier backward"):
        y.sum().backward()


def test_a_checkpoint_keeps_what_its_inputs_were():
    x = lz.tensor([1.0, 2.0], requires_grad=True)
    runs = []

    def f(a):
        runs.append(1)
        return {"y": lz.nn.functional.dropout(a.exp() * x, 0.5), "n": 3}

    h = x * 1
    made = lz.utils.checkpoint.checkpoint(f, h, use_reentrant=False)
    with lz.no_grad():
        h.add_(5)  # the function runs again on what it was
    made["y"].sum().backward()
    kept = (made["y"].detach() != 0).float() * 2
    assert made["n"] == 3 and len(runs) == 2
    assert (x.grad - kept * x.detach().exp() * (1 + x.detach())).abs().max().item() < 1e-5


def test_modules_have_hooks():
    layer, seen = lz.nn.Linear(2, 1, bias=False), []
    x = lz.ones(2).requires_grad_()
    plain = layer(x).item()
    before = layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    after = layer.register_forward_hook(lambda m, args, out: out + 1)
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0].shape, go[0].tolist())))
    layer(x).backward(lz.tensor([3.0]))
    assert abs(layer(x).item() - 2 * plain - 1) < 1e-5 and seen == [((2,), [3.0])]
    before.remove()
    after.remove()
    assert abs(layer(x).item() - plain) < 1e-6


def test_modes():
    x = lz.tensor([0.0, 4.0], requires_grad=True)

    @lz.no_grad()
    def without():
        yield lz.is_grad_enabled()

    assert list(without()) == [False] and lz.is_grad_enabled()
    with lz.inference_mode():
        y = lz.ones(2) * 2
    assert y.is_inference() and not lz.is_inference_mode_enabled()
    with pytest.raises(RuntimeError, match="made in inference mode cannot be saved for backward"):
        x * y
    with lz.autograd.detect_anomaly(), pytest.raises(RuntimeError, match=r"'SqrtBackward0' returned nan .* autograd_test.py:\d+ recorded"):
        (lz.sqrt(x) * 0).sum().backward()


EINSUMS = {"ij->ji": [(2, 3)], "ii": [(3, 3)], "ij,jk": [(2, 3), (3, 4)], "bij,bjk->bik": [(2, 3, 4), (2, 4, 2)],
           "...ij,...jk->...ik": [(2, 1, 2, 3), (4, 3, 2)], "bhqd,bhkd->bhqk": [(2, 2, 3, 4), (2, 2, 5, 4)],
           "i,j->ij": [(2,), (3,)], "iij,jk->ik": [(2, 2, 3), (3, 2)], "ab,bc,cd->da": [(2, 3), (3, 4), (4, 2)],
           "...->...": [(2, 3)], "ij->": [(2, 3)], "abc,cab->b": [(2, 3, 4), (4, 2, 3)]}


@pytest.mark.parametrize("equation", EINSUMS)
def test_einsum_is_numpys(equation):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in EINSUMS[equation]]
    got = lz.einsum(equation, *map(lz.tensor, arrays))
    np.testing.assert_allclose(got.numpy(), np.einsum(equation, *arrays), rtol=1e-12, atol=1e-12)
    assert lz.einsum(equation, [lz.tensor(a) for a in arrays]).shape == got.shape


def test_einsum_says_where_it_is_wrong():
    with pytest.raises(ValueError, match=r'^einsum: "ij->ix", position 5: \'x\' is of no operand \(autograd_test.py:\d+\)$'):
        lz.einsum("ij->ix", lz.ones(2, 2))
    with pytest.raises(TypeError, match="einsum: xs must be Iterable"):
        lz.einsum("ij", 3)


def gradients(function, *values):
    leaves = [lz.tensor(v, requires_grad=True) for v in values]
    function(*leaves).sum().backward()
    return [None if x.grad is None else x.grad.tolist() for x in leaves]


def assigned(index):
    def function(a, b):
        y = a * 1
        y[index] = b
        return y
    return function


def test_what_is_written_over_has_a_gradient_of_zeros():
    a, b = [1.0, -2.0], [3.0, 4.0]
    for function in (lambda a, b: (a * 1).copy_(b), lambda a, b: (a * 1).copy_(b * 1), assigned(slice(None)), assigned(...),
                     lambda a, b: (a * 1).copy_(a * 1).copy_(b)):
        assert gradients(function, a, b) == [[0, 0], [1, 1]]
    assert gradients(lambda a: (a * 1).fill_(3.0), a) == gradients(lambda a: (a * 1).zero_(), a) == [[0, 0]]
    assert gradients(lambda a, b: (a * 1).copy_(b) * a, a, b) == [b, a]
    assert gradients(lambda a: (a * 1).copy_(a), a) == [[1, 1]]
    assert gradients(lz.copysign, a, b) == [[1, -1], [0, 0]]


@pytest.mark.parametrize(("name", "rows"), [
    ("max", {(NAN, 1.0, 2.0): (1, 0, 0), (1.0, NAN, NAN): (0, 0.5, 0.5), (2.0, 2.0, 1.0): (0.5, 0.5, 0), (INF, INF, NAN): (0, 0, 1)}),
    ("min", {(NAN, 1.0, 2.0): (1, 0, 0), (NAN, NAN): (0.5, 0.5), (2.0, 1.0, 1.0): (0, 0.5, 0.5)}),
    ("median", {(NAN, 1.0, 2.0): (1, 0, 0), (1.0, NAN, NAN): (0, 0.5, 0.5), (2.0, 2.0, 1.0): (0.5, 0.5, 0)}),
    ("nanmedian", {(NAN, 1.0, 2.0): (0, 1, 0), (NAN, NAN): (0.5, 0.5), (INF, INF, NAN): (0.5, 0.5, 0)}),
    ("amax", {(1.0, 2.0, 2.0): (0, 0.5, 0.5)})])
def test_equal_elements_share_the_gradient_of_the_extremum_of_all(name, rows):
    for row, expected in rows.items():  # PyTorch's
        assert gradients(getattr(lz, name), list(row)) == [list(expected)], row


def test_a_gradient_that_arrives_as_it_was_given_keeps_its_history():
    x, y, w = (lz.tensor([1.0, 2.0], requires_grad=True) for _ in range(3))
    for output in (x, x + y, x.reshape(2)):
        with lz.no_grad():
            found, = grad([output], [x], [w], create_graph=True)
        assert found.requires_grad and grad(found, w, lz.tensor([3.0, 4.0]))[0].tolist() == [3, 4]
