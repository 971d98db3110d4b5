"""HLO modules to read, change, compile and run, and instructions of HLO as functions of tensors.

    module = lz.hlo.HloModule.parse(text)
    module.run_passes(["simplify", "dce"])
    y, = module.compile().run([x])

    y = lz.hlo.dot(x, w, lhs_contracting_dims=[1], rhs_contracting_dims=[0])

Every opcode that works on arrays, calls no computation and does nothing else is such a function,
with the attributes that HLO's text has for it; `-` in names is `_`, and `and_`, `or_`, `not_` end
in one. Attributes are numbers, bools, lists of integers (of slices for slice, of (low, high,
interior) for pad), or text as HLO writes them. shape= and dtype= are those of the result where HLO
does not infer them.
"""

import builtins
import keyword
import operator
import threading
from typing import Any, List, Optional, Sequence, Tuple, Union

from lazuli import _C
from lazuli._C import DType, Tensor
from lazuli._C.hlo import *  # noqa: F403
from lazuli._C.hlo import HloExecutable


def run_together(programs: Sequence[HloExecutable],
                 arguments: Sequence[Sequence[Tensor]]) -> List[List[Tensor]]:
    """Runs programs of several devices at the same time, each with its own arguments, so that
    programs with collectives can meet: `[module.compile(f"npu:{d}") for d in range(n)]` of one
    module. Returns the results of each program; if some fail, raises the error of the first one."""
    if len(programs) != len(arguments):
        raise ValueError(
            f"run_together: {len(programs)} programs, and arguments for {len(arguments)}")
    results: List[List[Tensor]] = [[] for _ in programs]
    errors: List[Optional[Exception]] = [None] * len(programs)

    def run(i: int) -> None:
        try:
            results[i] = programs[i].run(arguments[i])
        except Exception as error:  # raised below, in the caller's thread
            errors[i] = error

    _C.sync()  # what this thread has recorded is its own to run
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(programs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results


def _text(value: Any) -> str:
    """An attribute as HLO writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, builtins.slice):
        return f"[{value.start or 0}:{value.stop}:{value.step or 1}]"
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (list, tuple)):  # pad
            return "x".join("_".join(map(str, dim)) for dim in value)
        return "{" + ",".join(map(_text, value)) + "}"
    return str(value)


def _record(opcode: str, operands: Sequence[Any], shape: Optional[Sequence[int]],
            dtype: Optional[DType], attributes: Any) -> Union[Tensor, Tuple[Tensor, ...]]:
    for x in operands:
        if not isinstance(x, (Tensor, bool, int, float, complex)):
            raise TypeError(f"{opcode}: takes tensors and numbers, not {type(x).__name__}")
    first = next((x for x in operands if isinstance(x, Tensor)), None)
    given = [x if isinstance(x, Tensor) else
             _C.full((), x, dtype=_C.dtype_of(type(x)) if first is None else first.dtype)
             for x in operands]
    result = None
    if shape is not None or dtype is not None:
        if given:
            shape = given[0].shape if shape is None else shape
            dtype = given[0].dtype if dtype is None else dtype
        try:
            shape = tuple(map(operator.index, shape or ()))
        except TypeError:
            raise TypeError(f"{opcode}: shape= takes integers, not {shape!r}") from None
        if not all(0 <= n < 2**63 for n in shape):
            raise ValueError(f"{opcode}: shape= takes sizes of 63 bits, not {shape}")
        result = (_C.get_default_dtype() if dtype is None else dtype, shape)
    made = _C._library.hlo_op(opcode, given, [(name, _text(v)) for name, v in attributes.items()],
                              result)
    return made[0] if len(made) == 1 else tuple(made)


def _function(opcode: Any) -> Any:
    name = opcode.name.replace("-", "_") + ("_" if keyword.iskeyword(opcode.name) else "")

    def function(*operands: Any, shape: Optional[Sequence[int]] = None,
                 dtype: Optional[DType] = None, **attributes: Any
                 ) -> Union[Tensor, Tuple[Tensor, ...]]:
        if opcode.operands not in (-1, len(operands)):
            raise TypeError(f"{name}: takes {opcode.operands} operands, not {len(operands)}")
        return _record(opcode.name, operands, shape, dtype, attributes)

    function.__name__ = function.__qualname__ = name
    needed = [a[:-1] for a in opcode.attributes if a.endswith("!")]
    others = [a for a in opcode.attributes if not a.endswith("!")]
    function.__doc__ = f"The instruction {opcode.name} of HLO." + "".join(
        f" {what}: {', '.join(names)}." for what, names in (("Attributes", needed),
                                                            ("Optional", others)) if names)
    return function


for _opcode in _C._library.hlo_opcodes():
    _made = _function(_opcode)
    globals()[_made.__name__] = _made


def dot_general(lhs: Tensor, rhs: Tensor, dimension_numbers: Any, precision: Optional[str] = None,
                preferred_element_type: Optional[DType] = None) -> Tensor:
    """The instruction dot with the signature of jax.lax.dot_general: dimension_numbers are
    ((contracting dims of lhs, of rhs), (batch dims of lhs, of rhs))."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    attributes = {"lhs_contracting_dims": list(lhs_contracting),
                  "rhs_contracting_dims": list(rhs_contracting)}
    if lhs_batch or rhs_batch:
        attributes |= {"lhs_batch_dims": list(lhs_batch), "rhs_batch_dims": list(rhs_batch)}
    if precision is not None:
        attributes["operand_precision"] = f"{{{precision},{precision}}}"
    shape = None
    if preferred_element_type is not None:
        free = [[n for d, n in enumerate(x.shape) if d not in (*contracting, *batch)]
                for x, contracting, batch in ((lhs, lhs_contracting, lhs_batch),
                                              (rhs, rhs_contracting, rhs_batch))]
        shape = [*(lhs.shape[d] for d in lhs_batch), *free[0], *free[1]]
    return _record("dot", (lhs, rhs), shape, preferred_element_type, attributes)
