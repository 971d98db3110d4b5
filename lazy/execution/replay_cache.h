// ReplayCache: the recipes of one function, and when a call of it is replayed, recorded or neither.
//
// A recipe is used once two recordings agree on it. A call that no recipe fits is recorded. What is
// refused, or never agrees, is said once on standard error and then called as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "ir/support/fork.h"
#include "lazy/execution/recipe.h"
#include "lazy/execution/recording.h"

namespace lazuli::lazy {

class ReplayCache {
 public:
  // `name` is what the function is called in messages.
  explicit ReplayCache(std::string name) : name_(std::move(name)) {}
  ReplayCache(const ReplayCache&) = delete;
  ReplayCache& operator=(const ReplayCache&) = delete;

  using Modes = std::vector<uint64_t>;
  // Replays a call; false: it is to be made.
  absl::StatusOr<bool> TryReplay(absl::Span<const Tensor> arguments, const Modes& modes,
                                 ViewMaker make_view, Tensors& results);
  // Makes a call, whose results `call` gives; recorded if that may be of use. `call` throws what it
  // likes. `donated`: arguments that are given up, the same in all calls with these modes.
  absl::Status Call(absl::Span<const Tensor> arguments, const Modes& modes,
                    absl::Span<const int32_t> donated, absl::FunctionRef<Tensors()> call,
                    Tensors& results);
  // The calls from now on are made, and it is said why, once.
  void Refuse(const std::string& why, SiteId site);
  // Nothing that is known counts any more.
  void Forget();

  struct Report {
    int64_t replays = 0, recordings = 0;
    std::string refused;  // why calls are made; empty: they are not for ever
    std::string last;     // why the last call was recorded, or of a recording nothing came
  };
  Report report() const;

 private:
  using RecipePtr = std::shared_ptr<const Recipe>;
  static constexpr std::size_t kMostRecipes = 8;

  RecipePtr Find(absl::Span<const Tensor> arguments, const Modes& modes);
  void NoteMiss(std::string why);
  absl::StatusOr<RecipePtr> FindSame(const Recipe& made, std::string& why);
  absl::Status Learn(std::unique_ptr<Recipe> made);
  void Say(const std::string& text) const;

  const std::string name_;
  mutable ir::ForkMutex mu_;
  std::vector<RecipePtr> recipes_;     // the one used last comes first
  std::vector<RecipePtr> candidates_;  // of one recording; the newest comes last
  Report report_;
  int64_t misses_ = 0;                          // recordings in a row though there are recipes
  int64_t since_miss_ = 0;                      // replays
  int64_t disagreements_ = 0;                   // recordings in a row that did not agree
  std::vector<std::pair<Modes, int>> refused_;  // recordings in a row that were refused, by modes
  bool said_misses_ = false;
};

}  // namespace lazuli::lazy
