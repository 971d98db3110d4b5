"""What training needs besides layers: starting values, schedules, saving, the wider set of layers, losses and optimisers."""

import gc
import math
import pickle

import numpy as np
import pytest

import lazuli as lz


def test_starting_values_are_set_in_place_and_returned():
    t = lz.zeros(64, 32)
    assert lz.nn.init.uniform_(t, -2, 2) is t
    values = t.numpy()
    assert -2 <= values.min() < -1.9 and 1.9 < values.max() < 2
    lz.nn.init.normal_(t, mean=5, std=0.1)
    assert t.mean().item() == pytest.approx(5, abs=0.01)
    lz.nn.init.constant_(t, 3)
    assert t[0, 0].item() == 3
    lz.nn.init.eye_(t)
    assert t.sum().item() == 32
    lz.nn.init.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu")
    assert abs(t.numpy()).max() <= math.sqrt(6 / 64)
    assert lz.nn.init.calculate_gain("tanh") == pytest.approx(5 / 3)
    with pytest.raises(ValueError, match="'swish' is not a choice; there are 'linear', 'sigmoid'"):
        lz.nn.init.calculate_gain("swish")
    parameter = lz.nn.Linear(2, 2).weight
    lz.nn.init.zeros_(parameter)
    assert parameter.requires_grad and parameter.tolist() == [[0, 0], [0, 0]]


def test_gradients_are_clipped():
    net = lz.nn.Linear(2, 1, bias=False)
    (net(lz.tensor([[3.0, 4.0]]))).sum().backward()
    assert lz.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1).item() == pytest.approx(5)
    assert net.weight.grad.tolist()[0] == pytest.approx([0.6, 0.8], rel=1e-5)
    assert lz.nn.utils.clip_grad_value_(net.parameters(), 0.7) is None
    assert net.weight.grad.tolist()[0] == pytest.approx([0.6, 0.7], rel=1e-5)


LAYERS = {
    "AvgPool2d": (lambda: lz.nn.AvgPool2d(2), (1, 3, 4, 4), (1, 3, 2, 2)),
    "AdaptiveAvgPool2d": (lambda: lz.nn.AdaptiveAvgPool2d(output_size=1), (1, 3, 4, 4), (1, 3, 1, 1)),
    "BatchNorm1d": (lambda: lz.nn.BatchNorm1d(num_features=3), (5, 3), (5, 3)),
    "BatchNorm2d": (lambda: lz.nn.BatchNorm2d(3, momentum=0.5), (5, 3, 2, 2), (5, 3, 2, 2)),
    "Conv2d": (lambda: lz.nn.Conv2d(3, 2, kernel_size=(3, 1)), (1, 3, 4, 4), (1, 2, 2, 4)),
    "GroupNorm": (lambda: lz.nn.GroupNorm(num_groups=2, num_channels=4), (5, 4), (5, 4)),
    "LayerNorm": (lambda: lz.nn.LayerNorm([3, 2]), (5, 3, 2), (5, 3, 2)),
    "RMSNorm": (lambda: lz.nn.RMSNorm(3), (5, 3), (5, 3)),
    "PReLU": (lambda: lz.nn.PReLU(), (5, 3), (5, 3)),
    "Softmax": (lambda: lz.nn.Softmax(dim=-1), (5, 3), (5, 3)),
    "Softplus": (lambda: lz.nn.Softplus(beta=2), (5, 3), (5, 3)),
    "LeakyReLU": (lambda: lz.nn.LeakyReLU(0.1), (5, 3), (5, 3)),
    "Hardtanh": (lambda: lz.nn.Hardtanh(min_val=-2, max_val=2), (5, 3), (5, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_map_shapes_and_train(name):
    make, shape, wanted = LAYERS[name]
    layer, x = make(), lz.randn(*shape).requires_grad_()
    y = layer(x)
    assert y.shape == wanted and type(layer).__name__ == name
    (y * y).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    assert all(p.grad is not None for p in layer.parameters())


def test_batch_norm_keeps_running_statistics_as_buffers():
    norm = lz.nn.BatchNorm1d(2)
    norm(lz.tensor([[0.0, 10.0], [2.0, 30.0]]))
    assert norm.running_mean.tolist() == pytest.approx([0.1, 2.0])
    assert [name for name, _ in norm.named_buffers()] == ["running_mean", "running_var", "num_batches_tracked"]
    norm.eval()
    assert norm(lz.tensor([[0.1, 2.0]])).tolist()[0] == pytest.approx([0, 0], abs=1e-6)


def test_embedding_takes_indices():
    table = lz.nn.Embedding(num_embeddings=5, embedding_dim=3, padding_idx=0)
    rows = table(lz.tensor([[0, 2], [4, 4]]))
    assert rows.shape == (2, 2, 3) and rows[0, 0].tolist() == [0, 0, 0]


LOSSES = {
    "BCELoss": ([[0.25]], [[1.0]], -math.log(0.25)), "BCEWithLogitsLoss": ([[0.0]], [[1.0]], math.log(2)),
    "CrossEntropyLoss": ([[0.0, 0.0]], [1], math.log(2)), "HuberLoss": ([0.0], [3.0], 2.5),
    "KLDivLoss": ([0.0], [0.5], 0.5 * math.log(0.5)), "L1Loss": ([1.0], [3.0], 2), "MSELoss": ([1.0], [3.0], 4),
    "NLLLoss": ([[-1.0, -2.0]], [1], 2), "SmoothL1Loss": ([0.0], [3.0], 2.5),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    x, target, wanted = LOSSES[name]
    assert getattr(lz.nn, name)()(lz.tensor(x), lz.tensor(target)).item() == pytest.approx(wanted, rel=1e-6)


def trained(make):
    lz.manual_seed(3)
    net = lz.nn.Sequential(lz.nn.Linear(4, 8), lz.nn.SiLU(), lz.nn.Linear(8, 1))
    opt = make(net.parameters())
    x = lz.randn(32, 4)
    y = (x * x).sum(1, keepdim=True)

    def steps(n):
        for _ in range(n):
            opt.zero_grad()
            loss = lz.nn.functional.mse_loss(net(x), y)
            loss.backward()
            opt.step()
            lz.mark_step()
        return loss.item()

    return net, opt, steps


OPTIMIZERS = {
    "SGD": lambda p: lz.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
    "Adam": lambda p: lz.optim.Adam(p, lr=0.02, betas=[0.8, 0.99], amsgrad=True),
    "AdamW": lambda p: lz.optim.AdamW(p, lr=0.02, weight_decay=0.1),
    "RMSprop": lambda p: lz.optim.RMSprop(p, lr=0.01, centered=True),
    "Adagrad": lambda p: lz.optim.Adagrad(params=p, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimisers_learn_and_go_on_from_their_state(name, tmp_path):
    net, opt, steps = trained(OPTIMIZERS[name])
    assert steps(30) < 0.7 * trained(OPTIMIZERS[name])[2](1)
    lz.nn.save(net, tmp_path / "net.safetensors")
    lz.optim.save(opt, tmp_path / "opt.safetensors")
    state = pickle.loads(pickle.dumps(opt.state_dict()))
    wanted = steps(5)

    again, again_opt, again_steps = trained(OPTIMIZERS[name])
    assert lz.nn.load(again, tmp_path / "net.safetensors") == ([], [])
    lz.optim.load(again_opt, tmp_path / "opt.safetensors")
    assert again_steps(5) == wanted

    again.load_state_dict(lz.load_safetensors(tmp_path / "net.safetensors"))
    again_opt.load_state_dict(state)
    assert again_steps(5) == wanted


def test_files_are_safetensors(tmp_path):
    path = tmp_path / "a.safetensors"
    lz.save_safetensors({"x": lz.tensor([1.0, 2.0]), "y": lz.tensor([3])}, path)
    state = lz.load_safetensors(path, device="interpreter")
    assert state["x"].tolist() == [1, 2] and state["y"].dtype == lz.int64 and state["y"].device.name == "interpreter:0"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"a.safetensors.*\(training_test.py:\d+\)"):
        lz.load_safetensors(path)
    with pytest.raises(RuntimeError, match="nowhere"):
        lz.load_safetensors("nowhere")


@pytest.mark.parametrize("state, kind, message", [
    ({"__metadata__": lz.ones(2)}, ValueError, "save_safetensors: '__metadata__' is the name of the texts about the tensors, a dict of str to str, "
                                               "and cannot be that of a lazuli.Tensor"),
    ({"__metadata__": {"a": 1}}, ValueError, "save_safetensors: '__metadata__' is the name of the texts about the tensors, a dict of str to str, "
                                             "and its 'a' is of type int"),
    ({1: lz.ones(2)}, TypeError, "save_safetensors: names must be str, not int"),
    ({"a": object()}, TypeError, "save_safetensors: 'a' must be a Tensor or an array, not object"),
    ({"a": [[1, 2], [3]]}, TypeError, "save_safetensors: 'a' must be a Tensor or an array, not list")])
def test_what_is_no_state_is_not_saved(tmp_path, state, kind, message):
    with pytest.raises(kind) as error:
        lz.save_safetensors(state, tmp_path / "a.safetensors")
    assert str(error.value).startswith(message)
    assert not (tmp_path / "a.safetensors").exists()


def test_texts_and_lists_are_saved(tmp_path):
    for path in (tmp_path / "a.safetensors", str(tmp_path / "b"), bytes(tmp_path / "c")):
        lz.save_safetensors({"__metadata__": {"made": "today"}, "a": [1.0, 2.0]}, path)
        state = lz.load_safetensors(path)
        assert state["a"].tolist() == [1, 2] and state["__metadata__"] == {"made": "today"}


def test_loading_says_what_does_not_fit_and_changes_nothing():
    net = lz.nn.Linear(2, 2)
    before = net.weight.tolist()
    with pytest.raises(ValueError, match=r"Missing key\(s\) in state_dict: \"bias\""):
        net.load_state_dict({"weight": lz.zeros(2, 2)})
    with pytest.raises(ValueError, match="weight"):
        net.load_state_dict({"weight": lz.zeros(3, 2), "bias": lz.zeros(2)})
    assert net.weight.tolist() == before
    assert net.load_state_dict({"weight": np.zeros((2, 2), np.float32), "scale": lz.zeros(1)}, strict=False) == \
        (["bias"], ["scale"])
    assert net.weight.tolist() == [[0, 0], [0, 0]]


SCHEDULES = {
    "StepLR": (dict(step_size=2, gamma=0.5), [1, 1, 0.5, 0.5]),
    "MultiStepLR": (dict(milestones=[1, 3], gamma=0.5), [1, 0.5, 0.5, 0.25]),
    "ExponentialLR": (dict(gamma=0.5), [1, 0.5, 0.25, 0.125]),
    "CosineAnnealingLR": (dict(T_max=2), [1, 0.5, 0, 0.5]),
    "LinearLR": (dict(start_factor=0.5, total_iters=2), [0.5, 0.75, 1, 1]),
    "PolynomialLR": (dict(total_iters=2), [1, 0.5, 0, 0]),
    "OneCycleLR": (dict(max_lr=1, total_steps=4, anneal_strategy="linear"), None),
    "LambdaLR": (dict(lr_lambda=lambda t: 1 / (t + 1)), [1, 1 / 2, 1 / 3, 1 / 4]),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_set_learning_rates(name):
    options, wanted = SCHEDULES[name]
    schedule = getattr(lz.optim, name)(lz.optim.SGD([lz.nn.Parameter(lz.ones(1))], lr=1.0), **options)
    gc.collect()  # the schedule keeps its optimiser
    rates = []
    for _ in range(4):
        rates += schedule.get_last_lr()
        if len(rates) < 4:
            schedule.optimizer.step()
            schedule.step()
    assert schedule.last_epoch == 3 and len(set(rates)) > 1
    if wanted is not None:
        assert rates == pytest.approx(wanted, abs=1e-12)


def test_schedules_follow_each_other_and_metrics():
    opt = lz.optim.SGD([lz.nn.Parameter(lz.ones(1))], lr=1.0)
    schedule = lz.optim.SequentialLR(opt, [lz.optim.LinearLR(opt, 0.5, total_iters=2), lz.optim.ExponentialLR(opt, 0.5)], [2])
    rates = [opt.lr]
    for _ in range(3):
        opt.step()
        schedule.step()
        rates.append(opt.lr)
    assert rates == pytest.approx([0.5, 0.75, 1, 0.5])
    plateau = lz.optim.ReduceLROnPlateau(opt, factor=0.1, patience=0)
    plateau.step(1.0)
    plateau.step(2.0)
    assert opt.lr == pytest.approx(0.05) and plateau.best == 1
    with pytest.raises(TypeError, match="a schedule is of an Optimizer, not of int"):
        lz.optim.StepLR(3, 2)


def test_data_sets_of_arrays_repeat_and_split():
    x, y = np.arange(10, dtype=np.float32), np.arange(10)
    data = lz.data.TensorDataset(x, y)
    assert len(lz.data.Repeat(data, 3)) == 30
    first, second = lz.data.random_split(data, [7, 3], seed=1)
    picked = first.get(range(7))[1].tolist() + second.get(range(3))[1].tolist()
    assert sorted(picked) == list(range(10)) and picked != sorted(picked)
    with pytest.raises(ValueError, match="training_test.py"):
        lz.data.random_split(data, [7, 7])
    assert lz.data.Cifar10.classes()[0] == "airplane"
    with pytest.raises(RuntimeError, match=r"nowhere.*\(training_test.py:\d+\)"):
        lz.data.Cifar10("nowhere")
