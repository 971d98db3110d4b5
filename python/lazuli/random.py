"""Random generators, and what PyTorch has in several forms."""

import contextlib

from lazuli import _C
from lazuli._C import Generator, Tensor, get_rng_state, initial_seed, seed, set_rng_state

default_generator = Generator.default_generator()


def manual_seed(seed):
    """Seeds the random numbers with an integer of 64 bits; gives the generator."""
    try:
        number = int(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(f"manual_seed: takes an integer, not {type(seed).__name__}") from None
    return default_generator.manual_seed(number)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, device_type=None):
    """Within it, random numbers go on from here; after it, as if it had not been."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


def randint(low=None, high=None, size=None, *, dtype=None, device=None, generator=None, requires_grad=False, layout=None, pin_memory=False,
            **named):
    """Random integers in [low, high), or with one number before the size below it, which the dtype must hold."""
    size = named.pop("dims", named.pop("shape", size))
    if named:
        raise TypeError(f"randint: there is no argument {next(iter(named))!r}")
    if low is None:
        low = 0
    if size is None or isinstance(high, (tuple, list)):  # randint(high, size), and then a dtype and device by position
        if size is not None:
            dtype = size
        low, high, size = 0, low, high
    made = _C._randint(low, high, size, _C.int64 if dtype is None else dtype, device, generator)
    return made.requires_grad_() if requires_grad else made


def randint_like(x, low, high=None, *, dtype=None, device=None, generator=None, requires_grad=False, layout=None, pin_memory=False,
                 memory_format=None):
    """randint() with the dims, dtype and device of x."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, tuple(x.shape), dtype=dtype or x.dtype, device=device or x.device, generator=generator,
                   requires_grad=requires_grad)


def normal(mean, std=1.0, size=None, *, dtype=None, device=None, generator=None, requires_grad=False, layout=None, pin_memory=False):
    """Normal random numbers: each with its mean and deviation where one is a tensor, else of a size."""
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        return _C._normal_around(mean, std, generator)
    if size is None:
        raise TypeError("normal: takes a tensor as mean or std, or a size")
    made = _C._normal(mean, std, size, dtype, device, generator)
    return made.requires_grad_() if requires_grad else made


def bernoulli_(self, p=0.5, *, generator=None):
    """1 with probability p, a number or a tensor, else 0; in place."""
    return self._bernoulli_(p, generator)


Tensor.bernoulli_ = bernoulli_
