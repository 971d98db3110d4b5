"""Von Mises' distribution of angles."""

import math

from lazuli import _C
from lazuli.autograd import no_grad
from lazuli.distributions import constraints
from lazuli.distributions.distribution import Located

__all__ = ["VonMises"]

_TRIES = 40  # per sample; at least 0.65 of the tries are accepted


class VonMises(Located):
    """Angles in [-pi, pi) of density proportional to exp(concentration cos(x - loc)). The mean is
    the mean direction."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc, concentration, validate_args=None):
        super().__init__(self._take(loc=loc, concentration=concentration),
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(VonMises, _instance, batch_shape, ("loc", "concentration"))

    def log_prob(self, value):
        self._checked(value)
        # log(I0) by I0 exp(-concentration), which is never infinite.
        log_bessel = _C.log(_C.special.i0e(self.concentration)) + self.concentration
        return (self.concentration * _C.cos(value - self.loc) - math.log(2 * math.pi)
                - log_bessel)

    def sample(self, sample_shape=()):
        """By rejection from wrapped Cauchy angles (Best and Fisher, 1979), in f64: all tries are
        drawn at once, and the first one that is accepted counts."""
        with no_grad():
            shape = tuple(self._extended_shape(sample_shape))
            k = self.concentration.double()
            tau = 1 + (1 + 4 * k.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            exact = (1 + rho.square()) / (2 * rho)
            r = _C.where(k < 1e-5, 1 / k + k, exact)  # where the formula cancels
            u = _C.rand((3, _TRIES, *shape), dtype=_C.float64, device=k.device)
            z = _C.cos(math.pi * u[0])
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            accepted = (c * (2 - c) - u[1] > 0) | ((c / u[1]).log() + 1 - c >= 0)
            first = accepted.long().argmax(0, True)
            angle = ((u[2] - 0.5).sign() * f.clamp(-1, 1).acos()).gather(0, first).squeeze(0)
            turned = (angle + math.pi + self.loc.double()) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    @property
    def variance(self):
        """The circular variance, 1 - I1 / I0."""
        return 1 - (_C.special.i1e(self.concentration) / _C.special.i0e(self.concentration))
