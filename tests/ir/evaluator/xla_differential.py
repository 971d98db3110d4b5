#!/usr/bin/env python3
"""Compares the evaluator with XLA:CPU on small modules.

    xla_differential.py EVAL_HLO [FILE.hlo ...]     without files: the modules below

Integers must agree exactly, floats within a few units in the last place of the type (more after sums); a subnormal is taken for
zero, because XLA flushes them.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import ml_dtypes
import numpy as np

from hlo_oracle import Oracle

DTYPES = {
    "pred": np.bool_, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
    "f64": np.float64, "c64": np.complex64, "c128": np.complex128, "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
}
EPS = {"f16": 2**-10, "bf16": 2**-7, "f32": 2**-23, "c64": 2**-23, "f64": 2**-52, "c128": 2**-52, "f8e5m2": 2**-2,
       "f8e4m3fn": 2**-3}

REGIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
addi { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
mul { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] multiply(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
min { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] minimum(a, b) }
second { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
sub { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] subtract(a, b) }
half { a = f32[] parameter(0) b = f32[] parameter(1) s = f32[] add(a, b) h = f32[] constant(0.5)
  ROOT r = f32[] multiply(s, h) }
ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }
lt2 { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
argmax { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE v = f32[] select(g, a, b) k = s32[] select(g, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k) }
"""
UNARY_FLOAT = """abs negate sign ceil floor round-nearest-afz round-nearest-even sqrt rsqrt cbrt exponential
exponential-minus-one log log-plus-one logistic tanh sine cosine tan erf""".split()
UNARY_COMPLEX = "negate sqrt rsqrt exponential log sine cosine tanh sign exponential-minus-one log-plus-one logistic tan".split()
BINARY_REAL = "add subtract multiply divide remainder maximum minimum power".split()
# Units in the last place that XLA's own functions may be away from the exact value, where it is more than eight.
LOOSE = {"cbrt": 80, "tan": 16, "tanh": 16, "erf": 16, "exponential-minus-one": 16, "log-plus-one": 16, "power": 16}


def cases():
    """(name, entry's body, tolerance in units, kind of inputs)."""
    def one(name, result, op, *operands, attrs="", units=8, kind="special"):
        lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(operands)]
        names = ", ".join(f"p{i}" for i in range(len(operands)))
        return name, "\n".join(lines + [f"  ROOT r = {result} {op}({names}){attrs}"]), units, kind

    for dtype in ("f32", "f64", "f16", "bf16"):
        shape = f"{dtype}[500]"
        for op in UNARY_FLOAT:
            loose = 1000 if (op, dtype) == ("log-plus-one", "f64") else LOOSE.get(op, 8)
            yield one(f"{op} {dtype}", shape, op, shape, units=loose)
        for op in BINARY_REAL + ["atan2"]:
            yield one(f"{op} {dtype}", shape, op, shape, shape, units=LOOSE.get(op, 8))
        yield one(f"is-finite {dtype}", "pred[500]", "is-finite", shape)
        yield one(f"clamp {dtype}", shape, "clamp", shape, shape, shape)
        for to in DTYPES:
            if to not in ("c64", "c128"):
                yield one(f"convert {dtype} {to}", f"{to}[500]", "convert", shape)
    for dtype in ("s8", "s32", "s64", "u8", "u16", "u32", "u64"):
        shape = f"{dtype}[500]"
        # Small exponents: XLA looks at the low bits of an exponent only.
        yield one(f"power {dtype}", shape, "power", shape, shape, kind="tame")
        for op in BINARY_REAL[:-1] + "and or xor shift-left shift-right-arithmetic shift-right-logical".split():
            yield one(f"{op} {dtype}", shape, op, shape, shape)
        for op in "not popcnt count-leading-zeros".split() + (["abs", "negate", "sign"] if dtype[0] == "s" else []):
            yield one(f"{op} {dtype}", shape, op, shape)
        for to in ("pred", "s8", "u8", "s32", "f32", "f16", "bf16", "s64"):
            yield one(f"convert {dtype} {to}", f"{to}[500]", "convert", shape)
    for op in "and or xor".split():
        yield one(f"{op} pred", "pred[50]", op, "pred[50]", "pred[50]")
    for op in UNARY_COMPLEX:
        yield one(f"{op} c64", "c64[200]", op, "c64[200]", units=64, kind="tame")
    for op in "add subtract multiply divide power".split():
        yield one(f"{op} c64", "c64[200]", op, "c64[200]", "c64[200]", units=64, kind="tame")
    for dtype, part in (("c64", "f32"), ("c128", "f64")):
        # Bases and exponents of every pair of these parts.
        yield (f"power {dtype} of edges", f"""  parts = {part}[7] constant({{0, -0.0, 1, -2, 0.5, inf, nan}})
  re = {part}[7,7,7,7] broadcast(parts), dimensions={{0}}
  im = {part}[7,7,7,7] broadcast(parts), dimensions={{1}}
  er = {part}[7,7,7,7] broadcast(parts), dimensions={{2}}
  ei = {part}[7,7,7,7] broadcast(parts), dimensions={{3}}
  x = {dtype}[7,7,7,7] complex(re, im)
  y = {dtype}[7,7,7,7] complex(er, ei)
  ROOT r = {dtype}[7,7,7,7] power(x, y)""", 64, "tame")
    yield one("abs c64", "f32[200]", "abs", "c64[200]", kind="tame")
    for dtype in ("f32", "bf16", "s32", "u8"):
        for direction in "EQ NE LT LE GT GE".split():
            yield one(f"compare {direction} {dtype}", "pred[500]", "compare", f"{dtype}[500]", f"{dtype}[500]",
                      attrs=f", direction={direction}")
    for direction in "EQ LT GE".split():
        yield one(f"compare {direction} total order", "pred[500]", "compare", "f32[500]", "f32[500]",
                  attrs=f", direction={direction}, type=TOTALORDER")
    for bits in ("exponent_bits=5, mantissa_bits=10", "exponent_bits=8, mantissa_bits=7", "exponent_bits=4, mantissa_bits=0"):
        yield one(f"reduce-precision {bits}", "f32[500]", "reduce-precision", "f32[500]", attrs=f", {bits}")
    yield one("bitcast-convert", "u8[5,4]", "bitcast-convert", "f32[5]")
    yield one("bitcast-convert wider", "s32[5]", "bitcast-convert", "s8[5,4]")

    yield one("broadcast", "f32[2,3,4]", "broadcast", "f32[2,4]", attrs=", dimensions={0,2}")
    yield one("transpose", "f32[4,2,3]", "transpose", "f32[2,3,4]", attrs=", dimensions={2,0,1}")
    yield one("reverse", "f32[3,4]", "reverse", "f32[3,4]", attrs=", dimensions={0,1}")
    yield one("slice", "f32[2,2]", "slice", "f32[5,6]", attrs=", slice={[1:4:2], [2:6:3]}")
    yield one("pad", "f32[6,8]", "pad", "f32[3,4]", "f32[]", attrs=", padding=1_0_1x-1_2_1")
    yield one("concatenate", "f32[3,6]", "concatenate", "f32[3,2]", "f32[3,4]", attrs=", dimensions={1}")
    yield one("dynamic-slice", "f32[2,3]", "dynamic-slice", "f32[4,5]", "s32[]", "s32[]", attrs=", dynamic_slice_sizes={2,3}")
    yield one("dynamic-update-slice", "f32[4,5]", "dynamic-update-slice", "f32[4,5]", "f32[2,3]", "s32[]", "s32[]")
    yield one("gather rows", "f32[6,4]", "gather", "f32[5,4]", "s32[6]", kind="tame",
              attrs=", offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}")
    yield one("gather windows", "f32[2,3,2,3]", "gather", "f32[5,6]", "s32[2,3,2]", kind="tame",
              attrs=", offset_dims={2,3}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=2, slice_sizes={2,3}")
    yield one("gather batching", "f32[3,2]", "gather", "f32[3,6]", "s32[3,2,1]", kind="tame",
              attrs=", offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
                    "start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}")
    for region in ("add", "second", "max", "mul"):
        yield one(f"scatter {region}", "f32[5,4]", "scatter", "f32[5,4]", "s32[9]", "f32[9,4]", kind="tame",
                  attrs=", update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                        f"index_vector_dim=1, to_apply={region}")
    yield one("scatter windows", "f32[6,7]", "scatter", "f32[6,7]", "s32[4,2]", "f32[4,2,3]", kind="tame",
              attrs=", update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, "
                    "index_vector_dim=1, to_apply=add")

    yield one("dot", "f32[7,5]", "dot", "f32[7,9]", "f32[9,5]", kind="tame", units=64,
              attrs=", lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    yield one("dot batch", "f32[3,4,5]", "dot", "f32[4,3,6]", "f32[5,6,3]", kind="tame", units=64,
              attrs=", lhs_batch_dims={1}, rhs_batch_dims={2}, lhs_contracting_dims={2}, rhs_contracting_dims={1}")
    yield one("dot s8", "s32[4,5]", "dot", "s8[4,6]", "s8[6,5]", attrs=", lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    yield one("dot bf16", "f32[4,5]", "dot", "bf16[4,6]", "bf16[6,5]", kind="tame", units=64,
              attrs=", lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    for name, window, x, k, y, labels, groups in CONVOLUTIONS:
        yield one(f"convolution {name}", f"f32[{y}]", "convolution", f"f32[{x}]", f"f32[{k}]", kind="tame", units=256,
                  attrs=f", window={{{window}}}, dim_labels={labels}{groups}")

    # From the identity: XLA combines any other initial value more than once.
    for region, identity in (("add", "0"), ("mul", "1"), ("max", "-inf"), ("min", "inf")):
        yield (f"reduce {region}", f"""  x = f32[3,70] parameter(0)
  i = f32[] constant({identity})
  ROOT r = f32[3] reduce(x, i), dimensions={{1}}, to_apply={region}""", 512, "tame")
    yield one("reduce s32", "s32[3,2]", "reduce", "s32[3,4,2]", "s32[]", attrs=", dimensions={1}, to_apply=addi")
    yield one("reduce argmax", "(f32[3], s32[3])", "reduce", "f32[3,9]", "s32[3,9]", "f32[]", "s32[]", kind="tame",
              attrs=", dimensions={1}, to_apply=argmax")
    # Padding is left out of a fold, so its reducer and initial value may be any. (Not in a window that spans its dimension:
    # XLA:CPU makes blocks of those, each with an initial value of its own.)
    for region in ("add", "mul", "second", "half", "sub"):
        for initial in (0, 1, 3):
            yield (f"reduce-window {region} from {initial}", f"""  x = f32[5,7] parameter(0)
  i = f32[] constant({initial})
  a = f32[6,7] reduce-window(x, i), window={{size=2x3 pad=1_1x2_0}}, to_apply={region}
  b = f32[8,13] reduce-window(x, i), window={{size=2x3 lhs_dilate=2x2 pad=0_0x1_1}}, to_apply={region}
  ROOT r = (f32[6,7], f32[8,13]) tuple(a, b)""", 64, "tame")
    for window, y in (("size=1x2x3 stride=1x2x1", "2,2,4"), ("size=1x3x3 stride=1x2x2 pad=0_0x1_1x1_0", "2,3,3"),
                      ("size=1x2x2 lhs_dilate=1x2x1 rhs_dilate=1x1x2", "2,8,4"), ("size=1x1x6 pad=0_0x0_0x5_0", "2,5,6")):
        for region in ("add", "max"):
            yield one(f"reduce-window {region} {window}", f"f32[{y}]", "reduce-window", "f32[2,5,6]", "f32[]", kind="tame",
                      units=64, attrs=f", window={{{window}}}, to_apply={region}")
    yield one("select-and-scatter", "f32[2,6,6]", "select-and-scatter", "f32[2,6,6]", "f32[2,3,3]", "f32[]", kind="tame",
              attrs=", window={size=1x2x2 stride=1x2x2}, select=ge, scatter=add")
    yield one("select-and-scatter overlapping", "f32[2,7,6]", "select-and-scatter", "f32[2,7,6]", "f32[2,4,3]", "f32[]",
              kind="tame", attrs=", window={size=1x3x2 stride=1x2x2 pad=0_0x1_1x0_0}, select=ge, scatter=add")
    yield one("sort", "f32[4,9]", "sort", "f32[4,9]", attrs=", dimensions={1}, is_stable=true, to_apply=lt")
    yield one("sort pairs", "(f32[9,4], s32[9,4])", "sort", "f32[9,4]", "s32[9,4]", kind="tame",
              attrs=", dimensions={0}, is_stable=true, to_apply=lt2")
    for kind, x, y, length in (("FFT", "c64[3,12]", "c64[3,12]", "12"), ("IFFT", "c64[4,6]", "c64[4,6]", "4,6"),
                               ("RFFT", "f32[2,10]", "c64[2,6]", "10"), ("IRFFT", "c64[2,6]", "f32[2,10]", "10"),
                               ("RFFT", "f32[4,6]", "c64[4,4]", "4,6")):
        yield one(f"fft {kind} {length}", y, "fft", x, attrs=f", fft_type={kind}, fft_length={{{length}}}", kind="tame", units=4096)
    for attrs in (", transpose_a=NO_TRANSPOSE", ", transpose_a=TRANSPOSE", ", transpose_a=NO_TRANSPOSE, unit_diagonal=true"):
        for lower in ("", ", lower=true"):
            yield (f"triangular-solve{lower}{attrs}", f"""  a = f32[2,3,3] parameter(0)
  b = f32[2,3,2] parameter(1)
  four = f32[] constant(4)
  n = s32[3,3] iota(), iota_dimension=0
  m = s32[3,3] iota(), iota_dimension=1
  eq = pred[3,3] compare(n, m), direction=EQ
  f4 = f32[3,3] broadcast(four), dimensions={{}}
  z = f32[] constant(0)
  z9 = f32[3,3] broadcast(z), dimensions={{}}
  diagonal = f32[3,3] select(eq, f4, z9)
  d = f32[2,3,3] broadcast(diagonal), dimensions={{1,2}}
  s = f32[2,3,3] add(a, d)
  ROOT r = f32[2,3,2] triangular-solve(s, b), left_side=true{lower}{attrs}""", 4096, "tame")
    for algorithm in ("rng_philox", "rng_three_fry", "rng_default"):
        for shape in ("u32[7]", "u32[3,5]", "u32[4,6]", "u64[5]", "u16[6]", "u8[3,3]", "u32[]"):
            yield one(f"{algorithm} {shape}", f"(u64[2], {shape})", "rng-bit-generator", "u64[2]", attrs=f", algorithm={algorithm}")
    yield one("rng_philox u64[3]", "(u64[3], u32[9])", "rng-bit-generator", "u64[3]", attrs=", algorithm=rng_philox")
    for name, lines in DYNAMIC.items():
        # Sizes between 0 and 7 of bounds 8 and 9; what leaves the module has none.
        yield (f"dynamic {name}", f"""  x = f32[8,3] parameter(0)
  y = f32[9] parameter(1)
  n = s32[] parameter(2)
  d = f32[<=8,3] set-dimension-size(x, n), dimensions={{0}}
  v = f32[<=9] set-dimension-size(y, n), dimensions={{0}}
  zero = f32[] constant(0)
  one = f32[] constant(1)
{lines}""", 512, "tame")


# Programs over d (f32[<=8,3]) and v (f32[<=9]), of n rows each.
DYNAMIC = {
    "size": "  ROOT r = s32[] get-dimension-size(d), dimensions={0}",
    "reduce": "  ROOT r = f32[3] reduce(d, zero), dimensions={0}, to_apply=add",
    "reduce of a map": """  e = f32[<=8,3] exponential(d)
  o = f32[8,3] broadcast(one), dimensions={}
  s = f32[<=8,3] add(e, o)
  ROOT r = f32[] reduce(s, zero), dimensions={0,1}, to_apply=add""",
    "reduce to dynamic": """  s = f32[<=8] reduce(d, one), dimensions={1}, to_apply=mul
  ROOT r = f32[] reduce(s, zero), dimensions={0}, to_apply=add""",
    "slice of all": """  s = f32[<=8,1] slice(d), slice={[0:8], [1:2]}
  t = f32[<=8] reshape(s)
  ROOT r = f32[] reduce(t, zero), dimensions={0}, to_apply=add""",
    "concatenate": """  s = f32[<=8,1] slice(d), slice={[0:8], [1:2]}
  t = f32[<=8] reshape(s)
  c = f32[<=26] concatenate(v, y, t), dimensions={0}
  k = s32[] get-dimension-size(c), dimensions={0}
  i = f32[26] iota(), iota_dimension=0
  m = f32[<=26] multiply(c, i)
  q = f32[] reduce(m, zero), dimensions={0}, to_apply=add
  ROOT r = (s32[], f32[]) tuple(k, q)""",
    "pad": """  c = f32[<=14] pad(v, one), padding=2_3
  k = s32[] get-dimension-size(c), dimensions={0}
  i = f32[14] iota(), iota_dimension=0
  m = f32[<=14] multiply(c, i)
  q = f32[] reduce(m, zero), dimensions={0}, to_apply=add
  ROOT r = (s32[], f32[]) tuple(k, q)""",
    "transpose and broadcast": """  t = f32[3,<=8] transpose(d), dimensions={1,0}
  b = f32[2,3,<=8] broadcast(t), dimensions={1,2}
  ROOT r = f32[2] reduce(b, zero), dimensions={1,2}, to_apply=add""",
    "reverse": """  b = f32[<=9] reverse(v), dimensions={0}
  i = f32[9] iota(), iota_dimension=0
  m = f32[<=9] multiply(b, i)
  ROOT r = f32[] reduce(m, zero), dimensions={0}, to_apply=add""",
    "reshape of the first": """  f = f32[<=24] reshape(d)
  i = f32[24] iota(), iota_dimension=0
  m = f32[<=24] multiply(f, i)
  ROOT r = f32[] reduce(m, zero), dimensions={0}, to_apply=add""",
    "reshape of the last": """  t = f32[3,<=8] transpose(d), dimensions={1,0}
  f = f32[<=24] reshape(t)
  i = f32[24] iota(), iota_dimension=0
  m = f32[<=24] multiply(f, i)
  ROOT r = f32[] reduce(m, zero), dimensions={0}, to_apply=add""",
    "dot": """  t = f32[3,<=8] transpose(d), dimensions={1,0}
  ROOT r = f32[3,3] dot(t, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "sort": """  s = f32[<=9] sort(v), dimensions={0}, is_stable=true, to_apply=lt
  i = f32[9] iota(), iota_dimension=0
  m = f32[<=9] multiply(s, i)
  ROOT r = f32[] reduce(m, zero), dimensions={0}, to_apply=add""",
    "reduce-window": """  w = f32[<=8] reduce-window(v, zero), window={size=2}, to_apply=add
  ROOT r = f32[] reduce(w, zero), dimensions={0}, to_apply=max""",
    "gather": """  k = s32[9] iota(), iota_dimension=0
  l = s32[<=9] set-dimension-size(k, n), dimensions={0}
  w = f32[<=9,3] gather(x, l), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}
  ROOT r = f32[3] reduce(w, zero), dimensions={0}, to_apply=add""",
    "scatter": """  k = s32[8] iota(), iota_dimension=0
  l = s32[<=8] set-dimension-size(k, n), dimensions={0}
  ROOT r = f32[8,3] scatter(x, l, d), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add""",
}

CONVOLUTIONS = [
    ("nchw", "size=3x3 pad=1_1x1_1", "2,3,5,6", "4,3,3,3", "2,4,5,6", "bf01_oi01->bf01", ""),
    ("nhwc stride", "size=3x2 stride=2x1", "2,7,6,3", "3,2,3,4", "2,3,5,4", "b01f_01io->b01f", ""),
    ("lhs dilate", "size=3x3 pad=2_2x2_1 lhs_dilate=2x2", "1,3,4,2", "3,3,2,3", "1,7,8,3", "b01f_01io->b01f", ""),
    ("rhs dilate", "size=2x2 rhs_dilate=2x3", "1,5,6,2", "2,2,2,3", "1,3,3,3", "b01f_01io->b01f", ""),
    ("reversal", "size=3x3 rhs_reversal=1x1", "1,5,6,2", "3,3,2,3", "1,3,4,3", "b01f_01io->b01f", ""),
    ("feature groups", "size=3x3", "2,5,6,4", "3,3,2,6", "2,3,4,6", "b01f_01io->b01f", ", feature_group_count=2"),
    ("batch groups", "size=3x3", "4,5,6,2", "3,3,2,6", "2,3,4,6", "b01f_01io->b01f", ", batch_group_count=2"),
    ("weight gradient", "size=4x5 pad=1_1x1_1", "3,2,5,6", "4,2,4,5", "3,4,4,4", "bf01_oi01->bf01", ""),
    # Not with negative padding: XLA:CPU of jaxlib 0.10.2 is wrong there with several features.
    ("one dimension", "size=3 stride=2 pad=1_2", "2,3,9", "4,3,3", "2,4,5", "bf0_oi0->bf0", ""),
]


def draw(shape, dims, kind, generator):
    dtype = np.dtype(DTYPES[shape])
    if shape == "pred":
        return generator.random(dims) < 0.5
    if dtype.kind in "iu":
        if kind == "tame":
            return generator.integers(0, 8, dims).astype(dtype)
        info = np.iinfo(dtype)
        wide = generator.integers(info.min, info.max, dims, dtype=dtype, endpoint=True)
        small = generator.integers(0, 70, dims).astype(dtype)
        special = generator.choice(np.array([0, 1, info.min, info.max, info.max if info.min == 0 else -1], dtype), dims)
        return np.where(generator.random(dims) < 0.4, wide, np.where(generator.random(dims) < 0.6, small, special)).astype(dtype)
    if shape in ("c64", "c128"):
        return (generator.standard_normal(dims) + 1j * generator.standard_normal(dims)).astype(dtype)
    x = np.asarray(generator.standard_normal(dims) * 2)
    if kind == "special":
        scale = np.exp2(generator.integers(-12, 13, dims).astype(np.float64))
        special = generator.choice([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 2.5, -3.0, np.inf, -np.inf, np.nan], dims)
        x = np.where(generator.random(dims) < 0.25, special, x * scale)
    return x.astype(dtype)


def parameters(text):
    """(dtype, dims) of the entry's parameters, by number."""
    entry = text[text.index("ENTRY"):]
    found = re.findall(r"= (\w+)\[([\d,]*)\]\S* parameter\((\d+)\)", entry)
    return [(dtype, tuple(int(d) for d in dims.split(",") if d)) for dtype, dims, _ in sorted(found, key=lambda f: int(f[2]))]


def evaluate(program, text, inputs):
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        (folder / "module.hlo").write_text(text)
        for i, x in enumerate(inputs):
            (folder / f"p{i}.bin").write_bytes(np.ascontiguousarray(x).tobytes())
        done = subprocess.run([program, folder / "module.hlo", folder], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
        outputs = []
        for i, line in enumerate(done.stdout.split()):
            dtype, dims = re.match(r"(\w+)\[([\d,]*)\]", line).groups()
            data = np.frombuffer((folder / f"out{i}.bin").read_bytes(), DTYPES[dtype])
            outputs.append((dtype, data.reshape([int(d) for d in dims.split(",") if d])))
        return outputs


def difference(dtype, ours, theirs, units):
    """None, or how the worst element differs."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, not {theirs.shape}"
    if dtype not in EPS:
        wrong = ours != theirs
    else:
        wide = np.complex128 if dtype[0] == "c" else np.float64
        a, b = ours.astype(wide), theirs.astype(wide)
        tiny = 0 if dtype[:2] == "f8" else float(ml_dtypes.finfo(DTYPES[dtype]).tiny)
        scale = np.maximum(np.abs(b), 1.0 if dtype[0] == "c" or units > 32 else tiny)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(a - b) <= np.maximum(units * EPS[dtype] * scale, tiny)
        wrong = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not np.any(wrong):
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{np.count_nonzero(wrong)} of {wrong.size} elements; first at {at}: {ours[at]}, XLA has {theirs[at]}"


def main():
    program, files = sys.argv[1], sys.argv[2:]
    modules = [(path, pathlib.Path(path).read_text(), 65536, "tame") for path in files]
    if not files:
        modules = [(name, f"HloModule m\n{REGIONS}\nENTRY e {{\n{body}\n}}\n", units, kind) for name, body, units, kind in cases()]
    oracle = Oracle()
    failures = refused = 0
    for name, text, units, kind in modules:
        generator = np.random.default_rng(1)
        try:
            inputs = [draw(dtype, dims, kind, generator) for dtype, dims in parameters(text)]
            theirs = oracle.run(text, inputs)
        except RuntimeError as error:
            print(f"XLA refuses {name}: {error}")
            refused += 1
            continue
        try:
            ours = evaluate(program, text, inputs)
            problems = [difference(dtype, x, y, units) for (dtype, x), y in zip(ours, theirs)]
            if len(ours) != len(theirs):
                problems.append(f"{len(ours)} outputs, XLA has {len(theirs)}")
        except RuntimeError as error:
            problems = [str(error)]
        for problem in filter(None, problems):
            failures += 1
            where = re.search(r"at \((\d+),\)", problem)
            shown = [str(x[int(where[1])]) for x in inputs if where and x.shape and x.ndim == 1 and int(where[1]) < len(x)]
            print(f"{name}: {problem}" + (f" for {', '.join(shown)}" if shown else ""))
    oracle.close()
    print(f"{len(modules)} modules, {refused} refused by XLA, {failures} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
