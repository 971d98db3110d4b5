"""Tensors and modules as HTML for notebooks."""

from lazuli._C import Tensor
from lazuli._C.nn import Module
from lazuli._printing import Cells, edges, elements, get_printoptions, text_of


def escape(text):
    """The text as HTML shows it.

    Python's module for it is imported where it is needed: it is large.
    """
    from html import escape
    return escape(text)


def _shown(size, n):
    """The positions of a dim that are shown; None stands for those that are left out."""
    return [*range(n), None, *range(size - n, size)] if size > 2 * n else list(range(size))


def of_tensor(self):
    """A table for a vector or matrix, summarised like repr(); text for other ranks. Computes the
    elements, which syncs."""
    if self.ndim not in (1, 2) or self.numel() == 0:
        return f"<pre>{escape(text_of(self))}</pre>"
    values = elements(self)
    rows = values.reshape(-1, values.shape[-1])
    summarised, n = values.size > get_printoptions()["threshold"], get_printoptions()["edgeitems"]
    cells = Cells(edges(rows) if summarised else rows)
    down, across = (_shown(size, n) if summarised else range(size) for size in rows.shape)
    lines = ["<tr>" + "".join("<td>&hellip;</td>" if r is None or c is None
                              else f"<td>{escape(cells.text(rows[r, c].item()).strip())}</td>"
                              for c in across) + "</tr>" for r in down]
    return f"<table>{''.join(lines)}</table><p>{self.dtype!r} {list(self.shape)}</p>"


def of_module(self):
    """One line per module: its name, its type, and the number of elements of its own parameters."""
    lines = ["<tr><th>name</th><th>module</th><th>parameters</th></tr>"]
    for name, module in self.named_modules():
        text = f"{module._get_name()}({', '.join(module.extra_repr().splitlines())})"
        count = sum(p.numel() for p in module.parameters(recurse=False))
        lines.append(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td><td>{count:,}</td></tr>")
    lines.append(
        f"<tr><th>all</th><th></th><th>{sum(p.numel() for p in self.parameters()):,}</th></tr>")
    return f"<table>{''.join(lines)}</table>"


Tensor._repr_html_, Module._repr_html_ = of_tensor, of_module
