"""Lesson 7: linear algebra. A polynomial by least squares, its uncertainty, and what a singular matrix says."""

import lazuli as lz

lz.manual_seed(0)
x = lz.linspace(-1, 1, 200, dtype=lz.float64)
y = 1 - 2 * x + 3 * x**3 + 0.1 * lz.randn(200, dtype=lz.float64)

powers = lz.linalg.vander(x, N=4)  # [200, 4]: 1, x, x^2, x^3
coefficients = lz.linalg.lstsq(powers, y.unsqueeze(1)).solution.squeeze(1)
print("coefficients:", [round(c, 2) for c in coefficients.tolist()])

# Their covariance is the inverse of powers^T powers, times the variance of the noise.
noise = (y - powers @ coefficients).square().sum() / (len(x) - 4)
deviations = (noise * lz.linalg.inv(powers.T @ powers)).diagonal().sqrt()
print("standard deviations:", [round(d, 3) for d in deviations.tolist()])

# Decompositions have gradients: the point that moves the determinant most.
points = x[:4].clone().requires_grad_()
lz.linalg.slogdet(lz.linalg.vander(points)).logabsdet.backward()
print("point", points.grad.abs().argmax().item(), "moves the determinant most")

# Whether a matrix is singular is found in the run; the error names the line of the call.
try:
    print(lz.linalg.inv(lz.ones(2, 2)))
except lz.linalg.LinAlgError as error:
    print(error)
