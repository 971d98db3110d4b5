"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes in which rare classes use small
projections."""

from collections import namedtuple

from lazuli import _C
from lazuli._C.nn import Module
from lazuli.nn.containers import ModuleList, Sequential

__all__ = ["AdaptiveLogSoftmaxWithLoss"]
_Output = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Divides classes, sorted by frequency, into clusters. The head has the outputs of the first
    cluster, and one output for each other cluster.

    forward(x [N, in_features], target [N]) returns the log-probabilities of the targets and the
    mean of their negatives.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None,
                 dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise _C.InvalidArgumentError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of length larger than 0")
        if (cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or
                any(int(c) != c for c in cutoffs)):
            raise _C.InvalidArgumentError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive "
                "integers sorted in an increasing order, where each value is between 1 and "
                "n_classes-1")
        self.in_features, self.n_classes, self.div_value, self.head_bias = (in_features, n_classes,
                                                                            div_value, head_bias)
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        made = {"device": device, "dtype": dtype}
        self.head = _C.nn.Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList(
            [Sequential(_C.nn.Linear(in_features, max(
                int(in_features // div_value ** (i + 1)), 1), bias=False, **made), _C.nn.Linear(max(
                    int(in_features // div_value ** (i + 1)), 1), high - low, bias=False, **made))
             for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False))])

    def reset_parameters(self):
        """Draws new values for all weights."""
        for layer in (self.head, *(layer for projection in self.tail for layer in projection)):
            layer.reset_parameters()

    def log_prob(self, x):
        """The log-probabilities of all classes: [N, n_classes]."""
        head = self.head(x).log_softmax(1)
        parts = [head[:, :self.shortlist_size]]
        for i, projection in enumerate(self.tail):
            parts.append(projection(x).log_softmax(1) +
                         head[:, self.shortlist_size + i].unsqueeze(1))
        return _C.cat(parts, 1)

    def predict(self, x):
        """The most probable class of each row."""
        return self.log_prob(x).argmax(1)

    def forward(self, x, target):
        single = target.dim() == 0
        if target.dim() > 1:
            raise _C.InvalidArgumentError("AdaptiveLogSoftmaxWithLoss: target should be of rank 0 "
                                          f"or 1, is of {target.dim()}")
        if x.dim() != 2 - single:
            raise _C.InvalidArgumentError(
                f"AdaptiveLogSoftmaxWithLoss: x should be of rank {2 - single}, is of {x.dim()}")
        if not single and x.shape[0] != target.shape[0]:
            raise _C.InvalidArgumentError(
                "AdaptiveLogSoftmaxWithLoss: input and target should have the same size in the "
                f"batch dimension, have {x.shape[0]} and {target.shape[0]}")
        x, target = (x.unsqueeze(0), target.unsqueeze(0)) if single else (x, target)
        output = self.log_prob(x).gather(1, target.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return _Output(output.squeeze(0) if single else output, loss)
