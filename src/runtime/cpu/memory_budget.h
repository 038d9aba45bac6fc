#pragma once
// How many bytes of host memory are reserved, and the limit on them. Both kinds of blocks (small_blocks,
// large_blocks) ask here before they go to the system. Thread-safe.
#include <cstddef>
#include <cstdint>

namespace vesta::cpu {

// False where the limit forbids it; else the bytes count as reserved until released.
bool reserve(size_t bytes);
void unreserve(size_t bytes);
uint64_t reserved_bytes();
uint64_t peak_reserved_bytes();
void reset_peak_reserved();
// Requests to the system so far.
uint64_t map_count();

// Blocks in use as the peak sees them: large ones, and small ones that left the central lists.
void add_in_use(int64_t bytes);
uint64_t peak_in_use();
void reset_peak_in_use();
int64_t bytes_in_use();
// A second peak of the same count, for the profiler.
int64_t watched_peak();
void restart_watched_peak();

// Throws OutOfMemory that names the request and where memory stands.
[[noreturn]] void throw_out_of_memory(size_t bytes);

}  // namespace vesta::cpu
