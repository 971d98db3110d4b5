"""Small functions that jax_transforms_test.py transforms, each written once for jax and lazuli.

A function is an expression of the arguments below. lib is jax.numpy or lazuli, lax is jax.lax or lazuli.control, T is the transforms of
jax or lazuli. OPS has what the two spell differently: a signature, jax's expression and lazuli's.
"""

# name: (shape, kind): real, complex, or integers below 3, or bools.
ARGUMENTS = {
    "x": ((3,), "real"), "y": ((3,), "real"), "w": ((3, 3), "real"), "t": ((2, 3), "real"), "s": ((), "real"), "r": ((8,), "real"),
    "a": ((2, 4, 4), "real"), "h": ((3, 2, 2, 2), "real"), "z": ((3,), "complex"), "v": ((3, 3), "complex"), "i": ((3,), "int"),
    "k": ((), "int"), "b": ((3,), "bool"),
}  # fmt: skip

OPS = """
sigmoid(p) | jax.nn.sigmoid(p) | lz.sigmoid(p)
softplus(p) | jax.nn.softplus(p) | F.softplus(p)
relu(p) | jax.nn.relu(p) | F.relu(p)
relu6(p) | jax.nn.relu6(p) | F.relu6(p)
elu(p) | jax.nn.elu(p) | F.elu(p)
celu(p, e) | jax.nn.celu(p, e) | F.celu(p, e)
selu(p) | jax.nn.selu(p) | F.selu(p)
gelu(p) | jax.nn.gelu(p, False) | F.gelu(p)
gelu_tanh(p) | jax.nn.gelu(p, True) | F.gelu(p, "tanh")
silu(p) | jax.nn.silu(p) | F.silu(p)
mish(p) | jax.nn.mish(p) | F.mish(p)
leaky_relu(p) | jax.nn.leaky_relu(p) | F.leaky_relu(p)
hardtanh(p) | jax.nn.hard_tanh(p) | F.hardtanh(p)
hard_sigmoid(p) | jax.nn.hard_sigmoid(p) | F.hardsigmoid(p)
hard_silu(p) | jax.nn.hard_silu(p) | F.hardswish(p)
log_sigmoid(p) | jax.nn.log_sigmoid(p) | F.logsigmoid(p)
soft_sign(p) | jax.nn.soft_sign(p) | F.softsign(p)
glu(p, d) | jax.nn.glu(p, d) | F.glu(p, d)
softmax(p, d) | jax.nn.softmax(p, d) | lz.softmax(p, d)
log_softmax(p, d) | jax.nn.log_softmax(p, d) | lz.log_softmax(p, d)
logsumexp(p, d) | jax.nn.logsumexp(p, d) | lz.logsumexp(p, d)
standardize(p) | jax.nn.standardize(p, -1, epsilon=1e-5) | F.layer_norm(p, p.shape[-1:])
one_hot(p, n) | jax.nn.one_hot(p, n) | F.one_hot(p, n).double()
erf(p) | jax.lax.erf(p) | lz.erf(p)
erfc(p) | jax.lax.erfc(p) | lz.erfc(p)
erfinv(p) | jax.lax.erf_inv(p) | lz.erfinv(p)
lgamma(p) | jax.lax.lgamma(p) | lz.lgamma(p)
digamma(p) | jax.lax.digamma(p) | lz.digamma(p)
polygamma(n, p) | jsp.polygamma(n, p) | lz.polygamma(n, p)
i0e(p) | jsp.i0e(p) | lz.special.i0e(p)
i1(p) | jsp.i1(p) | lz.special.i1(p)
i1e(p) | jsp.i1e(p) | lz.special.i1e(p)
ndtr(p) | jsp.ndtr(p) | lz.special.ndtr(p)
log_ndtr(p) | jsp.log_ndtr(p) | lz.special.log_ndtr(p)
ndtri(p) | jsp.ndtri(p) | lz.special.ndtri(p)
logit(p) | jsp.logit(p) | lz.logit(p)
entr(p) | jsp.entr(p) | lz.special.entr(p)
xlogy(p, q) | jsp.xlogy(p, q) | lz.xlogy(p, q)
xlog1py(p, q) | jsp.xlog1py(p, q) | lz.special.xlog1py(p, q)
zeta(p, q) | jsp.zeta(p, q) | lz.special.zeta(p, q)
multigammaln(p, n) | jsp.multigammaln(p, n) | lz.special.multigammaln(p, n)
rsqrt(p) | jax.lax.rsqrt(p) | lz.rsqrt(p)
frac(p) | p - jnp.trunc(p) | lz.frac(p)
lerp(p, q, e) | p + e * (q - p) | lz.lerp(p, q, e)
addcmul(p, q, e) | p + q * e | lz.addcmul(p, q, e)
addcdiv(p, q, e) | p + q / e | lz.addcdiv(p, q, e)
cast32(p) | p.astype(jnp.float32) | p.float()
real_of(p) | p.astype(jnp.float64) | p.double()
whole(p) | p.astype(jnp.int64) | p.long()
complex(p, q) | jax.lax.complex(p, q) | lz.complex(p, q)
polar(p, q) | p * jnp.exp(1j * q) | lz.polar(p, q)
pairs(p) | jnp.stack([p.real, p.imag], -1) | lz.view_as_real(p)
of_pairs(p) | jax.lax.complex(p[..., 0], p[..., 1]) | lz.view_as_complex(p)
vdot(p, q) | jnp.vdot(p, q) | lz.vdot(p, q)
var(p, d) | jnp.var(p, d, ddof=1) | lz.var(p, d)
std(p, d) | jnp.std(p, d, ddof=1) | lz.std(p, d)
top(p, d) | jnp.max(p, d) | lz.max(p, d)[0]
low(p, d) | jnp.min(p, d) | lz.min(p, d)[0]
median(p) | jnp.sort(p)[..., (p.shape[-1] - 1) // 2] | lz.median(p, -1)[0]
quantile(p, q) | jnp.quantile(p, q) | lz.quantile(p, q)
kthvalue(p, n) | jnp.sort(p)[..., n - 1] | lz.kthvalue(p, n)[0]
sort(p, d) | jnp.sort(p, d) | lz.sort(p, d)[0]
largest(p, n) | jax.lax.top_k(p, n)[0] | lz.topk(p, n)[0]
largest_at(p, n) | jax.lax.top_k(p, n)[1] | lz.topk(p, n)[1]
cummax(p, d) | jax.lax.cummax(p, d) | lz.cummax(p, d)[0]
cummin(p, d) | jax.lax.cummin(p, d) | lz.cummin(p, d)[0]
logcumsumexp(p, d) | jax.lax.cumlogsumexp(p, d) | lz.logcumsumexp(p, d)
count(p) | jnp.count_nonzero(p).astype(jnp.float64) | lz.count_nonzero(p).double()
norm(p, n, d) | jnp.linalg.vector_norm(p, ord=n, axis=d) | lz.linalg.vector_norm(p, n, d)
take(p, q, d) | jnp.take(p, q, d) | lz.index_select(p, d, q)
along(p, q, d) | jnp.take_along_axis(p, q, d) | lz.take_along_dim(p, q, d)
put_add(p, q, e) | p.at[q].add(e) | p.index_put((q,), e, True)
put_pair(p, q, l, e) | p.at[q, l].add(e) | p.index_put((q, l), e, True)
put_column(p, q, e) | p.at[:, q].set(e) | lz.index_copy(p, 1, q, e)
add_column(p, q, e) | p.at[:, q].add(e) | lz.index_add(p, 1, q, e)
put_top(p, q, e) | p.at[q].max(e) | lz.scatter_reduce(p, 0, q, e, "amax")
put_product(p, q, e) | p.at[q].multiply(e, unique_indices=True) | p.scatter_reduce(0, q, e, "prod")
fill(p, q, e) | jnp.where(q, e, p) | lz.masked_fill(p, q, e)
slice_at(p, q, n) | jax.lax.dynamic_slice(p, (q,), (n,)) | lz.narrow(p, 0, q, n)
update_at(p, q, e) | p.at[q].set(e) | lz.index_put(p, (q,), e)
slice_set(p, e) | p.at[1:].set(e) | lz.slice_scatter(p, e, 0, 1)
select_set(p, e) | p.at[..., 1].set(e) | lz.select_scatter(p, e, -1, 1)
diagonal_set(p, e) | p.at[jnp.arange(3), jnp.arange(3)].set(e) | lz.diagonal_scatter(p, e)
written(p, e) | p.at[0].set(e).at[1:].multiply(2.0) | written_in_place(p, e)
diag_embed(p) | jax.vmap(jnp.diag)(p) | lz.diag_embed(p)
bucket(p, q) | jnp.searchsorted(p, q) | lz.searchsorted(p, q)
pad(p, n, e) | jnp.pad(p, n, constant_values=e) | F.pad(p, [l for q in reversed(n) for l in q], value=e)
pad_reflect(p, n) | jnp.pad(p, ((0, 0), n), "reflect") | F.pad(p, n, "reflect")
pad_circular(p, n) | jnp.pad(p, ((0, 0), n), "wrap") | F.pad(p, n, "circular")
pad_edge(p, n) | jnp.pad(p, ((0, 0), n), "edge") | F.pad(p, n, "replicate")
repeat(p, n, d) | jnp.repeat(p, n, d) | lz.repeat_interleave(p, n, d)
turned(p) | jnp.rot90(p) | lz.rot90(p, 1, (0, 1))
windows(p, n) | jnp.stack([p[j:j + n] for j in range(p.shape[0] - n + 1)]) | p.unfold(0, n, 1)
block_diag(p, q) | jsl.block_diag(p, q) | lz.block_diag(p, q)
vander(p) | jnp.vander(p, increasing=True) | lz.linalg.vander(p)
split_sum(p) | jnp.split(p, 2)[0] * jnp.split(p, 2)[1] | lz.chunk(p, 2)[0] * lz.chunk(p, 2)[1]
conv(p, q) | jax.lax.conv(p[None], q, (1, 1), "VALID")[0] | F.conv2d(p[None], q)[0]
conv_same(p, q) | jax.lax.conv_general_dilated(p[None], q, (2, 1), ((1, 1), (2, 0)))[0] | F.conv2d(F.pad(p[None], (2, 0, 1, 1)), q, stride=(2, 1))[0]
conv_dilated(p, q) | jax.lax.conv_general_dilated(p[None], q, (1, 1), "VALID", rhs_dilation=(2, 3))[0] | F.conv2d(p[None], q, dilation=(2, 3))[0]
conv_transposed(p, q) | jax.lax.conv_general_dilated(p[None], jnp.flip(q, (2, 3)).swapaxes(0, 1), (1, 1), ((1, 1), (1, 1)), lhs_dilation=(2, 2))[0] | F.conv_transpose2d(p[None], q, stride=2)[0]
conv1(p, q) | jnp.convolve(p, jnp.flip(q), "valid") | F.conv1d(p[None, None], q[None, None])[0, 0]
depthwise(p, q) | jax.lax.conv_general_dilated(p[None], q[:2, :1], (1, 1), "VALID", feature_group_count=2)[0] | F.conv2d(p[None], q[:2, :1], groups=2)[0]
max_pool(p) | jax.lax.reduce_window(p, -jnp.inf, jax.lax.max, (1, 2, 2), (1, 2, 2), "VALID") | F.max_pool2d(p, 2)
max_pool_over(p) | jax.lax.reduce_window(p, -jnp.inf, jax.lax.max, (1, 3, 3), (1, 1, 1), "VALID") | F.max_pool2d(p, 3, 1)
mean_pool(p) | jax.lax.reduce_window(p, 0.0, jax.lax.add, (1, 2, 2), (1, 2, 2), "VALID") / 4 | F.avg_pool2d(p, 2)
bilinear(p, q, e) | jnp.einsum("i,oij,j->o", p, e, q) | F.bilinear(p[None], q[None], e)[0]
cdist(p, q) | jnp.sqrt(((p[:, None] - q[None]) ** 2).sum(-1)) | lz.cdist(p, q)
cov(p) | jnp.cov(p) | lz.cov(p)
corrcoef(p) | jnp.corrcoef(p) | lz.corrcoef(p)
trapezoid(p, q) | jnp.trapezoid(p, q) | lz.trapezoid(p, q)
attention(p, q, e) | jax.nn.softmax(p @ q.T / jnp.sqrt(3.0), -1) @ e | F.scaled_dot_product_attention(p[None], q[None], e[None])[0]
cross_entropy(p, q) | -jnp.take_along_axis(jax.nn.log_softmax(p, -1), q[:, None], 1).mean() | F.cross_entropy(p, q)
bce(p, q) | -(q * jax.nn.log_sigmoid(p) + (1 - q) * jax.nn.log_sigmoid(-p)).mean() | F.binary_cross_entropy_with_logits(p, q)
huber(p, q) | jnp.where(jnp.abs(p - q) < 1, 0.5 * (p - q) ** 2, jnp.abs(p - q) - 0.5).mean() | F.huber_loss(p, q)
embedding(p, q) | q[p] | F.embedding(p, q)
cosine(p, q) | (p * q).sum() / jnp.sqrt((p * p).sum() * (q * q).sum()) | F.cosine_similarity(p, q, 0)
solve_lower(p, q) | jsl.solve_triangular(p, q, lower=True) | lz.linalg.solve_triangular(p, q, upper=False)
solve_upper(p, q) | jsl.solve_triangular(p, q, trans=1) | lz.linalg.solve_triangular(p.mT, q, upper=False)
cho_solve(p, q) | jsl.cho_solve((p, True), q) | lz.cholesky_solve(q, p)
lu(p) | jsl.lu(p) | lz.linalg.lu(p)
lu_solve(p, q) | jsl.lu_solve(jsl.lu_factor(p), q) | lz.linalg.lu_solve(*lz.linalg.lu_factor(p), q[:, None])[:, 0]
expm(p) | expm_by_series(p) | lz.linalg.matrix_exp(p)
svdvals(p) | jnp.linalg.svd(p, compute_uv=False) | lz.linalg.svdvals(p)
svd(p) | jnp.linalg.svd(p, full_matrices=False) | lz.linalg.svd(p, full_matrices=False)
nuclear(p) | jnp.linalg.svd(p, compute_uv=False).sum() | lz.linalg.matrix_norm(p, "nuc")
eigvals(p) | jnp.linalg.eigvals(p) | lz.linalg.eigvals(p)
lstsq(p, q) | jnp.linalg.solve(p.T @ p, p.T @ q) | lz.linalg.lstsq(p, q[:, None])[0][:, 0]
hermitian(p) | p @ p.conj().T + 4 * jnp.eye(3, dtype=p.dtype) | p @ p.mH + 4 * lz.eye(3, dtype=p.dtype)
larger_spd(p) | p @ p.T + 3 * jnp.eye(3, dtype=p.dtype) | p @ p.mT + 3 * lz.eye(3, dtype=p.dtype)
eye4(p) | jnp.eye(4, dtype=p.dtype) | lz.eye(4, dtype=p.dtype)
shifted(p, e) | p + e * jnp.eye(3, dtype=p.dtype) | p + e * lz.eye(3, dtype=p.dtype)
arange(p) | jnp.arange(p) | lz.arange(p)
steps(p, q, n) | jnp.linspace(p, q, n) | lz.linspace(p, q, n)
constant(p) | jax.lax.stop_gradient(p) | p.detach()
remat(f) | jax.checkpoint(f) | T.remat(f)
select(e, p, q) | jax.lax.select(e, p, q) | lz.where(e, p, q)
gcd_free(p, q) | jnp.floor_divide(p, q) * 1.0 | lz.floor_divide(p, q) * 1.0
"""

ELEMENTWISE = """
lib.sin(x) * lib.cos(y)
lib.tan(x * 0.5) + y
lib.arcsin(lib.tanh(x) * 0.9) * y
lib.arccos(lib.tanh(x) * 0.9)
lib.arctan(x * y)
lib.sinh(x) - lib.cosh(y)
lib.tanh(x * y)
lib.arcsinh(x)
lib.arccosh(x * x + 1.5)
lib.arctanh(lib.tanh(x) * 0.8)
lib.exp(x) * y
lib.exp2(x - y)
lib.expm1(x * y)
lib.log(x * x + 1) * y
lib.log2(x * x + 0.5)
lib.log10(x * x + y * y + 0.1)
lib.log1p(x * x * y * y)
lib.sqrt(x * x + 0.3) * y
rsqrt(x * x + 0.3)
lib.abs(x) * y
lib.sign(x) * y * y
lib.reciprocal(x * x + 1)
lib.square(x) * lib.negative(y)
lib.floor(x * 3) * y + lib.ceil(y * 2) * x
lib.round(x * 2) * y - lib.trunc(y * 3) * x
frac(x * 2) * y
sigmoid(x) * y
softplus(x * 2) * y
relu(x * 3) * lib.sin(y)
relu6(x * 5) * y
elu(x) * elu(y)
celu(x, 0.7) * y
selu(x) + selu(y) * x
gelu(x) * y
gelu_tanh(x) * y
silu(x * y)
mish(x) - mish(y)
leaky_relu(x) * leaky_relu(y)
hardtanh(x * 2) * y
hard_sigmoid(x * 4) * y
hard_silu(x * 4)
log_sigmoid(x * 3) * y
soft_sign(x) * y
erf(x) * erfc(y)
erfinv(lib.tanh(x) * 0.7)
lgamma(x * x + 0.4) * y
digamma(x * x + 0.6)
polygamma(1, x * x + 0.7) * y
lib.i0(x) * y
i0e(x * 2)
i1(x) * i1e(y)
ndtr(x) * log_ndtr(y)
ndtri(sigmoid(x))
logit(sigmoid(x) * 0.8 + 0.1)
entr(x * x + 0.1)
xlogy(x, y * y + 0.2)
xlog1py(x, y * y)
zeta(x * x + 1.5, y * y + 1)
multigammaln(x * x + 2, 2)
lib.sinc(x) * y
lib.nan_to_num(x / y)
lib.deg2rad(x * 90) * lib.rad2deg(y)
x / (y * y + 0.5)
x**3 - y**2 * x
(x * x + 0.5) ** y
(x * x + 0.2) ** -1.5
2.0**x * y
lib.float_power(x * x + 1, y)
lib.arctan2(x, y * y + 0.5)
lib.hypot(x, y + 2)
lib.logaddexp(x, y * 2)
lib.logaddexp2(x * 2, y)
lib.copysign(x, y) * x
lib.fmod(x * 3, 0.7) * y
lib.remainder(x * 3, y * y + 0.4)
lib.maximum(x, y) * lib.minimum(x, s)
lib.fmax(x * y, s) - lib.fmin(x, y * s)
lib.clip(x * 2, -0.5, 0.8) * y
lib.where(x > y, x * y, lib.sin(x))
lib.where(b, x * s, y * y)
lib.where(x > 0, lib.log(lib.where(x > 0, x, 1.0)), y)
lib.heaviside(x, y) * y
lerp(x, y, sigmoid(s))
addcmul(x, y, s) * addcdiv(x, s, y * y + 1)
x * s + y / (s * s + 1)
lib.exp(-x * x / 2) * s
real_of(cast32(x)) * y
cast32(x * y)
lib.sin(lib.sin(lib.sin(x * y) + x) * 2)
(x - y) * (x + y) * x * y
gcd_free(x, 0.4) * y + x
lib.ldexp(x, i) * y
select(b, x * y, lib.exp(y))
(x > y) * x + (y >= 0) * y * x
abs(x) ** 1.5 * y
-x + +y * x - 3
lib.cos(x)[..., None] * lib.sin(y)
"""

INDEXING = """
x[1:] * y[:-1]
x[::2] * y[0]
w[0] * w[:, 1] * x
w[1:, :2] * s
w[..., 0] * t[0]
w[None] * x[:, None, None]
x[i] * y
w[i] * x
w[:, i] * s
w[i, i] * x
w[i][:, i] @ x
w[i[:, None], i[None]] * s
w[k] * x
x[k] * y
w[k, i] * y
w[i, k]
t[:, k] * s
take(w, i, 0) * take(w, i, 1)
along(w, i[None], 0) * x
along(w, lib.stack([i, i, i], 1), 1)
along(t, i[None, :2], 1) * s
embedding(i, w) @ x
put_add(x, i, y)
put_add(w, i, t[0]) * s
put_add(x * x, i, lib.sin(y)) * x
put_pair(w, i, i, x)
put_pair(w * w, i, k + 0 * i, y)
put_column(w, lib.argsort(x), w * w) * s
add_column(w, i, w * w)
update_at(x, k, s)
update_at(w, k, x * s)
put_top(x, i, y)
put_product(x, lib.argsort(y), y + 2)
fill(x * y, b, s)
fill(w, x > 0, 2.0) @ y
slice_set(x * x, y[1:] * s)
select_set(w, x * y)
diagonal_set(w * w, x * y)
written(w, x * y)
lib.where(w > 0, w, x) * y
lib.tril(w) @ lib.triu(w, 1) @ x
lib.trace(w @ w) * s
lib.diag(x) @ w + lib.diag(w)
lib.diagonal(w, 1) * s
diag_embed(t) @ w
lib.flip(x, (0,)) * y
lib.flip(w, (0, 1)) * w
lib.roll(x, 1, 0) * y
lib.roll(w, (1, 2), (0, 1)) * w
turned(w) * w
lib.tile(x, (2, 2)) * s
repeat(t, 2, 1)[:, 1:4] * x
lib.concatenate([x * y, w[0], t[1] * s], 0)
lib.stack([x, y * x, w[2]], 1) * w
lib.hstack([x, y]) * s
lib.vstack([x * y, w]) * x
lib.moveaxis(a, 0, 2) * s
lib.swapaxes(a, 0, 1)[:2] * a[:, :2]
lib.reshape(a, (4, 8)) @ r
lib.reshape(w, (-1,))[1:4] * x
w.T * w
lib.broadcast_to(x, (2, 3)) * t
lib.squeeze(x[None] * t[:1], 0) * y
pad(x * y, ((1, 2),), 0.5)
pad(w, ((0, 1), (2, 0)), 0.0) * s
pad_reflect(t * t, (1, 2)) * s
pad_circular(t, (2, 1)) * s
pad_edge(t * s, (1, 1))
windows(r, 3) @ x
block_diag(w, t) * s
vander(x) @ y
split_sum(r) * s
lib.outer(x, y)[i] * s
sort(x * y, 0) * x
sort(w * w, 1) @ x
sort(t, -1)[:, ::2]
largest(r * r, 3) * x
r[largest_at(r, 3)] * x
w[lib.argsort(x * y)] * x
x[lib.argmax(y, 0)] * y
w[lib.argmin(w[:, 0], 0)] * x
median(r) * x
kthvalue(r * r, 2) * s
quantile(r, 0.3) * x
lib.diff(r * r) * s
lib.diff(w, 2, 1)[:, 0] * x
lib.cumsum(x[i] * y, 0)
w[b.sum() - b.sum()] * x
x * lib.ravel(y)
(w * (lib.arange(3)[:, None] <= lib.arange(3))) @ x
x[bucket(lib.cumsum(y * y, 0), s * s) - 1] * y
one_hot(i, 4) * s
one_hot(k, 3) * x
a[:, i[0]] * a[:, k]
a[k % 2, i] * s
a[:, i, 1] * a[1, 2:, 1:4].sum() * s
slice_set(w, t * s)
"""

PRODUCTS = """
x @ y * s
w @ x * y
x @ w * y
w @ w @ x
t @ w * x
w @ t.T * s
lib.dot(x, y) * x
lib.inner(w, t) * s
lib.outer(x, y) @ w
lib.tensordot(w, t.T, 1) * s
lib.einsum("ijk,jkl->il", a, lib.moveaxis(a, 0, 2)) * s
lib.einsum("ij,jk->ki", w, w) * x
lib.einsum("ij,ij->", w, w) * x
lib.einsum("ii->i", w) * x
lib.einsum("ij->ji", w) * s
lib.einsum("ij,j,i->i", w, x, y)
lib.einsum("ij,jk,kl->il", t, w, w) * s
lib.einsum("i,j,k->ikj", x, y, x) * s
lib.einsum("bij,bjk->bik", a, a) * s
lib.einsum("bij,bij->b", a, a) * s
lib.einsum("bij,cj->bic", a, lib.reshape(r, (2, 4)))
lib.einsum("...ij,j->...i", a, a[0, 0])
lib.kron(x, y) * s
lib.kron(w, t)[:3, :3] * w
lib.matmul(a, a) * s
lib.matmul(a, a[0]) * s
lib.matmul(a[:, 0], a) * s
lib.linalg.multi_dot([t, w, w, x])
lib.linalg.matrix_power(w, 3) @ x
bilinear(x, y, lib.stack([w, w * w], 0))
lib.linalg.cross(x, y) * s
lib.linalg.cross(w, t[0][None] * w) * s
conv(a, h) * s
conv_same(a, h)
conv_dilated(a, h) * s
conv_transposed(a, lib.reshape(h, (2, 3, 2, 2)))
conv1(r, x) * s
depthwise(a, h) * s
relu(conv(a, h)).sum((1, 2)) * x
max_pool(a * a) * s
max_pool_over(a) * a[:, :2, :2]
mean_pool(a * a) * s
cdist(t, w) * s
cov(w) @ x
corrcoef(w * s)
lib.vdot(x, y) * w
attention(t, w, w * s)
attention(w, w, w)
"""

REDUCTIONS = """
lib.sum(w * w, 0) * x
lib.sum(a, (0, 2))[:3] * x
lib.mean(w * x, 1) * y
lib.mean(a * a) * s
lib.prod(x * y, 0) * x
lib.prod(w, 1) * x
lib.prod(x - x[0], 0) * y
lib.prod(x * (x - x[1]) * y, 0)
var(w * x, 0) * y
var(a, (0, 2)) * s
std(x * y, 0) * x
std(w, 1) @ x
lib.amax(w * w, 1) * x
lib.amin(a, (1, 2)) * s
top(w, 0) * low(w, 1)
top(a, 0) * s
logsumexp(w * x, 1) * y
logsumexp(a, (0, 1)) * s
norm(x * y, 2, 0) * x
norm(w, 1, 1) @ x
norm(w, 3, 0) * x
norm(x + y, float("inf"), 0) * x
lib.linalg.norm(w) * x
lib.linalg.norm(w * w, 1) * x
nuclear(w) * x
softmax(w * x, 1) @ y
softmax(a, 0) * s
log_softmax(w, 0) * x
lib.cumsum(x * y, 0) * x
lib.cumsum(w, 1) @ x
lib.cumprod(x * y + 1, 0) * x
lib.cumprod(w, 0) * s
cummax(w * w, 1) * x
cummin(r, 0) * s
logcumsumexp(x * y, 0) * x
lib.nansum(x * y, 0) * x
lib.nanmean(w * w) * x
lib.any(x > 0) * x + lib.all(y > -9) * y
count(x > 0) * y
trapezoid(x * x, lib.cumsum(y * y, 0)) * s
cross_entropy(w * x, i) * y
bce(x * y, sigmoid(y))
huber(x * 2, y) * s
cosine(x, y) * x
standardize(w * w) @ x
standardize(x) * y
glu(lib.concatenate([x, y * y, r[:2]], 0), 0) * s
(x - lib.mean(x, 0)) / lib.sqrt(var(x, 0) + 0.1) * y
lib.sum(x * x * y, 0) / lib.sum(x * x, 0)
lib.amax(x, 0) - lib.amin(y, 0) * x
median(x * y) * x
lib.sum(lib.sin(w), 0) * lib.sum(lib.cos(w), 1)
"""

DECOMPOSITIONS = """
lib.linalg.inv(shifted(w, 3)) @ x
lib.linalg.solve(shifted(w, 3), x) * y
lib.linalg.solve(shifted(w, 3), w * w)
lib.linalg.det(w) * x
lib.linalg.slogdet(shifted(w, 3))[1] * x
lib.linalg.cholesky(larger_spd(w)) @ x
lib.linalg.cholesky(larger_spd(w * s))
solve_lower(lib.tril(shifted(w, 3)), t.T) * s
solve_upper(lib.triu(shifted(w, 3)), w)
cho_solve(lib.linalg.cholesky(larger_spd(w)), t.T) * s
lib.linalg.qr(shifted(w, 3))[1] * lib.linalg.qr(shifted(w, 3))[1]
lib.linalg.qr(t.T)[0] @ lib.linalg.qr(t.T)[1] * s
lib.linalg.qr(t.T)[0] @ lib.linalg.qr(t.T)[0].T @ x
lib.linalg.eigvalsh(w + w.T) * x
lib.linalg.eigh(w + w.T)[1] ** 2 @ x
lib.linalg.eigh(larger_spd(w))[0] * y
(lambda g: g[1] @ (lib.exp(g[0])[:, None] * g[1].T))(lib.linalg.eigh(w + w.T))
svdvals(w) * x
svdvals(t) * s
(lambda g: g[0] @ (lib.sqrt(g[1])[:, None] * g[2]))(svd(w)) @ x
svd(t)[0] ** 2 * s
lib.linalg.pinv(t) @ t @ x
lib.linalg.pinv(t.T) * s
lib.linalg.matrix_power(shifted(w, 3), -2) @ x
expm(w) @ x
expm(w - w.T)
lu(shifted(w, 3))[1] @ lu(shifted(w, 3))[2] @ x
lu(w)[1] * s
lu_solve(shifted(w, 3), x) * y
lstsq(t.T, x) * s
lib.linalg.tensorsolve(shifted(w, 3), x) * y
lib.linalg.cond(shifted(w, 3)) * s
lib.abs(eigvals(w)) ** 2 * s
-0.5 * x @ lib.linalg.solve(larger_spd(w), x) - 0.5 * lib.linalg.slogdet(larger_spd(w))[1]
lib.linalg.inv(lib.matmul(a, lib.moveaxis(a, 1, 2)) + 2 * eye4(a)) * s
lib.linalg.cholesky(lib.matmul(a, lib.moveaxis(a, 1, 2)) + 2 * eye4(a))
lib.linalg.det(lib.stack([w, w * w, w + 1], 0)) * x
lib.linalg.solve(lib.matmul(a, lib.moveaxis(a, 1, 2)) + 2 * eye4(a), a)
"""

FOURIER = """
lib.real(lib.fft.fft(x)) * y
lib.abs(lib.fft.fft(r)) ** 2 * s
lib.fft.fft(z) * x
lib.fft.ifft(z * z)
lib.fft.rfft(r * r) * s
lib.fft.irfft(z) * s
lib.fft.irfft(lib.fft.rfft(r) * lib.fft.rfft(r * r)) * s
lib.fft.hfft(z) * s
lib.fft.ihfft(r) * s
lib.fft.fft(x, 5) * s
lib.fft.rfft(r, 6)
lib.fft.irfft(z, 5)
lib.fft.fft(w, 2, 0) * s
lib.fft.fft(v, 3, -1, norm="ortho") * x
lib.fft.ifft(x, norm="forward")
lib.fft.fft2(w) * s
lib.fft.ifft2(v * v)
lib.fft.fftn(a) * s
lib.fft.rfft2(w * w)
lib.fft.irfft2(v)
lib.fft.rfftn(a)
lib.fft.irfftn(lib.fft.rfftn(a) * s, (2, 4, 4))
lib.fft.fftshift(x * y) * x
lib.fft.ifftshift(w * w)
lib.abs(lib.fft.rfft(r * lib.cos(lib.arange(8) * 0.3)))
"""

COMPLEX = """
z * z
z * lib.conj(z) * x
lib.abs(z) * x
lib.angle(z + 3) * x
lib.exp(z) * s
lib.log(z + 3)
lib.sqrt(z + 3) * x
lib.sin(z) * lib.cos(z)
lib.tanh(z)
lib.real(z) * lib.imag(z)
lib.real(z * z) * x
v @ z * x
vdot(z, z * z)
lib.conj(v).T @ z
complex(x, y) * z
polar(x * x + 1, y) * s
pairs(z * z) * s
of_pairs(lib.stack([x, y * x], 1)) * z
1 / (z + 2)
z / (z * z + 3)
z**2 * x
(z + 2) ** s
lib.sum(v * v, 0) * z
lib.prod(z, 0) * s
lib.cumsum(z * x, 0)
lib.einsum("ij,jk->ik", v, lib.conj(v)) * s
lib.outer(z, lib.conj(z)) * w
lib.where(x > 0, z, lib.conj(z) * y)
z[i] * x
put_add(z, i, z * x)
lib.concatenate([z * x, x + 0j], 0)
lib.linalg.solve(shifted(v, 4), z)
lib.linalg.inv(shifted(v, 4)) * x
lib.linalg.det(v) * s
lib.linalg.cholesky(hermitian(v)) * s
lib.linalg.eigvalsh(hermitian(v)) * x
lib.abs(lib.linalg.eigh(hermitian(v))[1]) ** 2 @ x
svdvals(v) * x
lib.linalg.matrix_power(v, 3)
expm(v)
x * 1j + y
(x + 1j * y) * lib.conj(x - 1j * y)
lib.abs(x + 1j * y) ** 2
lib.sum(lib.abs(v) ** 2) * x
lib.mean(z * lib.conj(z)) * z
lib.linalg.norm(z) * x
lib.sinh(z) / lib.cosh(z)
lib.flip(z, (0,)) * lib.roll(z, 1, 0)
lib.exp(1j * x) * z
"""

LOOPS = """
lax.scan(lambda c, u: (c + u, c * u), x, w)
lax.scan(lambda c, u: (lib.tanh(w @ c + u), c.sum()), x, t)
lax.scan(lambda c, u: (lib.tanh(w @ c + u), None), x, t)[0]
lax.scan(lambda c, u: (c * u, c), x, w, reverse=True)
lax.scan(lambda c, _: (lib.sin(w @ c), c), x, None, length=3)
lax.scan(lambda c, u: (c, lib.exp(u) * y), s, t)
lax.scan(lambda c, u: (lib.where(u > 0, c + u, c * 0.5), lib.maximum(c, u)), x, w)
lax.scan(lambda c, u: (c + lax.scan(lambda d, e: (d * e + w[0], d), c, t)[0], u), x, t)
lax.scan(lambda c, u: (c + lax.cond(u.sum() > 0, lambda d: d * u, lambda d: lib.sin(d), c), c), x, w)
lax.scan(lambda c, u: ({"p": c["p"] + u[0], "q": c["q"] * u[1]}, c["p"] * c["q"]), {"p": x, "q": y}, (w, w * w))
lax.scan(lambda c, u: (c / (1 + c * c) + u, c), s, x * y)
lax.scan(lambda c, u: (c * x[u], c + u), s, i)
lax.scan(lambda c, u: (c * u[0] + u[1], None), x, (w, t[:1] * w))[0]
lax.scan(lambda c, u: (u, c * u), x, w)
lax.scan(lambda c, u: (c @ w, c), t, x)
lax.scan(lambda c, u: (put_add(c, u, x * s), None), x, lib.stack([i, i], 0))[0]
lax.scan(lambda c, u: (lib.linalg.solve(shifted(w, 3), c) + u, c), x, t)
lax.scan(lambda c, u: ((c[0] + 1, c[1] * u), c[0] * x), (k * 1, y), w)[1]
lax.fori_loop(0, 3, lambda j, c: lib.cos(w @ c) + j, x)
lax.fori_loop(1, 3, lambda j, c: c * w[j] + y, x)
lax.fori_loop(3, 1, lambda j, c: c * 2, x) * y
lax.fori_loop(0, 2, lambda j, c: (c[0] @ w, c[1] + c[0].sum()), (t, s))
lax.fori_loop(0, 3, lambda j, c: lib.where(j > 1, c * c, c + x), y)
lax.fori_loop(0, 3, lambda j, c: update_at(c, j, c[j - 1] * s + x[j]), y)
lax.map(lambda c: lib.tanh(w @ c) * y, t)
lax.map(lambda c: (c[0] * c[1], c[0].sum()), (w, w * x))
lax.map(lambda c: lax.map(lambda d: d * d * s, c), t)
lax.map(lambda c: w[c] * x, i)
lax.cond(x.sum() > 0, lambda c, d: d @ c, lambda c, d: c * 2, y, w)
lax.cond(x.sum() > 100, lambda c: c * w[0], lambda c: lib.sin(c) + w[1], y)
lax.cond(True, lambda: x * 2, lambda: x * y)
lax.cond(k > 1, lambda c: (c, c * y), lambda c: (c * c, w[0]), x)
lax.cond(k > 5, lambda c: lax.cond(k > 1, lambda d: d * y, lambda d: d, c), lambda c: lax.cond(k > 1, lambda d: d * d * y, lambda d: d, c), x)
lax.cond(s > 0, lambda c: lax.scan(lambda d, e: (d * e, None), c, w)[0], lambda c: c * c, x)
lax.switch(k, [lambda c: c * 2, lambda c: c * w[0], lambda c: lib.exp(c)], x)
lax.switch(k + 9, [lambda c: c * y, lambda c: c * w[0]], x)
lax.switch(i[0], [lambda c, d: c * d, lambda c, d: lib.sin(c * s), lambda c, d: d + 0 * c], x, y)
lax.associative_scan(lambda c, d: c * d, w * 0.5 + 1)
lax.associative_scan(lambda c, d: c + d, w * x, reverse=True)
lax.associative_scan(lambda c, d: c @ d, lib.stack([w, w * 2, w + 1, w * s], 0))
lax.associative_scan(lambda c, d: (c[0] * d[0], d[0] * c[1] + d[1]), (w, w * x + 1))
lax.associative_scan(lambda c, d: lib.maximum(c, d), w * x, axis=1)
forward lax.fori_loop(0, k, lambda j, c: c * 2 + j, x)
forward lax.fori_loop(k, 4, lambda j, c: lib.sin(c) * y, x)
forward lax.while_loop(lambda c: (c * c).sum() < 50, lambda c: c * 1.5 + y * 0.1 + 1, x)
forward lax.while_loop(lambda c: c[0] < k, lambda c: (c[0] + 1, w @ c[1]), (0, x))[1]
forward lax.while_loop(lambda c: c[1] > 0.01, lambda c: (0.5 * (c[0] + 7 / c[0]), lib.abs(c[0] * c[0] - 7)), (s * s + 1, s * 0 + 1))[0]
forward lax.while_loop(lambda c: lib.abs(c * c - s * s - 1) > 1e-9, lambda c: 0.5 * (c + (s * s + 1) / c), s * s + 1)
forward lax.scan(lambda c, u: (lax.while_loop(lambda d: d.sum() < 3, lambda d: d + 1 + u * u, c) * 0.5, c), x, w)
"""

PROGRAMS = """
T.grad(lambda c: (lib.sin(c) * y).sum())(x) * x
T.jvp(lambda c: c * c * y, (x,), (y,))[1]
T.vmap(lambda c, d: c * d.sum(), (0, None))(w, x)
T.vmap(lambda c: lib.sin(c) @ x, 1)(w)
T.jacrev(lambda c: lib.tanh(w @ c))(x) @ y
T.jacfwd(lambda c: lib.tanh(w @ c))(x) @ y
T.hessian(lambda c: (c**3 * y).sum())(x) @ y
T.vjp(lambda c: lib.sin(w @ c), x)[1](y)[0]
T.grad(lambda c: T.grad(lambda d: (d**3).sum() * c.sum())(x).sum())(y)
T.vmap(T.grad(lambda c: lib.exp(c @ x)))(w)
remat(lambda c: lib.sin(w @ lib.sin(c)))(x)
remat(lambda c, d: lib.tanh(c * d) @ w)(x, y) * s
constant(x * y) * x
x * constant(lib.sin(x)) + constant(y)
lib.tanh(w @ lib.tanh(w.T @ x + y)) @ y
lib.sum((t @ w - t) ** 2) / 6
cross_entropy(lib.tanh(w @ w), i) + 0.1 * lib.sum(w * w)
softmax(t @ w.T, 1) @ w * s
relu(w @ relu(w @ x + y)) @ y
standardize(w + attention(w, w, w))
sigmoid(w @ x) * lib.tanh(w @ y) + (1 - sigmoid(w @ x)) * y
-0.5 * lib.sum(((x - y) / lib.exp(s)) ** 2) - 3 * s
x / lib.linalg.norm(x) * y
lib.exp(-cdist(t, w) ** 2)
lib.linalg.solve(larger_spd(w) + lib.exp(-(x[:, None] - x) ** 2), y)
x - lib.linalg.solve(larger_spd(w), larger_spd(w) @ x - y)
lib.sum(softmax(x, 0) * log_softmax(y, 0))
logsumexp(lib.stack([x, y * 2, x * y], 0), 0) * s
(lambda c: c / c.sum())(lib.exp(x - lib.amax(x, 0))) * y
lib.where(lib.abs(x) < 1e-3, 1 - x * x / 6, lib.sin(x) / x) * y
lib.einsum("ij,jk,ik->i", w, w, w) * softplus(s)
(lambda c, d: (c * d, c + d, c.sum() * d))(lib.sin(x), y)
(x * 2, (y * x, s * x))
{"p": x * y, "q": [x.sum(), w @ x]}
lib.stack([lib.cos(s), -lib.sin(s), lib.sin(s), lib.cos(s)], 0)
lib.reshape(lib.stack([lib.cos(s), -lib.sin(s), lib.sin(s), lib.cos(s)], 0), (2, 2)) @ x[:2]
lib.sum(w[i] * t[0] * lib.exp(-s)) + lib.prod(x, 0)
lib.fft.irfft(lib.fft.rfft(r) * lib.exp(-lib.arange(5) * s * s), 8)
x * float(x.shape[0]) + w.shape[1]
lib.zeros_like(x) + y * lib.ones_like(s)
w * 0 + x
y
lib.ones((3,))
x, lib.ones((2,))
"""

FAMILIES = {
    "elementwise": ELEMENTWISE, "indexing": INDEXING, "products": PRODUCTS, "reductions": REDUCTIONS, "decompositions": DECOMPOSITIONS,
    "fourier": FOURIER, "complex": COMPLEX, "loops": LOOPS, "programs": PROGRAMS,
}  # fmt: skip
