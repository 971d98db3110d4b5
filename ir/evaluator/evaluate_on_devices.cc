#include <optional>
#include <thread>

#include "ir/evaluator/evaluator.h"
#include "ir/support/float_mode.h"
#include "ir/support/status.h"

namespace lazuli::hlo {

absl::StatusOr<std::vector<Literal>> EvaluateOnDevices(
    const Module& module, absl::Span<const std::vector<const Literal*>> arguments) {
  Peers peers("device", static_cast<int64_t>(arguments.size()));
  const std::optional<PeerProgram> program = PeerProgram::Of(module, {});
  std::vector<absl::StatusOr<Literal>> results(arguments.size());
  const auto asked = Peers::Clock::now();
  const auto run = [&](std::size_t device) {
    const ir::ScopedFloatMode mode;
    if (!program) {
      results[device] = Evaluate(module, arguments[device]);
      return;
    }
    PeerRun own(peers, *program, static_cast<int64_t>(device), asked);
    results[device] = Evaluate(module, arguments[device], {.peers = &own});
    if (!results[device].ok()) own.Fail(results[device].status());
  };
  std::vector<std::thread> threads;
  for (std::size_t device = 0; device < arguments.size(); ++device)
    threads.emplace_back(run, device);
  for (std::thread& thread : threads) thread.join();
  std::vector<Literal> values;
  for (absl::StatusOr<Literal>& result : results) {
    if (!result.ok()) return result.status();
    values.push_back(*std::move(result));
  }
  return values;
}

}  // namespace lazuli::hlo
