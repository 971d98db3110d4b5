"""Common parametrizations: weights as length and direction, and weights with a spectral norm of
1."""

from lazuli import _C
from lazuli._C.nn import Module
from lazuli.autograd.grad_mode import no_grad
from lazuli.nn import functional as F  # noqa: N812
from lazuli.nn.utils import parametrize

__all__ = ["spectral_norm", "weight_norm"]


def _check(module):
    if not isinstance(module, Module):
        raise TypeError(f"module must be a Module, not {type(module).__name__}")


def _length(v, dim):
    """The norm over all dims but one, or over all dims for None."""
    if dim is None:
        return v.norm()
    dim = dim % v.ndim
    return (v * v).sum([d for d in range(v.ndim) if d != dim], keepdim=True).sqrt()


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim
        self._all = dim is None or dim == -1

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / _length(weight_v, None if self._all else self.dim))

    def right_inverse(self, weight):
        return _length(weight, None if self._all else self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Replaces a tensor by a length, per index of `dim` or for the whole tensor, times a direction;
    returns the module."""
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{weight.ndim}, "
                             f"{weight.ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.dim, self.eps = dim % weight.ndim, eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight.detach())
            for key, size in zip(("_u", "_v"), matrix.shape, strict=True):
                start = _C.randn(size, device=weight.device).to(weight.dtype)
                self.register_buffer(key, F.normalize(start, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _as_matrix(self, weight):
        return weight.movedim(self.dim, 0).flatten(1)

    def _power_method(self, matrix, times):
        with no_grad():
            for _ in range(times):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._power_method(matrix.detach(), self.n_power_iterations)
        return weight / self._u.clone().dot(matrix.mv(self._v.clone()))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a tensor by its spectral norm, which power iterations estimate in training; returns
    the module. `dim` is the dim of the outputs: 0, or 1 for transposed convolutions."""
    _check(module)
    weight = getattr(module, name, None)
    if not isinstance(weight, _C.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    return parametrize.register_parametrization(module, name,
                                                _SpectralNorm(weight, n_power_iterations, dim, eps))


def _remover(kind, what):
    def remove(module, name="weight"):
        _check(module)
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        if (parametrize.is_parametrized(module, name) and
                any(isinstance(p, kind) for p in module.parametrizations[name])):
            return parametrize.remove_parametrizations(module, name)
        raise ValueError(f"{what} of '{name}' not found in {module}")

    remove.__name__, remove.__doc__ = (
        f"remove_{what}", f"Undoes {what}(): the tensor keeps its value; returns the module.")
    return remove


remove_weight_norm, remove_spectral_norm = (_remover(_WeightNorm, "weight_norm"),
                                            _remover(_SpectralNorm, "spectral_norm"))
