"""Attention of random masks and sizes, zeros among them, is what its definition gives, forward and backward.

LAZULI_FUZZ_ATTENTION=100000 tries more cases, LAZULI_FUZZ_SEED=... others.
"""

import os

import attention
import numpy as np
import pytest

import lazuli as lz

SEED = int(os.environ.get("LAZULI_FUZZ_SEED", "0"))
CASES = int(os.environ.get("LAZULI_FUZZ_ATTENTION", 120))


def tensors(device, *arrays, leaves=False):
    made = [None if array is None else lz.tensor(array, device=device) for array in arrays]
    for x in made if leaves else ():
        x.requires_grad = True
    return made


def products(case, device):
    given = tensors(device, case.q, case.k, case.v, leaves=True)
    mask, dy = tensors(device, case.attn_mask, case.dy)
    y = lz.nn.functional.scaled_dot_product_attention(*given, mask, 0.0, case.causal, case.scale, enable_gqa=case.gqa)
    return [y, *lz.autograd.grad(y, given, dy)]


def heads(case, device):
    layer = lz.nn.MultiheadAttention(case.width, case.heads, batch_first=True).double().to(device)
    parameters = [layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias]
    with lz.no_grad():
        for p, value in zip(parameters, tensors(device, *case.weights), strict=True):
            p.copy_(value)
    given = tensors(device, case.query, case.key, case.value, leaves=True)
    mask, padding, dy = tensors(device, case.attn_mask, case.padding, case.dy)
    y, weights = layer(*given, key_padding_mask=padding, need_weights=case.need_weights, attn_mask=mask, average_attn_weights=False)
    return [y, weights, *lz.autograd.grad(y, given + parameters, dy)]


@pytest.mark.parametrize(("kind", "run"), [(attention.Products, products), (attention.Heads, heads)])
def test_is_what_the_definition_gives(kind, run):
    for number in range(CASES):
        case = kind(SEED, number)
        made = run(case, "cpu:0" if number % 20 == 0 else "interpreter:0")  # where programs are compiled faster
        for i, (got, expected) in enumerate(zip(made, case.expected(), strict=True)):
            if got is None:
                continue
            what = f"{case.name}, result {i}"
            assert tuple(got.shape) == expected.shape, what
            np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-9, atol=1e-9, err_msg=what)


def test_long_sequences_are_one_kernel_each_way():
    for number in range(CASES // 12):
        case = attention.Products(SEED, number, long=True)
        made = products(case, "cpu:0")
        values = [x.detach().numpy() for x in made]
        assert lz.debug.last_optimized_hlo().count("kind=kCustom") == 2, case.name
        for i, (got, expected) in enumerate(zip(values, case.expected(), strict=True)):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9, err_msg=f"{case.name}, result {i}")


def test_numbers_that_are_not_finite_show_as_they_do_without_the_kernel():
    """Skipped keys and scaled sums among them: what the interpreter gives is NaN or infinite in the same places."""
    for number in range(CASES // 12):
        case = attention.Products(SEED, 1000 + number, long=True)
        case.attn_mask = None if case.causal else case.attn_mask
        for name in ("q", "k", "v", "dy"):
            array = getattr(case, name)
            for _ in range(case.rng.choice([0, 0, 1, 2])):
                array[tuple(case.rng.randrange(n) for n in array.shape)] = case.rng.choice([np.nan, np.inf, -np.inf, 0.0])
        made, expected = ([x.detach().numpy() for x in products(case, device)] for device in ("cpu:0", "interpreter:0"))
        for i, (got, want) in enumerate(zip(made, expected, strict=True)):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9, err_msg=f"{case.name}, result {i}")


def test_hidden_rows_leave_shared_weights_finite():
    """A padded sample beside others, in both layers of a transformer."""
    lz.manual_seed(0)
    encoder = lz.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    decoder = lz.nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    padding = lz.tensor([[False, False, True], [True, True, True]])
    x = lz.randn(2, 3, 4)
    for made in (encoder(x, src_key_padding_mask=padding),
                 decoder(x, x, tgt_key_padding_mask=padding, memory_key_padding_mask=padding),
                 encoder(x, src_mask=lz.full((3, 3), -float("inf")))):
        made.sum().backward()
        assert lz.isfinite(made).all()
    for p in [*encoder.parameters(), *decoder.parameters()]:
        assert lz.isfinite(p.grad).all()
