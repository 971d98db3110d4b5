"""Recurrent layers and packed sequences. Values beside PyTorch's: tests/peers/torch_recurrent_test.py."""

import copy
import pickle
import warnings

import lazuli as lz
import numpy as np
import pytest
from lazuli import nn
from lazuli.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, unpack_sequence


def test_layers_show_their_arguments_and_name_their_weights():
    layer = nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True, proj_size=2, bias=False)
    assert repr(layer) == "LSTM(3, 4, proj_size=2, num_layers=2, bias=False, batch_first=True, bidirectional=True)"
    assert list(layer.state_dict())[:4] == ["weight_ih_l0", "weight_hh_l0", "weight_hr_l0", "weight_ih_l0_reverse"]
    assert tuple(layer.weight_ih_l1.shape) == (16, 4) and len(layer.all_weights) == 4
    assert repr(nn.RNN(3, 4, nonlinearity="relu")) == "RNN(3, 4)"


def test_dropout_of_one_layer_warns():
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers greater than 1"):
        nn.GRU(3, 4, dropout=0.5)


def test_copies_compute_the_same():
    layer, x = nn.GRU(3, 4, num_layers=2), lz.randn(5, 2, 3)
    expected = layer(x)[0].tolist()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other(x)[0].tolist() == expected


def test_a_weight_that_is_replaced_is_used():
    layer, x = nn.RNN(1, 1, bias=False), lz.ones(1, 1, 1)
    layer.weight_ih_l0 = nn.Parameter(lz.zeros(1, 1))
    assert layer(x)[0].item() == 0


def test_packed_data_go_step_by_step():
    x = lz.tensor([[1.0, 2, 3], [4, 0, 0], [5, 6, 0]])
    packed = pack_padded_sequence(x, [3, 1, 2], batch_first=True, enforce_sorted=False)
    assert packed.data.tolist() == [1, 5, 4, 2, 6, 3] and packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [0, 2, 1] and packed.unsorted_indices.tolist() == [0, 2, 1]
    data, sizes, *_ = PackedSequence(packed.data + 10, *packed[1:])
    padded, lengths = pad_packed_sequence(PackedSequence(data, sizes, *packed[2:]), batch_first=True, padding_value=-1)
    assert padded.tolist() == [[11, 12, 13], [14, -1, -1], [15, 16, -1]] and lengths.tolist() == [3, 1, 2]


def test_sequences_come_back_from_a_pack():
    sequences = [lz.arange(n) for n in (2, 4, 1)]
    assert [s.tolist() for s in unpack_sequence(pack_sequence(sequences, enforce_sorted=False))] == [[0, 1], [0, 1, 2, 3], [0]]


def test_what_lies_beyond_the_end_does_not_count():
    """Not even NaN, neither in results nor in gradients."""
    layer, values = nn.LSTM(2, 3), np.random.default_rng(0).standard_normal((4, 2, 2)).astype(np.float32)
    results = []
    for beyond in (0, np.nan):
        values[2:, 1] = beyond
        y, _ = layer(pack_padded_sequence(lz.tensor(values), [4, 2]))
        results.append([y.data, *lz.autograd.grad((y.data ** 2).sum(), list(layer.parameters()))])
    for a, b in zip(*results, strict=True):
        assert a.tolist() == b.tolist()


def test_steps_with_other_lengths_compile_nothing():
    layer = nn.GRU(3, 4)
    optimizer = lz.optim.SGD(layer.parameters(), 0.1)

    def step(lengths):
        optimizer.zero_grad()
        y, last = layer(pack_padded_sequence(lz.randn(5, 3, 3), lengths, enforce_sorted=False))
        (pad_packed_sequence(y)[0] ** 2).sum().backward()
        optimizer.step()
        lz.sync()

    for lengths in ([5, 2, 1], [1, 5, 4]):
        step(lengths)
    compiled = lz.metrics.counter("UncachedCompile")
    for lengths in ([4, 2, 5], [5, 5, 5]):
        step(lengths)
    assert lz.metrics.counter("UncachedCompile") == compiled


def test_a_long_sequence_is_a_loop():
    """The graph does not grow with the steps."""
    def nodes(steps):
        layer.zero_grad()
        before = lz.metrics.counter("graph.nodes_recorded")
        nn.functional.mse_loss(layer(lz.ones(steps, 1, 3))[0], lz.zeros(steps, 1, 4)).backward()
        return lz.metrics.counter("graph.nodes_recorded") - before

    layer = nn.LSTM(3, 4)
    assert nodes(3) == nodes(300)


def test_attributes_that_torch_does_not_read_have_no_effect():
    layer, x = nn.LSTM(3, 4), lz.ones(2, 1, 3)
    expected = layer(x)[0].tolist()
    layer.mode, layer.proj_size = "GRU", -1
    assert layer(x)[0].tolist() == expected
    layer = nn.RNN(3, 4)
    layer.mode = "nearest"
    with pytest.raises(ValueError, match="RNN: Unrecognized RNN mode: nearest"):
        layer(x)


def test_mistakes_are_named():
    with pytest.raises(RuntimeError, match="Expected hidden size \\(1, 2, 4\\), got \\[1, 5, 4\\]"):
        nn.GRU(3, 4)(lz.zeros(2, 2, 3), lz.zeros(1, 5, 4))
    with pytest.raises(ValueError, match="proj_size has to be smaller than hidden_size"):
        nn.LSTM(3, 4, proj_size=4)
    with pytest.raises(ValueError, match="input_size must be greater than zero"):
        nn.GRU(0, 4)
    with pytest.raises(TypeError, match="batch_first should be of type bool, got: int"):
        nn.RNN(3, 4, batch_first=1)
    with pytest.raises(RuntimeError, match="`lengths` array must be sorted in decreasing order"):
        pack_padded_sequence(lz.zeros(4, 2, 1), [1, 2])
    with pytest.raises(RuntimeError, match="a length of 5 is above the 4 steps of the input"), warnings.catch_warnings():
        pack_padded_sequence(lz.zeros(4, 2, 1), [5, 2])
