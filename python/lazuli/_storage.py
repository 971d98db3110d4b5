"""The memory of tensors, as far as programs ask about it."""

from lazuli._C import Tensor


class Storage:
    """The memory of a tensor: its size and place. The storages of two views of one tensor are
    equal."""

    def __init__(self, x):
        self._tensor = x
        base = getattr(x, "_base", None)
        self._whole = x if base is None else base

    @property
    def device(self):
        """Where the memory lies."""
        return self._tensor.device

    def nbytes(self):
        """The bytes of all elements."""
        return self._whole.numel() * self._whole.dtype.itemsize

    def data_ptr(self):
        """An address that no other memory has."""
        return self._whole.data_ptr()

    def __eq__(self, other):
        return isinstance(other, Storage) and self.data_ptr() == other.data_ptr()

    def __hash__(self):
        return hash(self.data_ptr())


class UntypedStorage(Storage):
    """The memory as bytes."""

    def size(self):
        """The number of bytes."""
        return self.nbytes()

    def element_size(self):
        """1: elements are bytes."""
        return 1

    def __len__(self):
        return self.nbytes()


class TypedStorage(Storage):
    """The memory as elements of the tensor's dtype."""

    @property
    def dtype(self):
        """The dtype."""
        return self._tensor.dtype

    def size(self):
        """The number of elements."""
        return self.nbytes() // self.element_size()

    def element_size(self):
        """The bytes of an element."""
        return self._tensor.dtype.itemsize

    def untyped(self):
        """The same memory as bytes."""
        return UntypedStorage(self._tensor)

    def tolist(self):
        """The elements; syncs."""
        return self._whole.flatten().tolist()

    def __getitem__(self, i):
        return self.tolist()[i]

    def __len__(self):
        return self.size()


def is_storage(obj):
    """Whether it is the memory of a tensor."""
    return isinstance(obj, Storage)


FUNCTIONS = {"is_storage": is_storage, "TypedStorage": TypedStorage,
             "UntypedStorage": UntypedStorage}
Tensor.untyped_storage = lambda self: UntypedStorage(self)
Tensor.untyped_storage.__doc__ = "The memory as bytes."
Tensor.storage = lambda self: TypedStorage(self)
Tensor.storage.__doc__ = "The memory as elements of the dtype."


def dim_order(self, *, ambiguity_check=False):
    """The dims in the order of their strides, the largest first; dims with equal strides keep their
    order."""
    if ambiguity_check and any(n == 1 for n in self.shape):
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one "
                           "of the given memory formats.")
    return tuple(sorted(range(self.ndim), key=lambda d: -self.stride(d)))


def is_set_to(self, tensor):
    """Whether both have the same elements of the same memory, in the same shape."""
    return (self.data_ptr() == tensor.data_ptr() and self.shape == tensor.shape and
            self.stride() == tensor.stride())


def is_shared(self):
    """True: memory of the host can be given to workers, who get copies."""
    return True


for _method in (dim_order, is_set_to, is_shared):
    setattr(Tensor, _method.__name__, _method)
