"""Probability distributions with samples, densities and divergences, as torch.distributions has
them.

    q = lz.distributions.Normal(mean, deviation)
    z = q.rsample()
    loss = -(decoder(z).log_prob(x)).sum() + lz.distributions.kl_divergence(q, prior).sum()

Samples come from the library's generators (lazuli.manual_seed). Samples of rsample() have gradients
for the parameters: they are transforms of numbers that do not depend on the parameters, or, for
gamma and Dirichlet samples, the gradients are implicit. Parameters are checked. A wrong number
raises a ValueError in the call, a wrong element of a tensor where a value of the run is read.
"""

import sys

from lazuli.distributions import constraints, distribution, kl, transforms, utils
from lazuli.distributions import _kl_pairs  # noqa: F401
from lazuli.distributions.categorical import (Categorical, Multinomial, OneHotCategorical,
                                              OneHotCategoricalStraightThrough)
from lazuli.distributions.constraint_registry import biject_to, transform_to
from lazuli.distributions.derived import (Gumbel, HalfCauchy, HalfNormal, InverseGamma,
                                          Kumaraswamy, LogisticNormal, LogNormal, Pareto, Weibull)
from lazuli.distributions.discrete import (Bernoulli, Binomial, ContinuousBernoulli, Geometric,
                                           NegativeBinomial, Poisson)
from lazuli.distributions.distribution import Distribution, ExponentialFamily
from lazuli.distributions.kl import kl_divergence, register_kl
from lazuli.distributions.location_scale import (Cauchy, GeneralizedPareto, Laplace, Normal,
                                                 StudentT, Uniform)
from lazuli.distributions.multivariate import (LKJCholesky, LowRankMultivariateNormal,
                                               MultivariateNormal, Wishart)
from lazuli.distributions.positive import (Beta, Chi2, Dirichlet, Exponential, FisherSnedecor,
                                           Gamma)
from lazuli.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from lazuli.distributions.transformed import (Independent, MixtureSameFamily,
                                              TransformedDistribution)
from lazuli.distributions.transforms import *  # noqa: F403
from lazuli.distributions.von_mises import VonMises

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli",
           "Dirichlet", "Distribution", "Exponential", "ExponentialFamily", "FisherSnedecor",
           "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal",
           "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal",
           "LogisticNormal", "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial",
           "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
           "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli",
           "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform",
           "VonMises", "Weibull", "Wishart", "biject_to", "kl_divergence", "register_kl",
           "transform_to", *transforms.__all__]


def __getattr__(name):
    """The modules of single distributions, by the names that they have in PyTorch."""
    module = sys.modules.get(f"{__name__}.{name}")
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return module
