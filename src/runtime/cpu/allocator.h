#pragma once
// Host memory for tensors: 64-byte aligned blocks from per-thread lists (<= 64 KiB) or a central cache of
// mapped blocks. Exists because glibc's aligned_alloc costs ~40 ns and returns large blocks to the system at
// each free. Blocks know nothing of their size: whoever frees one passes the size it asked for. Contents are
// not initialised. Thread-safe; a block may be freed by any thread. Under AddressSanitizer every call goes to
// operator new/delete instead, so that use after free is found.
#include <cstddef>
#include <cstdint>

namespace vesta::cpu {

// At least `bytes` (0 is allowed), never null. Throws OutOfMemory where the system or VESTA_MEMORY_LIMIT
// refuses.
[[nodiscard]] void* allocate(size_t bytes);
// `bytes` as given to allocate. Null is ignored.
void free(void* block, size_t bytes) noexcept;

// The small sizes, for owners that keep one byte instead of the size: classes 0..63 of 64 B..64 KiB.
inline constexpr size_t kMaxClassBytes = 64 * 1024;
uint8_t size_class(size_t bytes);        // bytes <= kMaxClassBytes
size_t class_bytes(uint8_t size_class);  // what a block of the class really holds
[[nodiscard]] void* allocate_class(uint8_t size_class);
void free_class(void* block, uint8_t size_class) noexcept;

// Sizes are those of the classes (at most 12.5 % above the requests, or 64 B for tiny ones).
struct MemoryStats {
  uint64_t allocated = 0;  // bytes of blocks in use
  uint64_t peak_allocated =
      0;  // the most so far; blocks lying in threads' lists count as in use here (<= 3 MiB a thread)
  uint64_t reserved = 0;  // bytes obtained from the system: in use, cached or not yet handed out
  uint64_t peak_reserved = 0;
  uint64_t cached_large = 0;  // bytes of unused blocks > 64 KiB
  uint64_t allocations = 0;   // calls so far
  uint64_t maps = 0;          // requests to the system so far
};
MemoryStats memory_stats();
// Starts the peaks again from the present values.
void reset_peak_memory_stats();

// Gives unused memory back to the system: cached large blocks, unused spans and this thread's lists; other
// threads keep their lists.
void empty_cache();

// Most bytes that may be reserved; 0 = no limit. Starts as VESTA_MEMORY_LIMIT.
void set_memory_limit(uint64_t bytes);
uint64_t memory_limit();

}  // namespace vesta::cpu
