"""Programs that people write with transforms and loops: their values are those of formulas, of loops in Python, and of backward()."""

import math

import numpy as np
import pytest

import lazuli as lz
from lazuli import control, func


def close(a, b, rtol=1e-5):
    np.testing.assert_allclose(np.asarray(a.tolist()), np.asarray(b.tolist() if hasattr(b, "tolist") else b), rtol=rtol, atol=rtol)


@pytest.fixture(autouse=True)
def seed():
    lz.manual_seed(0)


def test_gradients_per_sample():
    model = lz.nn.Sequential(lz.nn.Linear(4, 8), lz.nn.Tanh(), lz.nn.LayerNorm(8), lz.nn.Linear(8, 3))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    x, labels = lz.randn(5, 4), lz.tensor([0, 2, 1, 1, 0])

    def loss(parameters, x, label):
        return lz.nn.functional.cross_entropy(func.functional_call(model, parameters, (x[None],)), label[None])

    gradients = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, x, labels)
    for i in range(5):
        model.zero_grad()
        lz.nn.functional.cross_entropy(model(x[i:i + 1]), labels[i:i + 1]).backward()
        for name, p in model.named_parameters():
            close(gradients[name][i], p.grad)


def test_maml_learns_to_learn_waves():
    def predict(w, x):
        return (x[:, None] * w["a"] + w["b"]).tanh() @ w["c"]

    def loss(w, x, y):
        return ((predict(w, x) - y) ** 2).mean()

    def adapted(w, x, y):
        return {name: w[name] - 0.1 * g for name, g in func.grad(loss)(w, x, y).items()}

    def meta_loss(w, tasks):
        return func.vmap(lambda x, y, x2, y2: loss(adapted(w, x, y), x2, y2))(*tasks).mean()

    def waves(n=8):
        x, x2, shift = lz.rand(n, 10) * 6 - 3, lz.rand(n, 10) * 6 - 3, lz.rand(n, 1) * math.pi
        return x, (x + shift).sin(), x2, (x2 + shift).sin()

    w = {"a": lz.randn(20), "b": lz.randn(20), "c": lz.randn(20) * 0.3}
    tasks = waves(3)
    gradient = func.grad(meta_loss)(w, tasks)
    leaves = {name: value.clone().requires_grad_() for name, value in w.items()}
    total = 0
    for x, y, x2, y2 in zip(*tasks):
        inner = lz.autograd.grad(loss(leaves, x, y), list(leaves.values()), create_graph=True)
        total = total + loss({name: p - 0.1 * g for (name, p), g in zip(leaves.items(), inner)}, x2, y2) / 3
    total.backward()
    for name in w:
        close(gradient[name], leaves[name].grad, 1e-4)

    first = meta_loss(w, tasks).item()
    for _ in range(60):
        g = func.grad(meta_loss)(w, waves())
        w = {name: w[name] - 0.05 * g[name] for name in w}
        lz.mark_step()
    assert meta_loss(w, tasks).item() < 0.6 * first


def rk4(f, x, theta, steps, dt):
    def step(x, _):
        k1 = f(x, theta)
        k2 = f(x + dt / 2 * k1, theta)
        k3 = f(x + dt / 2 * k2, theta)
        k4 = f(x + dt * k3, theta)
        return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return control.scan(step, x, None, length=steps)[0]


def test_a_neural_ode():
    # A linear one has a solution in closed form, and so has its gradient.
    a, x0 = lz.tensor([[0.0, 1.0], [-2.0, -0.3]], dtype=lz.float64), lz.tensor([1.0, 0.5], dtype=lz.float64)

    def end(a):
        return rk4(lambda x, a: a @ x, x0, a, 100, 0.01)

    close(end(a), lz.matrix_exp(a) @ x0, 1e-8)
    close(func.jacrev(end)(a), func.jacrev(lambda a: lz.matrix_exp(a) @ x0)(a), 1e-7)
    close(func.jacfwd(end)(a), func.jacrev(end)(a), 1e-10)

    # A field with weights learns where a rotation takes points.
    net = lz.nn.Sequential(lz.nn.Linear(2, 16), lz.nn.Tanh(), lz.nn.Linear(16, 2))
    opt = lz.optim.Adam(net.parameters(), lr=0.02)
    points = lz.randn(32, 2)
    wanted = points @ lz.tensor([[math.cos(1), math.sin(1)], [-math.sin(1), math.cos(1)]])
    losses = []
    for _ in range(80):
        loss = ((rk4(lambda x, _: net(x), points, None, 10, 0.1) - wanted) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss)
        lz.mark_step()
    assert losses[-1].item() < 0.05 * losses[0].item()


def test_an_implicit_layer():
    """z = tanh(W z + x): found by a loop of no known length, differentiated at the solution."""

    def cell(w, x, z):
        return (w @ z + x).tanh()

    @func.custom_vjp
    def fixed_point(w, x):
        def go_on(state):
            z, before = state
            return (z - before).abs().max() > 1e-12

        return control.while_loop(go_on, lambda state: (cell(w, x, state[0]), state[0]), (lz.zeros_like(x), lz.ones_like(x)))[0]

    def forward(w, x):
        z = fixed_point(w, x)
        return z, (w, x, z)

    def backward(saved, dz):
        w, x, z = saved
        dcell_dz = func.jacrev(lambda z: cell(w, x, z))(z)
        u = lz.linalg.solve((lz.eye(len(z), dtype=z.dtype) - dcell_dz).T, dz)
        return func.vjp(lambda w, x: cell(w, x, z), w, x)[1](u)

    fixed_point.defvjp(forward, backward)

    def unrolled(w, x):
        z = lz.zeros_like(x)
        for _ in range(80):
            z = cell(w, x, z)
        return z

    w, x = lz.randn(4, 4, dtype=lz.float64) * 0.25, lz.randn(4, dtype=lz.float64)
    close(fixed_point(w, x), unrolled(w, x), 1e-9)
    weights = lz.arange(1.0, 5.0, dtype=lz.float64)
    got = func.grad(lambda w, x: (fixed_point(w, x) * weights).sum(), argnums=(0, 1))(w, x)
    for a, b in zip(got, func.grad(lambda w, x: (unrolled(w, x) * weights).sum(), argnums=(0, 1))(w, x)):
        close(a, b, 1e-8)


def test_newton_steps_by_products_with_the_hessian():
    def rosenbrock(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def product(x, v):
        return func.jvp(func.grad(rosenbrock), (x,), (v,))[1]

    x = lz.tensor([1.2, 1.1, 1.3, 1.6], dtype=lz.float64)
    v = lz.randn(4, dtype=lz.float64)
    h = np.zeros((4, 4))
    a = np.asarray(x.tolist())
    for i in range(3):
        h[i, i] += 1200 * a[i] ** 2 - 400 * a[i + 1] + 2
        h[i, i + 1] = h[i + 1, i] = -400 * a[i]
        h[i + 1, i + 1] += 200
    close(product(x, v), h @ np.asarray(v.tolist()), 1e-10)

    def conjugate_gradients(x, b):
        def step(_, state):
            u, r, p = state
            ap = product(x, p)
            alpha = (r @ r) / (p @ ap)
            after = r - alpha * ap
            return u + alpha * p, after, after + (after @ after) / (r @ r) * p

        return control.fori_loop(0, 4, step, (lz.zeros_like(b), b, b))[0]

    for _ in range(9):
        x = x - conjugate_gradients(x, func.grad(rosenbrock)(x))
        lz.mark_step()
    close(x, [1.0] * 4, 1e-7)
    assert not x.requires_grad


def test_hamiltonian_monte_carlo():
    mean, precision = lz.tensor([1.0, -2.0]), lz.tensor([[2.0, 0.6], [0.6, 1.0]])

    def energy(q):
        return 0.5 * (q - mean) @ precision @ (q - mean)

    def sample(q, _):
        p = lz.randn(64, 2)
        slope, of = func.vmap(func.grad(energy)), func.vmap(energy)

        def leap(_, state):
            q, p = state
            p = p - 0.125 * slope(q)
            q = q + 0.25 * p
            return q, p - 0.125 * slope(q)

        end, momentum = control.fori_loop(0, 6, leap, (q, p))
        change = of(end) - of(q) + 0.5 * ((momentum ** 2).sum(1) - (p ** 2).sum(1))
        taken = lz.rand(64).log() < -change
        q = lz.where(taken[:, None], end, q)
        return q, (q, taken.float().mean())

    _, (samples, rate) = control.scan(sample, lz.zeros(64, 2), None, length=120)
    samples = samples[20:].reshape(-1, 2)
    close(samples.mean(0), mean, 0.1)
    close(samples.T.cov(), lz.linalg.inv(precision), 0.15)
    assert 0.9 < rate.mean().item() <= 1


def test_a_recurrent_layer_by_scan():
    layer = lz.nn.RNN(3, 5)
    x, h0 = lz.randn(7, 2, 3), lz.randn(1, 2, 5)
    w = {name: p.detach().clone().requires_grad_() for name, p in layer.named_parameters()}

    def step(h, x):
        h = (x @ w["weight_ih_l0"].T + w["bias_ih_l0"] + h @ w["weight_hh_l0"].T + w["bias_hh_l0"]).tanh()
        return h, h

    last, outputs = control.scan(step, h0[0], x)
    expected, expected_last = layer(x, h0)
    close(outputs, expected)
    close(last, expected_last[0])
    weights = lz.randn(7, 2, 5)
    (outputs * weights).sum().backward()
    (expected * weights).sum().backward()
    for name, p in layer.named_parameters():
        close(w[name].grad, p.grad, 1e-4)


def test_beam_search_that_is_wide_enough_finds_the_best():
    words, beam, length = 4, 16, 4
    scores = lz.randn(words, words)

    def extend(i, state):
        total = state["score"][:, None] + scores[state["words"][:, i]]
        best, place = total.flatten().topk(beam)
        here = lz.arange(length + 1)[None] == i + 1
        sequences = lz.where(here, (place % words)[:, None], state["words"][place // words])
        return {"words": sequences, "score": best}

    start = {"words": lz.zeros(beam, length + 1, dtype=lz.int64), "score": lz.tensor([0.0] + [-1e9] * (beam - 1))}
    found = control.fori_loop(0, length, extend, start)
    s = np.asarray(scores.tolist())
    every = {}
    for code in range(words**length):
        path = [0] + [code // words**k % words for k in range(length)]
        every[tuple(path)] = sum(s[a, b] for a, b in zip(path, path[1:]))
    best = max(every, key=every.get)
    assert tuple(found["words"][0].tolist()) == best
    assert found["score"][0].item() == pytest.approx(every[best], rel=1e-5)


IMPORTED = """
HloModule features, entry_computation_layout={(f32[16,2]{1,0}, f32[2,8]{1,0}, f32[8]{0})->f32[16,8]{1,0}}

ENTRY main {
  x = f32[16,2]{1,0} parameter(0)
  w = f32[2,8]{1,0} parameter(1)
  b = f32[8]{0} parameter(2)
  product = f32[16,8]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  biases = f32[16,8]{1,0} broadcast(b), dimensions={1}
  sum = f32[16,8]{1,0} add(product, biases)
  ROOT y = f32[16,8]{1,0} tanh(sum)
}
"""


def test_an_imported_module_is_tuned():
    """The module's own weights and a head behind it learn together: exclusive or, which the head alone cannot learn."""
    module = lz.hlo.HloModule.parse(IMPORTED)
    weights = [(lz.randn(2, 8)).requires_grad_(), lz.zeros(8).requires_grad_()]
    head = lz.nn.Linear(8, 1)
    x = lz.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).repeat(4, 1)
    y = lz.tensor([0.0, 1.0, 1.0, 0.0]).repeat(4)

    def loss():
        (features,) = module.call([x, *weights])
        return lz.nn.functional.binary_cross_entropy_with_logits(head(features).squeeze(1), y)

    by_module = lz.autograd.grad(loss(), weights)
    logits = head((x @ weights[0] + weights[1]).tanh()).squeeze(1)
    for a, b in zip(by_module, lz.autograd.grad(lz.nn.functional.binary_cross_entropy_with_logits(logits, y), weights)):
        close(a, b)
    opt = lz.optim.Adam([*weights, *head.parameters()], lr=0.1)
    compiles = None
    for i in range(100):
        opt.zero_grad()
        loss().backward()
        opt.step()
        lz.mark_step()
        if i == 2:
            compiles = lz.metrics.counter("UncachedCompile")
    assert loss().item() < 0.05
    assert lz.metrics.counter("UncachedCompile") - compiles <= 1  # of the loss alone, behind the loop
