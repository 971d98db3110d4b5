"""What is done to modules besides training them: parametrizations, fusion, calls with other tensors, lazy layers, and mistakes."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import lazuli as lz
from lazuli.nn.utils import parametrizations, parametrize


class Symmetric(lz.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()

    def right_inverse(self, x):
        return x.triu()


class Mine(lz.nn.Linear):
    """A class that derives from a layer of C++."""

    def __init__(self, size):
        super().__init__(size, size)
        self.scale = lz.nn.Parameter(lz.ones(1) * 2)

    def forward(self, x):
        return super().forward(x) * self.scale


def test_a_parametrized_layer_computes_its_weight_and_trains_the_original():
    layer = parametrize.register_parametrization(lz.nn.Linear(3, 3), "weight", Symmetric())
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert layer.weight.tolist() == layer.weight.t().tolist()
    x = lz.randn(2, 3)
    np.testing.assert_allclose(layer(x).detach().numpy(), x.numpy() @ layer.weight.detach().numpy() + layer.bias.detach().numpy(), rtol=1e-5)
    layer(x).sum().backward()
    original = layer.parametrizations.weight.original
    assert original.grad is not None and (original.grad.tril(-1) == 0).all().item()
    assert repr(layer).startswith("ParametrizedLinear(\n  in_features=3, out_features=3, bias=True\n  (parametrizations): ModuleDict(")

    wanted = lz.tensor([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
    layer.weight = wanted
    assert layer.weight.tolist() == wanted.tolist() and original.tolist() == wanted.triu().tolist()
    twin = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is lz.nn.Linear and layer.weight.tolist() == wanted.tolist() and set(layer.state_dict()) == {"weight", "bias"}
    assert layer.weight.requires_grad and lz.optim.SGD(layer.parameters(), lr=0.1)
    assert parametrize.is_parametrized(twin, "weight") and twin(x).tolist() == layer(x).tolist()
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(twin)


def test_parametrizations_follow_one_another_and_are_checked():
    class Double(lz.nn.Module):
        def forward(self, x):
            return 2 * x

    class Net(lz.nn.Module):
        def __init__(self):
            super().__init__()
            self.p = lz.nn.Parameter(lz.ones(2, 2))

    net = Net()
    parametrize.register_parametrization(net, "p", Double())
    parametrize.register_parametrization(net, "p", Symmetric())
    assert net.p.tolist() == [[2, 2], [2, 2]] and parametrize.type_before_parametrizations(net) is Net
    with parametrize.cached():
        assert net.p is net.p
    assert net.p is not net.p
    with pytest.raises(ValueError, match="may not change the shape of the tensor, unless `unsafe` flag is enabled: "):
        parametrize.register_parametrization(net, "p", lz.nn.Flatten(0))
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element with name 'q'"):
        parametrize.register_parametrization(net, "q", Double())
    parametrize.remove_parametrizations(net, "p", leave_parametrized=False)
    assert type(net) is Net and net.p.tolist() == [[1, 1], [1, 1]]


def test_weights_by_length_and_of_spectral_norm_one():
    layer = lz.nn.Linear(4, 3)
    weight = layer.weight.detach().numpy().copy()
    lz.nn.utils.weight_norm(layer)
    length = np.sqrt((weight**2).sum(1, keepdims=True))
    np.testing.assert_allclose(layer.parametrizations.weight.original0.detach().numpy(), length, rtol=1e-6)
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight, rtol=1e-5)
    lz.nn.utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight, rtol=1e-5)
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        lz.nn.utils.remove_weight_norm(layer)
    with pytest.raises(TypeError, match="name must be a str, not list_iterator"):
        lz.nn.utils.remove_weight_norm(layer, iter([1]))

    conv = parametrizations.spectral_norm(lz.nn.Conv2d(2, 3, 2), n_power_iterations=5)
    for _ in range(3):
        conv(lz.ones(1, 2, 4, 4))
    assert abs(np.linalg.norm(conv.eval().weight.detach().numpy().reshape(3, -1), 2) - 1) < 1e-3
    assert list(conv.state_dict()) == ["bias", "parametrizations.weight.original", "parametrizations.weight.0._u", "parametrizations.weight.0._v"]


def test_parameters_are_one_row_and_gradients_have_one_norm():
    net = lz.nn.Sequential(lz.nn.Linear(2, 3), lz.nn.Linear(3, 1))
    row = lz.nn.utils.parameters_to_vector(net.parameters())
    assert row.shape == (13,)
    lz.nn.utils.vector_to_parameters(lz.arange(13.0), net.parameters())
    assert net[0].bias.tolist() == [6, 7, 8] and net[1].weight.tolist() == [[9, 10, 11]]
    for p in net.parameters():
        p.grad = lz.ones_like(p)
    gradients = [p.grad for p in net.parameters()]
    assert abs(lz.nn.utils.get_total_norm(gradients).item() - 13**0.5) < 1e-6
    assert abs(lz.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0, error_if_nonfinite=True, foreach=True).item() - 13**0.5) < 1e-5
    assert abs(lz.nn.utils.get_total_norm([p.grad for p in net.parameters()]).item() - 1) < 1e-5
    lz.nn.utils.clip_grad_value_(net[1].weight, clip_value=0.1)
    assert net[1].weight.grad.max().item() == pytest.approx(0.1)
    net[0].bias.grad = lz.tensor([1.0, float("inf"), 0])
    with pytest.raises(RuntimeError, match="non-finite"):
        lz.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)


def test_a_normalisation_is_taken_into_the_layer_before_it():
    conv, norm = lz.nn.Conv2d(2, 3, 2), lz.nn.BatchNorm2d(3)
    for _ in range(2):
        norm(conv(lz.randn(4, 2, 5, 5)))
    x = lz.randn(4, 2, 5, 5)
    with pytest.raises(AssertionError, match="eval"):
        lz.nn.utils.fuse_conv_bn_eval(conv, norm)
    conv.eval(), norm.eval()
    np.testing.assert_allclose(lz.nn.utils.fuse_conv_bn_eval(conv, norm)(x).detach().numpy(), norm(conv(x)).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_call_with_other_tensors_leaves_the_module_as_it_is():
    net = lz.nn.Sequential(lz.nn.Linear(2, 2), lz.nn.BatchNorm1d(2), Mine(2)).eval()
    before, weight, x = {k: v.clone() for k, v in net.state_dict().items()}, net[0].weight, lz.randn(3, 2)
    others = {k: v * 2 if v.dtype.is_floating_point else v for k, v in before.items()}
    fresh = copy.deepcopy(net)
    fresh.load_state_dict(others)
    found = lz.func.functional_call(net, others, (x,))
    np.testing.assert_allclose(found.detach().numpy(), fresh(x).detach().numpy(), rtol=1e-5)
    assert net[0].weight is weight and {k: v.tolist() for k, v in net.state_dict().items()} == {k: v.tolist() for k, v in before.items()}
    leaf = lz.randn(2, 2).requires_grad_()
    lz.func.functional_call(net, {"0.weight": leaf}, x).sum().backward()
    assert leaf.grad is not None and net[0].weight.grad is None
    with pytest.raises(RuntimeError, match="unexpected keys .*'0.wight'"):
        lz.func.functional_call(net, {"0.wight": leaf}, x, strict=True)


@pytest.mark.parametrize("make,shape,text", [
    (lambda: lz.nn.LazyLinear(3), (2, 4), "Linear(in_features=4, out_features=3, bias=True)"),
    (lambda: lz.nn.LazyConv2d(4, 3, groups=2), (1, 6, 5, 5), "Conv2d(6, 4, kernel_size=(3, 3), stride=(1, 1), groups=2)"),
    (lambda: lz.nn.LazyConv1d(2, 3), (1, 5, 8), "Conv1d(5, 2, kernel_size=(3,), stride=(1,))"),
    (lambda: lz.nn.LazyConvTranspose2d(2, 2), (1, 3, 4, 4), "ConvTranspose2d(3, 2, kernel_size=(2, 2), stride=(1, 1))"),
    (lambda: lz.nn.LazyBatchNorm1d(), (4, 7), "BatchNorm1d(7, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)")])
def test_lazy_layers_become_what_their_first_input_says(make, shape, text):
    layer = make()
    trained = list(layer.parameters())
    assert layer.has_uninitialized_params()
    x = lz.randn(*shape)
    y = layer(x)
    assert type(layer).__name__ == text.partition("(")[0] and repr(layer) == text
    assert [p is q for p, q in zip(trained, layer.parameters(), strict=True)] == [True] * len(trained)
    y.sum().backward()
    assert trained[0].grad.shape == trained[0].shape
    layer.eval()
    assert pickle.loads(pickle.dumps(layer))(x).tolist() == layer(x).tolist()


def test_what_derives_from_a_layer_is_copied_and_pickled():
    layer = Mine(3)
    x = lz.randn(2, 3)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(twin) is Mine and twin(x).tolist() == layer(x).tolist() and list(twin.state_dict()) == list(layer.state_dict())
        assert not twin.weight.is_same(layer.weight)


@pytest.mark.parametrize("make,options", [
    ("Linear", {"in_features": 2, "out_features": 3}), ("Conv2d", {"in_channels": 1, "out_channels": 2, "kernel_size": 3}), ("LayerNorm", {"normalized_shape": 4}),
    ("Embedding", {"num_embeddings": 4, "embedding_dim": 2}), ("BatchNorm3d", {"num_features": 2}), ("PReLU", {}), ("RMSNorm", {"normalized_shape": 4})])
def test_layers_take_a_dtype_and_draw_their_parameters_anew(make, options):
    layer = getattr(lz.nn, make)(**options, dtype=lz.float64, device="cpu")
    assert {p.dtype for p in layer.parameters()} == {lz.float64}
    before = layer.weight.clone()
    with lz.no_grad():
        layer.weight.fill_(7)
    layer.reset_parameters()
    assert (layer.weight != 7).all().item() and layer.weight.shape == before.shape


def test_running_statistics_without_momentum_are_means_over_batches():
    norm = lz.nn.BatchNorm1d(2, momentum=None, bias=False)
    a, b = lz.tensor([[0.0, 2], [2, 4]]), lz.tensor([[4.0, 0], [8, 0]])
    norm(a), norm(b)
    np.testing.assert_allclose(norm.running_mean.numpy(), [3.5, 1.5])
    assert norm.bias is None and norm.num_batches_tracked.item() == 2


def test_an_f64_input_does_not_make_the_model_f64():
    x = lz.tensor(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"linear: x is f64\[2,3\], but weight is f32\[4,3\]: both must be of one dtype"):
        lz.nn.Linear(3, 4)(x)
    with pytest.raises(RuntimeError, match="conv2d: x is f64"):
        lz.nn.Conv2d(1, 1, 1)(x.reshape(1, 1, 2, 3))
    assert lz.nn.Linear(3, 4, dtype=lz.float64)(x).dtype == lz.float64


def test_what_takes_the_place_of_trained_parameters_is_told():
    class Net(lz.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = lz.nn.Linear(2, 2)

    net = Net()
    net.fc = lz.nn.Linear(2, 3)  # before there is an optimiser
    opt = lz.optim.SGD(net.parameters(), lr=0.1)
    with pytest.warns(UserWarning, match="Net.fc takes the place of what SGD trains") as told:
        net.fc = lz.nn.Linear(2, 4)
    assert told[0].filename == __file__
    del opt
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.fc = lz.nn.Linear(2, 5)


def test_modules_in_a_list_are_told():
    class Net(lz.nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.first = lz.nn.Linear(2, 2)
            self.layers = kind([lz.nn.Linear(2, 2)])
            self.known = [self.first]

    with pytest.warns(UserWarning, match="Net.layers is a list of modules or parameters, which registers none of them: .* make it a ModuleList"):
        lz.optim.SGD(Net(list).parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(Net(list).parameters())  # once is enough
        Net(tuple).state_dict()
        list(Net(lz.nn.ModuleList).parameters())


def test_a_typo_says_what_is_meant():
    with pytest.raises(TypeError, match="Linear: there is no argument 'biass', did you mean 'bias'?"):
        lz.nn.Linear(1, 2, biass=False)
    with pytest.raises(AttributeError) as error:
        lz.nn.Linear(1, 2).wieght
    assert error.value.name == "wieght" and error.value.obj is not None  # from which Python says it


def test_notebooks_show_tables():
    text = lz.tensor([[1.5, -2], [0, 3]])._repr_html_()
    assert text == "<table><tr><td>1.5000</td><td>-2.0000</td></tr><tr><td>0.0000</td><td>3.0000</td></tr></table><p>lazuli.float32 [2, 2]</p>"
    assert lz.zeros(40, 40)._repr_html_().count("<td>&hellip;</td>") == 7 + 6
    assert lz.ones(2, 2, 2)._repr_html_().startswith("<pre>tensor([[[1., 1.],")
    net = lz.nn.Sequential(lz.nn.Linear(2, 3), lz.nn.Tanh())._repr_html_()
    assert "<td>0</td><td>Linear(in_features=2, out_features=3, bias=True)</td><td>9</td>" in net and "<th>all</th><th></th><th>9</th>" in net


def test_there_is_no_gpu_to_ask_for():
    assert not lz.cuda.is_available() and lz.cuda.device_count() == 0
    lz.cuda.manual_seed_all(1)
    with pytest.raises(NotImplementedError, match="there is no GPU"):
        lz.cuda.current_device()
