"""Random masks, sizes and options of attention, and what it gives by the definition: a table of cases that two tests share.

attention_test.py compares lazuli with the formulas below, in NumPy; tests/peers/torch_attention_test.py with PyTorch.
"""

import random

import numpy as np

INF = float("inf")


class Case:
    """One call, decided by a seed: arrays by name, and options."""

    def __init__(self, seed, number):
        self.rng, self.draw = random.Random(f"{seed}:{number}"), np.random.default_rng([seed, number])
        self.name = f"seed {seed}, case {number}"

    def chance(self, p):
        return self.rng.random() < p

    def size(self, empties=0.12):
        return 0 if self.chance(empties) else self.rng.choice([1, 1, 2, 3, 4, 5])

    def values(self, *dims):
        return self.draw.standard_normal(dims)

    def mask(self, dims):
        """Bools that say what is hidden, or what is added: -infinity in places, and often in whole rows."""
        hidden = self.draw.random(dims) < self.rng.choice([0.0, 0.3, 0.7, 1.0])
        if dims and self.chance(0.4):
            hidden = hidden | (self.draw.random((*dims[:-1], 1)) < 0.5)
        if self.chance(0.5):
            return hidden
        return np.where(hidden, -INF, self.values(*dims) if self.chance(0.5) else 0.0)

    def dims_that_stretch(self, dims):
        """Dims of a mask that broadcasts to these."""
        kept = [n if self.chance(0.7) else 1 for n in dims[:-2]]
        first = 0 if self.chance(0.5) else self.rng.randrange(len(kept) + 1)
        return (*kept[first:], dims[-2] if self.chance(0.8) else 1, dims[-1])


class Products(Case):
    """A call of scaled_dot_product_attention()."""

    def __init__(self, seed, number, long=False):
        super().__init__(seed, number)
        batch = tuple(self.size() for _ in range(self.rng.choice([0, 1, 2, 2, 2])))
        length, keys, width, values = self.size(), self.size(), self.size(0.05), self.size(0.05)
        if long:  # enough for a kernel of its own
            batch = tuple(max(n, 1) for n in batch[:2])
            length, keys, width, values = (self.rng.choice(sizes) for sizes in ((130, 150, 200), (128, 131, 260), (3, 8, 20), (3, 16, 20)))
        groups = self.rng.choice([1, 2]) if len(batch) == 2 and self.chance(0.3) else 0
        self.gqa = groups > 0
        shared = (batch[0], max(batch[1], 1)) if self.gqa else batch
        batch = (shared[0], shared[1] * groups) if self.gqa else batch
        self.q, self.k, self.v = self.values(*batch, length, width), self.values(*shared, keys, width), self.values(*shared, keys, values)
        self.scale = self.rng.choice([None, None, 0.5, 2.0, -1.0])
        self.causal = self.chance(0.25)
        # True says what is seen here.
        self.attn_mask = None
        if not self.causal and self.chance(0.8):
            mask = self.mask(self.dims_that_stretch((*batch, length, keys)))
            self.attn_mask = ~mask if mask.dtype == bool else mask
        self.dy = self.values(*batch, length, values)

    def expected(self):
        """The result and the gradients of q, k and v."""
        added = None
        if self.causal:
            rows, columns = np.indices((self.q.shape[-2], self.k.shape[-2]))
            added = np.where(columns <= rows, 0.0, -INF)
        elif self.attn_mask is not None:
            added = np.where(self.attn_mask, 0.0, -INF) if self.attn_mask.dtype == bool else self.attn_mask
        repeats = self.q.shape[-3] // self.k.shape[-3] if self.gqa else 1
        k, v = (np.repeat(x, repeats, -3) if self.gqa else x for x in (self.k, self.v))
        scale = 1 / np.sqrt(max(self.q.shape[-1], 1)) if self.scale is None else self.scale
        y, _, dq, dk, dv = attention(self.q, k, v, added, scale, self.dy, safe=True)
        if self.gqa:
            dk, dv = (x.reshape(*x.shape[:-3], x.shape[-3] // repeats, repeats, *x.shape[-2:]).sum(-3) for x in (dk, dv))
        return [y, dq, dk, dv]


class Heads(Case):
    """A call of MultiheadAttention, batch first."""

    def __init__(self, seed, number):
        super().__init__(seed, number)
        self.heads = self.rng.choice([1, 2, 3])
        self.width = self.heads * self.rng.choice([1, 2])
        n, length, keys = self.size(), self.size(), self.size()
        self.query, self.key = self.values(n, length, self.width), self.values(n, keys, self.width)
        self.value = self.values(n, keys, self.width)
        self.weights = [self.values(3 * self.width, self.width), self.values(3 * self.width), self.values(self.width, self.width),
                        self.values(self.width)]
        self.need_weights = self.chance(0.4)
        self.attn_mask = self.padding = None
        if self.chance(0.6):
            self.attn_mask = self.mask((length, keys) if self.chance(0.5) else (n * self.heads, length, keys))
        if self.chance(0.6):
            self.padding = self.mask((n, keys))
        if self.attn_mask is not None and self.padding is not None and self.attn_mask.dtype != self.padding.dtype:
            self.padding = np.where(self.padding, -INF, 0.0) if self.padding.dtype == bool else self.padding == -INF
        self.dy = self.values(n, length, self.width)

    def expected(self):
        """The result, the weights of each head, and the gradients of query, key, value and the parameters."""
        in_weight, in_bias, out_weight, out_bias = self.weights
        parts = np.split(in_weight, 3), np.split(in_bias, 3)
        given = self.query, self.key, self.value

        def apart(x):
            return x.reshape(*x.shape[:2], self.heads, self.width // self.heads).swapaxes(1, 2)

        def together(x):
            return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], self.width)

        q, k, v = (apart(x @ w.T + b) for x, w, b in zip(given, *parts, strict=True))
        added = None
        for mask in (self.attn_mask, self.padding):
            if mask is None:
                continue
            more = np.where(mask, -INF, 0.0) if mask.dtype == bool else mask
            more = more[:, None, None] if mask is self.padding else more
            more = more.reshape(-1 if more.size else self.query.shape[0], self.heads, *more.shape[1:]) if more.ndim == 3 else more
            added = more if added is None else added + more
        dmixed = apart(self.dy @ out_weight)
        y, weights, *slopes = attention(q, k, v, added, 1 / np.sqrt(self.width // self.heads), dmixed, safe=not self.need_weights)
        slopes = [together(x) for x in slopes]

        def rows(x):
            return x.reshape(-1, self.width)

        inputs = [dx @ w for dx, w in zip(slopes, parts[0], strict=True)]
        parameters = [np.concatenate([rows(dx).T @ rows(x) for dx, x in zip(slopes, given, strict=True)]),
                      np.concatenate([rows(dx).sum(0) for dx in slopes]), rows(self.dy).T @ rows(together(y)), rows(self.dy).sum(0)]
        return [together(y) @ out_weight.T + out_bias, weights, *inputs, *parameters]


def attention(q, k, v, added, scale, dy, safe):
    """softmax(q k^T scale + added) v, the weights, and the gradients of q, k and v; `safe`: a row that sees nothing has weights of 0."""
    with np.errstate(all="ignore"):
        fit = q @ k.swapaxes(-1, -2) * scale
        fit = fit if added is None else fit + added
        most = fit.max(-1, keepdims=True, initial=-INF)
        none = most == -INF
        e = np.exp(fit - np.where(none, 0.0, most)) if safe else np.exp(fit - most)
        total = e.sum(-1, keepdims=True)
        weights = e / (np.where(none, 1.0, total) if safe else total)
        dweights = dy @ v.swapaxes(-1, -2)
        dfit = weights * (dweights - (dweights * weights).sum(-1, keepdims=True))
        return weights @ v, weights, dfit @ k * scale, dfit.swapaxes(-1, -2) @ q * scale, weights.swapaxes(-1, -2) @ dy
