"""Names of types, as PyTorch has them for annotations."""

from builtins import bool as _bool, float as _float, int as _int
from typing import Any, Sequence, Union

from lazuli import _C
from lazuli._C import Size, Tensor

Number = Union[_int, _float, _bool]
Device = Union[_C.Device, str, _int, None]
_dtype, _device, _size = _C.DType, _C.Device, Union[Size, Sequence[_int]]
Storage = Any
__all__ = ["Device", "Number", "Size", "Storage", "Tensor"]
