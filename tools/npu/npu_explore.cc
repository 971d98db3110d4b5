// npu-explore: one program or network on many machines, as CSV and as a page with the Pareto front.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include "ir/support/status.h"
#include "ir/support/text_file.h"
#include "tools/npu/explore_page.h"
#include "tools/npu/options.h"
#include "tools/npu/sweep.h"
#include "tools/npu/workload.h"
#include "tools/run_module.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using ir::InvalidArgument;
using ir::Str;

constexpr std::string_view kUsage = R"(usage: npu-explore --sweep AXIS... FILE [options]
Compiles and times FILE on every machine of a sweep over keys of the configuration. FILE is a program of HLO (text, or a
serialised HloModuleProto if its name ends in .pb) or a topology file of SCALE-Sim (.csv), whose layers are programs one
by one. What the machine's compiler lacks of a program runs on the host, and is counted.

  --csv=FILE              where the table goes; - is standard output (-)
  --page=FILE.html        where the page goes; without a name none is written (npu-explore.html)
  --objectives=X,Y        the two columns that the front is of (area_mm2, or energy_uj where no axis changes the area, and cycles)
  --estimate              layers by the closed forms of npu-layers, at once, instead of programs on the simulator
  --type=s8|bf16|f32      what layers multiply (s8)
  --seed=N                draws the inputs of a program (0)
  --jobs=N                threads (one for each processor)
  --most-points=N         refuse a sweep of more (10000)
)";

struct Request {
  NpuOptions machine;
  std::vector<SweepAxis> axes;
  std::string file, csv = "-", page = "npu-explore.html", objectives;
  WorkloadOptions workload;
  int64_t jobs = std::max(1U, std::thread::hardware_concurrency()), most_points = 10000;
  bool help = false, help_config = false;
};

absl::Status AddAxis(std::string_view text, Request& request) {
  auto axis = SweepAxis::Parse(text);
  if (!axis.ok()) return ir::Prefixed(axis.status(), "--sweep: ");
  request.axes.push_back(*std::move(axis));
  return absl::OkStatus();
}

absl::Status AtLeastOne(std::string_view option, int64_t value) {
  return value >= 1 ? absl::OkStatus() : InvalidArgument(option, "=", value, ": at least 1");
}

absl::StatusOr<bool> TakeNumber(std::string_view argument, Request& request) {
  std::string value;
  if (TakeValue(argument, "--jobs", &value)) {
    LAZULI_ASSIGN_OR_RETURN(request.jobs, ParseInteger("--jobs", value));
    LAZULI_RETURN_IF_ERROR(AtLeastOne("--jobs", request.jobs));
  } else if (TakeValue(argument, "--most-points", &value)) {
    LAZULI_ASSIGN_OR_RETURN(request.most_points, ParseInteger("--most-points", value));
    LAZULI_RETURN_IF_ERROR(AtLeastOne("--most-points", request.most_points));
  } else if (TakeValue(argument, "--seed", &value)) {
    LAZULI_ASSIGN_OR_RETURN(const int64_t seed, ParseInteger("--seed", value));
    request.workload.seed = static_cast<uint64_t>(seed);
  } else {
    return false;
  }
  return true;
}

absl::StatusOr<Request> ParseRequest(const std::vector<std::string_view>& arguments) {
  Request request;
  std::string value;
  for (const std::string_view argument : arguments) {
    LAZULI_ASSIGN_OR_RETURN(const bool taken, TakeNumber(argument, request));
    if (taken || argument == "--sweep" || request.machine.Take(argument) ||
        TakeValue(argument, "--csv", &request.csv) ||
        TakeValue(argument, "--page", &request.page) ||
        TakeValue(argument, "--objectives", &request.objectives) ||
        TakeValue(argument, "--type", &request.workload.type))
      continue;
    if (TakeValue(argument, "--sweep", &value)) {
      LAZULI_RETURN_IF_ERROR(AddAxis(value, request));
    } else if (argument == "--page=") {
      request.page.clear();
    } else if (argument == "--estimate") {
      request.workload.estimate = true;
    } else if (argument == "--help" || argument == "--help-config") {
      (argument == "--help" ? request.help : request.help_config) = true;
    } else if (argument.starts_with('-') && argument != "-") {
      return InvalidArgument("unknown option ", argument, "; --help lists them");
    } else if (argument.find('=') != std::string_view::npos) {
      LAZULI_RETURN_IF_ERROR(AddAxis(argument, request));
    } else if (request.file.empty()) {
      request.file = argument;
    } else {
      return InvalidArgument("two files: ", request.file, " and ", argument,
                             "; an axis reads KEY=VALUES");
    }
  }
  if (request.file.empty() && !request.help && !request.help_config)
    return InvalidArgument("no file; --help says how to use this");
  return request;
}

// A bar on a terminal, nothing elsewhere.
class Bar {
 public:
  explicit Bar(std::size_t total) : total_(total) {}
  ~Bar() {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  void Done(const std::string& what) {
    const std::lock_guard lock(mutex_);
    ++done_;
    if (!terminal_) return;
    constexpr std::size_t kWidth = 30;
    const std::size_t filled = kWidth * done_ / total_;
    const double left =
        Seconds() / static_cast<double>(done_) * static_cast<double>(total_ - done_);
    std::fprintf(stderr, "\r[%s%s] %zu/%zu  %.0f s left  %s\033[K",
                 std::string(filled, '=').c_str(), std::string(kWidth - filled, ' ').c_str(), done_,
                 total_, left, what.substr(0, 60).c_str());
  }
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  const std::size_t total_;
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::size_t done_ = 0;
};

void MeasurePoint(const Workload& workload, const std::vector<SweepAxis>& axes,
                  ExplorePoint& point) {
  point.status = npu::SetKeys(KeysOf(axes, point.point), point.config);
  if (point.status.ok()) point.status = npu::Check(point.config);
  if (!point.status.ok()) return;
  auto measured = workload.Measure(point.config);
  point.status = measured.status();
  if (measured.ok()) point.measured = *std::move(measured);
}

absl::Status SetObjectives(const std::string& names, Exploration& exploration) {
  const std::size_t comma = names.find(',');
  if (comma == std::string::npos)
    return InvalidArgument("--objectives=", names, ": two columns, X,Y");
  LAZULI_ASSIGN_OR_RETURN(exploration.x, FindExploreColumn(names.substr(0, comma)));
  LAZULI_ASSIGN_OR_RETURN(exploration.y, FindExploreColumn(names.substr(comma + 1)));
  return absl::OkStatus();
}

absl::Status WriteViews(const Request& request, const Exploration& exploration) {
  const std::string csv = ExploreCsv(exploration);
  if (request.csv == "-")
    std::fputs(csv.c_str(), stdout);
  else
    LAZULI_RETURN_IF_ERROR(ir::WriteTextFile(request.csv, csv));
  if (request.page.empty()) return absl::OkStatus();
  return ir::WriteTextFile(request.page, ExplorePage(exploration));
}

// What was found, on standard error; an error if nothing was.
absl::Status Conclude(const Request& request, const Exploration& exploration, double seconds) {
  int64_t failed = 0, front = 0;
  const ExplorePoint* first = nullptr;
  for (const ExplorePoint& point : exploration.points) {
    front += point.front ? 1 : 0;
    if (point.status.ok()) continue;
    ++failed;
    if (first == nullptr) first = &point;
  }
  if (failed == static_cast<int64_t>(exploration.points.size()))
    return ir::Prefixed(
        first->status,
        Str("no machine was measured; ",
            exploration.axes.empty() ? "" : KeysOf(exploration.axes, first->point) + ": "));
  if (failed > 0)
    std::fprintf(
        stderr,
        "npu-explore: %ld of %zu machines were not measured (column error), such as %s: %s\n",
        static_cast<long>(failed), exploration.points.size(),
        KeysOf(exploration.axes, first->point).c_str(),
        std::string(ir::Message(first->status)).c_str());
  std::fprintf(stderr, "npu-explore: %zu machine%s in %.1f s, %ld on the front of %s and %s%s%s\n",
               exploration.points.size(), exploration.points.size() == 1 ? "" : "s", seconds,
               static_cast<long>(front), std::string(ExploreColumns()[exploration.x].name).c_str(),
               std::string(ExploreColumns()[exploration.y].name).c_str(),
               request.page.empty() ? "" : "; page: ", request.page.c_str());
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string_view>& arguments) {
  LAZULI_ASSIGN_OR_RETURN(const Request request, ParseRequest(arguments));
  if (request.help || request.help_config) {
    std::string columns = "\nColumns of the table:\n";
    for (const ExploreColumn& column : ExploreColumns())
      columns +=
          Str("  ", column.name, std::string(12 - column.name.size(), ' '), column.meaning, "\n");
    std::fputs(request.help ? Str(kUsage, kNpuOptionsHelp, "\n", kSweepHelp, columns).c_str()
                            : npu::ConfigHelp().c_str(),
               stdout);
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(const npu::Config config, request.machine.Read());
  if (config.compat.scalesim && !request.workload.estimate)
    return InvalidArgument("compat.scalesim is a way to count layers: it goes with --estimate");
  LAZULI_ASSIGN_OR_RETURN(const auto points,
                          PointsOf(request.axes, static_cast<std::size_t>(request.most_points)));
  Exploration exploration;
  if (!request.objectives.empty())
    LAZULI_RETURN_IF_ERROR(SetObjectives(request.objectives, exploration));
  RegisterPlatforms();
  LAZULI_ASSIGN_OR_RETURN(const Workload workload, Workload::Load(request.file, request.workload));
  exploration.title = workload.text();
  exploration.machine = config.name;
  exploration.axes = request.axes;
  for (const SweepPoint& point : points)
    exploration.points.push_back({.point = point, .config = config});

  double seconds = 0;
  {
    Bar bar(points.size());
    std::atomic<std::size_t> next = 0;
    std::vector<std::thread> threads;
    const std::size_t jobs = std::min(static_cast<std::size_t>(request.jobs), points.size());
    for (std::size_t t = 0; t < jobs; ++t) {
      threads.emplace_back([&] {
        for (std::size_t i = next++; i < exploration.points.size(); i = next++) {
          MeasurePoint(workload, exploration.axes, exploration.points[i]);
          bar.Done(KeysOf(exploration.axes, exploration.points[i].point));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    seconds = bar.Seconds();
  }
  if (request.objectives.empty()) exploration.ChooseObjectives();
  exploration.FindFront();
  LAZULI_RETURN_IF_ERROR(Conclude(request, exploration, seconds));
  return WriteViews(request, exploration);
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("npu-explore", lazuli::tools::Run, argc, argv);
}
