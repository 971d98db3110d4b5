"""lazuli.vmap: functions of one sample on batches, beside loops over the samples."""

import functools

import pytest

import lazuli as lz
from lazuli.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap

DATA = lz.linspace(-1.0, 1.0, 12).reshape(4, 3)
Y = lz.tensor([0.5, -1.0, 2.0])
NOT_TENSORS = "vmap.*We cannot vmap over non-Tensor arguments, please use None as the respective in_dim"


def looped(f, *batches):
    """What vmap(f) is: the results of each sample, stacked."""
    return lz.stack([f(*(b[i] for b in batches)) for i in range(len(batches[0]))])


def same(a, b, tolerance=1e-6):
    return a.shape == b.shape and a.dtype == b.dtype and lz.allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("f", [
    lambda x: x * x + 1, lambda x: x.sum(), lambda x: x.softmax(0), lambda x: x.sort().values, lambda x: x.cumsum(0), lambda x: x.flip(0),
    lambda x: lz.outer(x, Y) @ x, lambda x: x[lz.tensor([2, 0])], lambda x: lz.cat([x, Y]), lambda x: x.argmax(), lambda x: (x > 0).any(),
    lambda x: lz.nn.functional.pad(x, (1, 2)), lambda x: lz.where(x > 0, x, Y), lambda x: lz.fft.rfft(x).abs(), lambda x: x.topk(2).indices,
    lambda x: x.clone().mul_(2).add_(Y), lambda x: lz.linalg.inv(lz.outer(x, x) + lz.eye(3)), lambda x: lz.logsumexp(x, 0), lambda x: x.std(),
    lambda x: lz.einsum("i,j->ij", x, x).diagonal(), lambda x: x.roll(1), lambda x: x.unfold(0, 2, 1), lambda x: x.to(lz.int32) % 3])
def test_a_batch_has_the_values_of_its_samples(f):
    assert same(vmap(f)(DATA * 3), looped(f, DATA * 3))


def test_every_device_has_batches():
    x, w = DATA.to("interpreter"), Y.to("interpreter")
    batch = vmap(grad(lambda row: (row * w * 2).sin().sum()))(x)
    assert str(batch.device) == "interpreter:0"
    assert same(batch, looped(grad(lambda row: (row * w * 2).sin().sum()), x))
    with pytest.raises(lz.Error, match="operands are on different devices: interpreter:0 and cpu:0"):
        vmap(lambda row: row * Y)(x)


def test_products_with_shared_weights_are_one_product():
    net = lz.nn.Sequential(lz.nn.Linear(8, 16), lz.nn.ReLU(), lz.nn.Linear(16, 4))
    x = lz.rand(32, 8)
    lz.sync(True)

    def kernels(f):
        y = f(x)
        lz.sync(True)
        stats = lz.debug.last_stats()
        return y, {key: stats[key] for key in ("kernels", "library_calls", "evaluator_thunks")}

    with lz.no_grad():
        (ours, batched), (theirs, by_hand) = kernels(vmap(net)), kernels(net)
    assert same(ours, theirs) and batched == by_hand


def test_dims_trees_and_keywords():
    t = vmap(lambda d: (d["x"] * d["y"]).sum(), ({"x": 0, "y": None},))({"x": DATA, "y": Y})
    assert same(t, (DATA * Y).sum(1))
    assert vmap(lambda x: x * 2, -1, -1)(DATA).tolist() == (DATA * 2).tolist()
    a, b = vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(DATA)
    assert a.tolist() == DATA.T.tolist() and same(b, DATA.sum(1))
    assert same(vmap(lambda x, *, k: x * k)(DATA, k=Y), DATA * Y)
    assert vmap(lambda x, n: x * n, (0, None))(DATA, 3).tolist() == (DATA * 3).tolist()
    x, y = vmap(lambda x: (x, Y), out_dims=(0, None))(DATA)
    assert y.tolist() == Y.tolist() and vmap(lambda x: Y)(DATA).tolist() == [Y.tolist()] * 4
    assert lz.vmap is vmap


def test_batches_nest():
    x, y = lz.rand(2, 3, 5), lz.rand(2, 4, 5)
    assert same(vmap(vmap(lz.dot, (0, None)), (0, None))(x, y[0, 0]), x @ y[0, 0])
    table = vmap(lambda x, y: vmap(lambda a: vmap(lambda b: lz.dot(a, b))(y))(x))(x, y)
    assert same(table, x @ y.mT)


def test_chunks_are_the_whole():
    f = lambda x: x.softmax(0)  # noqa: E731
    for size in (1, 3, 4, 9):
        assert same(vmap(f, chunk_size=size)(DATA), vmap(f)(DATA))
        assert same(vmap(f, 1, 1, chunk_size=size)(DATA), vmap(f, 1, 1)(DATA))


def test_gradients_of_each_sample():
    net, target = lz.nn.Sequential(lz.nn.Linear(3, 4), lz.nn.Tanh(), lz.nn.Linear(4, 2)), lz.rand(4, 2)
    params = {k: p.detach() for k, p in net.named_parameters()}

    def loss(p, x, t):
        return ((functional_call(net, p, (x,)) - t)**2).mean()

    found = vmap(grad(loss), (None, 0, 0))(params, DATA, target)
    for i in range(4):
        one = grad(loss)(params, DATA[i], target[i])
        assert all(same(found[k][i], one[k]) for k in params)


def test_gradients_pass_through_batches():
    w = Y.clone().requires_grad_()
    x = DATA.clone().requires_grad_()
    out = vmap(lambda x: (x * w).sin().sum())(x)
    out.pow(2).sum().backward()
    v, z = Y.clone().requires_grad_(), DATA.clone().requires_grad_()
    (z * v).sin().sum(1).pow(2).sum().backward()
    assert same(w.grad, v.grad) and same(x.grad, z.grad)
    second = hessian(lambda w: vmap(lambda x: (x * w).sin().sum())(DATA).sum())(Y)
    assert same(second, hessian(lambda w: (DATA * w).sin().sum())(Y), 1e-5)
    _, tangent = jvp(lambda x: vmap(lambda r: r * r.sum())(x), (DATA,), (DATA,))
    assert same(tangent, 2 * DATA * DATA.sum(1, keepdim=True))
    assert same(vmap(jacrev(lambda x: x**2))(DATA), vmap(jacfwd(lambda x: x**2))(DATA))
    assert same(vmap(lambda x, v: vjp(lambda x: x**2, x)[1](v)[0])(DATA, DATA), 2 * DATA * DATA)
    with lz.no_grad():
        assert not vmap(lambda x: x * w)(DATA).requires_grad


@pytest.mark.parametrize(("f", "third"), [
    (lambda x: x * x * x, lambda x: lz.full_like(x, 6.0)),
    (lambda x: x.clamp(-1, 1) * x, lz.zeros_like),
    (lambda x: x.asinh(), lambda x: (2 * x * x - 1) * (1 + x * x) ** -2.5)])
@pytest.mark.parametrize("inner", [jacrev, jacfwd])
def test_third_derivatives_through_batched_jacobians(f, third, inner):
    """Products that share factors: a gradient ends at each of the tensors that a batch takes from outside."""
    x = lz.tensor([0.5, -0.3, 2.0])
    assert same(grad(lambda x: inner(jacrev(f))(x).sum())(x), third(x), 1e-5)
    cube = jacrev(inner(jacrev(f)))(x)
    assert same(lz.stack([cube[i, i, i, i] for i in range(3)]), third(x), 1e-5) and cube.count_nonzero() <= 3


def test_paths_between_tensors_from_outside_count_once():
    b = Y.clone().requires_grad_()
    a = b * b
    vmap(lambda x: x * a * b)(DATA + 1).sum().backward()
    assert same(b.grad, 3 * Y**2 * (DATA + 1).sum(0))
    f = lambda x: (x.cumsum(0) * x * Y).sum()  # noqa: E731
    assert same(jacfwd(jacfwd(f))(Y), hessian(f)(Y)) and same(hessian(f)(Y)[0], grad(lambda x: grad(f)(x)[0])(Y))


def test_ensembles_of_modules():
    nets = [lz.nn.Linear(3, 2) for _ in range(3)]
    params, buffers = stack_module_state(nets)
    base = nets[0]
    shared = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), (0, 0, None))(params, buffers, DATA)
    assert same(shared, lz.stack([net(DATA) for net in nets]))
    shared.sum().backward()
    assert all(g.grad.shape == g.shape for g in params.values())


def test_random_numbers_are_refused_shared_or_different():
    x = lz.zeros(4, 1000)
    noise = lambda x: x + lz.rand(1000)  # noqa: E731
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(noise)(x)
    lz.manual_seed(3)
    a = vmap(noise, randomness="same")(x)
    assert (a[0] == a[3]).all()
    b = vmap(noise, randomness="different")(x)
    assert (b[0] != b[1]).float().mean() > 0.99 and 0.45 < b.mean() < 0.55
    assert (a[0] != b[0]).float().mean() > 0.99 and (vmap(noise, randomness="different")(x) != b).float().mean() > 0.99
    lz.manual_seed(3)
    assert (vmap(noise, randomness="same")(x) == a).all()
    two = vmap(lambda x: x + lz.rand(1000) - lz.rand(1000), randomness="different")(x)
    assert (two[0] != two[1]).float().mean() > 0.99 and -0.05 < two.mean() < 0.05
    kept = vmap(lambda x: lz.nn.functional.dropout(x + 1, 0.5), randomness="different")(x)
    assert 0.4 < (kept > 0).float().mean() < 0.6


def test_gradients_see_the_numbers_that_were_drawn():
    x = lz.ones(4, 100).requires_grad_()
    y = vmap(lambda x: lz.nn.functional.dropout(x, 0.5), randomness="different")(x)
    y.sum().backward()
    assert (x.grad == y.detach()).all() and (y[0] != y[1]).any()


def test_writes_reach_arguments_and_nothing_else():
    x = DATA.clone()
    vmap(lambda r: r.mul_(2))(x)
    assert x.tolist() == (DATA * 2).tolist()
    vmap(lambda r: r[0].fill_(7), 1)(x)
    assert x[0].tolist() == [7, 7, 7] and x[1].tolist() == (DATA[1] * 2).tolist()
    y = Y.clone()
    with pytest.raises(RuntimeError):
        vmap(lambda r: y.mul_(r))(DATA)
    assert y.tolist() == Y.tolist()


def test_another_call_compiles_nothing():
    f = vmap(grad(lambda x, w: (x * w).exp().sum()), (0, None))
    compiled = []
    for k in range(3):
        f(DATA * k, Y + k).sum().item()
        compiled.append(lz.metrics.counter("UncachedCompile"))
    assert compiled[0] == compiled[1] == compiled[2]
    g = vmap(lambda x: x + lz.rand(3) * 0.5, randomness="different")
    compiled = []
    for k in range(3):
        g(DATA * k).sum().item()
        compiled.append(lz.metrics.counter("UncachedCompile"))
    assert compiled[0] == compiled[1] == compiled[2]


def test_pending_data_stay_pending():
    x = lz.rand(4, 3) * 2
    w = lz.rand(3) + 1
    runs = lz.metrics.counter("UncachedCompile")
    y = vmap(lambda r: r * w)(x)
    assert lz.metrics.counter("UncachedCompile") == runs
    assert same(y, x * w)


def test_several_gradients_at_once():
    x = Y.clone().requires_grad_()
    y = x**2
    rows, = lz.autograd.grad(y, x, lz.eye(3), is_grads_batched=True, retain_graph=True)
    assert same(rows, lz.diag(2 * Y))
    assert same(vmap(lambda v: lz.autograd.grad(y, x, v)[0])(lz.eye(3)), rows)


def test_modules_of_hlo():
    module = lz.hlo.HloModule.trace([(lz.float32, (3,)), (lz.float32, (3,))], lambda x, w: [x * w, x.sum()])
    batched = module.vmap(4, (1, None), (0, 0))
    assert [list(s.dims) for s in batched.parameters] == [[3, 4], [3]]
    a, b = batched.evaluate([DATA.T.contiguous(), Y])
    assert same(a, DATA * Y) and same(b, DATA.sum(1))
    assert [list(s.dims) for s in module.vmap(4, (), (-1, 0)).results] == [[3, 4], [4]]
    with pytest.raises(lz.Error, match="vmap: 3 in_dims for 2 arrays"):
        module.vmap(4, (0, 0, 0))
    with pytest.raises(lz.Error, match="vmap: dim 2 of parameter 0 is out of range for rank 2"):
        module.vmap(4, (2, None))


@pytest.mark.parametrize("call, kind, text", [
    (lambda: vmap(lambda x: x, [0])(DATA), ValueError, r"vmap\(<lambda>, in_dims=\[0\], ...\).*expected `in_dims` to be int or a"),
    (lambda: vmap(lambda x: x)(), ValueError, "got no inputs. Maybe you forgot to add inputs"),
    (lambda: vmap(lambda x: x, (0, 0))(DATA), ValueError, r"in_dims is not compatible with the structure of `inputs`"),
    (lambda: vmap(lambda x: x, ("a",))(DATA), ValueError, "in_dim must be either an integer dimension or None"),
    (lambda: vmap(functools.partial(lz.add, Y))(3.0), ValueError, NOT_TENSORS),
    (lambda: vmap(lambda x: x, 2)(DATA), ValueError, "Tensor of dimensionality 2 so expected in_dim to satisfy -2 <= in_dim < 2"),
    (lambda: vmap(lambda x: x, (None,))(DATA), ValueError, "vmap: Expected at least one Tensor to vmap over"),
    (lambda: vmap(lambda x, y: x)(DATA, Y), ValueError, r"same size in the mapped dimension, got sizes \[4, 3\]"),
    (lambda: vmap(lambda x: 3)(DATA), ValueError, "must only return Tensors, got type <class 'int'>"),
    (lambda: vmap(lambda x: x, out_dims=None)(DATA), ValueError, "can not return a BatchedTensor when out_dim is None"),
    (lambda: vmap(lambda x: x, out_dims=(0, 0))(DATA), ValueError, "out_dims is not compatible with the structure of `outputs`"),
    (lambda: vmap(lambda x: x, out_dims="a")(DATA), ValueError, "`out_dims` must be an int, None or a python collection"),
    (lambda: vmap(lambda x: x, out_dims=3)(DATA), IndexError, "Dimension out of range"),
    (lambda: vmap(lambda x: x, randomness="no"), RuntimeError, "Only allowed values for randomness are"),
    (lambda: vmap(lambda x: x, chunk_size=0), ValueError, "chunk_size should be None or greater than 0"),
    (lambda: vmap(lambda x: x.sum().item())(DATA), RuntimeError, "vmap: It looks like you're calling .item"),
    (lambda: vmap(lambda x: x if x.sum() > 0 else -x)(DATA), RuntimeError, r"data-dependent control flow.* in <lambda> at vmap_test.py:\d+")])
def test_a_mistake_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
    assert same(vmap(lambda x: x * 2)(DATA), DATA * 2)  # and leaves nothing behind


def test_a_batch_has_jax_words():
    t = vmap(lambda x, y: x * y, in_axes=[0, None], out_axes=1)(DATA, Y)
    assert same(t, (DATA * Y).T)
    assert same(vmap(lambda x, k: x * k, in_axes=0)(DATA, k=DATA), DATA * DATA)  # the samples of k, too
    assert vmap(lambda: 7 * lz.ones(2), axis_size=3)().tolist() == [[7, 7]] * 3
    assert vmap(lambda x: x * 2, in_axes=None, axis_size=2)(Y).tolist() == [[1, -2, 4]] * 2
    for wrong, message in ((lambda: vmap(lambda x: x, 1, in_axes=0), "in_dims and in_axes are one argument"),
                           (lambda: vmap(lambda x: x, axis_size=3)(DATA), r"got sizes \[3, 4\]"),
                           (lambda: vmap(lambda x: x, in_axes=None)(DATA), "at least one Tensor to vmap over, or axis_size"),
                           (lambda: vmap(lambda x: x, axis_size=-1), "axis_size must be an int, 0 or more, not -1"),
                           (lambda: vmap(lambda x: x, in_axes="a")(DATA), "expected `in_axes` to be int"),
                           (lambda: vmap(lambda x: x, axis_name="i", chunk_size=2), "chunk_size is not possible")):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_samples_of_a_named_axis_know_each_other():
    f = lz.func
    assert same(vmap(lambda x: x - f.pmean(x, "i"), axis_name="i")(DATA), DATA - DATA.mean(0))
    assert same(vmap(lambda x: (f.pmax(x, "i") - f.pmin(x, "i")) * f.axis_index("i"), axis_name="i")(DATA), 18 / 11 * lz.arange(4.0)[:, None].expand(4, 3))
    assert f.vmap(lambda x: x * f.psum(1, "i") + f.axis_size("i"), axis_name="i")(lz.ones(4)).tolist() == [8] * 4
    total = vmap(lambda x: f.psum({"a": x, "b": x > 0}, "i"), axis_name="i", out_axes=None)(DATA)  # the same for all samples
    assert same(total["a"], DATA.sum(0)) and total["b"].tolist() == [2, 2, 2]
    both = vmap(vmap(lambda x: x - f.psum(x, "i") + 10 * f.psum(x, ("i", "j")), axis_name="j"), axis_name="i")(DATA)
    assert same(both, DATA - DATA.sum(0) + 10 * DATA.sum())


def test_derivatives_go_through_sums_over_samples():
    f = lz.func

    def centred(x):
        return ((x - f.pmean(x, "i"))**2).sum()

    x = DATA.clone().requires_grad_()
    vmap(centred, axis_name="i")(x).sum().backward()
    assert same(x.grad, 2 * (DATA - DATA.mean(0)))
    # Each sample's own gradient is the sum of what all results say.
    assert same(vmap(grad(lambda x: f.psum(x * x, "i").sum()), axis_name="i")(DATA), 8 * DATA)
    pushed = jvp(vmap(lambda x: f.psum(x * x, "i"), axis_name="i", out_axes=None), (DATA,), (lz.ones(4, 3),))[1]
    assert same(pushed, 2 * DATA.sum(0), 1e-5)
    with pytest.raises(RuntimeError, match="pmax has no derivative"):
        grad(lambda x: vmap(lambda x: f.pmax(x, "i"), axis_name="i")(x).sum())(DATA).tolist()


def test_an_axis_is_known_only_inside():
    with pytest.raises(NameError, match=r"psum: there is no axis named 'j' here \(named axes: 'i'\)"):
        vmap(lambda x: lz.func.psum(x, "j"), axis_name="i")(DATA)
    with pytest.raises(NameError, match=r"axis_index: there is no axis named 'i' here \(named axes: none\)"):
        lz.func.axis_index("i")
    with pytest.raises(TypeError, match="psum: takes tensors and numbers, not str"):
        vmap(lambda x: lz.func.psum("x", "i"), axis_name="i")(DATA)
