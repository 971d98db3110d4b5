"""Distributions have the values of closed forms, say what is wrong with arguments, and cost one program a step."""

import math

import numpy as np
import pytest

import lazuli as lz
import lazuli.distributions as d


def of(*values):
    return lz.tensor(list(values), dtype=lz.float64)


def close(x, *values, rtol=1e-9):
    np.testing.assert_allclose(x.numpy(), values if x.ndim else values[0], rtol=rtol, atol=1e-12)


def test_densities_are_those_of_the_formulas():
    close(d.Normal(of(1.0), of(2.0)).log_prob(of(2.0)), -0.125 - math.log(2) - 0.5 * math.log(2 * math.pi))
    close(d.Exponential(of(3.0)).log_prob(of(2.0)), math.log(3) - 6)
    close(d.Gamma(of(3.0), of(2.0)).log_prob(of(1.5)), 3 * math.log(2) + 2 * math.log(1.5) - 3 - math.log(2))
    close(d.Beta(of(2.0), of(3.0)).log_prob(of(0.25)), math.log(12 * 0.25 * 0.75**2))
    close(d.Dirichlet(of(1.0, 2.0, 3.0)).log_prob(of(0.2, 0.3, 0.5)), math.log(60 * 0.3 * 0.25))
    close(d.StudentT(of(1.0)).log_prob(of(2.0)), -math.log(math.pi * 5))  # Cauchy's
    close(d.Poisson(of(2.0)).log_prob(of(3.0)), math.log(8 / 6) - 2)
    close(d.Binomial(4, of(0.25)).log_prob(of(2.0)), math.log(6 * 0.25**2 * 0.75**2))
    close(d.Geometric(of(0.25)).log_prob(of(2.0)), math.log(0.25 * 0.75**2))
    close(d.NegativeBinomial(of(2.0), of(0.25)).log_prob(of(1.0)), math.log(2 * 0.25 * 0.75**2))
    close(d.Categorical(of(1.0, 1.0, 2.0)).log_prob(lz.tensor(2)), math.log(0.5))
    close(d.Multinomial(3, of(0.5, 0.5)).log_prob(of(1.0, 2.0)), math.log(3 / 8))
    close(d.VonMises(of(0.0), of(1e-9)).log_prob(of(1.0)), -math.log(2 * math.pi), rtol=1e-8)
    close(d.LogNormal(of(0.0), of(1.0)).log_prob(of(1.0)), -0.5 * math.log(2 * math.pi))
    close(d.Weibull(of(2.0), of(1.0)).log_prob(of(1.0)), -0.5 - math.log(2))
    close(d.Kumaraswamy(of(2.0), of(3.0)).log_prob(of(0.5)), math.log(6 * 0.5 * 0.75**2))


def test_moments_and_entropies_are_those_of_the_formulas():
    close(d.Uniform(of(1.0), of(4.0)).variance, 0.75)
    close(d.Uniform(of(1.0), of(4.0)).entropy(), math.log(3))
    close(d.Gumbel(of(0.0), of(2.0)).mean, 2 * 0.5772156649015329)
    close(d.Pareto(of(1.0), of(3.0)).mean, 1.5)
    close(d.Bernoulli(of(0.5)).entropy(), math.log(2))
    close(d.Categorical(lz.ones(8, dtype=lz.float64)).perplexity(), 8)
    close(d.Kumaraswamy(of(2.0), of(2.5)).mode, math.sqrt(1 / 4))
    mixture = d.MixtureSameFamily(d.Categorical(of(0.5, 0.5)), d.Normal(of(-1.0, 1.0), of(1.0, 1.0)))
    close(mixture.mean, 0.0)
    close(mixture.variance, 2.0)


def test_divergences_are_those_of_the_formulas():
    close(d.kl_divergence(d.Normal(of(1.0), of(1.0)), d.Normal(of(0.0), of(2.0))), math.log(2) + 2 / 8 - 0.5)
    close(d.kl_divergence(d.Exponential(of(1.0)), d.Exponential(of(2.0))), 1 - math.log(2))
    close(d.kl_divergence(d.Beta(of(1.0), of(1.0)), d.Uniform(of(0.0), of(1.0))), 0.0)
    assert d.kl_divergence(d.Uniform(of(0.0), of(2.0)), d.Uniform(of(0.0), of(1.0))).item() == math.inf
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Normal and q type VonMises"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.VonMises(0.0, 1.0))


def test_numbers_are_checked_in_the_call():
    with pytest.raises(ValueError, match=r"Expected parameter scale \(Tensor of shape \(\)\) of distribution Normal to satisfy the constraint "
                                         r"GreaterThan\(lower_bound=0.0\), but found invalid values:\n-1.0"):
        d.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match=r"Uniform.* LessThan\(upper_bound=0.0\)"):
        d.Uniform(1.0, 0.0)
    d.Normal(0.0, -1.0, validate_args=False)
    try:
        d.Distribution.set_default_validate_args(False)
        d.Normal(0.0, -1.0)
    finally:
        d.Distribution.set_default_validate_args(__debug__)


def test_tensors_are_checked_in_the_run():
    q = d.Normal(of(0.0, 1.0), of(1.0, -1.0))  # no sync
    with pytest.raises(ValueError, match=r"Normal: Expected parameter scale \(Tensor of shape \(2,\)\) of distribution Normal to satisfy the "
                                         r"constraint GreaterThan\(lower_bound=0.0\), but the element at position 1 does not \(distributions_test.py:\d+\)"):
        q.mean.sum().item()
    outside = d.Bernoulli(of(0.5)).log_prob(of(0.25))
    with pytest.raises(ValueError, match=r"Bernoulli: Expected value argument .* to be within the support \(Boolean\(\)\)"):
        outside.item()
    x = d.Poisson(of(-1.0, 2.0), validate_args=False).sample()
    with pytest.raises(ValueError, match="poisson: takes rates that are not negative, but the element at position 0 does not"):
        x.numpy()


def test_a_step_is_one_program_and_never_syncs():
    mean, spread = lz.zeros(4, requires_grad=True), lz.zeros(4, requires_grad=True)
    optimizer = lz.optim.SGD([mean, spread], lr=0.01)
    losses, compiled, syncs = [], [], []
    for _ in range(5):
        before = lz.metrics.counter("sync.read")
        prior = d.Normal(lz.zeros(4), lz.ones(4))
        q = d.Independent(d.Normal(mean, spread.exp()), 1)
        z = q.rsample((3,))
        loss = (q.log_prob(z) - d.Independent(prior, 1).log_prob(z)).mean() + d.kl_divergence(q.base_dist, prior).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        syncs.append(lz.metrics.counter("sync.read") - before)
        lz.mark_step()
        losses.append(loss)
        compiled.append(lz.metrics.counter("UncachedCompile"))
    assert compiled[-1] == compiled[1] > 0, compiled
    assert not any(syncs), syncs
    assert all(math.isfinite(loss.item()) for loss in losses)


@pytest.mark.parametrize("make, mean, variance", [
    (lambda n: lz.standard_gamma(lz.full((n,), 0.4)), 0.4, 0.4), (lambda n: lz.standard_gamma(lz.full((n,), 30.0)), 30, 30),
    (lambda n: lz.poisson(lz.full((n,), 2.5)), 2.5, 2.5), (lambda n: lz.poisson(lz.full((n,), 60.0)), 60, 60),
    (lambda n: lz.binomial(lz.full((n,), 9.0), lz.full((n,), 0.3)), 2.7, 1.89),
    (lambda n: lz.binomial(lz.full((n,), 400.0), lz.full((n,), 0.7)), 280, 84)])
def test_samplers_have_the_moments_of_their_distributions(make, mean, variance):
    lz.manual_seed(3)
    n = 20000
    x = make(n).double().numpy()
    assert abs(x.mean() - mean) < 5 * math.sqrt(variance / n) and abs(x.var() / variance - 1) < 0.08


def test_samplers_take_generators():
    g = lz.Generator().manual_seed(5)
    first = lz.poisson(lz.full((8,), 4.0), generator=g)
    lz.poisson(lz.full((8,), 4.0))
    g.manual_seed(5)
    assert lz.poisson(lz.full((8,), 4.0), generator=g).tolist() == first.tolist()
    assert lz.standard_gamma(lz.ones(3), generator=lz.Generator().manual_seed(1)).tolist() == lz.standard_gamma(
        lz.ones(3), generator=lz.Generator().manual_seed(1)).tolist()


def test_gamma_numbers_move_with_their_parameter():
    a = of(0.5, 2.0, 40.0).requires_grad_()
    lz.manual_seed(1)
    x = lz.standard_gamma(a)
    x.sum().backward()
    h = 1e-6
    shares = [lz.igamma(a.detach() + s * h, x.detach()) for s in (-1, 1)]
    density = ((a.detach() - 1) * x.detach().log() - x.detach() - a.detach().lgamma()).exp()
    np.testing.assert_allclose(a.grad.numpy(), ((shares[0] - shares[1]) / (2 * h * density)).numpy(), rtol=1e-6)


def test_registries_take_new_classes():
    class Mine(d.Normal):
        pass

    @d.register_kl(Mine, Mine)
    def _(p, q):
        return of(7.0)

    one = Mine(0.0, 1.0)
    assert d.kl_divergence(one, one).item() == 7 and d.kl_divergence(one, d.Normal(0.0, 1.0)).item() == 0
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        d.register_kl(int, Mine)
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        d.biject_to(d.constraints.boolean)
    assert d.biject_to(d.constraints.interval(-1.0, 3.0))(of(0.0)).item() == 1


def test_properties_first_read_in_inference_mode_have_gradients_later():
    probs = of(0.2, 0.8).requires_grad_()
    one = d.Categorical(probs=probs)
    with lz.inference_mode():
        close(one.entropy(), -0.2 * math.log(0.2) - 0.8 * math.log(0.8))
    one.log_prob(lz.tensor(1)).backward()
    close(probs.grad, -1.0, 0.25)
