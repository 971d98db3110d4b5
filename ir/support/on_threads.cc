#include "ir/support/on_threads.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace lazuli::ir {

void OnThreads(std::size_t count, int threads, absl::FunctionRef<void(std::size_t)> work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&]() noexcept {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  const std::size_t wanted = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<std::thread> helpers;
  helpers.reserve(wanted);
  try {
    while (helpers.size() + 1 < wanted) helpers.emplace_back(run);
  } catch (const std::system_error&) {  // NOLINT: fewer do the work
  }
  run();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace lazuli::ir
