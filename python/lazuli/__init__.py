"""Tensors that look eager and run as compiled graphs.

Operations are recorded with their source line; mark_step() turns what is pending into one program
and runs it. Reading a value (item, numpy, printing) does so, too.

    import lazuli as lz

    x, w = lz.randn(8, 16), lz.randn(16, 4)
    y = (x @ w).relu()
    print(y.sum().item())
"""

import copy as _copy
import importlib as _importlib
import os as _os
import sys as _sys
from math import e, inf, nan, pi

try:
    from lazuli import _C
except ImportError as error:
    if "shared object file" not in str(error):
        raise
    raise ImportError(f"{error}; the package uses libraries of the system it was built on, which "
                      "python/README.md names") from None
from lazuli._C import *  # noqa: F403
from lazuli._C import Tensor
from lazuli import _aliases
from lazuli._control_names import associative_scan, cond, scan, while_loop
from lazuli._decomposition import lobpcg, lu, pca_lowrank, svd_lowrank
from lazuli._histograms import histogramdd
from lazuli._names import (INTERNAL as _INTERNAL, OLD_CONSTRUCTORS as _OLD_CONSTRUCTORS, atleast_1d,
                           atleast_2d, atleast_3d, broadcast_shapes, cartesian_prod, chain_matmul,
                           ger, gradient, index_put, index_put_, matrix_power, tensor_split,
                           typename, vander)
from lazuli._printing import get_printoptions, printoptions, set_printoptions
from lazuli._settings import FUNCTIONS as _SETTINGS
from lazuli._storage import FUNCTIONS as _STORAGES
from lazuli._tensor import (SHORT_NAMES as _SHORT_NAMES, allclose, block_diag, broadcast_tensors,
                            einsum, equal, from_dlpack, from_numpy, meshgrid, nonzero, tensor,
                            tensordot)
from lazuli._types import (FUNCTIONS as _OTHER_NAMES, channels_last, contiguous_format, finfo,
                           iinfo, is_complex, is_floating_point, layout, memory_format,
                           preserve_format, strided)
from lazuli.amp.autocast_mode import (
    autocast, autocast_decrement_nesting, autocast_increment_nesting, clear_autocast_cache,
    get_autocast_cpu_dtype, get_autocast_dtype, get_autocast_gpu_dtype, is_autocast_cache_enabled,
    is_autocast_cpu_enabled, is_autocast_enabled, set_autocast_cache_enabled,
    set_autocast_cpu_dtype, set_autocast_cpu_enabled, set_autocast_dtype, set_autocast_enabled)
from lazuli.autograd import (enable_grad, inference_mode, is_anomaly_check_nan_enabled,
                             is_anomaly_enabled, no_grad, set_grad_enabled)
from lazuli._replay import compile
from lazuli.random import Generator, default_generator, manual_seed
from lazuli.serialization import load, save
from lazuli.sparse import (mm as spmm, sparse_compressed_tensor, sparse_coo, sparse_coo_tensor,
                           sparse_csc, sparse_csc_tensor, sparse_csr, sparse_csr_tensor)
import lazuli.amp
import lazuli.autograd
import lazuli.backends
import lazuli.control
import lazuli.cpu
import lazuli.cuda
import lazuli.data
import lazuli.debug
import lazuli.distributed
import lazuli.fft
import lazuli.hlo
import lazuli.library
import lazuli.linalg
import lazuli.masked
import lazuli.metrics
import lazuli.nn
import lazuli._html
import lazuli.func
import lazuli.optim
import lazuli.profiler
import lazuli.random
import lazuli.runtime
import lazuli.signal
import lazuli.sparse
import lazuli.special
import lazuli.testing
import lazuli.tree
import lazuli.utils

_aliases.register()


# Modules that most programs do without.
_LATER = ("accelerator", "distributions", "fx", "hub", "jit", "multiprocessing", "onnx", "types",
          "version")


def __getattr__(name):
    if name in _LATER:
        return _importlib.import_module(f"lazuli.{name}")
    raise AttributeError(f"module 'lazuli' has no attribute {name!r}", name=name,
                         obj=_sys.modules[__name__])


# Errors and dumps show the line that called into this package, not lines of it, nor of what calls
# it for users.
_C._set_own_files([_os.path.dirname(_os.path.abspath(__file__)) + _os.sep, _copy.__file__])

globals().update(_SHORT_NAMES)  # lazuli.float and others, as PyTorch has them
globals().update(_OTHER_NAMES)
globals().update(_STORAGES)
globals().update(_INTERNAL)
globals().update({_function.__name__: _function for _function in _SETTINGS})
globals().update(_OLD_CONSTRUCTORS)  # lazuli.LongTensor and others
is_grad_enabled, vmap = _C.grad_enabled, lazuli.func.vmap
after, composite, io_callback, optimization_barrier, pure_callback = (
    getattr(lazuli.library, _name)
    for _name in ("after", "composite", "io_callback", "optimization_barrier", "pure_callback"))
cosine_similarity, group_norm, layer_norm, pairwise_distance, rms_norm, rrelu = (
    getattr(lazuli.nn.functional, _name)
    for _name in ("cosine_similarity", "group_norm", "layer_norm", "pairwise_distance", "rms_norm",
                  "rrelu"))
concat, device, dtype, newaxis, row_stack = _C.cat, _C.Device, _C.DType, None, _C.vstack
resize_as_ = Tensor.resize_as_


def as_tensor(data, dtype=None, device=None):
    """tensor(). A tensor is returned as it is, with its history, unless the dtype or device
    differ."""
    if isinstance(data, Tensor):
        return data.to(dtype=data.dtype if dtype is None else dtype,
                       device=data.device if device is None else device)
    return tensor(data, dtype=dtype, device=device)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """tensor(). A tensor is returned as it is unless it must be copied or converted. PyTorch's may
    share an array's memory."""
    if isinstance(obj, Tensor) and not copy:
        return obj.to(dtype=obj.dtype if dtype is None else dtype,
                      device=obj.device if device is None else device)
    return tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """The elements of an object with a buffer, from a byte offset; copied."""
    from lazuli._numpy import np
    return tensor(np.frombuffer(buffer, dtype=_C.dtype_of(dtype).name, count=count, offset=offset),
                  requires_grad=requires_grad)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """nn.functional.embedding() with the table as the first argument."""
    return lazuli.nn.functional.embedding(indices, weight, padding_idx if padding_idx >= 0
                                          else None, scale_grad_by_freq=scale_grad_by_freq)


def is_tensor(x):
    """Whether it is a Tensor."""
    return isinstance(x, Tensor)


__version__ = "0.1.0"
