"""The formulas of kl_divergence(), most of which are sums of known means: -H(p) - E_p[log q]."""

import math

from lazuli import _C
from lazuli.distributions.categorical import Categorical, OneHotCategorical
from lazuli.distributions.derived import Gumbel, HalfNormal, Pareto
from lazuli.distributions.discrete import (Bernoulli, Binomial, ContinuousBernoulli, Geometric,
                                           Poisson)
from lazuli.distributions.distribution import ExponentialFamily, require
from lazuli.distributions.kl import kl_divergence, register_kl
from lazuli.distributions.location_scale import (HALF_LOG_TWO_PI, Cauchy, Laplace, Normal, Uniform)
from lazuli.distributions.multivariate import (LowRankMultivariateNormal, MultivariateNormal,
                                               batch_mahalanobis, log_diagonal,
                                               low_rank_mahalanobis, triangular_solve)
from lazuli.distributions.positive import Beta, Dirichlet, Exponential, Gamma
from lazuli.distributions.transformed import Independent, TransformedDistribution
from lazuli.distributions.utils import euler_constant, sum_rightmost
from lazuli._names import broadcast_shapes
from lazuli.nn import functional as F  # noqa: N812

_INFINITY = float("inf")


def _infinite_where(bad, value):
    """The value, infinite where q has no density for values of p."""
    return _C.where(bad, _INFINITY, value)


def _log_sqrt_two_pi(scale):
    """log(scale sqrt(2 pi))."""
    return scale.log() + HALF_LOG_TWO_PI


def _x_log_x(x):
    return _C.xlogy(x, x)


# --- two of one family


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    one = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    one = _C.where(p.probs == 0, 0.0, _infinite_where(q.probs == 0, one))
    zero = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    zero = _C.where(p.probs == 1, 0.0, _infinite_where(q.probs == 1, zero))
    return one + zero


@register_kl(Beta, Beta)
def _beta(p, q):
    p1, p0, q1, q0 = (p.concentration1, p.concentration0, q.concentration1, q.concentration0)
    total_p, total_q = p1 + p0, q1 + q0
    norm = (q1.lgamma() + q0.lgamma() + total_p.lgamma()
            - p1.lgamma() - p0.lgamma() - total_q.lgamma())
    return (norm + (p1 - q1) * _C.digamma(p1) + (p0 - q0) * _C.digamma(p0)
            + (total_q - total_p) * _C.digamma(total_p))


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    words = "KL between Binomials where q.total_count > p.total_count is not implemented"
    if p._count is None or q._count is None:
        require(p.total_count >= q.total_count, "kl_divergence", words)
    elif p._count < q._count:
        raise NotImplementedError(words)
    value = p.total_count * (p.probs * (p.logits - q.logits)
                             + (-p.probs).log1p() - (-q.probs).log1p())
    return _infinite_where(p.total_count > q.total_count, value)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = _infinite_where((q.probs == 0).expand(tuple(terms.shape)), terms)
    return _C.where((p.probs == 0).expand(tuple(terms.shape)), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return kl_divergence(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    return (p.mean * (p.logits - q.logits) + p._log_constant() + _C.log1p(-p.probs)
            - q._log_constant() - _C.log1p(-q.probs))


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total_a, total_b = a.sum(-1), b.sum(-1)
    norm = total_a.lgamma() - total_b.lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norm + ((a - b) * (a.digamma() - total_a.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """Bregman's divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families "
                                  "cannot be computed using Bregman divergences")
    of_p, normalizer, slopes = p._normalizer_and_slopes()
    result = q._log_normalizer(*q._natural_params) - normalizer
    for x, y, slope in zip(of_p, q._natural_params, slopes, strict=True):
        result = result - sum_rightmost((y - x) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return (b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma()
            + (q.rate - p.rate) * (a / p.rate))


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return (distance - ratio.log() + ratio * euler_constant
            + _C.exp((1 + ratio).lgamma() - distance) - (1 + euler_constant))


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - _C.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale - ratio.log() + ratio * _C.exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).square()
    distance = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    sums = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return sums.log() - (4 * p.scale * q.scale).log()


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    value = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _infinite_where(p.scale < q.scale, value)


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    value = ((q.high - q.low) / (p.high - p.low)).log()
    return _infinite_where((q.low > p.low) | (q.high < p.high), value)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# --- multivariate normal: a sum of the trace of q's inverse times p's covariance, the distance of
# the means, and the determinants


def _same_size(p, q):
    if tuple(p.event_shape) != tuple(q.event_shape):
        names = [type(d).__name__.replace("MultivariateNormal", " Multivariate Normal").strip()
                 .replace("LowRank", "Low Rank") for d in (p, q)]
        between = names[0] + "s" if names[0] == names[1] else f"{names[0]} and {names[1]}"
        raise ValueError(f"KL-divergence between two {between} with different event shapes cannot "
                         "be computed")


def _trace(factor, columns):
    """The trace of columns^T M^-1 columns, where factor is the Cholesky factor of M."""
    shape = broadcast_shapes(tuple(factor.shape[:-2]), tuple(columns.shape[:-2]))
    solved = triangular_solve(factor.expand((*shape, *factor.shape[-2:])),
                              columns.expand((*shape, *columns.shape[-2:])))
    return solved.square().sum([-2, -1])


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p, q):
    _same_size(p, q)
    lower = q._unbroadcasted_scale_tril
    logs = log_diagonal(lower) - log_diagonal(p._unbroadcasted_scale_tril)
    trace = _trace(lower, p._unbroadcasted_scale_tril)
    distance = batch_mahalanobis(lower, q.loc - p.loc)
    return logs + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p, q):
    _same_size(p, q)
    return _to_low_rank(p, q, p._log_det(), p._unbroadcasted_cov_factor,
                        p._unbroadcasted_cov_diag)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_to_low_rank(p, q):
    _same_size(p, q)
    factor = p._unbroadcasted_scale_tril
    return _to_low_rank(p, q, 2 * log_diagonal(factor), factor, None)


def _to_low_rank(p, q, log_det, factor, diagonal):
    """The divergence of a normal with covariance factor factor^T + diag(diagonal); the diagonal may
    be None."""
    w, d = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    distance = low_rank_mahalanobis(w, d, q.loc - p.loc, q._capacitance_tril)
    scaled = w.mT / d.unsqueeze(-2)
    # By Woodbury's lemma: the trace with D^-1, less the trace with the part that W adds.
    under = (factor.square() / d.unsqueeze(-1)).sum([-2, -1])
    less = _trace(q._capacitance_tril, scaled @ factor)
    if diagonal is not None:
        under = under + (diagonal / d).sum(-1)
        less = less + _trace(q._capacitance_tril, scaled * diagonal.sqrt().unsqueeze(-2))
    return 0.5 * (q._log_det() - log_det + under - less + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_to_multivariate(p, q):
    _same_size(p, q)
    factor = q._unbroadcasted_scale_tril
    trace = (_trace(factor, p._unbroadcasted_cov_factor)
             + _trace(factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()))
    distance = batch_mahalanobis(factor, q.loc - p.loc)
    return 0.5 * (2 * log_diagonal(factor) - p._log_det() + trace + distance - p.event_shape[0])


# --- where q has no density at some values of p


def _always_infinite(p, q):
    parameter = next(getattr(p, name) for name in ("loc", "rate", "alpha", "probs",
                                                   "concentration1") if hasattr(p, name))
    return _C.full_like(parameter, _INFINITY)


for _p, _others in {Beta: (Pareto,), ContinuousBernoulli: (Pareto,),
                    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
                    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
                    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
                    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
                    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
                    Pareto: (Beta, ContinuousBernoulli, Uniform),
                    Poisson: (Bernoulli, Binomial)}.items():
    for _q in _others:
        register_kl(_p, _q)(_always_infinite)

# --- other pairs


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _to_continuous_bernoulli(p, q):
    return -p.entropy() - p.mean * q.logits - _C.log1p(-q.probs) - q._log_constant()


register_kl(Beta, ContinuousBernoulli)(_to_continuous_bernoulli)


def _to_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


for _p in (Beta, ContinuousBernoulli, Gamma):
    register_kl(_p, Exponential)(_to_exponential)


def _log_gamma_norm(q):
    """The logarithm of the integral of x^(concentration - 1) exp(-rate x)."""
    return q.concentration.lgamma() - q.concentration * q.rate.log()


def _to_gamma(p, q, mean_log, mean_rated):
    """By the means of log(x) and of q.rate x."""
    return (-p.entropy() + _log_gamma_norm(q) - (q.concentration - 1) * mean_log
            + mean_rated)


@register_kl(Beta, Gamma)
def _beta_gamma(p, q):
    mean_log = _C.digamma(p.concentration1) - _C.digamma(p.concentration1 + p.concentration0)
    return _to_gamma(p, q, mean_log, q.rate * p.mean)


def _to_normal(p, q):
    """By the entropy, the mean and the variance of p."""
    distance = (p.variance + (p.mean - q.loc).square()) / q.scale.square()
    return -p.entropy() + _log_sqrt_two_pi(q.scale) + 0.5 * distance


for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform):
    register_kl(_p, Normal)(_to_normal)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p, q):
    return _infinite_where((q.low > 0) | (q.high < 1), -p.entropy() + (q.high - q.low).log())


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    mean_log = -p.rate.log() - euler_constant
    return _to_gamma(p, q, mean_log, q.rate / p.rate)


def _to_gumbel(p, q, mean_exp):
    """By mean_exp, the mean of exp(-(x - q.loc) / q.scale)."""
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + mean_exp


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p, q):
    product = p.rate * q.scale
    return _to_gumbel(p, q, _C.exp(q.loc / q.scale) * product / (product + 1))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p, q):
    product = p.rate * q.scale
    shrunk = -p.concentration * (1 / product).log1p()
    return _to_gumbel(p, q, _C.exp(q.loc / q.scale + shrunk))


@register_kl(Normal, Gumbel)
def _normal_gumbel(p, q):
    ratio = (p.scale / q.scale).square()
    return _to_gumbel(p, q, _C.exp((q.loc - p.loc) / q.scale + 0.5 * ratio))


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p, q):
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return _to_gumbel(p, q, q.scale / (p.high - p.low) * (_C.exp(-low) - _C.exp(-high)))


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    distance = p.loc - q.loc
    z = distance / p.scale
    # The mean of |x - loc|.
    mean = (math.sqrt(2 / math.pi) * p.scale * _C.exp(-0.5 * z.square())
            + distance * _C.erf(math.sqrt(0.5) * z))
    return -p.entropy() + _C.log(2 * q.scale) + mean / q.scale


@register_kl(Pareto, Exponential)
def _pareto_exponential(p, q):
    value = -p.entropy() - q.rate.log() + q.rate * p.alpha * p.scale / (p.alpha - 1)
    return _infinite_where(p.alpha <= 1, value)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p, q):
    mean_log = p.scale.log() + p.alpha.reciprocal()
    mean = p.alpha * p.scale / (p.alpha - 1)
    return _infinite_where(p.alpha <= 1, _to_gamma(p, q, mean_log, q.rate * mean))


@register_kl(Pareto, Normal)
def _pareto_normal(p, q):
    part = p.scale / (p.alpha - 1)
    variance = p.alpha * part.square() / (p.alpha - 2)
    distance = (variance + (p.alpha * part - q.loc).square()) / q.scale.square()
    value = -p.entropy() + _log_sqrt_two_pi(q.scale) + 0.5 * distance
    return _infinite_where(p.alpha <= 2, value)


def _mean_log(p):
    """The mean of log(x) of uniform x."""
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1


@register_kl(Uniform, Beta)
def _uniform_beta(p, q):
    width = p.high - p.low
    rest = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / width - 1  # the mean of log(1 - x)
    total = q.concentration1 + q.concentration0
    norm = q.concentration1.lgamma() + q.concentration0.lgamma() - total.lgamma()
    value = (-p.entropy() + norm - (q.concentration1 - 1) * _mean_log(p)
             - (q.concentration0 - 1) * rest)
    return _infinite_where((p.high > 1) | (p.low < 0), value)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p, q):
    return _infinite_where((p.high > 1) | (p.low < 0), _to_continuous_bernoulli(p, q))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p, q):
    return _infinite_where(p.low < 0, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p, q):
    return _infinite_where(p.low < 0, _to_gamma(p, q, _mean_log(p), q.rate * p.mean))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p, q):
    value = (-p.entropy() - q.alpha.log() - q.alpha * q.scale.log()
             + (q.alpha + 1) * _mean_log(p))
    return _infinite_where(p.low < q.scale, value)
