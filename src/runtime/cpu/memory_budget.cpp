// Counters of reserved and used bytes, the limit, and the text of OutOfMemory.
#include "runtime/cpu/memory_budget.h"

#include <vesta/error.h>

#include <atomic>

#include "base/config.h"
#include "runtime/cpu/allocator.h"
#include "runtime/cpu/large_blocks.h"

namespace vesta::cpu {
namespace {

constexpr uint64_t kUndecided = ~uint64_t{0};

// Process-wide by nature, changed only through the functions below; constinit and trivially destroyed, so
// that blocks may still be freed while static objects are destroyed.
constinit std::atomic<uint64_t> limit{kUndecided};
constinit std::atomic<uint64_t> reserved{0};
constinit std::atomic<uint64_t> peak_reserved{0};
constinit std::atomic<uint64_t> maps{0};
constinit std::atomic<int64_t> in_use{0};
constinit std::atomic<int64_t> peak{0};
constinit std::atomic<int64_t> watched{0};

template <class T>
void raise(std::atomic<T>& top, T value) {
  T seen = top.load(std::memory_order_relaxed);
  while (value > seen && !top.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

uint64_t memory_limit() {
  uint64_t value = limit.load(std::memory_order_relaxed);
  if (value != kUndecided) return value;
  uint64_t from_config = config().memory_limit;
  // set_memory_limit may have won in the meantime; its value stays.
  return limit.compare_exchange_strong(value, from_config, std::memory_order_relaxed) ? from_config : value;
}

void set_memory_limit(uint64_t bytes) {
  limit.store(bytes == kUndecided ? 0 : bytes, std::memory_order_relaxed);
}

bool reserve(size_t bytes) {
  const uint64_t most = memory_limit();
  uint64_t now = reserved.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (most && now > most) {
    reserved.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  raise(peak_reserved, now);
  maps.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void unreserve(size_t bytes) { reserved.fetch_sub(bytes, std::memory_order_relaxed); }

uint64_t reserved_bytes() { return reserved.load(std::memory_order_relaxed); }
uint64_t peak_reserved_bytes() { return peak_reserved.load(std::memory_order_relaxed); }
uint64_t map_count() { return maps.load(std::memory_order_relaxed); }

void reset_peak_reserved() {
  peak_reserved.store(reserved.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void add_in_use(int64_t bytes) {
  int64_t now = in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (bytes > 0) {
    raise(peak, now);
    raise(watched, now);
  }
}

int64_t bytes_in_use() { return in_use.load(std::memory_order_relaxed); }
int64_t watched_peak() { return watched.load(std::memory_order_relaxed); }
void restart_watched_peak() {
  watched.store(in_use.load(std::memory_order_relaxed), std::memory_order_relaxed);
}
uint64_t peak_in_use() { return static_cast<uint64_t>(peak.load(std::memory_order_relaxed)); }
void reset_peak_in_use() { peak.store(in_use.load(std::memory_order_relaxed), std::memory_order_relaxed); }

void throw_out_of_memory(size_t bytes) {
  const uint64_t most = memory_limit();
  std::string text =
      detail::message("allocate: out of host memory: ", bytes, " bytes requested, ", reserved_bytes(),
                      " reserved by Vesta (", cached_large_bytes(), " of them cached), ");
  if (most)
    text += detail::message("limit ", most, " bytes");
  else
    text += "no limit set";
  throw OutOfMemory(std::move(text));
}

}  // namespace vesta::cpu
