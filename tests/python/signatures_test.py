"""inspect.signature() knows everything that users call."""

import inspect
import types

import lazuli as lz

# What nobody makes: it has no constructor, or Python's own.
NOT_MADE = {"DType", "DeferredItem", "HookHandle", "Dataset", "Epoch", "HloShape", "HloInstruction", "HloExecutable", "HloModule",
            "Profile"}


def public(module, seen):
    """(name, value) of the functions, classes and methods in a module and those in it."""
    for name, value in list(vars(module).items()):
        if name.startswith("_") or id(value) in seen:
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith("lazuli.") and not value.__name__.startswith("lazuli._C"):
                seen.add(id(value))
                yield from public(value, seen)
        elif isinstance(value, type) and value.__module__.startswith("lazuli"):
            seen.add(id(value))
            if not issubclass(value, BaseException) and name not in NOT_MADE:
                yield name, value
            yield from ((f"{name}.{key}", member) for key, member in vars(value).items()
                        if not key.startswith("_") and callable(member) and not isinstance(member, type))
        elif callable(value) and not isinstance(value, type):
            yield name, value


def has_none(value):
    try:
        inspect.signature(value)
    except (ValueError, TypeError):
        return True
    return False


def test_everything_public_has_a_signature():
    found = list(public(lz, set()))
    assert len(found) > 1500
    assert [name for name, value in found if has_none(value)] == []


def test_signatures_are_those_of_the_calls():
    assert str(inspect.signature(lz.softmax)).startswith("(x, dim")
    assert str(inspect.signature(lz.max)) == "(x, *args, **kwargs)"  # called in several ways
    assert str(inspect.signature(lz.Tensor.softmax)) == "(self, /, dim, dtype=None)"
    assert str(inspect.signature(lz.Tensor.item)) == "(self)" and str(inspect.signature(lz.ones(1).item)) == "()"
    assert str(inspect.signature(lz.nn.Parameter)) == "(data=None, requires_grad=True)" and str(inspect.signature(lz.nn.Module)) == "()"
    assert str(inspect.signature(lz.sync)) == "(wait=False)"
    assert str(inspect.signature(lz.nn.Conv2d)) == ("(in_channels, out_channels, kernel, stride=1, padding=0, dilation=1, groups=1, bias=True, "
                                                    "padding_mode='zeros', device=None, dtype=None)")
    assert list(inspect.signature(lz.nn.MaxPool3d).parameters) == ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    assert inspect.signature(lz.nn.MaxPool3d).parameters["dilation"].default == 1
