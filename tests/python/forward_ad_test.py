"""lazuli.autograd.forward_ad and the forward mode of gradcheck, beside closed forms."""

import pytest

import lazuli as lz
from lazuli.autograd import forward_ad as fwd
from lazuli.autograd import gradcheck, gradgradcheck


def vector(*values):
    return lz.tensor(values or (0.5, -1.0, 2.0), dtype=lz.float64)


def close(a, b, bound=1e-9):
    assert a.shape == b.shape and (a - b).abs().max().item() < bound


class Wrong(lz.autograd.Function):
    """sin(x), with another derivative."""

    @staticmethod
    def forward(ctx, x):
        return x.sin()

    @staticmethod
    def backward(ctx, dy):
        return dy * 3


def test_dual_tensors_carry_tangents():
    x, v = vector(), vector(1, -1, 2)
    with fwd.dual_level():
        dual = fwd.make_dual(x, v)
        y = (dual.sin() * x).cumsum(0)
        primal, tangent = fwd.unpack_dual(y)
        close(primal, (x.sin() * x).cumsum(0))
        close(tangent, (x.cos() * v * x).cumsum(0))
        assert not primal.requires_grad and not tangent.requires_grad
        close(fwd.unpack_dual(dual).tangent, v)
        assert fwd.unpack_dual(x * 2).tangent is None and fwd.unpack_dual(dual.floor()).tangent.abs().sum().item() == 0
        dual.mul_(dual)
        close(fwd.unpack_dual(dual).tangent, 2 * x * v)
        close(x, vector())
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
            fwd.make_dual(dual, v)
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            fwd.enter_dual_level()
    assert fwd.unpack_dual(y).tangent is None
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level"):
        fwd.make_dual(x, v)
    with pytest.raises(RuntimeError, match="exit_dual_level: there is no such level"):
        fwd.exit_dual_level()
    with fwd.dual_level(), pytest.raises(ValueError, match="Expected primal to be floating point or complex, but got: lazuli.int64"):
        fwd.make_dual(lz.arange(3), v)
    with fwd.dual_level(), pytest.raises(RuntimeError, match="make_dual: Expected tangent to have the shape and dtype of the primal"):
        fwd.make_dual(x, v[:2])


def test_tangents_are_differentiable():
    x, v = vector().requires_grad_(), vector(1, -1, 2).requires_grad_()
    with fwd.dual_level():
        tangent = fwd.unpack_dual(fwd.make_dual(x, v).sin()).tangent
        by_x, by_v = lz.autograd.grad(tangent.sum(), (x, v))
    close(by_x, -x.sin() * v)
    close(by_v, x.cos())
    with fwd.dual_level():  # forward over reverse
        dual = fwd.make_dual(x.detach(), v.detach())
        slope, = lz.autograd.grad((dual**3).sum(), dual, create_graph=True)
        close(fwd.unpack_dual(slope).tangent, 6 * x * v)


def test_gradcheck_checks_forward_mode():
    x = vector().requires_grad_()
    z = lz.tensor([1 + 2j, 0.5 - 1j], dtype=lz.complex128, requires_grad=True)
    assert gradcheck(lambda x: (x.sin() * x, x.sum()), (x,), check_forward_ad=True)
    assert gradcheck(lambda z: z * z.abs(), (z,), check_forward_ad=True)
    assert gradgradcheck(lambda x: x**3, (x,), check_fwd_over_rev=True)
    while_loop = lz.control.while_loop
    assert gradcheck(lambda x: while_loop(lambda v: v.sum() < 9, lambda v: v * v * 2, x), (x,), check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(RuntimeError, match="In forward mode: Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, (x,), check_forward_ad=True, check_backward_ad=False)


class Pushed(lz.autograd.Function):
    """x * y * n, whose tangent is twice the right one."""

    @staticmethod
    def forward(x, y, n):
        return x * y * n, x.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.n = inputs
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(y, x)

    @staticmethod
    def backward(ctx, dz, ds):
        x, y = ctx.saved_tensors
        return dz * y * ctx.n + ds, dz * x * ctx.n, None

    @staticmethod
    def jvp(ctx, dx, dy, none):
        assert none is None
        y, x = ctx.saved_tensors
        return 2 * ctx.n * (dx * y + x * dy), dx.sum()


def test_a_function_may_have_a_rule_for_forward_mode():
    x, y, v = vector(), vector(2, 3, 4), vector(1, -1, 2)
    f = lambda x, y: Pushed.apply(x, y, 3)  # noqa: E731
    close(lz.func.grad(lambda x: f(x, y)[0].sum())(x), 3 * y)
    tangents = lz.func.jvp(f, (x, y), (v, v))[1]
    close(tangents[0], 6 * (v * y + x * v))
    close(tangents[1], v.sum())
    close(lz.func.jacfwd(lambda x: f(x, y)[0])(x), lz.diag(6 * y))
    close(lz.func.jvp(lambda y: f(x, y)[0], (y,), (v,))[1], 6 * x * v)
    close(lz.vmap(lambda x: lz.func.jvp(lambda x: f(x, y)[0], (x,), (v,))[1])(lz.stack([x, y]))[1], 6 * v * y)
    # The derivative of the tangent, which is linear in y.
    close(lz.func.grad(lambda y: lz.func.jvp(lambda x: f(x, y)[0], (x,), (v,))[1].sum())(y), 6 * v)
    close(lz.func.jvp(lambda c: lz.control.scan(lambda c, u: (f(c, u)[0], None), c, lz.stack([y]))[0], (x,), (v,))[1], 6 * v * y)
    with fwd.dual_level():
        close(fwd.unpack_dual(f(fwd.make_dual(x, v), y)[0]).tangent, 6 * v * y)


def test_a_rule_for_forward_mode_is_checked():
    class Few(Pushed):
        @staticmethod
        def jvp(ctx, dx, dy, none):
            return dx

    class Short(Pushed):
        @staticmethod
        def jvp(ctx, dx, dy, none):
            return dx[:2], dx.sum()

    x, v = vector(), vector(1, -1, 2)
    with pytest.raises(RuntimeError, match=r"Few: jvp returned an incorrect number of tangents \(expected 2, got 1\)"):
        lz.func.jvp(lambda x: Few.apply(x, x, 3), (x,), (v,))
    with pytest.raises(RuntimeError, match=r"Short: jvp returned a tangent of shape \(2,\) for a result of shape \(3,\)"):
        lz.func.jvp(lambda x: Short.apply(x, x, 3), (x,), (v,))
