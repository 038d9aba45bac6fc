// The cache of large blocks: one list per class (newest first, still warm) and one over all by age (oldest
// leaves first).
//
// How much it keeps: blocks in use + cached <= 1.25 * the most in use in the last 10-20 s, and never less
// than 64 MiB cached. A share of the peak alone would be wrong for training: at the end of each step nearly
// all activations are free and asked for again in the next step.
#include "runtime/cpu/large_blocks.h"

#include <algorithm>
#include <mutex>

#include "base/log.h"
#include "base/prim/prim.h"
#include "runtime/cpu/memory_budget.h"
#include "runtime/cpu/size_class.h"
#include "runtime/cpu/small_blocks.h"

namespace vesta::cpu {
namespace {

constexpr uint64_t kMinCachedBytes = 64 << 20;
constexpr int64_t kWindowNs = 10'000'000'000;
constexpr uint32_t kEventsPerClockRead = 64;

// Lives in the first bytes of a cached block.
struct Unused {
  Unused* class_next;
  Unused* class_prev;
  Unused* older;
  Unused* newer;
  size_t bytes;
  unsigned size_class;
};

struct Cache {
  std::mutex mutex;
  Unused* classes[kLargeClasses] = {};
  Unused* oldest = nullptr;
  Unused* newest = nullptr;
  uint64_t in_use = 0;
  uint64_t cached = 0;
  uint64_t allocations = 0;
  // The most in use in the running window and in the one before.
  uint64_t window_peak = 0;
  uint64_t last_peak = 0;
  int64_t window_start_ns = 0;
  uint32_t events = 0;
};

// Process-wide, trivially destroyed: blocks may still be freed while static objects are destroyed.
constinit Cache cache;

size_t mapped_bytes(size_t bytes) {
  size_t page = prim::page_bytes();
  return (large_class_bytes(bytes) + page - 1) & ~(page - 1);
}

// The following need cache.mutex.
void insert(Unused* block) {
  Unused*& head = cache.classes[block->size_class];
  block->class_prev = nullptr;
  block->class_next = head;
  if (head) head->class_prev = block;
  head = block;
  block->newer = nullptr;
  block->older = cache.newest;
  (cache.newest ? cache.newest->newer : cache.oldest) = block;
  cache.newest = block;
  cache.cached += block->bytes;
}

void remove(Unused* block) {
  (block->class_prev ? block->class_prev->class_next : cache.classes[block->size_class]) = block->class_next;
  if (block->class_next) block->class_next->class_prev = block->class_prev;
  (block->older ? block->older->newer : cache.oldest) = block->newer;
  (block->newer ? block->newer->older : cache.newest) = block->older;
  cache.cached -= block->bytes;
}

void count_in_use(size_t bytes) {
  cache.in_use += bytes;
  cache.allocations += 1;
  cache.window_peak = std::max(cache.window_peak, cache.in_use);
}

void move_window() {
  if (cache.events++ % kEventsPerClockRead) return;
  int64_t now = prim::monotonic_ns();
  if (now - cache.window_start_ns < kWindowNs) return;
  cache.window_start_ns = now;
  cache.last_peak = cache.window_peak;
  cache.window_peak = cache.in_use;
}

// Takes blocks out, oldest first, while more than allowed is cached; returns them linked by class_next.
Unused* trim() {
  uint64_t peak = std::max(cache.window_peak, cache.last_peak);
  uint64_t allowed = peak + peak / 4;
  Unused* out = nullptr;
  while (cache.cached > kMinCachedBytes && cache.in_use + cache.cached > allowed) {
    Unused* block = cache.oldest;
    remove(block);
    block->class_next = out;
    out = block;
  }
  return out;
}

void unmap_list(Unused* blocks) {
  while (blocks) {
    Unused* block = blocks;
    blocks = block->class_next;
    size_t bytes = block->bytes;
    prim::unmap_pages(block, bytes);
    unreserve(bytes);
  }
}

void* map_block(size_t bytes) {
  if (!reserve(bytes)) return nullptr;
  bool huge = bytes >= prim::kHugePageBytes;
  void* block = prim::map_pages(bytes, huge ? prim::kHugePageBytes : prim::page_bytes(), huge);
  if (!block) unreserve(bytes);
  VESTA_LOG(Memory, Debug, block ? "mapped " : "could not map ", bytes, " bytes");
  return block;
}

}  // namespace

void* allocate_large(size_t bytes) {
  const unsigned size_class = large_class(bytes);
  const size_t mapped = mapped_bytes(bytes);
  {
    std::lock_guard lock(cache.mutex);
    if (Unused* block = cache.classes[size_class]) {
      remove(block);
      count_in_use(mapped);
      add_in_use(static_cast<int64_t>(mapped));
      return block;
    }
  }
  void* block = map_block(mapped);
  if (!block) {
    release_cached_large();
    discard_unused_spans();
    block = map_block(mapped);
    if (!block) throw_out_of_memory(bytes);
  }
  std::lock_guard lock(cache.mutex);
  count_in_use(mapped);
  add_in_use(static_cast<int64_t>(mapped));
  return block;
}

void free_large(void* block, size_t bytes) noexcept {
  const size_t mapped = mapped_bytes(bytes);
  Unused* unused = static_cast<Unused*>(block);
  unused->bytes = mapped;
  unused->size_class = large_class(bytes);
  Unused* out;
  {
    std::lock_guard lock(cache.mutex);
    cache.in_use -= mapped;
    insert(unused);
    move_window();
    out = trim();
  }
  add_in_use(-static_cast<int64_t>(mapped));
  unmap_list(out);
}

uint64_t large_bytes_in_use() {
  std::lock_guard lock(cache.mutex);
  return cache.in_use;
}

uint64_t cached_large_bytes() {
  std::lock_guard lock(cache.mutex);
  return cache.cached;
}

uint64_t large_allocations() {
  std::lock_guard lock(cache.mutex);
  return cache.allocations;
}

void release_cached_large() noexcept {
  Unused* out = nullptr;
  {
    std::lock_guard lock(cache.mutex);
    while (Unused* block = cache.oldest) {
      remove(block);
      block->class_next = out;
      out = block;
    }
  }
  unmap_list(out);
}

void lock_large_blocks() { cache.mutex.lock(); }
void unlock_large_blocks() { cache.mutex.unlock(); }

}  // namespace vesta::cpu
