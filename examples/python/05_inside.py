"""Lesson 5: looking inside."""

import lazuli as lz


def network(x, w):
    return lz.relu(x @ w).sum()


x, w = lz.randn(8, 16), lz.randn(16, 4)
lz.mark_step()
loss = network(x, w)

# What is pending, as HLO: every instruction names the Python line that it comes from.
print(lz.debug.graph_hlo(loss))

# What ran last, and what it cost. A second time compiles nothing.
loss.item()
print("kernels:", lz.debug.last_stats()["kernels"])
before = lz.metrics.counter("CachedCompile")
loss = network(x * 1, w)
loss.item()
loss = network(x * 2, w)  # the same ops, another number
loss.item()
print("found again:", lz.metrics.counter("CachedCompile") - before)

# What only a run can know is reported with the line that recorded the op, too.
logits, labels = lz.randn(2, 10), lz.tensor([3, 12])
loss = lz.nn.functional.cross_entropy(logits, labels)
try:
    loss.item()
except IndexError as error:
    print(error)
