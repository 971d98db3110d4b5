#!/usr/bin/env python3
"""Makes docs/explorer.png and docs/profile.png: pages of a small network's training, drawn by headless Chromium.

    PYTHONPATH=build/release/python tools/explorer_pictures.py
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
TRAIN = """import lazuli as lz
from lazuli import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        hidden = self.up(self.norm(x))
        return x + self.down(hidden.gelu())

net = nn.Sequential(nn.Linear(16, 64), Block(64), Block(64), nn.Linear(64, 10))
x = lz.randn(32, 16)
lz.sync(wait=True)

def loss():
    return net(x).log_softmax(-1).sum()

lz.debug.set_ir_debug(True)
with open("graph.html", "w") as page:
    page.write(lz.debug.graph_html(loss()))
lz.debug.set_ir_debug(False)
for step in range(5):
    if step == 2:
        lz.profiler.start()
    with lz.profiler.StepTrace("train", step), lz.profiler.Scope("forward"):
        loss().backward()
lz.profiler.stop().save("profile.html")
"""
# What a reader would click first: what is searched, and then.
PAGES = {"explorer": ("graph.html", "gelu", ""), "profile": ("profile.html", "thunk gelu", "fit()")}


def draw(chromium, page, picture, words, then):
    click = f"$('search').value = '{words}'; search(); document.querySelector('#found a').click(); {then}"
    page.write_text(page.read_text().replace("</body>", f"<script>{click}</script></body>"))
    subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--screenshot={picture}", "--window-size=1300,760",
                    f"--user-data-dir={page.parent}/chromium", page.as_uri()], check=True, capture_output=True, timeout=100)


def main():
    chromium = shutil.which("chromium") or sys.exit("there is no chromium (apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "train.py").write_text(TRAIN)
        path = os.pathsep.join(str(pathlib.Path(p).resolve()) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep))
        subprocess.run([sys.executable, "train.py"], cwd=folder, env={**os.environ, "PYTHONPATH": path}, check=True)
        for name, (page, words, then) in PAGES.items():
            draw(chromium, pathlib.Path(folder) / page, DOCS / f"{name}.png", words, then)


if __name__ == "__main__":
    main()
