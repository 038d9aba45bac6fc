// ns of an allocate/free pair by size: the block comes back at once (a temporary), or 1000 blocks live at a
// time (a graph with saved tensors); large sizes write one byte a page, so that fresh pages would show. Peer:
// aligned_alloc + free of the C library. Prints JSON lines; value = median of 9 alternating repetitions.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/prim/prim.h"
#include "runtime/cpu/allocator.h"

namespace {

struct Ours {
  static void* get(size_t bytes) { return vesta::cpu::allocate(bytes); }
  static void put(void* block, size_t bytes) { vesta::cpu::free(block, bytes); }
};
struct System {
  static void* get(size_t bytes) { return std::aligned_alloc(64, bytes); }
  static void put(void* block, size_t) { std::free(block); }
};

void use(void* block) { asm volatile("" : : "r"(block) : "memory"); }

template <class Allocator>
double pair_ns(size_t bytes, int live, bool touch) {
  std::vector<void*> blocks(static_cast<size_t>(live));
  const int rounds = std::max(1, (bytes >= (1u << 20) ? 200 : 200'000) / live);
  int64_t start = vesta::prim::monotonic_ns();
  for (int r = 0; r < rounds; ++r) {
    for (void*& block : blocks) {
      block = Allocator::get(bytes);
      use(block);
      if (touch)
        for (size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(block)[i] = 1;
    }
    for (void* block : blocks) Allocator::put(block, bytes);
  }
  return static_cast<double>(vesta::prim::monotonic_ns() - start) / (static_cast<double>(rounds) * live);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(const char* name, size_t bytes, int live, bool touch) {
  std::vector<double> ours, peer;
  for (int i = 0; i < 9; ++i) {
    ours.push_back(pair_ns<Ours>(bytes, live, touch));
    peer.push_back(pair_ns<System>(bytes, live, touch));
  }
  double a = median(ours), b = median(peer);
  std::printf(
      "{\"bench\":\"allocator\",\"case\":\"%s\",\"value\":%.1f,\"unit\":\"ns\",\"peer\":\"aligned_alloc\","
      "\"peer_value\":%.1f,\"ratio\":%.2f,\"lo\":%.1f}\n",
      name, a, b, b / a, *std::min_element(ours.begin(), ours.end()));
}

}  // namespace

int main() {
  compare("64 B", 64, 1, false);
  compare("256 B", 256, 1, false);
  compare("4 KiB", 4096, 1, false);
  compare("64 B, 1000 live", 64, 1000, false);
  compare("256 B, 1000 live", 256, 1000, false);
  compare("4 KiB, 1000 live", 4096, 1000, false);
  compare("48 KiB, 100 live", 48 << 10, 100, false);
  compare("1 MiB", 1 << 20, 1, false);
  compare("16 MiB", 16 << 20, 1, false);
  compare("1 MiB, touched", 1 << 20, 1, true);
  compare("16 MiB, touched", 16 << 20, 1, true);
  compare("1 MiB, 100 live, touched", 1 << 20, 100, true);
}
