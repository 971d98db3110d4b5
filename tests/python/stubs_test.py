"""Stubs are Python, and say what the functions are."""

import ast
import pathlib

import lazuli as lz

FOLDER = pathlib.Path(lz.__file__).parent


def test_every_stub_parses_and_the_package_is_typed():
    stubs = sorted(FOLDER.glob("_C/**/*.pyi"))
    assert {s.relative_to(FOLDER / "_C").as_posix() for s in stubs} == {
        "__init__.pyi", "_control.pyi", "data.pyi", "debug.pyi", "distributed.pyi", "fft.pyi", "hlo.pyi", "_library.pyi", "linalg.pyi", "metrics.pyi", "nn/__init__.pyi", "nn/functional.pyi",
        "nn/init.pyi", "nn/utils.pyi", "optim.pyi", "profiler.pyi", "special.pyi"}
    for stub in stubs:
        ast.parse(stub.read_text(), filename=str(stub))
    assert (FOLDER / "py.typed").is_file()


def test_signatures_have_names_types_and_defaults():
    text = (FOLDER / "_C/__init__.pyi").read_text()
    assert ("def sum(x: Tensor, dims: builtins.int | Sequence[builtins.int] | None = (), keepdim: builtins.bool = False, "
            "dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:") in text
    assert "def max(x: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: tuple[Tensor, Tensor] | None = None)" in text
    assert "    def sum(self, dims: builtins.int | Sequence[builtins.int] | None = (), keepdim: builtins.bool = False, " in text
    assert "def zeros(dims: builtins.int | Sequence[builtins.int], dtype: DType | None = None, device: Device | str | None = None, " in text
    assert "    @overload\n    def reshape(self, *dims: builtins.int) -> Tensor:" in text
    assert "def full(dims: builtins.int | Sequence[builtins.int], value: " in text  # where no dims can be in a row
    assert "def full(*dims" not in text
    assert "    @overload\n    def sum(self, dim: builtins.int | Sequence[builtins.int] | None = ()" in text
    assert "    def clamp_(self, low: builtins.float | builtins.int | builtins.bool | None = None" in text
    assert "def einsum(equation: str, *xs: Tensor, out: Tensor | None = None) -> Tensor:" in text
    assert "    def __ifloordiv__(self, other: " in text and "def __imatmul__" not in text
    layers = (FOLDER / "_C/nn/__init__.pyi").read_text()
    assert "class Linear(Module):" in layers
    assert "def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None" in layers
    assert "def state_dict(self, *, destination" in layers


def test_every_public_function_is_in_a_stub():
    text = (FOLDER / "_C/__init__.pyi").read_text()
    for name, value in vars(lz._C).items():
        if callable(value) and not name.startswith("__") and not isinstance(value, type):
            assert f"def {name}(" in text, name
