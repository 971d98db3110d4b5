"""Attributes of a module that is built already: what forward() reads of them counts from then on."""

import copy
import pickle

import numpy as np
import pytest

import lazuli as lz
from lazuli import nn

X = lz.tensor(np.linspace(-2, 2, 2 * 4 * 4 * 4, dtype=np.float32).reshape(2, 4, 4, 4))
ROWS = lz.tensor([[1, 2], [0, 3]])

# A layer as it is made, what is set, and the layer that is made so from the start; each of them on X.
CHANGES = {
    "Dropout(0.5)": ({"p": 0.0}, "Dropout(0.0)"), "AvgPool2d(2)": ({"kernel_size": 3, "stride": 1, "padding": 1, "count_include_pad": False},
                                                                 "AvgPool2d(3, 1, 1, count_include_pad=False)"),
    "MaxPool2d(2)": ({"kernel_size": 3, "stride": (1, 2), "padding": 1, "ceil_mode": True}, "MaxPool2d(3, (1, 2), 1, ceil_mode=True)"),
    "AdaptiveAvgPool2d(2)": ({"output_size": (None, 1)}, "AdaptiveAvgPool2d((4, 1))"),
    "AdaptiveAvgPool2d((None, 1))": ({"output_size": 2}, "AdaptiveAvgPool2d(2)"), "AdaptiveAvgPool3d(2)": ({"output_size": (1, 2, 1)}, "AdaptiveAvgPool3d((1, 2, 1))"),
    "PixelShuffle(1)": ({"upscale_factor": 2}, "PixelShuffle(2)"), "PixelUnshuffle(1)": ({"downscale_factor": 2}, "PixelUnshuffle(2)"),
    "ChannelShuffle(1)": ({"groups": 2}, "ChannelShuffle(2)"), "Flatten()": ({"start_dim": 0, "end_dim": 2}, "Flatten(0, 2)"),
    "BatchNorm2d(4)": ({"eps": 0.5}, "BatchNorm2d(4, eps=0.5)"), "LayerNorm(4)": ({"eps": 0.5}, "LayerNorm(4, eps=0.5)"),
    "LayerNorm(4, elementwise_affine=False)": ({"normalized_shape": (4, 4)}, "LayerNorm((4, 4), elementwise_affine=False)"),
    "GroupNorm(2, 4)": ({"num_groups": 4, "eps": 0.5}, "GroupNorm(4, 4, eps=0.5)"), "RMSNorm(4)": ({"eps": 0.5}, "RMSNorm(4, eps=0.5)"),
    "Softmax(0)": ({"dim": 1}, "Softmax(1)"), "LogSoftmax(0)": ({"dim": 1}, "LogSoftmax(1)"), "Softmin(0)": ({"dim": 1}, "Softmin(1)"),
    "GELU()": ({"approximate": "tanh"}, "GELU('tanh')"), "LeakyReLU()": ({"negative_slope": 0.5}, "LeakyReLU(0.5)"), "ELU()": ({"alpha": 2.0}, "ELU(2.0)"),
    "CELU()": ({"alpha": 2.0}, "CELU(2.0)"), "Softplus()": ({"beta": 2.0, "threshold": 1.0}, "Softplus(2.0, 1.0)"),
    "Hardtanh()": ({"min_val": -0.5, "max_val": 0.25}, "Hardtanh(-0.5, 0.25)"), "Threshold(0.0, 1.0)": ({"threshold": 1.0, "value": 3.0}, "Threshold(1.0, 3.0)"),
    "Hardshrink()": ({"lambd": 1.0}, "Hardshrink(1.0)"), "Softshrink()": ({"lambd": 1.0}, "Softshrink(1.0)"), "GLU()": ({"dim": 1}, "GLU(1)"),
}


def make(text):
    return eval(f"nn.{text}", {"nn": nn})


@pytest.mark.parametrize("before", CHANGES)
def test_a_layer_computes_with_what_is_set(before):
    settings, after = CHANGES[before]
    layer, like = make(before), make(after)
    assert [before] and layer(X).shape is not None  # it has been called before
    for name, value in settings.items():
        setattr(layer, name, value)
        assert getattr(layer, name) == value
    assert lz.equal(layer(X), like(X))
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert lz.equal(again(X), like(X)) and repr(again) == repr(layer)


def test_a_convolution_keeps_its_weights():
    layer = nn.Conv2d(4, 4, 3)
    weight, bias = layer.weight, layer.bias
    layer.stride, layer.padding, layer.dilation = 2, (1, 0), (2, 1)
    assert lz.equal(layer(X), lz.conv2d(X, weight, bias, stride=2, padding=(1, 0), dilation=(2, 1)))
    layer.stride, layer.dilation, layer.padding, layer.padding_mode = 1, 1, 1, "circular"
    assert lz.equal(layer(X), lz.conv2d(nn.functional.pad(X, (1, 1, 1, 1), "circular"), weight, bias))
    layer.padding_mode, layer.padding, layer.groups = "zeros", "valid", 2
    layer.weight = nn.Parameter(weight[:, :2].detach().clone())
    assert lz.equal(layer(X), lz.conv2d(X, layer.weight, bias, groups=2)) and layer.bias is bias
    state = lz.random.get_rng_state()
    layer.groups = 1
    assert lz.equal(lz.random.get_rng_state(), state)  # nothing was drawn for it


def test_batch_norm_follows_momentum_and_tracking():
    layer = nn.BatchNorm2d(4)
    layer.momentum = 1.0
    layer(X)
    assert lz.allclose(layer.running_mean, X.mean((0, 2, 3)), atol=1e-6) and layer.num_batches_tracked.item() == 1
    layer.momentum = None
    layer(X * 3)
    assert lz.allclose(layer.running_mean, 2 * X.mean((0, 2, 3)), atol=1e-6)
    layer.track_running_stats = False
    before = layer.running_mean.tolist()
    layer(X)
    assert layer.running_mean.tolist() == before and layer.num_batches_tracked.item() == 2
    layer.eval()
    expected = (X - layer.running_mean.view(1, 4, 1, 1)) / (layer.running_var.view(1, 4, 1, 1) + 1e-5).sqrt()
    assert lz.allclose(layer(X), expected, atol=1e-5)  # what it has is still read


def test_an_embedding_becomes_one_with_limited_rows():
    layer = nn.Embedding(4, 2)
    layer.max_norm = 0.1
    assert layer(ROWS).norm(dim=-1).max().item() < 0.1001 and layer.weight.norm(dim=-1).max().item() < 0.1001
    layer.max_norm, layer.padding_idx = None, 1
    layer(ROWS).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1], [0, 0], [1, 1], [1, 1]]
    pool = nn.MaxPool2d(2)
    pool.return_indices = True
    assert pool(X)[1].dtype == lz.int64
    pool.return_indices = False
    assert lz.equal(pool(X), nn.functional.max_pool2d(X, 2)) and type(pool) is nn.MaxPool2d


def test_values_that_no_layer_has_are_refused():
    layer = nn.Dropout(0.5)
    with pytest.raises(ValueError, match="Dropout: p is 2, it must be a probability from 0 to 1"):
        layer.p = 2.0
    assert layer.p == 0.5
    with pytest.raises(TypeError):
        nn.LayerNorm(4).eps = "small"


def test_what_says_sizes_is_kept_and_changes_nothing():
    layer = nn.Linear(4, 3)
    before = layer(X)
    layer.in_features, layer.out_features = 7, 9
    assert (layer.in_features, layer.out_features) == (7, 9) and lz.equal(layer(X), before)


def test_modules_in_a_module_are_set_as_others():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm2d(4))

        def forward(self, x):
            return self.body(x)

    net = Net()
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, nn.BatchNorm2d):
            module.training = False
    assert net.training and not net.body[1].training and lz.allclose(net(X), X, atol=1e-4)
    net.body.training = False  # of this one alone
    assert net.training and net.body[0].training and not net.body[1].training
    net.train()
    assert net.body[1].training


def test_an_object_may_have_a_forward_of_its_own():
    layer = nn.ReLU()
    layer.forward = lambda x: x + 1
    assert lz.equal(layer(X), X + 1) and isinstance(layer, nn.ReLU) and repr(layer) == "ReLU()"
    del layer.forward
    assert lz.equal(layer(X), X.relu())


def test_bounds_of_relu6_are_fixed():
    with pytest.raises(ValueError, match="ReLU6: max_val is fixed; Hardtanh takes it"):
        nn.ReLU6().max_val = 3.0


def test_a_forward_that_is_set_on_the_class_of_a_layer_is_called(monkeypatch):
    plain, layer, x = nn.Linear.forward, nn.Linear(2, 3), lz.ones(1, 2)
    expected = layer(x)
    for _ in range(2):
        monkeypatch.setattr(nn.Linear, "forward", lambda self, x: plain(self, x) * 2)
        assert (layer(x) == expected * 2).all() and (nn.Sequential(layer, nn.Identity())(x) == expected * 2).all()
        monkeypatch.undo()
        assert (layer(x) == expected).all()
