#!/usr/bin/env python3
"""Checks that includes point one way.

LAYERS maps a folder to the folders its files may include directly; what those may include follows. It is the table of
docs/architecture.md, and the only copy that is enforced. Checked here:

  - the table is acyclic, and no top-level folder depends on a later one;
  - every #include of ours in every source file is allowed by it, and names a file that exists;
  - LLVM's headers stay in backend/cpu/codegen, and public headers include only each other and the standard library;
  - the lazuli:: targets in a folder's CMakeLists.txt are exactly its row.

    tools/check_layering.py [ROOT]      check (default: the repository this file lies in)
    tools/check_layering.py --order     print the folders in an order in which each sees only earlier ones
"""

import graphlib
import pathlib
import re
import sys

LAYERS = {
    "ir/support": [],
    "ir/types": ["ir/support"],
    "ir/hlo": ["ir/types"],
    "ir/recipes": ["ir/support"],
    "ir/evaluator": ["ir/hlo", "ir/recipes"],
    "ir/graph": ["ir/types"],
    "lowering/builder": ["ir/hlo"],
    "lowering/emit": ["ir/graph", "lowering/builder"],
    "lowering/passes": ["ir/hlo", "ir/evaluator", "lowering/builder"],
    "lowering/transforms": ["lowering/passes"],
    "backend/client": ["ir/hlo"],
    "backend/interpreter": ["backend/client", "ir/evaluator"],
    "backend/runtime": ["backend/client", "ir/evaluator"],
    "backend/cpu/runtime": ["backend/runtime"],
    "backend/cpu/codegen": ["backend/cpu/runtime", "ir/hlo"],
    "backend/cpu/passes": ["lowering/passes"],
    "backend/cpu": ["backend/cpu/codegen", "backend/cpu/passes", "backend/cpu/runtime"],
    "backend/npu/sim": ["backend/runtime"],
    "backend/npu/compiler": ["backend/npu/sim", "lowering/passes"],
    "backend/npu": ["backend/npu/compiler"],
    "lazy/tensor": ["ir/graph", "backend/client"],
    "lazy/program": ["ir/graph", "lowering/builder", "lowering/transforms", "backend/interpreter"],
    "lazy/ops/functions": [],
    "lazy/ops/core": ["lazy/tensor", "lazy/program", "lowering/builder", "lazy/ops/functions"],
    "lazy/ops/elementwise": ["lazy/ops/core"],
    "lazy/ops/special": ["lazy/ops/elementwise"],
    "lazy/ops/shape": ["lazy/ops/elementwise"],
    "lazy/ops/reduce": ["lazy/ops/shape"],
    "lazy/ops/index": ["lazy/ops/reduce"],
    "lazy/ops/create": ["lazy/ops/core"],
    "lazy/ops/random": ["lazy/ops/create", "lazy/ops/index", "lazy/ops/special"],
    "lazy/ops/activation": ["lazy/ops/reduce"],
    "lazy/ops/normalization": ["lazy/ops/reduce"],
    "lazy/ops/linear": ["lazy/ops/activation"],
    "lazy/ops/decomposition": ["lazy/ops/elementwise"],
    "lazy/ops/recurrent": ["lazy/ops/core"],
    "lazy/ops/pool": ["lazy/ops/core"],
    "lazy/ops/convolution": ["lazy/ops/linear", "lazy/ops/pool"],
    "lazy/ops/fourier": ["lazy/ops/core"],
    "lazy/ops/image": ["lazy/ops/core"],
    "lazy/ops/loss": ["lazy/ops/activation", "lazy/ops/index"],
    "lazy/ops/optim": ["lazy/ops/core"],
    "lazy/ops/program": ["lazy/ops/core"],
    "lazy/ops": ["lazy/tensor", "lazy/program", "lowering/builder", "lazy/ops/special", "lazy/ops/random",
                 "lazy/ops/decomposition", "lazy/ops/normalization", "lazy/ops/convolution", "lazy/ops/recurrent",
                 "lazy/ops/fourier", "lazy/ops/image", "lazy/ops/loss", "lazy/ops/optim", "lazy/ops/program"],
    "lazy/autograd": ["lazy/ops"],
    "lazy/execution": ["lazy/tensor", "lazy/program", "lowering/emit", "lowering/passes",
                       "backend/client"],
    "lazy/control": ["lazy/ops", "lazy/autograd", "lazy/execution"],
    "lazy/graphs": ["ir/hlo"],
    "lazy/debug": ["lazy/execution", "lazy/graphs"],
    "cpp_api/include": [],
    "cpp_api/src": ["cpp_api/include", "lazy/ops", "lazy/autograd", "lazy/execution",
                    "lazy/control", "lazy/debug", "lowering/transforms", "backend/interpreter",
                    "backend/cpu", "backend/npu"],
    "cpp_api/nn": ["cpp_api/include"],
    "cpp_api/optim": ["cpp_api/include"],
    "cpp_api/data": ["cpp_api/include"],
    "cpp_api/serialize": ["cpp_api/include"],
    "python/src": ["cpp_api/src", "cpp_api/nn", "cpp_api/optim", "cpp_api/data", "cpp_api/serialize",
                   "lazy/ops", "lazy/debug"],
}
# Data flows along these; a folder of one never depends on a folder of a later one.
STAGES = ["ir", "lowering", "backend", "lazy", "cpp_api", "python"]
# Folders that may include anything of ours, and that no folder of LAYERS may include.
FREE = ["tools", "tests", "benchmarks", "examples"]

PUBLIC_HEADERS = "cpp_api/include"
LLVM_HOME = "backend/cpu/codegen"
SOURCES = (".h", ".cc", ".def", ".inc", ".in")
INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')


def check_table(layers):
    """Complaints about the table itself."""
    try:
        tuple(graphlib.TopologicalSorter(layers).static_order())
    except graphlib.CycleError as error:
        yield "the table has a cycle: " + " -> ".join(error.args[1])
        return
    stage = lambda folder: STAGES.index(folder.split("/")[0])
    for folder, deps in layers.items():
        for dep in deps:
            if dep not in layers:
                yield f"{folder} depends on {dep}, which has no row"
            elif stage(dep) > stage(folder):
                yield f"{folder} depends on {dep} of a later stage"


def reachable(folder, layers):
    """What the files of `folder` may include: itself and all its row leads to."""
    seen, todo = set(), [folder]
    while todo:
        f = todo.pop()
        if f not in seen:
            seen.add(f)
            todo += layers.get(f, [])
    return seen


def owner(path, layers):
    """The row a file belongs to: its longest prefix in the table, else its top-level folder."""
    parts = path.split("/")[:-1]
    for n in range(len(parts), 0, -1):
        if "/".join(parts[:n]) in layers:
            return "/".join(parts[:n])
    return parts[0] if parts else ""


def check_file(root, path, layers):
    me = owner(path, layers)
    free = me in FREE
    allowed = reachable(me, layers)
    for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        where, quoted, name = f"{path}:{number}", match[1] == '"', match[2]
        if name.startswith("lazuli/"):  # ours, however it is spelled
            name = f"{PUBLIC_HEADERS}/{name}"
        top = name.split("/")[0]
        if re.match(r"llvm(-c)?/", name) and not free and me != LLVM_HOME:
            yield f"{where}: LLVM headers stay in {LLVM_HOME}"
        elif top in STAGES or top in FREE:
            if not (root / name).is_file() and not (root / f"{name}.in").is_file():  # a template of what is generated
                yield f"{where}: no file {name}"
            elif not free and owner(name, layers) not in allowed:
                yield f"{where}: {me} may not include {owner(name, layers)}"
        elif me == PUBLIC_HEADERS and (quoted or "/" in name or name.endswith(".h")):
            yield f"{where}: public headers include only each other and the standard library"
        elif quoted and "/" not in name:
            yield f"{where}: include {name} by its path from the root"


def check_cmake(root, folder, layers):
    """The lazuli:: targets a folder links are its row, no more and no less."""
    path = root / folder / "CMakeLists.txt"
    if not path.is_file():
        return
    text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
    targets = {f.replace("/", "_"): f for f in layers}
    linked = {targets[t] for t in re.findall(r"lazuli::(\w+)", text) if t in targets}
    row = {dep for dep in layers[folder] if (root / dep / "CMakeLists.txt").is_file()}
    for dep in sorted(linked - row):
        yield f"{folder}/CMakeLists.txt: links {dep}, which its row does not name"
    for dep in sorted(row - linked):
        yield f"{folder}/CMakeLists.txt: does not link {dep}, which its row names"


def check_tree(root, layers):
    for top in STAGES + FREE:
        for file in sorted((root / top).rglob("*")):
            if file.suffix in SOURCES and file.is_file():
                yield from check_file(root, file.relative_to(root).as_posix(), layers)
    for folder in layers:
        yield from check_cmake(root, folder, layers)


def main(args):
    if args == ["--order"]:
        print("\n".join(graphlib.TopologicalSorter(LAYERS).static_order()))
        return 0
    root = pathlib.Path(args[0]) if args else pathlib.Path(__file__).resolve().parent.parent
    complaints = list(check_table(LAYERS)) or list(check_tree(root, LAYERS))
    print("\n".join(complaints) or "layering: ok")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
