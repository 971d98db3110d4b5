"""Linear algebra, as torch.linalg has it."""

from lazuli import _C, _tensor
from lazuli._C import LinAlgError  # noqa: F401
from lazuli._C.linalg import *  # noqa: F403


def _with_bounds(name, first):
    """A function of matrices with bounds for what counts as 0, of which PyTorch takes numbers and
    tensors."""
    function = getattr(_C.linalg, name)

    def call(A, *given, atol=None, rtol=None, hermitian=False, out=None, **named):  # noqa: N803
        if given or named:
            made = function(A, *given, hermitian=hermitian, **named) if len(given) < 2 else \
                function(A, *given, **named)
        elif isinstance(atol, _C.Tensor) or isinstance(rtol, _C.Tensor):
            bounds = [b if b is None or isinstance(b, _C.Tensor) else
                      _tensor.tensor(b, device=A.device) for b in (atol, rtol)]
            made = function(A, *bounds, hermitian)
        else:
            made = function(A, atol=atol, rtol=rtol, hermitian=hermitian)
        return made if out is None else out.copy_(made)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{function.__doc__}\n\n{name}(A, {first}, hermitian=False) takes one bound."
    return call


pinv, matrix_rank = _with_bounds("pinv", "rcond"), _with_bounds("matrix_rank", "tol")
