"""Lesson 6: a recurrent model. Sequences of different lengths, packed, whose sign at the first step is to be remembered."""

import numpy as np

import lazuli as lz
from lazuli.nn.utils.rnn import pack_padded_sequence

random = np.random.default_rng(0)


def batch(size=64, longest=20):
    """Noise after a first number, which says the class; the lengths are drawn, too."""
    x = random.normal(0, 0.3, (size, longest, 1)).astype(np.float32)
    classes = random.integers(0, 2, size)
    x[:, 0, 0] += 2 * classes - 1
    return lz.tensor(x), random.integers(1, longest + 1, size), lz.tensor(classes)


class Memory(lz.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = lz.nn.LSTM(1, 16, batch_first=True), lz.nn.Linear(16, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, (last, _) = self.rnn(packed)  # the state after each sequence's own last step
        return self.out(last[-1])


lz.manual_seed(0)
net = Memory()
opt = lz.optim.Adam(net.parameters(), lr=0.02)
for step in range(150):
    x, lengths, classes = batch()
    opt.zero_grad()
    loss = lz.nn.functional.cross_entropy(net(x, lengths), classes)
    loss.backward()
    lz.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    lz.mark_step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
    if step == 2:
        compiled = lz.metrics.counter("UncachedCompile")

# The lengths are data: batches with other lengths run the same program.
print("compiled for other lengths:", lz.metrics.counter("UncachedCompile") - compiled - 1)
with lz.no_grad():
    x, lengths, classes = batch(500)
    right = (net(x, lengths).argmax(1) == classes).float().mean().item()
print(f"{100 * right:.0f} % remembered")
