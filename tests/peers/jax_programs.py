"""JAX programs whose HLO lazuli must run: name -> (function, arguments), over jnp, lax, jax.nn, jax.random, jnp.linalg,
jnp.fft, gradients, vmap, and small networks.

Arguments are numpy arrays; a function may return any pytree of arrays.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

RNG = np.random.default_rng(7)
PROGRAMS = {}


def program(name, function, *arguments):
    assert name not in PROGRAMS, name
    PROGRAMS[name] = (function, arguments)


def f32(*dims):
    return RNG.standard_normal(dims).astype(np.float32)


def positive(*dims):
    return (np.abs(f32(*dims)) + 0.1).astype(np.float32)


def unit(*dims):
    return RNG.uniform(-0.95, 0.95, dims).astype(np.float32)


def ints(low, high, *dims, dtype=np.int32):
    return RNG.integers(low, high, dims).astype(dtype)


def c64(*dims):
    return (f32(*dims) + 1j * f32(*dims)).astype(np.complex64)


def symmetric(n, *batch):
    a = f32(*batch, n, n)
    return a + np.swapaxes(a, -1, -2)


def definite(n, *batch):
    a = f32(*batch, n, n)
    return (a @ np.swapaxes(a, -1, -2) + n * np.eye(n)).astype(np.float32)


def elementwise():
    x = f32(3, 37)
    for name in ("abs negative sign ceil floor rint trunc exp exp2 expm1 tanh sin cos tan sinh cosh arctan arcsinh square "
                 "cbrt isnan isinf isfinite signbit sinc deg2rad real imag conj nan_to_num cumsum cumprod").split():
        program(f"jnp.{name}", getattr(jnp, name), x)
    for name in "log log2 log10 log1p sqrt reciprocal positive".split():
        program(f"jnp.{name}", getattr(jnp, name), positive(50))
    for name in "arcsin arccos arctanh".split():
        program(f"jnp.{name}", getattr(jnp, name), unit(50))
    program("jnp.arccosh", jnp.arccosh, positive(50) + 1)
    for name in ("add subtract multiply divide maximum minimum fmax fmin arctan2 hypot fmod remainder mod copysign nextafter "
                 "logaddexp logaddexp2 float_power heaviside equal not_equal less greater_equal divmod floor_divide").split():
        program(f"jnp.{name}", getattr(jnp, name), f32(40), positive(40))
    program("jnp.power", jnp.power, positive(40), f32(40))
    program("jnp.power_constant", lambda x: (x**2, x**3, x**-1, x**5), f32(40))
    for name in "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm".split():
        program(f"jnp.{name}", getattr(jnp, name), ints(0, 100, 40), ints(0, 8, 40))
    for name in "floor_divide remainder divmod power".split():
        program(f"jnp.{name}_int", getattr(jnp, name), ints(-50, 50, 40), ints(1, 6, 40))
    program("jnp.bitwise_not", jnp.bitwise_not, ints(-9, 9, 40))
    program("jnp.bitwise_count", jnp.bitwise_count, ints(0, 1000, 40))
    for name in "lgamma digamma erf erfc erf_inv".split():
        program(f"lax.{name}", getattr(lax, name), unit(60))
    program("lax.igamma", lax.igamma, positive(20), positive(20))
    program("lax.igammac", lax.igammac, positive(20), positive(20))
    program("lax.bessel_i1e", lax.bessel_i1e, f32(20))
    program("special.betainc", jax.scipy.special.betainc, positive(8), positive(8), np.abs(unit(8)))
    program("special.zeta", jax.scipy.special.zeta, positive(8) + 1.5, positive(8))
    program("special.gammaln", jax.scipy.special.gammaln, positive(40))
    program("special.logsumexp", jax.scipy.special.logsumexp, f32(5, 7))
    program("special.ndtri", jax.scipy.special.ndtri, np.abs(unit(40)))
    program("special.i0", jax.scipy.special.i0, f32(20))
    program("special.entr", jax.scipy.special.entr, positive(20))
    for dtype in (jnp.bfloat16, jnp.float16, jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.int4, jnp.uint4, jnp.int8, jnp.uint8,
                  jnp.int16, jnp.uint16, jnp.uint32, jnp.bool_):
        name = jnp.dtype(dtype).name
        program(f"convert.{name}", lambda x, d=dtype: x.astype(d).astype(jnp.float32), f32(64) * 3)
        program(f"convert_int.{name}", lambda x, d=dtype: x.astype(d).astype(jnp.int32), ints(-7, 7, 64))
    program("bf16.chain", lambda x: (x.astype(jnp.bfloat16) * 3 + 1) / 7, f32(64))
    program("f16.chain", lambda x: jnp.tanh(x.astype(jnp.float16)) * 2, f32(64))
    program("bitcast", lambda x: lax.bitcast_convert_type(x, jnp.int32), f32(9))
    program("bitcast_narrow", lambda x: lax.bitcast_convert_type(x, jnp.uint8), f32(3, 2))
    program("bitcast_wide", lambda x: lax.bitcast_convert_type(x, jnp.uint32), ints(0, 255, 6, 4, dtype=np.uint8))
    program("view", lambda x: x.view(jnp.uint8), f32(5))
    program("reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), f32(30))
    program("clz", lambda x: (lax.clz(x), lax.population_count(x)), ints(0, 10000, 40))
    program("complex", lambda z, w: (z * w, z / w, jnp.abs(z), jnp.angle(z), jnp.exp(z), jnp.log(z), jnp.sqrt(z),
                                     jnp.sin(z), jnp.cos(z), jnp.tanh(z), z**w, z.conj(), 1 / z), c64(20), c64(20))
    program("clip", lambda x: jnp.clip(x, -0.5, 0.5), f32(40))
    program("where", lambda x: jnp.where(x > 0, x, -x), f32(40))
    program("select_n", lambda i, a, b, c: lax.select_n(i, a, b, c), ints(0, 3, 9), f32(9), f32(9), f32(9))
    program("select_conditions", lambda x: jnp.select([x < -1, x < 0, x < 1], [x, x * 2, x * 3], 0.0), f32(40))
    program("nan_values", lambda x: (jnp.maximum(x, 0), jnp.minimum(x, 0), jnp.nanmax(x), jnp.nansum(x), jnp.sort(x)),
            np.array([1, np.nan, -np.inf, np.inf, -0.0, 0.0, 2], np.float32))


def reductions():
    x = f32(6, 5, 4)
    for name in "sum prod max min mean std var any all argmax argmin ptp median nanmean nanstd nanmax count_nonzero".split():
        program(f"jnp.{name}.all", getattr(jnp, name), x)
        program(f"jnp.{name}.axis1", functools.partial(getattr(jnp, name), axis=1), x)
    program("jnp.sum.big", lambda x: jnp.sum(x, (0, 2)), f32(33, 65, 17))
    program("jnp.average", lambda x, w: jnp.average(x, weights=w), f32(9), positive(9))
    program("jnp.quantile", lambda x: jnp.quantile(x, jnp.array([0.1, 0.5, 0.9]), axis=0), f32(11, 3))
    program("jnp.percentile", lambda x: jnp.percentile(x, 30), f32(11))
    program("jnp.histogram", lambda x: jnp.histogram(x, bins=8, range=(-3.0, 3.0)), f32(100))
    program("jnp.bincount", lambda x: jnp.bincount(x, length=10), ints(0, 10, 50))
    program("jnp.digitize", lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])), f32(30))
    program("jnp.corrcoef", jnp.corrcoef, f32(4, 20))
    program("jnp.cov", jnp.cov, f32(4, 20))
    for name in "cumsum cumprod cummax cummin cumlogsumexp".split():
        for reverse in (False, True):
            program(f"lax.{name}.{reverse}", lambda x, n=name, r=reverse: getattr(lax, n)(x, axis=1, reverse=r), f32(4, 50))
    program("cumsum_int", lambda x: jnp.cumsum(x, 0), ints(-5, 5, 70, 3))
    program("associative_scan", lambda x: lax.associative_scan(jnp.add, x), f32(37))
    program("reduce_and", lambda x: (jnp.all(x > 0, 0), jnp.any(x > 0, 1)), x)
    program("argmax_int", lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 1)), ints(0, 5, 8, 9))
    program("reduce_custom", lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + 2 * b, (0,)), f32(3, 4))
    program("reduce_pair", lambda x, y: lax.reduce((x, y), (np.float32(0), np.float32(1)),
                                                   lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,)), f32(3, 5), f32(3, 5))
    program("reduce_xor", lambda x: lax.reduce(x, np.int32(0), lax.bitwise_xor, (0,)), ints(0, 99, 7, 3))
    for name, args in (("reduce_window_sum", (np.float32(0), lax.add)), ("reduce_window_max", (-np.inf, lax.max))):
        program(name, lambda x, a=args: lax.reduce_window(x, np.float32(a[0]), a[1], (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
                f32(2, 9, 9, 3))
    program("reduce_window_dilated", lambda x: lax.reduce_window(
        x, np.float32(0), lax.add, (3, 2), (2, 1), ((1, 2), (0, 1)), base_dilation=(2, 1), window_dilation=(1, 2)), f32(6, 7))
    program("avg_pool", lambda x: lax.reduce_window(x, np.float32(0), lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4,
            f32(2, 8, 8, 3))


def movement():
    x = f32(4, 6)
    program("reshape", lambda x: (x.reshape(3, 8), x.T, x.ravel(), x[None], x.reshape(2, 2, 3, 2).transpose(2, 0, 3, 1)), x)
    program("concat", lambda a, b: (jnp.concatenate([a, b], 1), jnp.stack([a, b], 1), jnp.tile(a, (2, 3)),
                                    jnp.repeat(a, 3, 0), jnp.append(a, b)), x, x)
    program("split", lambda x: (jnp.split(x, 3, 1), jnp.array_split(x, 3, 0), jnp.hsplit(x, 2)), x)
    for mode in "constant edge reflect symmetric wrap linear_ramp maximum mean".split():
        program(f"pad.{mode}", lambda x, m=mode: jnp.pad(x, ((1, 2), (2, 1)), mode=m), x)
    program("pad.negative", lambda x: lax.pad(x, np.float32(7), ((-1, 2, 0), (1, -2, 1))), x)
    program("pad.interior", lambda x: lax.pad(x, np.float32(7), ((1, 0, 2), (0, 1, 1))), x)
    program("slices", lambda x: (x[1:3], x[::2, ::-1], x[:, -2:], x[..., 1], x[-1], x[::-1]), x)
    program("roll", lambda x: (jnp.roll(x, 2), jnp.roll(x, -1, 1), jnp.rot90(x), jnp.flip(x)), x)
    program("indexing", lambda x, i, j: (x[i], x[i, j], x[:, j], x[i, 1:3], x[jnp.newaxis, i]), x, ints(0, 4, 5), ints(0, 6, 5))
    program("take", lambda x, i: (jnp.take(x, i, 1), jnp.take(x, i, 0, mode="clip"), jnp.take(x, i, 0, mode="wrap"),
                                  jnp.take(x, i, 0, mode="fill")), x, ints(-2, 8, 7))
    program("take_along", lambda x, i: jnp.take_along_axis(x, i, 1), x, ints(0, 6, 4, 2))
    program("put_along", lambda x, i, v: jnp.put_along_axis(x, i, v, 1, inplace=False), x, ints(0, 6, 4, 2), f32(4, 2))
    for name in "set add multiply min max divide".split():
        program(f"at.{name}", lambda x, i, v, n=name: getattr(x.at[i], n)(v, mode="drop") if n != "divide" else x.at[i].divide(v),
                f32(9), ints(0, 9, 5), positive(5))
    program("at.rows", lambda x, i, v: (x.at[i].add(v), x.at[:, i].set(v.T[:4]), x.at[1:3, 2:4].multiply(2)), f32(4, 4), ints(0, 4, 4), f32(4, 4))
    program("at.get", lambda x, i: x.at[i].get(mode="fill", fill_value=-1), f32(9), ints(-3, 14, 8))
    program("at.grad", jax.grad(lambda x, i: jnp.sum(x[i] ** 2)), f32(9), ints(0, 9, 20))
    program("at.apply", lambda x, i: x.at[i].apply(jnp.exp), f32(9), np.array([1, 4], np.int32))
    program("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 5), f32(20, 3), ints(0, 5, 20))
    program("segment_max", lambda x, i: jax.ops.segment_max(x, i, 5), f32(20, 3), ints(0, 5, 20))
    program("dynamic_slice", lambda x, i: (lax.dynamic_slice(x, (i, i), (2, 3)), lax.dynamic_update_slice(x, x[:2, :2], (i, 1))),
            x, np.int32(3))
    program("dynamic_index", lambda x, i: (lax.dynamic_index_in_dim(x, i, 1), x[i], x.at[i].set(0)), x, np.int32(2))
    program("vmap_dynamic_slice", jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (3,))), f32(5, 8), ints(0, 9, 5))
    program("vmap_dus", jax.vmap(lambda x, u, i: lax.dynamic_update_slice(x, u, (i,))), f32(5, 8), f32(5, 3), ints(0, 9, 5))
    program("gather_batching", jax.vmap(lambda x, i: x[i]), f32(5, 8), ints(0, 8, 5, 3))
    program("scatter_batching", jax.vmap(lambda x, i, v: x.at[i].add(v)), f32(5, 8), ints(0, 8, 5, 3), f32(5, 3))
    program("iota", lambda: (jnp.arange(7), jnp.arange(1.0, 2.0, 0.25), jnp.linspace(0, 1, 9), jnp.eye(3, 4, k=1), jnp.tri(4)))
    program("mesh", lambda: (jnp.meshgrid(jnp.arange(3), jnp.arange(4)), jnp.indices((2, 3)), jnp.vander(jnp.arange(4.0))))
    program("triu", lambda x: (jnp.triu(x), jnp.tril(x, -1), jnp.diag(x[:, 0]), jnp.diagonal(x), jnp.trace(x)), x)
    program("broadcast", lambda x: (jnp.broadcast_to(x, (3, 4, 6)), x[:, None] * x[None]), x)
    program("empty", lambda x: (x[:0], jnp.sum(x[:0], 0), jnp.concatenate([x[:0], x]), jnp.zeros((0, 3)) @ jnp.ones((3, 2))), x)


def sorting():
    x = f32(6, 17)
    program("sort", lambda x: (jnp.sort(x), jnp.sort(x, 0), jnp.sort(x, descending=True)), x)
    program("argsort", lambda x: (jnp.argsort(x), jnp.argsort(x, 0, stable=True), jnp.argsort(-x)), x)
    program("sort.special", jnp.sort, np.array([np.nan, 1, -0.0, 0.0, -np.inf, np.nan, np.inf, -1], np.float32))
    for dtype in (np.int32, np.int8, np.uint8, np.uint32, np.int16):
        program(f"sort.{np.dtype(dtype).name}", jnp.sort, ints(0, 100, 50, dtype=dtype))
    program("sort.bf16", lambda x: jnp.sort(x.astype(jnp.bfloat16)), f32(50))
    program("sort.bool", jnp.sort, ints(0, 2, 20).astype(bool))
    program("sort.big", lambda x: (jnp.sort(x), jnp.argsort(x)), f32(5000))
    program("sort.pairs", lambda k, v: lax.sort((k, v), num_keys=1), ints(0, 5, 40), f32(40))
    program("sort.two_keys", lambda a, b, v: lax.sort((a, b, v), num_keys=2), ints(0, 5, 40), ints(0, 5, 40), f32(40))
    program("sort.complex", jnp.sort, c64(20))
    program("lexsort", lambda a, b: jnp.lexsort((a, b)), ints(0, 5, 40), ints(0, 5, 40))
    program("top_k", lambda x: lax.top_k(x, 4), x)
    program("approx_max_k", lambda x: lax.approx_max_k(x, 3), x)
    program("unique", lambda x: jnp.unique(x, size=8, return_inverse=True, return_counts=True), ints(0, 8, 40))
    program("nonzero", lambda x: jnp.nonzero(x > 0, size=20, fill_value=-1), f32(30))
    program("searchsorted", lambda a, v: (jnp.searchsorted(jnp.sort(a), v), jnp.searchsorted(jnp.sort(a), v, method="sort")), f32(30), f32(10))
    program("median", jnp.median, f32(31))
    program("sort.grad", jax.grad(lambda x: jnp.sum(jnp.sort(x) * jnp.arange(12.0))), f32(12))
    program("interp", jnp.interp, unit(9), np.linspace(-1, 1, 5).astype(np.float32), f32(5))
    program("argpartition", lambda x: jnp.partition(x, 4), f32(20))
    program("setops", lambda a, b: (jnp.isin(a, b), jnp.union1d(a, b, size=20), jnp.intersect1d(a, b, size=20)), ints(0, 20, 12), ints(0, 20, 12))


def contractions():
    program("matmul", jnp.matmul, f32(7, 9), f32(9, 5))
    program("matmul.batch", jnp.matmul, f32(3, 1, 7, 9), f32(4, 9, 5))
    program("matmul.vec", lambda a, v: (a @ v, v @ a.T, v @ v), f32(7, 9), f32(9))
    program("einsum", lambda a, b: (jnp.einsum("ijk,kl->ijl", a, b), jnp.einsum("ijk,ijk->i", a, a), jnp.einsum("ijk,lk->lij", a, b.T),
                                    jnp.einsum("iik->k", a[:3, :3])), f32(3, 4, 5), f32(5, 6))
    program("tensordot", lambda a, b: (jnp.tensordot(a, b, 2), jnp.outer(a[0, 0], b[0, 0]), jnp.kron(a[0], b[0]), jnp.inner(a, a)),
            f32(3, 4, 5), f32(4, 5, 5))
    for dtype in (jnp.bfloat16, jnp.float16, jnp.int8, jnp.int32, jnp.uint8):
        name = jnp.dtype(dtype).name
        program(f"dot.{name}", lambda a, b, d=dtype: jnp.dot(a.astype(d), b.astype(d)), ints(-4, 4, 6, 8).astype(np.float32),
                ints(-4, 4, 8, 5).astype(np.float32))
    program("dot.bf16_f32", lambda a, b: lax.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=jnp.float32),
            f32(6, 8), f32(8, 5))
    program("dot.s8_s32", lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32), ints(-9, 9, 6, 8, dtype=np.int8),
            ints(-9, 9, 8, 5, dtype=np.int8))
    program("dot.complex", jnp.matmul, c64(4, 5), c64(5, 3))
    program("dot.f8", lambda a, b: lax.dot(a.astype(jnp.float8_e4m3fn), b.astype(jnp.float8_e4m3fn), preferred_element_type=jnp.float32),
            f32(6, 8), f32(8, 5))
    dn = ("NHWC", "HWIO", "NHWC")
    def conv(name, x, k, **kw):
        kw.setdefault("window_strides", (1, 1)); kw.setdefault("padding", "SAME"); kw.setdefault("dimension_numbers", dn)
        fn = lambda x, k: lax.conv_general_dilated(x, k, **kw)
        program(f"conv.{name}", fn, x, k)
        program(f"conv.{name}.grad", jax.grad(lambda x, k: jnp.sum(jnp.sin(fn(x, k))), (0, 1)), x, k)
    for size in (1, 2, 3, 5):
        for stride in (1, 2):
            for padding in ("SAME", "VALID"):
                conv(f"{size}.{stride}.{padding}", f32(2, 9, 8, 3), f32(size, size, 3, 4), window_strides=(stride,) * 2, padding=padding)
    conv("lhs_dilated", f32(1, 5, 5, 2), f32(3, 3, 2, 3), lhs_dilation=(2, 2), padding=((2, 2), (1, 3)))
    conv("rhs_dilated", f32(1, 9, 9, 2), f32(3, 3, 2, 3), rhs_dilation=(2, 2))
    conv("negative_padding", f32(1, 9, 9, 2), f32(3, 3, 2, 3), padding=((-1, 2), (3, -2)))
    conv("depthwise", f32(2, 7, 7, 6), f32(3, 3, 1, 6), feature_group_count=6)
    conv("depthwise2", f32(2, 7, 7, 3), f32(3, 3, 1, 6), feature_group_count=3)
    conv("grouped", f32(2, 7, 7, 6), f32(3, 3, 3, 4), feature_group_count=2)
    conv("nchw", f32(2, 3, 8, 8), f32(4, 3, 3, 3), dimension_numbers=("NCHW", "OIHW", "NCHW"))
    conv("batch_group", f32(4, 6, 6, 3), f32(3, 3, 3, 4), batch_group_count=2)
    program("conv.1d", lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")), f32(2, 20, 3), f32(5, 3, 4))
    program("conv.3d", lambda x, k: lax.conv_general_dilated(x, k, (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")),
            f32(1, 5, 6, 7, 2), f32(3, 3, 3, 2, 3))
    program("conv.transpose", lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"), f32(1, 5, 5, 3), f32(3, 3, 3, 4))
    program("conv.bf16", lambda x, k: lax.conv_general_dilated(x.astype(jnp.bfloat16), k.astype(jnp.bfloat16), (1, 1), "SAME", dimension_numbers=dn),
            f32(1, 6, 6, 2), f32(3, 3, 2, 3))
    program("conv.int", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dn),
            ints(-5, 5, 1, 6, 6, 2), ints(-5, 5, 3, 3, 2, 3))
    program("convolve", lambda a, b: (jnp.convolve(a, b), jnp.correlate(a, b), jnp.convolve(a, b, "same")), f32(20), f32(5))


def linear_algebra():
    a, s, d = f32(5, 5), symmetric(5), definite(5)
    program("cholesky", jnp.linalg.cholesky, d)
    program("cholesky.batch", jnp.linalg.cholesky, definite(4, 3))
    program("lu", lambda a: jax.scipy.linalg.lu(a), a)
    program("lu_factor", lambda a: jax.scipy.linalg.lu_factor(a), f32(4, 6))
    program("solve", jnp.linalg.solve, a, f32(5, 2))
    program("solve.batch", jnp.linalg.solve, f32(3, 4, 4), f32(3, 4, 2))
    program("inv", jnp.linalg.inv, a)
    program("det", lambda a: (jnp.linalg.det(a), jnp.linalg.slogdet(a)), a)
    program("qr", lambda a: (lambda q, r: (jnp.abs(q), jnp.abs(r), q @ r))(*jnp.linalg.qr(a)), f32(6, 4))
    program("qr.complete", lambda a: (lambda q, r: (jnp.abs(r), q @ r))(*jnp.linalg.qr(a, "complete")), f32(6, 4))
    program("svd", lambda a: (lambda u, s, v: (s, (u * s) @ v))(*jnp.linalg.svd(a, full_matrices=False)), f32(6, 4))
    program("svd.values", lambda a: jnp.linalg.svd(a, compute_uv=False), f32(4, 6))
    program("eigh", lambda a: (lambda w, v: (w, (v * w) @ v.T))(*jnp.linalg.eigh(a)), s)
    program("eigvalsh", jnp.linalg.eigvalsh, symmetric(4, 3))
    program("lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], f32(7, 3), f32(7))
    program("pinv", jnp.linalg.pinv, f32(5, 3))
    program("norms", lambda a: (jnp.linalg.norm(a), jnp.linalg.norm(a, 1), jnp.linalg.norm(a, "nuc"), jnp.linalg.norm(a, 2)), a)
    program("matrix_power", lambda a: jnp.linalg.matrix_power(a, 5), a * 0.3)
    program("matrix_rank", jnp.linalg.matrix_rank, f32(5, 3))
    program("expm", jax.scipy.linalg.expm, a * 0.3)
    program("triangular", lambda a, b: (jax.scipy.linalg.solve_triangular(a, b, lower=True), jax.scipy.linalg.solve_triangular(a, b, trans=1)), d, f32(5, 2))
    program("cho_solve", lambda a, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b), d, f32(5, 2))
    program("triangular.variants", lambda a, b: [lax.linalg.triangular_solve(a, b, left_side=True, lower=lo, transpose_a=t, unit_diagonal=u)
                                                 for lo in (True, False) for t in (True, False) for u in (True, False)], d, f32(5, 3))
    program("triangular.right", lambda a, b: lax.linalg.triangular_solve(a, b, left_side=False, lower=True), definite(4, 2), f32(2, 3, 4))
    program("cholesky.grad", jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(a))), d)
    program("solve.grad", jax.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b))), a, f32(5))
    program("eigh.grad", jax.grad(lambda a: jnp.sum(jnp.linalg.eigvalsh(a) ** 2)), s)
    program("qr.grad", jax.grad(lambda a: jnp.sum(jnp.linalg.qr(a)[1] ** 2)), f32(5, 3))
    program("svd.grad", jax.grad(lambda a: jnp.sum(jnp.linalg.svd(a, compute_uv=False))), f32(5, 3))
    program("complex.cholesky", lambda a: jnp.linalg.cholesky(a @ a.conj().T + 5 * jnp.eye(4)), c64(4, 4))
    program("complex.solve", jnp.linalg.solve, c64(4, 4), c64(4, 2))
    program("complex.eigh", lambda a: jnp.linalg.eigvalsh(a + a.conj().T), c64(4, 4))
    program("complex.qr", lambda a: (lambda q, r: q @ r)(*jnp.linalg.qr(a)), c64(5, 3))
    program("complex.svd", lambda a: jnp.linalg.svd(a, compute_uv=False), c64(5, 3))
    program("eig", lambda a: (lambda w, v: (a.astype(w.dtype) @ v - v * w, jnp.sort(jnp.abs(w))))(*jnp.linalg.eig(a)), a)
    program("eigvals.complex", lambda a: jnp.sort(jnp.abs(jnp.linalg.eigvals(a))), c64(4, 4))
    program("roots", lambda p: jnp.sort(jnp.abs(jnp.roots(p, strip_zeros=False))), positive(5))
    program("schur", lambda a: (lambda t, z: z @ t @ z.T)(*jax.scipy.linalg.schur(a)), a)
    program("hessenberg", lambda a: (lambda h, q: q @ h @ q.T)(*jax.scipy.linalg.hessenberg(a, calc_q=True)), a)
    program("tridiagonal", lambda a: lax.linalg.tridiagonal(a)[1], s)
    program("tridiagonal_solve", lax.linalg.tridiagonal_solve, f32(6), positive(6) + 4, f32(6), f32(6, 2))
    program("qr.pivoted", lambda a: (lambda q, r, p: (jnp.abs(r), p))(*jax.scipy.linalg.qr(a, pivoting=True)), f32(5, 4))
    program("sqrtm", jax.scipy.linalg.sqrtm, d)
    program("cross", jnp.cross, f32(4, 3), f32(4, 3))
    program("multi_dot", lambda a, b, c: jnp.linalg.multi_dot([a, b, c]), f32(3, 4), f32(4, 5), f32(5, 2))
    for name in "fft ifft rfft".split():
        for n in (1, 8, 12, 15, 17, 64):
            program(f"fft.{name}.{n}", getattr(jnp.fft, name), f32(3, n))
    program("fft.irfft", lambda x: (jnp.fft.irfft(x), jnp.fft.irfft(x, 15)), c64(3, 9))
    program("fft.fft2", lambda x: (jnp.fft.fft2(x), jnp.fft.ifft2(x), jnp.fft.fftn(x)), c64(2, 6, 8))
    program("fft.rfft2", lambda x: (jnp.fft.rfft2(x), jnp.fft.rfftn(x)), f32(2, 6, 8))
    program("fft.irfft2", jnp.fft.irfft2, c64(2, 6, 5))
    program("fft.hfft", jnp.fft.hfft, c64(9))
    program("fft.shift", lambda x: (jnp.fft.fftshift(x), jnp.fft.fftfreq(9)), f32(9))
    program("fft.grad", jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2)), f32(16))


def random_numbers():
    key = np.array([3, 14], np.uint32)
    keyed = lambda f, impl="threefry2x32": lambda k: f(jax.random.wrap_key_data(k, impl=impl))
    draws = {
        "uniform": lambda k: jax.random.uniform(k, (7, 5)), "normal": lambda k: jax.random.normal(k, (7, 5)),
        "bits": lambda k: jax.random.bits(k, (9,)), "bits8": lambda k: jax.random.bits(k, (9,), jnp.uint8),
        "randint": lambda k: jax.random.randint(k, (20,), -5, 50), "permutation": lambda k: jax.random.permutation(k, 20),
        "shuffle_rows": lambda k: jax.random.permutation(k, jnp.arange(12).reshape(6, 2)),
        "choice": lambda k: jax.random.choice(k, 10, (5,), replace=False), "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (30,)),
        "categorical": lambda k: jax.random.categorical(k, jnp.arange(5.0), shape=(8,)), "gumbel": lambda k: jax.random.gumbel(k, (9,)),
        "exponential": lambda k: jax.random.exponential(k, (9,)), "laplace": lambda k: jax.random.laplace(k, (9,)),
        "cauchy": lambda k: jax.random.cauchy(k, (9,)), "logistic": lambda k: jax.random.logistic(k, (9,)),
        "truncated_normal": lambda k: jax.random.truncated_normal(k, -1, 1, (9,)), "gamma": lambda k: jax.random.gamma(k, 2.0, (6,)),
        "beta": lambda k: jax.random.beta(k, 2.0, 3.0, (4,)), "dirichlet": lambda k: jax.random.dirichlet(k, jnp.ones(3), (2,)),
        "poisson": lambda k: jax.random.poisson(k, 3.0, (6,)), "rademacher": lambda k: jax.random.rademacher(k, (9,)),
        "orthogonal": lambda k: jnp.abs(jax.random.orthogonal(k, 4)), "ball": lambda k: jax.random.ball(k, 3, shape=(4,)),
        "multivariate_normal": lambda k: jax.random.multivariate_normal(k, jnp.zeros(3), jnp.eye(3), (4,)),
        "split": lambda k: jax.random.key_data(jax.random.split(k, 3)), "fold_in": lambda k: jax.random.key_data(jax.random.fold_in(k, 7)),
        "binomial": lambda k: jax.random.binomial(k, 10, 0.4, (5,)), "t": lambda k: jax.random.t(k, 4.0, (5,)),
        "big": lambda k: jax.random.uniform(k, (3000,)), "bf16": lambda k: jax.random.normal(k, (9,), jnp.bfloat16),
    }
    for name, draw in draws.items():
        program(f"random.{name}", keyed(draw), key)
    rbg = np.array([3, 14, 15, 92], np.uint32)
    for name in "uniform normal bits bits8 split fold_in big".split():
        program(f"random.rbg.{name}", keyed(draws[name], "rbg"), rbg)
        program(f"random.unsafe_rbg.{name}", keyed(draws[name], "unsafe_rbg"), rbg)
    for algorithm in (lax.RandomAlgorithm.RNG_THREE_FRY, lax.RandomAlgorithm.RNG_PHILOX):
        words = 2 if algorithm == lax.RandomAlgorithm.RNG_THREE_FRY else 4
        for dtype in (jnp.uint8, jnp.uint16, jnp.uint32, jnp.uint64):
            program(f"rng_bit_generator.{algorithm.name}.{jnp.dtype(dtype).name}",
                    lambda k, a=algorithm, d=dtype: lax.rng_bit_generator(k, (13,), d, a), rbg[:4])


def networks():
    x = f32(4, 33)
    for name in ("relu relu6 sigmoid softplus silu log_sigmoid leaky_relu hard_sigmoid hard_swish hard_tanh elu celu selu gelu glu "
                 "soft_sign log_softmax softmax logsumexp standardize mish squareplus sparse_plus").split():
        arguments = f32(4, 32) if name == "glu" else x
        program(f"nn.{name}", getattr(jax.nn, name), arguments)
        program(f"nn.{name}.grad", jax.grad(lambda x, n=name: jnp.sum(jnp.sin(getattr(jax.nn, n)(x)))), arguments)
    program("nn.one_hot", lambda i: jax.nn.one_hot(i, 7), ints(0, 7, 9))
    program("nn.attention", lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), f32(2, 5, 3, 8), f32(2, 5, 3, 8), f32(2, 5, 3, 8))
    program("max_pool.grad", jax.grad(lambda x: jnp.sum(jnp.sin(lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")))), f32(2, 8, 8, 3))
    program("max_pool.overlap.grad", jax.grad(lambda x: jnp.sum(jnp.sin(lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")))), f32(2, 9, 9, 3))
    program("argmax.grad", jax.grad(lambda x: jnp.max(x) + jnp.sum(jnp.min(x, 0))), f32(5, 6))

    def transformer(p, x):
        def norm(x, g): return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g
        h = p["embed"][x]
        for layer in p["layers"]:
            q, k, v = jnp.split(norm(h, layer["g1"]) @ layer["qkv"], 3, -1)
            heads = lambda t: t.reshape(*t.shape[:2], 2, -1).transpose(0, 2, 1, 3)
            scores = heads(q) @ heads(k).swapaxes(-1, -2) / 2.83
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
            mixed = (jax.nn.softmax(scores) @ heads(v)).transpose(0, 2, 1, 3).reshape(h.shape)
            h = h + mixed @ layer["out"]
            h = h + jax.nn.gelu(norm(h, layer["g2"]) @ layer["up"]) @ layer["down"]
        logits = h @ p["embed"].T
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), x[:, 1:, None], -1))
    layer = lambda: {"g1": positive(16), "g2": positive(16), "qkv": f32(16, 48) * 0.2, "out": f32(16, 16) * 0.2, "up": f32(16, 64) * 0.2, "down": f32(64, 16) * 0.2}
    params = {"embed": f32(31, 16) * 0.3, "layers": [layer(), layer()]}
    tokens = ints(0, 31, 2, 9)
    program("transformer.loss", transformer, params, tokens)
    program("transformer.grad", jax.value_and_grad(transformer), params, tokens)

    def adam(p, m, v, x):
        g = jax.grad(transformer)(p, x)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        return jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-3), p, m, v)
    zeros = jax.tree.map(np.zeros_like, params)
    program("transformer.adam", adam, params, zeros, zeros, tokens)

    def cnn(p, x, y):
        h = lax.conv_general_dilated(x, p["k1"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        h = jax.nn.relu((h - h.mean((0, 1, 2))) * lax.rsqrt(h.var((0, 1, 2)) + 1e-5) * p["g"] + p["b"])
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        h = jax.nn.relu(lax.conv_general_dilated(h, p["k2"], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        logits = h.reshape(len(x), -1) @ p["w"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(x)), y])
    cnn_params = {"k1": f32(3, 3, 1, 4) * 0.3, "g": positive(4), "b": f32(4), "k2": f32(3, 3, 4, 8) * 0.2, "w": f32(32, 10) * 0.2}
    program("cnn.grad", jax.value_and_grad(cnn), cnn_params, f32(4, 12, 12, 1), ints(0, 10, 4))

    def lstm(p, xs):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ p["w"] + p["b"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zeros = jnp.zeros((xs.shape[1], 8))
        return jnp.mean(lax.scan(step, (zeros, zeros), xs)[1] ** 2)
    lstm_params = {"w": f32(13, 32) * 0.3, "b": f32(32)}
    program("lstm.grad", jax.value_and_grad(lstm), lstm_params, f32(11, 3, 5))


def control():
    program("while", lambda x: lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 1.1), (0, x)), f32(4))
    program("fori", lambda x: lax.fori_loop(0, 7, lambda i, s: s + i * jnp.sin(s), x), f32(4))
    program("fori.dynamic", lambda x, n: lax.fori_loop(0, n, lambda i, s: s.at[i % 4].add(1), x), f32(4), np.int32(9))
    program("scan", lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(3), x), f32(9, 3))
    program("scan.reverse", lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(3), x, reverse=True), f32(9, 3))
    program("scan.grad", jax.grad(lambda x: jnp.sum(lax.scan(lambda c, y: (jnp.tanh(c + y), c), jnp.zeros(3), x)[1])), f32(9, 3))
    program("scan.unrolled", lambda x: lax.scan(lambda c, y: (c * 0.5 + y, None), jnp.zeros(3), x, unroll=3)[0], f32(10, 3))
    program("scan.dot", lambda x, w: lax.scan(lambda c, y: (jnp.tanh(c @ w + y), c), jnp.zeros((2, 5)), x), f32(9, 2, 5), f32(5, 5))
    program("cond", lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: x - 1, x), np.bool_(True), f32(4))
    program("switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * 2], x), np.int32(5), f32(4))
    program("cond.vmap", jax.vmap(lambda p, x: lax.cond(p > 0, jnp.sin, jnp.cos, x)), f32(6), f32(6))
    program("while.vmap", jax.vmap(lambda x: lax.while_loop(lambda s: s < 10, lambda s: s * 2 + 1, x)), positive(6))
    program("map", lambda x: lax.map(lambda r: jnp.sum(jnp.sort(r) * r), x), f32(5, 4))
    program("remat", jax.grad(jax.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(x))))), f32(8))
    program("custom_jvp", jax.grad(lambda x: jnp.sum(jax.nn.relu(x) ** 2)), f32(8))
    program("jacobian", lambda x: (jax.jacfwd(jnp.sin)(x), jax.jacrev(jnp.tanh)(x), jax.hessian(lambda y: jnp.sum(y**3))(x)), f32(4))
    program("nested_jit", lambda x: jax.jit(jnp.linalg.norm)(jax.jit(jnp.sin)(x)), f32(8))
    program("ode", lambda y: jax.experimental.ode.odeint(lambda y, t: -y, y, jnp.linspace(0.0, 1.0, 4)), f32(3)) if hasattr(jax, "experimental") and hasattr(jax.experimental, "ode") else None
    program("newton", lambda x: lax.fori_loop(0, 10, lambda _, y: y - (y * y - x) / (2 * y), x), positive(5))
    program("mandelbrot", lambda c: lax.fori_loop(0, 20, lambda _, s: (jnp.where(jnp.abs(s[0]) < 2, s[0] ** 2 + c, s[0]), s[1] + (jnp.abs(s[0]) < 2)),
                                                  (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1], c64(6) * 0.5)
    program("game_of_life", lambda b: lax.fori_loop(0, 5, lambda _, b: (lambda n: (n == 3) | (b & (n == 2)))(
        sum(jnp.roll(b.astype(jnp.int32), (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)), b), ints(0, 2, 9, 9).astype(bool))
    program("sharding", lambda x: lax.with_sharding_constraint(x, jax.sharding.SingleDeviceSharding(jax.devices()[0])) * 2, f32(4))
    program("barrier", lambda x: lax.optimization_barrier((x, x + 1)), f32(4))
    program("psum", lambda x: jax.vmap(lambda y: lax.psum(y, "i"), axis_name="i")(x), f32(4))
    program("image.resize", lambda x: (jax.image.resize(x, (8, 8), "bilinear"), jax.image.resize(x, (3, 3), "nearest"), jax.image.resize(x, (7, 9), "cubic")), f32(5, 5))
    program("scipy.stats", lambda x: (jax.scipy.stats.norm.logpdf(x), jax.scipy.stats.norm.cdf(x), jax.scipy.stats.gamma.logpdf(jnp.abs(x), 2.0)), f32(9))
    program("polyval", lambda p, x: (jnp.polyval(p, x), jnp.polyder(p), jnp.polyint(p)), f32(4), f32(6))
    program("donate", lambda x: x + 1, f32(4))
    program("shard_map", lambda x: jax.shard_map(lambda y: lax.psum(y * 2, "i") + lax.axis_index("i"), mesh=jax.make_mesh((1,), ("i",)),
                                                 in_specs=jax.sharding.PartitionSpec(None), out_specs=jax.sharding.PartitionSpec(None), check_vma=False)(x), f32(4))
    program("collectives", lambda x: jax.shard_map(
        lambda y: (lax.all_gather(y, "i"), lax.ppermute(y, "i", [(0, 0)]), lax.all_to_all(y, "i", 0, 0, tiled=True), lax.psum_scatter(y, "i", tiled=True), lax.pmax(y, "i")),
        mesh=jax.make_mesh((1,), ("i",)), in_specs=jax.sharding.PartitionSpec(None), out_specs=jax.sharding.PartitionSpec(None), check_vma=False)(x), f32(4))


for family in (elementwise, reductions, movement, sorting, contractions, linear_algebra, random_numbers, networks, control):
    family()
