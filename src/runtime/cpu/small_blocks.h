#pragma once
// Central lists of small blocks (<= 64 KiB), behind the threads' own lists. Blocks of one class lie in spans
// of 64 KiB to 1 MiB; a span whose blocks are all free serves any other class of the same span size.
// Thread-safe.
#include <cstddef>
#include <cstdint>

namespace vesta::cpu {

// The first word of a free block links to the next one.
struct FreeLink {
  FreeLink* next;
};

// Takes up to `count` (>= 1) blocks as a linked list; *got of them, at least 1. Throws OutOfMemory.
FreeLink* take_small(unsigned size_class, uint32_t count, uint32_t* got);
// Gives back a linked list of any length.
void give_small(unsigned size_class, FreeLink* blocks) noexcept;

// Bytes of the class's blocks that are outside the central lists.
uint64_t small_bytes_out(unsigned size_class);
// Returns memory of unused spans to the system.
void discard_unused_spans() noexcept;

// Around fork(): no other thread may be inside while the child is made.
void lock_small_blocks();
void unlock_small_blocks();

}  // namespace vesta::cpu
