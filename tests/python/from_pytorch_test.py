"""Every row of docs/from_pytorch.md runs: lazuli's column, and PyTorch's where it is said to be the same."""

import copy
import pathlib
import pickle
import re

import numpy as np
import pytest

import lazuli

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/from_pytorch.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`.*) \| (.*) \|$", PAGE, re.MULTILINE)


def programs(row):
    """The texts that a row promises to run."""
    theirs, ours = row
    return re.findall(r"`([^`]*)`", theirs) if "the same" in ours else re.findall(r"`([^`]*)`", ours)[:1]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_row_runs(row, tmp_path):
    torch = lazuli
    net = torch.nn.Sequential(torch.nn.Linear(3, 3))
    x = torch.randn(2, 3)
    names = {"copy": copy, "pickle": pickle, "np": np, "torch": torch, "net": net, "x": x, "path": str(tmp_path / "a"),
             "opt": torch.optim.SGD(net.parameters(), lr=0.1), "loss": net(x).sum()}
    torch.save(net.state_dict(), names["path"])
    imports, = re.findall(r"```python\n(import lazuli as torch\n.*?)```", PAGE, re.DOTALL)
    exec(imports, names)
    texts = programs(row)
    assert texts, row
    for text in texts:
        exec(text, names)
    torch.sync(True)


def test_the_page_has_rows():
    assert len(ROWS) > 30
