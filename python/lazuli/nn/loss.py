"""Losses and distances as modules: each is a function of lazuli.nn.functional, with options kept as
attributes."""

import functools
import inspect
import warnings

from lazuli.nn import functional
from lazuli.nn._kept import Kept, kept, operands_of, row_of

# Of each loss its function and its options in PyTorch's order, where they may stand by position.
# The first parameters of the function, which have no default, are what the module is called with.
_LOSSES = {
    "BCELoss": (functional.binary_cross_entropy, "weight size_average reduce reduction"),
    "BCEWithLogitsLoss": (functional.binary_cross_entropy_with_logits,
                          "weight size_average reduce reduction pos_weight"),
    "CTCLoss": (functional.ctc_loss, "blank reduction zero_infinity"),
    "CosineEmbeddingLoss": (functional.cosine_embedding_loss,
                            "margin size_average reduce reduction"),
    "CrossEntropyLoss": (functional.cross_entropy,
                         "weight size_average ignore_index reduce reduction label_smoothing"),
    "GaussianNLLLoss": (functional.gaussian_nll_loss, "full eps reduction"),
    "HingeEmbeddingLoss": (functional.hinge_embedding_loss, "margin size_average reduce reduction"),
    "HuberLoss": (functional.huber_loss, "reduction delta"),
    "KLDivLoss": (functional.kl_div, "size_average reduce reduction log_target"),
    "L1Loss": (functional.l1_loss, "size_average reduce reduction"),
    "MSELoss": (functional.mse_loss, "size_average reduce reduction"),
    "MarginRankingLoss": (functional.margin_ranking_loss, "margin size_average reduce reduction"),
    "MultiLabelMarginLoss": (functional.multilabel_margin_loss, "size_average reduce reduction"),
    "MultiLabelSoftMarginLoss": (functional.multilabel_soft_margin_loss,
                                 "weight size_average reduce reduction"),
    "MultiMarginLoss": (functional.multi_margin_loss,
                        "p margin weight size_average reduce reduction"),
    "NLLLoss": (functional.nll_loss, "weight size_average ignore_index reduce reduction"),
    "PoissonNLLLoss": (functional.poisson_nll_loss,
                       "log_input full size_average eps reduce reduction"),
    "SmoothL1Loss": (functional.smooth_l1_loss, "size_average reduce reduction beta"),
    "SoftMarginLoss": (functional.soft_margin_loss, "size_average reduce reduction"),
    "TripletMarginLoss": (functional.triplet_margin_loss,
                          "margin p eps swap size_average reduce reduction"),
    "TripletMarginWithDistanceLoss": (functional.triplet_margin_with_distance_loss,
                                      "distance_function margin swap reduction"),
}
_DISTANCES = {"CosineSimilarity": (functional.cosine_similarity, "dim eps"),
              "PairwiseDistance": (functional.pairwise_distance, "p eps keepdim")}
__all__ = [*_LOSSES, *_DISTANCES]


def _reduction(name, size_average, reduce, stacklevel=3):
    """The reduction that PyTorch's old arguments mean."""
    kind = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(f"{name}: size_average and reduce are old; reduction={kind!r} says the same",
                  stacklevel=stacklevel)
    return kind


def with_old_arguments(function, options):
    """Wraps the function of a loss such that it takes PyTorch's old arguments, in PyTorch's
    order."""
    places = [*operands_of(function), *options.split()]
    operands = len(places) - len(options.split())

    @functools.wraps(function)
    def call(*arguments, **named):
        if len(arguments) <= operands and not (named.keys() & _OLD):
            return function(*arguments, **named)
        given = dict(zip(places[operands:], arguments[operands:], strict=False))
        if len(arguments) > len(places) or given.keys() & named.keys():
            return function(*arguments, **named)  # which says what is wrong
        given.update(named)
        old = [given.pop(name, None) for name in ("size_average", "reduce")]
        if isinstance(old[0], str):  # reduction where it used to be
            given["reduction"] = old[0]
        elif old != [None, None]:
            given["reduction"] = _reduction(function.__name__, *old)
        return function(*arguments[:operands], **given)

    call.__signature__ = inspect.signature(function)
    return call


_OLD = {"size_average", "reduce"}
for _name, (_function, _options) in _LOSSES.items():
    if "size_average" in _options:
        _wrapped = with_old_arguments(_function, _options)
        setattr(functional, _function.__name__, _wrapped)
        _LOSSES[_name] = (_wrapped, _options)


class Loss(Kept):
    """The base of losses: a function of tensors with its options."""

    _left_out = _OLD

    def _completed(self, given):
        old = [given.pop(name, None) for name in ("size_average", "reduce")]
        if old != [None, None]:
            given["reduction"] = _reduction(type(self).__name__, *old, stacklevel=5)
        for option, value in given.items():
            if isinstance(value, complex):
                raise TypeError(
                    f"{type(self).__name__}: {option} must be a float or int, not complex")
        return given


for _rows, _base in ((_LOSSES, Loss), (_DISTANCES, Kept)):
    globals().update({name: kept(__name__, name, row_of(*row), row[0], _base)
                      for name, row in _rows.items()})

# PyTorch's attribute for the argument p.
PairwiseDistance.norm = property(  # noqa: F821
    lambda self: self.p, lambda self, norm: setattr(self, "p", norm), doc="The argument p.")
