#!/usr/bin/env python3
"""lazuli.func is torch.func: values of all transforms and nestings of them in f64, programs, and errors.

    torch_func_test.py FOLDER [PATTERN]      FOLDER holds the package lazuli, as build/PRESET/python does

A function is an expression of x, y and w; its transforms are recorded together and run as one program. A program leaves its result in r; an
error is a result, too, of which the class counts.
"""

import re
import sys
import warnings

import numpy as np
import torch

sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402

X, Y, W = (3,), (3,), (2, 3)  # the shapes of x, y and w

# Expressions of x, y and w; F is nn.functional. The norm of a layer is written out, since second derivatives of torch's layer_norm() for its
# weight are not those of its formula.
FUNCTIONS = """
x * x * y
x.exp() * y.sin()
(x.abs() + 1).log() / (y * y + 1)
x.tanh() * y.sigmoid()
(x * x + y * y + 1).sqrt()
lib.where(x > 0, x * y, x**3)
lib.maximum(x * x, y * x)
x.clamp(-0.5, 0.8) * x * y
lib.atan2(x * x + 1, y + 3)
F.softplus(x) * F.gelu(y)
F.silu(x) * lib.erf(y)
x.pow(3).sum() * y
x.mean() * y.var() * x + x.std()
(x * y).prod()
lib.logsumexp(x * y, 0)
lib.linalg.vector_norm(x + y * y)
(x * y).cumsum(0) * x
x.max() * y.min() * x
w @ x * (w @ y)
lib.outer(x, y).tanh()
lib.einsum("ij,j,i->i", w, x, w.sum(1))
w @ w.T @ (w @ x).sin()
x[1:] * y[:-1] * x[0]
x[lib.tensor([2, 0, 2])] * y.flip(0)
lib.cat([x * y, w.reshape(-1) * x.sum()])
lib.stack([x, y * x]).sum(0) * w
x.roll(1) * lib.diag(y).sum(0)
F.softmax(x * y, 0) * w
F.log_softmax(w * x, 1)
F.cross_entropy(w * x, lib.tensor([0, 2])) * y
(w * x - (w * x).mean(1, keepdim=True)) * y / (w * x).var(1, keepdim=True).sqrt()
F.rms_norm(w * x, (3,), y, 1e-3)
F.linear(w * x, w, w.sum(1)).tanh()
""".strip().splitlines()

# Derivatives of f, the expression, and s, the sum of its elements times others, beside which v holds vectors like the arguments, and b
# batches of four of them.
TRANSFORMS = {
    "grad": "T.grad(s)(*a)",
    "grad of all": "T.grad(s, (0, 1, 2))(*a)",
    "value": "T.grad_and_value(s, 1)(*a)",
    "vjp": "(lambda p: [p[0], p[1](u(p[0]))])(T.vjp(f, *a))",
    "jvp": "T.jvp(f, a, v)",
    "linearize": "(lambda p: [p[0], p[1](*v)])(T.linearize(f, *a))",
    "jacrev": "T.jacrev(f, (0, 2))(*a)",
    "jacfwd": "T.jacfwd(f, (0, 1))(*a)",
    "hessian": "T.hessian(s, (0, 1))(*a)",
    "hessian by jacfwd": "T.jacfwd(T.jacfwd(s))(*a)",
    "hessian by both": "T.jacrev(T.jacfwd(s, 1), 0)(*a)",
    "hvp": "T.jvp(T.grad(s, (0, 1, 2)), a, v)",
    "hvp by vjp": "T.vjp(T.grad(s, (0, 1, 2)), *a)[1](v)",
    "grad of grad": "T.grad(lambda *a: (T.grad(s)(*a) * v[0]).sum(), (0, 1))(*a)",
    "grad of jvp": "T.grad(lambda *a: s_(T.jvp(f, a, v)[1]), (1, 2))(*a)",
    "grad of vjp": "T.grad(lambda *a: (lambda p: (p[1](u(p[0]))[1] * v[1]).sum())(T.vjp(f, *a)))(*a)",
    "jvp of jvp": "T.jvp(lambda *a: T.jvp(f, a, v)[1], a, v)",
    "vmap": "T.vmap(f)(*b)",
    "vmap of some": "T.vmap(f, (0, None, -1), -1)(b[0], a[1], b[2].movedim(0, 2))",
    "vmap in parts": "T.vmap(f, (None, 0, None), chunk_size=2)(a[0], b[1], a[2])",
    "vmap of vmap": "T.vmap(T.vmap(f, (None, None, 0)), (0, 0, None))(*b)",
    "vmap of grad": "T.vmap(T.grad_and_value(s, (0, 1, 2)), (0, 0, None))(b[0], b[1], a[2])",
    "vmap of vjp": "T.vmap(lambda *a: T.vjp(f, *a)[1](u(f(*a))))(*b)",
    "vmap of jvp": "T.vmap(lambda *b: T.jvp(f, b, v))(*b)",
    "vmap of jacobians": "T.vmap(lambda *b: [T.jacrev(f)(*b), T.jacfwd(f, 1)(*b)])(*b)",
    "vmap of hessian": "T.vmap(T.hessian(s), (0, None, None))(b[0], *a[1:])",
    "grad of vmap": "T.grad(lambda *b: s_(T.vmap(f, (0, 0, None))(*b)), (0, 1, 2))(b[0], b[1], a[2])",
    "grad of vmap of grad": "T.grad(lambda *b: s_(T.vmap(T.grad(s), (0, None, 0))(*b)), (0, 1, 2))(b[0], a[1], b[2])",
    "grad of closure": "T.grad(lambda y, w: s_(T.vmap(lambda x: f(x, y, w))(b[0])), (0, 1))(*a[1:])",
    "grad of grad of vmap": "T.grad(lambda *a: (T.grad(lambda *b: s_(T.vmap(f, (0, None, None))(*b)))(*a) * v[0]).sum(), (0, 1))(b[0], *a[1:])",
    "jvp of vmap": "T.jvp(lambda x: T.vmap(f, (None, 0, None))(x, b[1], a[2]), (a[0],), (v[0],))",
    "jacrev of vmap": "T.jacrev(lambda x: T.vmap(f, (None, 0, 0))(x, b[1], b[2]))(a[0])",
    "vmap of grad of vmap": "T.vmap(T.grad(lambda x, y: s_(T.vmap(lambda w: f(x, y, w))(b[2])), 1))(*b[:2])",
    "third": "T.grad(lambda x: T.grad(lambda x: T.grad(lambda x: s(x, *a[1:]))(x).pow(2).sum())(x).sum())(a[0])",
}

# What programs begin with.
HEAD = """
T, F = lib.func, lib.nn.functional
def V(*values, dtype=None): return lib.tensor(list(values), dtype=dtype or lib.float64)
x, y, one, i = V(1., 2., 3.), V(0.5, -1., 2.), V(1., 1., 1.), lib.tensor([1, 2])
def cubes(x): return (x**3).sum()
def N():
    net = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Linear(4, 2)).double()
    with lib.no_grad():
        for k, p in enumerate(net.parameters()): p.copy_(lib.linspace(-1., 1. + k, p.numel(), dtype=lib.float64).reshape(p.shape))
    return net
def P(net): return {k: p.detach() for k, p in net.named_parameters()}
data, target = lib.linspace(-1., 1., 12, dtype=lib.float64).reshape(4, 3), lib.linspace(0., 1., 8, dtype=lib.float64).reshape(4, 2)
def loss(params, net, data=data): return ((T.functional_call(net, params, (data,)) - target)**2).mean()
"""

PROGRAMS = r"""
# modules
net = N(); r = T.grad(loss)(P(net), net), [p.grad for p in net.parameters()]
net = N(); p = P(net); t = {k: v * 0 + 1 for k, v in p.items()}; r = T.jvp(lambda p: T.grad(loss)(p, net), (p,), (t,))
net = N(); r = T.jacrev(lambda p, x: T.functional_call(net, p, (x,)))(P(net), x)
net = N(); r = T.jacfwd(lambda x: net(x))(x), T.hessian(lambda x: net(x).sum())(x)
net = N(); p = P(net)\nfor _ in range(4): p = {k: p[k] - 0.1 * g for k, g in T.grad(loss)(p, net).items()}\nr = p
net = N(); inner = lambda p: {k: p[k] - 0.1 * g for k, g in T.grad(loss)(p, net, data * 2).items()}; r = T.grad(lambda p: loss(inner(p), net))(P(net))
net = N(); p = dict(net.named_parameters()); g = T.grad(loss)(p, net); q = {k: p[k] - 0.1 * g[k] for k in p}; loss(q, net).backward(); r = [p.grad for p in net.parameters()]
net = N(); g = T.grad(lambda x: net(x).sum())(x); r = [g.requires_grad]; g.sum().backward(); r += [net[0].weight.grad]
net = N(); out, back = T.vjp(lambda p: T.functional_call(net, p, (data,)), P(net)); r = back(target), out
nets = [N(), N()]; p, b = T.stack_module_state(nets); r = sorted(p), p["0.weight"].shape, T.grad(lambda p: loss({k: v[0] for k, v in p.items()}, nets[0]))({k: v.detach() for k, v in p.items()})
net = T.replace_all_batch_norm_modules_(lib.nn.Sequential(lib.nn.BatchNorm1d(3), lib.nn.InstanceNorm1d(3))); r = [net[0].running_mean, net[0].track_running_stats, sorted(net.state_dict())]
# trees, aux, argnums
r = T.grad(lambda t: (t[0]['a'] * t[1][0]).sum())([{'a': x}, (y, one)])
r = T.jacrev(lambda x: {'a': x * 2, 'b': [x.sum(), (x * x,)]})(x), T.jacfwd(lambda x: {'a': x * 2, 'b': [x.sum(), (x * x,)]})(x)
r = T.jacrev(lambda t: (t['x'] * t['y'], t['y']), 0)({'x': x, 'y': y}), T.jacfwd(lambda t: (t['x'] * t['y'], t['y']), 0)({'x': x, 'y': y})
r = T.hessian(lambda t: (t['x'] * t['y']).sum())({'x': x, 'y': y})
r = T.grad(lambda x: (cubes(x), {'s': x * x}), has_aux=True)(x), T.grad_and_value(lambda x: (cubes(x), x), has_aux=True)(x)
r = T.jacrev(lambda x: (x * x, x), has_aux=True)(x), T.jacfwd(lambda x: (x * x, x), has_aux=True)(x), T.jvp(lambda x: (x * x, [x]), (x,), (y,), has_aux=True)
out, back, aux = T.vjp(lambda x: (x * x, [x]), x, has_aux=True); r = out, back(y), aux
r = T.grad(lambda x, y: (x * y).sum(), -1)(x, y), T.grad(lambda x, y: (x * y).sum(), (1, -2))(x, y), T.grad(lambda x, *, k: (x * k).sum())(x, k=y)
r = T.grad(lambda x, n: (x * n).sum())(x, 3), T.vjp(lambda x, t: x * t['y'], x, {'y': y})[1](one)
out, back = T.vjp(lambda x: (x * 2, [x.sum()]), x); r = back((one, [V(1.).sum()])), back((y, [V(2.).sum()]))
# levels
r = T.grad(lambda x: x * T.grad(lambda y: x + y)(x))(x[0]), T.grad(lambda x: T.grad(lambda y: x * x * y)(y[0]))(x[0])
r = T.grad(T.grad(T.grad(lambda x: x**4)))(x[1]), T.jacrev(T.jacrev(T.jacrev(cubes)))(x), T.jacfwd(T.jacrev(T.jacfwd(cubes)))(x)
r = T.grad(lambda x: T.hessian(cubes)(x).sum())(x), T.hessian(lambda x: T.grad(cubes)(x).sum())(x)
r = T.grad(lambda w: (T.vjp(lambda x: x * x, x)[1](w)[0]**2).sum())(y)
_, back = T.vjp(lambda x: x * x, x); r = T.grad(lambda w: (back(w)[0]**2).sum())(y), T.jacrev(lambda w: back(w)[0])(y), back(y)
_, back = T.vjp(lambda x: x * x, x); r = T.jvp(lambda w: back(w)[0], (y,), (one,)); r = r, [t.requires_grad for t in r]
r = T.grad(lambda x: T.jvp(lambda y: y * y * x, (x,), (one,))[1].sum())(x), T.jvp(lambda x: x, (x,), (y,)), T.jacfwd(lambda x: [x, x + y])(x)
# what is differentiable outside
w = V(1., 2., 3.).requires_grad_(); g = T.grad(lambda x: (w * x * x).sum())(x); g.sum().backward(); r = g, w.grad, g.requires_grad
w = V(1., 2., 3.).requires_grad_(); g = T.grad(cubes)(w); g.sum().backward(); r = g, w.grad, g.requires_grad, w.is_leaf
w = V(1., 2., 3.).requires_grad_(); o, back = T.vjp(lambda x: x * w, x); g, = back(y); g.sum().backward(); r = w.grad, o.requires_grad, x.requires_grad
w = V(1., 2., 3.).requires_grad_(); g = T.jvp(lambda x: x * x, (x,), (w,))[1]; g.sum().backward(); r = w.grad
w = V(1., 2., 3.).requires_grad_(); g = T.jacrev(lambda x: x * w * x)(x); g.sum().backward(); r = w.grad, T.jacfwd(lambda x: x * w)(x).requires_grad
w = V(1., 2., 3.).requires_grad_(); g, v = T.grad_and_value(lambda x: (w * x * x).sum())(x); r = [g.requires_grad, v.requires_grad]; v.backward(); r += [w.grad]
g, v = T.grad_and_value(cubes)(x); r = [g.requires_grad, v.requires_grad, x.requires_grad, x.grad]
w = V(1., 2., 3.).requires_grad_()\nwith lib.no_grad(): g, v = T.grad_and_value(cubes)(w)\nr = g, g.requires_grad, v.requires_grad
with lib.inference_mode(): r = T.grad(cubes)(x), T.jacrev(lambda x: x * x)(x)
def f(x):\n    with lib.no_grad(): c = x * x\n    return (x * c).sum()\nr = T.grad(f)(x), T.jacrev(T.jacrev(f))(x)
def f(x):\n    with lib.no_grad(): c = T.grad(cubes)(x)\n    return (x * c).sum()\nr = T.grad(f)(x)
# in place
r = T.grad(lambda x: x.clone().mul_(y).mul_(x).sum())(x), T.jacrev(lambda x: x.clone().copy_(y * x))(x)
r = T.grad(lambda x, z: (z.mul_(2) * x).sum())(x, y), y, y.requires_grad
r = T.grad(lambda x, z: z.mul_(x).sum())(x, y), y, y.requires_grad
T.grad(lambda x: x.mul_(2).sum())(x)
T.grad(lambda x: T.grad(lambda y: y.mul_(2).sum())(x * 2).sum())(x)
T.vjp(lambda x: x[0].copy_(x[1]), x)
T.jacrev(lambda x: x.mul_(2))(x)
# batches
r = T.vmap(lib.dot)(data, data + 1), lib.vmap(lib.dot, (0, None))(data, y), T.vmap(T.vmap(lib.dot))(lib.stack([data, -data]), lib.stack([data, data]))
r = T.vmap(lambda d: (d['x'] * d['y']).sum(), ({'x': 0, 'y': None},))({'x': data, 'y': y}), T.vmap(lambda x, t: x * t[0] + t[1], (0, (None, 0)))(data, (y, data))
r = T.vmap(lambda x: {'a': x * 2, 'b': [x.sum(), (x * x,)]})(data), T.vmap(lambda x: (x * 2, x), out_dims=(1, 0))(data), T.vmap(lambda x: x, out_dims=(1,))(data), T.vmap(lambda x: [x, x + 1], out_dims=[1, 0])(data)
r = T.vmap(lambda x: (x, y), out_dims=(0, None))(data), T.vmap(lambda x: y)(data), T.vmap(lambda x: (x, 3), out_dims=(0, None))(data), T.vmap(lambda x, n: x * n, (0, None))(data, 3)
r = T.vmap(lambda x, *, k: x * k)(data, k=y), T.vmap(lambda x: x * 2, -1, -1)(data), T.vmap(lambda x: x.sum(), chunk_size=3)(data), T.vmap(lambda x: x * 2, 1, 1, chunk_size=1)(data)
net = N(); p = P(net); r = T.vmap(T.grad(lambda p, d, t: ((T.functional_call(net, p, (d,)) - t)**2).mean()), (None, 0, 0))(p, data, target)
nets = [N(), N()]; p, b = T.stack_module_state(nets); r = T.vmap(lambda p, b, d: T.functional_call(nets[0], (p, b), (d,)), (0, 0, None))(p, b, data), T.vmap(lambda p, b, d: T.functional_call(nets[0], (p, b), (d,)))(p, b, data.reshape(2, 2, 3))
nets = [N(), N()]; p, b = T.stack_module_state(nets); T.vmap(lambda p, b: T.functional_call(nets[0], (p, b), (data,)), (0, 0))(p, b).sum().backward(); r = [q.grad for q in p.values()]
net = N(); T.vmap(net)(data).sum().backward(); r = [p.grad for p in net.parameters()]
w = V(1., 2., 3.).requires_grad_(); o = T.vmap(lambda x: x * w)(data); r = o.requires_grad, (o * o).sum().backward(), w.grad
w = V(1., 2., 3.).requires_grad_(); o = w**2; r = T.vmap(lambda v: lib.autograd.grad(o, w, v))(lib.eye(3, dtype=lib.float64)), lib.autograd.grad(o, w, lib.eye(3, dtype=lib.float64), is_grads_batched=True)
r = T.vmap(lambda x: x.clone().mul_(2).add_(x))(data), T.vmap(lambda x: x.new_zeros(3).copy_(x))(data)
z = data.clone(); T.vmap(lambda x: x.mul_(2))(z); r = z
z = data.clone(); T.vmap(lambda x: x[0].fill_(7.), 1)(z); r = z
r = T.vmap(lambda x: (x > 0).any())(data), T.vmap(lambda x: x.argmax())(data), T.vmap(lambda x: x.sort())(data)[0], T.vmap(lambda x: x.topk(2))(data)[1], T.vmap(lambda x, i: x[i])(data, lib.tensor([0, 2, 1, 1]))
r = T.vmap(lambda x, i: x.index_select(0, i))(data, lib.tensor([[0, 2], [1, 1], [2, 0], [0, 0]])), T.vmap(lambda x, i: x.scatter(0, i, 1.))(data, lib.tensor([[0, 2], [1, 1], [2, 0], [0, 0]])), T.vmap(lambda x, i: x.gather(0, i))(data, lib.tensor([[0], [1], [2], [0]]))
m = lib.stack([lib.eye(3, dtype=lib.float64) * k + 0.1 * k * k for k in (1, 2, 3)]); r = T.vmap(lib.linalg.inv)(m), T.vmap(lib.linalg.cholesky)(m), T.vmap(lib.linalg.det)(m), T.vmap(lib.linalg.eigvalsh)(m), T.vmap(T.grad(lambda m: lib.linalg.slogdet(m)[1]))(m), T.vmap(lib.linalg.solve, (0, None))(m, y)
c = lib.linspace(-1., 1., 96, dtype=lib.float64).reshape(2, 3, 4, 4); k = lib.linspace(-1., 2., 108, dtype=lib.float64).reshape(2, 2, 3, 3, 3); r = T.vmap(lambda c: F.conv2d(c, k[0]))(c), T.vmap(lambda c, k: F.conv2d(c, k, padding=1))(c, k), T.vmap(lambda k: F.conv2d(c, k))(k), T.vmap(lambda c: F.max_pool2d(c, 2))(c), T.vmap(lambda c: F.interpolate(c[None], scale_factor=2))(c)
r = T.vmap(T.grad(lambda k, c: (F.conv2d(c[None], k)**2).sum()), (None, 0))(lib.linspace(-1., 2., 54, dtype=lib.float64).reshape(2, 3, 3, 3), lib.linspace(-1., 1., 96, dtype=lib.float64).reshape(2, 3, 4, 4))
r = T.vmap(lambda x: x.sum(), (0,))(data[:0]), T.vmap(lambda x: x * 2)(data[:0])
a = T.vmap(lambda x: x + lib.rand(3), randomness='different')(data * 0); b = T.vmap(lambda x: x + lib.rand(3), randomness='same')(data * 0); r = bool((a[0] == a[1]).any()), bool((b[0] == b[1]).all()), bool((b[0] == a[0]).any())
T.vmap(lambda x: x + lib.rand(3))(data)
T.vmap(lambda x: F.dropout(x))(data)
T.vmap(lambda x: x, randomness='no')(data)
T.vmap(lambda x: x, chunk_size=0)(data)
T.vmap(lambda x: x)(3.)
T.vmap(lambda x: x)(x[0])
T.vmap(lambda x: x, 2)(data)
T.vmap(lambda x: x, [0])(data)
T.vmap(lambda x: x, (0, 0))(data)
T.vmap(lambda x: x, None)(data)
T.vmap(lambda x: x, 'a')(data)
T.vmap(lambda x: x)()
T.vmap(lambda x, y: x)(data, y)
T.vmap(lambda x: 3)(data)
T.vmap(lambda x: x, out_dims=None)(data)
T.vmap(lambda x: x, out_dims=3)(data)
T.vmap(lambda x: x, out_dims=(0, 0))(data)
T.vmap(lambda x: x, out_dims='a')(data)
T.vmap(lambda x: x.sum().item())(data)
T.vmap(lambda x: x if x.sum() > 0 else -x)(data)
T.vmap(lambda x: y.mul_(x))(data)
# constants
r = T.grad(lambda x: lib.tensor(3.))(x), T.jacrev(lambda x: y)(x), T.jacfwd(lambda x: y)(x), T.jvp(lambda x: y, (x,), (x,)), T.grad(lambda x: x.detach().sum())(x)
r = T.jvp(lambda x: x.long(), (x,), (x,)), T.jacrev(lambda x: x[:0])(x).shape, T.jacrev(lambda x: x * 2)(x[:0]).shape, T.jacfwd(lambda x: x * 2)(x[:0]).shape
z = x + 1j; r = T.jvp(lambda z: z * z, (z,), (z,)), T.vjp(lambda z: z * z, z)[1](z), T.grad(lambda z: (z * z.conj()).real.sum())(z)
r = T.functionalize(lambda x: x.mul_(2))(x), x, T.debug_unwrap(x)
# mistakes
T.grad(lambda x: x * 2)(x)
T.grad(lambda x: 3.)(x)
T.grad(lambda x: (cubes(x),))(x)
T.grad(cubes)(3.)
T.grad(lambda t: t['a'].sum())({'a': x, 'b': None})
T.grad(cubes)(i)
T.grad(cubes, 1)(x)
T.grad(cubes, ())(x)
T.grad(cubes, (0, 0))(x)
T.grad(cubes, 'a')(x)
T.grad(cubes, [0])(x)
T.grad(cubes, None)(x)
T.grad(cubes, -2)(x)
T.grad(cubes)()
T.grad(cubes, has_aux=True)(x)
T.grad(3)(x)
T.vjp(cubes)
T.vjp(lambda x: 3, x)
T.vjp(lambda x: [], x)
T.vjp(lambda x: (x, 3), x)
T.vjp(lambda x: x.long(), x)
T.vjp(cubes, i)
T.vjp(lambda x, n: x * n, x, 3)
T.vjp(lambda x: x, x)[1](one[:2])
T.vjp(lambda x: x, x)[1]((one,))
T.vjp(lambda x: {'a': x}, x)[1]({'b': one})
T.vjp(lambda x: x, x, has_aux=True)
out, back = T.vjp(cubes, x); back(V(1.).sum(), retain_graph=False); back(V(1.).sum())
T.jvp(cubes, x, x)
T.jvp(cubes, [x], [x])
T.jvp(cubes, (), ())
T.jvp(cubes, (x,), (x, x))
T.jvp(cubes, (x,), (x[:2],))
T.jvp(cubes, (x,), (3.,))
T.jvp(cubes, (2.,), (3.,))
T.jvp(cubes, (i,), (i,))
T.jvp(lambda x: 3, (x,), (x,))
T.jvp(lambda x: y, (x,), (x,), strict=True)
T.linearize(lambda x: x * x, x)[1](x[:2])
T.linearize(lambda x: x * x, x)[1](x, x)
T.linearize(lambda x: x * x, x)[1](x.float())
T.jacrev(lambda x: 3)(x)
T.jacrev(cubes)(3.)
T.jacrev(lambda x: x * 2)(i)
T.jacrev(lambda x: x.long())(x)
T.jacrev(lambda x: x * 1j)(x)
T.jacrev(cubes)(x + 0j)
T.jacrev(cubes, chunk_size=0)
T.jacfwd(lambda x: x * 1j)(x)
T.jacfwd(cubes)(x + 0j)
T.jacfwd(lambda x: x * 2)(i)
T.functionalize(cubes, remove='all')
T.debug_unwrap(3)
T.grad(lambda x: 1 / 0)(x)
"""


def derivatives(expression, lib):
    """The results of all transforms of a function; those of lazuli are not computed yet."""
    rng = np.random.default_rng(len(expression))

    def tensor(shape):
        return lib.tensor(rng.normal(size=shape).tolist(), dtype=lib.float64)

    a, v = tuple(map(tensor, (X, Y, W))), tuple(map(tensor, (X, Y, W)))
    b = tuple(tensor((4, *shape)) for shape in (X, Y, W))
    names = {"lib": lib, "F": lib.nn.functional, "T": lib.func, "a": a, "v": v, "b": b}

    def u(output):  # other weights for each element of the output
        return lib.linspace(-1.0, 2.0, output.numel(), dtype=lib.float64).reshape(output.shape)

    def f(x, y, w):
        return eval(expression, {"x": x, "y": y, "w": w, **names})

    names.update(u=u, f=f, s_=lambda output: (output * u(output)).sum(), s=lambda *a: names["s_"](f(*a)))
    return {name: outcome(lambda text=text: eval(text, names)) for name, text in TRANSFORMS.items()}


class Failed:
    def __init__(self, error):
        self.classes, self.text = [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"], str(error)

    def __repr__(self):
        return f"{self.classes[0]}: {self.text}"


def outcome(function):
    try:
        return function()
    except Exception as error:
        return Failed(error)


def program(text, lib):
    names = {"lib": lib}

    def run():
        exec(HEAD + text.replace("\\n", "\n"), names)
        return plain(names.get("r"), lib)

    return outcome(run)


def plain(value, lib):
    """A result as Python's values."""
    if isinstance(value, lib.Tensor):
        return (str(value.dtype).split(".")[-1], value.detach().resolve_conj().numpy().tolist())
    if isinstance(value, dict):
        return {key: plain(item, lib) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(plain(item, lib) for item in value)
    return value


def same(a, b):
    if isinstance(a, dict) or isinstance(b, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, (float, complex)) and type(a) is type(b):
        return bool(np.isclose(a, b, rtol=1e-9, atol=1e-10, equal_nan=True))
    return a == b


def agree(expected, got):
    if isinstance(expected, Failed) or isinstance(got, Failed):
        return isinstance(expected, Failed) and isinstance(got, Failed) and expected.classes[0] in got.classes
    return same(expected, got)


def compared(pattern):
    """(what, torch's result, lazuli's) for each."""
    for expression in FUNCTIONS:
        if re.search(pattern, expression):
            theirs, ours = derivatives(expression, torch), derivatives(expression, lz)
            lz.mark_step()
            for name, value in theirs.items():
                yield f"{name}: {expression}", *(plain(v, lib) for v, lib in ((value, torch), (ours[name], lz)))
    for text in PROGRAMS.strip().splitlines():
        if not text.startswith("#") and re.search(pattern, text):
            yield text, program(text, torch), program(text, lz)


def main():
    warnings.simplefilter("ignore")
    counts = [0, 0]
    for what, expected, got in compared(sys.argv[2] if len(sys.argv) > 2 else ""):
        right = agree(expected, got)
        counts[right] += 1
        if not right:
            print(f"{what}\n   torch: {expected}\n   lazuli: {got}\n")
    print(f"{counts[1]} of {sum(counts)} derivatives and programs are as torch has them")
    return 1 if counts[0] or not counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
