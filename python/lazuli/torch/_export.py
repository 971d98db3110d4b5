"""HLO of torch's modules."""

import torch

import lazuli as lz
from lazuli.torch import _backend, _random, _recurrent, _rows
from lazuli.torch._program import Recorder, from_torch, place_text, refused_text
from lazuli.torch._sync import bring_back


def export(module, args=(), *, parameters=False):
    """An HloModule that computes what a module, or a program of torch.export.export(), does for
    inputs of these sizes.

    Weights and buffers are constants of it, or with `parameters` its first parameters, in
    torch.export's order. The results are the module's, those in containers one by one. What lazuli
    lacks is an error that names the function and its line.
    """
    if not isinstance(module, torch.export.ExportedProgram):
        bring_back(module)
    program = (module if isinstance(module, torch.export.ExportedProgram)
               else torch.export.export(module, tuple(args)))
    with _backend.plain_functions(), _recurrent.whole(program.graph_module):
        program = program.run_decompositions(_backend.decompositions())
    gm, signature = program.graph_module, program.graph_signature
    held = {**program.state_dict, **program.constants}
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    values = [held.get(spec.target) if isinstance(spec.target, str) else None
              for spec in signature.input_specs]
    mutated = len(signature.buffers_to_mutate) + len(signature.user_inputs_to_mutate)
    given = [i for i, v in enumerate(values) if parameters and v is not None] + [
        i for i, v in enumerate(values) if v is None]
    shapes = [(_rows.dtype_of((m := placeholders[i].meta["val"]).dtype), list(m.shape))
              for i in given]
    _random.rewrite(gm)
    drawn = [n for n in gm.graph.nodes if _random.draws(n)]
    if drawn:
        raise lz.Error("export: the module draws random "
                       f"numbers{f' ({p})' if (p := place_text(drawn[0])) else ''}, which a "
                       "program of its inputs cannot; module.eval() turns dropout off")
    recorder = Recorder(gm.graph, False)

    def record(*tensors):
        taken = dict(zip(given, tensors, strict=True))
        recorder.record([taken[i] if i in taken else from_torch(v) for i, v in enumerate(values)])
        results = next(n for n in gm.graph.nodes if n.op == "output").args[0]
        return [recorder.values[n]
                for n in results[mutated:] if isinstance(recorder.values.get(n), lz.Tensor)]

    made = lz.hlo.HloModule.trace(shapes, record, name=type(module).__name__)
    if recorder.refused:
        raise lz.Error(f"export: lazuli lacks {refused_text(recorder.refused)}")
    return made
