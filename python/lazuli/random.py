"""Random generators."""

import contextlib

from lazuli import _C
from lazuli._C import Generator, get_rng_state, initial_seed, seed, set_rng_state

default_generator = Generator.default_generator()


def manual_seed(seed):
    """Seeds the random numbers with a 64-bit integer and returns the generator."""
    try:
        number = int(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(f"manual_seed: takes an integer, not {type(seed).__name__}") from None
    return default_generator.manual_seed(number)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, device_type=None):
    """A context that restores the state of the random numbers at its end."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
