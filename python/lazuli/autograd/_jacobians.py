"""Products with Jacobian matrices, and the matrices' rows, by backward passes, for
autograd.functional and func."""

from lazuli import _C
from lazuli.autograd._gradients import grad


def gradients(outputs, inputs, weights, create_graph, strict=False, words="", retain=True):
    """Gradients of outputs for inputs. They are zeros for an input on which no output depends; with
    strict that is an error, with the text `words` and the input's index."""
    chosen = [(o, w) for o, w in zip(outputs, weights, strict=True) if o.requires_grad]
    found = ([None] * len(inputs) if not chosen else
             grad([o for o, _ in chosen], inputs, [w for _, w in chosen], create_graph=create_graph,
                  retain_graph=retain or create_graph, allow_unused=True))
    for i, g in enumerate(found):
        if g is None and strict:
            raise RuntimeError(f"{words} {i}. This is not allowed in strict mode.")
    return tuple(_C.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True))


def transposable(outputs, inputs, weights):
    """gradients() for weights that are zeros, of which only the derivatives for the weights are
    wanted: those are the products of the Jacobian matrix with tangents."""
    if not outputs:
        return tuple(_C.zeros_like(x) for x in inputs)
    found = _C._grad(list(outputs), list(inputs), list(weights), True, True, True, True)
    return tuple(_C.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True))


def rows(output, inputs, create_graph, strict=False, words=""):
    """The gradients of each element of an output: for each input [*output.shape, *input.shape]."""
    flat, found = output.reshape(-1), []
    for i in range(flat.numel()):
        weight = _C.ones((), dtype=output.dtype, device=output.device)
        found.append(gradients([flat[i]], inputs, [weight], create_graph, strict, words))
    if not found:
        return tuple(x.new_zeros((*output.shape, *x.shape)) for x in inputs)
    return tuple(_C.stack(column).reshape((*output.shape, *x.shape))
                 for column, x in zip(zip(*found, strict=True), inputs, strict=True))


def rows_at_once(output, inputs, create_graph, chunk_size=None):
    """rows() by a batched backward pass for so many elements at a time; None: for all."""
    count = output.numel()
    if count < 2 or not output.requires_grad:
        return rows(output, inputs, create_graph)
    every = _C.eye(count, dtype=output.dtype, device=output.device).reshape(count, *output.shape)
    parts = [grad([output], inputs, [part], create_graph=create_graph, retain_graph=True,
                  allow_unused=True, is_grads_batched=True)
             for part in every.split(chunk_size or count)]
    return tuple(x.new_zeros((*output.shape, *x.shape)) if column[0] is None else
                 (column[0] if len(column) == 1 else _C.cat(list(column)))
                 .reshape((*output.shape, *x.shape))
                 for column, x in zip(zip(*parts, strict=True), inputs, strict=True))
