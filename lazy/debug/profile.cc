#include "lazy/debug/profile.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include <unistd.h>
#include <zlib.h>

#include "ir/support/check.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "ir/support/text_file.h"
#include "ir/support/trace_json.h"
#include "lazy/debug/machine_peak.h"
#include "lazy/graphs/profile_page.h"

namespace lazuli::lazy {
namespace {

using ir::SpanKind;
using ir::SpanLabel;
using ir::SpanPlace;
using ir::SpanRecord;

constexpr int kHostProcess = 1000;  // behind the devices of a simulator

SpanPlace PlaceOf(const SpanLabel& label) { return ir::RowOf(label.kind).place; }

int64_t& TimeIn(ProfileRow& row, SpanPlace place) {
  switch (place) {
    case SpanPlace::kDevice:
      return row.device_ns;
    case SpanPlace::kCompile:
      return row.compile_ns;
    case SpanPlace::kWait:
      return row.wait_ns;
    default:
      return row.host_ns;
  }
}

int64_t Cost(const ProfileRow& row) { return row.device_ns + row.compile_ns + row.host_ns; }

bool IsStep(const SpanLabel& label) {
  return label.kind == SpanKind::kThunk || label.kind == SpanKind::kLaunch;
}

bool Takes(ProfileBy by, const SpanLabel& label) {
  switch (by) {
    case ProfileBy::kOp:
    case ProfileBy::kScope:
    case ProfileBy::kThunk:
      return IsStep(label);
    case ProfileBy::kPass:
      return label.kind == SpanKind::kPass || label.kind == SpanKind::kCode;
    default:
      return PlaceOf(label) != SpanPlace::kBeside;
  }
}

bool Counts(ProfileBy by, const SpanLabel& label) {
  return by != ProfileBy::kLine || IsStep(label);
}

// The scope of "net/conv1/aten__convolution" is "net/conv1".
std::string ScopeOf(const SpanLabel& label) {
  const std::size_t slash = label.scope.rfind('/');
  return slash == std::string::npos ? "" : label.scope.substr(0, slash);
}

double OfPeak(const ProfileRow& row, const MachinePeak& peak) {
  if (row.device_ns == 0) return 0;
  const auto ns = static_cast<double>(row.device_ns);
  const double computed = peak.gflops > 0 ? row.flops / ns / peak.gflops : 0;
  const double moved = peak.gbs > 0 ? row.bytes / ns / peak.gbs : 0;
  return std::max(computed, moved);
}

std::string Milliseconds(int64_t ns) {
  return absl::StrFormat("%.3f", static_cast<double>(ns) / 1e6);
}

absl::StatusOr<std::string> Gzip(std::string_view text) {
  constexpr int kGzip = 16 + MAX_WBITS;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return ResourceExhausted("no memory to compress a profile");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return Internal("a profile could not be compressed");
  return packed;
}

// Where TensorBoard's profile page looks for a run: "plugins/profile/2026_11_24_00_10_59/".
std::string TensorBoardFile(const std::string& folder) {
  std::array<char, 64> when, host;
  const std::time_t now = std::time(nullptr);
  std::tm local;
  std::strftime(when.data(), when.size(), "%Y_%m_%d_%H_%M_%S", localtime_r(&now, &local));
  if (gethostname(host.data(), host.size()) != 0) host[0] = '\0';
  host.back() = '\0';
  return Str(folder, "plugins/profile/", when.data(), "/", host[0] == '\0' ? "host" : host.data(),
             ".trace.json.gz");
}

}  // namespace

std::string_view WordOf(ProfileBy by) {
  constexpr std::array<std::string_view, kProfileWords> kWords = {"line",  "op",   "scope",
                                                                  "thunk", "pass", "stage"};
  return kWords[static_cast<std::size_t>(by)];
}

Profile::Profile(ir::TakenSpans taken) : taken_(std::move(taken)) {
  const std::vector<SpanRecord>& all = taken_.spans;
  self_ns_.resize(all.size());
  sources_.resize(all.size());
  std::map<uint32_t, std::vector<std::size_t>> open;  // by thread: the spans that enclose the next
  for (std::size_t i = 0; i < all.size(); ++i) {
    const SpanRecord& span = all[i];
    self_ns_[i] = span.duration_ns;
    sources_[i] = span.label->source;
    if (PlaceOf(*span.label) == SpanPlace::kBeside) continue;
    std::vector<std::size_t>& around = open[span.thread];
    const auto end = [&](std::size_t s) { return all[s].start_ns + all[s].duration_ns; };
    while (!around.empty() && end(around.back()) <= span.start_ns) around.pop_back();
    if (!around.empty()) {
      const std::size_t outer = around.back();
      self_ns_[outer] -= std::min(end(i), end(outer)) - span.start_ns;
      if (sources_[i].empty()) sources_[i] = sources_[outer];
    }
    around.push_back(i);
  }
}

std::string Profile::NameOfRow(ProfileBy by, std::size_t span) const {
  const SpanLabel& label = *taken_.spans[span].label;
  switch (by) {
    case ProfileBy::kLine:
      return std::string(sources_[span]);
    case ProfileBy::kOp:
      return label.op;
    case ProfileBy::kScope:
      return ScopeOf(label);
    case ProfileBy::kThunk:
      return label.detail.empty() ? label.name : Str(label.detail, " ", label.name);
    case ProfileBy::kPass:
      return Str(ir::RowOf(label.kind).name, " ", label.name);
    case ProfileBy::kStage:
      return std::string(ir::RowOf(label.kind).name);
  }
  return "";
}

std::vector<ProfileRow> Profile::Rows(ProfileBy by) const {
  std::map<std::string, ProfileRow> rows;
  std::map<std::string, std::set<std::string>> what;
  for (std::size_t i = 0; i < taken_.spans.size(); ++i) {
    const SpanLabel& label = *taken_.spans[i].label;
    if (!Takes(by, label)) continue;
    const std::string name = NameOfRow(by, i);
    ProfileRow& row = rows[name];
    row.count += Counts(by, label) ? 1 : 0;
    TimeIn(row, PlaceOf(label)) += self_ns_[i];
    row.flops += label.flops;
    row.bytes += label.bytes;
    const std::string& other = by == ProfileBy::kLine ? label.op : label.source;
    if (!other.empty() && by != ProfileBy::kStage) what[name].insert(other);
  }
  const MachinePeak peak =
      by == ProfileBy::kPass || rows.empty() ? MachinePeak() : GetMachinePeak();
  std::vector<ProfileRow> result;
  for (auto& [name, row] : rows) {
    row.name = name.empty() ? Str("(no ", WordOf(by), ")") : name;
    row.of_peak = OfPeak(row, peak);
    row.what = Join(what[name], ", ");
    result.push_back(std::move(row));
  }
  std::stable_sort(result.begin(), result.end(), [](const ProfileRow& a, const ProfileRow& b) {
    return Cost(a) != Cost(b) ? Cost(a) > Cost(b) : a.wait_ns > b.wait_ns;
  });
  return result;
}

std::string Profile::Table(ProfileBy by, int64_t rows) const {
  const std::vector<ProfileRow> all = Rows(by);
  ProfileRow sum;
  for (const ProfileRow& row : all) {
    sum.device_ns += row.device_ns;
    sum.compile_ns += row.compile_ns;
    sum.host_ns += row.host_ns;
    sum.wait_ns += row.wait_ns;
  }
  const auto runs = std::count_if(spans().begin(), spans().end(), [](const SpanRecord& span) {
    return span.label->kind == SpanKind::kRun;
  });
  std::string text =
      Str("profile: ", runs, " runs; milliseconds: devices ", Milliseconds(sum.device_ns),
          ", compiling ", Milliseconds(sum.compile_ns), ", host ", Milliseconds(sum.host_ns),
          ", waiting ", Milliseconds(sum.wait_ns), "\n");
  for (const ir::SpanTrack& track : tracks()) {
    if (track.lost > 0)
      text += Str("  the first ", track.lost, " spans of ", track.Title(),
                  " are lost; LAZULI_PROFILE_SPANS keeps more\n");
  }
  text += absl::StrFormat("%10s %5s %8s %10s %9s %9s %9s %8s %8s  %s\n", "device", "%", "count",
                          "compile", "host", "wait", "Gflop/s", "GB/s", "of peak", WordOf(by));
  for (std::size_t i = 0; i < all.size() && static_cast<int64_t>(i) < rows; ++i) {
    const ProfileRow& row = all[i];
    const double ns = std::max<double>(1, static_cast<double>(row.device_ns));
    const double share = sum.device_ns == 0 ? 0
                                            : 100.0 * static_cast<double>(row.device_ns) /
                                                  static_cast<double>(sum.device_ns);
    text += absl::StrFormat(
        "%10s %5.1f %8d %10s %9s %9s %9.2f %8.2f %6.1f %%  %s%s\n", Milliseconds(row.device_ns),
        share, row.count, Milliseconds(row.compile_ns), Milliseconds(row.host_ns),
        Milliseconds(row.wait_ns), row.flops / ns, row.bytes / ns, 100 * row.of_peak, row.name,
        row.what.empty() ? "" : Str("  ", row.what));
  }
  if (static_cast<int64_t>(all.size()) > rows)
    text += Str("  and ", static_cast<int64_t>(all.size()) - rows, " more rows\n");
  return text;
}

std::string Profile::Trace() const {
  ir::TraceJson json;
  ir::AppendSpans(taken_, kHostProcess, json);
  return std::move(json).Finish();
}

absl::Status Profile::Save(const std::string& path) const {
  if (path.ends_with(".html")) return ir::WriteTextFile(path, ProfilePage(path, Trace()));
  if (!path.ends_with('/')) return ir::WriteTextFile(path, Trace());
  LAZULI_ASSIGN_OR_RETURN(const std::string packed, Gzip(Trace()));
  return ir::WriteTextFile(TensorBoardFile(path), packed);
}

}  // namespace lazuli::lazy
