#pragma once
// Blocks above 64 KiB: each is its own mapping, and freed ones are kept for the next request of the same
// class, because fresh pages cost ~0.1 us per KiB to zero. Thread-safe.
#include <cstddef>
#include <cstdint>

namespace vesta::cpu {

// kMaxSmallBytes < bytes <= kMaxRequest. Throws OutOfMemory.
void* allocate_large(size_t bytes);
void free_large(void* block, size_t bytes) noexcept;

uint64_t large_bytes_in_use();
uint64_t cached_large_bytes();
uint64_t large_allocations();
// Unmaps all unused blocks.
void release_cached_large() noexcept;

// Around fork(): no other thread may be inside while the child is made.
void lock_large_blocks();
void unlock_large_blocks();

}  // namespace vesta::cpu
