#!/usr/bin/env python3
"""Where there is no element, of numbers without dims, and of integers and bools at their extremes functions are what torch's are:
dtypes, shapes, values, and which gradients there are.

    torch_edges_test.py FOLDER [COUNT] [PATTERN...]      FOLDER holds the package lazuli, as build/PRESET/python does

Of all cases COUNT, drawn at random, or all if it is 0; PATTERN: those whose expressions match. Floats with dims are compared in
torch_special_values_test.py. Where torch refuses, lazuli may do what it likes.
"""

import fnmatch
import os
import sys
import warnings

os.environ.setdefault("PJRT_DEVICE", "interpreter")  # which compiles fast

import numpy as np  # noqa: E402
import torch  # noqa: E402
from cases import report  # noqa: E402

sys.path.insert(0, sys.argv[1])
import lazuli  # noqa: E402

COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
PATTERNS = sys.argv[3:]
INTEGERS = ["int8", "int32", "int64", "uint8", "bool"]
ALL = ["float32", "float64", *INTEGERS]

# Expressions by their operands; in those of "number" x has no dims, in those of "none" it is [2, 0].
TABLE = {
    "number": """
sum(x,0); mean(x,0); prod(x,0); var(x,0); std(x,0); norm(x,2,0); logsumexp(x,0); all(x,0); any(x,0); softmax(x,0); log_softmax(x,0); cumsum(x,0)
cumprod(x,0); cummax(x,0); cummin(x,0); logcumsumexp(x,0); sort(x,dim=0); argsort(x,dim=0); topk(x,1,0); amax(x,0); amin(x,-1); argmax(x,0)
argmax(x,0,keepdim=True); max(x,0); median(x,0); nanmedian(x,0); mode(x,0); kthvalue(x,1,0); quantile(x,0.5,0); aminmax(x,dim=0); aminmax(x)
nansum(x,0); nanmean(x,0); count_nonzero(x,0); flip(x,(0,)); roll(x,1); roll(x,1,0); renorm(x,2,0,1.0); unique(x); unique(x,return_counts=True)
nonzero(x); argwhere(x); isin(x,x); searchsorted(t.tensor([0,1,2],dtype=x.dtype),x); bucketize(x,t.tensor([0,1,2],dtype=x.dtype))
gather(x,0,t.tensor(0)); scatter(x,0,t.tensor(0),5); index_select(x,0,t.tensor([0])); take(x,t.tensor(0)); index_fill(x,0,t.tensor([0]),3)
index_add(x,0,t.tensor([0]),x); scatter_add(x,0,t.tensor(0),x); cov(x); corrcoef(x); x.repeat(2); repeat_interleave(x,3); unsqueeze(x,0)
squeeze(x,0); flatten(x); ravel(x); x.expand(3); diag_embed(x[None]); F.softmin(x,0); F.layer_norm(x,()); F.mse_loss(x,x); F.one_hot(x,3)
transpose(x,0,0); x.T; permute(x,()); movedim(x,0,0); movedim(x,-1,0); stack([x,x]); hstack([x,x]); vstack([x,x]); dstack([x,x])
column_stack([x,x]); block_diag(x,x); atleast_1d(x); atleast_3d(x); meshgrid(x,x,indexing='ij'); vander(x[None]); vander(x[None],1)
cartesian_prod(x[None],x[None]); combinations(x[None]); masked_select(x,x==x); masked_fill(x,x==x,2); where(x>0); linalg.vector_norm(x); msort(x)
linalg.vector_norm(x,3,0); inner(x,x); kron(x,x); tensordot(x,x,0); dist(x,x); F.normalize(x,dim=0); std_mean(x,0); var_mean(x,0,correction=0)
""",
    "none": """
sum(x,1); mean(x,1); prod(x,1); var(x,1); std(x,1); norm(x,2,1); norm(x,0,0); logsumexp(x,1); all(x,1); any(x,1); cumsum(x,1); cumprod(x,1); cummin(x,1)
cummax(x,1); logcumsumexp(x,1); sort(x,dim=1); argsort(x,dim=1); topk(x,0,1); amax(x,0); amax(x,1); argmax(x,1); max(x,0); max(x,1); median(x,1)
median(x,0); nanmedian(x,1); mode(x,1); mode(x,0); kthvalue(x,1,0); quantile(x,0.5,0); aminmax(x,dim=0); nansum(x,1); nanmean(x,1); count_nonzero(x)
diff(x); cumulative_trapezoid(x); max(x); sum(x); mean(x); prod(x); std(x); var(x); norm(x); nanmedian(x); linalg.vector_norm(x,inf); argmax(x)
linalg.matrix_norm(x); renorm(x,2,0,1.0); histc(x,4); unique(x); nonzero(x); isin(x,x); var(x,0); F.normalize(x); F.glu(x); cov(x); corrcoef(x)
searchsorted(x,x); bucketize(x,x[0]); F.mse_loss(x,x); F.l1_loss(x,x); F.huber_loss(x,x); F.kl_div(x,x); F.cosine_similarity(x,x); dist(x,x)
F.pairwise_distance(x,x); cdist(x,x); outer(x[0],x[1]); x@x.T; x.T@x; inner(x,x); bincount(x[0]); std_mean(x,1); var_mean(x); flip(x,(1,)); roll(x,1,1)
F.pad(x,(1,1)); F.pad(x,(1,1),value=3.0); F.binary_cross_entropy_with_logits(x,x); F.softmax(x,0); cat([x,x]); tensor_split(x,2); median(x[:1]) + 1
""",
    "rows": """
sum(x,1); sum(x,1,dtype=t.float64); mean(x,1,dtype=t.float64); prod(x,1); prod(x); amax(x,1); amin(x,(0,1)); max(x,1); min(x,0); argmax(x,1); argmin(x,0)
all(x,1); any(x,0); nansum(x,1); count_nonzero(x,1); median(x,1); nanmedian(x,0); mode(x,1)[0]; kthvalue(x,2,1)[0]; topk(x,2,1)[0]; topk(x,2,0,largest=False)[0]
sort(x,dim=1,stable=True); sort(x,dim=0,descending=True,stable=True); argsort(x,dim=0,descending=True,stable=True); msort(x); cumsum(x,1); cumsum(x,0)
cumprod(x,1); cumprod(x,0,dtype=t.int64); cummax(x,1); cummin(x,0); diff(x); diff(x,2); aminmax(x,dim=1); aminmax(x); logsumexp(x,1); vander(x[:,0],3)
tril(x); triu(x,1); flip(x,(0,)); roll(x,(1,2),(0,1)); rot90(x); trace(x); diag(x,1); cross(x,x); outer(x[:,0],x[0]); repeat_interleave(x,2,1)
F.pad(x,(1,2)); F.pad(x[None],(1,1),mode='reflect'); clamp(x,0,1); clamp(x,x.flip(0),x); maximum(x,x.flip(0)); isin(x,x[3]); isin(x,1); unique(x)
unique(x,return_inverse=True,return_counts=True); unique(x,dim=0); unique_consecutive(x,dim=0); nonzero(x); where(x>0,x,2); where(x>0,x,1.5)
masked_fill(x,x!=x,0); masked_select(x,x==x.flip(0)); equal(x,x); isclose(x,x.flip(0)); index_add(x,0,t.tensor([1,1]),x[3:5])
searchsorted(sort(x,dim=1)[0],x); searchsorted(sort(x,dim=1)[0],x,right=True); bucketize(x,sort(x[:,0])[0]); gather(x,1,t.tensor([[2,0,0]]*len(x)))
scatter_add(x,1,t.tensor([[0,0,2]]*len(x)),x); scatter_reduce(x,1,t.tensor([[0,0,2]]*len(x)),x,'prod'); put(x,t.tensor([0,0]),x[3,:2],accumulate=True)
scatter_reduce(x,1,t.tensor([[0,0,2]]*len(x)),x,'amax',include_self=False); scatter_reduce(x,1,t.tensor([[0,0,2]]*len(x)),x,'amin')
index_reduce(x,0,t.tensor([1,1,2]),x[3:6],'prod'); index_copy(x,0,t.tensor([2,1]),x[3:5]); index_fill(x,1,t.tensor([0,2]),1); x[t.tensor([0,-1])]
x@x.T; inner(x,x); mv(x,x[0]); einsum('ij,ij->i',x,x); einsum('ij,ij->ij',x,x); einsum('ij->i',x); tensordot(x,x.T,1); kron(x[:2],x[:2]); bmm(x[:,None],x[:,:,None])
addmm(x[:,:1],x,x.T); addmv(x[:,0],x,x[0],beta=0); addr(x[:3],x[0],x[1],beta=0); addr(x[:3],x[0],x[1],alpha=2); baddbmm(x[:,:1,None],x[:,None],x[:,:,None])
""",
    "edges": """
x+1; x-1; 1-x; x*2; x*-1; x/2; 1/x; x//2; x//-3; x%2; x%-3; x**2; x**0; x**3; 2**x; (-2)**x; pow(x,7); pow(2.0,x); abs(x); -x; sgn(x); sign(x); round(x); ~x; x<<1; x>>1
x&3; x|3; x^3; x==1; x<1.5; x>nan; x!=nan; x>=inf; eq(x,0); floor_divide(x,2); fmod(x,2); fmod(x,-3); remainder(x,-3); div(x,3,rounding_mode='floor'); div(x,3,rounding_mode='trunc')
x//2.5; x%2.5; square(x); sqrt(x); rsqrt(x); reciprocal(x); exp(x); log(x); log1p(x); sigmoid(x); tanh(x); erf(x); lgamma(x); sin(x); trunc(x); ceil(x); signbit(x)
F.relu(x); F.relu6(x); F.hardtanh(x,-2,3); F.threshold(x,1,2); F.softplus(x); F.silu(x); F.gelu(x); F.leaky_relu(x); F.one_hot(x[:4].abs(),100); logit(x); special.ndtri(x)
nan_to_num(x); isfinite(x); isneginf(x); angle(x); deg2rad(x); copysign(x,-1); copysign(x,300); xlogy(x,300); xlogy(2,x); special.xlog1py(x,300); special.entr(x); hypot(x,x)
ldexp(x,t.tensor(-200)); ldexp(x,t.tensor(2)); float_power(x,2); float_power(0,x); add(x,1,alpha=3); rsub(x,1,alpha=2); clamp_min(x,1); clamp_max(x,1); clamp(x,t.tensor(0,dtype=x.dtype))
bitwise_left_shift(x,100); bitwise_right_shift(x,100); gcd(x[:3],t.tensor(6,dtype=x.dtype)); lcm(x[:3],t.tensor(6,dtype=x.dtype)); x.to(t.float32); x.to(t.int32); x.to(t.int8); x.to(t.uint8)
x.to(t.bool); x.to(t.float16); x.view(t.uint8); heaviside(x,x); logical_not(x); maximum(x,t.tensor(1,dtype=x.dtype)); fmax(x,t.tensor(1,dtype=x.dtype)); isclose(x,x); where(x>0,1,x)
cumsum(x,0); cumprod(x,0); sum(x); prod(x); addcmul(x,x,x,value=2); frexp(x.to(t.float32)); atan2(x,x); special.i0e(x); special.log_ndtr(x); bernoulli(x*0.0); polar(x*1.0,x*1.0)
""",
    "pairs": """
x+y; x-y; x*y; x/y; x&y; x|y; x^y; x<y; x==y; x>=y; add(x,y,alpha=2); sub(x,y,alpha=-1); maximum(x,y); minimum(x,y); fmax(x,y); atan2(x,y); pow(x,abs(y)%7); float_power(x,y)
copysign(x,y); logaddexp(x,y); xlogy(x,y); special.xlog1py(x,y); isclose(x,y); where(x<y,x,y); logical_and(x,y); logical_xor(x,y); clamp(x,y,y); clamp(x,min=y); clamp(x,max=y)
dot(x,y); vdot(x,y); cat([x,y]); stack([x,y]); equal(x,y); x.masked_fill(y==y,2); true_divide(x,y); heaviside(x,y); addcmul(x,x,y); hypot(x,y); max(x,y); lerp(x*1.0,y*1.0,0.3); isin(x,y[:2])
F.mse_loss(x,y,reduction='none'); F.l1_loss(x,y); F.hinge_embedding_loss(x,y,reduction='none'); F.margin_ranking_loss(x,y,y,reduction='none'); F.poisson_nll_loss(x,y,reduction='none')
""",
}

# What differs on purpose (docs/differences.md), or is torch's mistake: patterns of expressions and dtypes, and why.
KEPT = [
    ("*trapezoid(*", "*", "torch adds integers in their dtype, which wraps; of no elements its dtype is that of x"),
    ("gcd(*", "int*", "torch's is negative for the least integer"),
    ("median(*", "int*", "of no integers torch has a float's NaN as an integer, whatever that is"),
    ("nanmedian(*", "int*", "of no integers torch has a float's NaN as an integer, whatever that is"),
    ("cov(*", "int*", "sums of integers near 2^31 in f32 have no digits left"),
    ("corrcoef(*", "int*", "sums of integers near 2^31 in f32 have no digits left"),
    ("mode(*", "*", "which of equally many is the first"),
    ("norm(x,0*", "float*", "zeros for what no element of the result depends on"),
    ("x.to(t.*", "float*", "floats to integers that do not hold them"),
    ("clamp(x,y,y)", "*", "torch gives no gradient to bounds that are equal"),
    ("F.hinge_embedding_loss(*", "*int*", "losses are floats"),
    ("F.poisson_nll_loss(*", "*int*", "torch multiplies integers in their dtype, which wraps"),
    ("vander(*None*", "float*", "of the power 0 alone torch has no history"),
    ("softmax(*", "*int*", "torch asks for the dtype of elements alone"),
    ("log_softmax(*", "*int*", "torch asks for the dtype of elements alone"),
]
REFUSED = [  # likewise, what lazuli refuses
    ("*softm*(*", "torch asks for the dtype of elements alone"),
    ("clamp(x,*", "a bound that no element can have is a mistake"),
    ("*x.T*", "torch asks for the dtype of elements alone"),
    ("inner(*", "torch asks for the dtype of elements alone"),
    ("topk(x,0,0)", "a number has no part without elements"),
]


def edges(dtype):
    if dtype == "bool":
        return [False, True, True, False]
    if "float" in dtype:
        return [0.0, -0.0, 1.0, -1.5, 7.0]
    info = np.iinfo(dtype)
    return [0, 1, 2, 3, 5, info.max, info.max - 1, info.max // 2, *([-1, -2, -3, info.min, info.min + 1] if info.min else [])]


def rows(dtype):
    if dtype == "bool":
        return [[i & 1, i & 2, i & 4] for i in range(8)]
    a, b = np.iinfo(dtype).min, np.iinfo(dtype).max
    return [[0, 0, 0], [a, b, 0], [b, b, 1], [a, a, a], [b, b, b], [1, 2, 3], [2, 2, 1], [b - 1, b, a], [a, 0, a + 1]]


def operands(kind, dtype):
    if kind == "pairs":
        values = np.array(edges(dtype), dtype)
        x, y = (v.ravel().copy() for v in np.broadcast_arrays(values[:, None], values))
        return {"x": x, "y": y}
    arrays = {"number": 1, "none": np.zeros((2, 0)), "rows": rows, "edges": edges}
    return {"x": np.array(arrays[kind](dtype) if callable(arrays[kind]) else arrays[kind], dtype)}


class Names(dict):
    """The operands, and the functions of a library."""

    def __init__(self, library, tensors):
        super().__init__(tensors, t=library, F=library.nn.functional, special=library.special, linalg=library.linalg,
                         inf=float("inf"), nan=float("nan"))

    def __missing__(self, name):
        return getattr(self["t"], name) if hasattr(self["t"], name) else getattr(__builtins__, name)


def outcome(library, expression, kind, dtype):
    """{name: (dtype, array)} of the results and of the gradients of their sums; None where there is none."""
    tensors = {name: library.tensor(array) for name, array in operands(kind, dtype).items()}
    if "float" in dtype:
        for x in tensors.values():
            x.requires_grad_()
    results = eval(expression, {}, Names(library, tensors))
    found = {}
    for i, y in enumerate(results if isinstance(results, (tuple, list)) else [results]):
        found[f"result {i}"] = described(y)
        if getattr(y, "requires_grad", False) and y.grad_fn is not None:
            grads = library.autograd.grad(y, list(tensors.values()), library.ones_like(y), retain_graph=True, allow_unused=True)
            found |= {f"gradient of {name}, result {i}": described(g) for name, g in zip(tensors, grads, strict=True)}
    return found


def described(x):
    if x is None or not hasattr(x, "dtype"):
        return x
    dtype = str(x.dtype).split(".")[-1]
    return dtype, np.array(x.detach().tolist(), dtype).reshape(tuple(x.shape))


def difference(got, want):
    if not isinstance(got, tuple) or not isinstance(want, tuple):
        return None if got == want else f"is {got}, not {want}"
    (dtype, have), (wanted, expected) = got, want
    if dtype != wanted or have.shape != expected.shape:
        return f"is {dtype}{list(have.shape)}, not {wanted}{list(expected.shape)}"
    if expected.dtype.kind not in "fc":
        wrong = have != expected
    else:
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(have, expected, rtol=1e-3 if wanted == "float16" else 3e-5, atol=1e-30, equal_nan=True)
    if not wrong.any():
        return None
    place = tuple(np.argwhere(wrong)[0])
    return f"is {have[place]} at {place}, not {expected[place]}"


class Refused(Exception):
    """By torch."""


def compare(expression, kind, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = outcome(torch, expression, kind, dtype)
        except Exception as refusal:  # noqa: BLE001
            raise Refused from refusal
        try:
            got = outcome(lazuli, expression, kind, dtype)
        except lazuli.Error:
            if any(fnmatch.fnmatchcase(expression, pattern) for pattern, _ in REFUSED):
                return
            raise
    if any(fnmatch.fnmatchcase(expression, e) and fnmatch.fnmatchcase(dtype, d) for e, d, _ in KEPT):
        return
    assert got.keys() == want.keys(), f"has {', '.join(got)}; torch has {', '.join(want)}"
    lines = [f"{name} {text}" for name in want if (text := difference(got[name], want[name]))]
    assert not lines, "\n    ".join(["", *lines])


def split(text):
    """The expressions, at semicolons and ends of lines."""
    return [e.strip() for line in text.strip().splitlines() for e in line.split(";") if e.strip()]


def main():
    everything = [(e, kind, dtype) for kind, text in TABLE.items() for e in split(text)
                  for dtype in (ALL if kind in ("number", "none") else INTEGERS) if not PATTERNS or any(fnmatch.fnmatch(e, p) for p in PATTERNS)]
    if COUNT and COUNT < len(everything):
        everything = [everything[i] for i in np.random.default_rng(0).choice(len(everything), COUNT, replace=False)]
    refused = []

    def check(case):
        try:
            compare(*case)
        except Refused:
            refused.append(case)

    status = report({f"{e} of {kind}, {dtype}": lambda case=(e, kind, dtype): check(case) for e, kind, dtype in everything}, "cases")
    print(f"torch refuses {len(refused)} of them")
    return status


if __name__ == "__main__":
    sys.exit(main())
