"""Lesson 2: gradients."""

import lazuli as lz

# Ops on a tensor that requires a gradient remember how to go back.
x = lz.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x**3).sum()

# backward() records the ops of the gradient; they run with everything else. dy/dx = 3 x^2.
y.backward()
print("dy/dx =", x.grad)

# Gradients add up, until they are dropped.
(x**3).sum().backward()
print("twice =", x.grad)
x.grad = None

# Under no_grad nothing is remembered: for evaluation, and for updates of parameters.
with lz.no_grad():
    print("requires_grad of x + 1:", (x + 1).requires_grad)
    x -= 0.1 * lz.ones(3)

# gradcheck compares backward() with differences, in float64.
point = lz.tensor([0.1, -0.7, 1.5], dtype=lz.float64)
error = lz.gradcheck(lambda inputs: (inputs[0].tanh() * inputs[0].exp()).sum(), [point])
print("gradients are right:", error < 1e-6)

# What the graph held is gone after backward(), so doing it again is a mistake.
try:
    y.backward()
except RuntimeError as again:
    print(again)
