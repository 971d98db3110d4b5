#!/usr/bin/env python3
"""Prints tables.h: the polynomial coefficients of recipes.h.

    tables.py > ir/recipes/tables.h      (needs mpmath)

Each table is the minimax fit (Remez exchange, 60 digits) of a function on an interval under a weight chosen so that
the weighted error is relative to the recipe's result. Coefficients are rounded to the format all at once, or from
the lowest order up with the rest refitted after each, whichever is closer. The error after rounding is in the comment
of each table.
"""

import struct

from mpmath import mp, mpf

mp.dps = 60


def to_format(value, bits):
    """Nearest number with 24 (f32) or 53 (f64) significant bits."""
    if bits == 53:
        return mpf(float(value))
    return mpf(struct.unpack("f", struct.pack("f", float(value)))[0])


def remez(function, weight, interval, degree):
    """Coefficients c of sum(c[i] x^i), i <= degree, minimising max |weight (function - polynomial)|."""
    low, high = interval
    count = degree + 2
    grid_size = 60 * count
    grid = [low + (high - low) * (1 - mp.cos(mp.pi * (i + mpf(1) / 2) / grid_size)) / 2
            for i in range(grid_size)]
    values = [(x, function(x), weight(x)) for x in grid]
    picks = [int((i + mpf(1) / 2) * grid_size / count) for i in range(count)]
    coefficients = None
    for _ in range(12):
        matrix = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, pick in enumerate(picks):
            x, f, w = values[pick]
            for i in range(degree + 1):
                matrix[row, i] = x**i
            matrix[row, degree + 1] = (-1) ** row / w
            right[row] = f
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[i] for i in range(degree + 1)]
        errors = [w * (f - mp.polyval(coefficients[::-1], x)) for x, f, w in values]
        # The largest error of each run of equal sign; the alternation wants exactly `count` of them.
        runs = [[0]]
        for i in range(1, grid_size):
            if errors[i] * errors[i - 1] < 0:
                runs.append([])
            runs[-1].append(i)
        peaks = [max(run, key=lambda i: abs(errors[i])) for run in runs]
        while len(peaks) > count:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        if len(peaks) < count or peaks == picks:
            break
        picks = peaks
    return coefficients


def greedy(function, weight, interval, degree, bits):
    """Rounds from the lowest order up, refitting the rest after each. Fails where 0 is inside the interval."""
    fixed = []
    for order in range(degree + 1):
        def rest(x, known=tuple(fixed), order=order):
            return (function(x) - sum(c * x**i for i, c in enumerate(known))) / x**order
        free = remez(rest, lambda x, order=order: weight(x) * x**order, interval, degree - order)
        fixed.append(to_format(free[0], bits))
    return fixed


def fit(function, weight, interval, degree, bits):
    low, high = interval
    candidates = [[to_format(c, bits) for c in remez(function, weight, interval, degree)]]
    if low > 0:
        candidates.append(greedy(function, weight, interval, degree, bits))
    points = [low + (high - low) * (i + mpf(1) / 2) / 2000 for i in range(2000)]
    exact = [(x, function(x), weight(x)) for x in points]
    errors = [max(abs(w * (f - mp.polyval(c[::-1], x))) for x, f, w in exact) for c in candidates]
    return min(zip(errors, range(len(errors)), candidates))[2], min(errors)


E = mpf(10) ** -9  # intervals start here: the functions are quotients that cancel at 0
LN2 = mp.log(2)

# name: (documentation, function, weight, interval per format, degree per format)
def tables():
    odd = lambda f: lambda z: (f(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3
    odd_weight = lambda f: lambda z: mp.sqrt(z) ** 3 / f(mp.sqrt(z))
    r = LN2 / 2 * mpf("1.0001")
    yield ("Exp", "(e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, relative to e^r - 1",
           lambda x: (mp.expm1(x) - x) / x**2, lambda x: x**2 / abs(mp.expm1(x)),
           {24: (-r, r), 53: (-r, r)}, {24: 4, 53: 10})
    h = mpf("0.50001")
    yield ("Exp2", "(2^r - 1 - r ln(2)) / r^2 for |r| <= 1/2, relative to 2^r",
           lambda x: (mp.expm1(x * LN2) - x * LN2) / x**2, lambda x: x**2 / 2**x,
           {24: (-h, h), 53: (-h, h)}, {24: 5, 53: 11})
    z = mpf("0.02944")
    yield ("Log", "2 (atanh(s) / s - 1) / z for z = s^2, 1 + f = (1 + s) / (1 - s) in [sqrt(1/2), sqrt(2)]",
           lambda z: 2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z,
           {24: (E, z), 53: (E, z)}, {24: 3, 53: 6})
    yield ("Log2Tail", "2 / ln(2) (atanh(s) / s - 1 - z / 3) / z^2 for the same z",
           lambda z: 2 / LN2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1 - z / 3) / z**2, lambda z: z**2,
           {24: (mpf("1e-6"), z), 53: (mpf("1e-6"), z)}, {24: 3, 53: 7})
    t = mpf("0.3026")
    yield ("Tanh", "(tanh(x) - x) / x^3 in z = x^2, |x| <= 0.55, relative to tanh(x)",
           odd(mp.tanh), odd_weight(mp.tanh), {24: (E, t), 53: (E, t)}, {24: 4, 53: 10})
    e = mpf("0.8651")
    yield ("ErfSmall", "erf(x) / x - 1 in z = x^2, |x| <= 0.93, relative to erf(x)",
           lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
           {24: (E, e), 53: (E, e)}, {24: 6, 53: 13})
    yield ("ErfLarge", "-log(erfc(x)) / x - 1 for x in [0.93, 4] (f32), [0.93, 6] (f64), absolute in erf(x)",
           lambda x: -mp.log(mp.erfc(x)) / x - 1, lambda x: x * mp.erfc(x),
           {24: (mpf("0.929"), mpf(4)), 53: (mpf("0.929"), mpf(6))}, {24: 6, 53: 19})
    q = (mp.pi / 4 * mpf("1.0001")) ** 2
    yield ("Sin", "(sin(x) - x) / x^3 in z = x^2, |x| <= pi / 4, relative to sin(x)",
           odd(mp.sin), odd_weight(mp.sin), {24: (E, q), 53: (E, q)}, {24: 2, 53: 5})
    yield ("Cos", "(cos(x) - 1 + z / 2) / z^2 in z = x^2, |x| <= pi / 4, relative to cos(x)",
           lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(mp.sqrt(z)),
           {24: (E, q), 53: (E, q)}, {24: 2, 53: 5})
    a = mpf("0.17164")
    yield ("Atan", "(atan(x) - x) / x^3 in z = x^2, |x| <= tan(pi / 8), relative to atan(x)",
           odd(mp.atan), odd_weight(mp.atan), {24: (E, a), 53: (E, a)}, {24: 4, 53: 11})
    s = mpf("0.25001")
    yield ("Asin", "(asin(x) - x) / x^3 in z = x^2, |x| <= 1/2, relative to asin(x)",
           odd(mp.asin), odd_weight(mp.asin), {24: (E, s), 53: (E, s)}, {24: 5, 53: 13})
    o = mpf("1.0001")
    yield ("Sinh", "(sinh(x) - x) / x^3 in z = x^2, |x| <= 1, relative to sinh(x)",
           odd(mp.sinh), odd_weight(mp.sinh), {24: (E, o), 53: (E, o)}, {24: 3, 53: 6})


def two_over_pi(bits):
    """Chunks of 2/pi: chunk i is an integer of `bits` bits with weight 2^(-bits (i + 1)); see Reduce() in recipes.h."""
    count = {24: 10, 53: 24}[bits]
    mp.dps = 600
    scaled = int(mp.floor(2 / mp.pi * mpf(2) ** (bits * count)))
    mp.dps = 60
    return [(scaled >> (bits * (count - 1 - i))) & ((1 << bits) - 1) for i in range(count)]


def number(value, bits):
    return f"{float(value):.9g}" if bits == 24 else f"{float(value):.17g}"


def print_array(name, values):
    print(f"  static constexpr double {name}[] = {{")
    line = "     "
    for value in values:
        if len(line) + len(value) + 2 > 100:
            print(line)
            line = "     "
        line += f" {value},"
    print(line[:-1] + "};")


def main():
    print("// Polynomial coefficients of recipes.h, lowest order first. Generated by tables.py, which says how.")
    print("#pragma once\n")
    print('#include "ir/support/namespaces.h"\n')
    print("namespace lazuli::hlo::recipes::internal {\n")
    print("template <class Scalar>\nstruct Tables;")
    for scalar, bits in (("float", 24), ("double", 53)):
        print(f"\ntemplate <>\nstruct Tables<{scalar}> {{")
        for name, documentation, function, weight, intervals, degrees in tables():
            values, error = fit(function, weight, intervals[bits], degrees[bits], bits)
            print(f"  // {documentation}: error 2^{float(mp.log(error, 2)):.1f}.")
            print_array(f"k{name}", [number(v, bits) for v in values])
        print(f"  // 2/pi in chunks of {bits} bits.")
        print_array("kTwoOverPi", [f"{c}." for c in two_over_pi(bits)])
        print("};")
    print("\n}  // namespace lazuli::hlo::recipes::internal")


if __name__ == "__main__":
    main()
