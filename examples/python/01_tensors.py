"""Lesson 1: tensors, and when they are computed."""

import lazuli as lz

# A tensor has a shape, an element type and a device. Shapes broadcast and types promote as PyTorch's do.
x = lz.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
row = lz.tensor([10.0, 20.0, 30.0])

# This computes nothing. It records two ops and knows the shape of the result.
y = (x * row).sum(1)
print("y has shape", y.shape, "and type", y.dtype)

# Reading does: all that was recorded is compiled into one program, and runs.
print("y =", y)

# A program is kept. Recording the same ops again finds it, whatever the numbers are.
compiled = lz.metrics.counter("UncachedCompile")
for i in range(1, 101):
    x = x * 0.5 + i
    lz.mark_step()  # the end of a step: run what has been recorded
print("100 steps,", lz.metrics.counter("UncachedCompile") - compiled, "compilation")

# Indexing is NumPy's, and so is assignment, which every other name of the tensor sees.
same, copy = x, x.clone()
x[0, :2] = 7
print("same[0] =", same[0].tolist(), "but copy[0, 0] is 7:", bool(copy[0, 0] == 7))

# A mistake is found by the call that makes it, not when the program runs.
try:
    x @ row.reshape(1, 3)
except ValueError as error:
    print(error)
