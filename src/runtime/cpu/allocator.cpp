// The front of the allocator: each thread's lists of small blocks, the choice between small and large,
// statistics. A list that runs empty takes a batch from small_blocks, one that is full gives half of itself
// back; so a thread keeps at most 3 MiB. At thread exit everything goes back and the lists themselves are
// reused by a later thread.
#include "runtime/cpu/allocator.h"

#include <vesta/error.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "base/prim/prim.h"
#include "runtime/cpu/large_blocks.h"
#include "runtime/cpu/memory_budget.h"
#include "runtime/cpu/size_class.h"
#include "runtime/cpu/small_blocks.h"

#if defined(__SANITIZE_ADDRESS__)
#define VESTA_PLAIN_BLOCKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VESTA_PLAIN_BLOCKS 1
#endif
#endif

namespace vesta::cpu {

static_assert(kMaxClassBytes == kMaxSmallBytes);

uint8_t size_class(size_t bytes) {
  VESTA_ASSERT(bytes <= kMaxSmallBytes);
  return static_cast<uint8_t>(small_class(bytes));
}

size_t class_bytes(uint8_t size_class) { return kSmallClassBytes[size_class]; }

#if defined(VESTA_PLAIN_BLOCKS)

namespace {

constinit std::atomic<uint64_t> allocated{0};
constinit std::atomic<uint64_t> allocations{0};
// AddressSanitizer ends the process on a request above 1 TiB instead of failing it.
constexpr size_t kMaxPlainRequest = size_t{1} << 40;

void* allocate_plain(size_t bytes, size_t counted) {
  if (bytes >= kMaxPlainRequest || !reserve(counted)) throw_out_of_memory(bytes);
  void* block = ::operator new (bytes, std::align_val_t{64}, std::nothrow);
  if (!block) {
    unreserve(counted);
    throw_out_of_memory(bytes);
  }
  allocated.fetch_add(counted, std::memory_order_relaxed);
  allocations.fetch_add(1, std::memory_order_relaxed);
  add_in_use(static_cast<int64_t>(counted));
  return block;
}

void free_plain(void* block, size_t counted) {
  if (!block) return;
  ::operator delete (block, std::align_val_t{64});
  allocated.fetch_sub(counted, std::memory_order_relaxed);
  unreserve(counted);
  add_in_use(-static_cast<int64_t>(counted));
}

size_t counted_bytes(size_t bytes) {
  return bytes <= kMaxSmallBytes ? kSmallClassBytes[small_class(bytes)] : large_class_bytes(bytes);
}

}  // namespace

void* allocate(size_t bytes) {
  if (bytes > kMaxRequest) throw_out_of_memory(bytes);
  return allocate_plain(bytes, counted_bytes(bytes));
}
void free(void* block, size_t bytes) noexcept { free_plain(block, counted_bytes(bytes)); }
void* allocate_class(uint8_t size_class) {
  return allocate_plain(kSmallClassBytes[size_class], kSmallClassBytes[size_class]);
}
void free_class(void* block, uint8_t size_class) noexcept { free_plain(block, kSmallClassBytes[size_class]); }

MemoryStats memory_stats() {
  MemoryStats stats;
  stats.allocated = allocated.load(std::memory_order_relaxed);
  stats.allocations = allocations.load(std::memory_order_relaxed);
  stats.peak_allocated = peak_in_use();
  stats.reserved = reserved_bytes();
  stats.peak_reserved = peak_reserved_bytes();
  stats.maps = map_count();
  return stats;
}

void empty_cache() {}

#else

namespace {

// Each list holds at most two batches, a batch at most 64 blocks or 16 KiB (one block where that is larger).
constexpr uint32_t batch_blocks(unsigned size_class) {
  return std::clamp(16 * 1024 / kSmallClassBytes[size_class], 1u, 64u);
}

struct List {
  FreeLink* head = nullptr;
  // Written by the owner only; atomic because memory_stats() reads it from other threads.
  std::atomic<uint32_t> count{0};
  uint32_t limit = 0;
};

struct alignas(64) ThreadLists {
  List lists[kSmallClasses];
  std::atomic<uint64_t> allocations{0};
  ThreadLists* next = nullptr;         // all that were ever made
  ThreadLists* next_unused = nullptr;  // those whose thread has ended
};

struct Registry {
  std::mutex mutex;
  ThreadLists* all = nullptr;
  ThreadLists* unused = nullptr;
  char* room = nullptr;  // memory for further ones
  size_t room_left = 0;
};

// Process-wide, trivially destroyed: blocks may still be freed while static objects are destroyed.
constinit Registry registry;
constinit std::atomic<uint64_t> unlisted_allocations{0};

struct ThreadState {
  ThreadLists* lists = nullptr;
  bool ended = false;  // the exit hook ran; later calls of this thread go to the central lists
};
// initial-exec: 16 bytes, read by every allocation; the default model calls into the dynamic linker.
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadState this_thread;

void give_list(unsigned size_class, List& list, uint32_t keep) {
  FreeLink* first = list.head;
  if (keep == 0) {
    list.head = nullptr;
  } else {
    FreeLink* last = first;
    for (uint32_t i = 1; i < keep; ++i) last = last->next;
    first = last->next;
    last->next = nullptr;
  }
  list.count.store(keep, std::memory_order_relaxed);
  if (first) give_small(size_class, first);
}

void give_all(ThreadLists& lists) {
  for (unsigned c = 0; c < kSmallClasses; ++c)
    if (lists.lists[c].head) give_list(c, lists.lists[c], 0);
}

struct ExitHook {
  ~ExitHook() {
    ThreadLists* lists = this_thread.lists;
    this_thread = {nullptr, true};
    if (!lists) return;
    give_all(*lists);
    std::lock_guard lock(registry.mutex);
    lists->next_unused = registry.unused;
    registry.unused = lists;
  }
  void touch() {}  // a thread_local's destructor is registered at its first use
};
thread_local ExitHook exit_hook;

void register_fork_handlers() {
  static std::atomic<bool> registered{false};
  if (registered.exchange(true)) return;
  auto unlock = [] {
    unlock_large_blocks();
    unlock_small_blocks();
    registry.mutex.unlock();
  };
  // In the child, blocks in other threads' lists are lost: those lists may have been half-way through a
  // change.
  prim::at_fork(
      [] {
        registry.mutex.lock();
        lock_small_blocks();
        lock_large_blocks();
      },
      unlock, unlock);
}

// Null where the thread is ending or there is no memory; callers then use the central lists.
ThreadLists* make_lists() {
  if (this_thread.ended) return nullptr;
  register_fork_handlers();
  ThreadLists* lists;
  {
    std::lock_guard lock(registry.mutex);
    if (registry.unused) {
      lists = registry.unused;
      registry.unused = lists->next_unused;
    } else {
      if (registry.room_left < sizeof(ThreadLists)) {
        constexpr size_t kRoomBytes = 64 * 1024;
        void* room = prim::map_pages(kRoomBytes, prim::page_bytes(), false);
        if (!room) return nullptr;
        registry.room = static_cast<char*>(room);
        registry.room_left = kRoomBytes;
      }
      lists = new (registry.room) ThreadLists;
      registry.room += sizeof(ThreadLists);
      registry.room_left -= sizeof(ThreadLists);
      for (unsigned c = 0; c < kSmallClasses; ++c) lists->lists[c].limit = 2 * batch_blocks(c);
      lists->next = registry.all;
      registry.all = lists;
    }
  }
  this_thread.lists = lists;
  exit_hook.touch();
  return lists;
}

void count_allocation(ThreadLists& lists) {
  lists.allocations.store(lists.allocations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

[[gnu::noinline]] void* allocate_slow(unsigned size_class) {
  ThreadLists* lists = this_thread.lists ? this_thread.lists : make_lists();
  uint32_t got = 0;
  FreeLink* blocks = take_small(size_class, lists ? batch_blocks(size_class) : 1, &got);
  if (!lists) {
    unlisted_allocations.fetch_add(1, std::memory_order_relaxed);
    return blocks;
  }
  List& list = lists->lists[size_class];
  list.head = blocks->next;
  list.count.store(got - 1, std::memory_order_relaxed);
  count_allocation(*lists);
  return blocks;
}

[[gnu::noinline]] void free_slow(void* block, unsigned size_class) noexcept {
  FreeLink* link = static_cast<FreeLink*>(block);
  ThreadLists* lists = this_thread.lists ? this_thread.lists : make_lists();
  if (!lists) {
    link->next = nullptr;
    return give_small(size_class, link);
  }
  List& list = lists->lists[size_class];
  // The newest blocks stay: they are still in the processor's cache.
  uint32_t count = list.count.load(std::memory_order_relaxed);
  if (count >= list.limit) give_list(size_class, list, count = list.limit / 2);
  link->next = list.head;
  list.head = link;
  list.count.store(count + 1, std::memory_order_relaxed);
}

inline void* allocate_small(unsigned size_class) {
  ThreadLists* lists = this_thread.lists;
  if (!lists) [[unlikely]]
    return allocate_slow(size_class);
  List& list = lists->lists[size_class];
  FreeLink* block = list.head;
  if (!block) [[unlikely]]
    return allocate_slow(size_class);
  list.head = block->next;
  list.count.store(list.count.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  count_allocation(*lists);
  return block;
}

inline void free_small(void* block, unsigned size_class) noexcept {
  ThreadLists* lists = this_thread.lists;
  if (!lists) [[unlikely]]
    return free_slow(block, size_class);
  List& list = lists->lists[size_class];
  uint32_t count = list.count.load(std::memory_order_relaxed);
  if (count >= list.limit) [[unlikely]]
    return free_slow(block, size_class);
  FreeLink* link = static_cast<FreeLink*>(block);
  link->next = list.head;
  list.head = link;
  list.count.store(count + 1, std::memory_order_relaxed);
}

}  // namespace

void* allocate(size_t bytes) {
  if (bytes <= kMaxSmallBytes) [[likely]]
    return allocate_small(small_class(bytes));
  if (bytes > kMaxRequest) throw_out_of_memory(bytes);
  return allocate_large(bytes);
}

void free(void* block, size_t bytes) noexcept {
  if (!block) return;
  if (bytes <= kMaxSmallBytes) [[likely]]
    return free_small(block, small_class(bytes));
  free_large(block, bytes);
}

void* allocate_class(uint8_t size_class) { return allocate_small(size_class); }
void free_class(void* block, uint8_t size_class) noexcept {
  if (block) free_small(block, size_class);
}

MemoryStats memory_stats() {
  MemoryStats stats;
  int64_t small = 0;
  uint64_t calls = unlisted_allocations.load(std::memory_order_relaxed);
  {
    std::lock_guard lock(registry.mutex);
    for (unsigned c = 0; c < kSmallClasses; ++c) small += static_cast<int64_t>(small_bytes_out(c));
    for (ThreadLists* lists = registry.all; lists; lists = lists->next) {
      calls += lists->allocations.load(std::memory_order_relaxed);
      for (unsigned c = 0; c < kSmallClasses; ++c)
        small -= int64_t{lists->lists[c].count.load(std::memory_order_relaxed)} * kSmallClassBytes[c];
    }
  }
  // The lists are read while their threads go on, so the sum may be off by the blocks that move meanwhile.
  stats.allocated = static_cast<uint64_t>(std::max<int64_t>(small, 0)) + large_bytes_in_use();
  stats.peak_allocated = peak_in_use();
  stats.reserved = reserved_bytes();
  stats.peak_reserved = peak_reserved_bytes();
  stats.cached_large = cached_large_bytes();
  stats.allocations = calls + large_allocations();
  stats.maps = map_count();
  return stats;
}

void empty_cache() {
  if (this_thread.lists) give_all(*this_thread.lists);
  release_cached_large();
  discard_unused_spans();
}

#endif

void reset_peak_memory_stats() {
  reset_peak_reserved();
  reset_peak_in_use();
}

}  // namespace vesta::cpu
