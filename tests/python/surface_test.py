"""What the public headers of C++ declare is in Python, or stands here with the reason why not."""

import pathlib
import re
import subprocess
import sys

import pytest

import lazuli as lz

SOURCE, BUILD = pathlib.Path(__file__).resolve().parents[2], pathlib.Path(lz.__file__).resolve().parents[2]
HEADERS = [SOURCE / "cpp_api/include/lazuli", BUILD / "generated/include/lazuli"]
OPENS = re.compile(r"(?:inline )?namespace ([\w:]+)|(?:template <.*> )?(class|struct) (?:LAZULI_API )?(\w+)(?: final)?(?: :.*)?")
DECLARES = re.compile(r"(?:template <[^{]*> )?(?:requires [^(]* )?(?:LAZULI_API )?"
                      r"(?:static |virtual |explicit |inline |constexpr )*([\w:<>,&* ]+?[ &*])(\w+)\((?!\*)")

# Where Python has something else, by name without `lazuli::`; a pattern. Reasons are sentences.
ELSEWHERE = {
    "operands: what C++ converts arguments to; Python loads numbers and tensors": r"Operand(::\w+)?|Printed|(Scalar|Item)(::\w+)?|(Optional)?Size2|Padding|nn::Sides",
    "get_default_dtype()": r"default_dtype",
    "dtype, and is_cuda and others as properties": r"Tensor::(scalar_type|toType|options|is_\w+|itemsize|nbytes|ndimension)|Device::(is_\w+|str|type|index)",
    "LibTorch's words, which programs of C++ know": r"torch_names::.*|Device::has_index|"
                                                          r"Tensor::(const_data_ptr|mutable_data_ptr|packed_accessor(32|64)|has_names|numpy_T|print|reset|toString|unsafeGetTensorImpl)",
    "optim.swa_utils": r"optim::(AveragedModel(::\w+)?|SWALR|update_averages)",
    "detach()": r"Tensor::(tensor|variable)_data",
    "lazuli.control": r"fori_loop|map|switch_case",
    "ints, and pairs of trees": r"LoopBound(::\w+)?|Scanned",
    "tuples and lists of integers": r"Dims(::\w+)?|IntList(::\w+)?",
    "names of devices": r"DeviceType",
    "numpy()": r"Tensor::accessor|(TensorAccessor|AccessorView)(::\w+)?",
    "options are keyword arguments": r"(\w+::)*\w+(Options|Step)|optim::(Configured|OptimizerOptions|OptionsOf|VisitOptions)(::\w+)?",
    "aggregates that calls return are dicts, tuples, numbers": r"StateDict(::\w+)?|func::(ValueAndGrad|Vjp|Jvp|Linearized|WithResiduals)|LoadReport|MemoryStats|Flag|debug::(Frame|LiveTensors|MemoryPlan|PlannedArray|ProgramMemory|ProgramStats|Recompile)|profiler::(Event|Row)|"
                                                                    r"nn::AdaptiveLogSoftmaxOutput",
    "words, keyword arguments, and `with`, which sees errors": r"profiler::(by|Options|StepTrace::cancel)|func::Randomness",
    "Python's exceptions": r"Error(::(code|msg|what_without_backtrace))?",
    "no_grad() and enable_grad()": r"NoGrad|EnableGrad",
    "autocast(), get_autocast_dtype()": r"amp::(Autocast|(set_)?autocast_dtype)",
    "inference_mode(), and contexts of autograd": r"InferenceMode(::\w+)?|DetectAnomaly|SavedTensorsHooks",
    "autograd.Function and its ctx": r"AutogradContext(::\w+)?|Function(::apply)?|FunctionCall(::\w+)?",
    "utils.checkpoint.checkpoint(), autograd.gradgradcheck()": r"checkpoint|gradgradcheck",
    "Python's frames are the lines": r"Site|SiteScope(::place)?",
    "layers are called with packed sequences, too, which have batch_sizes": r"nn::(RNN|GRU|LSTM)::forward_with_packed_input|nn::utils::rnn::PackedSequence::lengths",
    "memory_format=, which changes nothing": r"Tensor::suggest_memory_format",
    "None": r"\w+::defined",
    "the properties grad and grad_fn": r"Tensor::mutable_grad|Grad(Place|Fn)(::\w+)?",
    "x[...] and its assignment": r"index|index_put_|Index|Slice|NewAxis|Ellipsis|Tensor::(index|slice)",
    "shape": r"Tensor::sizes",
    "stride(), and what PyTorch calls _base, _is_view(), _version": r"Tensor::(strides|base|is_view|version)",
    "the properties requires_grad, grad, lr, training": r"Tensor::(set_(requires_)?grad|mutable_grad)|GradPlace(::reset)?|optim::Optimizer::set_lr|nn::Module::is_training",
    "grad_fn.name()": r"GradFn(::name)?",
    "autograd.grad() and autograd.backward()": r"grad|backward",
    "numpy() and tolist(), repr()": r"Tensor::to_(bytes|string|vector)|to_string",
    "tensor(), from_numpy()": r"from_data",
    "load_state_dict()": r"load_tensors",
    "what optimisers and clip_grad_norm_() are made of": r"foreach_\w+|ForeachTransaction(::\w+)?",
    "`with`, and calls of modules, which enter them": r"NameScope::current|nn::Module::(enter|kind_of)",
    "attributes register themselves": r"nn::Module::(register_modules|replace|unregister)|nn::name",
    "copy.deepcopy()": r"nn::clone",
    "compile(), and what it returns": r"Compiled(::\w+)?|CompileOptions",
    "templates of C++": r"Tensor::requires|nn::(Layer|AnyModule(::\w+)?)|(nn::|func::)?internal::.*",
    "the common base of BatchNorm1d and BatchNorm2d, which have what it has": r"nn::BatchNorm(::forward)?",
    "the common bases of recurrent layers and cells: RNNBase and RNNCellBase in Python": r"nn::Recurrent(Layer|Cell)(::\w+)?",
    "append() and [i]": r"nn::Sequential::(at|push_back)",
    "len() and iteration": r"(data|nn)::\w+::(size|begin|end)",
    "NumPy's arrays": r"data::Host(Array(::\w+)?|Batch)",
    "a batch is a tuple": r"data::Batch",
    "state_dict() has them": r"optim::SGD::momentum_buffers",
    "param_groups is a list of dicts; schedules of Python are PyTorch's": r"optim::(ParamGroup(::\w+)?|Optimizer::(parameters|param_groups|defaults)|\w+::(lr_at|set_step|steps|lr|best))",
    "run on threads that Python does not know": r"(un)?register_(custom_call|pass)|profiler::name_thread|CustomCall(Array|Result)",
    "library.custom_op(), pure_callback() and io_callback()": r"(CustomOp|Callback)(::\w+)?",
    "`with` after()": r"After",
    "functions of hlo, by opcode": r"hlo_op(codes)?|HloOpcode",
    "pairs of numbers": r"HloUpdate(::\w+)?",
    "keyword arguments of to_string()": r"HloPrintOptions",
    "devices are written in C++": r"Platform\w*(::\w+)?|HostArray|register_platform|evaluate_on_host|report_fallback",
}
# Namespaces of C++ that are flat where Python has a module.
IN_MODULES = {r"Hlo\w+|transfer_(to_infeed|from_outfeed)": "hlo"}


def statements(text):
    """(text, how it ends) between the punctuation of C++ that opens, closes and ends."""
    text = re.sub(r"//[^\n]*|^#.*(?:\\\n.*)*", "", text, flags=re.MULTILINE)
    for match in re.finditer(r"([^{};]*)([{};])", text):
        yield " ".join(re.sub(r"\b(public|private|protected):", "", match[1]).split()), match[2], match[1]


def declared(text):
    """Qualified names that a header declares: classes, functions, public methods of classes that are in none."""
    scopes = []  # of ["namespace" | "class" | "body", name, whether public]
    for statement, end, raw in statements(text):
        for access in re.findall(r"\b(public|private|protected):", raw):
            scopes[-1][2] = access == "public"
        if end == "}":
            scopes.pop()
            continue
        inside = [s for s in scopes if s[0] == "class"]
        visible = len(inside) <= 1 and all(s[0] != "body" and s[2] for s in scopes)
        opens = OPENS.fullmatch(statement) if end == "{" else None
        path = [s[1] for s in scopes]
        if visible and opens and opens[3] and not inside:
            yield "::".join(path + [opens[3]])
        if visible and not opens:
            found = DECLARES.match(statement)
            if found and "operator" not in statement.partition("(")[0] and found[1].strip() != "return":
                if not inside or found[2] != inside[-1][1]:  # no constructor
                    yield "::".join(path + [found[2]])
        if end == "{":
            kind = "body" if not opens else "namespace" if opens[1] else "class"
            scopes.append([kind, opens and (opens[1] or opens[3]), not opens or opens[2] != "class"])


def names():
    found = set()
    for header in [header for folder in HEADERS for header in sorted(folder.rglob("*.h"))]:
        found |= {name.removeprefix("lazuli::") for name in declared(header.read_text(encoding="utf-8"))}
    return found


def is_in_python(name):
    home, path = lz, name.split("::")
    module = next((module for pattern, module in IN_MODULES.items() if re.fullmatch(pattern, path[0])), None)
    for part in path if module is None else [module, *path]:
        if not hasattr(home, part):
            return False
        home = getattr(home, part)
    return True


def test_the_headers_are_read():
    text = """
    namespace lazuli::nn {
    class LAZULI_API Layer {
      void hidden();
     public:
      Layer(int a = f());
      Tensor forward(const Tensor& x) const { return run(x); }  // void no(int);
      bool operator==(const Layer&) const = default;
      template <class T>
      std::vector<T> values(SourceLocation loc = SourceLocation::current()) const;
     private:
      void also_hidden();
    };
    struct Options { int a = 1; };
    LAZULI_API std::pair<Tensor, Tensor>
    sort(const Tensor& x, LAZULI_LOC);
    }
    """
    assert set(declared(text)) == {"lazuli::nn::Layer", "lazuli::nn::Layer::forward", "lazuli::nn::Layer::values",
                                   "lazuli::nn::Options", "lazuli::nn::sort"}
    assert {"Tensor", "Tensor::clamp_", "matmul", "nn::functional::cross_entropy", "optim::SGD", "data::DataLoader", "mark_step",
            "memory_report", "save_safetensors", "nn::Conv2d", "optim::StepLR", "rand", "gradcheck"} <= names()
    assert len(names()) > 400


def test_everything_public_is_in_python():
    missing = {name for name in names() if not is_in_python(name)}
    unexplained = {name for name in missing if not any(re.fullmatch(p, name) for p in ELSEWHERE.values())}
    assert unexplained == set()


@pytest.mark.parametrize("reason", ELSEWHERE)
def test_no_reason_is_out_of_date(reason):
    assert any(re.fullmatch(ELSEWHERE[reason], name) and not is_in_python(name) for name in names())


def test_every_function_of_the_rows_is_documented_and_has_names():
    for name, value in vars(lz._C).items():
        if type(value).__name__ == "builtin_function_or_method" and not name.startswith("_"):
            assert value.__text_signature__ or "->" in value.__doc__, name
            assert len(value.__doc__) > 3, name


def test_importing_loads_nothing_that_can_wait():
    """NumPy alone would double what it takes."""
    late = ["numpy", "multiprocessing", "torch"]
    loaded = subprocess.run([sys.executable, "-c", f"import lazuli, sys; print([name for name in {late} if name in sys.modules])"],
                            check=True, capture_output=True, text=True).stdout
    assert loaded == "[]\n"
