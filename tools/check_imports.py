#!/usr/bin/env python3
"""Checks that the imports of the Python package point one way.

A module takes what it needs from the modules that have it, never from a package that imports it: what it finds there would depend on
how far the package has come. `from package import name` takes a module of that name, if there is one, and else is an arrow to the
package; who imports a module imports the packages that it lies in. Imports in functions are arrows, too, because they hide a cycle;
`import_module()` of what a package has later on is not.

    tools/check_imports.py [ROOT]      (default: the repository this file lies in)
"""

import ast
import graphlib
import importlib.util
import pathlib
import sys

FOLDER, PACKAGE = "python/lazuli", "lazuli"
EXTENSION = f"{PACKAGE}._C"  # of C++, which imports nothing of ours


def modules_of(root):
    """{name: path} of the package's modules."""
    made = {}
    for path in sorted((root / FOLDER).rglob("*.py")):
        parts = (PACKAGE, *path.relative_to(root / FOLDER).with_suffix("").parts)
        made[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return made


def packages_of(name):
    """The packages that a module lies in, from the outermost on."""
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def named_by(statement, package):
    """(a module that a statement of a package's names, the module or name that is taken of it)."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield alias.name, alias.name
    elif isinstance(statement, ast.ImportFrom):
        home = importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
        for alias in statement.names:
            yield home, f"{home}.{alias.name}"


def arrows_of(name, modules):
    """(the module that is imported, line) for what a module imports of the package."""
    path = modules[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        for home, taken in named_by(statement, package):
            if taken == EXTENSION or f"{home}.".startswith(f"{EXTENSION}."):
                continue
            target = taken if taken in modules else home
            for other in [*packages_of(target), target]:
                if other in modules and (other == target or not f"{name}.".startswith(f"{other}.")):
                    yield other, statement.lineno


def way(start, end, arrows):
    """The modules of the shortest way between two, or None."""
    before, todo = {start: None}, [start]
    for at in todo:
        if at == end:
            found = [at]
            while (at := before[at]) is not None:
                found.append(at)
            return found[::-1]
        for other in arrows[at]:
            if other not in before:
                before[other] = at
                todo.append(other)
    return None


def check_tree(root):
    modules = modules_of(root)
    lines = {name: {} for name in modules}
    for name in modules:
        for other, line in arrows_of(name, modules):
            if other != name:
                lines[name].setdefault(other, line)
    for name, found in lines.items():
        for other in [p for p in packages_of(name) if p in found]:
            back = way(other, name, lines)
            if back is not None:
                by = f" by way of {', '.join(back[1:-1])}" if len(back) > 2 else ""
                yield f"{modules[name].relative_to(root)}:{found.pop(other)}: {name} -> {other}, which imports it{by}"
    try:
        tuple(graphlib.TopologicalSorter(lines).static_order())
    except graphlib.CycleError as error:
        yield "modules import each other: " + " -> ".join(error.args[1][::-1])


def main(args):
    root = pathlib.Path(args[0]) if args else pathlib.Path(__file__).resolve().parent.parent
    complaints = list(check_tree(root))
    print("\n".join(complaints) or "imports: ok")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
