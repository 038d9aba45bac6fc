#pragma once
// The operating system as Vesta sees it: the only folder with OS-specific code (linux.cpp; other systems add
// a file). Thin wrappers without policy: failures come back as codes or null, never as exceptions; base/
// turns them into errors. All functions are thread-safe unless they say otherwise.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vesta::prim {

// --- waiting ---
// Sleeps while *word == expected; may return early for no reason. timeout_ns < 0: no limit. False on
// time-out.
bool futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns = -1);
// Wakes up to `count` sleepers of this process.
void futex_wake(const std::atomic<uint32_t>& word, int count);
// CLOCK_MONOTONIC, ns.
int64_t monotonic_ns();
// One short pause inside a spin loop.
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// --- cores ---
// Cores that this process may use: its affinity mask cut by the cgroup quota (rounded up); at least 1.
int available_cores();
// The core this thread runs on now; -1 where that is not known.
int current_cpu();
// Keeps this thread off one core, if the process (its main thread's affinity) may use others.
void avoid_cpu(int cpu);
// The quota alone: 0 = no limit. `root` is prefixed to /proc and /sys paths, so that tests can lay out a
// tree.
int cgroup_cores(const std::string& root = "");

// --- memory ---
size_t page_bytes();
inline constexpr size_t kHugePageBytes = size_t{2} << 20;
// Zeroed pages at a multiple of `alignment` (a power of two), or null. bytes is a multiple of the page size.
// huge: ask for huge pages (a hint that the kernel may ignore).
void* map_pages(size_t bytes, size_t alignment, bool huge);
// Gives the memory behind the pages back but keeps the addresses; the next touch finds zeroes.
void discard_pages(void* pages, size_t bytes);
void unmap_pages(void* pages, size_t bytes);

// --- threads and processes ---
// Run around fork(): `prepare` before, `parent`/`child` after it; null = nothing. Registered for good.
void at_fork(void (*prepare)(), void (*parent)(), void (*child)());
void set_thread_name(const char* name);  // cut to 15 characters
// Blocks all signals in this thread while it lives, so that threads started under it never run the host's
// handlers.
class SignalBlock {
 public:
  SignalBlock();
  ~SignalBlock();
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  alignas(8) unsigned char saved_[128];
};

}  // namespace vesta::prim
