// Cost of starting and finishing a parallel region. Launch latency is measured with chunks that wait for each other, so
// that both threads must take part: empty chunks do not show it, because the caller often runs them all before a worker
// arrives, or while the worker is not on a core at all. Where that can happen, "by_workers" is the share of chunks that
// workers ran. Prints JSON lines; value = median of the repetitions.
#include <algorithm>
#include <atomic>
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

// Chunks run by workers and in all, since the last report. Written by each thread for itself only.
struct alignas(64) Count {
  int64_t chunks = 0;
};
Count counts[2];

void report(const char* name, std::vector<double> values) {
  double low = *std::min_element(values.begin(), values.end());
  double high = *std::max_element(values.begin(), values.end());
  double all = static_cast<double>(counts[0].chunks + counts[1].chunks);
  std::printf(
      "{\"bench\":\"thread_pool\",\"case\":\"%s\",\"value\":%.0f,\"lo\":%.0f,\"hi\":%.0f,\"unit\":\"ns\","
      "\"threads\":%d,\"by_workers\":%.3f}\n",
      name, median_of(values), low, high, vesta::num_threads(),
      all > 0 ? static_cast<double>(counts[1].chunks) / all : 0.0);
  counts[0].chunks = counts[1].chunks = 0;
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
  auto count = [] { ++counts[thread_index()].chunks; };
  auto region = [&](int64_t chunks) { parallel_for(0, chunks, 1, [&](int64_t, int64_t) { count(); }); };
  // Neither chunk ends before both have started: the time is launch + meeting + join.
  auto meeting = [&] {
    std::atomic<int> arrived{0};
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      count();
      arrived.fetch_add(1, std::memory_order_acq_rel);
      while (arrived.load(std::memory_order_acquire) < 2) prim::cpu_relax();
    });
  };
  auto busy = [&] {
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      count();
      int64_t until = prim::monotonic_ns() + 5000;
      while (prim::monotonic_ns() < until) {
      }
    });
  };
  set_num_threads(2);
  for (int i = 0; i < 20'000; ++i) meeting();  // the worker starts and settles on a core
  report("warm-up", {0});
  report("launch and join, hot", time_each(2000, 10, false, meeting));
  report("launch and join, worker asleep", time_each(500, 1, true, meeting));
  for (int i = 0; i < 1000; ++i) meeting();
  report("2 chunks of 5 us, hot (5000 = both at once, 10000 = one thread)", time_each(200, 200, false, busy));
  report("2 chunks of 5 us, worker asleep", time_each(300, 1, true, busy));
  for (int i = 0; i < 1000; ++i) meeting();
  report("2 empty chunks", time_each(200, 1000, false, [&] { region(2); }));
  report("64 empty chunks", time_each(200, 500, false, [&] { region(64); }));
  report("1 chunk (inline)", time_each(200, 1000, false, [&] { region(1); }));
  set_num_threads(1);
  report("2 empty chunks, 1 thread", time_each(200, 1000, false, [&] { region(2); }));
}
