"""Layers that are written in Python: convolutions of other ranks and their transposes, instance
norms and attention; and layers made from rows, which keep the arguments of a function."""

import copy
import math

from lazuli import _C
from lazuli._C.nn import Module, Parameter
from lazuli._C.nn import init
from lazuli.nn import functional as F  # noqa: N812
from lazuli.nn._extras import reset_norm, reset_running_stats, reset_table, reset_uniform
from lazuli.nn._kept import Kept, kept
from lazuli.nn._rows import LAYERS  # of cpp_api/nn/layers.txt
from lazuli.nn.containers import ModuleList

__all__ = []


def _public(made):
    __all__.append(made.__name__)
    return made


def _tuple(value, n):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


# --- convolution


class Convolution(Module):
    """The base of convolutions: weight and bias with PyTorch's initial values, and the kernel's
    movement."""

    _rank, _transposed = 2, False

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1,
                 groups=1, bias=True, padding_mode="zeros", device=None, dtype=None,
                 output_padding=0):
        super().__init__()
        for name, value in (("in_channels", in_channels), ("out_channels", out_channels),
                            ("groups", groups)):
            if not isinstance(value, int):
                raise _C.WrongTypeError(
                    f"{type(self).__name__}: {name} is an integer, not {type(value).__name__}")
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise _C.InvalidArgumentError(f"{type(self).__name__}: {groups} groups share neither "
                                          f"{in_channels} nor {out_channels} channels")
        n = self._rank
        self.in_channels, self.out_channels, self.groups, self.padding_mode = (
            in_channels, out_channels, groups, padding_mode)
        self.kernel_size, self.stride, self.dilation = (_tuple(kernel_size, n), _tuple(stride, n),
                                                        _tuple(dilation, n))
        self.padding = padding if isinstance(padding, str) else _tuple(padding, n)
        if padding == "same" and any(s != 1 for s in self.stride):
            raise _C.InvalidArgumentError(
                f"{type(self).__name__}: padding='same' is not supported for strided convolutions")
        self.output_padding = _tuple(output_padding, n)
        rows, columns = ((in_channels, out_channels // groups) if self._transposed
                         else (out_channels, in_channels // groups))
        self.weight = Parameter(_C.empty((rows, columns, *self.kernel_size), dtype=dtype,
                                         device=device))
        self.bias = Parameter(_C.empty(out_channels, dtype=dtype, device=device)) if bias else None
        self.reset_parameters()

    reset_parameters = reset_uniform

    def _around(self):
        """(before, behind) along each dim."""
        if self.padding == "valid":
            return [(0, 0)] * self._rank
        if self.padding == "same":
            reach = [d * (k - 1) for d, k in zip(_tuple(self.dilation, self._rank),
                                                 self.weight.shape[2:], strict=True)]
            return [(r // 2, r - r // 2) for r in reach]
        return [(p, p) for p in _tuple(self.padding, self._rank)]

    def extra_repr(self):
        text = (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}")
        zeros = (0,) * self._rank
        for name, usual in (("padding", zeros), ("dilation", (1,) * self._rank),
                            ("output_padding", zeros), ("groups", 1)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        text += ", bias=False" if self.bias is None else ""
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros"
                       else "")

    def forward(self, x):
        padding = self.padding
        if self.padding_mode != "zeros":
            x = F.pad(x, [p for both in reversed(self._around()) for p in both], self.padding_mode)
            padding = 0
        return self._function(x, self.weight, self.bias, self.stride, padding, self.dilation,
                              self.groups)


@_public
class Conv1d(Convolution):
    """Cross-correlation: [N, in_channels, L] to [N, out_channels, L']."""

    _rank, _function = 1, staticmethod(F.conv1d)


@_public
class Conv3d(Convolution):
    """Cross-correlation: [N, in_channels, D, H, W] to [N, out_channels, D', H', W']."""

    _rank, _function = 3, staticmethod(F.conv3d)


class TransposedConvolution(Convolution):
    """The base of transposed convolutions, which compute the gradient of a convolution with respect
    to its input."""

    _transposed = True

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0,
                 output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros",
                 device=None, dtype=None):
        if padding_mode != "zeros":
            raise _C.InvalidArgumentError(
                f'{type(self).__name__}: only "zeros" padding mode is supported')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                         bias, padding_mode, device, dtype, output_padding)

    def forward(self, x, output_size=None):
        return self._function(x, self.weight, self.bias, self.stride, self.padding,
                              self._output_padding(x, output_size), self.groups, self.dilation)

    def _output_padding(self, x, output_size):
        if output_size is None:
            return self.output_padding
        n = self._rank
        wanted, sizes = list(output_size)[-n:], x.shape[-n:]
        least = [(size - 1) * s - 2 * p + d * (k - 1) + 1
                 for size, s, p, d, k in zip(sizes, *(_tuple(kept, n) for kept in (
                     self.stride, self.padding, self.dilation, self.kernel_size)), strict=True)]
        if any(not low <= size < low + s
               for size, low, s in zip(wanted, least, _tuple(self.stride, n), strict=True)):
            raise _C.InvalidArgumentError(
                f"{type(self).__name__}: {tuple(sizes)} cannot give an output size of "
                f"{tuple(wanted)}; the least is {tuple(least)}")
        return tuple(size - low for size, low in zip(wanted, least, strict=True))


for _n in (1, 2, 3):
    _public(type(f"ConvTranspose{_n}d", (TransposedConvolution,),
                 {"_rank": _n, "_function": staticmethod(getattr(F, f"conv_transpose{_n}d")),
                  "__module__": __name__,
                  "__doc__": f"The gradient of Conv{_n}d with respect to its input."}))
    globals()[f"ConvTranspose{_n}d"] = TransposedConvolution.__subclasses__()[-1]


# --- pools, padding, dropout and others that keep the arguments of a function


class _Unpool(Kept):
    def forward(self, x, indices, output_size=None):
        return super().forward(x, indices, output_size=output_size)


class _FractionalPool(Kept):
    def _completed(self, given):
        kept, ratio = super()._completed(given), given["output_ratio"]
        if (kept["output_size"] is None) == (ratio is None):
            raise _C.InvalidArgumentError(
                f"{type(self).__name__}: takes either output_size or output_ratio")
        if ratio is not None and not all(0 < r < 1 for r in kept["output_ratio"]):
            raise _C.InvalidArgumentError(
                f"{type(self).__name__}: output_ratio must be between 0 and 1, is {ratio}")
        return kept


class _Softmax(Kept):
    """A softmax that chooses a dim if none is given."""

    def forward(self, x):
        return self._function(x, self.dim, _stacklevel=4)


class _Softmax2d(Kept):
    def forward(self, x):
        if x.dim() not in (3, 4):
            raise _C.InvalidArgumentError(
                f"Softmax2d: takes [N, C, H, W] or [C, H, W], not {x.dim()} dims")
        return super().forward(x)


class _Unflatten(Kept):
    def forward(self, x):
        return x.unflatten(self.dim, self.unflattened_size)


class _Upsample(Kept):
    def _completed(self, given):
        scale = given["scale_factor"]
        if scale is not None:
            factors = scale if isinstance(scale, (tuple, list)) else (scale,)
            if not all(isinstance(v, (int, float)) for v in factors):
                raise _C.WrongTypeError("Upsample: scale_factor must be a number or several, not "
                                        f"{type(scale).__name__}")
            factors = tuple(map(float, factors))
            given["scale_factor"] = factors if isinstance(scale, (tuple, list)) else factors[0]
        return given

    def extra_repr(self):
        return (f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None
                else f"size={self.size!r}") + f", mode={self.mode!r}"


class _Pad(Kept):
    def forward(self, x):
        mode, n = self._row["fixed"]["mode"], self._row["tuples"]["padding"] // 2
        if mode == "circular" and x.dim() not in (n + 1, n + 2):
            raise _C.InvalidArgumentError(
                f"CircularPad{n}d: expected {n + 1}D or {n + 2}D input (got {x.dim()}D input)")
        return F.pad(x, self.padding, mode, getattr(self, "value", None))


# By layer or function: the base of classes that do more than call the function.
_BASES = {"Softmax2d": _Softmax2d, "interpolate": _Upsample, "log_softmax": _Softmax, "pad": _Pad,
          "softmax": _Softmax, "softmin": _Softmax, "unflatten": _Unflatten,
          **{f"max_unpool{n}d": _Unpool for n in (1, 2, 3)},
          **{f"fractional_max_pool{n}d": _FractionalPool for n in (2, 3)}}
for _name, _row in LAYERS.items():
    if "function" in _row:
        _base = _BASES.get(_name) or _BASES.get(_row["function"], Kept)
        globals()[_name] = _public(
            kept(__name__, _name, _row, getattr(F, _row["function"]), _base))


@_public
class UpsamplingNearest2d(Upsample):  # noqa: F821
    """interpolate() to the nearest element."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor)


@_public
class UpsamplingBilinear2d(Upsample):  # noqa: F821
    """interpolate() with mode "bilinear" and align_corners."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


# --- normalisation


class InstanceNorm(Module):
    """Normalises each channel of each sample to mean 0 and variance 1."""

    _rank = 2

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False,
                 track_running_stats=False, device=None, dtype=None, *, bias=True):
        super().__init__()
        self.num_features, self.eps, self.momentum, self.affine, self.track_running_stats = (
            num_features, eps, momentum, affine, track_running_stats)
        made = {"dtype": dtype, "device": device}
        self.weight = Parameter(_C.ones(num_features, **made)) if affine else None
        self.bias = Parameter(_C.zeros(num_features, **made)) if affine and bias else None
        self.register_buffer("running_mean",
                             _C.zeros(num_features, **made) if track_running_stats else None)
        self.register_buffer("running_var",
                             _C.ones(num_features, **made) if track_running_stats else None)
        self.register_buffer("num_batches_tracked",
                             _C.zeros((), dtype=_C.int64, device=device) if track_running_stats
                             else None)

    reset_parameters, reset_running_stats = reset_norm, reset_running_stats

    def forward(self, x):
        if x.ndim not in (self._rank + 1, self._rank + 2):
            raise _C.InvalidArgumentError(f"{type(self).__name__}: takes {self._rank + 1} or "
                                          f"{self._rank + 2} dims, not {x.ndim}")
        batch = x if x.ndim == self._rank + 2 else x.unsqueeze(0)
        if batch.shape[1] != self.num_features and self.affine:
            raise _C.InvalidArgumentError(f"{type(self).__name__}: expected {self.num_features} "
                                          f"channels, got {batch.shape[1]}")
        y = F.instance_norm(batch, self.running_mean, self.running_var, self.weight, self.bias,
                            self.training or not self.track_running_stats, self.momentum, self.eps)
        return y if batch is x else y.squeeze(0)

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")


for _n in (1, 2, 3):
    globals()[f"InstanceNorm{_n}d"] = _public(type(f"InstanceNorm{_n}d", (InstanceNorm,), {
        "_rank": _n, "__doc__": f"Normalises each channel of each sample of {_n} dims to mean 0 "
        "and variance 1.", "__module__": __name__}))


# --- products and tables


@_public
class Bilinear(Module):
    """Sums of products of [..., in1] and [..., in2], each with its own weight: [..., out]."""

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None,
                 dtype=None):
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = (in1_features, in2_features,
                                                                   out_features)
        self.weight = Parameter(_C.empty((out_features, in1_features, in2_features), dtype=dtype,
                                         device=device))
        self.bias = Parameter(_C.empty(out_features, dtype=dtype, device=device)) if bias else None
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new weights and a new bias."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, x, y):
        return F.bilinear(x, y, self.weight, self.bias)

    def extra_repr(self):
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")


@_public
class EmbeddingBag(Module):
    """Sums, means or maxima of rows of a table: embedding_bag()."""

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0,
                 scale_grad_by_freq=False, mode="mean", sparse=False, include_last_offset=False,
                 padding_idx=None, device=None, dtype=None):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.mode, self.max_norm = (
            num_embeddings, embedding_dim, mode, max_norm)
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        self.norm_type, self.scale_grad_by_freq, self.sparse = norm_type, scale_grad_by_freq, sparse
        self.weight = Parameter(_C.empty((num_embeddings, embedding_dim), dtype=dtype,
                                         device=device))
        self.reset_parameters()

    reset_parameters = reset_table

    def forward(self, x, offsets=None, per_sample_weights=None):
        return F.embedding_bag(x, self.weight, offsets, self.max_norm, self.norm_type,
                               self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights,
                               self.include_last_offset, self.padding_idx)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}{padding}"


# --- attention


@_public
class MultiheadAttention(Module):
    """Attention with several heads, with the names of PyTorch's parameters."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False,
                 add_zero_attn=False, kdim=None, vdim=None, batch_first=False, device=None,
                 dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise _C.InvalidArgumentError(
                "MultiheadAttention: embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead")
        if embed_dim % num_heads:
            raise _C.InvalidArgumentError(f"MultiheadAttention: embed_dim {embed_dim} must be "
                                          f"divisible by num_heads {num_heads}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = (embed_dim, num_heads,
                                                                          dropout, batch_first)
        self.head_dim = embed_dim // num_heads
        self.kdim, self.vdim = (embed_dim if kdim is None else kdim,
                                embed_dim if vdim is None else vdim)
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        made = {"dtype": dtype, "device": device}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(_C.empty((3 * embed_dim, embed_dim), **made))
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = Parameter(_C.empty((embed_dim, embed_dim), **made))
            self.k_proj_weight = Parameter(_C.empty((embed_dim, self.kdim), **made))
            self.v_proj_weight = Parameter(_C.empty((embed_dim, self.vdim), **made))
            self.register_parameter("in_proj_weight", None)
        self.in_proj_bias = Parameter(_C.zeros(3 * embed_dim, **made)) if bias else None
        self.out_proj = _C.nn.Linear(embed_dim, embed_dim, bias=bias, **made)
        self.bias_k, self.bias_v = (Parameter(_C.empty((1, 1, embed_dim), **made)) if add_bias_kv
                                    else None for _ in range(2))
        self.add_zero_attn = add_zero_attn
        for weight in (self.bias_k, self.bias_v):
            if weight is not None:
                init.xavier_normal_(weight)
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight,
                       self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if bias:
            init.zeros_(self.out_proj.bias)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):
        weights = (self.in_proj_weight if self._qkv_same_embed_dim
                   else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight))
        return F._attend("MultiheadAttention", (query, key, value), self.num_heads, weights,
                         self.in_proj_bias, self.out_proj, self.bias_k, self.bias_v,
                         self.add_zero_attn, self.dropout if self.training else 0.0,
                         key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal,
                         batch_first=self.batch_first)


class _TransformerLayer(Module):
    """Attentions and two linear layers, each with a residual connection and a norm."""

    _attentions = ()  # names

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu",
                 layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, device=None,
                 dtype=None):
        super().__init__()
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias,
                                                   batch_first=batch_first))
        self.linear1 = _C.nn.Linear(d_model, dim_feedforward, bias=bias)
        self.dropout = _C.nn.Dropout(dropout)
        self.linear2 = _C.nn.Linear(dim_feedforward, d_model, bias=bias)
        parts = range(1, len(self._attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", _C.nn.LayerNorm(d_model, eps=layer_norm_eps, bias=bias))
        for i in parts:
            setattr(self, f"dropout{i}", _C.nn.Dropout(dropout))
        self.norm_first = norm_first
        self.activation = getattr(F, activation) if isinstance(activation, str) else activation
        self.to(dtype=dtype, device=device)

    def _through(self, x, *attentions):
        """x through the attentions, which are functions of x, and the linear layers."""
        def feed(x):
            return self.linear2(self.dropout(self.activation(self.linear1(x))))

        for i, step in enumerate((*attentions, feed), 1):
            norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
            x = x + dropout(step(norm(x))) if self.norm_first else norm(x + dropout(step(x)))
        return x


@_public
class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and two linear layers, each with a residual connection and a norm."""

    _attentions = ("self_attn",)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        return self._through(src, lambda x: self.self_attn(
            x, x, x, attn_mask=src_mask, key_padding_mask=src_key_padding_mask, need_weights=False,
            is_causal=is_causal)[0])


@_public
class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to a memory and two linear layers, each with a residual connection
    and a norm."""

    _attentions = ("self_attn", "multihead_attn")

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
        return self._through(
            tgt, lambda x: self.self_attn(
                x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask,
                need_weights=False, is_causal=tgt_is_causal)[0],
            lambda x: self.multihead_attn(
                x, memory, memory, attn_mask=memory_mask, key_padding_mask=memory_key_padding_mask,
                need_weights=False, is_causal=memory_is_causal)[0])


def _copies(layer, count):
    if not isinstance(layer, Module) or not isinstance(count, int):
        raise _C.WrongTypeError("Transformer: takes a layer and how many, not "
                                f"{type(layer).__name__} and {type(count).__name__}")
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


@_public
class TransformerEncoder(Module):
    """A stack of copies of an encoder layer, followed by a norm."""

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True,
                 mask_check=True):
        super().__init__()
        self.layers, self.num_layers, self.norm = (_copies(encoder_layer, num_layers), num_layers,
                                                   norm)

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


@_public
class TransformerDecoder(Module):
    """A stack of copies of a decoder layer, followed by a norm."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers, self.num_layers, self.norm = (_copies(decoder_layer, num_layers), num_layers,
                                                   norm)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False):
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                        memory_key_padding_mask, bool(tgt_is_causal), memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


@_public
class Transformer(Module):
    """An encoder, and a decoder that attends to the encoder's result."""

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6,
                 dim_feedforward=2048, dropout=0.1, activation="relu", custom_encoder=None,
                 custom_decoder=None, layer_norm_eps=1e-5, batch_first=False, norm_first=False,
                 bias=True, device=None, dtype=None):
        super().__init__()
        arguments = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                     batch_first, norm_first, bias)
        norms = [_C.nn.LayerNorm(d_model, eps=layer_norm_eps, bias=bias) for _ in range(2)]
        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*arguments),
                                                            num_encoder_layers, norms[0])
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*arguments),
                                                            num_decoder_layers, norms[1])
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self.to(dtype=dtype, device=device)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None,
                src_key_padding_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                src_is_causal=None, tgt_is_causal=None, memory_is_causal=False):
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                            memory_key_padding_mask, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """-infinity above the diagonal, 0 elsewhere."""
        return _C.full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)
