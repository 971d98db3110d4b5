"""Random programs over everything that is public in Python, and with it over the functions of C++ that it binds.

What there is to call comes from the package itself: modules, classes, and the parameters in the tables of the rows, in
docstrings and in Python's signatures. So what is new is called, too. A program is a list of statements, decided by a seed;
the session that runs them writes each down before it runs it, so a crash leaves a program that shows it.

    surface.py LOG SEED FIRST PROGRAMS     runs programs FIRST to FIRST + PROGRAMS - 1; a line of JSON for each mistake
    surface.py --program SEED N            prints program N
"""

import inspect
import json
import random
import re
import resource
import sys

import numpy as np

import lazuli as lz

STATEMENTS = 45  # of a program
GROWTH = 1 << 30  # of the process in one program, in bytes, that is a mistake: the limit of memory is far below

# --- operands, as programs make them

SPECIAL = [0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), float("-inf"), 1e-40, 3e38, 0.5, -2.0, 255, 127, -128]


def values(seed, shape, name="float64"):
    """Small numbers, or among them those where functions change, as NumPy's type of this name has them."""
    rng = np.random.default_rng(seed)
    made = rng.uniform(-3, 3, shape) if seed % 2 else rng.integers(-3, 4, shape)
    if seed % 5 == 0 and np.size(made):
        made = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), made)
    with np.errstate(all="ignore"):
        return np.asarray(made).astype(name)


def T(seed, dtype, shape, form="", grad=False):
    """A tensor of values by a seed."""
    dtype = lz.dtype_of(dtype)
    try:
        x = lz.tensor(values(seed, shape, dtype.name))
    except TypeError:  # NumPy has no such type
        x = lz.tensor(values(seed, shape, "float32")).to(dtype)
    if grad and dtype.is_floating_point:
        x.requires_grad = True
    if form == "computed":
        x = x.reshape(-1).flip(0).reshape(x.shape)
    elif form == "detached":
        x = x.detach()
    elif form == "broadcast":
        x = x.unsqueeze(0).broadcast_to((2, *x.shape))[1]
    elif form == "written":
        x = x * 1
        x.copy_(x.detach())
    return x


class Samples:
    """A data set of Python."""

    def __init__(self, n, rows=2):
        self.n, self.rows = n, rows

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return np.full(self.rows, i, np.float32), i


HLO = "HloModule m\nENTRY e { p = f32[2]{0} parameter(0) ROOT r = f32[2]{0} add(p, p) }"

# --- what there is to call

MODULES = {"lz": lz, "lz.nn": lz.nn, "lz.nn.functional": lz.nn.functional, "lz.nn.init": lz.nn.init, "lz.nn.utils": lz.nn.utils,
           "lz.autograd": lz.autograd, "lz.data": lz.data, "lz.optim": lz.optim, "lz.hlo": lz.hlo, "lz.debug": lz.debug,
           "lz.metrics": lz.metrics}

# What is not called, and why.
LEFT_OUT = {
    "set_memory_limit": "the programs run under one",
    "Context.make_current": "what stays pending in another context would fail later programs",
    "Mnist": "reads files that are not there", "Cifar10": "as Mnist", "classes": "as Mnist",
}
PROTOCOLS = {"__call__", "__deepcopy__", "__copy__", "__array__", "__dlpack__", "__len__", "__getitem__", "__enter__", "__eq__", "__iter__"}
OPERATORS = ["{x} + {y}", "{y} - {x}", "{x} * {y}", "{x} / {y}", "{x} // {y}", "{x} % {y}", "{x} ** {y}", "{x} @ {y}", "{x} & {y}",
             "{x} | {y}", "{x} ^ {y}", "{x} < {y}", "{x} <= {y}", "{x} == {y}", "{x} != {y}", "{x} > {y}", "{x} >= {y}", "-{x}", "~{x}",
             "abs({x})", "{x}[{i}]", "len({x})", "list({x})", "float({x})", "int({x})", "bool({x})", "{y} in {x}", "str({x})",
             "f'{{{x}:.3f}}'", "hash({x})", "copy.deepcopy({x})", "pickle.loads(pickle.dumps({x}))", "np.asarray({x})",
             "memoryview({x})", "np.from_dlpack({x})", "lz.from_dlpack({x})", "range(8)[{x}]", "round({x})", "divmod({x}, {y})",
             "complex({x})", "{x}.T", "{x}.mT", "{x}.data", "np.ones(2) + {x}", "np.sin({x})"]
STATEMENTS_IN_PLACE = ["{x} += {y}", "{x} -= {y}", "{x} *= {y}", "{x} /= {y}", "{x} //= {y}", "{x} %= {y}", "{x} **= {y}", "{x} &= {y}",
                       "{x} |= {y}", "{x} ^= {y}", "{x} @= {y}", "{x}[{i}] = {y}", "{x}[{i}] += {y}", "del {x}[{i}]", "{x}.name = {v}",
                       "{x}.requires_grad = {v}", "{x}.grad = {v}", "{x}.data = {v}", "{x}.shape = {v}"]


class Entry:
    """Something to call: how it is written, and (name, type, whether it may be left out) of each parameter."""

    def __init__(self, name, text, owner, parameters):
        self.name, self.text, self.owner, self.parameters = name, text, owner, parameters


def parse_parameters(text):
    """Of "(self: lazuli.Tensor, dim: int, p: float = 0.5) -> int"; None if that is no such text."""
    depth, parts, start = 0, [], 1
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if (c == "," and depth == 1) or depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
        if depth == 0:
            break
    parameters = []
    for part in filter(None, parts):
        match = re.fullmatch(r"(\*{0,2}\w+|[*/])(?:: ([^=]*?))?(?: ?= ?(.*))?", part, re.DOTALL)
        if match is None:
            return None
        if match[1] not in ("/", "*"):
            parameters.append((match[1], match[2] or "", match[3] is not None))
    return parameters


ROWS = {}  # by owner and name: parameters as stubs have them
for owner_, _, name_, text_, *_ in lz._C._definitions():
    ROWS[owner_.removeprefix("lazuli._C").removeprefix("lazuli").strip("."), name_] = parse_parameters(text_)


def parameters_of(owner, name, value):
    if (owner, name) in ROWS:
        return ROWS[owner, name]
    if isinstance(value, type):
        text = getattr(value, "__init_signature__", None)
        if text:
            return parse_parameters(text)
        value = value.__init__
    doc = re.search(r"\w+(\(.*\)) ->", value.__doc__ or "")
    if doc and parse_parameters(doc[1]) is not None:
        return [p for p in parse_parameters(doc[1]) if p[0] != "self"]
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return [("x", "", True)]
    return [(p.name if p.kind != p.VAR_POSITIONAL else "*" + p.name, "", p.default is not p.empty or p.kind in (2, 4))
            for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD and p.name != "self"]


def surface():
    """Every Entry, each once, and (name, class) of the classes by their own names."""
    entries, classes, seen = [], {}, set()
    for prefix, module in MODULES.items():
        inside = prefix.removeprefix("lz").strip(".")
        for name, value in vars(module).items():
            ours = str(getattr(value, "__module__", "")).startswith("lazuli") or isinstance(value, type(len))
            if name.startswith("_") or not callable(value) or not ours or name in LEFT_OUT or value in seen:
                continue
            seen.add(value)
            if isinstance(value, type):
                classes[value.__name__] = f"{prefix}.{name}", value
            entries.append(Entry(name, f"{prefix}.{name}({{}})", None, parameters_of(inside, name, value)))
    for class_name, (_, cls) in classes.items():
        entries += methods(class_name, cls)
    for text in OPERATORS + STATEMENTS_IN_PLACE:
        entries.append(Entry(text, text, "operator", []))
    return entries, classes


def methods(class_name, cls):
    """An Entry for each method and property that the class has of its own, and for calling its objects."""
    for name in sorted({*vars(cls), *({"__call__"} & set(dir(cls)))}):
        if name in LEFT_OUT or f"{class_name}.{name}" in LEFT_OUT or name.startswith("_") and name not in PROTOCOLS:
            continue
        full = f"{class_name}.{name}"
        if isinstance(inspect.getattr_static(cls, name), property):
            yield Entry(full, f"{{self}}.{name}", class_name, None)
            continue
        # Calling a module calls its forward().
        method = "forward" if name == "__call__" and hasattr(cls, "forward") else name
        parameters = ROWS.get((class_name, method))
        parameters = parameters[1:] if parameters else parameters_of("", method, getattr(cls, method))
        yield Entry(full, f"{{self}}.{name}({{}})", class_name, [p for p in parameters if p[0] != "self"])


ENTRIES, CLASSES = surface()
PUBLIC = {e.name.split(".")[-1] for e in ENTRIES} | {*CLASSES, "m"}  # m: the module HLO
DTYPES = sorted({v.name for v in vars(lz).values() if isinstance(v, lz.DType)})
USUAL = ["float32", "float32", "float32", "float64", "int64", "int32", "bool", "float16", "bfloat16", "uint8", "int8", "complex64"]
# By name of the parameter: dtypes that functions take there.
KINDS = {"one_hot": "int64", "index": "int64", "indices": "int64", "positions": "int64", "mask": "bool", "condition": "bool", "labels": "int64",
         "attn_mask": "bool"}

# How operands of some functions fit each other; n, m, k are sizes.
SHAPES = {
    "matmul": ["(n, k)", "(k, m)"], "mm": ["(n, k)", "(k, m)"], "bmm": ["(2, n, k)", "(2, k, m)"], "dot": ["(n,)", "(n,)"],
    "linear": ["(n, k)", "(m, k)", "(m,)"], "conv2d": ["(n, k, 6, 7)", "(m, k, 3, 2)", "(m,)"],
    "max_pool2d": ["(n, k, 6, 7)"], "avg_pool2d": ["(n, k, 6, 7)"], "adaptive_avg_pool2d": ["(n, k, 6, 7)"],
    "cross_entropy": ["(n, k)", "(n,)"], "nll_loss": ["(n, k)", "(n,)"], "embedding": ["(k, m)", "(n,)"],
    "outer": ["(n,)", "(m,)"], "where": ["(n, k)", "(n, k)", "(n, k)"], "masked_fill": ["(n, k)", "(n, k)"],
    "index_select": ["(n, k)", None, "(m,)"], "gather": ["(n, k)", None, "(n, k)"], "index_add": ["(n, k)", None, "(m,)", "(m, k)"],
    "index_copy": ["(n, k)", None, "(m,)", "(m, k)"], "scatter": ["(n, k)", None, "(n, k)", "(n, k)"],
    "scatter_add": ["(n, k)", None, "(n, k)", "(n, k)"], "prelu": ["(n, k, m)", "(k,)"], "layer_norm": ["(n, k)"], "rms_norm": ["(n, k)"],
    "group_norm": ["(n, 4, m)"], "take_along_dim": ["(n, k)", "(n, k)"], "one_hot": ["(n, k)"], "select": ["(n, k)"],
    "narrow": ["(n, k)"], "permute": ["(n, k)"], "transpose": ["(n, k)"], "batch_norm": ["(n, k, m)", "(k,)", "(k,)", "(k,)", "(k,)"],
}
CLASS_SHAPES = {"Linear": "(3, 4)", "Conv2d": "(2, 4, 6, 7)", "MaxPool2d": "(2, 4, 6, 7)", "AvgPool2d": "(2, 4, 6, 7)",
                "AdaptiveAvgPool2d": "(2, 4, 6, 7)", "BatchNorm1d": "(3, 4)", "BatchNorm2d": "(2, 4, 6, 7)",
                "GroupNorm": "(2, 4, 3)"}
# Objects to call methods of; any other class is called without arguments or with what a program draws.
OBJECTS = {
    "Linear": "lz.nn.Linear(4, 3)", "Conv2d": "lz.nn.Conv2d(4, 2, 3)", "MaxPool2d": "lz.nn.MaxPool2d(2)",
    "AvgPool2d": "lz.nn.AvgPool2d(2)", "AdaptiveAvgPool2d": "lz.nn.AdaptiveAvgPool2d(2)", "BatchNorm1d": "lz.nn.BatchNorm1d(4)",
    "BatchNorm2d": "lz.nn.BatchNorm2d(4)", "LayerNorm": "lz.nn.LayerNorm(4)", "GroupNorm": "lz.nn.GroupNorm(2, 4)",
    "RMSNorm": "lz.nn.RMSNorm(4)", "Embedding": "lz.nn.Embedding(5, 4)", "Softmax": "lz.nn.Softmax(0)",
    "LogSoftmax": "lz.nn.LogSoftmax(0)", "Sequential": "lz.nn.Sequential(lz.nn.Linear(4, 3), lz.nn.ReLU())",
    "ModuleList": "lz.nn.ModuleList([lz.nn.Linear(4, 3)])", "Parameter": "lz.nn.Parameter(lz.ones(3))",
    "Module": "lz.nn.Sequential(lz.nn.Linear(4, 3))", "Optimizer": "lz.optim.SGD([lz.ones(3)], lr=0.1)",
    "LRScheduler": "lz.optim.StepLR(lz.optim.SGD([lz.ones(3)], lr=0.1), 2)",
    "LambdaLR": "lz.optim.LambdaLR(lz.optim.SGD([lz.ones(3)], lr=0.1), lambda t: 1 / (t + 1))",
    "SequentialLR": "lz.optim.SequentialLR((o := lz.optim.SGD([lz.ones(3)], lr=0.1)), [lz.optim.StepLR(o, 2), lz.optim.StepLR(o, 3)], [2])",
    "Dataset": "lz.data.TensorDataset(lz.ones(4, 2), lz.arange(4))", "TensorDataset": "lz.data.TensorDataset(lz.ones(4, 2), lz.arange(4))",
    "Subset": "lz.data.Subset(Samples(5), [3, 1])", "Repeat": "lz.data.Repeat(Samples(3), 2)",
    "DataLoader": "lz.data.DataLoader(Samples(5), batch_size=2, prefetch=0)",
    "Epoch": "iter(lz.data.DataLoader(Samples(5), batch_size=2, prefetch=0))", "DType": "lz.float32", "Device": "lz.Device('interpreter')",
    "DeferredItem": "lz.ones(1).item_async()", "HookHandle": "T(1, 'float32', (2,), '', True).register_hook(lambda g: None)",
    "HloModule": "lz.hlo.HloModule.parse(HLO)", "HloExecutable": "lz.hlo.HloModule.parse(HLO).compile('interpreter')",
    "HloInstruction": "lz.hlo.HloModule.parse(HLO).instructions[0]", "Context": "lz.Context()",
}
SCHEDULES = {"MultiStepLR": "[1, 2]", "ExponentialLR": "0.5", "CosineAnnealingLR": "5", "CosineAnnealingWarmRestarts": "5", "CyclicLR": "0.1, 1",
             "OneCycleLR": "1, 5", "MultiplicativeLR": "lambda t: 0.9"}
for class_ in CLASSES:  # optimisers, schedules, activations and losses by their bases
    cls_ = CLASSES[class_][1]
    if class_ in OBJECTS or class_ == "Tensor":
        continue
    if issubclass(cls_, lz.optim.Optimizer):
        tensors = "[T(1, 'float32', (2, 2), '', True)]" if class_ == "Muon" else "[lz.ones(3), T(1, 'float32', (2, 2), '', True)]"
        OBJECTS[class_] = f"{CLASSES[class_][0]}({tensors}, lr=0.1)"
    elif class_ == "ChainedScheduler":
        OBJECTS[class_] = f"lz.optim.ChainedScheduler([{OBJECTS['LRScheduler']}])"
    elif issubclass(cls_, lz.optim.LRScheduler):
        OBJECTS[class_] = f"{CLASSES[class_][0]}(lz.optim.SGD([lz.ones(3)], lr=0.1), {SCHEDULES.get(class_, '')})"


class Writer:
    """Writes a program: the text of one statement after the other."""

    by_name = True  # arguments may go by their names
    usual = "float32"  # what functions get whose operands have to fit

    def __init__(self, seed, number):
        self.rng = random.Random(f"{seed}:{number}")
        self.tensors = []  # names of variables
        self.me = self.sizes = None  # of the call that is written: the class of its object, the sizes of that
        self.count = 0

    def chance(self, p):
        return self.rng.random() < p

    def size(self):
        return self.rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 8])

    def dims(self):
        return tuple(self.size() for _ in range(self.rng.choice([0, 1, 1, 2, 2, 2, 3, 4])))

    def dtype(self):
        return self.rng.choice(USUAL if self.chance(0.9) else DTYPES)

    # --- values, as text

    def tensor(self, shape, dtype=None):
        if self.tensors and self.chance(0.25) and dtype is None:
            return self.rng.choice(self.tensors)
        form = self.rng.choice(["", "", "", "computed", "detached", "broadcast", "written"])
        more = f", {form!r}, {self.chance(0.4)}" if form or self.chance(0.4) else ""
        return f"T({self.rng.randrange(1000)}, {dtype or self.dtype()!r}, {shape}{more})"

    def near(self, shape):
        """The shape, one that broadcasts with it, or another."""
        if self.chance(0.7):
            return shape
        if self.chance(0.7):
            return tuple(n if self.chance(0.6) else 1 for n in shape)[self.rng.choice([0, 0, 1]):]
        return self.dims()

    def integer(self):
        if self.chance(0.8):
            return str(self.rng.choice([0, 0, 1, 1, 2, 2, 3, 4, -1, -1, -2]))
        return self.rng.choice(["-3", "5", "7", "8", "100", "2**20", "2**31 - 1", "2**31", "-2**31", "2**40", "2**62", "2**63 - 1", "-2**63",
                                "2**63", "2**64", "10**30", "True", "np.int32(1)", "np.uint64(2**63)", "1.0", "1.5", "float('nan')"])

    def number(self):
        if self.chance(0.75):
            return self.rng.choice(["0", "1", "2", "-1", "0.5", "0.1", "-0.3", "3.0", "1e-5", "0.9", "True"])
        return self.rng.choice(["float('nan')", "float('inf')", "-float('inf')", "1e30", "1e300", "5e-324", "-0.0", "2**31", "2**53 + 1", "2**63",
                                "-2**63", "10**30", "1j", "np.float32(2)", "np.float64(0.1)", "np.int8(-3)", "np.bool_(True)", "-1e-40"])

    def integers(self):
        n = self.rng.choice([0, 1, 1, 2, 2, 3, 4])
        values = ", ".join(self.integer() for _ in range(n))
        return f"[{values}]" if self.chance(0.6) else f"({values}{',' if n == 1 else ''})"

    def index(self, depth=0):
        draw = self.rng.randrange(12)
        if draw < 4:
            return self.integer()
        if draw < 6:
            part = lambda: self.integer() if self.chance(0.6) else ""  # noqa: E731
            return f"{part()}:{part()}" + (f":{part()}" if self.chance(0.4) else "")
        if draw == 6:
            return self.rng.choice(["None", "..."])
        if draw == 7:
            return self.tensor(self.rng.choice([(), (2,), (2, 2)]), self.rng.choice(["int64", "int32", "bool", "float32", "uint8"]))
        if draw == 8:
            return self.integers()
        if draw == 9 and self.chance(0.3):
            return self.wrong()
        if depth == 0:
            return ", ".join(self.index(1) for _ in range(self.rng.randrange(1, 5)))
        return "0"

    def wrong(self):
        return self.rng.choice(["None", "'abc'", "''", "[]", "()", "{}", "object()", "b'x'", "[None]", "[[1, 2], [3]]", "np.ones((2, 2))", "lz",
                                "lz.float32", "int", "(lambda *a: a[0])", "1j", "float('nan')", "-1", "2**62", "10**30", "'\\ud800'", "[T(1, 'float32', ())]",
                                "{'a': 1}", "range(3)", "set()", "iter([1])", "lz.nn.Linear(2, 2)", "type", "np.array(['a'])", "slice(1)",
                                "np.array([object()])", "NotImplemented", "Ellipsis", "'x' * 1000", "[1] * 100"])

    def string(self, name):
        if name == "equation":
            return self.rng.choice(["'ij,jk->ik'", "'ii'", "'ij->ji'", "'i,j'", "'...i,i'", "'ij,j'", "'ii->i'", "'a b'", "'->'", "''", "'ij->k'", "'ab,bc,cd'"])
        if name in ("path", "folder"):
            return self.rng.choice(["'file'", "'no/such/file'", "''", "'.'", "pathlib.Path('file')", "b'file'", "'a\\0b'"])
        if name == "text":
            return self.rng.choice(["HLO", "''", "'HloModule'", "HLO[:60]", "HLO.replace('add', 'sub')", "HLO.replace('2', '9' * 30)"])
        return self.rng.choice(["'mean'", "'sum'", "'none'", "'fan_in'", "'relu'", "'cpu'", "'interpreter:0'", "'cpu:7'", "'x'", "''", "'a.b'", "'weight'", "'é'"])

    def tensors_in(self, shape):
        n = self.rng.choice([0, 1, 2, 2, 3])
        values = ", ".join(self.tensor(self.near(shape), "float32" if self.chance(0.6) else None) for _ in range(n))
        return f"[{values}]" if self.chance(0.8) else f"({values}{',' if n == 1 else ''})"

    def value(self, name, kind, shape):
        """A value for a parameter of this name and type."""
        if self.chance(0.04):
            return self.wrong()
        if "Iterable[Tensor]" in kind or "List[lazuli.Tensor]" in kind or name in ("inputs", "outputs", "tensors", "params", "parameters", "xs"):
            return self.tensors_in(shape)
        if kind == "" and name in ("target", "y", "other", "x", "input", "weight", "source", "outputs", "gradient"):
            kind = "Tensor"
        if kind.startswith("Tensor |") or name == "other":
            return self.tensor(self.near(shape)) if self.chance(0.6) else self.number()
        if "Tensor" in kind and "Callable" not in kind:
            if "None" in kind and self.chance(0.3):
                return "None"
            return self.tensor(self.near(shape), KINDS.get(name) if self.chance(0.8) else None)
        if "None" in kind and self.chance(0.2):
            return "None"
        if "Sequence[int]" in kind or "List[int]" in kind or name in ("dims", "shape", "counts", "sizes", "milestones", "indices"):
            return self.integers() if self.chance(0.7) else self.integer()
        if "DType" in kind or name == "dtype":
            return f"lz.{self.rng.choice(USUAL)}" if self.chance(0.7) else self.rng.choice([repr(self.rng.choice(DTYPES)), "float", "'f32'", "np.int8", "np.dtype('>i4')", "'object'", "complex"])
        if "Device" in kind or name == "device":
            return self.rng.choice(["None", "'interpreter'", "lz.Device('interpreter')", "'cpu'", "'cpu:0'", "'gpu'", "'cpu:99999999999999999999'", "''"])
        if "bool" in kind and "float" not in kind:
            return self.rng.choice(["True", "False"])
        if "tuple[int, int]" in kind:
            return self.integer() if self.chance(0.5) else f"({self.integer()}, {self.integer()})"
        if "tuple[float, float]" in kind:
            return f"({self.number()}, {self.number()})"
        if "int" in kind and "float" not in kind or name in ("dim", "n", "start", "end", "step", "times", "seed", "steps", "bytes"):
            return self.integer()
        if "float" in kind or name in ("p", "lr", "rtol", "atol", "eps", "metric"):
            return self.number()
        if "Optimizer" in kind or name == "optimizer":
            return OBJECTS["Optimizer"]
        if "Module" in kind or name == "module":
            return self.rng.choice([OBJECTS["Linear"], OBJECTS["Sequential"], OBJECTS["BatchNorm1d"]])
        if name == "dataset":
            return self.rng.choice(["Samples(5)", "Samples(0)", OBJECTS["TensorDataset"], OBJECTS["Subset"], "[(np.ones(2, np.float32), 0)] * 4", "[1, 2]"])
        if "Callable" in kind or name in ("f", "hook", "function", "factor", "replace", "lr_lambda", "closure", "scale_fn"):
            return self.rng.choice(["lambda *a: None", "lambda *a: a[0]", "lambda a: a * 2", "lambda a: a[0].sum()", "lambda: 1", "len", "lambda a: ''"])
        if "Dict" in kind or "dict" in kind or name == "state":
            return self.rng.choice(["{}", "{'weight': T(3, 'float32', (3, 4))}", "{'__metadata__': T(1, 'float32', ())}", "{'__metadata__': {'a': 'b'}}", "{1: T(1, 'float32', ())}", "{'a': 1, 'b': [1.0]}", "lz.nn.Linear(4, 3).state_dict()"])
        if "str" in kind or name in ("name", "path", "text", "equation", "reduction", "mode"):
            return self.string(name)
        return self.rng.choice([self.integer, self.number, self.wrong, lambda: self.tensor(shape), self.integers, lambda: self.string(name)])()

    # --- statements

    def arguments(self, entry, shape):
        name = entry.name.split(".")[-1]
        shapes = SHAPES.get(name.rstrip("_"), [])
        sizes = {"n": self.size(), "k": self.rng.choice([1, 2, 4]), "m": self.rng.choice([1, 2, 3])} if self.chance(0.85) else None
        sizes = self.sizes or sizes
        shapes = [s and eval(s, sizes) for s in shapes] if shapes and sizes else []
        if entry.owner == "Tensor":
            shapes = shapes[1:]
        if self.me in CLASS_SHAPES and name in ("__call__", "forward") and self.chance(0.8):
            shapes = [eval(CLASS_SHAPES[self.me])]
        texts, named = [], False
        for p, (parameter, kind, optional) in enumerate(entry.parameters):
            if parameter.startswith("**"):
                continue
            if optional and self.chance(0.6):
                if not self.by_name:
                    break
                named = True
                continue
            if not optional and self.chance(0.01):
                continue
            fits = p < len(shapes) and shapes[p] is not None and self.chance(0.9)
            if parameter.startswith("*"):
                texts += [self.value(parameter[1:], kind, shape) for _ in range(0 if named else self.rng.randrange(3))]
            elif fits and "Tensor" in kind or fits and kind == "":
                integer = KINDS.get(parameter) == "int64" or (name in ("cross_entropy", "nll_loss") and p == 1 or name == "embedding" and len(shapes[p]) == 1)
                dtype = "int64" if integer else KINDS.get(parameter, self.usual)
                text = f"T({self.rng.randrange(1000)}, {dtype!r}, {shapes[p]}, '', {self.chance(0.3)})" + (" % 2" if integer else "")
                texts.append(f"{parameter}={text}" if named else text)
            else:
                text = self.value(parameter, kind, shape)
                named = named or self.by_name and self.chance(0.1)
                texts.append(f"{parameter}={text}" if named and not re.fullmatch(r"arg\d+", parameter) else text)
        if self.by_name and self.chance(0.01):
            texts.append(self.wrong() if not named else f"nonsense={self.wrong()}")
        return ", ".join(texts)

    def variable(self, shape):
        """A statement that makes a tensor, and its name."""
        name = f"t{self.count}"
        self.count += 1
        made = self.tensor(shape)
        self.tensors = [t for t in self.tensors if t != name][-6:] + [name]
        return [f"{name} = {made}"], name

    def statements_of(self, entry):
        shape = self.dims()
        before = []
        if entry.owner == "operator":
            x = "x"
            if entry.text in STATEMENTS_IN_PLACE or self.chance(0.5):
                before, x = self.variable(shape)
            else:
                x = self.tensor(shape) if not entry.text.startswith("f'") else "lz.ones(1)"
            y = self.tensor(self.near(shape)) if self.chance(0.6) else self.number() if self.chance(0.9) else self.wrong()
            text = entry.text.format(x=x, y=y, i=self.index(), v=self.value("v", "", shape))
            return before + [text if entry.text in STATEMENTS_IN_PLACE else f"r = {text}"]
        owner = entry.owner
        self.me, self.sizes = owner, None
        if owner == "Tensor":
            name = entry.name.split(".")[-1]
            if name in SHAPES and self.chance(0.9):
                self.sizes = {"n": self.size(), "k": 2, "m": 3}
                me = f"T({self.rng.randrange(1000)}, {KINDS.get(name, self.usual)!r}, {eval(SHAPES[name][0], self.sizes)})"
            elif name.endswith("_"):
                before, me = self.variable(shape)
            else:
                me = self.tensor(shape)
        elif owner is not None:
            derived = [c for c in CLASSES if issubclass(CLASSES[c][1], CLASSES[owner][1])] if self.chance(0.7) else [owner]
            self.me = owner = self.rng.choice(derived)
            me = OBJECTS.get(owner, CLASSES[owner][0] + "()")
        else:
            me = ""
        if entry.parameters is None:
            return before + [f"r = {entry.text.format(self=me)}"]
        return before + ["r = " + entry.text.replace("{self}", me).replace("{}", self.arguments(entry, shape), 1)]

    def afterwards(self):
        """What is done with the result r, at random."""
        draw = self.rng.random()
        if draw < 0.06:
            return self.rng.choice(["read(r)", "read(r)", "repr(r)", "first(r).sum().item()"])
        if draw < 0.12:
            return "first(r).sum().backward()"
        if draw < 0.13:
            return self.rng.choice(["lz.sync(True)", "lz.mark_step()"])
        if draw < 0.17:
            return "places(r)"
        if draw < 0.3:
            self.tensors = self.tensors[-6:] + ["k"]
            return "k = first(r) if first(r).numel() < 5000 else lz.ones(2)"
        return None

    def program(self):
        """(whether it is the call itself, text) of each statement."""
        order = self.rng.sample(ENTRIES, STATEMENTS)
        yield False, "k = lz.ones(2, 3)"
        for entry in order:
            *before, call = self.statements_of(entry)
            for text in before:
                yield False, text
            yield entry, call
            after = self.afterwards()
            if after:
                yield False, after


# --- running programs

PREAMBLE = "import copy, pathlib, pickle\nimport numpy as np\nimport lazuli as lz\nfrom surface import HLO, Samples, T, first, read, places\n"


class Misplaced(Exception):
    """A node whose line is not the program's."""


class NotFitting(Exception):
    """What a program wanted to do with a result that is not a tensor."""


def first(result):
    """The tensor that a result is or begins with."""
    if isinstance(result, (tuple, list)) and len(result) > 0:
        result = result[0]
    if not isinstance(result, lz.Tensor):
        raise NotFitting
    return result


def read(result):
    tensor = first(result)
    return tensor.float().numpy() if tensor.dtype.is_floating_point else tensor.numpy() if tensor.numel() else None


def places(result):
    """Everything pending has a line of the program."""
    tensor = first(result)
    text = lz.debug.graph_text(tensor)
    wrong = [line for line in text.splitlines() if "location=" in line and not re.search(r"location=(\S*@)?(program|surface).py:\d+", line)]
    if wrong:
        raise Misplaced(f"recorded elsewhere: {wrong[0].strip()}")


RIGHT = (ValueError, TypeError, IndexError, RuntimeError, NotImplementedError, OverflowError, AttributeError, BufferError, ZeroDivisionError,
         OSError, StopIteration, KeyError, NotFitting,
         AssertionError,  # PyTorch's, of what cannot be fused
         NameError)  # of a variable whose statement raised
WRONG = (RecursionError, UnicodeDecodeError)
WORDS = re.compile(r"incompatible (?:function|constructor)|Unable to c|pybind|std::|absl::|lazuli::| at 0x[0-9a-f]{6,}|check failed|\binternal\b|"
                   r"basic_string|_M_|vector::|bad_alloc|\b[\w/]+\.(?:cc|h)\b|lazuli/\w+\.py|\bPy[A-Z]\w+|C\+\+|unknown type|nullptr|capsule|"
                   r"INVALID_ARGUMENT|OUT_OF_RANGE|INTERNAL|\bstol?\w*\b$|cpp_function|(?<!lr_)lambda\w*'|_C\.", re.IGNORECASE)
# NumPy's own: of a dtype; of float(array); of a number that a dtype does not hold.
NUMPYS = ("Cannot interpret ", "only 0-dimensional arrays can be converted to Python scalars", "Python integer ")
OTHERS = re.compile(r"^'?(module|type|builtin|NoneType|int|float|str|list|tuple|slice|set|bytes|method|function|property)\b|numpy|iter|unsupported|positional|not subscriptable")


def complaint(error):
    """What is wrong with an exception as an answer to a user, or None."""
    message = str(error)
    if not isinstance(error, RIGHT) or isinstance(error, WRONG):
        return f"an exception of the wrong class, {type(error).__name__}: {message[:300]}"
    found = WORDS.search(re.sub(r"<module .*?>", "", message))  # that a call was given
    if found and not message.startswith(NUMPYS):
        return f"a word of ours, {found[0]!r}, in {type(error).__name__}: {message[:300]}"
    place = re.search(r"\(([^()\s]+):(\d+)\)$", message)
    if place and place[1] not in ("program.py", "surface.py"):
        return f"a line that is not the user's: {message[:300]}"
    head = re.match(r"([\w-]+): ", message)
    if head and head[1] == "file":  # the name that a program gave its file
        return None
    if head and place and not {head[1], head[1].removeprefix("set_")} & PUBLIC:
        return f"a name that is not public, {head[1]}: {message[:300]}"
    return None


class Session:
    """Runs programs, and reports."""

    def __init__(self, log, seed):
        self.log, self.seed = open(log, "w", buffering=1, encoding="utf-8"), seed
        self.calls = self.succeeded = 0
        self.called, self.worked = set(), set()
        self.peak = self.now()

    @staticmethod
    def now():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def report(self, number, lines, what):
        print(json.dumps({"program": number, "what": what, "text": lines}), flush=True)

    def run(self, number):
        names = {}
        exec(PREAMBLE.replace("from surface", f"from {__name__}"), names)
        self.log.seek(0)
        self.log.truncate()
        self.log.write(f"# program {number} of seed {self.seed}\n")
        lines = []
        for entry, text in Writer(self.seed, number).program():
            lines.append(text)
            self.log.write(text.encode("unicode_escape").decode() + "\n")
            if entry:
                self.calls += 1
                self.called.add(entry.name)
                names["r"] = None
            problem = None
            try:
                exec(compile("\n" * (len(lines) - 1) + text, "program.py", "exec"), names)
                if entry:
                    self.succeeded += 1
                    self.worked.add(entry.name)
            except Misplaced as error:
                problem = str(error)
            except BaseException as error:
                problem = complaint(error)
                if isinstance(error, KeyboardInterrupt):
                    raise
                del error
            if problem:
                self.report(number, lines, problem)
            r = names.get("r")
            if isinstance(r, lz.Tensor) and r.numel() > 1_000_000:
                names["r"] = None
            if isinstance(r, (list, tuple)) and len(r) > 100_000:  # as many tensors as were asked for
                names["r"], self.peak = None, max(self.peak, self.now())
            del r
        peak = self.now()
        if peak > self.peak + GROWTH:
            self.report(number, lines, f"the process grew by {(peak - self.peak) >> 20} MiB")
        self.peak = max(peak, self.peak)


def main():
    if sys.argv[1] == "--program":
        print(PREAMBLE + "\n".join(text for _, text in Writer(sys.argv[2], int(sys.argv[3])).program()))
        return
    log, seed, begin, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    limit = 8 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    session = Session(log, seed)
    for number in range(begin, begin + count):
        session.run(number)
    print(json.dumps({"calls": session.calls, "succeeded": session.succeeded, "never": sorted(session.called - session.worked)}))


if __name__ == "__main__":
    import os
    import warnings
    warnings.simplefilter("ignore")
    sys.modules["surface"] = sys.modules["__main__"]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
