// Pass: a rewrite of a whole module. PassPipeline: passes in order, itself a pass, with everything
// around each of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/hlo/module.h"

namespace lazuli::lowering {

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;
  // Whether the module changed. On error the module is unusable.
  virtual absl::StatusOr<bool> Run(hlo::Module& module) = 0;
  // It takes the dims of shapes for sizes, so pipelines leave modules alone whose sizes are known
  // only when they run (ir/evaluator/dynamic_sizes.h).
  virtual bool wants_static_sizes() const { return true; }
  // Devices take no module that has not been through it: --xla_disable_all_hlo_passes leaves it in.
  virtual bool is_needed() const { return false; }
};

// What is left out of a pipeline, and what users added: names, separated by commas. They change what
// a compile makes, so they come from its options and are in the key of a program.
struct PassOptions {
  std::string disabled_passes;  // a name that neither registry nor pipeline has is an error
  std::string disabled_rules;   // of simplify
  std::string program_passes;   // of the registry: the first passes of every program
  std::string jitter{};         // the amplitude of Jitter; empty: it does not run
  int64_t jitter_seed = 0;
  // What LAZULI_DISABLE_PASSES, LAZULI_DISABLE_RULES, ProgramPasses(), LAZULI_JITTER and
  // LAZULI_JITTER_SEED say now.
  static PassOptions Now();
};

// Around every pass: a trace span and named counter pass.<name>.changed, a dump NN.name.hlo into
// LAZULI_DUMP_DIR when the pass changed something, and with LAZULI_VERIFY_PASSES the verifier and a
// check that "changed" agrees with the module's text.
class PassPipeline final : public Pass {
 public:
  // max_iterations > 1: repeated until nothing changes, at most that often.
  explicit PassPipeline(std::string name, int max_iterations = 1,
                        PassOptions options = PassOptions::Now());
  const PassOptions& options() const { return options_; }
  std::string_view name() const override { return name_; }
  template <class P, class... Args>
  P& Add(Args&&... args) {
    auto pass = std::make_unique<P>(std::forward<Args>(args)...);
    P& result = *pass;
    passes_.push_back(std::move(pass));
    return result;
  }
  void Add(std::unique_ptr<Pass> pass) { passes_.push_back(std::move(pass)); }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
  bool wants_static_sizes() const override { return false; }  // its passes do or do not
  bool is_needed() const override { return true; }            // or else its passes would be gone

 private:
  void CollectNames(std::vector<std::string_view>* names) const;
  absl::Status CheckOptions() const;

  std::string name_;
  int max_iterations_;
  PassOptions options_;
  std::vector<std::unique_ptr<Pass>> passes_;
};

}  // namespace lazuli::lowering
