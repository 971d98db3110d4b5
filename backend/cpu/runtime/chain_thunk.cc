#include "backend/cpu/runtime/chain_thunk.h"

#include <algorithm>
#include <map>

#include "backend/cpu/runtime/parts.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

struct ChainSpec {
  int64_t parts = 1, threads = 1;
  std::vector<std::unique_ptr<Thunk>> members;
  LAZULI_ATTRS(parts, threads, members);
};

class ChainThunk final : public SpecThunk<ChainSpec> {
 public:
  ChainThunk(ThunkInfo info, std::vector<BufferUse> uses, ChainSpec spec)
      : SpecThunk(std::move(info), std::move(uses), std::move(spec)),
        workers_(WorkersFor(spec_.parts, spec_.threads)) {}

  absl::Status Execute(const RunBuffers& run) const override {
    const auto in_parts = [](const auto& member) { return member->RunsInParts(); };
    if (!std::all_of(spec_.members.begin(), spec_.members.end(), in_parts))
      return ExecuteWhole(run);
    for (const auto& member : spec_.members)
      LAZULI_RETURN_IF_ERROR(AtSite(member->Prepare(run), *member));
    return ForEachPart(spec_.parts, workers_, [&](Part part) -> absl::Status {
      for (const auto& member : spec_.members)
        LAZULI_RETURN_IF_ERROR(AtSite(member->ExecutePart(run, part), *member));
      return absl::OkStatus();
    });
  }
  std::string Details() const override {
    std::string text = Str(spec_.parts, " parts of");
    for (const auto& member : spec_.members) {
      text += Str("\n    - ", member->info().kind, " ", member->info().name);
      for (const BufferUse& use : member->uses()) {
        text += Str(use.write ? " >b" : " b", use.buffer);
      }
      text += Str(", ", member->Details());
    }
    return text;
  }
  absl::Span<const std::unique_ptr<Thunk>> members() const override { return spec_.members; }

 private:
  // One member after the other, while one of them cannot run in parts.
  absl::Status ExecuteWhole(const RunBuffers& run) const {
    for (const auto& member : spec_.members)
      LAZULI_RETURN_IF_ERROR(AtSite(member->Execute(run), *member));
    return absl::OkStatus();
  }
  static absl::Status AtSite(const absl::Status& status, const Thunk& member) {
    return WithSite(status, member.info());
  }

  int64_t workers_;
};

// A buffer is one use, written if any member writes it; the members know what is in place.
std::vector<BufferUse> UsesOf(absl::Span<const std::unique_ptr<Thunk>> members) {
  std::map<BufferId, bool> written;
  for (const auto& member : members) {
    for (const BufferUse& use : member->uses()) written[use.buffer] |= use.write;
  }
  std::vector<BufferUse> uses;
  for (const auto& [buffer, write] : written) uses.push_back({.buffer = buffer, .write = write});
  return uses;
}

}  // namespace

std::unique_ptr<Thunk> MakeChainThunk(std::vector<std::unique_ptr<Thunk>> members, int64_t parts,
                                      int64_t threads) {
  ThunkInfo info = members.front()->info();
  info.kind = "chain";
  for (std::size_t m = 1; m < members.size(); ++m) {
    info.name += "+" + members[m]->info().name;
    info.flops += members[m]->info().flops;
    info.bytes += members[m]->info().bytes;
  }
  std::vector<BufferUse> uses = UsesOf(members);
  return std::make_unique<ChainThunk>(
      std::move(info), std::move(uses),
      ChainSpec{.parts = parts, .threads = threads, .members = std::move(members)});
}

ThunkKind ChainThunkKind() { return ThunkKind::Of<ChainThunk>("chain"); }

}  // namespace lazuli::cpu
