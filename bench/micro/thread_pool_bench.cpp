// Cost of starting and finishing a parallel region: hot workers (regions back to back), workers asleep (a
// pause longer than the spin limit before each region), and the inline path. Prints JSON lines; value =
// median of the repetitions.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/prim/prim.h"
#include "base/thread_pool.h"

namespace {

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void report(const char* name, std::vector<double> values) {
  double low = *std::min_element(values.begin(), values.end());
  std::printf(
      "{\"bench\":\"thread_pool\",\"case\":\"%s\",\"value\":%.0f,\"lo\":%.0f,\"unit\":\"ns\",\"threads\":%d}"
      "\n",
      name, median_of(values), low, vesta::num_threads());
}

template <class Body>
std::vector<double> time_each(int repeats, int inner, bool sleep_first, Body body) {
  std::vector<double> result;
  for (int r = 0; r < repeats; ++r) {
    if (sleep_first) std::this_thread::sleep_for(std::chrono::microseconds(300));
    int64_t start = vesta::prim::monotonic_ns();
    for (int i = 0; i < inner; ++i) body();
    result.push_back(static_cast<double>(vesta::prim::monotonic_ns() - start) / inner);
  }
  return result;
}

}  // namespace

int main() {
  using namespace vesta;
  int64_t sink[64] = {};
  auto region = [&](int64_t chunks) {
    parallel_for(0, chunks, 1, [&](int64_t from, int64_t) { sink[from & 63] += from; });
  };
  // 5 us of work a chunk: both threads take part, which an empty region does not guarantee.
  auto busy_region = [&] {
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      int64_t until = prim::monotonic_ns() + 5000;
      while (prim::monotonic_ns() < until) {
      }
    });
  };
  set_num_threads(2);
  report("2 empty chunks, hot", time_each(200, 1000, false, [&] { region(2); }));
  report("2 chunks of 5 us, hot (5000 = no overhead)", time_each(200, 200, false, busy_region));
  report("2 chunks of 5 us, workers asleep", time_each(300, 1, true, busy_region));
  report("64 empty chunks, hot", time_each(200, 500, false, [&] { region(64); }));
  report("1 chunk (inline)", time_each(200, 1000, false, [&] { region(1); }));
  set_num_threads(1);
  report("2 empty chunks, 1 thread", time_each(200, 1000, false, [&] { region(2); }));
  return sink[0] == -1;
}
