"""Data sets, and the loader that makes batches of them on a thread of its own.

    loader = lz.data.DataLoader(lz.data.Mnist("data/mnist"), batch_size=64, shuffle=True)
    for x, y in loader: ...
"""

from lazuli._C.data import *  # noqa: F403
