// npu-run: runs a program on the simulated NPU.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "backend/npu/sim/energy.h"
#include "backend/npu/sim/machine.h"
#include "backend/npu/sim/trace.h"
#include "ir/support/json.h"
#include "ir/support/status.h"
#include "ir/support/text_file.h"
#include "tools/npu/program.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using ir::Str;

constexpr std::string_view kUsage = R"(usage: npu-run FILE [options]
Runs a program of the simulated NPU: a .npux file, or assembly if its name ends in .s. Prints its cycles.

  --inputs=IN.npz         the program's inputs by name; x@2 is for device 2 alone
  --seed=N                draw the inputs that no file has
  --output=OUT.npz        write its outputs; of several devices as x@0, x@1, ...
  --report[=json]         also what each unit did, and the energy
  --trace=FILE.json       a picture of the run for ui.perfetto.dev
  --trace-slices=N        keep so many slices of it (1000000)
  --functional            no cycles: all work takes no time, the results are the same
  --jitter=N              units take longer by delays drawn from N; the results are the same
  --lose-put=N            the N-th message between devices (from 0) is lost
  --damage-dram=OFFSET    64 bytes of DRAM there cannot be read
)";

struct RunRequest {
  std::string file, output, trace;
  NpuOptions machine;
  InputSource inputs;
  npu::RunOptions options;
  int64_t trace_slices = 1000000;
  bool report = false, json = false, help = false, help_config = false;
};

absl::StatusOr<RunRequest> ParseRun(const std::vector<std::string_view>& arguments) {
  RunRequest request;
  std::string value;
  for (const std::string_view argument : arguments) {
    if (request.machine.Take(argument) || TakeValue(argument, "--inputs", &request.inputs.npz) ||
        TakeValue(argument, "--output", &request.output) ||
        TakeValue(argument, "--trace", &request.trace))
      continue;
    if (TakeValue(argument, "--seed", &value)) {
      LAZULI_ASSIGN_OR_RETURN(const int64_t seed, ParseInteger("--seed", value));
      request.inputs.seed = static_cast<uint64_t>(seed);
    } else if (TakeValue(argument, "--jitter", &value)) {
      LAZULI_ASSIGN_OR_RETURN(const int64_t seed, ParseInteger("--jitter", value));
      request.options.jitter = static_cast<uint64_t>(seed);
    } else if (TakeValue(argument, "--trace-slices", &value)) {
      LAZULI_ASSIGN_OR_RETURN(request.trace_slices, ParseInteger("--trace-slices", value));
      if (request.trace_slices < 1)
        return ir::InvalidArgument("--trace-slices=", value, ": at least 1");
    } else if (TakeValue(argument, "--lose-put", &value)) {
      LAZULI_ASSIGN_OR_RETURN(request.options.lose_put, ParseInteger("--lose-put", value));
    } else if (TakeValue(argument, "--damage-dram", &value)) {
      LAZULI_ASSIGN_OR_RETURN(request.options.damaged_dram, ParseInteger("--damage-dram", value));
    } else if (argument == "--functional") {
      request.options.timing = false;
    } else if (argument == "--report") {
      request.report = true;
    } else if (argument == "--report=json") {
      request.json = true;
    } else if (argument == "--help") {
      request.help = true;
    } else if (argument == "--help-config") {
      request.help_config = true;
    } else if (argument.starts_with('-') || !request.file.empty()) {
      return ir::InvalidArgument("unexpected ", argument, "; see --help");
    } else {
      request.file = argument;
    }
  }
  if (request.file.empty() && !request.help && !request.help_config)
    return ir::InvalidArgument("no file; see --help");
  return request;
}

// 1234567 as 1,234,567.
std::string Grouped(int64_t number) {
  const std::string digits = Str(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

struct Row {
  std::string_view name;
  int64_t value;
};
std::vector<Row> RowsOf(const npu::Counters& c) {
  return {{"instructions", c.instructions},
          {"macs_int", c.macs_int},
          {"macs_bf16", c.macs_bf16},
          {"macs_f32", c.macs_f32},
          {"acc_words", c.acc_words},
          {"alu_ops", c.alu_ops},
          {"sfu_ops", c.sfu_ops},
          {"spm_read_bytes", c.spm_read_bytes},
          {"spm_write_bytes", c.spm_write_bytes},
          {"bank_cycles", c.bank_cycles},
          {"dram_read_bytes", c.dram_read_bytes},
          {"dram_write_bytes", c.dram_write_bytes},
          {"dram_burst_bytes", c.dram_burst_bytes},
          {"link_bytes", c.link_bytes},
          {"host_bytes", c.host_bytes}};
}

void PrintReport(const npu::Machine& machine) {
  const npu::Config& config = machine.config();
  for (int d = 0; d < config.devices; ++d) {
    const npu::Counters& c = machine.counters(d);
    std::string text = Str("device ", d, "\n");
    auto line = [&text](std::string_view name, const std::string& value) {
      text +=
          Str("  ", name, std::string(name.size() < 18 ? 18 - name.size() : 1, ' '), value, "\n");
    };
    for (const Row& row : RowsOf(c)) {
      if (row.value != 0) line(row.name, Grouped(row.value));
    }
    const int64_t macs = c.macs_int + c.macs_bf16 + c.macs_f32;
    const double slots = static_cast<double>(c.cycles) *
                         static_cast<double>(config.mxu.rows * config.mxu.cols * config.cores);
    char percent[32];
    if (macs != 0 && slots > 0) {
      std::snprintf(percent, sizeof percent, "%.1f %%", 100 * static_cast<double>(macs) / slots);
      line("mxu utilisation", percent);
    }
    line("energy", npu::EnergyText(npu::EnergyOf(npu::ActivityOf(c), config)));
    for (int track = 0; track < npu::kTracks; ++track) {
      const int64_t busy = c.busy[static_cast<std::size_t>(track)];
      if (busy == 0) continue;
      std::snprintf(percent, sizeof percent, " (%.1f %%)",
                    100 * static_cast<double>(busy) / static_cast<double>(c.cycles * config.cores));
      line(Str("busy ", npu::TrackName(track)), Grouped(busy) + percent);
    }
    std::fputs(text.c_str(), stdout);
  }
}

void PrintJson(const npu::Machine& machine) {
  std::string text = Str("{\"cycles\": ", machine.cycles(), ", \"config\": ");
  ir::AppendJsonString(text, machine.config().name);
  text += ", \"devices\": [";
  for (int d = 0; d < machine.config().devices; ++d) {
    text += d == 0 ? "{" : ", {";
    for (const Row& row : RowsOf(machine.counters(d)))
      text += Str("\"", row.name, "\": ", row.value, ", ");
    text += "\"busy\": {";
    bool first = true;
    for (int track = 0; track < npu::kTracks; ++track) {
      const int64_t busy = machine.counters(d).busy[static_cast<std::size_t>(track)];
      if (busy == 0) continue;
      text += Str(first ? "" : ", ", "\"", npu::TrackName(track), "\": ", busy);
      first = false;
    }
    text += "}, \"energy\": ";
    const npu::Energy energy =
        npu::EnergyOf(npu::ActivityOf(machine.counters(d)), machine.config());
    text += Str("{\"table\": \"", energy.table, "\", \"joules\": ", energy.joules);
    for (const npu::EnergyPart& part : energy.parts)
      text += Str(", \"", part.name, "\": ", part.joules);
    text += "}}";
  }
  std::fputs((text + "]}\n").c_str(), stdout);
}

absl::Status Run(const std::vector<std::string_view>& arguments) {
  LAZULI_ASSIGN_OR_RETURN(const RunRequest request, ParseRun(arguments));
  if (request.help || request.help_config) {
    std::fputs(request.help ? Str(kUsage, kNpuOptionsHelp).c_str() : npu::ConfigHelp().c_str(),
               stdout);
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(const npu::Program program, LoadProgram(request.file));
  LAZULI_ASSIGN_OR_RETURN(const npu::Config config, ConfigFor(program, request.machine));
  LAZULI_ASSIGN_OR_RETURN(const auto machine, npu::Machine::Create(config));
  if (const auto fault = machine->Load(program)) return npu::ToStatus(*fault);
  LAZULI_RETURN_IF_ERROR(WriteInputs(*machine, request.inputs));
  npu::Trace trace(machine->program(), machine->config(),
                   static_cast<std::size_t>(request.trace_slices));
  npu::RunOptions options = request.options;
  if (!request.trace.empty()) options.observer = &trace;
  // Of a run that fails, too: what led to it.
  const auto fault = machine->Run(options);
  if (!request.trace.empty())
    LAZULI_RETURN_IF_ERROR(ir::WriteTextFile(request.trace, trace.Json()));
  if (trace.dropped() > 0)
    std::fprintf(
        stderr, "npu-run: %s has the first %zu of %zu slices; --trace-slices=N keeps more\n",
        request.trace.c_str(), trace.slices().size(), trace.slices().size() + trace.dropped());
  if (fault) return npu::ToStatus(*fault);
  if (!request.output.empty()) LAZULI_RETURN_IF_ERROR(WriteOutputs(*machine, request.output));
  if (request.json) {
    PrintJson(*machine);
    return absl::OkStatus();
  }
  if (request.options.timing) {
    char time[64];
    std::snprintf(time, sizeof time, "%.3f us at %g MHz",
                  static_cast<double>(machine->cycles()) / config.clock_mhz, config.clock_mhz);
    std::fputs(Str(Grouped(machine->cycles()), " cycles, ", time, "\n").c_str(), stdout);
  }
  if (request.report) PrintReport(*machine);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("npu-run", lazuli::tools::Run, argc, argv);
}
