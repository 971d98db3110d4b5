#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include <sched.h>

#include "ir/support/flags.h"
#include "ir/support/parallel_for.h"
#include "ir/support/str.h"

namespace lazuli::ir {
namespace {

constexpr int kMaxThreads = 1024;

// Physical cores among the processors of the affinity mask: hyper-threads share their vector units.
int CoresOfAffinityMask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return static_cast<int>(std::thread::hardware_concurrency());
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    std::string siblings;
    std::ifstream file(Str("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    if (!std::getline(file, siblings)) siblings = Str("cpu", cpu);
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

// Processors that the control group's quota amounts to; kMaxThreads if there is none.
int QuotaOfControlGroup() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");  // "200000 100000" or "max 100000"
  double quota, period;
  if (!(file >> quota >> period) || period <= 0) return kMaxThreads;
  return static_cast<int>(std::ceil(quota / period));
}

}  // namespace

int NumThreads() {
  static const int available = std::max(1, std::min(CoresOfAffinityMask(), QuotaOfControlGroup()));
  const int64_t wanted = flags().num_threads();
  return wanted > 0 ? static_cast<int>(std::min<int64_t>(wanted, kMaxThreads)) : available;
}

}  // namespace lazuli::ir
