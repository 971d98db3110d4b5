#!/usr/bin/env python3
"""Where torch takes the same call, its result is the same: dtype, shape, values and gradients, on random operands.

    torch_surface_test.py FOLDER [CALLS [SEED]]      FOLDER holds the package lazuli, as build/PRESET/python does

Calls are those of tests/fuzz/surface.py, of functions and methods that torch has by the same name. A call that one of the two
refuses is not compared.
"""

import collections
import os
import pathlib
import re
import sys
import warnings

import numpy as np
import torch

sys.path[:0] = [sys.argv[1], str(pathlib.Path(__file__).resolve().parents[1] / "fuzz")]
os.environ.setdefault("PJRT_DEVICE", "interpreter")
import lazuli as lz  # noqa: E402
import surface  # noqa: E402

CALLS = int(sys.argv[2]) if len(sys.argv) > 2 else 6000
SEED = sys.argv[3] if len(sys.argv) > 3 else "0"

# What is not compared, by name of the function, and why.
LEFT_OUT = {
    r"set_default_dtype|set_printoptions|\w*set_rng_state|set_grad_enabled": "they would change what follows",
    r"rand\w*|(feature_)?(alpha_)?dropout(1d|2d|3d)?_?|\w*seed|normal_?|bernoulli_?|binomial|multinomial|poisson|sample_dirichlet|standard_gamma|uniform|exponential_|geometric_|cauchy_|log_normal_|uniform_|kaiming\w*|xavier\w*|trunc_normal_|orthogonal_|sparse_|gumbel_softmax": "random numbers are not torch's",
    r"svd|eigh?|qr|geqrf|(svd|pca)_lowrank|lobpcg|ldl_factor(_ex)?": "vectors may have other signs, and exchanges of rows another order",
    r"empty\w*": "torch leaves the elements as they are",
    r"get_rng_state|numpy|tolist|__\w+__|is_tensor|equal|stride|name|data|grad|T|mT": "no tensor comes out, or it is tested elsewhere",
}
# What differs and is meant to, by name of the function and a pattern of how it differs.
KNOWN = {
    (r"copysign_?|signbit", r"."): "bfloat16 goes through float32, which may lose the sign of NaN",
    (r"xlogy_?", r"gradients.*nan"): "0 log(0) is 0 in gradients, too",
    (r"ldexp_?", r"."): "torch takes the exponent as 32 bits, or rounds the power to its dtype",
    (r"logit_?", r"inf|nan"): "an eps above 0.5 clamps to nothing",
    (r"unique_consecutive", r"\(0,\)"): "torch gives an empty tensor for what nobody asked for",
    (r"(atan2|arctan2)_?", r"gradients"): "of integers beside floats; torch squares them as integers, which wrap",
    (r"all|any", r"bool instead of uint8"): "torch alone gives uint8 for uint8",
    (r"all|any", r"\) instead of \("): "no dims are all dims",
    (r"add|sub|subtract", r"(complex128|float32) instead of"): "a third argument by position is torch's old order: alpha, other",
    (r"norm", r"values"): "of an order next to 0, which f32 does not bear",
    (r"cumprod_?", r"gradients.*nan"): "the gradient of a NaN reaches all elements of a running product",
    (r"logcumsumexp|i0_?", r"\bnan|inf instead of nan"): "of infinite numbers; torch's is NaN",
    (r"polygamma_?|digamma_?|dist", r"instead of"): "at poles, and the last bit of gradients of 16 bits",
    (r"log_?softmax|softmax", r"gradients"): "of f64 through f32, where sums nearly cancel",
    (r"trapezoid|trapz", r"values"): "of integers; torch's sums of two wrap",
    (r"narrow_copy", r"gradients"): "of a negative start; torch has none",
    (r"fmod_?", r"values: .*nan"): "torch's vectors take a denormal bfloat16 divisor for 0",
    (r"histc", r"."): "of bf16 next to the largest: torch loses the largest element",
    (r"unique_consecutive", r"\[1, 1\] instead of \[0, 1\]"): "torch's first count of slices is 0 where elements are infinite",
    (r"kl_div|\w*_loss|binary_cross_entropy\w*", r".*"): "further arguments by position are torch's size_average and reduce",
    (r"adaptive_max_pool1d", r"1 instead of 2"): "that of torch itself always gives the indices, too; ours is nn.functional's",
    (r"rms_norm", r".*"): "eps is 1e-5, torch's that of the dtype",
    (r"int|long|short|byte|char|to|copy_|fill_?|type_as|\w+_scatter", r"values: .*"): "floats outside of an integer's range saturate; torch leaves that open",
    (r"scatter_?|index_copy_?|index_put_", r".*"): "where positions meet the last one counts; torch leaves that open",
    (r"lt|le|gt|ge|eq|ne|.*[<>=].*", r"values"): "a negative number is below every unsigned one; torch wraps it",
    (r"topk|sort|argsort|kthvalue", r"."): "torch leaves open which of equal elements comes first",
    (r"(add|sub|subtract)_?|.*[+-].*", r"nan\+?-?nanj|nanj"): "torch multiplies a number by alpha, so that infinity becomes NaN in complex numbers",
    (r"hardshrink", r"gradients.*nan"): "where the threshold is NaN torch's vectors give 0, and what is left of them the gradient",
    (r"cosine_similarity", r"values"): "of f16 beside bf16; torch rounds the norms to the operands' types, we compute in f32",
    (r"conv2d|matmul|mm|bmm|linear|cumsum_?|prod|std|var", r".*\b(inf|nan)\b.*"): "the order of sums and products decides what overflows",
}
# What differs and is a mistake of ours.
OPEN = {
    (r"log2_?|log10_?|exp2_?|sinc_?|cosh?_?|sinh?_?|tanh?_?|(a|arc)?(sin|cos|tan)h?_?|float_power_?", r"\dj|nanj?"): "complex numbers that are infinite, NaN or on a cut",
    (r"floor_divide_?", r"values"): "of f16 and a number",
    (r"isinf|isfinite", r".*"): "of complex numbers with infinite parts",
    (r"group_norm", r"nan"): "where a variance is not finite",
    (r"sinh_?|cosh_?|celu_?", r"gradients"): "of numbers beyond 100, and of an alpha of 1e-5",
    (r"float|half|bfloat16", r"gradients"): "the test takes the cosine in the narrow type",
    (r"pow_?|.*\*\*.*", r"(\bnan|\dj|gradients)"): "complex powers of 0 and NaN; the gradient of an integer to a double has digits of a float",
}
TOLERANCES = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 3e-5, "float64": 1e-9, "complex64": 3e-5, "complex128": 1e-9}


class Calls(surface.Writer):
    """Statements that both libraries may take: no wrong types, by position alone."""

    by_name = False
    wants_gradient = True

    def wrong(self):
        return "0"

    def dims(self):
        return tuple(self.rng.choice([1, 2, 2, 3, 4]) for _ in range(self.rng.choice([0, 1, 1, 2, 2, 2, 3]))) if self.chance(0.9) else super().dims()

    def tensor(self, shape, dtype=None):
        gradient = self.wants_gradient and self.chance(0.5)
        return f"T({self.rng.randrange(1000)}, {dtype or self.rng.choice(surface.USUAL)!r}, {shape}, '', {gradient})"

    def variable(self, shape):  # which is written to: torch refuses that of a leaf
        self.wants_gradient = False
        return super().variable(shape)

    def integer(self):
        return self.rng.choice(["0", "0", "0", "-1", "-1", "1", "1", "2"])

    def integers(self):
        return self.rng.choice(["[0]", "[-1]", "[0, 1]", "[1]", "[0, -1]", "[1, 0]", "[2, 3]", "[1, 2, 0]"])

    def number(self):
        return self.rng.choice(["0", "1", "2", "-1", "0.5", "0.1", "-0.3", "3.0", "1e-5", "float('nan')", "float('inf')", "True", "-2"])

    def value(self, name, kind, shape):
        if "DType" in kind:
            return f"lz.{self.rng.choice(surface.USUAL)}"
        if "Device" in kind:
            return "None"
        return super().value(name, kind, shape)


class Torch:
    """What a statement calls lz."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        found = getattr(self.module, name)
        return Torch(found) if isinstance(found, type(torch)) else found


def torch_tensor(seed, dtype, shape, form="", grad=False):
    made = torch.from_numpy(np.array(surface.values(seed, shape, dtype if dtype != "bfloat16" else "float32"))).to(getattr(torch, dtype))
    return made.requires_grad_() if grad and made.is_floating_point() else made


def arrays(library, results):
    """NumPy arrays of results, with their dtypes' names; None if there is no tensor."""
    results = results if isinstance(results, (tuple, list)) else [results]
    kind = torch.Tensor if library is torch else lz.Tensor
    out = []
    for result in results:
        if not isinstance(result, kind):
            return None
        result = result.detach()
        name = str(result.dtype).split(".")[-1]
        result = result.to(library.float32) if name == "bfloat16" else result
        out.append((name, result.resolve_conj().numpy() if library is torch else result.numpy()))
    return out


def outcome(library, text):
    """The results and the gradients of the operands that want one."""
    leaves = []

    def make(*arguments):
        leaves.append(torch_tensor(*arguments) if library is torch else surface.T(*arguments))
        return leaves[-1]

    names = {"lz": Torch(torch) if library is torch else lz, "T": make, "np": np}
    exec(text, names)
    results = arrays(library, names["r"])
    if results is None:
        return None, None
    first = names["r"][0] if isinstance(names["r"], (tuple, list)) else names["r"]
    if not first.requires_grad or "float" not in results[0][0] or not results[0][1].size:
        return results, None
    # Weights that differ from one another and vary slowly: the cosine of a large number would be noise.
    fixed = first.detach()
    (first * (fixed / (fixed.abs() + 1)).cos()).sum().backward()
    return results, [None if leaf.grad is None else arrays(library, leaf.grad)[0] for leaf in leaves]


def difference(got, expected, what, through=""):
    """"", or how results or gradients differ; gradients are computed in the dtype of the result that they come through."""
    if len(got) != len(expected):
        return f"{what}: {len(got)} instead of {len(expected)}"
    for ours, theirs in zip(got, expected, strict=True):
        if ours is None or theirs is None:
            zero = theirs if ours is None else ours
            if zero is not None and np.any(zero[1] != 0):
                return f"{what}: only one is there, {ours} and torch's {theirs}"
            continue
        if ours[0] != theirs[0]:
            return f"{what}: {ours[0]} instead of {theirs[0]}"
        if ours[1].shape != theirs[1].shape:
            return f"{what}: {ours[1].shape} instead of {theirs[1].shape}"
        tolerance = max(TOLERANCES.get(dtype, 0) for dtype in (ours[0], through))
        with np.errstate(all="ignore"):
            if tolerance == 0:
                same = np.array_equal(ours[1], theirs[1])
            else:
                scale = max(1.0, float(np.max(np.abs(theirs[1][np.isfinite(theirs[1])]), initial=0)))
                same = np.allclose(ours[1], theirs[1], rtol=tolerance * 10, atol=tolerance * scale, equal_nan=True)
        if not same:
            return f"{what}: {ours[1].tolist()} instead of {theirs[1].tolist()}"
    return ""


def compare(text):
    """("refused", ...), ("same", "") or ("different", how)."""
    outcomes = []
    for library in (torch, lz):
        try:
            outcomes.append(outcome(library, text))
        except Exception as error:
            return ("refused", f"{library.__name__}: {type(error).__name__}: {error}")
    (expected, expected_gradients), (got, gradients) = outcomes
    if expected is None or got is None:
        return ("refused", "no tensors")
    how = difference(got, expected, "values")
    if not how and expected_gradients is not None and gradients is not None:
        how = difference(gradients, expected_gradients, "gradients", got[0][0])
    return ("different" if how else "same", how)


def is_known(name, how):
    return any(re.fullmatch(function, name.split(".")[-1]) and re.search(pattern, how, re.DOTALL) for function, pattern in {**KNOWN, **OPEN})


def entries():
    """What torch has by the same name, but for what is LEFT_OUT."""
    for entry in surface.ENTRIES:
        name = entry.name.split(".")[-1]
        if any(re.fullmatch(pattern, name) for pattern in LEFT_OUT) or entry.parameters is None:
            continue
        if entry.owner == "operator":
            if not re.search(r"np\.|lz\.|copy|pickle|range|memoryview|hash|str|\.name|\.grad|\.data|\.requires|\.shape|{i}|len|list|f'| in |\.T|\.mT",
                             entry.text):
                yield entry
        elif entry.owner == "Tensor":
            if hasattr(torch.Tensor, name):
                yield entry
        elif entry.owner is None:
            path, home = entry.text.split("(")[0].split(".")[1:], torch
            for part in path:
                home = getattr(home, part, None)
            if callable(home) and not isinstance(home, type):
                yield entry


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    all_entries = list(entries())
    counts, differences = collections.Counter(), collections.defaultdict(list)
    compared = collections.Counter()
    for number in range(CALLS):
        writer = Calls(SEED, number)
        entry = all_entries[number % len(all_entries)]
        text = "\n".join(writer.statements_of(entry))
        if entry.owner == "operator" and not text.split("\n")[-1].startswith("r ="):
            text += f"\nr = {text.split(' ')[0]}"
        verdict, how = compare(text)
        verdict = "known" if verdict == "different" and is_known(entry.name, how) else verdict
        counts[verdict] += 1
        compared[entry.name] += verdict != "refused"
        if verdict == "different":
            differences[entry.name].append((text, how))
    for name, found in differences.items():
        print(f"{name}: {len(found)} of {compared[name]}\n    {found[0][0]}\n    {found[0][1][:300]}")
    never = [e.name for e in all_entries if compared[e.name] == 0]
    print(f"{len(all_entries)} functions, {dict(counts)}; never compared: {' '.join(never)}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
