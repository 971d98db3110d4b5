#!/usr/bin/env python3
"""Small programs in both libraries: promotion, numbers, reductions, indices, views and orders are as torch has them.

    torch_small_programs_test.py FOLDER [--whole] [FAMILY...]      FOLDER holds the package lazuli, as build/PRESET/python does

A program is statements with an expression at the end, evaluated with torch and with lazuli under the name torch. Values, dtypes, shapes,
requires_grad and the classes of errors are compared; what lazuli takes and torch refuses is counted, and so is what both refuse by
another class. 800 programs of each family are drawn; --whole takes all.
"""

import ast
import itertools
import os
import random
import re
import sys
import warnings

import numpy as np
import torch

sys.path.insert(0, sys.argv[1])
os.environ.setdefault("PJRT_DEVICE", "interpreter")
os.environ.setdefault("LAZULI_RECOMPILE_WARNING", "0")
import lazuli  # noqa: E402

warnings.simplefilter("ignore")
SAMPLE = 800
DTYPES = ("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128").split()
NUMBERS = ["True", "2", "-3", "0", "2.5", "-1.5", "float('inf')", "float('nan')", "1j", "2-3j", "2**40", "1e300"]
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-5, "float64": 1e-9, "complex64": 5e-5, "complex128": 1e-9}
# What differs and is meant to, by program and why; docs/differences.md has the rows.
KNOWN = {
    r"f(loat)?16.*complex|complex.*float16|float16.*j\b|j\b.*float16": "there are no complex numbers of two f16",
    r"bfloat16.*j\b|j\b.*bfloat16": "torch rounds to bf16 on the way",
    r"complex.*(inf|nan|1e300)|(inf|nan|1e300).*complex|j\b.*(inf|nan|1e300)": "infinite complex numbers",
    r"int.*2\*\*40|2\*\*40.*int|uint8.*-3|^-3.*uint8": "integers and numbers that they do not hold",
    r"\*\* ?-?\d*\.?\d*-?\d?j|\*\*.*complex|pow.*(complex|j)": "complex powers of 0",
    r"sum\(.*nan.*int32": "floats to integers that do not hold them",
    r"mode\(": "where NaN stands decides torch's mode",
    r"(all|any)\(.*dim=\(\)|(all|any)\(.*uint8": "no dims are all dims; bool",
    r"std_mean|var_mean": "the mean of infinite numbers",
    r"softmax\(torch.empty\(.*complex": "torch takes complex numbers if there are none",
    r"cumm(ax|in)\(torch.empty\(.*\), ": "torch does not look at dims of empty tensors",
    r"\.\.\., \.\.\.": "two ellipses",
    r"x\[(.*torch.tensor\(\[5\]\).*2:1|2:1, torch.tensor\(\[5\]\))|x\[False\] = torch": "positions that nothing is taken at are looked at",
}


def promotion():
    operators = "+ - * / // % ** & | ^ << >> == < >=".split()
    for d, n, o in itertools.product(DTYPES, NUMBERS, operators):
        yield f"torch.tensor([1,0,3]).to(torch.{d}) {o} {n}"
        yield f"{n} {o} torch.tensor([1,2,3]).to(torch.{d})"
    for d, e in itertools.product(DTYPES, DTYPES):
        for o in operators:
            yield f"torch.tensor([5,7,3]).to(torch.{d}) {o} torch.tensor([2,1,3]).to(torch.{e})"
            yield f"torch.tensor([5,7,3]).to(torch.{d}) {o} torch.tensor(2).to(torch.{e})"
        for o in "+= -= *= /= **= //= %= &=".split():
            yield f"r=torch.tensor([4,1,2]).to(torch.{d}); r {o} torch.tensor([2,1,3]).to(torch.{e}); r"
        yield f"torch.where(torch.tensor([True,False]), torch.tensor([1,2]).to(torch.{d}), torch.tensor([3,4]).to(torch.{e}))"
        yield f"torch.cat([torch.ones(2,dtype=torch.{d}), torch.ones(1,dtype=torch.{e})])"


def pointwise():
    unary = ("abs neg sign sgn square sqrt rsqrt exp expm1 log log1p log2 log10 exp2 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid "
             "erf erfc lgamma digamma ceil floor round trunc frac reciprocal isnan isinf isfinite signbit logical_not bitwise_not positive real angle "
             "relu i0 sinc nan_to_num").split()
    for f, d in itertools.product(unary, DTYPES):
        yield f"torch.{f}(torch.tensor([0,1,2,-3]).to(torch.{d}))"
        yield f"torch.tensor([1,2]).to(torch.{d}).{f}_()"
    binary = ("add sub mul div floor_divide remainder fmod pow eq ne lt le gt ge maximum fmin atan2 bitwise_and bitwise_or logical_and bitwise_left_shift "
              "xlogy copysign hypot float_power nextafter ldexp clamp clamp_min clamp_max lerp dist heaviside").split()
    for f, n in itertools.product(binary, NUMBERS):
        yield from (f"torch.{f}(torch.tensor([1,0,3]).to(torch.{d}), {n})" for d in DTYPES)
    for f in binary:
        for a in ("2, 3", "torch.ones(2), 'a'", "torch.ones(2)", "torch.ones(2), torch.ones(3)", "torch.ones(2), torch.ones(2, 1)", "torch.ones(0), 1"):
            yield f"torch.{f}({a})"
    for mode, d, e in itertools.product(("None", "'trunc'", "'floor'"), DTYPES, DTYPES):
        yield f"torch.div(torch.tensor([7,-7,5]).to(torch.{d}), torch.tensor([2,2,-3]).to(torch.{e}), rounding_mode={mode})"
        yield f"torch.div(torch.tensor([7,-7,5]).to(torch.{d}), 2, rounding_mode={mode})"


TENSORS = ["torch.arange(6.).reshape(2,3)", "torch.tensor([[1,5,2],[4,0,3]])", "torch.tensor(3.)", "torch.empty(0)", "torch.empty(0,3)", "torch.empty(2,0)",
           "torch.tensor([[True,False],[True,True]])", "torch.tensor([[1.,float('nan')],[float('inf'),2]])", "torch.tensor([[1+2j,3j],[1,2]])",
           "torch.tensor([[1,5,2]],dtype=torch.uint8)", "torch.tensor([1.5,2,3],dtype=torch.bfloat16)", "torch.arange(24.).reshape(2,3,4)"]


def reductions():
    names = ("sum mean prod amax amin max min argmax argmin all any std var logsumexp median nanmedian nansum nanmean norm count_nonzero cumsum cumprod "
             "cummax cummin logcumsumexp mode std_mean var_mean softmax log_softmax sort argsort kthvalue unique gradient diff").split()
    how = ["", "0", "1", "-1", "2", "-3", "dim=0", "dim=(0,1)", "dim=()", "dim=[-1]", "dim=None", "0,True", "dim=0,keepdim=True", "dim=(0,1),keepdim=True",
           "dtype=torch.float64", "dtype=torch.int32", "0,dtype=torch.float64", "dim='a'", "dim=0,dtype=torch.complex64"]
    for f, t, a in itertools.product(names, TENSORS, how):
        yield f"torch.{f}({t}{', ' + a if a else ''})"
    for f, t, a in itertools.product(("std", "var"), TENSORS, ("unbiased=False", "correction=0", "correction=2", "0,unbiased=True", "True", "0,False", "correction=0.5")):
        yield f"torch.{f}({t},{a})"
    for f, t, a in itertools.product(("norm", "linalg.vector_norm"), TENSORS, ("2", "1", "float('inf')", "-float('inf')", "0", "2.5", "2,dim=0", "1,dim=-1,keepdim=True")):
        yield f"torch.{f}({t},{a})"


def indexing():
    x = "x=torch.arange(60).reshape(3,4,5)"
    entries = ["0", "-1", "3", ":", "1:", "::2", "::-1", "2:1", "None", "...", "[0,2]", "(0,1)", "[True,False,True]", "torch.tensor([0,2])", "torch.tensor([-1,0])",
               "torch.tensor([[0,1],[2,0]])", "torch.tensor(1)", "True", "False", "torch.tensor(True)", "torch.tensor([],dtype=torch.int64)", "np.array([0,1])",
               "torch.tensor([0,1],dtype=torch.int32)", "torch.tensor([0,1],dtype=torch.uint8)", "torch.tensor([5])", "range(2)", "np.int64(1)", "[]", "[[0,1],[1,2]]",
               "x[:,0,0]>10", "x>30", "x[:,:,0]>20", "torch.tensor([0.,1.])", "[0,torch.tensor(1)]"]
    for i, j in itertools.product(entries, entries):
        yield f"{x}; x[{i}, {j}]"
        yield f"{x}; x[{i}, {j}] = -1; x"
        yield f"{x}; x[{i}, {j}] += 1; x"
    for i, v in itertools.product(entries, ("7", "torch.tensor(7)", "2.5", "torch.zeros(5,dtype=torch.int64)", "torch.zeros(2,2,2)")):
        yield f"{x}; x[{i}]"
        yield f"{x}; x[{i}] = {v}; x"


def views():
    ways = ("x.t() x[1] x[:,1] x[1:,::2] x.view(4,3) x.view(-1) x.reshape(2,6) x.t().reshape(12) x.unsqueeze(0) x.squeeze() x.permute(1,0) x.narrow(1,1,2) x.select(0,1) "
            "x.expand(2,3,4) x[:,:1].expand(3,4) x.diagonal() x.unfold(1,2,2) x.as_strided((2,2),(4,1)) x.as_strided((3,),(5,),1) x.movedim(0,1) x.flatten() "
            "x.unflatten(1,(2,2)) x.detach() x.mT x.T x.view(torch.int32) x.view(torch.int16) x.real x.contiguous() x.t().contiguous() x.clone() x.view_as(x) x.split(2)[0] "
            "x.chunk(2,1)[1] x.unbind(0)[2] x.tensor_split(2)[1] x.hsplit(2)[0] x.broadcast_to(3,4) x[None] x[...] x[torch.tensor([0,1])] x[x>5] x[:0] x[0,1] x[0][1] x.t()[1:].t() "
            "x.reshape(12)[3:9].view(2,3) x.flip(0) x.repeat(1,1) x.expand(-1,4)").split()
    x, leaf, w = ("x=torch.arange(12.).reshape(3,4)", "x=torch.arange(12.).reshape(3,4).requires_grad_()", "w=torch.arange(12.).reshape(3,4).requires_grad_(); x=w*1")
    for v in ways:
        yield f"{x}; y={v}; (tuple(y.shape),y.stride(),y.storage_offset(),y.is_contiguous(),y._base is x)"
        yield from (f"{x}; y={v}; {then}" for then in ("y.fill_(7); x", "x.add_(100); y", "y+=1; (x,y)", "y[...]=-1; x"))
        yield from (f"{leaf}; y={v}; {then}" for then in ("y.sum().backward(); x.grad", "(y.requires_grad,y.is_leaf)", "y.mul_(2)"))
        yield from (f"{w}; y={v}; {then}" for then in ("y.mul_(2); x.sum().backward(); w.grad", "x.mul_(3); (y*y).sum().backward(); w.grad",
                                                       "z=(y*y).sum(); x.mul_(3); z.backward(); w.grad", "z=y.exp().sum(); y.mul_(3); z.backward(); w.grad"))


FAMILIES = {f.__name__: f for f in (promotion, pointwise, reductions, indexing, views)}


def plain(library, value):
    """What is compared of a result."""
    if isinstance(value, library.Tensor):
        dtype, x = str(value.dtype).split(".")[-1], value.detach()
        x = x.to(library.float32) if dtype == "bfloat16" else x
        return ("tensor", dtype, tuple(value.shape), value.requires_grad, np.array((x.resolve_conj() if library is torch else x).numpy()))
    if isinstance(value, (tuple, list)):
        return ("row", [plain(library, v) for v in value])
    return ("value", type(value).__name__, value)


def same(ours, theirs):
    if ours[0] != theirs[0]:
        return False
    if ours[0] == "row":
        return len(ours[1]) == len(theirs[1]) and all(map(same, ours[1], theirs[1]))
    if ours[0] == "value":
        return ours == theirs
    tolerance = TOLERANCES.get(theirs[1], 0)
    if ours[1:4] != theirs[1:4]:
        return False
    with np.errstate(all="ignore"):
        scale = min(max(float(np.max(np.abs(theirs[4][np.isfinite(theirs[4])]), initial=0)), 1), 1e30)
        return np.array_equal(ours[4], theirs[4]) if not tolerance else np.allclose(ours[4], theirs[4], rtol=tolerance, atol=tolerance * scale / 10, equal_nan=True)


def outcome(library, program):
    """The result, or the exception."""
    names = {"torch": library, "np": np}
    try:
        body = ast.parse(program).body
        exec(compile(ast.Module(body[:-1], []), "program", "exec"), names)
        return plain(library, eval(compile(ast.Expression(body[-1].value), "program", "eval"), names)), None
    except Exception as error:
        return None, error


def judge(program):
    """"agrees", "taken", "other class" or "differs", and what was seen."""
    (theirs, refused), (ours, error) = outcome(torch, program), outcome(lazuli, program)
    if refused is not None and error is not None:
        classes = {c.__name__ for c in type(error).__mro__}
        return "agrees" if type(refused).__name__ in classes else "other class", ""
    if refused is not None:
        return "taken", ""
    if error is not None:
        return "differs", f"{type(error).__name__}: {str(error)[:150]}"
    return ("agrees", "") if same(ours, theirs) else ("differs", f"{ours} instead of {theirs}")


def main():
    whole, wanted = "--whole" in sys.argv, [a for a in sys.argv[2:] if a in FAMILIES]
    wrong = 0
    for name, family in FAMILIES.items():
        if wanted and name not in wanted:
            continue
        programs = list(dict.fromkeys(family()))
        chosen = programs if whole else random.Random(0).sample(programs, min(SAMPLE, len(programs)))
        counts = dict.fromkeys(("agrees", "taken", "other class", "known", "differs"), 0)
        for program in chosen:
            kind, seen = judge(program)
            if kind == "differs" and any(re.search(known, program) for known in KNOWN):
                kind = "known"
            counts[kind] += 1
            if kind == "differs":
                wrong += 1
                print(f"{program}\n  {' '.join(seen.split())[:300]}")
        print(f"{name}: of {len(programs)} programs {len(chosen)} ran: {', '.join(f'{n} {kind}' for kind, n in counts.items())}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
