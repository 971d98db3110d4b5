#include "ir/support/pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "ir/support/fork.h"
#include "ir/support/thread_local.h"

namespace lazuli::ir {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kPooling = false;
#else
constexpr bool kPooling = true;
#endif

// Classes of 16, 32, ..., 256 bytes, then four to a power of two.
constexpr std::size_t kStep = 16, kLinear = 16, kLargest = 16384;

constexpr std::size_t ClassOf(std::size_t bytes) {
  if (bytes <= kStep * kLinear) return bytes == 0 ? 0 : (bytes - 1) / kStep;
  const auto power = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // 2^power < bytes
  return kLinear + (power - 8) * 4 + ((bytes - 1) >> (power - 2) & 3);
}
constexpr std::size_t ClassBytes(std::size_t size_class) {
  if (size_class < kLinear) return (size_class + 1) * kStep;
  const std::size_t above = size_class - kLinear;
  return (above % 4 + 5) << (above / 4 + 6);
}
constexpr std::size_t kClasses = ClassOf(kLargest) + 1;
static_assert(ClassBytes(kClasses - 1) == kLargest && ClassBytes(ClassOf(257)) == 320);

// Blocks of each class that are handed on together. A table, as a free block asks each time.
constexpr auto kBatches = [] {
  std::array<uint8_t, kClasses> batches{};
  for (std::size_t c = 0; c < kClasses; ++c)
    batches[c] = static_cast<uint8_t>(std::clamp<std::size_t>(8192 / ClassBytes(c), 1, 32));
  return batches;
}();

// The first words of a free block.
struct FreeBlock {
  FreeBlock* next;
  FreeBlock* next_batch;  // of the first block of a batch that lies with the exchange
};

// Blocks of one class: a list that never holds more than a batch.
struct FreeList {
  FreeBlock* head = nullptr;
  std::size_t count = 0;
  void Push(FreeBlock* block) {
    block->next = head;
    head = block;
    ++count;
  }
  FreeBlock* Pop() {
    --count;
    return std::exchange(head, head->next);
  }
};

// Where threads leave whole batches for each other. Nothing to destroy: objects may die very late.
class BatchExchange {
 public:
  static BatchExchange& Get() {
    static auto* exchange = new BatchExchange;
    return *exchange;
  }
  void Give(std::size_t size_class, FreeList list) {
    const std::lock_guard lock(mu_);
    list.head->next_batch = std::exchange(batches_[size_class], list.head);
  }
  // The size of a batch that a thread left at its end is whatever it had.
  FreeList Take(std::size_t size_class) {
    {
      const std::lock_guard lock(mu_);
      if (FreeBlock* head = batches_[size_class]) {
        batches_[size_class] = head->next_batch;
        FreeList list{head, 0};
        for (const FreeBlock* block = head; block != nullptr; block = block->next) ++list.count;
        return list;
      }
    }
    const std::size_t bytes = ClassBytes(size_class), blocks = kBatches[size_class];
    auto* slab = static_cast<std::byte*>(::operator new(bytes * blocks));
    FreeList list;
    for (std::size_t i = blocks; i-- > 0;)
      list.Push(new (slab + i * bytes) FreeBlock{nullptr, nullptr});
    return list;
  }

 private:
  ForkMutex mu_;
  std::array<FreeBlock*, kClasses> batches_{};
};

// What a thread keeps: one list in use, and a full one so that freeing and allocating in turn does
// not go to the exchange each time.
struct ThreadCache {
  struct Lists {
    FreeList active, spare;
  };
  std::array<Lists, kClasses> classes;

  ~ThreadCache();
  void Refill(std::size_t size_class) {
    auto& [active, spare] = classes[size_class];
    if (spare.count == 0) spare = BatchExchange::Get().Take(size_class);
    std::swap(active, spare);
  }
  void MakeRoom(std::size_t size_class) {
    auto& [active, spare] = classes[size_class];
    if (spare.count > 0) BatchExchange::Get().Give(size_class, spare);
    spare = std::exchange(active, FreeList());
  }
};

// Plain pointers, so that a look costs no guard; the cache itself goes with the thread.
LAZULI_FAST_THREAD_LOCAL ThreadCache* cache = nullptr;
LAZULI_FAST_THREAD_LOCAL bool thread_is_ending = false;

ThreadCache::~ThreadCache() {
  cache = nullptr;
  thread_is_ending = true;
  for (std::size_t c = 0; c < kClasses; ++c) {
    for (const FreeList& list : {classes[c].active, classes[c].spare})
      if (list.count > 0) BatchExchange::Get().Give(c, list);
  }
}

ThreadCache* MakeCache() {
  if (thread_is_ending) return nullptr;
  thread_local const auto made = std::make_unique<ThreadCache>();
  return cache = made.get();
}

// What happens once in a batch lies apart, so that the common way saves no registers.
[[gnu::noinline]] void* AllocateFromExchange(std::size_t size_class) {
  if (ThreadCache* const here = cache != nullptr ? cache : MakeCache()) {
    here->Refill(size_class);
    return here->classes[size_class].active.Pop();
  }
  FreeList list = BatchExchange::Get().Take(size_class);
  void* block = list.Pop();
  if (list.count > 0) BatchExchange::Get().Give(size_class, list);
  return block;
}
[[gnu::noinline]] void FreeToExchange(FreeBlock* block, std::size_t size_class) {
  ThreadCache* const here = cache != nullptr ? cache : MakeCache();
  if (here == nullptr) {
    block->next = nullptr;
    return BatchExchange::Get().Give(size_class, {block, 1});
  }
  FreeList& active = here->classes[size_class].active;
  if (active.count >= kBatches[size_class]) here->MakeRoom(size_class);
  active.Push(block);
}

}  // namespace

void* PoolAllocate(std::size_t bytes) {
  if (!kPooling || bytes > kLargest) [[unlikely]]
    return ::operator new(bytes);
  const std::size_t size_class = ClassOf(bytes);
  ThreadCache* const here = cache;
  if (here == nullptr || here->classes[size_class].active.count == 0) [[unlikely]]
    return AllocateFromExchange(size_class);
  return here->classes[size_class].active.Pop();
}

void PoolFree(void* block, std::size_t bytes) noexcept {
  if (!kPooling || bytes > kLargest) [[unlikely]]
    return ::operator delete(block, bytes);
  const std::size_t size_class = ClassOf(bytes);
  ThreadCache* const here = cache;
  auto* const free = new (block) FreeBlock;
  if (here == nullptr || here->classes[size_class].active.count >= kBatches[size_class])
      [[unlikely]]
    return FreeToExchange(free, size_class);
  here->classes[size_class].active.Push(free);
}

}  // namespace lazuli::ir
