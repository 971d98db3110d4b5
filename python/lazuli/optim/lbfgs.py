"""L-BFGS (Nocedal and Wright, Numerical Optimization, algorithm 7.4), with PyTorch's arguments,
order and state."""

from lazuli import _C
from lazuli.autograd import enable_grad, no_grad
from lazuli.optim.optimizer import Optimizer, check_lr, number


def _interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points with these slopes is smallest, within bounds."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    if x1 == x2:
        return (low + high) / 2
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2
    d2 = square**0.5
    bend = (g2 - g1 if x1 <= x2 else g1 - g2) + 2 * d2
    if bend == 0:  # a line
        return (low + high) / 2
    if x1 <= x2:
        smallest = x2 - (x2 - x1) * ((g2 + d2 - d1) / bend)
    else:
        smallest = x1 - (x1 - x2) * ((g1 + d2 - d1) / bend)
    return min(max(smallest, low), high)


class _Point:
    """A step that was tried: its loss, gradient and slope along the direction."""

    def __init__(self, t, loss, gradient, slope):
        self.t, self.loss, self.gradient, self.slope = t, loss, gradient, slope


def _search(evaluate, t, direction, start, longest, c1=1e-4, c2=0.9, tolerance=1e-9, most=25):
    """A step with the strong Wolfe conditions (algorithms 3.5 and 3.6), and how often evaluate()
    was called."""
    def tried(t):
        loss, gradient = evaluate(t)
        return _Point(t, loss, gradient, gradient.dot(direction).item())

    new, before = tried(t), start
    calls, iterations, done = 1, 0, False
    bracket = None
    while iterations < most:
        if (new.loss > start.loss + c1 * new.t * start.slope or
                (iterations > 1 and new.loss >= before.loss)):
            bracket = [before, new]
            break
        if abs(new.slope) <= -c2 * start.slope:
            bracket, done = [new], True
            break
        if new.slope >= 0:
            bracket = [before, new]
            break
        bounds = new.t + 0.01 * (new.t - before.t), new.t * 10
        t = _interpolate(before.t, before.loss, before.slope, new.t, new.loss, new.slope, bounds)
        before, new = new, tried(t)
        calls += 1
        iterations += 1
    if bracket is None:
        bracket = [_Point(0, start.loss, start.gradient, start.slope), new]

    stuck = False
    low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
    while not done and iterations < most:
        ends = sorted(point.t for point in bracket)
        if (ends[1] - ends[0]) * longest < tolerance:
            break
        t = _interpolate(bracket[0].t, bracket[0].loss, bracket[0].slope, bracket[1].t,
                         bracket[1].loss, bracket[1].slope)
        margin = 0.1 * (ends[1] - ends[0])
        if min(ends[1] - t, t - ends[0]) < margin:  # no progress twice: a tenth away from the end
            if stuck or t >= ends[1] or t <= ends[0]:
                t = ends[1] - margin if abs(t - ends[1]) < abs(t - ends[0]) else ends[0] + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = tried(t)
        calls += 1
        iterations += 1
        if new.loss > start.loss + c1 * new.t * start.slope or new.loss >= bracket[low].loss:
            bracket[high] = new
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            if abs(new.slope) <= -c2 * start.slope:
                done = True
            elif new.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = new
    return bracket[low if len(bracket) > 1 else 0], calls


def _as_reals(x):
    """Complex parameters are pairs of reals here, as in PyTorch."""
    return _C.view_as_real(x) if x.is_complex() else x


class LBFGS(Optimizer):
    """L-BFGS; step() takes a closure, which it calls several times.

    One group of parameters only.
    """

    _runs_pending = True  # it reads losses
    _counted = ()

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7,
                 tolerance_change=1e-9, history_size=100, line_search_fn=None):
        check_lr(lr)
        super().__init__(params,
                         dict(lr=lr, max_iter=max_iter,
                              max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
                              tolerance_grad=tolerance_grad, tolerance_change=tolerance_change,
                              history_size=history_size, line_search_fn=line_search_fn))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS: takes one group of parameters")

    def _params(self):
        return self.param_groups[0]["params"]

    def _gradient(self):
        return _C.cat([_as_reals(_C.zeros_like(p) if p.grad is None else p.grad).reshape(-1)
                       for p in self._params()])

    def _move(self, t, direction):
        at = 0
        for p in self._params():
            count = p.numel() * (2 if p.is_complex() else 1)
            part = direction[at:at + count] * t
            p.add_((_C.view_as_complex(part.reshape(-1, 2)) if p.is_complex()
                    else part).reshape(p.shape))
            at += count

    def step(self, closure):
        """Moves the parameters while the loss decreases; returns the loss before."""
        with no_grad():
            return self._minimize(closure)

    def _minimize(self, closure):
        group, state = self.param_groups[0], self.state[self._params()[0]]
        lr = number(group["lr"])
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate():
            with enable_grad():
                return closure()

        first = evaluate()
        loss = float(first)
        evaluations = 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if gradient.abs().max().item() <= group["tolerance_grad"]:
            return first
        iterations, flat = 0, False
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            self._direct(state, gradient, group["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = gradient.clone(), loss
            direction = state["d"]
            t = min(1.0, 1.0 / gradient.abs().sum().item()) * lr if state["n_iter"] == 1 else lr
            slope = gradient.dot(direction).item()
            state["t"] = t
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("LBFGS: line_search_fn is None or 'strong_wolfe'")
                here = [p.clone() for p in self._params()]

                def at(t, direction=direction, here=here):
                    self._move(t, direction)
                    loss = float(evaluate())
                    gradient = self._gradient()
                    for p, old in zip(self._params(), here, strict=True):
                        p.copy_(old)
                    return loss, gradient

                point, calls = _search(at, t, direction, _Point(0, loss, gradient, slope),
                                       direction.abs().max().item(),
                                       most=group["max_eval"] - evaluations)
                loss, gradient, t = point.loss, point.gradient, point.t
                self._move(t, direction)
                state["t"] = t
                flat = gradient.abs().max().item() <= group["tolerance_grad"]
            else:
                self._move(t, direction)
                calls = 0
                if iterations != group["max_iter"]:
                    loss = float(evaluate())
                    gradient = self._gradient()
                    flat = gradient.abs().max().item() <= group["tolerance_grad"]
                    calls = 1
            evaluations += calls
            state["func_evals"] += calls
            if (iterations == group["max_iter"] or evaluations >= group["max_eval"] or flat
                    or (direction * t).abs().max().item() <= group["tolerance_change"]
                    or abs(loss - state["prev_loss"]) < group["tolerance_change"]):
                break
        return first

    def _direct(self, state, gradient, most):
        """The direction: that of the gradient, by an approximation of the inverse Hessian from the
        steps before."""
        if state["n_iter"] == 1:
            state.update(d=-gradient, old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return
        changes, steps, scales = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        ys = y.dot(s)
        if ys.item() > 1e-10:
            if len(changes) == most:
                for kept in (changes, steps, scales):
                    kept.pop(0)
            changes.append(y)
            steps.append(s)
            scales.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        # Steps of 0 fill the history up to a power of two, so that few different programs are made.
        count = len(changes)
        missing = (1 << max(count - 1, 0).bit_length()) - count if count else 0
        nothing = [_C.zeros_like(gradient)] * missing if missing else []
        ys_, ss_ = nothing + changes, nothing + steps
        rs_ = ([_C.zeros_like(scales[0])] * missing if missing else []) + scales
        q, shares = -gradient, []
        for y, s, scale in zip(reversed(ys_), reversed(ss_), reversed(rs_), strict=True):
            shares.append(s.dot(q) * scale)
            q = q - y * shares[-1]
        d = q * state["H_diag"]
        for y, s, scale, share in zip(ys_, ss_, rs_, reversed(shares), strict=True):
            d = d + s * (share - y.dot(d) * scale)
        state["d"], state["al"] = d, [*reversed(shares[:count]), *[None] * (most - count)]
