#!/usr/bin/env python3
"""Attention of random masks and sizes gives what torch's gives, forward and backward: the cases of tests/fuzz/attention.py.

    torch_attention_test.py FOLDER [CASES [SEED]]

FOLDER holds the package lazuli, as build/PRESET/python does. The layers of transformers get the masks, too.
"""

import pathlib
import sys
import warnings

import numpy as np
import torch
from cases import report

FOLDER, *GIVEN = sys.argv[1:]
CASES, SEED = (*map(int, GIVEN), *(100, 0)[len(GIVEN):])
sys.path[:0] = [FOLDER, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz")]
import attention  # noqa: E402

import lazuli  # noqa: E402

warnings.filterwarnings("ignore")  # of torch: masks of two dtypes


def made(t, array, leaf=False):
    if array is None:
        return None
    x = t.tensor(array)
    x.requires_grad = leaf
    return x


def products(t, case):
    given = [made(t, x, True) for x in (case.q, case.k, case.v)]
    y = t.nn.functional.scaled_dot_product_attention(*given, made(t, case.attn_mask), 0.0, case.causal, scale=case.scale, enable_gqa=case.gqa)
    return [y, *t.autograd.grad(y, given, made(t, case.dy))]


def heads(t, case):
    layer = t.nn.MultiheadAttention(case.width, case.heads, batch_first=True).double()
    parameters = [layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias]
    with t.no_grad():
        for p, value in zip(parameters, case.weights, strict=True):
            p.copy_(t.tensor(value))
    given = [made(t, x, True) for x in (case.query, case.key, case.value)]
    y, weights = layer(*given, key_padding_mask=made(t, case.padding), need_weights=case.need_weights, attn_mask=made(t, case.attn_mask),
                       average_attn_weights=False)
    return [y, weights, *t.autograd.grad(y, given + parameters, made(t, case.dy))]


def layers(t, case):
    """An encoder and a decoder layer with the masks of a call of several heads."""
    width, draw = case.width, np.random.default_rng(0)
    encoder, decoder = (cls(width, case.heads, 2 * width, dropout=0.0, batch_first=True).double()
                        for cls in (t.nn.TransformerEncoderLayer, t.nn.TransformerDecoderLayer))
    parameters = [*encoder.parameters(), *decoder.parameters()]
    with t.no_grad():
        for p in parameters:
            p.copy_(t.tensor(draw.standard_normal(tuple(p.shape)) / 2))
    memory, target = made(t, case.key, True), made(t, case.query, True)
    memory_mask, padding = made(t, case.attn_mask), made(t, case.padding)
    encoded = encoder(memory, src_key_padding_mask=padding)
    y = decoder(target, encoded, memory_mask=memory_mask, memory_key_padding_mask=padding)
    return [encoded, y, *t.autograd.grad((encoded.sum() + (y * made(t, case.dy)).sum()), [memory, target, *parameters], allow_unused=True)]


def compare(run, case):
    try:
        expected = run(torch, case)
    except RuntimeError as refusal:  # a mask of two dims beside sizes of 0
        assert "-1 can be any value" in str(refusal), refusal
        return
    got = run(lazuli, case)
    for i, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        assert (ours is None) == (theirs is None), f"result {i} is {ours}, not {theirs}"
        if ours is None:
            continue
        ours, theirs = ours.detach().numpy(), theirs.detach().numpy()
        assert ours.shape == theirs.shape, f"result {i} is {ours.shape}, not {theirs.shape}"
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8, err_msg=f"result {i}")


def main():
    kinds = {"products": (products, attention.Products), "heads": (heads, attention.Heads), "layers": (layers, attention.Heads)}
    return report({f"{kind}, case {n} of seed {SEED}": lambda run=run, make=make, n=n: compare(run, make(SEED, n))
                   for kind, (run, make) in kinds.items() for n in range(CASES)}, "calls of attention")


if __name__ == "__main__":
    sys.exit(main())
