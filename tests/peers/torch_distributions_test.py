#!/usr/bin/env python3
"""Every distribution beside torch's: values and gradients in f64, shapes, supports, transforms, samples by their moments, errors.

    torch_distributions_test.py FOLDER [PATTERN...]

FOLDER holds the package lazuli, as build/PRESET/python does. PATTERN: only the checks whose names match.
"""

import fnmatch
import functools
import pickle
import re
import sys
import warnings

import numpy as np
import torch
import torch.distributions as td
from cases import report

sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402
import lazuli.distributions as ld  # noqa: E402

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)  # which torch takes for numbers of its formulas
lz.set_default_dtype(lz.float64)
RANDOM = np.random.default_rng(3)
POSITIVE, OTHER = np.array([0.6, 1.3, 2.7, 4.2]), np.array([1.9, 0.8, 3.1, 5.5])
LOC, SHARE = np.array([-1.2, 0.3, 2.0, 0.0]), np.array([0.12, 0.5, 0.71, 0.93])
ROWS = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
LOGITS = np.array([[0.4, -1.0, 2.0], [0.0, 1.5, -0.3]])
COUNTS = np.array([0.0, 1.0, 3.0, 2.0])
REAL = np.array([-0.7, 0.2, 1.4, 0.9])
TRIL = np.array([[1.2, 0, 0], [0.3, 0.8, 0], [-0.5, 0.1, 1.5]])
MATRIX = TRIL @ TRIL.T
VECTORS = np.array([[0.3, -1.0, 2.0], [1.1, 0.2, -0.4]])
FACTOR, DIAGONAL = np.array([[0.5, 0.1], [-0.3, 0.8], [1.0, 0.4]]), np.array([0.7, 1.1, 0.4])

# name: (parameters, how they make the distribution, values of its support)
CASES = {
    "Normal": ((LOC, POSITIVE), lambda d, a, b: d.Normal(a, b), REAL),
    "Laplace": ((LOC, POSITIVE), lambda d, a, b: d.Laplace(a, b), REAL),
    "Cauchy": ((LOC, POSITIVE), lambda d, a, b: d.Cauchy(a, b), REAL),
    "StudentT": ((POSITIVE, LOC, OTHER), lambda d, n, a, b: d.StudentT(n, a, b), REAL),
    "Uniform": ((LOC, LOC + POSITIVE), lambda d, a, b: d.Uniform(a, b), LOC + 0.4 * POSITIVE),
    "GeneralizedPareto": ((LOC, POSITIVE, np.array([0.1, 0.4, -0.3, 0.7])), lambda d, a, b, c: d.GeneralizedPareto(a, b, c), LOC + 0.5 * POSITIVE),
    "Gumbel": ((LOC, POSITIVE), lambda d, a, b: d.Gumbel(a, b), REAL),
    "LogNormal": ((LOC, POSITIVE), lambda d, a, b: d.LogNormal(a, b), OTHER),
    "HalfNormal": ((POSITIVE,), lambda d, a: d.HalfNormal(a), OTHER),
    "HalfCauchy": ((POSITIVE,), lambda d, a: d.HalfCauchy(a), OTHER),
    "Exponential": ((POSITIVE,), lambda d, a: d.Exponential(a), OTHER),
    "Gamma": ((POSITIVE, OTHER), lambda d, a, b: d.Gamma(a, b), OTHER[::-1].copy()),
    "InverseGamma": ((POSITIVE, OTHER), lambda d, a, b: d.InverseGamma(a, b), OTHER[::-1].copy()),
    "Chi2": ((POSITIVE,), lambda d, a: d.Chi2(a), OTHER),
    "FisherSnedecor": ((POSITIVE, OTHER), lambda d, a, b: d.FisherSnedecor(a, b), POSITIVE[::-1].copy()),
    "Beta": ((POSITIVE, OTHER), lambda d, a, b: d.Beta(a, b), SHARE),
    "Kumaraswamy": ((POSITIVE, OTHER), lambda d, a, b: d.Kumaraswamy(a, b), SHARE),
    "Dirichlet": ((POSITIVE.reshape(2, 2),), lambda d, a: d.Dirichlet(a), np.array([[0.3, 0.7], [0.8, 0.2]])),
    "Pareto": ((POSITIVE, OTHER), lambda d, a, b: d.Pareto(a, b), POSITIVE + OTHER),
    "Weibull": ((POSITIVE, OTHER), lambda d, a, b: d.Weibull(a, b), OTHER),
    "VonMises": ((LOC, POSITIVE), lambda d, a, b: d.VonMises(a, b), REAL),
    "Bernoulli": ((SHARE,), lambda d, p: d.Bernoulli(p), np.array([0.0, 1, 1, 0])),
    "Bernoulli logits": ((LOC,), lambda d, p: d.Bernoulli(logits=p), np.array([0.0, 1, 1, 0])),
    "ContinuousBernoulli": ((SHARE,), lambda d, p: d.ContinuousBernoulli(p), SHARE[::-1].copy()),
    "ContinuousBernoulli logits": ((LOC,), lambda d, p: d.ContinuousBernoulli(logits=p), SHARE),
    "Geometric": ((SHARE,), lambda d, p: d.Geometric(p), COUNTS),
    "Geometric logits": ((LOC,), lambda d, p: d.Geometric(logits=p), COUNTS),
    "Poisson": ((POSITIVE,), lambda d, p: d.Poisson(p), COUNTS),
    "Binomial": ((SHARE,), lambda d, p: d.Binomial(5, p), COUNTS),
    "Binomial logits": ((LOC,), lambda d, p: d.Binomial(5, logits=p), COUNTS),
    "NegativeBinomial": ((POSITIVE, SHARE), lambda d, n, p: d.NegativeBinomial(n, p), COUNTS),
    "NegativeBinomial logits": ((LOC,), lambda d, p: d.NegativeBinomial(4, logits=p), COUNTS),
    "Categorical": ((ROWS,), lambda d, p: d.Categorical(p), np.array([2.0, 0])),
    "Categorical logits": ((LOGITS,), lambda d, p: d.Categorical(logits=p), np.array([2.0, 0])),
    "OneHotCategorical": ((ROWS,), lambda d, p: d.OneHotCategorical(p), np.eye(3)[[2, 0]]),
    "OneHotCategoricalStraightThrough": ((ROWS,), lambda d, p: d.OneHotCategoricalStraightThrough(p), np.eye(3)[[1, 0]]),
    "Multinomial": ((ROWS,), lambda d, p: d.Multinomial(5, p), np.array([[1.0, 4, 0], [2, 2, 1]])),
    "RelaxedBernoulli": ((SHARE,), lambda d, p: d.RelaxedBernoulli(p.new_tensor(0.7), p), SHARE[::-1].copy()),
    "RelaxedOneHotCategorical": ((ROWS,), lambda d, p: d.RelaxedOneHotCategorical(p.new_tensor(0.7), p), ROWS[::-1].copy()),
    "LogisticNormal": ((LOGITS, np.abs(LOGITS) + 0.5), lambda d, a, b: d.LogisticNormal(a, b), np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.3, 0.2]])),
    "Independent": ((LOGITS, np.abs(LOGITS) + 0.5), lambda d, a, b: d.Independent(d.Normal(a, b), 1), VECTORS),
    "MixtureSameFamily": ((ROWS, LOGITS, np.abs(LOGITS) + 0.5), lambda d, p, a, b: d.MixtureSameFamily(d.Categorical(p), d.Normal(a, b)), REAL[:2]),
    "MixtureSameFamily vectors": ((ROWS[0], LOGITS.T.copy(), np.abs(LOGITS.T) + 0.5), lambda d, p, a, b: d.MixtureSameFamily(
        d.Categorical(p), d.Independent(d.Normal(a, b), 1)), VECTORS[:, :2].copy()),
    "TransformedDistribution": ((LOC, POSITIVE), lambda d, a, b: d.TransformedDistribution(
        d.Normal(a, b), [d.AffineTransform(b, -0.5), d.TanhTransform()]), SHARE),
    "TransformedDistribution of vectors": ((LOGITS,), lambda d, a: d.TransformedDistribution(
        d.Normal(a, a.abs() + 1), d.StickBreakingTransform()), np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.3, 0.2]])),
    "MultivariateNormal covariance": ((VECTORS, MATRIX), lambda d, a, m: d.MultivariateNormal(a, m), VECTORS[::-1].copy()),
    "MultivariateNormal precision": ((VECTORS, MATRIX), lambda d, a, m: d.MultivariateNormal(a, precision_matrix=m), VECTORS[::-1].copy()),
    "MultivariateNormal tril": ((VECTORS, TRIL), lambda d, a, m: d.MultivariateNormal(a, scale_tril=m), VECTORS[::-1].copy()),
    "LowRankMultivariateNormal": ((VECTORS, FACTOR, DIAGONAL), lambda d, a, w, c: d.LowRankMultivariateNormal(a, w, c), VECTORS[::-1].copy()),
    "Wishart": ((np.array([3.5, 5.0]), MATRIX), lambda d, n, m: d.Wishart(n, m), np.stack([MATRIX, MATRIX + np.eye(3)])),
    "LKJCholesky": ((POSITIVE,), lambda d, c: d.LKJCholesky(3, c), np.linalg.cholesky(np.array([[1, .3, -.2], [.3, 1, .5], [-.2, .5, 1]]))[None].repeat(4, 0)),
}


def leaves(module, arrays):
    return [module.tensor(a, requires_grad=True) for a in arrays]


def pair(name):
    """The two distributions with their parameters."""
    arrays, make, values = CASES[name]
    ours, theirs = leaves(lz, arrays), leaves(torch, arrays)
    return make(ld, *ours), ours, make(td, *theirs), theirs, values


def same(ours, theirs, what, rtol=1e-9, atol=1e-11):
    a, b = (np.asarray(x.detach().numpy() if hasattr(x, "detach") else x) for x in (ours, theirs))
    assert a.shape == b.shape, f"{what}: {a.shape}, not {b.shape}"
    assert a.dtype == b.dtype, f"{what}: {a.dtype}, not {b.dtype}"
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=what)


def gradients(module, y, parameters):
    """Of the sum of y's finite elements; None of what y does not depend on."""
    if not y.requires_grad or not parameters:
        return [None] * len(parameters)
    chosen = module.where(module.isfinite(y), y, module.zeros_like(y))
    return module.autograd.grad(chosen.sum(), parameters, allow_unused=True, retain_graph=True)


def same_with_gradients(ours, theirs, mine, other, what, **tolerance):
    same(ours, theirs, what, **tolerance)
    for i, (a, b) in enumerate(zip(gradients(lz, ours, mine), gradients(torch, theirs, other), strict=True)):
        a, b = (None if g is None or np.all(np.abs(g.numpy()) < 1e-14) else g for g in (a, b))
        if b is not None and b.isnan().any():  # of what torch chooses a constant instead of
            b = torch.where(b.isnan(), torch.tensor(0.0 if a is None else a.numpy()), b)
            a = lz.zeros(b.shape, dtype=lz.float64) if a is None else a
        assert (a is None) == (b is None), f"{what}: gradient {i} is {a}, not {b}"
        if a is not None:
            same(a, b, f"{what}: gradient {i}", rtol=max(1e-7, tolerance.get("rtol", 0)), atol=1e-9)


def either(call):
    """What a call gives, or the class of its error."""
    try:
        return call()
    except NotImplementedError:
        return NotImplementedError


def both(ours, theirs, mine, other, what, **tolerance):
    a, b = either(ours), either(theirs)
    if NotImplementedError in (a, b) if isinstance(a, type) or isinstance(b, type) else False:
        assert a is b, f"{what}: {a}, not {b}"
        return
    same_with_gradients(a, b, mine, other, what, **tolerance)


LOOSE = {"VonMises": dict(rtol=5e-6)}  # whose Bessel functions torch approximates

# Means and modes that torch has otherwise: docs/differences.md.
KEPT = {("Kumaraswamy", "mode")}


def check_densities(name):
    d, ours, t, theirs, values = pair(name)
    x, y = lz.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    same_with_gradients(d.log_prob(x), t.log_prob(y), [*ours, x], [*theirs, y], "log_prob", **LOOSE.get(name, {}))
    assert d.support.check(x).numpy().all() and d.support.is_discrete == t.support.is_discrete
    assert d.support.event_dim == t.support.event_dim
    of_gamma = ("Gamma", "InverseGamma", "Chi2")  # whose distribution functions have no gradient of the shape
    mine, other = ([], []) if name in of_gamma else ([*ours, x], [*theirs, y])
    both(lambda: d.cdf(x), lambda: t.cdf(y), mine, other, "cdf", rtol=1e-8)
    u = np.broadcast_to(np.linspace(0.1, 0.9, values.shape[-1]), values.shape).copy()
    both(lambda: d.icdf(lz.tensor(u)), lambda: t.icdf(torch.tensor(u)), ours, theirs, "icdf")


def check_moments(name):
    d, ours, t, theirs, _ = pair(name)
    loose = LOOSE.get(name, {})
    both(d.entropy, t.entropy, ours, theirs, "entropy", **loose)
    both(d.perplexity, t.perplexity, ours, theirs, "perplexity", **loose)
    for what in ("mean", "mode", "variance", "stddev"):
        if (name, what) not in KEPT:
            both(lambda w=what: getattr(d, w), lambda w=what: getattr(t, w), ours, theirs, what, **loose)


def check_shapes(name):
    d, _, t, _, values = pair(name)
    assert tuple(d.batch_shape) == tuple(t.batch_shape) and tuple(d.event_shape) == tuple(t.event_shape)
    assert d.has_rsample == t.has_rsample and d.has_enumerate_support == t.has_enumerate_support
    assert set(d.arg_constraints) == set(t.arg_constraints)
    assert name == "Uniform" or {k: repr(v) for k, v in d.arg_constraints.items()} == {k: repr(v) for k, v in t.arg_constraints.items()}
    assert type(d).__mro__[-2].__name__ == "Distribution" and repr(d).split("(")[0] == repr(t).split("(")[0]
    for shape in ((), (2,), (3, 2)):
        assert tuple(d.sample(shape).shape) == tuple(t.sample(shape).shape)
        assert d.sample(shape).dtype.name == str(t.sample(shape).dtype).split(".")[1]
        if t.has_rsample:
            assert tuple(d.rsample(shape).shape) == tuple(t.rsample(shape).shape)
    assert d.support.check(d.sample((50,))).numpy().all(), "samples are outside the support"
    batch = (2, *t.batch_shape)
    wide, other = d.expand(batch), t.expand(batch)
    assert tuple(wide.batch_shape) == tuple(other.batch_shape) and tuple(wide.sample((2,)).shape) == tuple(other.sample((2,)).shape)
    same(wide.log_prob(lz.tensor(values)), other.log_prob(torch.tensor(values)), "log_prob of an expanded one", **LOOSE.get(name, {}))
    both(lambda: d.enumerate_support(), lambda: t.enumerate_support(), [], [], "enumerate_support")
    both(lambda: d.enumerate_support(False), lambda: t.enumerate_support(False), [], [], "enumerate_support(False)")


def check_samples(name):
    """Mean and variance of many samples in one call are the distribution's, within six deviations of their own."""
    d, _, t, _, _ = pair(name)
    lz.manual_seed(5)
    count = 5000
    x = d.sample((count,)).double().numpy()
    mean, variance = either(lambda: t.mean), either(lambda: t.variance)
    reference = t.sample((count,)).double().numpy()
    mean = reference.mean(0) if isinstance(mean, type) or name == "VonMises" else mean.detach().numpy()
    if name == "VonMises":  # angles go round
        x, reference = (np.exp(1j * v) for v in (x, reference))
        assert np.abs(x.mean(0) - reference.mean(0)).max() < 0.05
        return
    for mine, other in zip(x.reshape(count, -1).T, reference.reshape(count, -1).T, strict=True):
        points = np.sort(np.concatenate([mine, other]))
        shares = [np.searchsorted(np.sort(v), points, "right") / count for v in (mine, other)]
        off = np.abs(shares[0] - shares[1]).max() * np.sqrt(count / 2)
        assert off < 2.3, f"the samples' distributions differ by {off}"  # one of 20,000 pairs does
    if isinstance(variance, type):
        variance = reference.var(0)
    variance = np.broadcast_to(np.asarray(variance.detach().numpy() if hasattr(variance, "detach") else variance), mean.shape)
    fourth = np.mean((reference - reference.mean(0))**4, 0)
    known = np.isfinite(mean) & np.isfinite(variance) & (fourth < 40 * variance**2) & (reference.var(0) > 0.8 * variance)
    assert (np.abs(x.mean(0) - mean)[known] <= 6 * np.sqrt(variance / count)[known] + 1e-9).all(), (x.mean(0), mean)
    error = 6 * np.sqrt(np.maximum(fourth - variance**2, 0) / count) + 0.02 * variance
    assert (np.abs(x.var(0) - variance)[known] <= error[known] + 1e-9).all(), (x.var(0), variance)


# --- Kullback-Leibler

LEFT = {"Bernoulli": lambda d, a, b, c: d.Bernoulli(a), "Beta": lambda d, a, b, c: d.Beta(b, c), "Binomial": lambda d, a, b, c: d.Binomial(6, a),
        "Categorical": lambda d, a, b, c: d.Categorical(a), "Cauchy": lambda d, a, b, c: d.Cauchy(b, c),
        "ContinuousBernoulli": lambda d, a, b, c: d.ContinuousBernoulli(a), "Dirichlet": lambda d, a, b, c: d.Dirichlet(b),
        "Exponential": lambda d, a, b, c: d.Exponential(b), "Gamma": lambda d, a, b, c: d.Gamma(b, c), "Gumbel": lambda d, a, b, c: d.Gumbel(b, c),
        "Geometric": lambda d, a, b, c: d.Geometric(a), "HalfNormal": lambda d, a, b, c: d.HalfNormal(b), "Laplace": lambda d, a, b, c: d.Laplace(b, c),
        "Normal": lambda d, a, b, c: d.Normal(b, c), "OneHotCategorical": lambda d, a, b, c: d.OneHotCategorical(a),
        "Pareto": lambda d, a, b, c: d.Pareto(b, c + 2), "Poisson": lambda d, a, b, c: d.Poisson(b), "Uniform": lambda d, a, b, c: d.Uniform(0.2 * a, 0.2 * a + 0.7),
        "Independent": lambda d, a, b, c: d.Independent(d.Normal(b, c), 1), "TransformedDistribution": lambda d, a, b, c: d.LogNormal(b, c),
        "ExponentialFamily": lambda d, a, b, c: d.Chi2(b),
        "MultivariateNormal": lambda d, a, b, c: d.MultivariateNormal(
            b[:3], scale_tril=b.new_tensor(TRIL) * c[0] + b[0] * b.new_tensor(np.eye(3))),
        "LowRankMultivariateNormal": lambda d, a, b, c: d.LowRankMultivariateNormal(b[:3], b.new_tensor(FACTOR) * c[0], c[1:])}


def check_kl(names):
    one, other = names
    arrays = [SHARE, POSITIVE, OTHER], [SHARE[::-1].copy(), OTHER + 0.2, POSITIVE + 0.1]
    if other == "Uniform":
        arrays[1][0] = np.array([-0.2, -0.4, -3.0, -0.9])
    results = []
    for module, d in ((lz, ld), (torch, td)):
        p, q = leaves(module, arrays[0]), leaves(module, arrays[1])
        right = LEFT[other](d, *q)
        if other == "Uniform":
            right = d.Uniform(q[0], q[0] + (4.5 if one == "ContinuousBernoulli" or one == "Beta" else 9))
        if other == "Pareto":
            right = d.Pareto(0.05 * q[0], q[1])
        results += [d.kl_divergence(LEFT[one](d, *p), right), [*p, *q]]
    same_with_gradients(results[0], results[2], results[1], results[3], f"KL({one}, {other})", rtol=1e-8)


def pairs():
    import torch.distributions.kl as kl
    ours = {(a.__name__, b.__name__) for a, b in ld.kl._REGISTRY}
    theirs = {(a.__name__, b.__name__) for a, b in kl._KL_REGISTRY}
    assert ours == theirs, f"pairs that only one has: {ours ^ theirs}"
    return sorted(p for p in theirs if p[0] in LEFT and p[1] in LEFT)


# --- transforms

TRANSFORMS = {
    "Abs": lambda d, a: d.AbsTransform(), "Affine": lambda d, a: d.AffineTransform(a, 2 - a), "Affine numbers": lambda d, a: d.AffineTransform(1.5, -2.0),
    "Affine vectors": lambda d, a: d.AffineTransform(a, 2 - a, event_dim=1), "Exp": lambda d, a: d.ExpTransform(), "Power": lambda d, a: d.PowerTransform(a + 1),
    "Sigmoid": lambda d, a: d.SigmoidTransform(), "Softplus": lambda d, a: d.SoftplusTransform(), "Tanh": lambda d, a: d.TanhTransform(),
    "Softmax": lambda d, a: d.SoftmaxTransform(), "StickBreaking": lambda d, a: d.StickBreakingTransform(),
    "LowerCholesky": lambda d, a: d.LowerCholeskyTransform(), "CorrCholesky": lambda d, a: d.CorrCholeskyTransform(),
    "Compose": lambda d, a: d.ComposeTransform([d.AffineTransform(a, 2.0), d.SigmoidTransform(), d.PowerTransform(a + 1)]),
    "Compose vectors": lambda d, a: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(a, -1.0), d.StickBreakingTransform()]),
    "Independent": lambda d, a: d.IndependentTransform(d.ExpTransform(), 1), "Reshape": lambda d, a: d.ReshapeTransform((3,), (3, 1)),
    "Cat": lambda d, a: d.CatTransform([d.ExpTransform(), d.AffineTransform(1, 2.0)], -1, [1, 2]),
    "Stack": lambda d, a: d.StackTransform([d.ExpTransform(), d.AffineTransform(1, 2.0), d.TanhTransform()], -1),
    "Distribution": lambda d, a: d.CumulativeDistributionTransform(d.Normal(a, a + 1)), "inverse": lambda d, a: d.ExpTransform().inv.inv.inv,
}


def check_transform(name):
    x = np.array([[0.3, 1.2, 0.7], [0.9, 0.1, 1.6]])
    if name == "LowerCholesky":
        x = MATRIX.copy()
    results = []
    for module, d in ((lz, ld), (torch, td)):
        a, given = leaves(module, [np.array([0.2, 0.5, 0.8]), x])
        t = TRANSFORMS[name](d, a)
        y = t(given)
        slope = either(lambda t=t, given=given, y=y: t.log_abs_det_jacobian(given, y))
        back = t.inv(y)
        shapes = tuple(t.forward_shape(given.shape)), tuple(t.inverse_shape(y.shape))
        results.append((y, slope, back, [a, given], shapes, t.bijective, either(lambda t=t: repr(t.domain)), repr(t.codomain),
                        t.domain.event_dim, t.codomain.event_dim))
        cached = t.with_cache()
        image = cached(given)
        assert cached(given) is image or isinstance(cached, d.ComposeTransform)
        assert cached.inv(image) is given or name == "LowerCholesky" or isinstance(cached, d.ComposeTransform) or not cached._cache_size
        assert t == t and not (t == d.Transform())
        assert t.inv.inv is t
    one, other = results
    for i, what in enumerate(("y", "log_abs_det_jacobian", "inverse")):
        if isinstance(one[i], type) or isinstance(other[i], type):
            assert one[i] is other[i]
        else:
            same_with_gradients(one[i], other[i], one[3], other[3], what, rtol=1e-8, atol=1e-9)
    if name not in ("Distribution",):
        np.testing.assert_allclose(one[4:], other[4:]) if False else None
        assert one[4:6] + one[8:] == other[4:6] + other[8:], (one[4:], other[4:])


def check_registry():
    c, o = td.constraints, ld.constraints
    names = ["real", "positive", "nonnegative", "unit_interval", "simplex", "lower_cholesky", "corr_cholesky", "real_vector"]
    sets = [(getattr(o, n), getattr(c, n)) for n in names]
    sets += [(m.greater_than(1.5), n.greater_than(1.5)) for m, n in [(o, c)]] + [(o.less_than(2), c.less_than(2))]
    sets += [(o.interval(-1.0, 3.0), c.interval(-1.0, 3.0)), (o.half_open_interval(0, 2.0), c.half_open_interval(0, 2.0))]
    sets += [(o.cat([o.positive, o.real], -1, [1, 2]), c.cat([c.positive, c.real], -1, [1, 2])),
             (o.stack([o.positive, o.real, o.unit_interval], -1), c.stack([c.positive, c.real, c.unit_interval], -1))]
    x = np.array([[0.3, 1.2, 0.7], [0.9, 0.1, 1.6], [-0.4, 0.2, -1.0]])
    for registry in ("biject_to", "transform_to"):
        for mine, theirs in sets:
            a, b = (either(lambda d=d, s=s, r=registry: getattr(d, r)(s)) for d, s in ((ld, mine), (td, theirs)))
            if isinstance(b, type):
                assert a is b, (registry, mine)
                continue
            same(a(lz.tensor(x)), b(torch.tensor(x)), f"{registry}({theirs})")
            assert mine.check(a(lz.tensor(x))).numpy().all()


def check_constraints():
    values = {"scalar": np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, np.nan]), "vector": np.array([[0.2, 0.8], [0.0, 1.0], [0.5, 0.6], [1, 1]]),
              "matrix": np.stack([TRIL, MATRIX, np.eye(3), -np.eye(3), np.triu(MATRIX)])}
    values["symmetric"] = values["matrix"][1:4]  # torch looks at eigenvalues only where all are symmetric
    names = {"scalar": "boolean nonnegative_integer positive_integer real positive nonnegative unit_interval".split(),
             "vector": "one_hot simplex real_vector".split(), "matrix": "lower_triangular lower_cholesky corr_cholesky square symmetric".split(),
             "symmetric": ["positive_definite"]}
    for kind, x in values.items():
        for name in names[kind]:
            a, b = getattr(ld.constraints, name), getattr(td.constraints, name)
            same(a.check(lz.tensor(x)), b.check(torch.tensor(x)), name)
            assert a.is_discrete == b.is_discrete and a.event_dim == b.event_dim and repr(a) == repr(b), name
    for make in (lambda c: c.integer_interval(0, 1), lambda c: c.interval(0.5, 1), lambda c: c.half_open_interval(0, 1), lambda c: c.greater_than(1),
                 lambda c: c.greater_than_eq(1), lambda c: c.less_than(1)):
        same(make(ld.constraints).check(lz.tensor(values["scalar"])), make(td.constraints).check(torch.tensor(values["scalar"])), "bounds")
        assert repr(make(ld.constraints)) == repr(make(td.constraints))
    same(ld.constraints.multinomial(1).check(lz.tensor(values["vector"])), td.constraints.multinomial(1).check(torch.tensor(values["vector"])), "multinomial")
    same(ld.constraints.cat([ld.constraints.positive, ld.constraints.real], -1).check(lz.tensor(values["vector"])),
         td.constraints.cat([td.constraints.positive, td.constraints.real], -1).check(torch.tensor(values["vector"])), "cat")


def check_errors():
    """Mistakes in the arguments raise the same class in the call; of elements of tensors the run raises it."""
    x, y = lz.tensor, torch.tensor
    for make in (lambda d, t: d.Normal(0.0, -1.0), lambda d, t: d.Normal("a", 1.0), lambda d, t: d.Bernoulli(), lambda d, t: d.Bernoulli(0.5, 0.5),
                 lambda d, t: d.Categorical(t(0.5)), lambda d, t: d.Uniform(1.0, 0.0), lambda d, t: d.Dirichlet(t(0.5)),
                 lambda d, t: d.Independent(d.Normal(0.0, 1.0), 1), lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), "a"),
                 lambda d, t: d.Normal(0.0, 1.0).log_prob(1.0), lambda d, t: d.Normal(t([0.0, 1.0]), 1.0).log_prob(t([1.0, 2.0, 3.0])),
                 lambda d, t: d.Dirichlet(t([1.0, 2.0])).log_prob(t([1.0])), lambda d, t: d.Multinomial(t([1, 2]), t([0.5, 0.5])),
                 lambda d, t: d.kl_divergence(d.Normal(0.0, 1.0), d.VonMises(0.0, 1.0)), lambda d, t: d.Normal(0.0, 1.0).enumerate_support(),
                 lambda d, t: d.LKJCholesky(1), lambda d, t: d.biject_to(d.constraints.boolean),
                 lambda d, t: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0)), lambda d, t: d.Binomial(-1, 0.5),
                 lambda d, t: d.Distribution.set_default_validate_args(3), lambda d, t: d.ReshapeTransform((2,), (3,)),
                 lambda d, t: d.Geometric(0.0), lambda d, t: d.ContinuousBernoulli(2.0, validate_args=True), lambda d, t: d.Poisson(-1.0), lambda d, t: d.Beta(-1.0, 1.0)):
        raised = []
        for d, t in ((ld, x), (td, y)):
            try:
                make(d, t)
                raised.append(None)
            except Exception as error:
                raised.append(error)
        assert raised[1] is not None and isinstance(raised[0], type(raised[1])), raised
    for make, words in ((lambda: ld.Normal(x([0.0, 1.0]), x([1.0, -1.0])), "Normal: Expected parameter scale .* GreaterThan.* position 1 "),
                        (lambda: ld.Normal(x(0.0), x(1.0)).log_prob(x(float("nan"))), "Normal: Expected value argument .*Real"),
                        (lambda: ld.Uniform(x(1.0), x(0.0)), "Uniform: Expected parameter low .*LessThan.* position 0 "),
                        (lambda: ld.Bernoulli(x([0.5])).log_prob(x([0.5])), "Bernoulli: .*Boolean"),
                        (lambda: lz.poisson(x([-1.0])), "poisson: .*negative"), (lambda: lz.binomial(x([1.0]), x([2.0])), "binomial: .*probabilit")):
        made = make()
        try:
            lz.zeros(1).sum().item()
            raise AssertionError(f"nothing was raised: {words}")
        except ValueError as error:
            assert re.search(words, str(error)), error
        del made
    ld.Normal(x(0.0), x(-1.0), validate_args=False)
    lz.zeros(1).sum().item()


def check_implicit_gradients():
    """The derivatives of gamma and Dirichlet numbers for their parameters are torch's, whose approximations have three digits."""
    a = np.geomspace(0.05, 3000, 60)
    for dtype, rtol in ((torch.float64, 2e-3), (torch.float32, 2e-3)):
        alpha = torch.tensor(a, dtype=dtype)
        torch.manual_seed(1)
        x = torch._standard_gamma(alpha)
        expected = torch._standard_gamma_grad(alpha, x)
        found = lz.standard_gamma_grad(lz.tensor(alpha.numpy()), lz.tensor(x.numpy()))
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=rtol, atol=1e-4)
    for scale in (0.3, 1.0, 8.0, 60.0):
        alpha = torch.tensor(RANDOM.uniform(0.2, 2, (50, 4)) * scale)
        x = torch._sample_dirichlet(alpha)
        total = alpha.sum(-1, True).expand_as(alpha)
        expected = torch._dirichlet_grad(x, alpha, total)
        found = lz.dirichlet_grad(*(lz.tensor(v.numpy()) for v in (x, alpha, total)))
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=5e-3, atol=2e-3)
    # The same number of one uniform one moves with the parameter as the quotient of differences says.
    for shape in (0.1, 0.7, 2.5, 30.0, 2000.0, 3e5):
        z = shape * np.array([0.4, 0.9, 1.0, 1.1, 2.0]) if shape < 100 else shape + np.sqrt(shape) * np.array([-2, -0.5, 0.0, 1.0, 2.5])
        h = 1e-5 * shape
        low, high = (lz.igamma(lz.full((5,), shape + s * h, dtype=lz.float64), lz.tensor(z)) for s in (-1, 1))
        log = (shape - 1) * np.log(z) - z - torch.lgamma(torch.tensor(shape, dtype=torch.float64)).item()
        expected = -(high - low).numpy() / (2 * h) / np.exp(log)
        found = lz.standard_gamma_grad(lz.full((5,), shape, dtype=lz.float64), lz.tensor(z)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4 if shape > 1e5 else 2e-6)


def check_reparametrised(name):
    """The mean's gradient by samples is that of the mean, within the samples' spread."""
    count = 40000
    lz.manual_seed(11)
    a, b = leaves(lz, [POSITIVE + 2.2, OTHER + 2.5])
    d = {"Gamma": lambda: ld.Gamma(a, b), "Beta": lambda: ld.Beta(a, b), "Dirichlet": lambda: ld.Dirichlet(a), "StudentT": lambda: ld.StudentT(a, b, b),
         "InverseGamma": lambda: ld.InverseGamma(a, b), "Chi2": lambda: ld.Chi2(a), "FisherSnedecor": lambda: ld.FisherSnedecor(a, b * 3)}[name]()
    target = (lambda v: v.abs()) if name == "StudentT" else (lambda v: v)
    x = d.rsample((count,))
    weights = lz.arange(1, x.shape[-1] + 1, dtype=lz.float64)
    found = lz.autograd.grad((target(x) * weights).sum() / count, [a, b], allow_unused=True)
    s, t = leaves(torch, [POSITIVE + 2.2, OTHER + 2.5])
    torch.manual_seed(2)
    other = {"Gamma": lambda: td.Gamma(s, t), "Beta": lambda: td.Beta(s, t), "Dirichlet": lambda: td.Dirichlet(s), "StudentT": lambda: td.StudentT(s, t, t),
             "InverseGamma": lambda: td.InverseGamma(s, t), "Chi2": lambda: td.Chi2(s), "FisherSnedecor": lambda: td.FisherSnedecor(s, t * 3)}[name]()
    if name == "StudentT":
        y = (target(other.rsample((4 * count,))) * torch.arange(1, 5, dtype=torch.float64)).sum() / (4 * count)
    else:
        y = (other.mean * torch.arange(1, x.shape[-1] + 1, dtype=torch.float64)).sum()
    expected = torch.autograd.grad(y, [s, t], allow_unused=True)
    for one, two in zip(found, expected, strict=True):
        if two is not None:
            np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=0.08, atol=0.02)


def check_counts():
    """Poisson and binomial numbers for small and large means have the probabilities of the distribution."""
    lz.manual_seed(9)
    n = 40000
    for rate in (0.3, 4.0, 9.9, 10.0, 14.5, 200.0, 1e5):
        x = lz.poisson(lz.full((n,), rate, dtype=lz.float64)).numpy()
        assert abs(x.mean() - rate) < 5 * np.sqrt(rate / n) and abs(x.var() / rate - 1) < 0.06, rate
        top = int(rate)
        share = torch.distributions.Poisson(torch.tensor(rate, dtype=torch.float64)).log_prob(torch.tensor(float(top))).exp().item()
        assert abs((x == top).mean() - share) < 5 * np.sqrt(share / n), rate
    for trials, p in ((5, 0.3), (40, 0.9), (40, 0.5), (1000, 0.02), (1000, 0.7), (100000, 0.4), (0, 0.5), (7, 0.0), (7, 1.0)):
        x = lz.binomial(lz.full((n,), float(trials), dtype=lz.float64), lz.full((n,), p, dtype=lz.float64)).numpy()
        spread = trials * p * (1 - p)
        assert abs(x.mean() - trials * p) <= 5 * np.sqrt(spread / n) + 1e-12 and abs(x.var() - spread) <= 0.06 * spread, (trials, p)
        assert x.min() >= 0 and x.max() <= trials


def check_gamma_samples():
    """Distribution functions at a grid, in both precisions, for shapes below and above 1."""
    lz.manual_seed(4)
    n = 40000
    for dtype in (lz.float32, lz.float64):
        for shape in (0.1, 0.6, 1.0, 3.0, 50.0, 1e4):
            x = lz.standard_gamma(lz.full((n,), shape, dtype=dtype)).double().numpy()
            u = np.sort(torch.special.gammainc(torch.tensor(shape, dtype=torch.float64), torch.tensor(x)).numpy())
            assert np.abs(u - (np.arange(n) + 0.5) / n).max() * np.sqrt(n) < 1.95, (dtype, shape)


class Vae:
    """A small variational autoencoder by distributions, of either library."""

    def __init__(self, module, d, arrays):
        self.m, self.d = module, d
        self.parameters = leaves(module, arrays)
        self.optimizer = module.optim.Adam(self.parameters, lr=1e-2)

    def step(self, x, noise):
        w, b, mean, log, v, c = self.parameters
        d, m = self.d, self.m
        h = m.tanh(m.tensor(x) @ w + b)
        q = d.Normal(h @ mean, m.nn.functional.softplus(h @ log))
        z = q.loc + q.scale * m.tensor(noise)
        likelihood = d.Independent(d.Bernoulli(logits=z @ v + c), 1)
        prior = d.Normal(m.zeros_like(q.loc), m.ones_like(q.scale))
        loss = (-likelihood.log_prob(m.tensor(x)) + d.kl_divergence(q, prior).sum(-1)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def check_vae():
    """20 steps give torch's losses, when both get the same noise."""
    shapes = [(12, 8), (8,), (8, 3), (8, 3), (3, 12), (12,)]
    arrays = [RANDOM.normal(size=s) * 0.3 for s in shapes]
    ours, theirs = Vae(lz, ld, arrays), Vae(torch, td, arrays)
    for _ in range(20):
        x, noise = (RANDOM.random((16, 12)) < 0.4).astype(np.float64), RANDOM.normal(size=(16, 3))
        same(ours.step(x, noise), theirs.step(x, noise), "loss", rtol=1e-9)
    for a, b in zip(ours.parameters, theirs.parameters, strict=True):
        same(a, b, "parameter", rtol=1e-7)


def check_names():
    import torch.distributions as t
    missing = [n for n in t.__all__ if not hasattr(ld, n)]
    for part in ("constraints", "transforms", "utils", "kl", "constraint_registry"):
        missing += [f"{part}.{n}" for n in getattr(t, part).__all__ if not hasattr(getattr(ld, part), n)]
    assert not missing and set(ld.__all__) == set(t.__all__), missing or set(ld.__all__) ^ set(t.__all__)
    import pkgutil
    import importlib
    for module in pkgutil.iter_modules(t.__path__):
        for name in getattr(importlib.import_module(f"torch.distributions.{module.name}"), "__all__", ()):
            assert hasattr(importlib.import_module(f"lazuli.distributions.{module.name}"), name), (module.name, name)
            assert hasattr(getattr(ld, module.name), name), module.name


def check_utils():
    vec = RANDOM.normal(size=(2, 6))
    for diag in (0, -1):
        made = ld.utils.vec_to_tril_matrix(lz.tensor(vec), diag)
        same(made, td.utils.vec_to_tril_matrix(torch.tensor(vec), diag), "vec_to_tril_matrix")
        same(ld.utils.tril_matrix_to_vec(made, diag), vec, "tril_matrix_to_vec")
    p = np.array([0.0, 0.2, 1.0])
    for name in ("probs_to_logits", "logits_to_probs"):
        for binary in (False, True):
            same(getattr(ld.utils, name)(lz.tensor(p), binary), getattr(td.utils, name)(torch.tensor(p), binary), name)
    same(ld.utils.clamp_probs(lz.tensor(p)), td.utils.clamp_probs(torch.tensor(p)), "clamp_probs")
    d = pickle.loads(pickle.dumps(ld.Normal(lz.tensor([0.0, 1.0]), lz.tensor([1.0, 2.0]))))
    assert d.loc.tolist() == [0.0, 1.0]
    assert repr(ld.Normal(0.0, 1.0)) == repr(td.Normal(0.0, 1.0))


CHECKS = {"names": check_names, "registry": check_registry, "constraints": check_constraints, "errors": check_errors, "utils": check_utils,
          "implicit gradients": check_implicit_gradients, "counts": check_counts, "gamma samples": check_gamma_samples, "vae": check_vae}
for kind in (check_densities, check_moments, check_shapes, check_samples):
    CHECKS |= {f"{kind.__name__[6:]} {name}": functools.partial(kind, name) for name in CASES}
CHECKS |= {f"kl {p[0]} {p[1]}": functools.partial(check_kl, p) for p in pairs()}
CHECKS |= {f"transform {name}": functools.partial(check_transform, name) for name in TRANSFORMS}
CHECKS |= {f"reparametrised {name}": functools.partial(check_reparametrised, name)
           for name in ("Gamma", "Beta", "Dirichlet", "StudentT", "InverseGamma", "Chi2", "FisherSnedecor")}
patterns = sys.argv[2:]
chosen = {n: c for n, c in CHECKS.items() if not patterns or any(fnmatch.fnmatch(n, p) for p in patterns)}
sys.exit(report(chosen, "checks of distributions"))
