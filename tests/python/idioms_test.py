"""Modules that programs import by PyTorch's names, and old ways to say things."""

import importlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

import lazuli as lz
from lazuli import nn
from lazuli.nn import functional as F  # noqa: N812

# Each module, and what programs take from it.
MODULES = {
    "accelerator": "is_available current_accelerator device_count synchronize", "amp": "autocast GradScaler", "amp.autocast_mode": "autocast",
    "amp.grad_scaler": "GradScaler", "autograd": "Function Variable grad backward", "autograd.function": "Function", "autograd.gradcheck": "gradcheck",
    "autograd.grad_mode": "no_grad", "autograd.graph": "save_on_cpu", "autograd.variable": "Variable", "backends": "cudnn mps",
    "backends.cuda": "matmul", "backends.cudnn": "benchmark deterministic enabled", "backends.mps": "is_available", "cuda": "is_available FloatTensor LongTensor Event",
    "cuda.amp": "autocast GradScaler", "cuda.memory": "memory_allocated", "cuda.random": "manual_seed", "distributed": "all_reduce is_available is_initialized get_rank",
    "func": "functional_call", "fx": "symbolic_trace GraphModule Tracer wrap", "hub": "load_state_dict_from_url get_dir", "jit": "script trace ScriptModule",
    "linalg": "norm", "masked": "as_masked_tensor" if hasattr(lz.masked, "as_masked_tensor") else "mean", "multiprocessing": "Process Queue get_context spawn",
    "nn": "Module", "nn.functional": "relu mse_loss", "nn.init": "xavier_uniform_ xavier_uniform calculate_gain _calculate_fan_in_and_fan_out",
    "nn.modules": "Module Linear conv", "nn.modules.activation": "ReLU MultiheadAttention", "nn.modules.adaptive": "AdaptiveLogSoftmaxWithLoss",
    "nn.modules.batchnorm": "BatchNorm2d _BatchNorm", "nn.modules.channelshuffle": "ChannelShuffle", "nn.modules.container": "Sequential ModuleList ModuleDict",
    "nn.modules.conv": "Conv1d Conv2d ConvTranspose2d _ConvNd", "nn.modules.distance": "CosineSimilarity", "nn.modules.dropout": "Dropout",
    "nn.modules.flatten": "Flatten", "nn.modules.fold": "Unfold", "nn.modules.instancenorm": "InstanceNorm2d", "nn.modules.lazy": "LazyModuleMixin",
    "nn.modules.linear": "Linear Identity", "nn.modules.loss": "CrossEntropyLoss MSELoss _Loss _WeightedLoss", "nn.modules.module": "Module",
    "nn.modules.normalization": "LayerNorm GroupNorm", "nn.modules.padding": "ReflectionPad2d", "nn.modules.pixelshuffle": "PixelShuffle",
    "nn.modules.pooling": "MaxPool2d AdaptiveAvgPool2d", "nn.modules.rnn": "LSTMCell", "nn.modules.sparse": "Embedding",
    "nn.modules.transformer": "TransformerEncoder", "nn.modules.upsampling": "Upsample", "nn.modules.utils": "_pair",
    "nn.parallel": "DataParallel DistributedDataParallel", "nn.parallel.data_parallel": "DataParallel", "nn.parallel.distributed": "DistributedDataParallel",
    "nn.parameter": "Parameter", "nn.utils": "clip_grad_norm_ weight_norm", "nn.utils.clip_grad": "clip_grad_norm_", "nn.utils.convert_parameters": "parameters_to_vector",
    "nn.utils.parametrizations": "weight_norm", "nn.utils.rnn": "pad_sequence", "nn.utils.spectral_norm": "spectral_norm", "nn.utils.weight_norm": "weight_norm",
    "onnx": "export", "optim": "Adam", "optim.adam": "Adam", "optim.adamw": "AdamW", "optim.lr_scheduler": "StepLR LRScheduler _LRScheduler", "optim.optimizer": "Optimizer",
    "optim.sgd": "SGD", "optim.swa_utils": "AveragedModel", "profiler": "profile", "random": "fork_rng", "serialization": "load", "special": "expit", "testing": "assert_close",
    "types": "Number", "utils.checkpoint": "checkpoint", "utils.data": "DataLoader Dataset", "utils.data.dataloader": "DataLoader default_collate",
    "utils.data.dataset": "Dataset Subset random_split", "utils.data.distributed": "DistributedSampler", "utils.data.sampler": "Sampler RandomSampler",
    "utils.dlpack": "from_dlpack to_dlpack", "utils.hooks": "RemovableHandle", "utils.model_zoo": "load_url", "utils.tensorboard": "SummaryWriter", "version": "__version__ cuda"}


@pytest.mark.parametrize("name", MODULES)
def test_modules_import(name):
    module = importlib.import_module(f"lazuli.{name}")
    for wanted in MODULES[name].split():
        assert hasattr(module, wanted), f"{name}.{wanted}"
    home = lz
    for part in name.split(".")[:-1]:
        home = getattr(home, part)
    assert hasattr(home, name.split(".")[-1])  # after `import lazuli`, too


def test_classes_are_the_same_under_each_name():
    from lazuli.nn.modules.conv import Conv2d
    import lazuli.nn.init as init
    import lazuli.nn.modules.batchnorm as batchnorm
    import lazuli.optim.adam as adam

    assert Conv2d is nn.Conv2d and adam.Adam is lz.optim.Adam and init is nn.init
    assert issubclass(nn.BatchNorm1d, batchnorm._BatchNorm) and isinstance(nn.BatchNorm3d(2), batchnorm._BatchNorm)
    assert isinstance(nn.ConvTranspose1d(1, 1, 1), nn.modules.conv._ConvNd) and not isinstance(nn.Linear(1, 1), nn.modules.conv._ConvNd)
    assert isinstance(nn.MSELoss(), nn.modules.loss._Loss) and isinstance(nn.LSTMCell(1, 1), nn.modules.rnn.RNNCellBase)
    with pytest.raises(AttributeError, match=r"module 'lazuli.nn.modules.conv' has no attribute 'Conv7d'"):
        nn.modules.conv.Conv7d  # noqa: B018
    space = {}
    exec("from lazuli.nn.modules.loss import *", space)
    assert space["MSELoss"] is nn.MSELoss


def test_importing_lazuli_imports_no_processes():
    code = "import sys, lazuli; print([m for m in ('multiprocessing', 'lazuli.jit', 'lazuli.fx', 'lazuli.utils.tensorboard') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_what_is_not_there_says_what_is():
    for call, words in ((lambda: lz.onnx.export(None, None, "x.onnx"), "onnx: lazuli writes no ONNX files; .* state_dict"),
                        (lambda: lz.fx.symbolic_trace(nn.ReLU()), "fx: symbolic_trace.. is not there, .*HloModule.trace"),
                        (lambda: lz.fx.Tracer(), "fx: Tracer is not there"), (lambda: lz.hub.load("a", "b"), "hub: nothing is fetched"),
                        (lambda: lz.utils.model_zoo.load_url("http://x"), "hub: nothing is fetched"),
                        (lambda: lz.jit.save(nn.ReLU(), "x.pt"), "jit: programs cannot be saved to files; save.module.state_dict"),
                        (lambda: lz.cuda.FloatTensor(2), "cuda: there is no GPU"), (lambda: lz.ones(1).type(lz.cuda.FloatTensor), "cuda: there is no GPU"),
                        (lambda: lz.ones(1).type("torch.cuda.FloatTensor"), "cuda: there is no GPU"), (lambda: lz.cuda.Event(), "cuda: there is no GPU")):
        with pytest.raises(NotImplementedError, match=words):
            call()
    assert not isinstance(lz.ones(1), lz.cuda.FloatTensor) and isinstance(lz.ones(1), lz.FloatTensor)
    assert lz.accelerator.current_accelerator() is None and not lz.accelerator.is_available() and lz.version.cuda is None


def test_writers_of_tensorboard(monkeypatch):
    import types
    written = []

    class Writer:
        def __init__(self, folder):
            written.append(folder)

        def add_scalar(self, *arguments):
            written.append(arguments)

        def close(self):
            written.append("closed")

    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=Writer))
    with lz.utils.tensorboard.SummaryWriter("runs") as writer:
        writer.add_scalar("loss", lz.tensor(2.0, requires_grad=True) * 2, 3)
    assert written == ["runs", ("loss", np.float32(4), 3), "closed"] and isinstance(written[1][1], np.ndarray)
    for name in ("tensorboardX", "torch", "torch.utils", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotImplementedError, match="SummaryWriter: the logs are written by the package tensorboardX, which is not installed"):
        lz.utils.tensorboard.SummaryWriter()


def test_programs_are_scripted_and_traced_as_they_are():
    @lz.jit.script
    def double(x):
        return x * 2

    layer = nn.ReLU()
    assert double(lz.ones(1)).item() == 2 and lz.jit.trace(layer, lz.ones(1)) is layer and lz.jit.script(layer) is layer and not lz.jit.is_scripting()

    @lz.fx.wrap
    def triple(x):
        return x * 3

    assert triple(1) == 3


def test_wrappers_for_several_gpus_call_the_module():
    layer = nn.Linear(2, 2)
    wrapped = nn.DataParallel(layer)
    assert lz.equal(wrapped(lz.ones(1, 2)), layer(lz.ones(1, 2))) and wrapped.module is layer
    assert list(nn.parallel.DistributedDataParallel(layer).state_dict()) == ["module.weight", "module.bias"]
    with nn.parallel.DistributedDataParallel(layer, device_ids=[0], find_unused_parameters=True).no_sync():
        pass
    assert lz.equal(nn.parallel.data_parallel(layer, lz.ones(1, 2)), layer(lz.ones(1, 2)))
    assert not lz.distributed.is_initialized() and lz.distributed.get_rank() == 0 and lz.distributed.get_world_size() == 1


A, B, CLASSES = lz.tensor([[0.25, 0.5], [0.75, 0.125]]), lz.tensor([[0.5, 0.5], [1.0, 0.25]]), lz.tensor([0, 1])
OLD = [("mse_loss", (A, B)), ("l1_loss", (A, B)), ("smooth_l1_loss", (A, B)), ("binary_cross_entropy", (A, B)), ("binary_cross_entropy_with_logits", (A, B)),
       ("cross_entropy", (A, CLASSES)), ("nll_loss", (A, CLASSES)), ("kl_div", (A, B)), ("soft_margin_loss", (A, B)), ("multi_margin_loss", (A, CLASSES)),
       ("hinge_embedding_loss", (A, B)), ("poisson_nll_loss", (A, B)), ("margin_ranking_loss", (A, B, B))]


@pytest.mark.parametrize(("name", "operands"), OLD, ids=[name for name, _ in OLD])
def test_old_arguments_of_losses(name, operands):
    loss = getattr(F, name)
    for old, kind in (({"size_average": False}, "sum"), ({"size_average": True}, "mean"), ({"reduce": False}, "none"), ({"reduce": True}, "mean"),
                      ({"size_average": False, "reduce": False}, "none")):
        with pytest.warns(UserWarning, match=f"size_average and reduce are old; reduction='{kind}' says the same") as seen:
            assert loss(*operands, **old).tolist() == loss(*operands, reduction=kind).tolist()
        assert seen[0].filename == __file__


def test_arguments_of_losses_stand_where_pytorch_has_them():
    with pytest.warns(UserWarning, match="size_average"):
        assert F.mse_loss(A, B, False).item() == F.mse_loss(A, B, reduction="sum").item()
        assert F.nll_loss(A, CLASSES, None, False).item() == F.nll_loss(A, CLASSES, reduction="sum").item()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert F.cross_entropy(A, CLASSES, None, None, 0).item() == F.cross_entropy(A, CLASSES, ignore_index=0).item()
        assert F.smooth_l1_loss(A, B, None, None, "sum", 0.5).item() == F.smooth_l1_loss(A, B, beta=0.5, reduction="sum").item()
        assert F.mse_loss(A, B, "sum").item() == F.mse_loss(A, B, reduction="sum").item()
    with pytest.raises(TypeError, match="mse_loss: there is no argument 'reductoin'"):
        F.mse_loss(A, B, reductoin="sum")


def test_memory_formats_are_taken_and_say_nothing():
    x = lz.ones(1, 2, 3, 3)
    layer = nn.Conv2d(2, 1, 1).to(memory_format=lz.channels_last)
    layer = layer.to("cpu", lz.float32, non_blocking=True, memory_format=lz.channels_last)
    y = x.to(memory_format=lz.channels_last).contiguous(memory_format=lz.channels_last).clone(memory_format=lz.preserve_format)
    assert y.shape == x.shape and layer(y).shape == (1, 1, 3, 3) and x.is_contiguous(memory_format=lz.contiguous_format)
    assert lz.empty_like(x, memory_format=lz.channels_last).shape == x.shape and lz.zeros(2, memory_format=lz.contiguous_format).shape == (2,)
    assert x.float(memory_format=lz.channels_last) is x and lz.clone(x, memory_format=lz.channels_last).shape == x.shape


def test_tensors_of_lists_of_arrays():
    rows = [np.float64([1, 2]), np.float64([3, 4])]
    assert lz.tensor(rows).dtype == lz.float64 and lz.tensor(rows).tolist() == [[1, 2], [3, 4]]
    assert lz.tensor([np.float32([1]), np.float32([2])]).dtype == lz.float32 and lz.tensor([np.int32([1]), np.int32([2])]).dtype == lz.int32
    assert lz.tensor([[np.float64([1])], [np.float64([2])]]).dtype == lz.float64 and lz.tensor([np.float64(1.5)]).dtype == lz.float64
    assert lz.tensor([np.float32(1.5), np.float32(2)]).dtype == lz.float32 and lz.tensor([np.bool_(True)]).dtype == lz.bool
    assert lz.tensor([lz.tensor(1.0), lz.tensor(2.0)]).tolist() == [1, 2] and lz.tensor((np.uint8([1]), np.uint8([2]))).dtype == lz.uint8
    assert lz.FloatTensor(rows).tolist() == [[1, 2], [3, 4]] and lz.Tensor([np.float64([1]), np.float64([2])]).dtype == lz.float32


def test_starting_values_have_their_old_names():
    w = lz.empty(4, 6)
    with pytest.warns(FutureWarning, match=r"`nn.init.constant` is now deprecated in favor of `nn.init.constant_`"):
        assert nn.init.constant(w, 2.0) is w and w.tolist() == [[2.0] * 6] * 4
    assert nn.init._calculate_fan_in_and_fan_out(lz.empty(4, 6, 3)) == (18, 12) and nn.init._calculate_correct_fan(w, "fan_out") == 4


def add_index(i, queue):
    queue.put(i)


def test_processes_are_spawned():
    import lazuli.multiprocessing as mp

    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(add_index, (queue,), nprocs=2)
    assert sorted(queue.get() for _ in range(2)) == [0, 1]
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"


@pytest.mark.parametrize("call", [
    lambda x: lz.nn.functional.ctc_loss(x.reshape(2, 1, 2).log_softmax(2), x.new_tensor([[1]], dtype=lz.int64), (2,), (1,)),
    lambda x: lz.nn.functional.embedding(x.new_tensor([0, 0, 1], dtype=lz.int64), x.clone().requires_grad_(), scale_grad_by_freq=True),
    lambda x: lz.histogramdd(x, [2, 3])[0],
    lambda x: lz.linalg.pinv(x, atol=lz.tensor(0.1, device=x.device), rtol=0.1),
    lambda x: lz.nn.InstanceNorm1d(2, track_running_stats=True, device=x.device)(x[None]),
    lambda x: lz.nn.utils.parametrizations.spectral_norm(lz.nn.Linear(2, 2, device=x.device))(x),
    lambda x: lz.control.scan(lambda carry, row: ((carry[0] + row, carry[1] + 1), 0), (x[0], 0), x)[0][1],
    lambda x: lz.control.while_loop(lambda s: s["steps"] < 3, lambda s: {"x": s["x"] * 2, "steps": s["steps"] + 1}, {"x": x, "steps": 0})["x"],
    lambda x: lz.control.cond(True, lambda x: x, lambda x: -x, x),
    lambda x: lz.control.switch(1, [lambda x: x, lambda x: -x], x)])
def test_what_python_adds_is_on_the_device_of_the_arguments(call):
    results = []
    for device in ("cpu", "interpreter"):
        lz.manual_seed(0)
        y = call(lz.tensor([[0.5, -1.0], [2.0, 0.25]], device=device))
        if y.requires_grad:
            y.sum().backward()
        assert y.device.type == device
        results.append(y.detach().numpy())
    assert np.allclose(*results, atol=1e-6)
