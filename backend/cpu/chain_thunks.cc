#include "backend/cpu/chain_thunks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backend/cpu/runtime/chain_thunk.h"

namespace lazuli::cpu {
namespace {

// What one part of a long chain touches no longer fits the cache, and all of it stays alive.
constexpr std::size_t kMaxMembers = 8;

// How two thunks share memory.
enum class Sharing { kNone, kByPart, kWhole };

Sharing SharingOf(const Thunk& a, const Thunk& b) {
  Sharing sharing = Sharing::kNone;
  for (const BufferUse& x : a.uses()) {
    for (const BufferUse& y : b.uses()) {
      if (x.buffer != y.buffer || (!x.write && !y.write)) continue;
      if (!x.by_part || !y.by_part) return Sharing::kWhole;
      sharing = Sharing::kByPart;
    }
  }
  return sharing;
}

class Chainer {
 public:
  Chainer(ThunkSequence& sequence, int threads) : thunks_(sequence.thunks), threads_(threads) {}

  void Run() {
    std::vector<std::unique_ptr<Thunk>> result;
    for (std::size_t next = 0; next < thunks_.size();) {
      const auto [begin, end] = FindChain(next);
      std::move(At(next), At(begin), std::back_inserter(result));
      if (begin < end) {
        const int64_t parts = PartsOf(begin, end);
        std::vector<std::unique_ptr<Thunk>> members(std::make_move_iterator(At(begin)),
                                                    std::make_move_iterator(At(end)));
        result.push_back(MakeChainThunk(std::move(members), parts, threads_));
      }
      next = end;
    }
    thunks_ = std::move(result);
  }

 private:
  std::vector<std::unique_ptr<Thunk>>::iterator At(std::size_t t) {
    return thunks_.begin() + static_cast<std::ptrdiff_t>(t);
  }
  int64_t PartsOf(std::size_t begin, std::size_t end) const {
    int64_t parts = 0;
    for (std::size_t t = begin; t < end; ++t) parts = std::max(parts, thunks_[t]->own_parts());
    return parts;
  }

  // Whether thunk t may join [begin, end), and one of those hands it something.
  bool MayJoin(std::size_t t, std::size_t begin, std::size_t end, int64_t parts) const {
    if (end - begin >= kMaxMembers || !thunks_[t]->CanSplit(parts)) return false;
    bool joined = false;
    for (std::size_t member = begin; member < end; ++member) {
      const Sharing sharing = SharingOf(*thunks_[member], *thunks_[t]);
      if (sharing == Sharing::kWhole) return false;
      joined |= sharing == Sharing::kByPart;
    }
    return joined;
  }

  // The first chain of two thunks or more from `from` on; an empty one at the end if there is none.
  std::pair<std::size_t, std::size_t> FindChain(std::size_t from) const {
    for (std::size_t t = from; t < thunks_.size(); ++t) {
      const int64_t parts = thunks_[t]->own_parts();
      if (parts == 0) continue;
      std::size_t begin = t, end = t + 1;
      while (end < thunks_.size() && MayJoin(end, begin, end, parts)) ++end;
      while (begin > from && MayJoin(begin - 1, begin, end, parts)) --begin;
      if (end - begin > 1) return {begin, end};
    }
    return {thunks_.size(), thunks_.size()};
  }

  std::vector<std::unique_ptr<Thunk>>& thunks_;
  int threads_;
};

}  // namespace

void ChainThunks(ThunkSequence& sequence, int threads) { Chainer(sequence, threads).Run(); }

}  // namespace lazuli::cpu
