"""The dtypes of results: every pair of dtypes as tensors with dims and of rank 0, and beside Python's numbers.

promotion_test.py compares lazuli with promotion.txt, which tests/peers/torch_promotion_test.py FOLDER --record writes from PyTorch;
without --record it compares with PyTorch itself, over more operations.
"""

import pathlib

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
          "uint16", "uint32", "uint64"]
NUMBERS = [True, 2, 2.5, 1.5 + 2j]
# Those of PyTorch that lazuli has no dtype for, and what it takes instead.
INSTEAD = {"complex32": "complex64"}
OPERATIONS = {
    "add": lambda x, y: x + y, "div": lambda x, y: x / y, "add_": lambda x, y: x.add_(y),
    # Only of PyTorch itself.
    "radd": lambda x, y: y + x, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "pow": lambda x, y: x**y,
    "floor_divide": lambda x, y: x // y, "remainder": lambda x, y: x % y, "eq": lambda x, y: x == y, "and": lambda x, y: x & y,
    "mul_": lambda x, y: x.mul_(y), "div_": lambda x, y: x.div_(y), "sub_": lambda x, y: x.sub_(y)}
RECORDED = ["add", "div", "add_"]
TABLE = pathlib.Path(__file__).with_suffix(".txt")


def make(library, dtype, rank):
    x = library.tensor(1, dtype=getattr(library, dtype))
    return x.reshape(1) if rank else x


def outcome(library, operation, x, y):
    """The name of the result's dtype; "-" where the library refuses."""
    operands = [make(library, *o) if isinstance(o, tuple) else o for o in (x, y)]
    try:
        dtype = OPERATIONS[operation](*operands).dtype
    except (RuntimeError, TypeError, OverflowError):
        return "-"
    name = str(dtype).split(".")[-1] if library.__name__ == "torch" else dtype.name
    return INSTEAD.get(name, name)


def cases(operations):
    """(line, operands): a line of the table and what stands in it."""
    for operation in operations:
        for dtype in DTYPES:
            for rank in (1, 0):
                x = (dtype, rank)
                for other in (1, 0):
                    if not (operation.endswith("_") and rank == 0 and other == 1):  # dims differ
                        yield f"{operation} {dtype}[{rank}] [{other}]", [(operation, x, (d, other)) for d in DTYPES]
                yield f"{operation} {dtype}[{rank}] numbers", [(operation, x, n) for n in NUMBERS]


def lines(library, operations=RECORDED):
    """The table: a line of names for each x, in the order of DTYPES or NUMBERS."""
    for line, operands in cases(operations):
        yield f"{line}: {' '.join(outcome(library, *one) for one in operands)}"
