"""Special functions, as torch.special has them."""

from lazuli._C import (digamma, erf, erfc, erfinv, exp2, expm1, i0, log1p, log_softmax, logit, logsumexp, polygamma, round,  # noqa: A004, F401
                       sinc, softmax, xlogy)
from lazuli._C.special import *  # noqa: F403
