"""Graphs and programs as text, and what is printed while they run."""

import builtins
from typing import Any, Callable, List, Optional, Union

from lazuli._C import Device, Tensor
from lazuli._C.debug import *  # noqa: F403
from lazuli._C.hlo import HloModule
from lazuli.func._custom import stop_gradient
from lazuli._tree import tree_map
from lazuli.library import io_callback


def _tensors(value: Any) -> List[Tensor]:
    """The tensors in nested lists, tuples and dicts, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        raise TypeError("compiler_ir: fn gives tensors, in lists, tuples and dicts, not "
                        f"{type(value).__name__}")
    return [tensor for item in value for tensor in _tensors(item)]


def print_tabular(tensors: Any) -> None:
    """Prints the pending graph of tensors: one row per node with its operands, attributes, scope
    and line."""
    builtins.print(graph_table(tensors), end="")  # noqa: F405


def compiler_ir(fn: Callable[..., Any], stage: str = "hlo",
                device: Optional[Union[Device, str]] = None) -> Callable[..., Union[str, bytes]]:
    """What a function of tensors becomes on its way through a device's compiler.

        print(lz.debug.compiler_ir(step, stage="optimized_hlo")(x, w))

    The function that this returns takes fn's arguments; nothing is computed. Tensors among them, of
    any shape and dtype, are parameters of the program, and so is, behind them, what fn writes to:
    its new elements are results that may take its memory. Whatever else fn uses is a constant.
    Nothing is written: tensors, gradients and generators are as before.

    stage: hlo, optimized_hlo, optimized_hlo_dot (for GraphViz), fusion (why its kernels are
    several), llvm (LLVM IR of its kernels), asm (their assembly, or an NPU's), npux (bytes: an
    NPU's program). Another one raises InvalidArgumentError, one that the device does not make
    NotFoundError.
    """
    def inspect(*args: Any, **kwargs: Any) -> Union[str, bytes]:
        given = [*args, *kwargs.values()]
        places = [i for i, value in enumerate(given) if isinstance(value, Tensor)]

        def record(*parameters: Tensor) -> List[Tensor]:
            values = list(given)
            for place, parameter in zip(places, parameters):
                values[place] = parameter
            return _tensors(fn(*values[:len(args)], **dict(zip(kwargs, values[len(args):]))))

        name = getattr(fn, "__name__", type(fn).__name__).strip("<>")
        return HloModule.trace([given[i] for i in places], record,
                               name=name).compiler_ir(stage, device)

    return inspect


class _Printer:
    """Prints its text; those of one text are one function."""

    def __init__(self, fmt: str) -> None:
        self.fmt, self.__name__ = fmt, "print"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Printer) and self.fmt == other.fmt

    def __hash__(self) -> int:
        return hash(self.fmt)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        def shown(x: Tensor) -> Any:
            return x.item() if x.dim() == 0 else x.numpy()

        text = self.fmt.format(*tree_map(shown, args), **tree_map(shown, kwargs))
        builtins.print(text, flush=True)


def _record(function: Callable[..., Any], args: Any, kwargs: Any, ordered: bool) -> None:
    args, kwargs = stop_gradient((args, kwargs))
    io_callback(function, None, *args, ordered=ordered, **kwargs)


def callback(callback: Callable[..., Any], *args: Any, ordered: bool = False,
             **kwargs: Any) -> None:
    """Calls a function of the host when the program runs, with tensors that have elements: as
    io_callback() without results. It has no part in derivatives."""
    _record(callback, args, kwargs, ordered)


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Prints fmt.format(*args, **kwargs) when the program runs."""
    _record(_Printer(fmt), args, kwargs, ordered)
