#include "lazy/execution/replay_cache.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "ir/support/flags.h"
#include "ir/support/str.h"
#include "ir/support/text_file.h"
#include "lazy/tensor/history.h"
#include "lazy/tensor/site_scope.h"

namespace lazuli::lazy {
namespace {

constexpr int kMostRefusals = 2;  // in a row; then calls are only made
constexpr int64_t kMostDisagreements = 8;
constexpr int64_t kMostMisses = 64;
constexpr int64_t kReplaysBetween = 2;  // misses

// Whether calls on this thread are only made: it records or traces something around them, or runs op
// by op.
bool OnlyCalls() {
  return Watch::Current() != nullptr || Context::Current().journal() != nullptr ||
         History::eager() || PackScope::Current() != nullptr;
}

}  // namespace

void ReplayCache::Say(const std::string& text) const {
  std::fputs(Str("lazuli: ", name_, text, "\n").c_str(), stderr);
}

void ReplayCache::Refuse(const std::string& why, SiteId site) {
  {
    const std::lock_guard lock(mu_);
    if (!report_.refused.empty()) return;
    report_.refused = Str(why, ir::InParentheses(site));
  }
  Say(Str(" is not replayed, but called each time: it ", why, ir::InParentheses(site),
          " (said once)"));
}

void ReplayCache::Forget() {
  const std::lock_guard lock(mu_);
  recipes_.clear();
  candidates_.clear();
}

ReplayCache::Report ReplayCache::report() const {
  const std::lock_guard lock(mu_);
  return report_;
}

// A call that no recipe fits, though there are some.
void ReplayCache::NoteMiss(std::string why) {
  report_.last = std::move(why);
  if (since_miss_ > kReplaysBetween) misses_ = 0;
  since_miss_ = 0;
  ++misses_;
  if (flags().debug() >= 2)
    ir::ShowDebug(Str("lazuli: ", name_, " is recorded anew: ", report_.last, "\n"));
  const int64_t limit = flags().recompile_warning();
  if (limit <= 0 || misses_ < limit || std::exchange(said_misses_, true)) return;
  Say(Str(": ", limit, " calls in a row were recorded anew, the last because ", report_.last,
          " (said once; LAZULI_DEBUG=2 explains each, LAZULI_RECOMPILE_WARNING=0 is silent)"));
}

ReplayCache::RecipePtr ReplayCache::Find(absl::Span<const Tensor> arguments, const Modes& modes) {
  const std::lock_guard lock(mu_);
  std::string first_why;
  for (std::size_t i = 0; i < recipes_.size(); ++i) {
    std::string why = WhyNot(*recipes_[i], modes, arguments);
    if (why.empty()) {
      if (i > 0)
        std::rotate(recipes_.begin(), recipes_.begin() + static_cast<std::ptrdiff_t>(i),
                    recipes_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return recipes_[0];
    }
    if (i == 0) first_why = std::move(why);
  }
  if (!recipes_.empty()) NoteMiss(std::move(first_why));
  return nullptr;
}

absl::StatusOr<bool> ReplayCache::TryReplay(absl::Span<const Tensor> arguments, const Modes& modes,
                                            ViewMaker make_view, Tensors& results) {
  if (OnlyCalls()) return false;
  const RecipePtr recipe = Find(arguments, modes);
  if (recipe == nullptr) return false;
  LAZULI_ASSIGN_OR_RETURN(std::string why, RunRecipe(*recipe, arguments, make_view, results));
  const std::lock_guard lock(mu_);
  if (why.empty()) {
    ++report_.replays;
    ++since_miss_;
    return true;
  }
  std::erase(recipes_, recipe);
  NoteMiss(std::move(why));
  return false;
}

absl::Status ReplayCache::Call(absl::Span<const Tensor> arguments, const Modes& modes,
                               absl::Span<const int32_t> donated, absl::FunctionRef<Tensors()> call,
                               Tensors& results) {
  bool records = !OnlyCalls();
  if (records) {
    const std::lock_guard lock(mu_);
    const auto refused = std::find_if(refused_.begin(), refused_.end(),
                                      [&](const auto& entry) { return entry.first == modes; });
    records = report_.refused.empty() && disagreements_ < kMostDisagreements &&
              misses_ < kMostMisses &&
              (refused == refused_.end() || refused->second < kMostRefusals);
  }
  if (!records) {
    results = call();
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(const std::unique_ptr<Recording> recording,
                          Recording::Start(arguments, modes));
  {
    const Watch::Scope watched(recording.get());
    const SiteOverride none(ir::kNoSite);  // what the function records has lines of its own
    results = call();
  }
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<Recipe> made, recording->Finish(results, donated));
  if (made != nullptr) return Learn(std::move(made));
  std::string text;
  {
    const std::lock_guard lock(mu_);
    ++report_.recordings;
    report_.last = Str("it ", recording->why(), ir::InParentheses(recording->site()));
    auto refused = std::find_if(refused_.begin(), refused_.end(),
                                [&](const auto& entry) { return entry.first == modes; });
    if (refused == refused_.end()) refused = refused_.insert(refused_.end(), {modes, 0});
    if (++refused->second == kMostRefusals)
      text = Str(" is not replayed, but called each time: ", report_.last, " (said once)");
  }
  if (!text.empty()) Say(text);
  return absl::OkStatus();
}

// The known recipe that agrees with a recording; if there is none, `why` is what differs from the
// newest one with the same arguments.
absl::StatusOr<ReplayCache::RecipePtr> ReplayCache::FindSame(const Recipe& made, std::string& why) {
  std::vector<RecipePtr> known;
  {
    const std::lock_guard lock(mu_);
    ++report_.recordings;
    std::erase_if(refused_, [&](const auto& entry) { return entry.first == made.modes; });
    known = recipes_;
    known.insert(known.end(), candidates_.rbegin(), candidates_.rend());
  }
  for (const RecipePtr& other : known) {
    LAZULI_ASSIGN_OR_RETURN(std::string differs, WhatDiffers(*other, made));
    if (differs.empty()) return other;
    if (WhyOther(*other, made).empty() && why.empty()) why = std::move(differs);
  }
  return nullptr;
}

absl::Status ReplayCache::Learn(std::unique_ptr<Recipe> made) {
  std::string why;
  LAZULI_ASSIGN_OR_RETURN(const RecipePtr same, FindSame(*made, why));
  if (same != nullptr) Generalize(*same, *made);
  std::string text;
  {
    const std::lock_guard lock(mu_);
    const RecipePtr recipe = std::move(made);
    std::erase(recipes_, same);
    std::erase(candidates_, same);
    std::vector<RecipePtr>& list = same != nullptr ? recipes_ : candidates_;
    list.insert(same != nullptr ? list.begin() : list.end(), recipe);
    if (list.size() > kMostRecipes) list.erase(same != nullptr ? list.end() - 1 : list.begin());
    if (same != nullptr || why.empty()) {
      if (same != nullptr) disagreements_ = 0;
      return absl::OkStatus();
    }
    report_.last = why;
    if (++disagreements_ == kMostDisagreements)
      text = Str(" is not replayed, but called each time, since no two calls are alike: ", why,
                 " (said once)");
  }
  if (!text.empty()) Say(text);
  return absl::OkStatus();
}

}  // namespace lazuli::lazy
