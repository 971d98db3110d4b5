#!/usr/bin/env python3
"""Runs modules that JAX lowers on lazuli's CPU and on jaxlib, one after the other, and compares.

    benchmarks/hlo_corpus.py LAZULI_RUN [--repeat=N] [NAME...]   (patterns; without them, all)

A line for each module: compile and run times of both (the shortest of N runs), the ratio of the run times (above 1:
lazuli is slower), kernels, calls of libraries, instructions left to the evaluator, bytes of scratch memory.
"""
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

RNG = np.random.default_rng(0)


def f32(*dims):
    return RNG.standard_normal(dims).astype(np.float32)


def ints(high, *dims):
    return RNG.integers(0, high, dims).astype(np.int32)


def key():
    return np.array([1, 2], np.uint32)


def keyed(draw):
    return lambda k: draw(jax.random.wrap_key_data(k))


def conv(**options):
    options = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC"), **options}
    return lambda x, k: lax.conv_general_dilated(x, k, **options)


def gradient(function):
    return jax.grad(lambda *xs: jnp.sum(function(*xs) ** 2), (0, 1))


def pool(x, size=2):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, 2, 2, 1), "VALID")


def attention(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def lstm(w, xs):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None
    zeros = jnp.zeros((xs.shape[1], 128))
    return lax.scan(step, (zeros, zeros), xs)[0]


def layer_norm(x, scale, shift):
    mean = jnp.mean(x, -1, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * scale + shift


def transformer(weights, tokens):
    """Two blocks of a causal language model and its mean loss."""
    x = weights["embedding"][tokens]
    for block in weights["blocks"]:
        y = layer_norm(x, block["scale"], block["shift"])
        q, k, v = (jnp.reshape(y @ block[name], (*y.shape[:2], 4, 32)) for name in ("q", "k", "v"))
        x = x + jnp.reshape(attention(q, k, v), x.shape) @ block["out"]
        y = layer_norm(x, block["scale"], block["shift"])
        x = x + jax.nn.gelu(y @ block["up"]) @ block["down"]
    logits = x @ weights["embedding"].T
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], -1))


def transformer_weights():
    def block():
        shapes = {"q": (128, 128), "k": (128, 128), "v": (128, 128), "out": (128, 128), "up": (128, 512), "down": (512, 128)}
        return {**{k: f32(*v) * 0.05 for k, v in shapes.items()}, "scale": f32(128), "shift": f32(128)}
    return {"embedding": f32(1000, 128) * 0.1, "blocks": [block(), block()]}


def cnn(weights, images):
    x = images
    for kernel in weights["convolutions"]:
        x = pool(jax.nn.relu(conv()(x, kernel)))
    return jnp.mean((jnp.reshape(x, (x.shape[0], -1)) @ weights["dense"]) ** 2)


def cnn_weights():
    return {"convolutions": [f32(3, 3, 3, 16) * 0.1, f32(3, 3, 16, 32) * 0.1], "dense": f32(2048, 10) * 0.05}


def adam_step(loss, weights, m, v, *data):
    def update(w, m, v, g):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return w - 0.001 * m / (jnp.sqrt(v) + 1e-8), m, v
    gradients = jax.grad(loss)(weights, *data)
    return jax.tree.map(update, weights, m, v, gradients)


def adam(loss, weights, *data):
    zeros = jax.tree.map(np.zeros_like, weights)
    return lambda *xs: adam_step(loss, *xs), weights, zeros, zeros, *data


MODULES = {
    "cumsum_1m": lambda: (jnp.cumsum, f32(1 << 20)),
    "cumsum_rows": lambda: (lambda x: jnp.cumsum(x, 1), f32(512, 2048)),
    "cumsum_columns": lambda: (lambda x: jnp.cumsum(x, 0), f32(2048, 512)),
    "cumprod": lambda: (lambda x: jnp.cumprod(x, 1), f32(256, 1024)),
    "cummax": lambda: (lambda x: lax.cummax(x, 1), f32(256, 1024)),
    "cumlogsumexp": lambda: (lambda x: lax.cumlogsumexp(x, 1), f32(64, 512)),
    "sort_1m": lambda: (jnp.sort, f32(1 << 20)),
    "sort_s32_1m": lambda: (jnp.sort, ints(1 << 30, 1 << 20)),
    "sort_rows": lambda: (jnp.sort, f32(1024, 1024)),
    "sort_columns": lambda: (lambda x: jnp.sort(x, 0), f32(10000, 100)),
    "sort_descending": lambda: (lambda x: jnp.sort(x, descending=True), f32(1 << 18)),
    "argsort_1m": lambda: (jnp.argsort, f32(1 << 20)),
    "argsort_bf16": lambda: (lambda x: jnp.argsort(x.astype(jnp.bfloat16)), f32(1024, 512)),
    "sort_two_keys": lambda: (lambda a, b, v: lax.sort((a, b, v), num_keys=2), ints(100, 1 << 18), ints(100, 1 << 18), f32(1 << 18)),
    "top_k": lambda: (lambda x: lax.top_k(x, 50), f32(8, 50000)),
    "unique": lambda: (lambda x: jnp.unique(x, size=1000), ints(1000, 100000)),
    "searchsorted": lambda: (lambda a, v: jnp.searchsorted(a, v), np.sort(f32(100000)), f32(10000)),
    "median": lambda: (lambda x: jnp.median(x, 1), f32(512, 1024)),
    "permutation": lambda: (keyed(lambda k: jax.random.permutation(k, 1 << 18)), key()),
    "uniform_4m": lambda: (keyed(lambda k: jax.random.uniform(k, (1 << 22,))), key()),
    "normal_1m": lambda: (keyed(lambda k: jax.random.normal(k, (1 << 20,))), key()),
    "dropout": lambda: (lambda k, x: jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(k), 0.5, x.shape), x * 2, 0), key(), f32(1 << 20)),
    "gather_rows": lambda: (lambda x, i: x[i], f32(10000, 128), ints(10000, 20000)),
    "gather_elements": lambda: (lambda x, i: x[i], f32(1 << 20), ints(1 << 20, 1 << 20)),
    "take_along": lambda: (lambda x, i: jnp.take_along_axis(x, i, 1), f32(1024, 1024), ints(1024, 1024, 64)),
    "embedding_grad": lambda: (lambda x, i, g: x.at[i].add(g), f32(10000, 64), ints(10000, 8192), f32(8192, 64)),
    "scatter_add": lambda: (lambda x, i, v: x.at[i].add(v), f32(1 << 20), ints(1 << 20, 1 << 20), f32(1 << 20)),
    "scatter_set": lambda: (lambda x, i, v: x.at[i].set(v), f32(1 << 18), ints(1 << 18, 1 << 18), f32(1 << 18)),
    "segment_sum": lambda: (lambda x, i: jax.ops.segment_sum(x, i, 1000), f32(100000, 16), ints(1000, 100000)),
    "histogram": lambda: (lambda i: jnp.bincount(i, length=256), ints(256, 1 << 20)),
    "one_hot": lambda: (lambda i: jax.nn.one_hot(i, 1000), ints(1000, 2048)),
    "roll_2d": lambda: (lambda x: jnp.roll(x, (3, 5), (0, 1)) * 2, f32(1024, 1024)),
    "dynamic_slice_vmap": lambda: (jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (64,))), f32(4096, 256), ints(256, 4096)),
    "dus_loop": lambda: (lambda x: lax.fori_loop(0, 1000, lambda i, s: s.at[i].set(s[i] * 2), x), f32(1000, 256)),
    "small_while": lambda: (lambda x: lax.fori_loop(0, 10000, lambda i, s: jnp.sin(s) + i, x), f32(4)),
    "scalar_while": lambda: (lambda x: lax.while_loop(lambda s: s[0] < 100000, lambda s: (s[0] + 1, s[1] * 0.999 + 1), (0, x)), np.float32(1)),
    "scan_matmul": lambda: (lambda w, x: lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=200)[0], f32(64, 64), f32(64, 64)),
    "lstm": lambda: (lstm, f32(192, 512) * 0.1, f32(100, 16, 64)),
    "scan_stack": lambda: (lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(256), x)[1], f32(2000, 256)),
    "mandelbrot": lambda: (lambda c: lax.fori_loop(0, 50, lambda _, z: jnp.where(jnp.abs(z) < 2, z * z + c, z), c), (f32(256, 256) + 1j * f32(256, 256)).astype(np.complex64)),
    "newton": lambda: (lambda y: lax.fori_loop(0, 20, lambda _, x: 0.5 * (x + y / x), y), np.abs(f32(1 << 18)) + 1),
    "random_bits_1m": lambda: (keyed(lambda k: jax.random.bits(k, (1 << 20,))), key()),
    "randint_1m": lambda: (keyed(lambda k: jax.random.randint(k, (1 << 20,), 0, 1000)), key()),
    "transformer": lambda: (transformer, transformer_weights(), ints(1000, 4, 64)),
    "transformer_grad": lambda: (jax.value_and_grad(transformer), transformer_weights(), ints(1000, 4, 64)),
    "transformer_adam": lambda: adam(transformer, transformer_weights(), ints(1000, 4, 64)),
    "cnn_adam": lambda: adam(cnn, cnn_weights(), f32(32, 32, 32, 3)),
    "lstm_grad": lambda: (gradient(lambda w, xs: lstm(w, xs)[0]), f32(192, 512) * 0.1, f32(100, 16, 64)),
    "layer_norm": lambda: (layer_norm, f32(2048, 512), f32(512), f32(512)),
    "layer_norm_grad": lambda: (jax.grad(lambda *xs: jnp.sum(layer_norm(*xs) ** 2), (0, 1, 2)), f32(2048, 512), f32(512), f32(512)),
    "gelu": lambda: (jax.nn.gelu, f32(1 << 20)),
    "cross_entropy_grad": lambda: (jax.grad(lambda x, t: -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), t[:, None], 1))), f32(512, 1000), ints(1000, 512)),
    "embedding": lambda: (lambda w, i: w[i], f32(10000, 64), ints(10000, 16, 512)),
    "complex_chain": lambda: (lambda z: jnp.exp(1j * z) * jnp.conj(z) / (1 + jnp.abs(z)), (f32(512, 512) + 1j * f32(512, 512)).astype(np.complex64)),
    "transpose_copy": lambda: (lambda x: x.T, f32(2048, 2048)),
    "transpose_heads": lambda: (lambda x: jnp.transpose(x, (0, 2, 1, 3)) * 2, f32(8, 128, 8, 64)),
    "batch_norm": lambda: (lambda x: (x - jnp.mean(x, (0, 1, 2))) * lax.rsqrt(jnp.var(x, (0, 1, 2)) + 1e-5), f32(32, 28, 28, 32)),
    "argmax": lambda: (lambda x: jnp.argmax(x, 1), f32(4096, 1024)),
    "argmax_columns": lambda: (lambda x: jnp.argmax(x, 0), f32(4096, 1024)),
    "var": lambda: (lambda x: jnp.var(x, 1), f32(2048, 1024)),
    "logsumexp": lambda: (lambda x: jax.nn.logsumexp(x, 1), f32(2048, 1024)),
    "softmax": lambda: (jax.nn.softmax, f32(2048, 1024)),
    "sin_4m": lambda: (jnp.sin, f32(1 << 22)),
    "transpose": lambda: (lambda x: x.T + 0, f32(2048, 2048)),
    "pad_reflect": lambda: (lambda x: jnp.pad(x, ((8, 8), (8, 8)), mode="reflect"), f32(1024, 1024)),
    "concatenate": lambda: (lambda x, y: jnp.concatenate([x, y, x * 2], 1), f32(1024, 512), f32(1024, 512)),
    "matmul": lambda: (jnp.matmul, f32(512, 512), f32(512, 512)),
    "matmul_bf16": lambda: (lambda a, b: a.astype(jnp.bfloat16) @ b.astype(jnp.bfloat16), f32(512, 512), f32(512, 512)),
    "matmul_f16": lambda: (lambda a, b: a.astype(jnp.float16) @ b.astype(jnp.float16), f32(512, 512), f32(512, 512)),
    "matmul_s32": lambda: (jnp.matmul, ints(100, 256, 256), ints(100, 256, 256)),
    "matmul_s8": lambda: (lambda a, b: lax.dot(a.astype(jnp.int8), b.astype(jnp.int8), preferred_element_type=jnp.int32), ints(9, 256, 256), ints(9, 256, 256)),
    "matmul_c64": lambda: (jnp.matmul, (f32(256, 256) + 1j).astype(np.complex64), (f32(256, 256) + 1j).astype(np.complex64)),
    "matmul_f8": lambda: (lambda a, b: lax.dot(a.astype(jnp.float8_e4m3fn), b.astype(jnp.float8_e4m3fn), preferred_element_type=jnp.float32), f32(256, 256), f32(256, 256)),
    "matmul_mixed": lambda: (lambda a, b: lax.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=jnp.float32), f32(512, 512), f32(512, 512)),
    "batched_matmul": lambda: (jnp.matmul, f32(64, 64, 64), f32(64, 64, 64)),
    "attention": lambda: (attention, f32(2, 256, 4, 32), f32(2, 256, 4, 32), f32(2, 256, 4, 32)),
    "conv": lambda: (conv(), f32(8, 28, 28, 32), f32(3, 3, 32, 64)),
    "conv_grad": lambda: (gradient(conv()), f32(8, 28, 28, 32), f32(3, 3, 32, 64)),
    "conv_strided_grad": lambda: (gradient(conv(window_strides=(2, 2))), f32(8, 28, 28, 32), f32(3, 3, 32, 64)),
    "conv_depthwise": lambda: (conv(feature_group_count=64), f32(4, 28, 28, 64), f32(3, 3, 1, 64)),
    "conv_depthwise_grad": lambda: (gradient(conv(feature_group_count=64)), f32(4, 28, 28, 64), f32(3, 3, 1, 64)),
    "conv_grouped": lambda: (conv(feature_group_count=4), f32(4, 28, 28, 64), f32(3, 3, 16, 64)),
    "conv_grouped_grad": lambda: (gradient(conv(feature_group_count=4)), f32(4, 28, 28, 64), f32(3, 3, 16, 64)),
    "conv_dilated": lambda: (conv(rhs_dilation=(2, 2)), f32(8, 28, 28, 32), f32(3, 3, 32, 64)),
    "conv_transposed": lambda: (lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"), f32(4, 14, 14, 32), f32(3, 3, 32, 64)),
    "conv_1d": lambda: (lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")), f32(8, 1024, 16), f32(9, 16, 32)),
    "conv_3d": lambda: (lambda x, k: lax.conv_general_dilated(x, k, (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")), f32(1, 16, 16, 16, 8), f32(3, 3, 3, 8, 16)),
    "conv_bf16": lambda: (lambda x, k: conv()(x.astype(jnp.bfloat16), k.astype(jnp.bfloat16)), f32(4, 28, 28, 32), f32(3, 3, 32, 64)),
    "max_pool_grad": lambda: (jax.grad(lambda x: jnp.sum(pool(x) ** 2)), f32(8, 56, 56, 32)),
    "max_pool_overlap_grad": lambda: (jax.grad(lambda x: jnp.sum(pool(x, 3) ** 2)), f32(8, 56, 56, 32)),
    "fft": lambda: (jnp.fft.fft, (f32(64, 4096) + 0j).astype(np.complex64)),
    "fft_odd": lambda: (jnp.fft.fft, (f32(4, 3001) + 0j).astype(np.complex64)),
    "rfft2": lambda: (jnp.fft.rfft2, f32(256, 256)),
    "cholesky": lambda: (lambda a: jnp.linalg.cholesky(a @ a.T + 256 * jnp.eye(256)), f32(256, 256)),
    "solve": lambda: (jnp.linalg.solve, f32(256, 256), f32(256, 16)),
    "svd": lambda: (lambda a: jnp.linalg.svd(a, full_matrices=False)[1], f32(128, 96)),
    "eigh": lambda: (lambda a: jnp.linalg.eigh(a + a.T), f32(128, 128)),
    "qr": lambda: (jnp.linalg.qr, f32(256, 128)),
}


def shortest(run, repeat):
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        jax.block_until_ready(run())
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def measure(name, tool, folder, repeat):
    function, *arguments = MODULES[name]()
    jitted = jax.jit(function, keep_unused=True)
    lowered = jitted.lower(*arguments)
    file = folder / f"{name}.hlo"
    file.write_text(lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True))
    np.savez(folder / f"{name}.in.npz", **{f"p{i}": x for i, x in enumerate(jax.tree.leaves(arguments))})
    start = time.perf_counter()
    compiled = lowered.compile()
    theirs_compile = (time.perf_counter() - start) * 1e3
    on_device = [jax.device_put(x) for x in arguments]
    theirs = shortest(lambda: compiled(*on_device), repeat)
    result = subprocess.run([tool, file, "--device=cpu", f"--inputs={folder}", f"--repeat={repeat}", "--report=json"],
                            capture_output=True, text=True, check=False, timeout=300)
    ours = json.loads(result.stdout)
    if ours["status"] != "ok":
        return f"{name:24} {ours['error'][:120]}"
    return (f"{name:24} {ours['compile_ms']:8.1f} {theirs_compile:8.1f} {ours['run_ms']:9.3f} {theirs:9.3f} "
            f"{ours['run_ms'] / theirs:8.2f} {ours['kernels']:7} {ours['library_calls']:5} {ours['evaluator_thunks']:5} "
            f"{ours['temp_bytes']:11}")


def main():
    options = dict(a[2:].split("=", 1) for a in sys.argv[2:] if a.startswith("--"))
    patterns = [a for a in sys.argv[2:] if not a.startswith("--")]
    print(f"{'module':24} {'compile':>8} {'jaxlib':>8} {'run ms':>9} {'jaxlib':>9} {'ratio':>8} {'kernels':>7} {'calls':>5} "
          f"{'eval':>5} {'temp bytes':>11}")
    with tempfile.TemporaryDirectory() as folder:
        for name in MODULES:
            if patterns and not any(fnmatch.fnmatch(name, p) for p in patterns):
                continue
            try:
                print(measure(name, sys.argv[1], pathlib.Path(folder), int(options.get("repeat", 5))), flush=True)
            except subprocess.TimeoutExpired:
                print(f"{name:24} more than 300 s", flush=True)


if __name__ == "__main__":
    main()
