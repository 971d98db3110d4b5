"""scaled_dot_product_attention has the same bits wherever a sync falls and whatever else is read. On the CPU it is one kernel forward and one backward."""

import itertools

import numpy as np
import pytest

import lazuli as lz

attention = lz.nn.functional.scaled_dot_product_attention
DEVICE = "cpu:0"
# Heads of keys, queries, keys, and options. The last two are too short for kernels: of the gradient, and of both.
CASES = {
    "plain": (4, 128, 128, {}),
    "causal": (4, 128, 128, {"is_causal": True}),
    "few blocks": (4, 97, 150, {"scale": -0.3125}),
    "shared heads": (2, 128, 130, {"enable_gqa": True}),
    "one query": (4, 1, 160, {}),
    "short": (4, 20, 30, {"is_causal": True}),
}


def inputs(name, mask=None, dtype=lz.float32):
    shared, rows, keys, options = CASES[name]
    lz.manual_seed(7)
    query = lz.randn(2, 4, rows, 32, device=DEVICE).to(dtype)
    key, value = (lz.randn(2, keys, shared, 32, device=DEVICE).to(dtype).transpose(1, 2) for _ in range(2))
    if mask == "bools":
        options = {**options, "attn_mask": lz.rand(keys, device=DEVICE) > 0.3}
    elif mask == "floats":
        options = {**options, "attn_mask": lz.randn(2, 1, rows, keys, device=DEVICE).to(dtype)}
    slopes = lz.randn(2, 4, rows, 32, device=DEVICE).to(dtype)
    lz.sync()
    return [x.requires_grad_() for x in (query, key, value)], options, slopes


def weights_by_hand(query, key, options):
    if options.get("enable_gqa"):
        key = key.repeat_interleave(2, 1)
    return ((query * 32 ** -0.5) @ key.transpose(-1, -2)).softmax(-1)


def results(case, sync=False, reads=False, **options):
    given, more, slopes = inputs(*case)
    y = attention(*given, **more, **options)
    weights = weights_by_hand(*given[:2], more) if reads else None
    if sync:
        lz.sync()
    made = [y, *lz.autograd.grad(y, given, slopes)]
    lz.sync()
    del weights
    return [x.detach().float().numpy() for x in made]


def kernels():
    return lz.debug.last_optimized_hlo().count("kind=kCustom")


@pytest.mark.parametrize("case", [*((name, None) for name in CASES), *itertools.product(["plain", "one query"], ["bools", "floats"])])
def test_bits_do_not_depend_on_where_a_sync_falls(case):
    whole = results(case)
    for other in (results(case, sync=True), results(case, reads=True), results(case, sync=True, reads=True)):
        for x, y in zip(whole, other, strict=True):
            np.testing.assert_array_equal(x, y)
    given, options, _ = inputs(*case)
    with lz.no_grad():
        np.testing.assert_array_equal(whole[0], attention(*given, **options).numpy())


def test_gradients_of_some_operands_are_those_of_all():
    given, options, slopes = inputs("causal")
    every = lz.autograd.grad(attention(*given, **options), given, slopes)
    for wanted in ([0], [1], [0, 1], [0, 2]):
        some = lz.autograd.grad(attention(*given, **options), [given[i] for i in wanted], slopes)
        for i, x in zip(wanted, some, strict=True):
            np.testing.assert_array_equal(x.numpy(), every[i].numpy())


def test_each_way_is_one_kernel():
    given, options, slopes = inputs("causal")
    y = attention(*given, **options)
    lz.sync()
    assert kernels() == 1  # forward
    made = lz.autograd.grad(y, given, slopes)
    lz.sync()
    assert kernels() == 1  # backward
    y = attention(*given, **options)
    made = [y, *lz.autograd.grad(y, given, slopes)]
    lz.sync()
    assert kernels() == 2
    weights = weights_by_hand(*given[:2], options)
    y = attention(*given, **options)
    lz.sync()
    assert kernels() == 1
    del made, weights


def test_heads_are_read_where_they_lie():
    """No copy in another order comes before the kernel."""
    x = lz.randn(2, 128, 3 * 64, device=DEVICE)
    lz.sync()
    query, key, value = (part.reshape(2, 128, 2, 32).transpose(1, 2) for part in x.chunk(3, -1))
    y = attention(query, key, value).numpy()
    assert y.shape == (2, 2, 128, 32)
    assert "transpose(" not in lz.debug.last_optimized_hlo().partition("ENTRY")[2]


@pytest.mark.parametrize("between", [False, True])
def test_attention_by_hand_keeps_its_bits_when_its_weights_are_read(between):
    """It has no kernel where a sync may fall, so it does not matter whether one does."""
    made = []
    for reads in (False, True):
        given, options, slopes = inputs("plain")
        weights = weights_by_hand(*given[:2], options)
        y = weights @ given[2]
        if not reads:
            del weights
        if between and reads:
            lz.sync()
        made.append([x.numpy() for x in (y.detach(), *lz.autograd.grad(y, given, slopes))])
    for x, y in zip(*made, strict=True):
        np.testing.assert_array_equal(x, y)


def by_hand(query, key, value, mask=None, causal=False):
    scores = query @ key.transpose(-1, -2) * 0.7
    if causal:
        seen = lz.ones(scores.shape[-2:], dtype=lz.bool, device=query.device).tril()
        scores = scores.masked_fill(~seen, -float("inf"))
    if mask is not None:
        scores = scores + mask
    return scores.softmax(-1) @ value


@pytest.mark.parametrize(("rows", "causal", "mask"), [(3, False, False), (3, True, False), (3, False, True), (100, True, False)])
def test_derivatives_of_every_kind_are_those_of_the_definition(rows, causal, mask):
    lz.manual_seed(3)
    given = [lz.randn(2, rows, 4, dtype=lz.float64, device=DEVICE) for _ in range(3)]
    if mask:
        given.append(lz.randn(rows, rows, dtype=lz.float64, device=DEVICE))
    tangents = [lz.randn_like(x) for x in given]
    slopes = lz.randn(2, rows, 4, dtype=lz.float64, device=DEVICE)

    def op(q, k, v, m=None):
        return attention(q, k, v, m, is_causal=causal, scale=0.7)

    def definition(q, k, v, m=None):
        return by_hand(q, k, v, m, causal)

    def second(f):
        leaves = [x.detach().requires_grad_() for x in given]
        dy = slopes.detach().requires_grad_()
        first = lz.autograd.grad(f(*leaves), leaves, dy, create_graph=True)
        return [*first, *lz.autograd.grad(first, [*leaves, dy], tangents)]

    def kinds(f):
        every = second(f)
        every += [lz.func.jvp(f, tuple(given), tuple(tangents))[1], lz.func.vmap(f, in_dims=(0, 0, 0, None)[:len(given)])(*given)]
        every.append(lz.func.grad(lambda x: (f(x, *given[1:]) * slopes).sum())(given[0]))
        every.append(lz.func.hessian(lambda x: (f(x[None], *(y[:1] for y in given[1:3]), *given[3:]) * slopes[:1]).sum())(given[0][0])
                     if rows < 10 else lz.zeros(1))
        return [x.detach().numpy() for x in every]

    for x, y in zip(kinds(op), kinds(definition), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


HALVES = [lz.bfloat16, lz.float16]


@pytest.mark.parametrize("dtype", [*HALVES, lz.float64])
@pytest.mark.parametrize("case", ["causal", "shared heads", "one query", "short"])
def test_other_dtypes_keep_their_bits_too(case, dtype):
    whole = results((case, "bools" if case == "one query" else None, dtype))
    for other in (results((case, "bools" if case == "one query" else None, dtype), sync=sync, reads=reads) for sync, reads in ((True, False), (False, True))):
        for x, y in zip(whole, other, strict=True):
            np.testing.assert_array_equal(x, y)


def definition(case):
    """The result and the gradients of query, key and value in f64."""
    (query, key, value), options, slopes = inputs(*case)
    query, key, value, slopes = (x.detach().float().numpy().astype(np.float64) for x in (query, key, value, slopes))
    repeats = query.shape[1] // key.shape[1]
    key, value = (np.repeat(x, repeats, 1) for x in (key, value))
    scale = options.get("scale", 32 ** -0.5)
    scores = query @ key.swapaxes(-1, -2) * scale
    mask = options.get("attn_mask")
    if options.get("is_causal"):
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    elif mask is not None:
        scores = np.where(mask.numpy(), scores, -np.inf) if mask.dtype == lz.bool else scores + mask.float().numpy()
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    sloped = slopes @ value.swapaxes(-1, -2)
    sloped = weights * (sloped - (sloped * weights).sum(-1, keepdims=True)) * scale
    dkey, dvalue = sloped.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ slopes
    dkey, dvalue = (x.reshape(2, -1, repeats, *x.shape[2:]).sum(2) for x in (dkey, dvalue))
    return [weights @ value, sloped @ key, dkey, dvalue]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("name", "mask"), [("plain", None), ("causal", None), ("few blocks", None), ("shared heads", None), ("one query", None),
                                            ("plain", "bools"), ("few blocks", "floats"), ("one query", "floats")])
def test_16_bit_floats_are_rounded_once(name, mask, dtype):
    """Sums are in f32. bf16 may round the weights, too, and the scale is a number of the dtype: both less than the bound."""
    unit = float(lz.finfo(dtype).eps)
    kernels = 1 if name == "one query" else 4  # the gradient of a short sequence has none
    pairs = list(zip(results((name, mask, dtype)), definition((name, mask, dtype)), strict=True))
    for i, (made, expected) in enumerate(pairs[:kernels]):
        shared = name == "shared heads" and i > 1  # gradients of heads that share keys are added up in 16 bits
        bound = unit * np.abs(expected) * (2 if shared else 1) + unit * np.abs(expected).max() / (2 if shared else 4)
        assert (np.abs(made - expected) <= bound).all(), (i, np.abs(made - expected).max() / unit)


@pytest.mark.parametrize("dtype", HALVES)
def test_16_bit_floats_have_one_kernel_each_way_that_reads_them_where_they_lie(dtype):
    given, options, slopes = inputs("causal", None, dtype)
    y = attention(*given, **options)
    made = [y, *lz.autograd.grad(y, given, slopes)]
    lz.sync()
    entry = lz.debug.last_optimized_hlo().partition("ENTRY")[2]
    assert kernels() == 2
    assert not any(word in entry for word in ("convert(", "transpose(", "multiply("))
    del made


def test_training_takes_memory_that_is_linear_in_the_length():
    def peak(length):
        given = [lz.randn(1, 1, length, 16, device=DEVICE).requires_grad_() for _ in range(3)]
        lz.sync()
        made = lz.autograd.grad(attention(*given, is_causal=True).sum(), given)
        lz.sync()
        text = lz.debug.last_optimized_hlo().partition("ENTRY")[2]
        assert f"{length},{length}" not in text
        return made

    peak(512)


def test_values_without_elements_give_none():
    q, k, v = (lz.ones(1, heads, n, width, device=DEVICE).double().requires_grad_() for heads, n, width in ((8, 3, 5), (4, 4, 5), (4, 4, 0)))
    lz.sync()
    y = attention(q, k, v, enable_gqa=True)
    made = lz.autograd.grad(y, [q, k, v], lz.ones(1, 8, 3, 0, device=DEVICE).double())
    assert y.tolist() == [[[[]] * 3] * 8]
    assert [x.shape for x in made] == [(1, 8, 3, 5), (1, 4, 4, 5), (1, 4, 4, 0)] and not made[0].any() and not made[1].any()


def test_operands_that_do_not_fit_are_refused():
    x = lz.ones(2, 3, 4)
    for other, message in ((lz.ones(2, 3, 5), "the last dims of query and key differ"), (lz.ones(3, 3, 4), "batch dims do not broadcast")):
        with pytest.raises(RuntimeError, match=message):
            attention(x, other, x)
    with pytest.raises(RuntimeError, match="key and value have different lengths"):
        attention(x, x, lz.ones(2, 2, 4))
    with pytest.raises(RuntimeError, match="the mask does not broadcast to the scores"):
        attention(x, x, x, lz.ones(2, 2))
