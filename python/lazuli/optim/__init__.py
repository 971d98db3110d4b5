"""Optimisers: each step() moves the parameters, in place, by their gradients.

    opt = lz.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for x, y in loader:
        opt.zero_grad()
        loss(net(x), y).backward()
        opt.step()
        lz.mark_step()
"""

from lazuli._C.optim import *  # noqa: F403
import lazuli.optim.lr_scheduler  # noqa: E402
