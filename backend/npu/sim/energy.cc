#include "backend/npu/sim/energy.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "ir/support/str.h"

namespace lazuli::npu {
namespace {

constexpr std::array kTables = {
    EnergyTable{
        "horowitz45",
        "M. Horowitz, Computing's energy problem, ISSCC 2014, 45 nm, 0.9 V: multiplications 0.2 (8 "
        "bits), 1.1 (f16), 3.7 (f32), additions 0.1 (32 bits), 0.9 (f32); SRAM 10, 20 and 100, "
        "DRAM "
        "1300 to 2600 for 64 bits",
        0.2 + 0.1, 1.1 + 0.9, 3.7 + 0.9, 20.0 / 2, 0.9, 4 * (3.7 + 0.9), 10, 20, 100, 1950, 640},
    EnergyTable{
        "aladdin40",
        "Accelergy's table of Aladdin, 40 nm: multiplication 12.68 and addition 0.21 of 32 bits, "
        "register 0.009 a bit; multiplications scaled by the square of their bits (8, 8, 24); "
        "memories as in horowitz45",
        12.68 / 16 + 0.21, 12.68 / 16 + 0.21, 12.68 * 9 / 16 + 0.21, 32 * 0.009, 0.21,
        4 * (12.68 * 9 / 16 + 0.21), 10, 20, 100, 1950, 640},
};

double Between(double size, double size_a, double a, double size_b, double b) {
  const double t = std::log(size / size_a) / std::log(size_b / size_a);
  return a * std::pow(b / a, t);
}

std::string Rounded(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.4g", value);
  return buffer.data();
}

}  // namespace

const EnergyTable& EnergyTableOf(const Config& config) {
  return kTables.at(static_cast<std::size_t>(config.energy.table));
}

double SpmAccessEnergy(const Config& config) {
  const EnergyTable& table = EnergyTableOf(config);
  const double kb = static_cast<double>(config.spm.kb) / static_cast<double>(config.spm.banks);
  return kb < 32 ? Between(kb, 8, table.sram_8kb, 32, table.sram_32kb)
                 : Between(kb, 32, table.sram_32kb, 1024, table.sram_1mb);
}

Activity ActivityOf(const Counters& c) {
  Activity activity;
  activity.cycles = c.cycles;
  activity.macs_int8 = c.macs_int;
  activity.macs_bf16 = c.macs_bf16;
  activity.macs_f32 = c.macs_f32;
  activity.acc_words = c.acc_words;
  activity.spm_bytes = c.spm_read_bytes + c.spm_write_bytes;
  activity.dram_bytes = c.dram_burst_bytes;
  activity.alu_ops = c.alu_ops;
  activity.sfu_ops = c.sfu_ops;
  activity.link_bytes = c.link_bytes + c.host_bytes;
  return activity;
}

Energy EnergyOf(const Activity& activity, const Config& config) {
  constexpr double kPico = 1e-12;
  const EnergyTable& t = EnergyTableOf(config);
  const auto times = [](int64_t count, double picojoules) {
    return static_cast<double>(count) * picojoules * kPico;
  };
  const double seconds = static_cast<double>(activity.cycles) / (config.clock_mhz * 1e6);
  Energy energy{t.name, {}, 0};
  energy.parts = {
      {"macs", times(activity.macs_int8, t.mac_int8) + times(activity.macs_bf16, t.mac_bf16) +
                   times(activity.macs_f32, t.mac_f32)},
      {"accumulators", times(activity.acc_words, t.acc_word)},
      {"scratchpad", times(activity.spm_bytes, SpmAccessEnergy(config) / 8)},
      {"vectors", times(activity.alu_ops, t.alu) + times(activity.sfu_ops, t.sfu)},
      {"dram", times(activity.dram_bytes, t.dram / 8)},
      {"links", times(activity.link_bytes, t.link / 8)},
      {"leakage", config.energy.leakage_mw * 1e-3 * seconds},
  };
  for (const EnergyPart& part : energy.parts) energy.joules += part.joules;
  return energy;
}

std::string EnergyText(const Energy& energy) {
  std::string text = Str(Rounded(energy.joules * 1e6), " uJ (", energy.table, ")");
  std::string_view separator = ": ";
  for (const EnergyPart& part : energy.parts) {
    text += Str(separator, part.name, " ", Rounded(part.joules * 1e6));
    separator = ", ";
  }
  return text;
}

std::string EnergyPage() {
  std::string page = "| picojoules |";
  std::string line = "| --- |";
  for (const EnergyTable& table : kTables) {
    page += Str(" ", table.name, " |");
    line += " --- |";
  }
  page += Str("\n", line, "\n");
  const auto row = [&page](std::string_view what, double EnergyTable::* member) {
    page += Str("| ", what, " |");
    for (const EnergyTable& table : kTables) page += Str(" ", Rounded(table.*member), " |");
    page += "\n";
  };
  row("multiplication and addition, s8", &EnergyTable::mac_int8);
  row("the same, bf16", &EnergyTable::mac_bf16);
  row("the same, f32", &EnergyTable::mac_f32);
  row("a word of the accumulators", &EnergyTable::acc_word);
  row("a lane's operation", &EnergyTable::alu);
  row("the same, special function", &EnergyTable::sfu);
  row("8 bytes of SRAM, 8 KiB", &EnergyTable::sram_8kb);
  row("the same, 32 KiB", &EnergyTable::sram_32kb);
  row("the same, 1 MiB", &EnergyTable::sram_1mb);
  row("8 bytes of DRAM", &EnergyTable::dram);
  row("8 bytes over a link", &EnergyTable::link);
  page += "\n";
  for (const EnergyTable& table : kTables)
    page += Str("- `", table.name, "`: ", table.source, ".\n");
  return page;
}

}  // namespace lazuli::npu
