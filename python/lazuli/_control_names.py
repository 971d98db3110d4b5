"""The functions of lazuli.control with PyTorch's signatures, as lazuli itself has them."""

from lazuli import control
from lazuli._tree import flatten, tree_map


def cond(pred, true_fn, false_fn, operands=()):
    """control.cond() with PyTorch's signature: operands is a tuple or a list."""
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError("cond: operands must be a tuple or a list, not "
                           f"{type(operands).__name__}")
    return control.cond(pred, true_fn, false_fn, *operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """control.while_loop() with PyTorch's signature: the functions take the tensors of
    carried_inputs, a tuple or a list, and body_fn returns as many. Returns a tuple."""
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError("while_loop: carried_inputs must be a tuple or a list, not "
                           f"{type(carried_inputs).__name__}")

    def body(carried):
        made = body_fn(*carried)
        return tuple(made) if isinstance(made, (tuple, list)) else (made,)

    return control.while_loop(lambda carried: cond_fn(*carried), body, tuple(carried_inputs))


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """control.scan() with PyTorch's signature: along any dim of xs, along which results are
    stacked, too."""
    if not flatten(xs)[0]:
        raise RuntimeError("scan: there are no xs; control.scan() takes a length instead")
    carry, results = control.scan(combine_fn, init, tree_map(lambda x: x.movedim(dim, 0), xs),
                                  reverse=reverse)
    return carry, tree_map(lambda y: None if y is None else y.movedim(0, dim), results)


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """control.associative_scan() with PyTorch's signature. combine_fn works on many elements at
    once, along dim, whatever combine_mode says: "pointwise" or "generic"."""
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError("associative_scan: combine_mode must be 'pointwise' or 'generic', not "
                         f"{combine_mode!r}")
    return control.associative_scan(combine_fn, xs, reverse=reverse, axis=dim)
