"""lazuli.func: derivatives of functions, nested in each other, of trees of tensors, beside closed forms."""

import gc
import pathlib
import re
import weakref
from collections import OrderedDict, namedtuple

import pytest

import lazuli as lz
from lazuli import func
from lazuli.func import (debug_unwrap, functional_call, functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize,
                         replace_all_batch_norm_modules_, value_and_grad, vjp)


def vector():
    return lz.tensor([1.0, 2.0, 3.0])


def cubes(x):
    return (x**3).sum()


def test_grad_has_the_values_and_leaves_the_caller_as_it_was():
    x = vector().requires_grad_()
    assert grad(cubes)(x).tolist() == [3, 12, 27]
    assert x.requires_grad and x.grad is None
    plain = vector()
    found = grad(cubes)(plain)
    assert found.tolist() == [3, 12, 27] and not found.requires_grad and not plain.requires_grad and plain.grad is None
    assert grad(lambda x: lz.tensor(3.0))(plain).tolist() == [0, 0, 0]
    assert grad(lambda x: x.detach().sum())(plain).tolist() == [0, 0, 0]


def test_values_come_in_the_order_of_the_name_and_aux_is_kept():
    x = vector()
    found, value = grad_and_value(cubes)(x)
    assert (found.tolist(), value.item()) == ([3, 12, 27], 36)
    value, found = value_and_grad(cubes)(x)
    assert (found.tolist(), value.item()) == ([3, 12, 27], 36)

    def with_aux(x):
        return cubes(x), {"squares": x**2, "n": 3}

    found, aux = grad(with_aux, has_aux=True)(x)
    assert found.tolist() == [3, 12, 27] and aux["squares"].tolist() == [1, 4, 9] and aux["n"] == 3
    assert not aux["squares"].requires_grad
    _, (value, aux) = grad_and_value(with_aux, has_aux=True)(x)
    assert value.item() == 36 and aux["n"] == 3
    (value, aux), _ = value_and_grad(with_aux, has_aux=True)(x)
    assert value.item() == 36 and aux["n"] == 3


def test_linearize_and_hessian_keep_aux():
    def f(x):
        return cubes(x), {"twice": 2 * x}

    value, push, aux = linearize(f, vector(), has_aux=True)
    assert value.item() == 36 and push(lz.ones(3)).item() == 42 and aux["twice"].tolist() == [2, 4, 6]
    second, aux = hessian(f, 0, True)(vector())
    assert second.diagonal().tolist() == [6, 12, 18] and aux["twice"].tolist() == [2, 4, 6]
    assert not aux["twice"].requires_grad


def test_argnums_choose_arguments():
    def f(x, y, *, k):
        return (x * y * k).sum()

    x, y, k = vector(), vector() + 1, lz.tensor(2.0)
    assert grad(f, -1)(x, y, k=k).tolist() == [2, 4, 6]
    found = grad(f, (1, 0))(x, y, k=k)
    assert isinstance(found, tuple) and [g.tolist() for g in found] == [[2, 4, 6], [4, 6, 8]]
    assert [g.tolist() for g in grad(f, (0,))(x, y, k=3)] == [[6, 9, 12]]
    assert [g.tolist() for g in grad(lambda x, y: (x * y).sum(), (0, 1))(x, x)] == [[1, 2, 3]] * 2


def test_trees_keep_their_structure():
    Pair = namedtuple("Pair", "a b")
    x = vector()
    tree = {"p": Pair(x, [x * 2]), "o": OrderedDict(z=x, y=(x,)), "unused": x}
    found = grad(lambda t: cubes(t["p"].a) + (t["p"].b[0] * t["o"]["z"] * t["o"]["y"][0]).sum())(tree)
    assert list(found) == ["p", "o", "unused"] and isinstance(found["p"], Pair) and isinstance(found["o"], OrderedDict)
    assert found["p"].a.tolist() == [3, 12, 27] and found["p"].b[0].tolist() == [1, 4, 9]
    assert found["o"]["y"][0].tolist() == [2, 8, 18] and found["unused"].tolist() == [0, 0, 0]
    output, back = vjp(lambda x: {"a": x * 2, "b": [x * x]}, x)
    ones = lz.ones(3)
    assert back({"b": [ones], "a": ones})[0].tolist() == [4, 6, 8]  # keys count, not their order
    assert output["b"][0].tolist() == [1, 4, 9]
    with pytest.raises(RuntimeError, match=r"vjp: cotangents must have the structure of the output, {'a': \*, 'b': \[\*\]}, not \(\*,\)"):
        back((ones,))


def test_objects_of_other_classes_reach_the_function_as_they_are():
    class Options(dict):
        power = 3

    assert grad(lambda x, options: (x**options.power).sum() * options["by"])(vector(), Options(by=2)).tolist() == [6, 24, 54]
    with pytest.raises(ValueError, match="grad: takes tensors to differentiate for, not Options"):
        grad(lambda options: options["x"].sum())(Options(x=vector()))
    assert jvp(lambda x: x.view(1, 3).max(1), (vector(),), (vector(),))[1][0].tolist() == [3]


def test_vjp_gives_products_as_often_as_it_is_called():
    x, y = vector(), vector() + 1
    output, back = vjp(lambda x, y: (x * y, x.sum()), x, y)
    assert output[0].tolist() == [2, 6, 12] and not output[0].requires_grad
    one, zero, none = lz.ones(3), lz.tensor(0.0), lz.zeros(3)
    assert [g.tolist() for g in back((one, zero))] == [[2, 3, 4], [1, 2, 3]]
    assert [g.tolist() for g in back((none, zero + 1))] == [[1, 1, 1], [0, 0, 0]]
    assert [g.tolist() for g in back((one, zero), retain_graph=False)] == [[2, 3, 4], [1, 2, 3]]
    with pytest.raises(RuntimeError, match="freed by an earlier backward"):
        back((one, zero))
    value, back, aux = vjp(lambda x: (x * 2, x + 5), x, has_aux=True)
    assert back(one)[0].tolist() == [2, 2, 2] and aux.tolist() == [6, 7, 8] and value.tolist() == [2, 4, 6]


def test_jvp_and_linearize_push_tangents():
    x, t = vector(), lz.tensor([1.0, 0.0, -1.0])
    for f, values in ((lambda x: x**2, [2, 0, -6]), (lambda x: x, [1, 0, -1]), (lambda x: x.reshape(3, 1) + 0, [[1], [0], [-1]]),
                      (lambda x: lz.ones(2), [0, 0]), (lambda x: x.long(), [0, 0, 0])):
        assert jvp(f, (x,), (t,))[1].tolist() == values
        assert linearize(f, x)[1](t).tolist() == values
    output, pushed, aux = jvp(lambda d, y: ([d["a"] * y], y), ({"a": x}, x), ({"a": t}, t), has_aux=True)
    assert output[0].tolist() == [1, 4, 9] and pushed[0].tolist() == [2, 0, -6] and aux.tolist() == [1, 2, 3]
    runs = []
    _, push = linearize(lambda x: (runs.append(1), x**3)[1], x)
    assert [push(t * n).tolist() for n in (1, 2)] == [[3, 0, -27], [6, 0, -54]] and len(runs) == 1
    z = lz.tensor([1 + 2j])
    assert jvp(lambda z: z * z, (z,), (z * 1j,))[1].tolist() == [2 * 1j * (1 + 2j)**2]


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians_have_the_dims_of_outputs_then_inputs(jacobian):
    x, y = vector(), lz.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = jacobian(lambda x, y: {"a": y @ x, "b": (x.sum(),)}, (0, 1))(x, y)
    assert found["a"][0].tolist() == y.tolist() and found["b"][0][0].tolist() == [1, 1, 1]
    assert found["a"][1].shape == (2, 2, 3) and found["a"][1][1].tolist() == [[0, 0, 0], [1, 2, 3]]
    assert found["b"][0][1].tolist() == [[0, 0, 0], [0, 0, 0]]
    found, aux = jacobian(lambda x: (x * 2, x), has_aux=True)(x)
    assert found.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 2]] and aux.tolist() == [1, 2, 3]
    assert jacobian(lambda x: x * 2)(x[:0]).shape == (0, 0) and jacobian(lambda x: x[:0])(x).shape == (0, 3)
    assert jacobian(lambda d: d["x"])({"x": x[:1]})["x"].tolist() == [[1]]
    assert not jacobian(lambda x: x * 2)(x).requires_grad


def test_hessian_has_a_block_for_each_two_inputs():
    x, y = vector(), vector()
    assert hessian(cubes)(x).tolist() == [[6, 0, 0], [0, 12, 0], [0, 0, 18]]
    (xx, xy), (yx, yy) = hessian(lambda x, y: (x * x * y).sum(), (0, 1))(x, y)
    assert xy.tolist() == yx.tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]] == xx.tolist() and not yy.any()
    assert hessian(lambda x: x**2)(x).shape == (3, 3, 3)


def test_transforms_nest():
    x = lz.tensor(2.0)
    f = lambda x: x**4  # noqa: E731
    assert [grad(f)(x).item(), grad(grad(f))(x).item(), grad(grad(grad(f)))(x).item()] == [32, 48, 48]
    v = vector()
    assert jacrev(grad(cubes))(v).tolist() == jacfwd(grad(cubes))(v).tolist() == jacrev(jacfwd(cubes))(v).tolist()
    assert grad(lambda x: hessian(cubes)(x).sum())(v).tolist() == [6, 6, 6]
    assert grad(lambda x: vjp(lambda y: y**2 * x, x)[1](lz.ones(3))[0].sum())(v).tolist() == [4, 8, 12]
    assert jvp(grad(cubes), (v,), (lz.ones(3),))[1].tolist() == [6, 12, 18]
    assert grad(lambda x: jvp(cubes, (x,), (x,))[1])(v).tolist() == [9, 36, 81]
    assert grad(lambda t: linearize(cubes, v)[1](t))(v).tolist() == [3, 12, 27]
    _, back = vjp(lambda x: x**2, v)
    found = grad(lambda w: (back(w)[0]**2).sum())(lz.ones(3))
    assert found.tolist() == [8, 32, 72] and not found.requires_grad
    assert grad(lambda x: jacfwd(lambda y: y * x)(x).sum() + grad(lambda y: (y * x).sum())(v).sum())(v).tolist() == [2, 2, 2]


def test_derivatives_of_different_levels_are_not_confused():
    # d/dx (x * d/dy (x + y)) = 1; a tape without levels gives 2.
    assert grad(lambda x: x * grad(lambda y: x + y)(x))(lz.tensor(3.0)).item() == 1
    assert grad(lambda x: grad(lambda y: x * x * y)(lz.tensor(5.0)))(lz.tensor(3.0)).item() == 6


def test_captured_tensors_are_constants_but_stay_differentiable_outside():
    x, w = vector(), vector().requires_grad_()
    found = grad(lambda x: (x * x * w).sum())(x)
    assert found.tolist() == [2, 8, 18] and found.requires_grad and w.grad is None
    found.sum().backward()
    assert w.grad.tolist() == [2, 4, 6]
    w.grad = None
    grad(cubes)(w).sum().backward()
    assert w.grad.tolist() == [6, 12, 18]
    first, second = grad(lambda x, w: (x * x).sum() + (w * w).sum(), (0, 1))(x, w)
    assert not first.requires_grad and second.requires_grad  # for they depend on x and w alone
    first, value = grad_and_value(lambda x, w: (x * x * w).sum())(x, w)
    assert first.requires_grad and value.requires_grad


def test_no_grad_around_a_transform_is_not_in_it():
    x = vector().requires_grad_()
    with lz.no_grad():
        found, value = grad_and_value(cubes)(x)
        assert not lz.is_grad_enabled()
    assert found.tolist() == [3, 12, 27] and not found.requires_grad and not value.requires_grad

    def outer(x):
        with lz.no_grad():
            inner = grad(cubes)(x)
        return (inner * x).sum()

    assert grad(outer)(vector()).tolist() == [3, 12, 27]
    with lz.inference_mode():
        assert grad(cubes)(vector()).tolist() == [3, 12, 27] and lz.is_inference_mode_enabled()


def test_arguments_that_are_differentiated_are_not_changed_in_place():
    x = vector()
    for f in (lambda x: x.mul_(2).sum(), lambda x: x[0].mul_(2)):
        for call in (grad(f), grad(grad(f)), lambda x, f=f: grad(lambda y: grad(f)(y * 2).sum())(x)):
            with pytest.raises(RuntimeError, match="in place"):
                call(x)
    assert x.tolist() == [1, 2, 3]
    z = vector()  # another argument is the caller's memory
    assert grad(lambda x, z: z.mul_(x).sum())(x, z).tolist() == [1, 2, 3]
    assert z.tolist() == [1, 4, 9] and not z.requires_grad
    assert grad(lambda x: x.clone().mul_(x).sum())(x).tolist() == [2, 4, 6]


INT = lz.tensor([1, 2])


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda x: grad(lambda x: x * 2)(x), RuntimeError, r"grad: the function must return a tensor without dims, not one of shape \(3,\)"),
    (lambda x: grad(lambda x: 3.0)(x), RuntimeError, "grad: the function must return a tensor, not float"),
    (lambda x: grad(cubes)(3.0), ValueError, "grad: takes tensors to differentiate for, not float"),
    (lambda x: grad(cubes)({"a": None}), ValueError, "grad: takes tensors to differentiate for, not NoneType"),
    (lambda x: grad(cubes)(INT), RuntimeError, "grad: only tensors of a floating-point or complex dtype .*int64"),
    (lambda x: grad(cubes, 1)(x), RuntimeError, "grad: argnums has 1, but there are 1 positional"),
    (lambda x: grad(cubes, ())(x), RuntimeError, "grad: argnums is an empty tuple"),
    (lambda x: grad(cubes, (0, -1))(x), RuntimeError, "grad: argnums names an argument twice"),
    (lambda x: grad(cubes, None)(x), RuntimeError, "grad: argnums must be an int or a tuple of ints, not NoneType"),
    (lambda x: grad(cubes, ("a",))(x), RuntimeError, "grad: argnums must hold ints, not str"),
    (lambda x: grad(cubes, has_aux=True)(x), RuntimeError, "grad: with has_aux the function returns a tuple"),
    (lambda x: grad(3), TypeError, "grad: takes a function, not int"),
    (lambda x: vjp(lambda x: [], x), RuntimeError, "vjp: the function returns no tensor"),
    (lambda x: vjp(lambda x: (x, 3), x), RuntimeError, "vjp: the function must return tensors, not int"),
    (lambda x: vjp(lambda x: x.long(), x), RuntimeError, "vjp: .*floating-point or complex dtype, not lazuli.int64"),
    (lambda x: vjp(cubes, x)[1](x), RuntimeError, r"vjp: cotangents must have the shapes of the output: \(\), not \(3,\)"),
    (lambda x: vjp(cubes, x)[1](3.0), RuntimeError, "vjp: cotangents must be tensors, not float"),
    (lambda x: jvp(cubes, x, x), RuntimeError, "jvp: primals must be a tuple, the function's arguments, not Tensor"),
    (lambda x: jvp(cubes, (), ()), RuntimeError, "jvp: primals must have a tensor"),
    (lambda x: jvp(cubes, (x,), (x, x)), RuntimeError, r"jvp: tangents must have the structure of primals, \(\*,\), not \(\*, \*\)"),
    (lambda x: jvp(cubes, (x,), (x[:2],)), RuntimeError, r"jvp: tangents must have the shapes of primals: \(3,\), not \(2,\)"),
    (lambda x: jvp(cubes, (INT,), (INT,)), ValueError, "jvp: only tensors of a floating-point"),
    (lambda x: jvp(lambda x: lz.ones(2), (x,), (x,), strict=True), RuntimeError, "jvp: an output of the function does not depend"),
    (lambda x: linearize(cubes, x)[1](x.double()), RuntimeError, "linearize: tangents must have the dtypes of primals"),
    (lambda x: jacrev(lambda x: x.long())(x), RuntimeError, "jacrev: the function must return tensors of a floating-point dtype"),
    (lambda x: jacrev(cubes)(x + 0j), RuntimeError, "jacrev: arguments must be real"),
    (lambda x: jacfwd(lambda x: x * 1j)(x), RuntimeError, "jacfwd: outputs must be real"),
    (lambda x: jacrev(cubes, chunk_size=0), ValueError, "jacrev: chunk_size must be greater than 0, not 0"),
    (lambda x: jacfwd(cubes, randomness="no"), RuntimeError, "jacfwd: randomness must be"),
    (lambda x: hessian(cubes)(INT), RuntimeError, "hessian: only tensors of a floating-point"),
    (lambda x: functionalize(cubes, remove="all"), RuntimeError, "functionalize: remove must be"),
    (lambda x: debug_unwrap(3), TypeError, "debug_unwrap: takes a tensor, not int")])
def test_a_mistake_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call(vector())
    assert grad(lambda x: x.sum())(vector()).tolist() == [1, 1, 1]  # and leaves no level behind
    assert not grad(cubes)(vector()).requires_grad


def test_a_function_that_raises_leaves_no_level_behind():
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            grad(grad(lambda x: 1 / 0))(vector())
    assert not grad(cubes)(vector()).requires_grad and lz.is_grad_enabled()


def test_arguments_live_as_long_as_what_needs_them():
    seen = []

    def f(x):
        seen.append(weakref.ref(x))
        return cubes(x)

    grad(f)(vector())
    _, back = vjp(f, vector())
    gc.collect()
    assert seen[0]() is None and seen[1]() is not None and back(lz.tensor(1.0))[0].tolist() == [3, 12, 27]
    del back
    gc.collect()
    assert seen[1]() is None


def test_functions_keep_their_names_and_some_need_nothing():
    assert grad(cubes).__name__ == hessian(cubes).__name__ == "cubes"
    x = vector()
    assert functionalize(cubes) is cubes and debug_unwrap(x) is x
    net = lz.nn.Sequential(lz.nn.Conv2d(1, 2, 1), lz.nn.BatchNorm2d(2))
    assert replace_all_batch_norm_modules_(net) is net
    assert net[1].running_mean is None and not net[1].track_running_stats and "1.running_var" not in net.state_dict()


def regression():
    lz.manual_seed(0)
    net = lz.nn.Sequential(lz.nn.Linear(3, 4), lz.nn.Tanh(), lz.nn.Linear(4, 1))
    x = lz.randn(8, 3)
    return net, {k: p.detach() for k, p in net.named_parameters()}, x, x.sum(1, keepdim=True)


def test_training_compiles_once_and_keeps_no_history():
    net, params, x, y = regression()
    step = grad_and_value(lambda params, x, y: ((functional_call(net, params, (x,)) - y)**2).mean())
    losses, compiled = [], []
    for _ in range(6):
        found, loss = step(params, x, y)
        params = {k: p - 0.1 * found[k] for k, p in params.items()}
        losses.append(loss)
        lz.mark_step()
        compiled.append(lz.metrics.counter("UncachedCompile"))
    assert compiled[2] == compiled[-1], compiled
    assert losses[-1].item() < losses[0].item() / 2
    assert not any(p.requires_grad for p in params.values()) and all(p.grad is None for p in net.parameters())


def test_a_call_syncs_nothing():
    net, params, x, y = regression()
    lz.sync(True)
    before = lz.metrics.counter("UncachedCompile"), lz.metrics.counter("CachedCompile")

    def loss(params):
        return ((functional_call(net, params, (x,)) - y)**2).mean()

    found = [grad(loss)(params), hessian(lambda x: (x**3).sum())(vector()), jvp(grad(loss), (params,), (params,))]
    assert (lz.metrics.counter("UncachedCompile"), lz.metrics.counter("CachedCompile")) == before
    assert found[1].tolist()[0] == [6, 0, 0]


def test_adapting_a_step_inside_a_loss_trains_through_it():
    net, params, x, y = regression()

    def loss(params):
        return ((functional_call(net, params, (x,)) - y)**2).mean()

    def adapted(params):
        found = grad(loss)(params)
        return loss({k: p - 0.1 * found[k] for k, p in params.items()})

    through = grad(adapted)(params)
    eps = 1e-2
    for name in ("0.bias", "2.bias"):
        moved = [adapted({**params, name: params[name] + sign * eps}).item() for sign in (1, -1)]
        assert through[name].sum().item() == pytest.approx((moved[0] - moved[1]) / (2 * eps), rel=2e-2)


def test_jit_has_the_signature_of_jax():
    def f(x, n, scale=1.0):
        return x * n * scale

    for compiled in (func.jit(f, static_argnums=1), func.jit(f, static_argnames=("n", "scale")), func.jit(static_argnames="n")(f)):
        assert [compiled(lz.ones(2), 3, scale=2.0).tolist() for _ in range(5)] == [[6, 6]] * 5
        assert compiled.replays == 3
        assert compiled(lz.ones(2), 4).tolist() == [4, 4] and compiled.replays == 3
    x = lz.ones(3)
    given = func.jit(f, donate_argnums=0)
    for _ in range(4):
        x = given(x, 2)
    assert x.tolist() == [16, 16, 16]
    assert func.vmap(func.jit(lambda v: v.sum()))(lz.ones(2, 3)).tolist() == [3, 3]
    with pytest.raises(ValueError, match="static_argnames has 'm', but the function has no such argument"):
        func.jit(f, static_argnames="m")
    with pytest.raises(RuntimeError, match="jit: argnums has 7, but there are 3 positional arguments"):
        func.jit(f, donate_argnums=7)
    with pytest.raises(TypeError, match="jit: takes a function, not int"):
        func.jit(3)


def test_the_examples_of_the_page_run():
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "transforms.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) > 3
    names = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)  # noqa: S102


def test_holomorphic_functions_have_complex_derivatives():
    z = lz.tensor([1 + 2j, 0.5 - 1j])
    assert lz.allclose(grad(lambda z: (z**3).sum(), holomorphic=True)(z), 3 * z * z)
    value, found = value_and_grad(lambda z: (z**3).sum(), holomorphic=True)(z)
    assert lz.allclose(value, (z**3).sum()) and lz.allclose(found, 3 * z * z)
    for matrix in (jacrev, jacfwd):
        assert lz.allclose(matrix(lambda z: z * z.sum(), holomorphic=True)(z), z.sum() * lz.eye(2) + z[:, None])
    assert lz.allclose(hessian(lambda z: (z**3).sum(), holomorphic=True)(z), lz.diag(6 * z))
    with pytest.raises(RuntimeError, match="grad: with holomorphic=True arguments must be complex, not lazuli.float32"):
        grad(cubes, holomorphic=True)(vector())
    with pytest.raises(RuntimeError, match="jacrev: with holomorphic=True outputs must be complex, not lazuli.float32"):
        jacrev(lambda z: z.real, holomorphic=True)(z)


def test_allow_int_lets_integers_be_among_the_arguments():
    x, i = vector(), lz.tensor([0, 1, 2])
    gradients = grad(lambda x, i: (x * i).sum(), (0, 1), allow_int=True)(x, i)
    assert gradients[0].tolist() == [0, 1, 2] and (gradients[1].tolist(), gradients[1].dtype) == ([0, 0, 0], lz.int64)
    rows = jacrev(lambda d: d["x"] * d["i"], allow_int=True)({"x": x, "i": i})
    assert rows["x"].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 2]] and rows["i"].tolist() == [[0] * 3] * 3 and rows["i"].dtype == lz.int64
    with pytest.raises(RuntimeError, match="grad: only tensors of a floating-point or complex dtype are differentiated for, not lazuli.int64"):
        grad(lambda x, i: (x * i).sum(), (0, 1))(x, i)


def test_jacobians_take_keyword_arguments():
    for matrix in (jacrev, jacfwd):
        assert matrix(lambda x, *, k: x * k)(vector(), k=vector()).diagonal().tolist() == [1, 2, 3]
