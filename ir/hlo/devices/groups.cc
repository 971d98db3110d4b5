#include "ir/hlo/devices/groups.h"

#include <set>

#include "ir/hlo/text/cursor.h"
#include "ir/support/status.h"

namespace lazuli::hlo {
namespace {

// {...} of elements between commas.
template <class F>
bool ParseBraces(Cursor& in, F&& element) {
  if (!in.Expect('{')) return false;
  if (in.Try('}')) return true;
  do {
    if (!element()) return false;
  } while (in.Try(','));
  return in.Expect('}');
}

std::string Text(std::monostate) { return ""; }
std::string Text(const ListedGroups& listed) {
  std::string text;
  for (const Dims& group : listed.groups)
    text += Str(text.empty() ? "{" : ",{", Join(group, ","), "}");
  return Str("{", text, "}");
}
std::string Text(const CountedGroups& counted) {
  return Str("[", counted.groups, ",", counted.size, "]<=", ToString(counted.iota));
}
std::string Text(const MeshGroups& along) {
  std::string axes;
  for (const AxisPart& part : along.axes)
    axes += Str(axes.empty() ? "" : ",", ToString(part, along.mesh));
  return Str(ToString(along.mesh), " {", axes, "}");
}

bool ParseMembers(Cursor& in, ListedGroups* listed) {
  return ParseBraces(in, [&] {
    Dims& group = listed->groups.emplace_back();
    return ParseBraces(in, [&] { return in.Integer(&group.emplace_back()); });
  });
}
bool ParseMembers(Cursor& in, CountedGroups* counted) {
  return in.Expect('[') && in.Integer(&counted->groups) && in.Expect(',') &&
         in.Integer(&counted->size) && in.Expect(']') && in.Expect("<=") &&
         Parse(in, &counted->iota);
}
bool ParseMembers(Cursor& in, MeshGroups* along) {
  return Parse(in, &along->mesh) &&
         ParseBraces(in, [&] { return Parse(in, along->mesh, &along->axes.emplace_back()); });
}

absl::StatusOr<std::vector<Dims>> ListOf(std::monostate) { return std::vector<Dims>(); }
absl::StatusOr<std::vector<Dims>> ListOf(const ListedGroups& listed) { return listed.groups; }
absl::StatusOr<std::vector<Dims>> ListOf(const CountedGroups& counted) {
  LAZULI_ASSIGN_OR_RETURN(const Dims numbers, NumbersOf(counted.iota));
  const auto count = static_cast<int64_t>(numbers.size());
  if (counted.groups < 1 || counted.size < 1 || count / counted.groups != counted.size ||
      count % counted.groups != 0)
    return InvalidArgument("there are ", count, " numbers for ", counted.groups, " groups of ",
                           counted.size);
  std::vector<Dims> groups;
  for (auto at = numbers.begin(); at != numbers.end(); at += counted.size)
    groups.emplace_back(at, at + counted.size);
  return groups;
}
absl::StatusOr<std::vector<Dims>> ListOf(const MeshGroups& along) {
  return GroupsAlong(along.mesh, along.axes);
}

}  // namespace

std::string ToString(const ReplicaGroups& groups) {
  return std::visit([](const auto& form) { return Text(form); }, groups);
}

bool Parse(Cursor& in, ReplicaGroups* groups) {
  if (in.Peek() == '{') return ParseMembers(in, &groups->emplace<ListedGroups>());
  if (in.Peek() == '[') return ParseMembers(in, &groups->emplace<CountedGroups>());
  if (in.Peek() == 'm') return ParseMembers(in, &groups->emplace<MeshGroups>());
  return in.Fail("expected groups of devices: {{0,1},{2,3}}, [2,2]<=[4] or mesh['a'=4] {'a'}");
}

absl::StatusOr<std::vector<Dims>> Listed(const ReplicaGroups& groups) {
  const auto bad = [&](std::string_view why) {
    return InvalidArgument("replica_groups=", ToString(groups),
                           " are not groups of devices: ", why);
  };
  auto lists = std::visit([](const auto& form) { return ListOf(form); }, groups);
  if (!lists.ok()) return bad(Message(lists.status()));
  std::set<int64_t> seen;
  for (const Dims& group : *lists) {
    for (const int64_t id : group) {
      if (id < 0 || id > kMostDevices) return bad(Str("there is no device ", id));
      if (!seen.insert(id).second) return bad(Str(id, " is there twice"));
    }
  }
  return lists;
}

std::string ToString(const DevicePairs& pairs) {
  std::string text;
  for (const auto& [source, target] : pairs)
    text += Str(text.empty() ? "{" : ",{", source, ",", target, "}");
  return Str("{", text, "}");
}

bool Parse(Cursor& in, DevicePairs* pairs) {
  return ParseBraces(in, [&] {
    auto& [source, target] = pairs->emplace_back();
    return in.Expect('{') && in.Integer(&source) && in.Expect(',') && in.Integer(&target) &&
           in.Expect('}');
  });
}

}  // namespace lazuli::hlo
