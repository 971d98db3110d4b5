#!/usr/bin/env python3
"""Names that programs stop at if they are missing: their values, structures and errors beside torch's.

    torch_names_test.py FOLDER [PATTERN...]      FOLDER holds the package lazuli, as build/PRESET/python does
"""

import contextlib
import fnmatch
import sys
import warnings

import numpy as np
import torch
from cases import report

sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402

RANDOM = np.random.default_rng(1)
X, Y, W = (RANDOM.normal(size=(3, 4)) for _ in range(3))


def flat(value):
    """Arrays of the tensors in tuples of tuples, with the structure as text."""
    if isinstance(value, (tuple, list)):
        return [v for item in value for v in flat(item)]
    return [value.detach().numpy()]


def shape_of(value):
    return tuple(shape_of(v) for v in value) if isinstance(value, (tuple, list)) else tuple(value.shape)


def compare(call, rtol=1e-9):
    """call(module) gives the same structure of the same values, or an error of the same class."""
    results = []
    for module in (lz, torch):
        try:
            results.append(call(module))
        except Exception as error:
            results.append(error)
    ours, theirs = results
    if isinstance(theirs, Exception):
        kinds = (RuntimeError, ValueError) if isinstance(theirs, RuntimeError) else type(theirs)
        assert isinstance(ours, kinds), f"{ours!r}, not {theirs!r}"
        return
    if isinstance(ours, Exception):
        raise ours
    assert shape_of(ours) == shape_of(theirs)
    for a, b in zip(flat(ours), flat(theirs), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)


def tensors(m, *arrays):
    return tuple(m.tensor(a, requires_grad=True) for a in arrays)


def check_derivatives():
    one = lambda m: (lambda x: (x ** 3).sin())
    two = lambda m: (lambda x, y: (x * y.exp(), (x * y).sum()))
    scalar = lambda m: (lambda x, y: (x ** 2 * y.sin()).sum())
    for name, function, arrays, v in (("jacobian", one, (X,), None), ("jacobian", two, (X, Y), None), ("hessian", scalar, (X, Y), None),
                                      ("hessian", lambda m: (lambda x: (x ** 3).sum()), (X[0],), None)):
        compare(lambda m, n=name, f=function, a=arrays: getattr(m.autograd.functional, n)(f(m), tensors(m, *a) if len(a) > 1 else tensors(m, *a)[0]))
    for name, weights in (("vjp", lambda m: (m.tensor(W), m.tensor(2.0, dtype=m.float64))), ("jvp", lambda m: tensors(m, W, X))):
        compare(lambda m, n=name, w=weights: getattr(m.autograd.functional, n)(two(m), tensors(m, X, Y), w(m)))
    for name in ("vhp", "hvp"):
        compare(lambda m, n=name: getattr(m.autograd.functional, n)(scalar(m), tensors(m, X, Y), tensors(m, W, X)))
    for strict in (False, True):
        compare(lambda m, s=strict: m.autograd.functional.jacobian(lambda x, y: x * 2, tensors(m, X, Y), strict=s))
    compare(lambda m: m.autograd.functional.vjp(one(m), tensors(m, X)[0]))
    compare(lambda m: m.autograd.functional.jvp(lambda x, y: (x, y.reshape(-1)), tensors(m, X, Y), tensors(m, W, X)))
    compare(lambda m: m.autograd.functional.hessian(one(m), tensors(m, X)[0]))
    compare(lambda m: m.autograd.functional.jacobian(one(m), 3.0))
    # A history of their own.
    def third(m):
        x = m.tensor(X[0], requires_grad=True)
        h = m.autograd.functional.hessian(lambda v: (v ** 4).sum(), x, create_graph=True)
        return m.autograd.grad(h.sum(), x)
    compare(third)


def check_losses():
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        for reduction in ("none", "mean", "sum"):
            def call(m, n=name, r=reduction):
                x, y, w = tensors(m, X, Y, np.abs(W))
                loss = getattr(m.nn.functional, n)(x, y, reduction=r, weight=w)
                return (loss, *m.autograd.grad(loss.sum(), [x, y, w]))
            compare(call)
    compare(lambda m: m.nn.functional.mse_loss(m.tensor(X), m.tensor(Y), weight=m.tensor(W[0])))
    labels = np.array([1, 0, 2])
    for named in ({}, {"reduction": "sum", "label_smoothing": 0.1}, {"ignore_index": 0}):
        def cross(m, n=named):
            x, w, b = tensors(m, X, RANDOM.normal(size=(3, 4)) * 0 + Y, W[:, 0].copy())
            loss = m.nn.functional.linear_cross_entropy(x, w, m.tensor(labels), linear_bias=b, **n)
            return (loss, *m.autograd.grad(loss, [x, w, b]))
        compare(cross)
    def bag(m):
        w = m.tensor(W * 3, requires_grad=True)
        y = m.nn.functional.embedding_bag(m.tensor(np.array([[0, 1], [1, 1]])), w, max_norm=1.5)
        return y, w
    compare(bag)


def check_grouped_mm():
    """torch's has kernels for bfloat16 alone, and no CPU one everywhere: the products are written out."""
    a, b = RANDOM.normal(size=(5, 3)), RANDOM.normal(size=(2, 3, 4))
    ends = np.array([2, 4], dtype=np.int32)
    expected = np.concatenate([a[:2] @ b[0], a[2:4] @ b[1], np.zeros((1, 4))])
    found = lz.nn.functional.grouped_mm(lz.tensor(a), lz.tensor(b), offs=lz.tensor(ends))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    c = RANDOM.normal(size=(5, 4))
    found = lz.nn.functional.grouped_mm(lz.tensor(a.T.copy()), lz.tensor(c), offs=lz.tensor(ends))
    np.testing.assert_allclose(found.numpy(), np.stack([a[:2].T @ c[:2], a[2:4].T @ c[2:4]]), rtol=1e-12)
    d, e = RANDOM.normal(size=(2, 3, 4)), RANDOM.normal(size=(4, 5))
    found = lz.nn.functional.grouped_mm(lz.tensor(d), lz.tensor(e), offs=lz.tensor(ends))
    np.testing.assert_allclose(found.numpy(), np.concatenate([d[0] @ e[:, :2], d[1] @ e[:, 2:4], np.zeros((3, 1))], 1), rtol=1e-12)


def check_antialias():
    for mode in ("bilinear", "bicubic"):
        for named in ({"size": (3, 5)}, {"size": (11, 4)}, {"scale_factor": 0.4}, {"size": (3, 5), "align_corners": True},
                      {"scale_factor": 0.37, "recompute_scale_factor": True}):
            def call(m, mode=mode, n=named):
                x = m.tensor(np.random.default_rng(2).normal(size=(1, 2, 8, 9)), requires_grad=True)
                y = m.nn.functional.interpolate(x, mode=mode, antialias=True, **n)
                return y, m.autograd.grad((y * y).sum(), x)[0]
            compare(call, rtol=1e-7)
    compare(lambda m: m.nn.functional.interpolate(m.ones(1, 1, 4, 4), size=2, mode="nearest", antialias=True))


class Net:
    def __new__(cls, m):
        class Net(m.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = m.nn.Buffer(m.ones(2))
                self.other = m.nn.Buffer(m.zeros(3), persistent=False)
        return Net()


def check_buffers():
    described = []
    for m in (lz, torch):
        net = Net(m)
        net.first = m.zeros(2)
        described.append(([n for n, _ in net.named_buffers()], list(net.state_dict()), isinstance(net.other, m.nn.Buffer),
                          isinstance(m.ones(1), m.nn.Buffer), net.first.tolist()))
        u = m.nn.UninitializedParameter()
        before = isinstance(u, m.nn.UninitializedParameter), m.nn.parameter.is_lazy(u), isinstance(u, m.nn.Parameter), u.requires_grad
        u.materialize((2, 3))
        b = m.nn.UninitializedBuffer()
        b.materialize((4,))
        described[-1] += (before, isinstance(u, m.nn.UninitializedParameter), m.nn.parameter.is_lazy(u), isinstance(u, m.nn.Parameter),
                          tuple(u.shape), tuple(b.shape), m.nn.parameter.is_lazy(b))
    assert described[0] == described[1], described


def check_sync_batch_norm():
    x = RANDOM.normal(size=(5, 3, 4)).astype(np.float32)
    net = lz.nn.SyncBatchNorm.convert_sync_batchnorm(lz.nn.Sequential(lz.nn.BatchNorm1d(3), lz.nn.ReLU()))
    other = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.ReLU()))
    assert repr(net) == repr(other) and list(net.state_dict()) == list(other.state_dict()), (net, other)
    plain = torch.nn.BatchNorm1d(3)  # torch's runs on GPUs alone
    np.testing.assert_allclose(net[0](lz.tensor(x)).detach().numpy(), plain(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(net[0].running_var.numpy(), plain.running_var.numpy(), rtol=1e-5)
    np.testing.assert_allclose(net.eval()[0](lz.tensor(x)).detach().numpy(), plain.eval()(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6)
    compare(lambda m: m.nn.SyncBatchNorm(3)(m.ones(3)))


def check_containers():
    texts = []
    for m in (lz, torch):
        s = m.nn.Sequential(m.nn.ReLU(), m.nn.Tanh())
        t = m.nn.ParameterDict({"a": m.ones(2, 3), "b": 3})
        texts.append((len(s * 2), len(2 * s), len(s + s), [type(x).__name__ for x in s * 3], repr(t)))
        s *= 2
        s += m.nn.Sequential(m.nn.ELU())
        texts[-1] += ([type(x).__name__ for x in s],)
        for wrong in (lambda: s * 0, lambda: s * 1.5, lambda: s + 3):
            try:
                wrong()
                texts[-1] += (None,)
            except (TypeError, ValueError) as error:
                texts[-1] += (type(error).__name__,)
    assert texts[0] == texts[1], texts


def check_checkpoint():
    for reentrant in (False,):
        logs = []
        for m in (lz, torch):
            log = []

            @contextlib.contextmanager
            def note(name, log=log):
                log.append(name)
                yield

            checkpoint = __import__(f"{m.__name__}.utils.checkpoint", fromlist=["checkpoint"]).checkpoint
            x = m.tensor(X, requires_grad=True)
            y = checkpoint(lambda v: (v.sin() * v).sum(), x, use_reentrant=reentrant, context_fn=lambda note=note: (note(1), note(2)))
            y.backward()
            calls = []

            def changing(v, calls=calls):
                calls.append(1)
                return (v.exp() * v)[:len(calls)].sin()

            try:
                checkpoint(changing, x, use_reentrant=False).sum().backward()
                raised = None
            except Exception as error:
                raised = type(error).__name__
            logs.append((log, raised))
            compare(lambda m: m.utils.checkpoint.checkpoint(lambda v: v, m.ones(1), use_reentrant=False, determinism_check="some"))
        assert logs[0] == logs[1], logs


def check_tensors():
    described = []
    for m in (lz, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = m.ones(2, 3)
            s, t = x.untyped_storage(), x.storage()
            described.append((s.nbytes(), s.size(), len(s), s.element_size(), t.nbytes(), t.size(), len(t), t.element_size(), t[0], m.is_storage(s),
                              x.dim_order(), x.t().dim_order(), tuple(x.new(2, 3).shape), x[1:].untyped_storage().data_ptr() == s.data_ptr(),
                              m.ones(2, 3).untyped_storage().data_ptr() == s.data_ptr(), x.is_set_to(x), x.is_set_to(x[1:]),
                              m.ones(2, 3)[1:].untyped_storage().nbytes(), x.new([1, 2]).dtype == m.float32))
    assert described[0] == described[1], described
    compare(lambda m: np.float64(2) * m.tensor(X) - np.int64(3) / m.tensor(X))


def check_make_tensor():
    for name in ("float32", "float64", "int64", "uint8", "bool", "complex64", "bfloat16", "float16", "int8"):
        for named in ({}, {"noncontiguous": True}, {"low": 1, "high": 5}, {"exclude_zero": True}):
            if name == "bool" and "low" in named:
                continue
            bounds = []
            for m in (lz, torch):
                x = m.testing.make_tensor((40, 50), dtype=getattr(m, name), device="cpu", **named)
                part = x.real if name == "complex64" else x
                v = part.to(m.float64)
                bounds.append((tuple(x.shape), x.dtype == getattr(m, name), x.is_contiguous(), round(v.min().item()), round(v.max().item())))
            assert bounds[0][:3] == bounds[1][:3] and abs(bounds[0][3] - bounds[1][3]) <= 1 and abs(bounds[0][4] - bounds[1][4]) <= 1, (name, named, bounds)
    compare(lambda m: m.testing.make_tensor(3, dtype=m.int64, device="cpu", low=3, high=3))
    compare(lambda m: m.testing.make_tensor(3, dtype=m.int64, device="cpu", requires_grad=True))


def check_settings():
    described = []
    for m in (lz, torch):
        m.set_deterministic_debug_mode("warn")
        one = m.get_deterministic_debug_mode(), m.is_deterministic_algorithms_warn_only_enabled(), m.are_deterministic_algorithms_enabled()
        m.set_deterministic_debug_mode(0)
        two = m.get_deterministic_debug_mode()
        m.set_warn_always(False)
        with m.nn.attention.sdpa_kernel([m.nn.attention.SDPBackend.MATH]):
            three = m.is_warn_always_enabled()
        layer = m.nn.utils.skip_init(m.nn.Linear, 2, 3)
        described.append((one, two, three, tuple(layer.weight.shape), [b.name for b in m.nn.attention.SDPBackend.__members__.values()]
                          if hasattr(m.nn.attention.SDPBackend, "__members__") else None))
    assert described[0][:4] == described[1][:4], described
    compare(lambda m: m.set_deterministic_debug_mode(7))
    compare(lambda m: m.nn.attention.sdpa_kernel(3).__enter__())


checks = {name[6:]: value for name, value in list(globals().items()) if name.startswith("check_")}
sys.exit(report({n: c for n, c in checks.items() if not sys.argv[2:] or any(fnmatch.fnmatch(n, p) for p in sys.argv[2:])}, "groups of names"))
