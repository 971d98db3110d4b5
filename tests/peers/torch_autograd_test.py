#!/usr/bin/env python3
"""Programs of autograd give what they give in torch: leaves, hooks, modes, functions, checkpoints, gradients of gradients, errors.

    torch_autograd_test.py FOLDER [PATTERN]      FOLDER holds the package lazuli, as build/PRESET/python does

A program leaves its result in r: tensors, numbers, text, and lists of them. An error is the result, too: it must be one of the class of
Python's that torch's is; its text does not count.
"""

import re
import sys
import warnings

import numpy as np
import torch
import torch.utils.checkpoint  # noqa: F401

sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402

# What all programs begin with.
HEAD = """
def V(*values, dtype=None): return lib.tensor(list(values), dtype=dtype or lib.float64, requires_grad=True)
x, w = V(1., 2., 3.), V(0.5, -1., 2.)
A = lib.autograd
class Square(A.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        return 2 * x * dy
class Scale(A.Function):
    @staticmethod
    def forward(ctx, x, by, flag=None):
        ctx.by = by
        return x * by
    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.by, None, None
log = []
def M():
    m = lib.nn.Linear(3, 2).double()
    with lib.no_grad():
        m.weight.copy_(lib.tensor([[0.1, 0.2, 0.3], [1., -1., 2.]], dtype=lib.float64))
        m.bias.zero_()
    return m
def L(v): return None if v is None else v.tolist() if isinstance(v, lib.Tensor) else [L(i) for i in v] if isinstance(v, (list, tuple)) else v
class Two(lib.nn.Module):
    def forward(self, a, b=2, *, k=1): return a * b * k, a + k
"""

PROGRAMS = r"""
# leaves
y = x * 2; r = [x.is_leaf, y.is_leaf, y.detach().is_leaf, lib.ones(2).is_leaf, x.requires_grad, y.requires_grad]
y = x.detach().requires_grad_(); r = [y.is_leaf, y.requires_grad, x.data.requires_grad]
y = x * 2; y.requires_grad_(True); r = y.requires_grad
y = x * 2; y.requires_grad_(False)
y = x * 2; y.requires_grad = False
r = lib.ones(2, dtype=lib.int64).requires_grad_()
y = x * 2; r = [y.retains_grad, x.retains_grad]; y.retain_grad(); r += [y.retains_grad]; y.sum().backward(); r += [y.grad, x.grad]
y = x * 2; y.retain_grad(); y.retain_grad(); (y * y).sum().backward(retain_graph=True); (y * y).sum().backward(); r = [y.grad, x.grad]
y = x * 2; y.register_hook(lambda g: g * 3); y.retain_grad(); y.register_hook(lambda g: g + 1); y.sum().backward(); r = [y.grad, x.grad]
y = x * 2; y.retain_grad(); (y.sum() + y.prod()).backward(); y.grad = None; r = [y.grad, x.grad]
lib.ones(2).retain_grad()
x.retain_grad(); x.sum().backward(); r = [x.retains_grad, x.grad]
r = [x.grad, x.grad_fn]
x.grad = lib.ones(3, dtype=lib.float64); x.sum().backward(); r = x.grad
x.grad = lib.ones(2, dtype=lib.float64)
# text of histories
r = [type((x * 2).grad_fn).__name__, type((x + w).grad_fn).__name__, (x - w).grad_fn.name(), x.exp().grad_fn.name(), x.sum().grad_fn.name()]
r = [(x / w).grad_fn.name(), x.sin().grad_fn.name(), (-x).grad_fn.name(), x.sqrt().grad_fn.name(), x.tanh().grad_fn.name()]
r = [type(n[0]).__name__ for n in (x * w).grad_fn.next_functions], (x * w).grad_fn.next_functions[0][0].variable is not None
r = [type((x * 2.).grad_fn.next_functions[0][0]).__name__, len((x * 2.).exp().grad_fn.next_functions)]
r = repr((x * 2).sum())
r = repr(x * 2)
r = [(x * 2).grad_fn == (x * 2).grad_fn]; y = x * 2; r += [y.grad_fn == y.grad_fn, y.grad_fn != x.exp().grad_fn]
r = [type(Square.apply(x).grad_fn).__name__, repr(Square.apply(x))]
# hooks
h = x.register_hook(lambda g: log.append(g.tolist())); (x * w).sum().backward(); h.remove(); (x * w).sum().backward(); r = [log, x.grad]
x.register_hook(lambda g: g * 2); x.register_hook(lambda g: g + 1); (x * 3).sum().backward(); r = x.grad
y = x * 2; y.register_hook(lambda g: g * 10); r = A.grad(y.sum(), x)
y = x * 2; y.register_hook(lambda g: g * 10); r = A.grad(y.sum(), y)
x.register_hook(lambda g: log.append(1)); (x * 2 + x * 3).sum().backward(); r = [log, x.grad]
lib.ones(2).register_hook(lambda g: g)
x.register_hook(lambda g: g[:2]); x.sum().backward()
x.register_hook(lambda g: 1 / 0); x.sum().backward()
x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.tolist())); x.sum().backward(); x.sum().backward(); r = [log, x.grad]
x.register_post_accumulate_grad_hook(lambda p: setattr(p, 'grad', None)); x.sum().backward(); r = x.grad
h = x.register_post_accumulate_grad_hook(lambda p: log.append(1)); h.remove(); x.sum().backward(); r = log
(x * 2).register_post_accumulate_grad_hook(lambda p: None)
y = x * w; y.grad_fn.register_hook(lambda gi, go: log.append(([g.tolist() for g in gi], [g.tolist() for g in go]))); y.sum().backward(); r = log
y = x * w; y.grad_fn.register_hook(lambda gi, go: (gi[0] * 2, gi[1] * 3)); y.sum().backward(); r = [x.grad, w.grad]
y = x * w; y.grad_fn.register_prehook(lambda go: (go[0] * 5,)); y.sum().backward(); r = [x.grad, w.grad]
y = x * w; h = y.grad_fn.register_prehook(lambda go: (go[0] * 5,)); h.remove(); y.sum().backward(); r = [x.grad, w.grad]
y, z = x * 2, x * 3; A.graph.register_multi_grad_hook((y, z), lambda gs: log.append([g.tolist() for g in gs])); (y + z).sum().backward(); r = log
# grad
r = A.grad((x * w).sum(), [x, w])
r = A.grad([x.sum(), (x * w).sum()], [x, w])
r = A.grad(x * w, x, grad_outputs=lib.tensor([1., 2., 3.], dtype=lib.float64))
r = A.grad(x * w, x)
r = A.grad(x.sum(), w)
r = A.grad(x.sum(), w, allow_unused=True)
r = A.grad(x.sum(), [x, w], materialize_grads=True)
r = A.grad(x.sum(), w, materialize_grads=True, allow_unused=False)
r = A.grad(x.sum(), lib.ones(3))
r = A.grad(lib.ones(3).sum(), x)
y = (x * x).sum(); A.grad(y, x); A.grad(y, x)
y = (x * x).sum(); A.grad(y, x, retain_graph=True); r = A.grad(y, x)
g, = A.grad((x ** 3).sum(), x, create_graph=True); r = [g, g.requires_grad, A.grad(g.sum(), x)]
g, = A.grad((x ** 3).sum(), x); r = g.requires_grad
g, = A.grad((x.sin() * w).sum(), x, create_graph=True); g.sum().backward(); r = [x.grad, w.grad]
r = A.grad(x * w, [x, w], grad_outputs=lib.eye(3, dtype=lib.float64), is_grads_batched=True)
r = A.grad([x * 2, x.sum()], x, grad_outputs=[lib.ones(3, dtype=lib.float64), None])
r = A.grad([x * 2, x.sum()], x, grad_outputs=[lib.ones(3, dtype=lib.float64)])
r = A.grad(x * 2, x, grad_outputs=lib.ones(2, dtype=lib.float64))
y = x * 2; z = y * y; r = A.grad(z.sum(), [y, x])
r = A.grad((x.detach() * w).sum(), [x, w], allow_unused=True)
r = A.grad(x.round().sum() + x.sum(), x)
# backward
(x * w).sum().backward(); r = [x.grad, w.grad, x.grad.requires_grad]
(x * w).backward(lib.ones(3, dtype=lib.float64)); r = [x.grad, w.grad]
(x * w).backward(gradient=lib.tensor([1., 0., 2.], dtype=lib.float64)); r = [x.grad, w.grad]
(x * w).backward()
y = (x * w).sum(); y.backward(); y.backward()
y = (x * w).sum(); y.backward(retain_graph=True); y.backward(); r = x.grad
y = x.sum(); y.backward(); y.backward(); r = x.grad
(x ** 3).sum().backward(create_graph=True); r = [x.grad, x.grad.requires_grad]
(x * w).sum().backward(inputs=[x]); r = [x.grad, w.grad]
(x * w).sum().backward(inputs=w); r = [x.grad, w.grad]
y = x * 2; (y * y).sum().backward(inputs=[y]); r = [y.grad, x.grad]
y = x * 2; (y * y).sum().backward(inputs=[x, y]); r = [y.grad, x.grad]
(x * 2).sum().backward(inputs=[]); r = 0
(x * 2).sum().backward(inputs=[w]); r = [w.grad, x.grad]
(x * 2).sum().backward(inputs=[lib.ones(3)]); r = 0
A.backward([x.sum(), (x * w).sum()]); r = [x.grad, w.grad]
A.backward([x.sum(), x * w], [None, lib.ones(3, dtype=lib.float64)]); r = [x.grad, w.grad]
A.backward([x.sum()], inputs=[x]); r = x.grad
lib.ones(2).sum().backward()
y = x * 2; y.sum().backward(); x.grad.zero_(); (x * 5).sum().backward(); r = x.grad
g = lib.ones(3, dtype=lib.float64); x.backward(g); x.grad.add_(1); r = [x.grad, g]
x.backward(lib.ones(3, dtype=lib.float64)); r = x.grad
# modes
with lib.no_grad(): y = x * 2; z = V(1.); r = [y.requires_grad, z.requires_grad, lib.is_grad_enabled()]
with lib.no_grad():\n    with lib.enable_grad(): y = x * 2\nr = [y.requires_grad, lib.is_grad_enabled()]
@lib.no_grad()\ndef f(x): return x * 2\nr = [f(x).requires_grad, f.__name__, lib.is_grad_enabled()]
@lib.no_grad\ndef f(x): return x * 2\nr = [f(x).requires_grad, f.__name__]
@lib.enable_grad()\ndef f(x): return x * 2\nwith lib.no_grad(): r = f(x).requires_grad
@lib.set_grad_enabled(False)\ndef f(x): return x * 2\nr = [lib.is_grad_enabled(), f(x).requires_grad, lib.is_grad_enabled()]
lib.set_grad_enabled(False); r = [lib.is_grad_enabled(), (x * 2).requires_grad]; lib.set_grad_enabled(True)
with lib.set_grad_enabled(False): r = [lib.is_grad_enabled()]\nr += [lib.is_grad_enabled()]
@lib.no_grad()\ndef f():\n    yield lib.is_grad_enabled()\n    yield lib.is_grad_enabled()\nr = []\nfor v in f(): r += [v, lib.is_grad_enabled()]
@lib.no_grad()\ndef f():\n    got = yield 1\n    return got\ng = f(); next(g)\ntry: g.send(5)\nexcept StopIteration as e: r = [e.value, lib.is_grad_enabled()]
@lib.no_grad()\ndef f(n): return n if n == 0 else f(n - 1)\nr = [f(3), lib.is_grad_enabled()]
try:\n    with lib.no_grad(): 1 / 0\nexcept ZeroDivisionError: r = lib.is_grad_enabled()
with lib.inference_mode(): y = x * 2; r = [y.requires_grad, y.is_inference(), lib.is_inference_mode_enabled(), lib.is_grad_enabled()]\nr += [lib.is_inference_mode_enabled(), x.is_inference()]
with lib.inference_mode(): y = x.detach() * 2\nr = (y * w).sum()
with lib.inference_mode(): y = x.detach() * 2\nr = (y + w).sum().requires_grad
with lib.inference_mode(): y = x.detach() * 2\nz = y.clone(); (z * w).sum().backward(); r = [w.grad, z.is_inference()]
with lib.inference_mode(): y = x.detach() * 2\ny.requires_grad_()
with lib.inference_mode(False): r = [(x * 2).requires_grad, lib.is_inference_mode_enabled()]
@lib.inference_mode()\ndef f(x): return x * 2\nr = f(x).is_inference()
@lib.inference_mode\ndef f(x): return x * 2\nr = f(x).is_inference()
# anomaly
with A.detect_anomaly(): (x * 2).sum().backward()\nr = x.grad
with A.detect_anomaly(): (V(0.).sqrt() * 0).sum().backward()
with A.detect_anomaly(check_nan=False): y = V(0.); (y.sqrt() * 0).sum().backward(); r = y.grad
r = [A.set_detect_anomaly(True) is None, lib.is_anomaly_enabled(), A.set_detect_anomaly(False) is None, lib.is_anomaly_enabled()]
with A.set_detect_anomaly(True): r = [lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()]\nr += [lib.is_anomaly_enabled()]
# functions
y = Square.apply(x); y.sum().backward(); r = [y, y.requires_grad, x.grad]
g, = A.grad(Square.apply(x).sum(), x, create_graph=True); r = [g, A.grad(g.sum(), x, create_graph=True)]
g, = A.grad((Square.apply(x) * w).sum(), x, create_graph=True); r = A.grad((g * g).sum(), [x, w])
r = A.grad(Scale.apply(x, 3.).sum(), x), A.grad(Scale.apply(x, 2., 'a').sum(), x)
r = [Square.apply(x.detach()).requires_grad, Square.apply(x.detach())]
with lib.no_grad(): r = Square.apply(x).requires_grad
Square()(x)
y = Square.apply(x); y.sum().backward(); y.sum().backward()
y = Square.apply(x); y.sum().backward(retain_graph=True); y.sum().backward(); r = x.grad
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a, b): ctx.save_for_backward(a, b); return a * b, a + b\n    @staticmethod\n    def backward(ctx, g, h): a, b = ctx.saved_tensors; log.append(ctx.needs_input_grad); return g * b + h, g * a + h\np, q = F.apply(x, w.detach()); (p * 2 + q).sum().backward(); r = [x.grad, w.grad, log]
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a * 2, a * 3\n    @staticmethod\n    def backward(ctx, g, h): log.append([g.tolist(), h.tolist()]); return g * 2 + h * 3\np, q = F.apply(x); p.sum().backward(); r = [x.grad, log]
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): ctx.set_materialize_grads(False); return a * 2, a * 3\n    @staticmethod\n    def backward(ctx, g, h): log.append(h is None); return g * 2\np, q = F.apply(x); p.sum().backward(); r = [x.grad, log]
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): m = a > 1.5; ctx.mark_non_differentiable(m); ctx.save_for_backward(m); return a * m, m\n    @staticmethod\n    def backward(ctx, g, h): return g * ctx.saved_tensors[0]\np, m = F.apply(x); p.sum().backward(); r = [x.grad, m.requires_grad, p.requires_grad]
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): b = a * 2; ctx.mark_non_differentiable(b); return a * 3, b\n    @staticmethod\n    def backward(ctx, g, h): return g * 3\np, m = F.apply(x); p.sum().backward(); r = [x.grad, m.requires_grad, m]
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): a.mul_(2); ctx.mark_dirty(a); return a\n    @staticmethod\n    def backward(ctx, g): return g * 2\ny = x * 1; z = F.apply(y); (z * z).sum().backward(); r = [x.grad, z, z is y]
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): a.mul_(2); ctx.mark_dirty(a); return a\n    @staticmethod\n    def backward(ctx, g): return g * 2\nF.apply(x)
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a\n    @staticmethod\n    def backward(ctx, g): return g * 7\ny = F.apply(x); y.sum().backward(); r = [x.grad, y is x, y.is_leaf, x.is_leaf]
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a * 2\n    @staticmethod\n    def backward(ctx, g): return g, g\nF.apply(x).sum().backward()
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a, b): return a * b\n    @staticmethod\n    def backward(ctx, g): return g\nF.apply(x, w).sum().backward()
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a * 2\n    @staticmethod\n    def backward(ctx, g): return g, None\nF.apply(x).sum().backward(); r = x.grad
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a * 2\n    @staticmethod\n    def backward(ctx, g): return g[:2]\nF.apply(x).sum().backward()
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a * 2\nF.apply(x).sum().backward()
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a * 2\n    @staticmethod\n    @A.function.once_differentiable\n    def backward(ctx, g): return g * 2\nF.apply(x).sum().backward(); r = x.grad
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a * a\n    @staticmethod\n    @A.function.once_differentiable\n    def backward(ctx, g): return g * 2\ny = F.apply(x * 1); g, = A.grad((y * y).sum(), x, create_graph=True); g.sum().backward()
class F(A.Function):\n    @staticmethod\n    def forward(a, n): return a ** n\n    @staticmethod\n    def setup_context(ctx, inputs, output): ctx.save_for_backward(inputs[0], output); ctx.n = inputs[1]\n    @staticmethod\n    def backward(ctx, g): a, y = ctx.saved_tensors; return g * ctx.n * y / a, None\ny = F.apply(x, 3); y.sum().backward(); r = [y, x.grad]
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): y = a.exp(); ctx.save_for_backward(y); return y\n    @staticmethod\n    def backward(ctx, g): return g * ctx.saved_tensors[0]\ny = F.apply(x); g, = A.grad(y.sum(), x, create_graph=True); r = [g, A.grad(g.sum(), x)]
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): ctx.save_for_backward(a, None); return a * 2\n    @staticmethod\n    def backward(ctx, g): log.append([s is None for s in ctx.saved_tensors]); return g\nF.apply(x).sum().backward(); r = log
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): ctx.save_for_backward(3); return a * 2\n    @staticmethod\n    def backward(ctx, g): return g\nF.apply(x)
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): ctx.save_for_backward(a); return a * 2\n    @staticmethod\n    def backward(ctx, g): return g * ctx.saved_tensors[0]\ny = x * 1; z = F.apply(y); y.add_(1); z.sum().backward()
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): raise KeyError('no')\n    @staticmethod\n    def backward(ctx, g): return g\nF.apply(x)
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a * 1\n    @staticmethod\n    def backward(ctx, g): raise KeyError('no')\nF.apply(x).sum().backward()
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return (a * 2).long(), 'text', None\n    @staticmethod\n    def backward(ctx, *g): return g[0]\np, t, n = F.apply(x); r = [p.requires_grad, p, t, n]
class Sign(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a.sign()\n    @staticmethod\n    def backward(ctx, g): return g.clamp(-1, 1)\n(Sign.apply(w) * x).sum().backward(); r = [w.grad, x.grad]
r = Square.apply(x).grad_fn.saved_tensors
y = Square.apply(x); z = Square.apply(y); r = A.grad(z.sum(), [x, y])
r = A.grad(Square.apply(x * 2).sum() + (x * 2).sum(), x)
# saved tensors
with A.graph.saved_tensors_hooks(lambda t: (log.append(t.tolist()), t * 2)[1], lambda p: p / 2): y = x * w\ny.sum().backward(); r = [x.grad, w.grad, len(log)]
with A.graph.saved_tensors_hooks(lambda t: t, lambda p: p): y = (x * w).exp().sum()\ng, = A.grad(y, x, create_graph=True); r = [g, A.grad(g.sum(), [x, w])]
with A.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), lambda p: lib.from_numpy(p)): y = (x.sin() * w).sum()\ny.backward(); r = [x.grad, w.grad]
with A.graph.saved_tensors_hooks(lambda t: t * 10, lambda p: p): y = x * w\ny.sum().backward(); r = [x.grad, w.grad]
with A.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda p: p): y = x * w
with A.graph.saved_tensors_hooks(lambda t: t, lambda p: 1): y = x * w\ny.sum().backward()
with A.graph.save_on_cpu(): y = (x * w).tanh()\ny.sum().backward(); r = [x.grad, w.grad]
with A.graph.saved_tensors_hooks(lambda t: t, lambda p: p): y = Square.apply(x)\ny.sum().backward(); r = x.grad
# checkpoints
f = lambda a: (a.sin() * w).exp(); y = C(f, x, use_reentrant=False); y.sum().backward(); r = [y, x.grad, w.grad]
f = lambda a, b: (a * b, a + b); p, q = C(f, x, w, use_reentrant=False); (p * q).sum().backward(); r = [p, q, x.grad, w.grad]
f = lambda a: (log.append(1), a.tanh() ** 2)[1]; y = C(f, x, use_reentrant=False); y.sum().backward(); r = [len(log), x.grad]
f = lambda a: (a.tanh() * w) ** 2; r = A.grad(C(f, x, use_reentrant=False).sum(), [x, w])
f = lambda a: (a * w) ** 3; g, = A.grad(C(f, x, use_reentrant=False).sum(), x, create_graph=True); r = [g, A.grad(g.sum(), [x, w])]
f = lambda a, k=1: a * k * a; y = C(f, x, use_reentrant=False, k=3); y.sum().backward(); r = x.grad
f = lambda d: {'a': d['a'] * d['b'], 'c': 3}; y = C(f, {'a': x, 'b': w}, use_reentrant=False); y['a'].sum().backward(); r = [y, x.grad]
f = lambda a: C(lambda b: (b * w).sin(), a * 2, use_reentrant=False).exp(); C(f, x, use_reentrant=False).sum().backward(); r = [x.grad, w.grad]
y = x * 2; z = C(lambda a: a.exp() * a, y, use_reentrant=False); z.sum().backward(); r = x.grad
with lib.no_grad(): r = C(lambda a: a * 2, x, use_reentrant=False).requires_grad
z = C(lambda a: lib.nn.functional.dropout(a * w, 0.5), x, use_reentrant=False); z.sum().backward(); k = (z.detach() != 0).double(); r = [(x.grad - k * w.detach() * 2).abs().sum() < 1e-12]
z = C(lambda a: a * lib.rand(3, dtype=lib.float64) * a, x, use_reentrant=False); u = z.detach() / x.detach() ** 2; z.sum().backward(); r = (x.grad - 2 * x.detach() * u).abs().sum() < 1e-12
z = C(lambda a: 1 / 0, x, use_reentrant=False)
m = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Linear(4, 1)).double(); a = m(x).sum(); ga = A.grad(a, [x]); b = lib.utils.checkpoint.checkpoint_sequential(m, 2, x, use_reentrant=False).sum(); gb = A.grad(b, [x]); r = [abs((ga[0] - gb[0]).sum().item()) < 1e-12]
# checks
r = A.gradcheck(lambda a, b: a * b.exp(), (x, w))
r = A.gradcheck(lambda a: (a.sin(), a ** 2), (x,))
r = A.gradcheck(Square.apply, (x,))
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a * a\n    @staticmethod\n    def backward(ctx, g): return g\nr = A.gradcheck(F.apply, (x,), raise_exception=False)
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): return a * a\n    @staticmethod\n    def backward(ctx, g): return g\nA.gradcheck(F.apply, (x,))
r = A.gradgradcheck(lambda a, b: a * b.exp(), (x, w))
r = A.gradgradcheck(Square.apply, (x,))
class F(A.Function):\n    @staticmethod\n    def forward(ctx, a): ctx.save_for_backward(a); return a * a\n    @staticmethod\n    def backward(ctx, g): return 2 * ctx.saved_tensors[0].detach() * g\nr = [A.gradcheck(F.apply, (x,)), A.gradgradcheck(F.apply, (x,), raise_exception=False)]
A.gradcheck(lambda a: a * 2, (x.detach(),))
# hooks of modules
m = M(); m.register_forward_hook(lambda m, i, o: log.append([L(i), L(o)])); m(x); r = log
m = M(); m.register_forward_hook(lambda m, i, o: o * 2); r = m(x)
m = M(); h = m.register_forward_hook(lambda m, i, o: o * 2); h.remove(); r = m(x)
m = M(); m.register_forward_pre_hook(lambda m, i: log.append(L(i))); m(x); r = log
m = M(); m.register_forward_pre_hook(lambda m, i: (i[0] * 2,)); r = m(x)
m = M(); m.register_forward_pre_hook(lambda m, i: i[0] * 2); r = m(x)
m = Two(); m.register_forward_pre_hook(lambda m, a, k: (a, {**k, 'k': 5}), with_kwargs=True); r = m(x, 3, k=2)
m = Two(); m.register_forward_hook(lambda m, a, k, o: log.append([L(a), k, L(o)]), with_kwargs=True); m(x, k=2); r = log
m = Two(); m.register_forward_pre_hook(lambda m, a, k: a, with_kwargs=True); r = m(x, 3, k=2)
m = M(); m.register_forward_hook(lambda m, i, o: log.append(1)); m.register_forward_hook(lambda m, i, o: log.append(2), prepend=True); m(x); r = log
m = M(); m.register_full_backward_hook(lambda m, gi, go: log.append([L(gi), L(go)])); m(x).sum().backward(); r = [log, x.grad, m.weight.grad]
m = M(); m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,)); m(x).sum().backward(); r = [x.grad, m.weight.grad]
m = M(); m.register_full_backward_hook(lambda m, gi, go: log.append([L(gi), L(go)])); m(x.detach()).sum().backward(); r = [log, m.weight.grad]
m = M(); m.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,)); m(x).sum().backward(); r = [x.grad, m.weight.grad]
m = M(); m.register_full_backward_pre_hook(lambda m, go: log.append(L(go))); m(x).sum().backward(); r = log
m = Two(); m.register_full_backward_hook(lambda m, gi, go: log.append([L(gi), L(go)])); p, q = m(x, 3); (p * 2 + q).sum().backward(); r = [log, x.grad]
m = Two(); m.register_full_backward_hook(lambda m, gi, go: log.append([L(gi), L(go)])); p, q = m(x, w); p.sum().backward(); r = [log, x.grad, w.grad]
m = M(); m.register_full_backward_hook(lambda m, gi, go: (1, 2, 3)); m(x).sum().backward()
m = lib.nn.Sequential(M(), lib.nn.Tanh()); m[1].register_forward_hook(lambda m, i, o: log.append(L(i))); m(x); r = log
m = lib.nn.Sequential(M(), lib.nn.Tanh()); [c.register_forward_hook(lambda m, i, o: log.append(type(m).__name__)) for c in m.modules()]; m(x); r = log
m = M()\nwith m.register_forward_hook(lambda m, i, o: o + 1): r = [m(x)]\nr += [m(x)]
m = M(); m.register_forward_hook(lambda m, i, o: 1 / 0); m(x)
m = M(); m.register_forward_hook(lambda m, i, o: log.append('always'), always_call=True)\ntry: m(lib.ones(7))\nexcept Exception: r = log
import copy; m = M(); m.register_forward_hook(lambda m, i, o: o * 2); r = copy.deepcopy(m)(x)
r = M().register_forward_hook(lambda m, i, o: None).id >= 0
h = getattr(lib.nn, 'modules', lib).__dict__.get('module', lib.nn).register_module_forward_hook(lambda m, i, o: log.append(type(m).__name__)); lib.nn.Sequential(M(), lib.nn.ReLU())(x); h.remove(); r = log
# in place
y = x * 2; y.mul_(w); y.sum().backward(); r = [x.grad, w.grad]
y = x.exp(); y.add_(1); y.sum().backward()
y = x * 2; z = y * y; y.add_(1); z.sum().backward()
x.add_(1)
with lib.no_grad(): x.add_(1)\n(x * x).sum().backward(); r = x.grad
x.data.add_(1); (x * x).sum().backward(); r = [x, x.grad]
y = x * 2; y.detach().add_(5); (y * y).sum().backward()
y = x.clone(); y.zero_(); r = y
y = x.detach(); y.mul_(2); r = x
"""


def outcome(text, lib):
    """The result, with tensors as arrays, or the error."""
    checkpoint = lib.utils.checkpoint.checkpoint
    names = {"lib": lib, "C": checkpoint, "np": np}
    try:
        exec(HEAD + text.replace("\\n", "\n"), names)
        return plain(names.get("r"), lib)
    except Exception as error:
        return Failed([c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"], str(error))
    finally:
        lib.set_grad_enabled(True)
        lib.autograd.set_detect_anomaly(False)


class Failed:
    def __init__(self, classes, text):
        self.classes, self.text = classes, text

    def __repr__(self):
        return f"{self.classes[0]}: {self.text}"


def plain(value, lib):
    if isinstance(value, lib.Tensor):
        return (str(value.dtype).split(".")[-1], value.detach().numpy().tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v, lib) for v in value]
    if isinstance(value, dict):
        return {k: plain(v, lib) for k, v in value.items()}
    return value.replace("torch.", "").replace("lazuli.", "") if isinstance(value, str) else value


def same(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True))
    return a == b


def main():
    warnings.simplefilter("ignore")
    pattern = sys.argv[2] if len(sys.argv) > 2 else ""
    counts = [0, 0]
    for text in PROGRAMS.strip().split("\n"):
        if text.startswith("#") or not re.search(pattern, text):
            continue
        expected, got = outcome(text, torch), outcome(text, lz)
        failed = [isinstance(v, Failed) for v in (expected, got)]
        agree = all(failed) and expected.classes[0] in got.classes or not any(failed) and same(expected, got)
        counts[agree] += 1
        if not agree:
            print(f"{text}\n   torch: {expected}\n   lazuli: {got}\n")
    print(f"{counts[1]} of {sum(counts)} programs give what they give in torch")
    return 1 if counts[0] else 0


if __name__ == "__main__":
    sys.exit(main())
