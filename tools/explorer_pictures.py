#!/usr/bin/env python3
"""Makes docs/explorer.png and docs/profile.png: pages of a small network, drawn by headless Chromium.

    PYTHONPATH=build/release/python tools/explorer_pictures.py
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import lazuli as lz
from lazuli import nn

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
# What a reader would click first.
PICK = "<script>{}; $('search').value = '{}'; search(); document.querySelector('#found a').click();</script></body>"


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).gelu())


def draw(chromium, page, picture, opening, words):
    page.write_text(page.read_text().replace("</body>", PICK.format(opening, words)))
    subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--screenshot={picture}", "--window-size=1300,760",
                    f"--user-data-dir={page.parent}/chromium", page.as_uri()], check=True, capture_output=True, timeout=100)


def main():
    chromium = shutil.which("chromium") or sys.exit("there is no chromium (apt-get install chromium)")
    net = nn.Sequential(nn.Linear(16, 64), Block(64), Block(64), nn.Linear(64, 10))
    x = lz.randn(32, 16)
    lz.sync(wait=True)
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "graph.html"
        lz.debug.set_ir_debug(True)
        page.write_text(lz.debug.graph_html(net(x).log_softmax(-1).sum()))
        lz.debug.set_ir_debug(False)
        draw(chromium, page, DOCS / "explorer.png", "0", "gelu 2")
        for _ in range(2):
            net(x).sum().backward()
            lz.sync(wait=True)
        page = pathlib.Path(folder) / "profile.html"
        lz.profiler.start()
        for i in range(3):
            with lz.profiler.StepTrace("train", i), lz.profiler.Scope("forward"):
                net(x).sum().backward()
        lz.profiler.stop().save(page)
        draw(chromium, page, DOCS / "profile.png", "0", "thunk gelu")


if __name__ == "__main__":
    main()
