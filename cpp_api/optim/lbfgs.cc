// L-BFGS, with PyTorch's arguments and order.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpp_api/optim/options.h"
#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/internal/fail.h"

namespace lazuli::optim {

const Algorithm& AlgorithmOf(const LBFGSOptions&) {
  static const Algorithm algorithm{"LBFGS", {"step"}, {}};
  return algorithm;
}

void Check(const LBFGSOptions& o, SourceLocation loc) {
  CheckAtLeastZero("LBFGS", "lr", o.lr, loc);
  if (o.history_size < 1)
    FailOptions("LBFGS",
                "history_size is " + std::to_string(o.history_size) + ", it must be at least 1",
                loc);
  if (o.line_search_fn && *o.line_search_fn != "strong_wolfe")
    FailOptions("LBFGS",
                "line_search_fn is '" + *o.line_search_fn + "', it must be none or 'strong_wolfe'",
                loc);
}

void Update(Batch&, const LBFGSOptions&) {
  FailOptions("LBFGS", "step() takes a closure, which computes the loss and its gradients",
              SourceLocation::current());
}

namespace {

// A step that was tried: its length, loss, gradient and slope along the direction.
struct Point {
  double t = 0, loss = 0;
  Tensor gradient;
  double slope = 0;
};

// Where the cubic through two points with these slopes is smallest, within bounds.
double Interpolate(const Point& a, const Point& b,
                   const std::optional<std::pair<double, double>>& bounds = std::nullopt) {
  const auto [low, high] = bounds.value_or(std::pair(std::min(a.t, b.t), std::max(a.t, b.t)));
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double smallest =
      a.t <= b.t ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                 : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::min(std::max(smallest, low), high);
}

// Looks for a step with the strong Wolfe conditions (algorithms 3.5 and 3.6).
class WolfeSearch {
 public:
  WolfeSearch(std::function<Point(double)> evaluate, Point start, double longest, std::int64_t most)
      : evaluate_(std::move(evaluate)), start_(std::move(start)), longest_(longest), most_(most) {}
  Point From(double t) {
    Bracket(t);
    if (!done_) Zoom();
    return low_;
  }
  std::int64_t calls() const { return calls_; }

 private:
  static constexpr double kDecrease = 1e-4, kCurvature = 0.9, kTolerance = 1e-9;
  Point Try(double t) {
    ++calls_;
    return evaluate_(t);
  }
  bool IsAbove(const Point& p) const {
    return p.loss > start_.loss + kDecrease * p.t * start_.slope;
  }
  bool IsFlat(const Point& p) const { return std::abs(p.slope) <= -kCurvature * start_.slope; }
  void SetEnds(Point a, Point b) {
    const bool in_order = a.loss <= b.loss;
    low_ = in_order ? a : b;
    high_ = in_order ? std::move(b) : std::move(a);
    low_is_first_ = in_order;
  }

  // Makes steps longer until a good one, which ends the search, lies between two.
  void Bracket(double t) {
    Point before = start_, now = Try(t);
    for (; iterations_ < most_; ++iterations_) {
      if (IsAbove(now) || (iterations_ > 1 && now.loss >= before.loss))
        return SetEnds(std::move(before), std::move(now));
      if (IsFlat(now)) {
        done_ = true;
        low_ = std::move(now);
        return;
      }
      if (now.slope >= 0) return SetEnds(std::move(before), std::move(now));
      const std::pair bounds(now.t + 0.01 * (now.t - before.t), now.t * 10);
      const double next = Interpolate(before, now, bounds);
      before = std::exchange(now, Try(next));
    }
    SetEnds(start_, std::move(now));
  }

  // Between the ends, and away from them after two steps in a row that made no progress.
  double Within() {
    const auto [low, high] = std::minmax(low_.t, high_.t);
    const Point& first = low_is_first_ ? low_ : high_;
    const Point& second = low_is_first_ ? high_ : low_;
    const double t = Interpolate(first, second), margin = 0.1 * (high - low);
    if (std::min(high - t, t - low) >= margin) {
      stuck_ = false;
      return t;
    }
    if (!stuck_ && t < high && t > low) {
      stuck_ = true;
      return t;
    }
    stuck_ = false;
    return std::abs(t - high) < std::abs(t - low) ? high - margin : low + margin;
  }

  void Zoom() {
    while (iterations_ < most_ && std::abs(high_.t - low_.t) * longest_ >= kTolerance) {
      Point now = Try(Within());
      ++iterations_;
      if (IsAbove(now) || now.loss >= low_.loss) {
        Replace(high_, std::move(now));
        continue;
      }
      const bool flat = IsFlat(now);
      if (!flat && now.slope * (high_.t - low_.t) >= 0) high_ = low_;
      low_ = std::move(now);
      if (flat) return;
    }
  }
  // The end with the larger loss, in its place; the ends may then have to be exchanged.
  void Replace(Point& high, Point now) {
    high = std::move(now);
    if (high_.loss < low_.loss || (high_.loss == low_.loss && !low_is_first_)) {
      std::swap(low_, high_);
      low_is_first_ = !low_is_first_;
    }
  }

  std::function<Point(double)> evaluate_;
  Point start_, low_, high_;
  double longest_;
  std::int64_t most_, iterations_ = 0, calls_ = 0;
  bool done_ = false, stuck_ = false, low_is_first_ = true;
};

// Complex parameters are pairs of reals here, as in PyTorch.
Tensor AsReals(const Tensor& x) { return x.is_complex() ? view_as_real(x) : x; }
std::int64_t CountReals(const Tensor& x) { return x.is_complex() ? 2 * x.numel() : x.numel(); }

double Largest(const Tensor& x) { return x.abs().max().item(); }

}  // namespace

// One call of step().
class LBFGS::Run {
 public:
  Run(LBFGS& optimizer, const std::function<Tensor()>& closure, SourceLocation loc)
      : parameters_(optimizer.parameters()),
        options_(optimizer.options()),
        history_(optimizer.history_),
        closure_(closure),
        loc_(loc),
        max_evaluations_(options_.max_eval.value_or(options_.max_iter * 5 / 4)) {}

  Tensor Minimize() {
    Tensor first = Evaluate();
    Point at{.loss = first.item(loc_), .gradient = Gradient()};
    if (IsFlat(at.gradient)) return first;
    for (std::int64_t i = 1; i <= options_.max_iter; ++i) {
      if (!Iterate(at, i == options_.max_iter)) break;
    }
    return first;
  }

 private:
  Tensor Evaluate() {
    const EnableGrad grad;
    ++evaluations_;
    ++history_.evaluations;
    return closure_();
  }
  Tensor Gradient() const {
    const SiteScope site(loc_);
    std::vector<Tensor> flat;
    for (const Tensor& p : parameters_) {
      const Tensor grad = p.grad();
      flat.push_back(AsReals(grad.defined() ? grad : zeros_like(p)).reshape({-1}));
    }
    return cat(flat);
  }
  bool IsFlat(const Tensor& gradient) const {
    const SiteScope site(loc_);
    return Largest(gradient) <= options_.tolerance_grad;
  }
  void Move(double t) const {
    const SiteScope site(loc_);
    std::int64_t at = 0;
    for (Tensor p : parameters_) {
      const std::int64_t count = CountReals(p);
      const Tensor part = history_.direction.slice(0, at, at + count) * t;
      p.add_(p.is_complex() ? view_as_complex(part.reshape({-1, 2})).reshape(p.sizes())
                            : part.reshape(p.sizes()));
      at += count;
    }
  }
  Point Tried(double t) {
    Point point{.t = t, .loss = Evaluate().item(loc_), .gradient = Gradient()};
    const SiteScope site(loc_);
    point.slope = dot(point.gradient, history_.direction).item();
    return point;
  }

  // Moves once, from a point to the next one; whether it pays to go on.
  bool Iterate(Point& at, bool last) {
    ++history_.iterations;
    SetDirection(at.gradient);
    history_.gradient = at.gradient.clone(loc_);
    history_.loss = at.loss;
    const double t = history_.iterations == 1 ? FirstLength(at.gradient) : options_.lr;
    history_.t = t;
    at.slope = Slope(at.gradient);
    if (at.slope > -options_.tolerance_change) return false;
    bool flat = false;
    at.t = 0;
    if (options_.line_search_fn) {
      at = Search(at, t);
      history_.t = at.t;
      Move(at.t);
      flat = IsFlat(at.gradient);
    } else {
      Move(t);
      if (!last) {
        at = Tried(t);
        flat = IsFlat(at.gradient);
      }
    }
    return !flat && evaluations_ < max_evaluations_ && Moved() > options_.tolerance_change &&
           std::abs(at.loss - history_.loss) >= options_.tolerance_change;
  }
  double FirstLength(const Tensor& gradient) const {
    const SiteScope site(loc_);
    const double size = gradient.abs().sum().item();
    return std::min(1.0, 1.0 / size) * options_.lr;
  }
  double Slope(const Tensor& gradient) const {
    const SiteScope site(loc_);
    return dot(gradient, history_.direction).item();
  }
  double Moved() const {
    const SiteScope site(loc_);
    return Largest(history_.direction * history_.t);
  }
  Point Search(const Point& start, double t) {
    std::vector<Tensor> here;
    double longest = 0;
    {
      const SiteScope site(loc_);
      for (const Tensor& p : parameters_) here.push_back(p.clone());
      longest = Largest(history_.direction);
    }
    const auto evaluate = [&](double length) {
      Move(length);
      Point point = Tried(length);
      const SiteScope site(loc_);
      for (std::size_t i = 0; i < here.size(); ++i) Tensor(parameters_[i]).copy_(here[i]);
      return point;
    };
    return WolfeSearch(evaluate, start, longest, max_evaluations_ - evaluations_).From(t);
  }

  // That of the gradient, by an approximation of the inverse Hessian from the steps before.
  void SetDirection(const Tensor& gradient) {
    const SiteScope site(loc_);
    History& h = history_;
    if (h.iterations == 1) {
      h.direction = -gradient;
      h.scale = ones({}, gradient.dtype(), gradient.device());
      h.changes.clear(), h.steps.clear(), h.inverses.clear();
      return;
    }
    Remember(gradient - h.gradient, h.direction * h.t);
    // Steps of 0 fill the history up to a power of two, so that few different programs are made.
    std::size_t count = h.changes.empty() ? 0 : 1;
    while (count < h.changes.size()) count *= 2;
    const auto filled = [&](std::vector<Tensor> list) {
      if (count > list.size()) list.insert(list.begin(), count - list.size(), zeros_like(list[0]));
      return list;
    };
    const std::vector<Tensor> changes = filled(h.changes), steps = filled(h.steps),
                              inverses = filled(h.inverses);
    Tensor q = -gradient;
    std::vector<Tensor> shares(count);
    for (std::size_t i = count; i-- > 0;) {
      shares[i] = dot(steps[i], q) * inverses[i];
      q = q - changes[i] * shares[i];
    }
    Tensor d = q * h.scale;
    for (std::size_t i = 0; i < count; ++i)
      d = d + steps[i] * (shares[i] - dot(changes[i], d) * inverses[i]);
    h.direction = d;
  }
  void Remember(const Tensor& change, const Tensor& step) {
    History& h = history_;
    const Tensor product = dot(change, step);
    if (!(product.item() > 1e-10)) return;
    if (static_cast<std::int64_t>(h.changes.size()) >= options_.history_size) {
      for (auto* list : {&h.changes, &h.steps, &h.inverses}) list->erase(list->begin());
    }
    h.changes.push_back(change);
    h.steps.push_back(step);
    h.inverses.push_back(1.0 / product);
    h.scale = product / dot(change, change);
  }

  const std::vector<Tensor>& parameters_;
  const LBFGSOptions options_;
  History& history_;
  const std::function<Tensor()>& closure_;
  SourceLocation loc_;
  std::int64_t max_evaluations_, evaluations_ = 0;
};

Tensor LBFGS::step(const std::function<Tensor()>& closure, SourceLocation loc) {
  if (param_groups().size() != 1)
    FailOptions("LBFGS",
                "it takes one group of parameters, not " + std::to_string(param_groups().size()),
                loc);
  const NoGrad no_grad;
  return Run(*this, closure, loc).Minimize();
}

// --- state: that of the options, and the history under "history."
namespace {

constexpr const char* kHistory = "history.";

}  // namespace

StateDict LBFGS::state_dict() const {
  StateDict dict = Optimizer::state_dict();
  const auto put = [&](const std::string& name, const Tensor& tensor) {
    if (tensor.defined()) dict.tensors[kHistory + name] = tensor;
  };
  const auto put_all = [&](const std::string& name, const std::vector<Tensor>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) put(name + "." + std::to_string(i), list[i]);
  };
  put("direction", history_.direction);
  put("gradient", history_.gradient);
  put("scale", history_.scale);
  put_all("changes", history_.changes);
  put_all("steps", history_.steps);
  put_all("inverses", history_.inverses);
  // Numbers as a tensor of doubles, which are exact.
  const std::vector<double> numbers{static_cast<double>(history_.iterations),
                                    static_cast<double>(history_.evaluations), history_.t,
                                    history_.loss};
  if (history_.iterations > 0) put("numbers", tensor(numbers, {4}));
  return dict;
}

void LBFGS::load_state_dict(const StateDict& dict, SourceLocation loc) {
  StateDict rest{.tensors = {}, .metadata = dict.metadata}, own;
  for (const auto& [name, tensor] : dict.tensors) {
    const bool is_own = name.starts_with(kHistory);
    (is_own ? own : rest).tensors[is_own ? name.substr(std::string(kHistory).size()) : name] =
        tensor;
  }
  const auto get = [&](const std::string& name) -> Tensor {
    const auto found = own.tensors.find(name);
    return found == own.tensors.end() ? Tensor() : found->second.clone(loc);
  };
  const auto get_all = [&](const std::string& name) {
    std::vector<Tensor> list;
    while (own.tensors.contains(name + "." + std::to_string(list.size())))
      list.push_back(get(name + "." + std::to_string(list.size())));
    return list;
  };
  History read;
  if (!own.tensors.empty()) {
    std::int64_t elements = 0;
    for (const Tensor& p : parameters()) elements += CountReals(p);
    const Tensor numbers = get("numbers");
    read = {.direction = get("direction"),
            .gradient = get("gradient"),
            .scale = get("scale"),
            .changes = get_all("changes"),
            .steps = get_all("steps"),
            .inverses = get_all("inverses")};
    const auto fits = [&](const Tensor& t) { return t.defined() && t.numel() == elements; };
    if (!numbers.defined() || numbers.dtype() != kFloat64 || numbers.numel() != 4 ||
        !fits(read.direction) || !fits(read.gradient) || !read.scale.defined() ||
        read.changes.size() != read.steps.size() || read.changes.size() != read.inverses.size() ||
        !std::all_of(read.changes.begin(), read.changes.end(), fits) ||
        !std::all_of(read.steps.begin(), read.steps.end(), fits))
      FailOptions("LBFGS", "the state's history is not of these parameters, or incomplete", loc);
    const std::vector<double> values = numbers.to_vector<double>(loc);
    read.iterations = static_cast<std::int64_t>(values[0]);
    read.evaluations = static_cast<std::int64_t>(values[1]);
    read.t = values[2];
    read.loss = values[3];
  }
  Optimizer::load_state_dict(rest, loc);
  history_ = std::move(read);
}

}  // namespace lazuli::optim
