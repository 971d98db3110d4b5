#!/usr/bin/env python3
"""Writes what other packages look up of the package lazuli, from pyproject.toml, beside a package that is built and not installed.

    make_metadata.py PYPROJECT FOLDER      FOLDER holds the package lazuli, as build/PRESET/python does

With it torch.compile(backend="lazuli") finds the name wherever the folder is on the path.
"""

import pathlib
import sys
import tomllib


def main():
    source, folder = map(pathlib.Path, sys.argv[1:])
    project = tomllib.loads(source.read_text())["project"]
    name, version = project["name"], project["version"]
    made = folder / f"{name}-{version}.dist-info"
    made.mkdir(exist_ok=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {project['description']}\n")
    groups = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in project["entry-points"].items())
    (made / "entry_points.txt").write_text("\n".join(groups))


if __name__ == "__main__":
    main()
