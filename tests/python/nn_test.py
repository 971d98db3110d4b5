"""Modules, optimisers and data in Python."""

import copy
import inspect
import pickle
import threading

import numpy as np
import pytest

import lazuli as lz


class Net(lz.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = lz.nn.Sequential(lz.nn.Linear(4, 8), lz.nn.Tanh(), lz.nn.Linear(8, 3))
        self.scale = lz.nn.Parameter(lz.ones(1))
        self.steps = 0

    def forward(self, x):
        return self.body(x) * self.scale


def test_attributes_register_themselves_in_order():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert sorted(names) == ["body.0.bias", "body.0.weight", "body.2.bias", "body.2.weight", "scale"]
    assert net.num_parameters() == 4 * 8 + 8 + 8 * 3 + 3 + 1
    assert net.body[0].weight.name == "body.0.weight" and net.body[0].weight.shape == (8, 4)
    assert all(p.requires_grad for p in net.parameters())
    assert [name for name, _ in net.named_modules()] == ["", "body", "body.0", "body.1", "body.2"]
    assert lz.nn.Linear(2, 3, bias=False).bias is None
    assert isinstance(net.body[0], lz.nn.Module) and len(net.body) == 3


def test_shows_its_structure():
    text = repr(Net())
    assert text == ("Net(\n  (body): Sequential(\n    (0): Linear(in_features=4, out_features=8, bias=True)\n    (1): Tanh()\n"
                    "    (2): Linear(in_features=8, out_features=3, bias=True)\n  )\n)")


def test_a_module_needs_its_base():
    class Forgot(lz.nn.Module):
        def __init__(self):
            self.fc = lz.nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"Forgot: call super\(\).__init__\(\) before making 'fc'"):
        Forgot()


def test_options_are_keywords_with_the_defaults_of_cpp():
    assert "Linear(in_features, out_features, bias=True)" in lz.nn.Linear.__doc__
    assert "stride=1, padding=0, dilation=1, groups=1, bias=True" in lz.nn.Conv2d.__doc__
    with pytest.raises(TypeError, match="Linear: there is no argument 'biass'"):
        lz.nn.Linear(1, 2, biass=False)
    with pytest.raises(ValueError, match=r"Linear: in_features is 0, it must be at least 1 \(nn_test.py:\d+\)"):
        lz.nn.Linear(0, 2)
    opt = lz.optim.SGD(Net().parameters(), lr=0.5, momentum=0.9)
    assert opt.defaults["momentum"] == 0.9 and opt.defaults["nesterov"] is False and opt.lr == 0.5
    opt.lr = 0.25
    assert opt.param_groups[0]["lr"] == 0.25 and opt.param_groups[0]["momentum"] == 0.9
    with pytest.raises(ValueError, match="lr is at least 0, not -1"):
        opt.lr = -1
    with pytest.raises(TypeError, match="momentun"):
        lz.optim.SGD(Net().parameters(), momentun=0.1)


def test_a_layer_of_a_row_keeps_the_arguments_of_its_function():
    for wrong, said in ((lambda: lz.nn.MaxPool3d(), "missing a required argument: 'kernel_size'"),
                        (lambda: lz.nn.MaxPool3d(2, kernel_size=2), "multiple values for argument 'kernel_size'"),
                        (lambda: lz.nn.MaxPool3d(2, strid=1), "got an unexpected keyword argument 'strid'")):
        with pytest.raises(TypeError, match=f"^MaxPool3d: {said}"):
            wrong()
    assert repr(lz.nn.AvgPool1d(kernel=2)) == repr(lz.nn.AvgPool1d(kernel_size=2)) == repr(lz.nn.AvgPool1d(2))
    with pytest.raises(TypeError, match="^AvgPool1d: an argument is given twice, under both of its names"):
        lz.nn.AvgPool1d(kernel=2, kernel_size=2)
    assert str(inspect.signature(lz.nn.AvgPool1d)) == \
        "(kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True)"
    assert str(inspect.signature(lz.nn.UpsamplingNearest2d)) == "(size=None, scale_factor=None)"
    assert isinstance(lz.nn.UpsamplingNearest2d(4), lz.nn.Upsample)
    x = lz.arange(6.0).reshape(1, 1, 6)
    pool = lz.nn.AvgPool1d(2)
    assert (pool.kernel_size, pool.stride, pool.padding) == ((2,), (2,), (0,))
    pool.stride = 3  # counts from now on
    assert pool(input=x).tolist() == [[[0.5, 3.5]]] and repr(pool) == "AvgPool1d(kernel_size=(2,), stride=3, padding=(0,))"
    values, where = lz.nn.MaxPool1d(2, return_indices=True)(x)
    assert lz.nn.MaxUnpool1d(2)(values, where, (1, 1, 6)).tolist() == [[[0, 1, 0, 3, 0, 5]]]


def test_layers_written_in_python_draw_their_parameters_anew():
    for layer in (lz.nn.Bilinear(2, 3, 4), lz.nn.EmbeddingBag(4, 2, padding_idx=1)):
        lz.manual_seed(0)
        layer.reset_parameters()
        drawn = [p.tolist() for p in layer.parameters()]
        layer.reset_parameters()
        assert layer.weight.tolist() != drawn[0]
        lz.manual_seed(0)
        layer.reset_parameters()
        assert [p.tolist() for p in layer.parameters()] == drawn
    assert layer.weight[1].tolist() == [0, 0]
    norm = lz.nn.InstanceNorm1d(2, affine=True, track_running_stats=True)
    norm(lz.rand(3, 2, 4))
    lz.nn.init.zeros_(norm.weight)
    norm.reset_parameters()
    assert norm.weight.tolist() == norm.running_var.tolist() == [1, 1] and norm.num_batches_tracked.item() == 0
    assert norm.running_mean.tolist() == [0, 0]


def test_state_is_a_dict_that_pickles():
    net, other = Net(), Net()
    other.load_state_dict(pickle.loads(pickle.dumps({k: v.numpy() for k, v in net.state_dict().items()})))
    x = lz.randn(5, 4)
    assert net(x).tolist() == other(x).tolist()
    other.load_state_dict(pickle.loads(pickle.dumps(net.state_dict())))
    state = net.state_dict()
    state["scale"] = lz.ones(2)
    with pytest.raises(ValueError, match=r"scale.*f32\[1\].*f32\[2\]|scale.*f32\[2\].*f32\[1\]"):
        other.load_state_dict(state)
    with pytest.raises(ValueError, match="scale"):
        other.load_state_dict({("scales" if k == "scale" else k): v for k, v in net.state_dict().items()})


def test_what_is_assigned_again_takes_the_place_of_what_was_there():
    net = Net()
    net.body = lz.nn.Linear(4, 2)
    net.scale = lz.nn.Parameter(lz.full((1,), 2.0))
    assert sorted(name for name, _ in net.named_parameters()) == ["body.bias", "body.weight", "scale"]
    assert net(lz.ones(1, 4)).shape == (1, 2)
    with lz.no_grad():
        net.scale *= 2
    assert len(list(net.parameters())) == 3 and dict(net.named_parameters())["scale"].item() == net.scale.item() == 4
    net.scale = None
    del net.body
    assert list(net.parameters()) == [] and not hasattr(net, "body")
    with pytest.raises(AttributeError):
        del net.body

    table, head = lz.nn.Embedding(5, 3), lz.nn.Linear(3, 5, bias=False)
    head.weight = table.weight  # tied
    both = lz.nn.ModuleList([table, head])
    assert len(list(both.parameters())) == 1 and head.weight.is_same(table.weight)
    head(table(lz.tensor([1]))).sum().backward()
    assert table.weight.grad is not None
    both[1] = lz.nn.Linear(3, 2)
    assert [name for name, _ in both.named_parameters()] == ["0.weight", "1.weight", "1.bias"]


def test_a_deep_copy_has_parameters_of_its_own():
    net = Net()
    net.sizes, net.tied = [4, 3], net.body
    twin = copy.deepcopy(net)
    assert [name for name, _ in twin.named_parameters()] == [name for name, _ in net.named_parameters()]
    assert twin.body is twin.tied is not net.body and twin.sizes is not net.sizes
    x = lz.randn(2, 4)
    assert twin(x).tolist() == net(x).tolist()
    with lz.no_grad():
        net.body[0].weight.zero_()
    assert (twin.body[0].weight == 0).sum().item() == 0 and twin.body[0].weight.requires_grad
    copied = copy.deepcopy(lz.nn.BatchNorm2d(2).eval())
    assert not copied.training and copied.running_var.tolist() == [1, 1]


def test_buffers_are_attributes_that_keep_what_is_assigned():
    class Mean(lz.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", lz.zeros(2))

        def forward(self, x):
            self.mean = 0.5 * self.mean + 0.5 * x
            return x - self.mean

    module = Mean()
    module(lz.tensor([2.0, 4.0]))
    assert module.state_dict()["mean"].tolist() == module.mean.tolist() == [1, 2]
    assert copy.deepcopy(module).mean.tolist() == [1, 2]
    assert list(module.parameters()) == []


def test_training_mode_reaches_every_module():
    net = lz.nn.Sequential(lz.nn.Dropout(0.5))
    x = lz.ones(1000)
    assert net.training and 0 < (net(x) == 0).sum().item() < 1000
    assert not net.eval().training and not net[0].training
    assert net(x).tolist() == x.tolist()
    assert net.train() is net and net.training


def test_moves_to_a_device_with_the_optimiser_following():
    net = Net()
    opt = lz.optim.Adam(net.parameters(), lr=0.1)
    net.to("interpreter")
    before = net.scale.item()
    net(lz.ones(2, 4, device="interpreter")).sum().backward()
    opt.step()
    assert net.scale.device.name == "interpreter:0" and net.scale.item() != before


def test_a_small_network_learns_and_compiles_a_constant_number_of_programs():
    lz.manual_seed(0)
    net = Net()
    opt = lz.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    x = lz.randn(64, 4)
    y = (x[:, 0] > 0).to(lz.int64)
    losses, before = [], None
    for step in range(40):
        opt.zero_grad()
        loss = lz.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        lz.mark_step()
        losses.append(loss.item())
        if step == 3:
            before = lz.metrics.counter("UncachedCompile")
    assert losses[-1] < 0.2 * losses[0]
    assert lz.metrics.counter("UncachedCompile") == before
    assert "UncachedCompile" in lz.metrics.report()
    assert "ENTRY" in lz.debug.last_hlo() and lz.debug.last_stats()["kernels"] > 0


def test_a_smaller_last_batch_is_explained_with_its_line():
    for size in (61, 61, 29):
        x = lz.tensor(np.ones((size, 3), np.float32))
        y = (x * 2.0).sum()
        lz.mark_step()
    why = lz.debug.explain_recompile()
    assert why["cause"] == "batch" and (why["before"], why["after"]) == ("61", "29")
    assert why["sentence"] == f"batch 61 -> 29 at {why['site']}: the last batch is smaller; drop_last or pad it to 61"
    assert why["site"].startswith("nn_test.py:") and y.item() == 6 * 29


class Squares:
    """A data set in Python, sample by sample."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        return np.full(2, i, np.float32), i * i


class Batches(Squares):
    def get(self, indices):
        return np.array(indices, np.float32)[:, None].repeat(2, 1), np.array(indices) ** 2


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("dataset", [Squares(), Batches()])
def test_loads_data_sets_of_python(dataset, prefetch):
    loader = lz.data.DataLoader(dataset, batch_size=4, prefetch=prefetch)
    assert len(loader) == 3 and loader.dataset is dataset
    for _ in range(2):
        batches = [(x.tolist(), y.tolist()) for x, y in loader]
        assert [y for _, y in batches] == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
        assert batches[0][0][3] == [3, 3]


def test_shuffles_by_seed_and_leaves_loops_early():
    loader = lambda: lz.data.DataLoader(Squares(), batch_size=10, shuffle=True, seed=5)  # noqa: E731
    (_, first), = loader()
    (_, second), = loader()
    assert first.tolist() == second.tolist() != sorted(first.tolist())
    for _ in range(5):
        for _ in lz.data.DataLoader(Squares(), batch_size=1):
            break


def test_mistakes_of_a_data_set_reach_the_loop():
    class Broken(Squares):
        def __getitem__(self, i):
            raise KeyError(f"sample {i}")

    with pytest.raises(KeyError, match="sample 0"):
        list(lz.data.DataLoader(Broken(), batch_size=2))
    with pytest.raises(ValueError, match=r"DataLoader: batch_size is 0, it must be at least 1 \(nn_test.py:\d+\)"):
        lz.data.DataLoader(Squares(), batch_size=0)
    with pytest.raises(TypeError, match="DataLoader: there is no argument 'batchsize'"):
        lz.data.DataLoader(Squares(), batchsize=2)
    with pytest.raises(TypeError, match="data set: sample 0 must be a pair of an input and a target, not dict"):
        next(iter(lz.data.DataLoader([{"x": 1}])))
    with pytest.raises(TypeError, match="a data set has __len__"):
        lz.data.DataLoader(5)


def test_threads_train_apart_and_waiting_lets_others_run():
    results, errors = {}, []

    def work(i):
        try:
            x = lz.full((64, 64), float(i)) + 1
            for _ in range(20):
                x = x * 1.0
                lz.mark_step()
            results[i] = x.mean().item()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and results == {i: i + 1.0 for i in range(6)}


def test_labels_of_minus_100_are_left_out():
    f = lz.nn.functional
    x = lz.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0]], requires_grad=True)
    some, none = lz.tensor([1, -100]), lz.tensor([-100, -100])
    loss = f.cross_entropy(x, some)
    assert loss.item() == f.cross_entropy(x[:1], some[:1]).item()
    loss.backward()
    assert x.grad[1].tolist() == [0, 0, 0] and x.grad[0].abs().sum().item() > 0
    for target, weight in ((none, None), (none, lz.ones(3))):
        assert f.cross_entropy(x, target, weight, reduction="sum").item() == 0
        assert f.cross_entropy(x, target, weight, reduction="none").tolist() == [0, 0]
        assert f.cross_entropy(x, target, weight).isnan().item() and f.nll_loss(x, target, weight).isnan().item()
    x.grad = None
    f.cross_entropy(x, none).backward()
    assert x.grad.tolist() == [[0, 0, 0]] * 2
    assert f.nll_loss(x, lz.tensor([[2, 1]])[0], ignore_index=1).item() == -2
    assert lz.nn.CrossEntropyLoss()(x, none).isnan().item()
    with pytest.raises(lz.Error, match=r"cross_entropy: label -100 is out of range \[0, 3\)"):
        f.cross_entropy(x, some, ignore_index=1).item()
    with pytest.raises(lz.Error, match="nll_loss: label 3 is out of range"):
        f.nll_loss(x, lz.tensor([-100, 3])).item()
    f.cross_entropy(x, lz.softmax(x.detach(), 1), ignore_index=-1).item()
    with pytest.raises(ValueError, match="ignore_index goes with class indices"):
        f.cross_entropy(x, lz.softmax(x.detach(), 1), ignore_index=1)


def test_probabilities_outside_of_0_to_1_are_errors():
    bce = lz.nn.functional.binary_cross_entropy
    half, zero = lz.tensor([0.5, 0.5]), lz.tensor([0.0, 1.0])
    for x in ([0.5, 1.5], [0.5, -0.1], [0.5, float("nan")]):
        with pytest.raises(lz.Error, match="binary_cross_entropy: all elements of input should be between 0 and 1, but that at position 1 is not"):
            bce(lz.tensor(x), zero).item()
        with pytest.raises(lz.Error, match="all elements of target should be between 0 and 1"):
            bce(half, lz.tensor(x)).item()
    assert bce(zero, zero).item() == 0


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(("offsets", "message"), [
    ([0, 3, 1], "offset 1 is below the one before it, or above the number of indices"), ([0, 5], "offset 5 is below"),
    ([0, -1], "offset -1 is below"), ([1, 2], r"offsets\[0\] has to be 0, but is 1"), ([-1, 2], r"offsets\[0\] has to be 0, but is -1")])
def test_offsets_of_bags_lie_in_order(mode, offsets, message):
    bag, table, x = lz.nn.functional.embedding_bag, lz.arange(12.0).reshape(6, 2), lz.tensor([0, 1, 2, 3])
    with pytest.raises(lz.Error, match=f"embedding_bag: {message}"):
        bag(x, table, lz.tensor(offsets), mode=mode).tolist()
    lz.sync(True)
    assert bag(x, table, lz.tensor([0, 4]), mode=mode)[1].tolist() == [0, 0]


def test_the_last_offset_ends_the_last_bag():
    bag, table, x = lz.nn.functional.embedding_bag, lz.arange(12.0).reshape(6, 2), lz.tensor([0, 1, 2, 3])
    for mode, expected in (("sum", [[0, 1], [6, 8]]), ("mean", [[0, 1], [3, 4]]), ("max", [[0, 1], [4, 5]])):
        assert bag(x, table, lz.tensor([0, 1, 3]), mode=mode, include_last_offset=True).tolist() == expected
    with pytest.raises(ValueError, match="there is one offset at least"):
        bag(x, table, lz.zeros(0, dtype=lz.int64), include_last_offset=True)
    with pytest.raises(TypeError, match="offsets are integers"):
        bag(x, table, lz.tensor([0.0]))


def test_softmax_guesses_a_dim_with_a_warning():
    f = lz.nn.functional
    for rank, dim in ((1, 0), (2, 1), (3, 0), (4, 1)):
        x = lz.randn(*range(2, 2 + rank))
        for name, layer in (("softmax", lz.nn.Softmax()), ("log_softmax", lz.nn.LogSoftmax()), ("softmin", lz.nn.Softmin())):
            for call in (getattr(f, name), layer):
                with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X") as seen:
                    y = call(x)
                assert seen[0].filename == __file__
                assert y.tolist() == getattr(f, name)(x, dim).tolist() == getattr(f, name)(x, dim=dim, dtype=lz.float32).tolist()
    assert repr(lz.nn.Softmax(1)) == "Softmax(dim=1)" and lz.nn.LogSoftmax(dim=-1)(lz.zeros(2, 1)).tolist() == [[0], [0]]
    with pytest.raises(TypeError):
        lz.softmax(lz.ones(2))
    with pytest.raises(TypeError):
        lz.ones(2).softmax()


def test_statistics_that_are_missing_are_errors_outside_of_training():
    f, x = lz.nn.functional, lz.randn(3, 2)
    with pytest.raises(ValueError, match="batch_norm: running_mean must be defined in evaluation mode"):
        f.batch_norm(x, None, None)
    with pytest.raises(ValueError, match="batch_norm: running_var must be defined in evaluation mode"):
        f.batch_norm(x, lz.zeros(2), None)
    with pytest.raises(ValueError, match="instance_norm: expected running_mean and running_var to be defined"):
        f.instance_norm(lz.randn(1, 2, 3), use_input_stats=False)
    assert f.batch_norm(x, None, None, training=True).shape == (3, 2)
    assert lz.nn.BatchNorm1d(2, track_running_stats=False).eval()(x).shape == (3, 2)
    assert lz.nn.InstanceNorm1d(2).eval()(lz.randn(1, 2, 3)).shape == (1, 2, 3)


def test_instance_norm_takes_no_samples_and_no_channels():
    for dims in ((0, 2, 3), (1, 0, 2), (1, 2, 0)):
        assert tuple(lz.nn.functional.instance_norm(lz.zeros(dims)).shape) == dims


def test_places_of_the_nearest_element_have_a_gradient_of_0():
    grid = lz.zeros(1, 2, 2, 2, requires_grad=True)
    lz.nn.functional.grid_sample(lz.ones(1, 1, 3, 3), grid, mode="nearest", align_corners=False).sum().backward()
    assert grid.grad.tolist() == lz.zeros(1, 2, 2, 2).tolist()


@pytest.mark.parametrize("name, call", [
    ("matmul", lambda x: x @ x), ("matmul", lambda x: x[0] @ x), ("mm", lambda x: x.mm(x)), ("bmm", lambda x: x[None].bmm(x[None])),
    ("mv", lambda x: x.mv(x[0])), ("dot", lambda x: x[0].dot(x[0])), ("vdot", lambda x: lz.vdot(x[0], x[0])),
    ("inner", lambda x: lz.inner(x, x)), ("addmm", lambda x: lz.addmm(x, x, x)), ("addmv", lambda x: lz.addmv(x[0], x, x[0])),
    ("baddbmm", lambda x: lz.baddbmm(x, x[None], x[None])), ("addbmm", lambda x: lz.addbmm(x, x[None], x[None])),
    ("tensordot", lambda x: lz.tensordot(x, x, 1)), ("tensordot", lambda x: lz.tensordot(x, x, 0)),
    ("einsum", lambda x: lz.einsum("ij,jk->ik", x, x)), ("einsum", lambda x: lz.einsum("ij,ij->", x, x)),
    ("linear", lambda x: lz.nn.functional.linear(x, x)), ("linear", lambda x: lz.nn.functional.linear(x, x[0])),
    ("bilinear", lambda x: lz.nn.functional.bilinear(x, x, x[None])), ("conv2d", lambda x: lz.nn.functional.conv2d(x[None], x[None, None])),
    ("conv2d", lambda x: lz.nn.functional.conv1d(x[None], x[None])), ("conv2d", lambda x: lz.nn.functional.conv3d(x[None, None], x[None, None, None])),
    ("conv_transpose2d", lambda x: lz.nn.functional.conv_transpose2d(x[None], x[None, None]))])
def test_products_sum_no_truth_values(name, call):
    with pytest.raises(NotImplementedError, match=rf"^{name}: takes numbers, not pred\[.* and pred\[.*; convert them with to\(\)"):
        call(lz.ones(2, 2, dtype=lz.bool))


def test_products_without_sums_take_truth_values():
    x = lz.tensor([True, False])
    for y in (lz.outer(x, x), lz.kron(x[:, None], x[None]), lz.einsum("i,j->ij", x, x), lz.addr(lz.zeros(2, 2, dtype=lz.bool), x, x)):
        assert y.dtype == lz.bool and y.tolist() == [[True, False], [False, False]]
    assert lz.einsum("i,i->i", x, x).tolist() == lz.inner(lz.tensor(True), x).tolist() == [True, False]
    assert lz.einsum("i->", x).item() == 1 and lz.einsum("i,j->", x, x).dtype == lz.int64


def test_products_take_one_dtype():
    x = lz.ones(3, 2)
    for other in (lz.ones(2, 3, dtype=lz.int64), lz.ones(2, 3, dtype=lz.float64), lz.ones(2, 3, dtype=lz.complex64)):
        for call in (lambda a, b: a @ b, lz.matmul, lambda a, b: a @ b[:, 0], lambda a, b: lz.tensordot(a, b, 1),
                     lambda a, b: lz.inner(a, b.t()), lambda a, b: lz.nn.functional.linear(a, b.t()),
                     lambda a, b: lz.einsum("ij,jk->ik", a, b), lambda a, b: lz.einsum("ij,ji->", a, b),
                     lambda a, b: lz.nn.functional.bilinear(a, b.t(), lz.ones(1, 2, 2))):
            with pytest.raises(TypeError, match="operands of one dtype, not"):
                call(x, other)
        # Element by element dtypes are promoted, and sums of one operand alone are taken before.
        assert lz.einsum("ij,ji->ij", x, other).dtype == lz.einsum("ij,kl->ik", x, other).dtype == lz.result_type(x, other)
    with pytest.raises(TypeError, match=r"einsum: takes operands of one dtype, not f32\[3,2\] and s64\[2,3\]; convert one with to\(\)"):
        lz.einsum("ij,jk", x, lz.ones(2, 3, dtype=lz.int64))
    with pytest.raises(TypeError, match="linear: takes operands of one dtype"):
        lz.nn.Linear(2, 2)(lz.ones(3, 2, dtype=lz.int64))
    with pytest.raises(TypeError, match="linear: takes operands of one dtype"):
        lz.nn.functional.linear(x, x, lz.ones(3, dtype=lz.float64))
    assert lz.nn.functional.linear(x, lz.tensor([1.0, 2.0])).tolist() == [3, 3, 3]
    assert lz.nn.functional.linear(x[0], lz.tensor([1.0, 2.0])).item() == 3
    with pytest.raises(ValueError):
        lz.nn.functional.linear(x, lz.ones(2), lz.ones(1))


@pytest.mark.parametrize("pool", ["adaptive_avg_pool2d", "adaptive_max_pool2d"])
def test_pools_of_no_images_make_no_array_for_their_windows(pool):
    x = lz.zeros(0, 2, 6, 7, requires_grad=True)
    y = getattr(lz.nn.functional, pool)(x, (2**31, 3))
    assert y.shape == (0, 2, 2**31, 3)
    y.sum().backward()
    assert x.grad.shape == x.shape
