#include "backend/runtime/buffer_report.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

#include "ir/support/bytes_text.h"
#include "ir/support/str.h"
#include "ir/types/leaves.h"

namespace lazuli::backend {
namespace {

using Kind = BufferSlot::Kind;

struct ReportedValue {
  BufferId buffer = 0;
  std::string name;   // "fusion.3{1}"
  std::string shape;  // "f32[16,16]", or empty: scratch of a kernel
  int64_t bytes = 0, offset = 0;
};
struct Allocation {
  int64_t bytes = 0;
  std::string what;  // "parameter 0, shape |f32[]| at ShapeIndex {}"
  std::vector<ReportedValue> values;
};

std::string WithoutLayout(const Shape& shape) {
  return Str(ir::Row(shape.dtype()).text, "[", Join(shape.dims(), ","), "]");
}

// Who writes each buffer first: an instruction, and which of its arrays.
class Writers {
 public:
  explicit Writers(const ThunkProgram& program) : program_(program) {
    for (const auto& computation : program.module->computations()) {
      for (const auto& i : computation->instructions()) instructions_.emplace(i->name(), i.get());
    }
    for (const KeptPacking& packing : program.packings) Add(*packing.thunk);
    for (const auto& sequence : program.sequences) {
      for (const auto& thunk : sequence->thunks) Add(*thunk);
    }
    for (std::size_t p = 0, leaf = 0; p < program.module->entry()->parameters().size(); ++p) {
      const hlo::Instruction& parameter = *program.module->entry()->parameters()[p];
      for (const Shape& shape : LeavesOf(parameter.shape()))
        values_[program.entry().parameters[leaf++]] = {Str(parameter.name(), "{}"),
                                                       shape.ToString()};
    }
  }

  ReportedValue ValueOf(BufferId buffer, int64_t offset = 0) const {
    ReportedValue value{buffer, {}, {}, program_.slot(buffer).bytes, offset};
    const auto known = values_.find(buffer);
    if (known != values_.end()) std::tie(value.name, value.shape) = known->second;
    return value;
  }

 private:
  void Add(const Thunk& thunk) {
    for (const auto& member : thunk.members()) Add(*member);
    const auto found = instructions_.find(thunk.info().name);
    const std::vector<Shape> leaves =
        found == instructions_.end() ? std::vector<Shape>() : LeavesOf(found->second->shape());
    std::size_t written = 0;
    for (const BufferUse& use : thunk.uses()) {
      if (!use.write) continue;
      const std::size_t leaf = written++;
      const bool is_leaf =
          leaf < leaves.size() && leaves[leaf].byte_size() == program_.slot(use.buffer).bytes;
      const std::string index = leaves.size() > 1 ? Str(leaf) : "";
      values_.try_emplace(use.buffer, Str(thunk.info().name, "{", index, "}"),
                          is_leaf ? leaves[leaf].ToString() : "");
    }
  }

  const ThunkProgram& program_;
  std::unordered_map<std::string, const hlo::Instruction*> instructions_;
  std::unordered_map<BufferId, std::pair<std::string, std::string>> values_;
};

std::string SlotText(const ThunkProgram& program, const BufferSlot& slot) {
  const auto index = static_cast<std::size_t>(slot.index);
  if (slot.kind == Kind::kConstant) return "constant";
  if (slot.kind == Kind::kKept) return Str("kept from run to run, packed weights ", slot.index);
  if (slot.kind == Kind::kParameter)
    return Str("parameter ", slot.index, ", shape |", WithoutLayout(program.parameters[index]),
               "| at ShapeIndex {}");
  const ProgramOutput& output = program.entry().outputs[index];
  return Str("output shape is |", WithoutLayout(output.shape), "|, ",
             output.donor >= 0 ? Str("may take parameter ", output.donor, ", ") : "",
             "maybe-live-out");
}

// Those of the entry; the frames of loops and branches are values of its scratch.
std::vector<Allocation> AllocationsOf(const ThunkProgram& program) {
  const Writers writers(program);
  std::vector<Allocation> allocations;
  for (std::size_t b = 0; b < program.slots.size(); ++b) {
    const BufferSlot& slot = program.slots[b];
    const bool own = slot.kind == Kind::kConstant || slot.kind == Kind::kKept ||
                     (slot.sequence == 0 && slot.kind != Kind::kTemporary);
    if (!own) continue;
    allocations.push_back(
        {slot.bytes, SlotText(program, slot), {writers.ValueOf(static_cast<BufferId>(b))}});
    for (const OutputBuffer& temporary : program.entry().in_outputs) {
      if (temporary.output == static_cast<BufferId>(b))
        allocations.back().values.push_back(writers.ValueOf(temporary.buffer));
    }
  }
  Allocation scratch{program.entry().frame_bytes, "preallocated-temp", {}};
  for (const FrameBuffer& temporary : program.entry().temporaries)
    scratch.values.push_back(writers.ValueOf(temporary.buffer, temporary.offset));
  if (scratch.bytes > 0) allocations.push_back(std::move(scratch));
  return allocations;
}

std::string AllocationText(const Allocation& allocation, std::size_t number, bool values) {
  std::string text =
      Str("allocation ", number, ": size ", allocation.bytes, ", ", allocation.what, ":\n");
  for (const ReportedValue& value : allocation.values) {
    if (!values) break;
    text += Str(" value: <", value.buffer, " ", value.name, " @0> (size=", value.bytes,
                ",offset=", value.offset, ")", value.shape.empty() ? "" : ": ", value.shape, "\n");
  }
  return text;
}

int64_t TotalBytes(const std::vector<Allocation>& allocations) {
  int64_t total = 0;
  for (const Allocation& allocation : allocations) total += allocation.bytes;
  return total;
}

}  // namespace

std::string BufferAssignmentText(const ThunkProgram& program) {
  const std::vector<Allocation> allocations = AllocationsOf(program);
  std::string text = "BufferAssignment:\n";
  for (std::size_t a = 0; a < allocations.size(); ++a)
    text += AllocationText(allocations[a], a, /*values=*/true);
  const int64_t total = TotalBytes(allocations);
  return Str(text, "\nTotal bytes used: ", total, " (", ir::BytesText(total), ")\n");
}

std::string MemoryUsageText(const ThunkProgram& program) {
  const std::vector<Allocation> allocations = AllocationsOf(program);
  std::vector<std::size_t> order(allocations.size());
  for (std::size_t a = 0; a < order.size(); ++a) order[a] = a;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return allocations[a].bytes > allocations[b].bytes;
  });
  const int64_t total = TotalBytes(allocations);
  std::string text = Str("Total bytes used: ", total, " (", ir::BytesText(total),
                         ")\n\nAllocations sorted by size:\n\n"
                         "cumulative_size; total_size - cumulative_size; allocation\n",
                         std::string(78, '-'), "\n");
  int64_t sum = 0;
  for (const std::size_t a : order) {
    sum += allocations[a].bytes;
    const double percent =
        total == 0 ? 100 : 100.0 * static_cast<double>(sum) / static_cast<double>(total);
    text += absl::StrFormat("%10s(%3.0f%%); %10s; %s", ir::BytesText(sum), percent,
                            ir::BytesText(total - sum),
                            AllocationText(allocations[a], a, /*values=*/false));
  }
  text += "\n\nAllocations sorted by size with their values:\n\n";
  for (const std::size_t a : order) text += AllocationText(allocations[a], a, /*values=*/true);
  return text;
}

}  // namespace lazuli::backend
