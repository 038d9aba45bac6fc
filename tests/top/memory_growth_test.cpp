// Memory does not grow with the number of different shapes or of threads that a program has seen (users' reports
// pytorch/pytorch#64412, #121485, #24237): after a warm-up, what tensors use is back where it was, and what the process
// holds stays within what one more unlucky step may need.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "runtime/cpu/allocator.h"
#include "vesta/autograd.h"
#include "vesta/functional.h"
#include "vesta/ops.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VESTA_SANITIZED 1  // quarantines and shadow memory grow
#endif

namespace vesta {
namespace {

constexpr uint64_t kSeed = 4711;
constexpr int64_t kMiB = 1 << 20;

struct Memory {
  int64_t tensors = 0;   // bytes of blocks in use
  int64_t reserved = 0;  // bytes that the tensor allocator holds
  int64_t heap = 0;      // bytes of malloc in use
  int64_t resident = 0;
};

Memory measure() {
  Memory m;
  cpu::MemoryStats stats = cpu::memory_stats();
  m.tensors = int64_t(stats.allocated);
  m.reserved = int64_t(stats.reserved);
  struct mallinfo2 info = mallinfo2();
  m.heap = int64_t(info.uordblks + info.hblkhd);
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  m.resident = resident * sysconf(_SC_PAGESIZE);
  return m;
}

void expect_flat(const Memory& before, const Memory& after) {
  EXPECT_EQ(after.tensors, before.tensors);
  // Blocks of a size class that never before were needed at the same time.
  EXPECT_LE(after.reserved, before.reserved + 8 * kMiB);
#ifndef VESTA_SANITIZED
  EXPECT_LE(after.heap, before.heap + kMiB / 8);  // eight bytes a step would be found
  EXPECT_LE(after.resident, before.resident + 12 * kMiB);
#endif
  std::printf("tensors %+ld B, reserved %+.2f MiB (of %.1f), heap %+ld B, resident %+.2f MiB (of %.1f)\n",
              long(after.tensors - before.tensors), double(after.reserved - before.reserved) / double(kMiB),
              double(after.reserved) / double(kMiB), long(after.heap - before.heap),
              double(after.resident - before.resident) / double(kMiB), double(after.resident) / double(kMiB));
}

// A few operators of many kinds, forward and backward, on shapes that hardly ever repeat: up to 256 KiB a tensor.
void step(std::mt19937_64& random) {
  auto size = [&](int64_t most) { return int64_t(random() % uint64_t(most + 1)); };
  int64_t rows = size(200), columns = size(300) + 1;
  Tensor x = randn({rows, columns}).requires_grad_(), y = x * 2 + 1;
  switch (random() % 8) {
    case 0:
      y = y.mm(randn({columns, size(60)}));
      break;
    case 1:
      y = softmax(y, 1).log();
      break;
    case 2:
      y = layer_norm(y, {columns});
      break;
    case 3:
      y = cat({y, y.slice(1, 0, columns / 2)}, 1).transpose(0, 1).contiguous();
      break;
    case 4:
      y = std::get<0>(y.sort(1)).cumsum(0);
      break;
    case 5:
      y = rows ? y.index_select(0, randint(0, rows, {size(50)}, kInt64)) : y.exp();
      break;
    case 6:
      y = conv1d(y.view({rows, 1, columns}), randn({2, 1, 1}));
      break;
    default:
      y = (y.to(kDouble).std(1, false, true) + x.to(kBFloat16)).relu();
  }
  y.sum().backward();
}

TEST(MemoryGrowth, ten_thousand_shapes_leave_it_flat) {
  std::mt19937_64 random(kSeed);
  Memory before;
  for (int i = 0; i < 12000; ++i) {
    if (i == 2000) before = measure();
    step(random);
  }
  expect_flat(before, measure());
}

TEST(MemoryGrowth, a_thousand_short_threads_leave_it_flat) {
  auto run_threads = [](int count, uint64_t seed) {
    for (int i = 0; i < count; i += 2) {
      std::thread pair[2];
      for (int k = 0; k < 2; ++k)
        pair[k] = std::thread([seed, number = uint64_t(i + k)] {
          std::mt19937_64 random(seed + number);
          for (int s = 0; s < 4; ++s) step(random);
        });
      for (auto& t : pair) t.join();
    }
  };
  run_threads(200, kSeed);
  Memory before = measure();
  run_threads(1000, kSeed + 1000);
  expect_flat(before, measure());
}

// A tensor made here and freed by another thread goes back to where it can be used again.
TEST(MemoryGrowth, tensors_freed_by_other_threads_leave_it_flat) {
  auto hand_over = [](int count) {
    for (int i = 0; i < count; ++i) {
      std::vector<Tensor> made;
      for (int k = 0; k < 20; ++k) made.push_back(ones({17 * (k + 1)}));
      std::thread([taken = std::move(made)]() mutable { taken.clear(); }).join();
    }
  };
  hand_over(100);
  Memory before = measure();
  hand_over(1000);
  expect_flat(before, measure());
}

}  // namespace
}  // namespace vesta
