"""lazuli.func.custom_jvp and custom_vjp, stop_gradient and checkpoint, beside closed forms."""

import pytest

import lazuli as lz
from lazuli.func import checkpoint, custom_jvp, custom_vjp, grad, hessian, jacfwd, jacrev, jvp, remat, stop_gradient, vmap


def vector(*values):
    return lz.tensor(values or (0.5, -1.0, 2.0), dtype=lz.float64)


def close(a, b, bound=1e-9):
    assert a.shape == b.shape and (a - b).abs().max().item() < bound


@custom_jvp
def tripled_jvp(x, y):
    """x.sin() * y, with a derivative for x that is three times the right one."""
    return x.sin() * y


@tripled_jvp.defjvp
def _rule(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return tripled_jvp(x, y), 3 * x.cos() * dx * y + x.sin() * dy


@custom_vjp
def tripled_vjp(x, y):
    return x.sin() * y


def _forward(x, y):
    return tripled_vjp(x, y), (x.cos(), x.sin(), y)


def _backward(residuals, ct):
    cos_x, sin_x, y = residuals
    return 3 * cos_x * ct * y, sin_x * ct


tripled_vjp.defvjp(_forward, _backward)


@pytest.mark.parametrize("f", [tripled_jvp, tripled_vjp])
def test_a_rule_gives_derivatives_of_any_mode_and_order(f):
    x, y, v = vector(), vector(2, 3, 4), vector(1, -1, 2)
    close(f(x, y), x.sin() * y)
    close(grad(lambda x: f(x, y).sum())(x), 3 * x.cos() * y)
    close(jvp(f, (x, y), (v, v))[1], 3 * x.cos() * y * v + x.sin() * v)
    close(jacfwd(f)(x, y), lz.diag(3 * x.cos() * y))
    close(jacrev(f)(x, y), lz.diag(3 * x.cos() * y))
    # The derivative of 3 cos(x) y, in which nothing is a call of f.
    close(hessian(lambda x: f(x, y).sum())(x), lz.diag(-3 * x.sin() * y))
    close(grad(lambda y: grad(lambda x: f(x, y).sum())(x).sum())(y), 3 * x.cos())
    close(grad(lambda x: grad(lambda y: f(x, y).sum(), 0)(y).sum())(x), x.cos())
    close(vmap(grad(lambda x, y: f(x, y).sum()))(lz.stack([x, x * 2]), lz.stack([y, y]))[1], 3 * (x * 2).cos() * y)
    z = x.clone().requires_grad_()
    f(z, y).sum().backward()
    close(z.grad, 3 * x.cos() * y)
    assert f.__name__ in ("tripled_jvp", "tripled_vjp") and not f(x, y).requires_grad


def test_rules_take_trees_keywords_and_arguments_without_derivatives():
    def power(n, tree, scale=2.0):
        return {"y": tree["x"]**n * scale, "n": lz.tensor(n)}

    by_jvp = custom_jvp(power, nondiff_argnums=(0,))

    @by_jvp.defjvp
    def rule(n, primals, tangents):
        (tree, scale), (dtree, dscale) = primals, tangents
        assert dscale.item() == 0
        return by_jvp(n, tree, scale), {"y": 10 * dtree["x"], "n": None}

    by_vjp = custom_vjp(power, nondiff_argnums=(0,))
    by_vjp.defvjp(lambda n, tree, scale: (power(n, tree, scale), ("kept", tree["x"])),
                  lambda n, residuals, ct: ({"x": 10 * ct["y"] * (residuals[0] == "kept")}, None))
    x = vector()
    for f in (by_jvp, by_vjp):
        found = grad(lambda t: f(3, t, scale=lz.tensor(5.0, dtype=lz.float64))["y"].sum())({"x": x})
        close(found["x"], lz.full_like(x, 10))
        assert f(3, {"x": x})["n"].item() == 3


def test_defjvps_adds_up_the_arguments():
    f = custom_jvp(lambda x, y, z: x * y + z)
    f.defjvps(lambda t, out, x, y, z: 2 * t * y, None, lambda t, out, x, y, z: t * out)
    x, y, z = vector(), vector(2, 3, 4), vector(1, 1, 1)
    found = grad(lambda *a: f(*a).sum(), (0, 1, 2))(x, y, z)
    close(found[0], 2 * y)
    close(found[1], lz.zeros_like(y))
    close(found[2], x * y + z)


def test_rules_go_through_loops():
    def scanned(x):
        return lz.control.scan(lambda c, v: (tripled_jvp(c, v), tripled_vjp(c, v)), x[0], x)[1].sum()

    def looped(x):
        c, total = x[0], 0
        for i in range(3):
            total = total + tripled_vjp(c, x[i])
            c = tripled_jvp(c, x[i])
        return total

    x = vector()
    close(grad(scanned)(x), grad(looped)(x))
    close(hessian(scanned)(x), hessian(looped)(x))

    @custom_jvp
    def root(a):
        return lz.control.while_loop(lambda v: (v * v - a).abs() > 1e-12, lambda v: 0.5 * (v + a / v), a)

    @root.defjvp
    def rule(primals, tangents):
        y = root(*primals)
        return y, tangents[0] / (2 * y)

    a = lz.tensor(2.0, dtype=lz.float64)
    close(grad(grad(root))(a), -0.25 / a**1.5)


def test_mistakes_in_rules_are_named():
    x = vector().requires_grad_()
    with pytest.raises(AttributeError, match="custom_jvp: f has no rule; define it with defjvp"):
        def f(x):
            return x
        custom_jvp(f)(x)
    with pytest.raises(AttributeError, match="custom_vjp: f has no rules; define them with defvjp"):
        custom_vjp(f)(x)
    g = custom_jvp(f)
    g.defjvp(lambda primals, tangents: tangents[0])
    with pytest.raises(TypeError, match="custom_jvp: the rule of f must return a pair, the result and its tangent, not Tensor"):
        g(x).sum().backward()
    g.defjvp(lambda primals, tangents: (primals[0], tangents[0].sum()))
    with pytest.raises(TypeError, match=r"custom_jvp: the rule of f must return a tangent of the result's shape, \(3,\), not \(\)"):
        g(x).sum().backward()
    h = custom_vjp(f)
    h.defvjp(lambda x: (x, None), lambda res, ct: ct)
    with pytest.raises(TypeError, match="custom_vjp: the backward rule of f must return a tuple of 1 gradients, not a Tensor"):
        h(x).sum().backward()
    h.defvjp(lambda x: x, lambda res, ct: (ct,))
    with pytest.raises(TypeError, match="custom_vjp: the forward rule of f must return a pair, the result and residuals, not Tensor"):
        h(x)
    with pytest.raises(RuntimeError, match="custom_jvp: there are no symbolic zeros"):
        g.defjvp(f, symbolic_zeros=True)


def test_stop_gradient_and_checkpoint():
    x = vector()
    close(grad(lambda x: (stop_gradient({"a": x, "n": 1})["a"] * x).sum())(x), x)
    for wrapper in (checkpoint, remat):
        f = wrapper(lambda x, k=1: (x.sin() * x).sum() * k)
        close(grad(f)(x), x.cos() * x + x.sin())
        close(hessian(lambda x: f(x, k=2))(x), 2 * lz.diag(2 * x.cos() - x * x.sin()))
    with pytest.raises(RuntimeError, match="checkpoint: takes no policy"):
        checkpoint(lambda x: x, policy=lambda *a: True)


def test_a_checkpoint_may_contain_transforms_and_loops():
    x, w = vector(), vector(2, 3, 4)
    inside = {
        "gradient": lambda x: grad(lambda y: (y.sin() * y * w).sum())(x) * x,
        "tangent": lambda x: jvp(lambda y: y.sin() * y, (x,), (w,))[1],
        "batch": lambda x: vmap(grad(lambda y: (y.sin() * x).sum()))(lz.stack([x, w])).sum(0),
        "loop": lambda x: lz.control.scan(lambda c, v: (c * v.sin(), c), x.sum(), x)[1],
        "branch": lambda x: lz.control.cond(x.sum() > 0, lambda y: y.sin() * w, lambda y: y, x),
    }
    for f in inside.values():
        again = remat(f)
        close(jacrev(again)(x), jacrev(f)(x))
        close(jacfwd(again)(x), jacfwd(f)(x))
        close(jacrev(jacfwd(again))(x), jacrev(jacfwd(f))(x))
        close(vmap(jacrev(again))(lz.stack([x, w])), vmap(jacrev(f))(lz.stack([x, w])))


def test_a_checkpoint_serves_batches_of_gradients_and_single_ones():
    x, ct = vector(), vector(1, 0.5, 2)
    out, back = lz.func.vjp(remat(lambda x: x.sin() * x), x)
    slopes = x.cos() * x + x.sin()
    close(vmap(back)(lz.eye(3, dtype=x.dtype))[0], lz.diag(slopes))
    close(back(ct)[0], slopes * ct)
    close(vmap(back)(2 * lz.eye(3, dtype=x.dtype))[0], 2 * lz.diag(slopes))
