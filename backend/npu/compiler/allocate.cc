#include "backend/npu/compiler/allocate.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "backend/npu/sim/cost.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

struct Life {
  int first = -1, last = -1;
};

template <class F>
void ForEachBuffer(const TileOp& op, F f) {
  for (const Place* place :
       {&op.to, &op.from[0], &op.from[1], &op.from[2], &op.table, &op.updates, &op.remote}) {
    if (place->space == Space::kSpm || place->space == Space::kAcc) f(place->object);
  }
}

std::vector<Life> Lives(const TileProgram& program) {
  std::vector<Life> lives(program.buffers.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    ForEachBuffer(program.ops[i], [&](int object) {
      Life& life = lives[static_cast<std::size_t>(object)];
      if (life.first < 0) life.first = static_cast<int>(i);
      life.last = static_cast<int>(i);
    });
  }
  return lives;
}

// Room of one memory: what is taken, by address.
class Room {
 public:
  Room(int64_t size, int64_t unit) : size_(size), unit_(unit) {}

  // The address, or -1.
  int64_t Take(int64_t size) {
    size = CeilDiv(size, unit_) * unit_;
    int64_t at = Search(cursor_, size);
    if (at < 0) at = Search(0, size);
    if (at < 0) return -1;
    taken_[at] = size;
    cursor_ = at + size;
    used_ += size;
    most_ = std::max(most_, used_);
    return at;
  }
  void Give(int64_t address) {
    const auto at = taken_.find(address);
    used_ -= at->second;
    taken_.erase(at);
  }
  int64_t most() const { return most_; }

 private:
  int64_t Search(int64_t from, int64_t size) const {
    auto next = taken_.lower_bound(from);
    if (next != taken_.begin()) {
      const auto before = std::prev(next);
      from = std::max(from, before->first + before->second);
    }
    while (next != taken_.end() && next->first < from + size) {
      from = next->first + next->second;
      ++next;
    }
    return from + size <= size_ ? from : -1;
  }

  std::map<int64_t, int64_t> taken_;
  int64_t size_, unit_, cursor_ = 0, used_ = 0, most_ = 0;
};

// What lives at operation `at`, the largest first: since when, until when, how much.
std::string Chart(const TileProgram& program, const std::vector<Life>& lives, int at, Space space) {
  std::vector<std::size_t> living;
  for (std::size_t b = 0; b < lives.size(); ++b) {
    if (program.buffers[b].space == space && lives[b].first <= at && at <= lives[b].last)
      living.push_back(b);
  }
  std::sort(living.begin(), living.end(), [&](std::size_t a, std::size_t b) {
    return program.buffers[a].size > program.buffers[b].size;
  });
  std::string chart;
  for (std::size_t b : living)
    chart += Str("\n  ", program.buffers[b].name, b, ": ", program.buffers[b].size,
                 space == Space::kAcc ? " rows" : " bytes", ", operations ", lives[b].first, " to ",
                 lives[b].last);
  return chart;
}

}  // namespace

absl::Status Allocate(const Config& config, TileProgram& program, Occupancy* occupancy,
                      Shortage* shortage) {
  const std::vector<Life> lives = Lives(program);
  // A bank's word is the unit: buffers share none.
  Room spm(config.spm_bytes(), std::max<int64_t>(64, config.spm.bank_bytes)),
      acc(config.acc.rows, 1);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const int now = static_cast<int>(i);
    absl::Status status;
    ForEachBuffer(program.ops[i], [&](int object) {
      TileBuffer& buffer = program.buffers[static_cast<std::size_t>(object)];
      if (buffer.address >= 0 || !status.ok()) return;
      buffer.address = (buffer.space == Space::kSpm ? spm : acc).Take(buffer.size);
      if (buffer.address >= 0) return;
      const bool is_acc = buffer.space == Space::kAcc;
      if (shortage != nullptr) *shortage = {buffer.space, now, buffer.size};
      status = ResourceExhausted(is_acc ? "ACC_OVERFLOW: " : "SPM_OVERFLOW: ", "no room for ",
                                 buffer.size, is_acc ? " rows of " : " bytes of ", buffer.name,
                                 object, " at operation ", now,
                                 "; what lives there:", Chart(program, lives, now, buffer.space));
    });
    LAZULI_RETURN_IF_ERROR(status);
    std::vector<int> ended;  // each once, whatever the operation names it for
    ForEachBuffer(program.ops[i], [&](int object) {
      if (lives[static_cast<std::size_t>(object)].last == now) ended.push_back(object);
    });
    std::sort(ended.begin(), ended.end());
    ended.erase(std::unique(ended.begin(), ended.end()), ended.end());
    for (int object : ended) {
      const TileBuffer& buffer = program.buffers[static_cast<std::size_t>(object)];
      (buffer.space == Space::kSpm ? spm : acc).Give(buffer.address);
    }
  }
  if (occupancy != nullptr) *occupancy = {spm.most(), acc.most()};
  return absl::OkStatus();
}

}  // namespace lazuli::npu
