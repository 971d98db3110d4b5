#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cpp_api/optim/algorithms.h"
#include "cpp_api/optim/options.h"
#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/internal/fail.h"
#include "lazuli/internal/host_action.h"
#include "lazuli/internal/text.h"
#include "lazuli/optim.h"
#include "lazuli/serialize.h"

namespace lazuli::optim {
namespace {

using lazuli::internal::Fail;
using lazuli::internal::NumberText;

std::string Key(std::size_t parameter, const char* name) {
  return std::to_string(parameter) + "." + name;
}
std::string GroupKey(std::size_t group, const std::string& name) {
  return "group." + std::to_string(group) + "." + name;
}

// All digits of a number, and back.
std::string Text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}
template <class T>
std::optional<T> Parsed(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The number in each element, and in both parts of complex ones.
Tensor FilledLike(const Tensor& p, double value) {
  if (!p.is_complex()) return full(p.sizes(), value, p.dtype(), p.device());
  const DType part = p.dtype() == DType::kC64 ? kFloat32 : kFloat64;
  const Tensor both = full(p.sizes(), value, part, p.device());
  return complex(both, both);
}

// "fc1.weight.exp_avg", if the parameter has a name.
void NameState(Tensor& state, const Tensor& parameter, const char* name) {
  if (!parameter.name().empty()) state.set_name(parameter.name() + "." + name);
}

}  // namespace

struct Optimizer::Recorded {
  internal::UpdateOutcome outcome;
  std::vector<double> numbers;                            // before it, of all parameters
  std::vector<std::pair<std::size_t, std::size_t>> made;  // states: which, of which parameter

  class Again;
};

// A step that is replayed.
class Optimizer::Recorded::Again final : public internal::HostAction {
 public:
  explicit Again(Optimizer& optimizer) : optimizer_(optimizer) {}

  void Keep() {
    batches_ = BatchesOfReplay(optimizer_.batches_);
    num_parameters_ = optimizer_.parameters_.size();
  }
  void TakeNumbers() override {
    optimizer_.Settle();
    if (optimizer_.parameters_.size() != num_parameters_) return;
    for (Batch& batch : batches_) {
      if (!IsAsItWas(batch)) return;
      batch.numbers = optimizer_.numbers_[batch.indices[0]];
      optimizer_.Update(batch, optimizer_.groups_[batch.group].options());
    }
  }
  void Commit() override {
    optimizer_.Remember(internal::UpdateOutcome::OfRecording());
    for (const Batch& batch : batches_) optimizer_.Keep(batch);
  }
  const void* actor() const override { return &optimizer_; }

 private:
  bool IsAsItWas(const Batch& batch) const {
    const std::vector<double>& numbers = optimizer_.numbers_[batch.indices[0]];
    for (std::size_t k = 0; k < batch.indices.size(); ++k) {
      const std::size_t i = batch.indices[k];
      if (optimizer_.numbers_[i] != numbers) return false;
      for (std::size_t s = 0; s < batch.states.size(); ++s) {
        const Tensor& state = optimizer_.states_[s][i];
        if (state.defined() != batch.states[s][k].defined() ||
            (state.defined() && !state.is_same(batch.states[s][k])))
          return false;
      }
    }
    return true;
  }

  Optimizer& optimizer_;
  std::vector<Batch> batches_;
  std::size_t num_parameters_ = 0;
};

ParamGroup::ParamGroup(const ParamGroup& other)
    : params_(other.params_),
      options_(other.options_ ? other.options_->clone() : nullptr),
      initial_lr_(other.initial_lr_) {}

// --- groups

Optimizer::Optimizer(const Algorithm& algorithm, std::unique_ptr<OptimizerOptions> defaults,
                     SourceLocation)
    : algorithm_(algorithm), defaults_(std::move(defaults)), states_(algorithm.states.size()) {}
Optimizer::~Optimizer() = default;

void Optimizer::Refuse(const std::string& what, SourceLocation loc) const {
  Fail(ErrorCode::kInvalidArgument, std::string(algorithm_.name) + ": " + what, loc);
}

void Optimizer::AddGroups(std::vector<ParamGroup> groups, SourceLocation loc) {
  CheckOptions(*defaults_, loc);
  for (ParamGroup& group : groups) add_param_group(std::move(group), loc);
  if (parameters_.empty())
    Refuse("there are no parameters; does the model register its modules?", loc);
}

void Optimizer::CheckGroup(const ParamGroup& group, std::size_t first, SourceLocation loc) const {
  CheckOptions(group.options(), loc);
  for (std::size_t i = 0; i < group.params().size(); ++i) {
    const Tensor& p = group.params()[i];
    const std::string which = "parameter " + std::to_string(first + i);
    if (!p.defined()) Refuse(which + " is undefined", loc);
    if (algorithm_.matrices && p.dim() != 2) {
      Refuse("parameters are matrices, " + which + " has " + std::to_string(p.dim()) + " dims",
             loc);
    }
    for (std::size_t j = 0; j < first + i; ++j) {
      if (!p.is_same(j < first ? parameters_[j] : group.params()[j - first])) continue;
      Refuse(which + " is also parameter " + std::to_string(j) + "; it would be moved twice a step",
             loc);
    }
  }
}

void Optimizer::add_param_group(ParamGroup group, SourceLocation loc) {
  if (!group.has_options()) group.options_ = defaults_->clone();
  CheckGroup(group, parameters_.size(), loc);
  const std::vector<Tensor>& added = group.params();
  Settle();
  num_recorded_ = 0;  // they are of fewer parameters
  parameters_.insert(parameters_.end(), added.begin(), added.end());
  numbers_.resize(parameters_.size(), std::vector<double>(algorithm_.numbers.size()));
  for (std::vector<Tensor>& state : states_) state.resize(parameters_.size());
  groups_.push_back(std::move(group));
}

void Optimizer::SetOptions(const OptimizerOptions& options, SourceLocation loc) {
  CheckOptions(options, loc);
  for (ParamGroup& group : groups_) group.options_ = options.clone();
}

void Optimizer::set_lr(double lr, SourceLocation loc) {
  const std::unique_ptr<OptimizerOptions> changed = groups_[0].options_->clone();
  changed->set_lr(lr);
  CheckOptions(*changed, loc);
  for (ParamGroup& group : groups_) group.options_->set_lr(lr);
}

// --- steps

void Optimizer::zero_grad(bool set_to_none, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  for (Tensor& p : parameters_) {
    if (set_to_none)
      p.set_grad({}, loc);
    else if (const Tensor grad = p.grad(); grad.defined())
      p.set_grad(zeros_like(grad), loc);
  }
}

Tensor Optimizer::step(const std::function<Tensor()>& closure, SourceLocation loc) {
  Tensor loss = closure();
  step(loc);
  return loss;
}

void Optimizer::step(SourceLocation loc) {
  const SiteScope site(loc);
  // Whatever happens, gradients are not held longer than by the parameters.
  struct Clear {
    std::vector<Batch>& batches;
    bool done = false;
    ~Clear() {
      for (Batch& batch : batches) batch.EndStep(done);
    }
  } clear{batches_};
  update_.RunFirst(algorithm_.name, loc);
  Settle();
  std::shared_ptr<Recorded::Again> again;  // others than foreach_ functions record all that they do
  if (internal::HostActionScope::IsWatched() && !algorithm_.matrices)
    again = std::make_shared<Recorded::Again>(*this);
  const internal::HostActionScope acts(again);
  internal::UpdateOutcome outcome = internal::UpdateOutcome::OfRecording();
  std::size_t first = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    MakeBatches(groups_[g], first, g);
    first += groups_[g].params().size();
  }
  for (Batch& batch : batches_) batch.CutToAdded();
  std::optional<ForeachTransaction> together;  // an update alone is written as a whole anyway
  if (batches_.size() > 1) together.emplace();
  for (Batch& batch : batches_) {
    if (batch.empty()) continue;
    Update(batch, groups_[batch.group].options());
    NameStates(batch);
  }
  if (together) together->commit();
  Remember(std::move(outcome));
  for (const Batch& batch : batches_) Keep(batch);
  if (again) again->Keep();
  clear.done = true;
  if (!batches_.empty() && !batches_[0].empty()) update_.Set();
}

void Optimizer::MakeBatches(const ParamGroup& group, std::size_t first, std::size_t number) {
  Batch* last = nullptr;
  for (std::size_t i = first; i < first + group.params().size(); ++i) {
    const Tensor& p = parameters_[i];
    Tensor grad = p.grad();
    if (!grad.defined()) continue;
    if (last != nullptr && last->AddAgain(i, p, grad)) continue;
    last = &BatchFor(i, number);
    last->Add(i, p, std::move(grad), [&](std::size_t s) -> const Tensor& { return states_[s][i]; });
  }
}

Batch& Optimizer::BatchFor(std::size_t i, std::size_t group) {
  // Those of earlier steps are there, empty, with the memory of their lists.
  for (Batch& batch : batches_) {
    if (batch.empty()) {
      batch.group = group;
      batch.numbers = numbers_[i];
      return batch;
    }
    if (batch.group == group && Fits(algorithm_, batch, parameters_[i], numbers_[i],
                                     [&](std::size_t s) { return states_[s][i].defined(); }))
      return batch;
  }
  Batch& batch = batches_.emplace_back();
  batch.group = group;
  batch.numbers = numbers_[i];
  batch.states.resize(states_.size());
  return batch;
}

void Batch::CutToAdded() {
  parameters.resize(indices.size());
  for (TensorList& state : states) state.resize(indices.size());
}

void Batch::EndStep(bool done) {
  before.clear();
  if (done) before.swap(indices);
  indices.clear();
  gradients.clear();
}

void Batch::Clear() {
  indices.clear();
  before.clear();
  parameters.clear();
  gradients.clear();
  for (TensorList& state : states) state.clear();
}

void Fill(Batch& batch, std::size_t state, double value) {
  if (batch.states[state][0].defined()) return;
  for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
    const Tensor& p = batch.parameters[i];
    batch.states[state][i] = value == 0 ? zeros_like(p) : FilledLike(p, value);
  }
}

bool Optimizer::IsNew(const Batch& batch, std::size_t state) const {
  return batch.states[state][0].defined() && !states_[state][batch.indices[0]].defined();
}

void Optimizer::NameStates(Batch& batch) const {
  for (std::size_t s = 0; s < states_.size(); ++s) {
    for (std::size_t k = 0; IsNew(batch, s) && k < batch.indices.size(); ++k)
      NameState(batch.states[s][k], batch.parameters[k], algorithm_.states[s]);
  }
}

void Optimizer::Keep(const Batch& batch) noexcept {
  for (const std::size_t i : batch.indices)
    std::copy(batch.numbers.begin(), batch.numbers.end(), numbers_[i].begin());
  for (std::size_t s = 0; s < states_.size(); ++s) {
    if (batch.empty() || !IsNew(batch, s)) continue;
    for (std::size_t k = 0; k < batch.indices.size(); ++k)
      states_[s][batch.indices[k]] = batch.states[s][k];
  }
}

// --- steps that are not taken

void Optimizer::Remember(internal::UpdateOutcome outcome) {
  // A device has two runs in flight and one graph pending. What is older will never be known: its graph
  // was dropped.
  constexpr std::size_t kMost = 8;
  if (num_recorded_ == kMost) {
    std::rotate(recorded_.begin(), recorded_.begin() + 1, recorded_.end());
    --num_recorded_;
  }
  if (num_recorded_ == recorded_.size()) recorded_.emplace_back();
  Recorded& step = recorded_[num_recorded_++];
  step.outcome = std::move(outcome);
  step.numbers.clear();
  step.made.clear();
  for (const std::vector<double>& numbers : numbers_)
    step.numbers.insert(step.numbers.end(), numbers.begin(), numbers.end());
  for (const Batch& batch : batches_) {
    for (std::size_t s = 0; s < states_.size(); ++s) {
      if (batch.empty() || !IsNew(batch, s)) continue;
      for (const std::size_t i : batch.indices) step.made.emplace_back(s, i);
    }
  }
}

void Optimizer::Settle() const {
  using State = internal::UpdateOutcome::State;
  std::size_t kept = 0;
  for (std::size_t r = 0; r < num_recorded_; ++r) {
    const State state = recorded_[r].outcome.state();
    if (state == State::kNotTaken) TakeBack(r);
    if (state != State::kUnknown) continue;
    if (kept != r) std::swap(recorded_[kept], recorded_[r]);
    ++kept;
  }
  for (std::size_t r = kept; r < num_recorded_; ++r) recorded_[r].outcome = {};
  num_recorded_ = kept;
}

void Optimizer::TakeBack(std::size_t recorded) const {
  const Recorded& step = recorded_[recorded];
  for (const auto& [state, parameter] : step.made) states_[state][parameter] = Tensor();
  batches_.clear();  // they have the states, too
  const std::size_t count = algorithm_.numbers.size();
  const bool newest = recorded + 1 == num_recorded_;
  for (std::size_t i = 0; i < numbers_.size() && count > 0; ++i) {
    const double* const before = step.numbers.data() + i * count;
    if (newest) {
      std::copy(before, before + count, numbers_[i].begin());
      continue;
    }
    // Steps were recorded since, which counted on; the first number is the count.
    const double counted = recorded_[recorded + 1].numbers[i * count] - before[0];
    for (std::size_t r = recorded + 1; r < num_recorded_; ++r)
      recorded_[r].numbers[i * count] -= counted;
    numbers_[i][0] -= counted;
  }
}

// --- state

namespace {

std::string TextOf(bool on) { return on ? "true" : "false"; }
std::string TextOf(double number) { return Text(number); }
std::string TextOf(std::int64_t number) { return std::to_string(number); }
std::string TextOf(const std::string& text) { return text; }
template <class T>
std::string TextOf(const std::optional<T>& value) {
  return value ? TextOf(*value) : "none";
}

// Whether the text is a value of this type, which it becomes.
bool Read(const std::string& text, bool& on) {
  on = text == "true";
  return on || text == "false";
}
bool Read(const std::string& text, std::string& value) {
  value = text;
  return true;
}
template <class T>
bool Read(const std::string& text, T& number) {
  const std::optional<T> parsed = Parsed<T>(text);
  if (parsed) number = *parsed;
  return parsed.has_value();
}
template <class T>
bool Read(const std::string& text, std::optional<T>& value) {
  if (text == "none") {
    value = std::nullopt;
    return true;
  }
  T some{};
  if (!Read(text, some)) return false;
  value = some;
  return true;
}

}  // namespace

void Optimizer::Parse(const std::string& name, const std::string& text, const Option& option,
                      SourceLocation loc) const {
  const bool known = std::visit([&](auto* value) { return Read(text, *value); }, option.value);
  if (!known) Refuse("the state's " + name + " is '" + text + "'", loc);
}

StateDict Optimizer::state_dict() const {
  Settle();
  StateDict dict;
  dict.metadata["optimizer"] = algorithm_.name;
  dict.metadata["groups"] = std::to_string(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    dict.metadata[GroupKey(g, "parameters")] = std::to_string(groups_[g].params().size());
    const std::unique_ptr<OptimizerOptions> options = groups_[g].options().clone();
    for (const Option& option : OptionsIn(*options))
      dict.metadata[GroupKey(g, option.name)] =
          std::visit([](const auto* value) { return TextOf(*value); }, option.value);
    if (groups_[g].initial_lr_)
      dict.metadata[GroupKey(g, "initial_lr")] = Text(*groups_[g].initial_lr_);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    for (std::size_t n = 0; n < numbers_[i].size(); ++n) {
      if (numbers_[i][0] != 0) dict.metadata[Key(i, algorithm_.numbers[n])] = Text(numbers_[i][n]);
    }
    for (std::size_t s = 0; s < states_.size(); ++s) {
      if (states_[s][i].defined()) dict.tensors[Key(i, algorithm_.states[s])] = states_[s][i];
    }
  }
  return dict;
}

void Optimizer::load_state_dict(const StateDict& dict, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  const auto text = [&](const std::string& key) -> const std::string& {
    const auto found = dict.metadata.find(key);
    if (found == dict.metadata.end()) Refuse("the state has no '" + key + "'", loc);
    return found->second;
  };
  if (text("optimizer") != algorithm_.name) Refuse("the state is of " + text("optimizer"), loc);
  if (text("groups") != std::to_string(groups_.size())) {
    Refuse("the state is of " + text("groups") + " groups, there are " +
               std::to_string(groups_.size()),
           loc);
  }
  // All is read and checked before anything is changed.
  std::vector<ParamGroup> groups = groups_;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::string& count = text(GroupKey(g, "parameters"));
    if (count != std::to_string(groups[g].params().size())) {
      Refuse("group " + std::to_string(g) + " of the state is of " + count +
                 " parameters, there are " + std::to_string(groups[g].params().size()),
             loc);
    }
    for (const Option& option : OptionsIn(groups[g].options())) {
      const std::string key = GroupKey(g, option.name);
      Parse(key, text(key), option, loc);
    }
    CheckOptions(groups[g].options(), loc);
    groups[g].initial_lr_.reset();
    const std::string initial = GroupKey(g, "initial_lr");
    if (!dict.metadata.contains(initial)) continue;
    groups[g].initial_lr_ = Parsed<double>(text(initial));
    if (!groups[g].initial_lr_)
      Refuse("the state's " + initial + " is '" + text(initial) + "'", loc);
  }
  std::vector<std::vector<double>> numbers(parameters_.size(),
                                           std::vector<double>(algorithm_.numbers.size()));
  std::vector<std::vector<Tensor>> made(states_.size(), std::vector<Tensor>(parameters_.size()));
  std::vector<std::pair<std::string, Tensor>> into;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    for (std::size_t n = 0; n < numbers[i].size(); ++n) {
      const std::string key = Key(i, algorithm_.numbers[n]);
      if (!dict.metadata.contains(key)) continue;
      const std::optional<double> number = Parsed<double>(text(key));
      if (!number || *number < 0) Refuse("the state's " + key + " is not a count", loc);
      numbers[i][n] = *number;
    }
    for (std::size_t s = 0; s < states_.size(); ++s) {
      const auto found = dict.tensors.find(Key(i, algorithm_.states[s]));
      if (found == dict.tensors.end()) continue;
      // Adafactor's have dims of their own.
      made[s][i] = algorithm_.by_rank ? zeros(found->second.sizes(), parameters_[i].dtype(),
                                              parameters_[i].device())
                                      : zeros_like(parameters_[i]);
      NameState(made[s][i], parameters_[i], algorithm_.states[s]);
      into.emplace_back(found->first, made[s][i]);
    }
  }
  load_tensors(dict, into, algorithm_.name, {}, loc);
  groups_ = std::move(groups);
  num_recorded_ = 0;
  batches_.clear();
  numbers_ = std::move(numbers);
  states_ = std::move(made);
}

void save(const Optimizer& optimizer, const std::string& path, SourceLocation loc) {
  save_safetensors(optimizer.state_dict(), path, loc);
}

void load(Optimizer& optimizer, const std::string& path, SourceLocation loc) {
  optimizer.load_state_dict(load_safetensors(path, Device(), loc), loc);
}

// --- options of a type

namespace {

template <class O>
const O& As(const Algorithm& algorithm, const OptimizerOptions& options, SourceLocation loc) {
  const auto* own = dynamic_cast<const OptionsOf<O>*>(&options);
  if (own == nullptr) FailOptions(algorithm.name, "a group has options of another optimiser", loc);
  return own->get();
}

std::vector<ParamGroup> OneGroup(std::vector<Tensor> parameters) {
  std::vector<ParamGroup> groups;
  groups.emplace_back(std::move(parameters));
  return groups;
}

}  // namespace

template <class O>
Configured<O>::Configured(std::vector<ParamGroup> groups, const O& options, SourceLocation loc)
    : Optimizer(AlgorithmOf(options), std::make_unique<OptionsOf<O>>(options), loc) {
  AddGroups(std::move(groups), loc);
}
template <class O>
Configured<O>::Configured(std::vector<Tensor> parameters, const O& options, SourceLocation loc)
    : Configured(OneGroup(std::move(parameters)), options, loc) {}
template <class O>
const O& Configured<O>::options(std::size_t group) const {
  return static_cast<const OptionsOf<O>&>(param_groups().at(group).options()).get();
}
template <class O>
void Configured<O>::set_options(const O& options, SourceLocation loc) {
  SetOptions(OptionsOf<O>(options), loc);
}
template <class O>
std::vector<Optimizer::Option> Configured<O>::OptionsIn(OptimizerOptions& options) const {
  std::vector<Option> list;
  VisitOptions(static_cast<OptionsOf<O>&>(options).get(),
               [&](const std::string& name, auto& value) { list.push_back({name, &value}); });
  return list;
}
template <class O>
void Configured<O>::CheckOptions(const OptimizerOptions& options, SourceLocation loc) const {
  Check(As<O>(AlgorithmOf(O()), options, loc), loc);
}
template <class O>
void Configured<O>::Update(Batch& batch, const OptimizerOptions& options) {
  lazuli::optim::Update(batch, static_cast<const OptionsOf<O>&>(options).get());
}

template class Configured<SGDOptions>;
template class Configured<AdamOptions>;
template class Configured<AdamWOptions>;
template class Configured<NAdamOptions>;
template class Configured<RAdamOptions>;
template class Configured<AdamaxOptions>;
template class Configured<RMSpropOptions>;
template class Configured<AdagradOptions>;
template class Configured<AdadeltaOptions>;
template class Configured<ASGDOptions>;
template class Configured<RpropOptions>;
template class Configured<LionOptions>;
template class Configured<AdafactorOptions>;
template class Configured<MuonOptions>;
template class Configured<LBFGSOptions>;

// --- checks of options

void FailOptions(const char* optimizer, const std::string& what, SourceLocation loc) {
  Fail(ErrorCode::kInvalidArgument, std::string(optimizer) + ": " + what, loc);
}

void CheckAtLeastZero(const char* optimizer, const char* option, double value, SourceLocation loc) {
  if (value >= 0) return;  // false for NaN
  FailOptions(optimizer,
              std::string(option) + " is " + NumberText(value) + ", it must be at least 0", loc);
}

void CheckFraction(const char* optimizer, const char* option, double value, SourceLocation loc) {
  if (value >= 0 && value < 1) return;
  FailOptions(
      optimizer,
      std::string(option) + " is " + NumberText(value) + ", it must be at least 0 and below 1",
      loc);
}

void CheckBetas(const char* optimizer, const std::pair<double, double>& betas, SourceLocation loc) {
  CheckFraction(optimizer, "betas.first", betas.first, loc);
  CheckFraction(optimizer, "betas.second", betas.second, loc);
}

}  // namespace lazuli::optim
