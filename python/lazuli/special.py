"""Special functions, as torch.special has them."""

from lazuli._C import (  # noqa: A004, F401
    digamma, erf, erfc, erfinv, exp2, expm1, i0, log1p, log_softmax, logit, logsumexp, polygamma,
    round, sinc, softmax, xlogy)
from lazuli._C.special import *  # noqa: F403
