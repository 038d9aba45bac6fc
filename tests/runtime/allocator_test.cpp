// The host allocator: sizes, alignment, no overlap, traffic between threads, thread exit, bounds, statistics,
// errors.
#include "runtime/cpu/allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vesta/error.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cpu/large_blocks.h"
#include "runtime/cpu/size_class.h"

#if defined(__SANITIZE_ADDRESS__)
#define VESTA_TEST_PLAIN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VESTA_TEST_PLAIN 1
#endif
#endif
#if defined(VESTA_TEST_PLAIN)
constexpr bool kPlain = true;  // every call goes to operator new: nothing is cached
#else
constexpr bool kPlain = false;
#endif
#if defined(__SANITIZE_THREAD__)
constexpr bool kTsan = true;
#else
constexpr bool kTsan = false;
#endif

namespace vesta::cpu {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Freed after main, when this thread's lists are gone already; a crash here fails the whole test program.
struct FreedAtExit {
  void* block = nullptr;
  ~FreedAtExit() { free(block, 100); }
} freed_at_exit;

TEST(Allocator, SmallClassesHoldTheRequestAndWasteAtMostAnEighth) {
  unsigned last = 0;
  for (size_t bytes = 0; bytes <= kMaxSmallBytes; ++bytes) {
    unsigned c = small_class(bytes);
    ASSERT_TRUE(c == last || c == last + 1) << bytes;
    last = c;
    size_t holds = kSmallClassBytes[c];
    ASSERT_GE(holds, bytes);
    ASSERT_EQ(holds % 64, 0u);
    ASSERT_TRUE(holds - bytes <= 64 || (holds - bytes) * 8 <= bytes) << bytes << " -> " << holds;
    ASSERT_EQ(size_class(bytes), c);
    ASSERT_EQ(class_bytes(size_class(bytes)), holds);
  }
  EXPECT_EQ(last, 63u);
}

TEST(Allocator, LargeClassesHoldTheRequestAndWasteAtMostAnEighth) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 100'000; ++i) {
    size_t bytes = std::max<size_t>(kMaxSmallBytes + 1, (random() >> 2) >> (random() % 46));
    size_t holds = large_class_bytes(bytes);
    ASSERT_GE(holds, bytes);
    ASSERT_LE(holds - bytes, bytes / 8);
    ASSERT_EQ(large_class(holds), large_class(bytes));
    ASSERT_LT(large_class(bytes), kLargeClasses);
    ASSERT_EQ(large_class(holds + 1), large_class(bytes) + 1);
  }
}

TEST(Allocator, BlocksAreAlignedWritableAndNeverOverlap) {
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  struct Block {
    unsigned char* data;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Block> live;
  auto check_and_free = [&](size_t i) {
    Block block = live[i];
    live[i] = live.back();
    live.pop_back();
    for (size_t k = 0; k < block.bytes; ++k)
      ASSERT_EQ(block.data[k], block.mark) << block.bytes << " at " << k;
    free(block.data, block.bytes);
  };
  for (int i = 0; i < 20'000; ++i) {
    if (live.size() > 400 || (!live.empty() && random() % 3 == 0)) {
      check_and_free(random() % live.size());
      continue;
    }
    // Mostly small, a few up to 256 KiB.
    size_t bytes = random() % (size_t{1} << (random() % 50 == 0 ? 18 : random() % 13));
    auto* data = static_cast<unsigned char*>(allocate(bytes));
    ASSERT_NE(data, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u) << bytes;
    auto mark = static_cast<unsigned char>(random());
    std::memset(data, mark, bytes);
    live.push_back({data, bytes, mark});
  }
  while (!live.empty()) check_and_free(live.size() - 1);
}

TEST(Allocator, AWholeBlockOfEachClassMayBeUsed) {
  for (unsigned c = 0; c < kSmallClasses; ++c) {
    auto small = static_cast<uint8_t>(c);
    std::vector<void*> blocks;
    for (int i = 0; i < 40; ++i) {
      blocks.push_back(allocate_class(small));
      std::memset(blocks.back(), i, class_bytes(small));
    }
    for (int i = 0; i < 40; ++i) {
      auto* bytes = static_cast<unsigned char*>(blocks[static_cast<size_t>(i)]);
      ASSERT_EQ(bytes[0], i);
      ASSERT_EQ(bytes[class_bytes(small) - 1], i);
    }
    for (void* block : blocks) free_class(block, small);
  }
}

TEST(Allocator, ZeroBytesGiveABlockAndNullMayBeFreed) {
  void* a = allocate(0);
  void* b = allocate(0);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a, b);
  free(a, 0);
  free(b, 0);
  free(nullptr, 0);
  free(nullptr, 100 * kMiB);
  free_class(nullptr, 3);
}

TEST(Allocator, StatisticsFollowAllocationAndFree) {
  MemoryStats before = memory_stats();
  void* small = allocate(100);
  void* medium = allocate(5000);
  void* large = allocate(3 * kMiB + 1);
  MemoryStats during = memory_stats();
  EXPECT_EQ(during.allocated - before.allocated, 128 + 5120 + large_class_bytes(3 * kMiB + 1));
  EXPECT_EQ(during.allocations - before.allocations, 3u);
  EXPECT_GE(during.reserved, during.allocated);
  EXPECT_GE(during.peak_allocated, during.allocated);
  EXPECT_GE(during.peak_reserved, during.reserved);
  free(small, 100);
  free(medium, 5000);
  free(large, 3 * kMiB + 1);
  EXPECT_EQ(memory_stats().allocated, before.allocated);
  EXPECT_EQ(memory_stats().allocations, during.allocations);
}

TEST(Allocator, PeaksCanBeStartedAgain) {
  void* block = allocate(40 * kMiB);
  free(block, 40 * kMiB);
  EXPECT_GE(memory_stats().peak_allocated, 40 * kMiB);
  reset_peak_memory_stats();
  EXPECT_LT(memory_stats().peak_allocated, 40 * kMiB);
  empty_cache();
  reset_peak_memory_stats();
  EXPECT_EQ(memory_stats().peak_reserved, memory_stats().reserved);
}

TEST(Allocator, AFreedBlockIsUsedAgain) {
  if (kPlain) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
  for (size_t bytes : {size_t{64}, size_t{5000}, size_t{60'000}, size_t{300'000}, size_t{5} << 20}) {
    void* first = allocate(bytes);
    free(first, bytes);
    void* second = allocate(bytes);
    EXPECT_EQ(first, second) << bytes;
    free(second, bytes);
  }
}

TEST(Allocator, RepeatedStepsOfATrainingLoopDoNotGoToTheSystem) {
  if (kPlain) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
  // 200 MiB of mixed activations, all freed at the end of each step, forwards and backwards.
  auto step = [] {
    std::vector<std::pair<void*, size_t>> live;
    for (int i = 0; i < 50; ++i)
      for (size_t bytes : {size_t{3} << 20, size_t{1} << 20, size_t{100} << 10, size_t{2000}})
        live.emplace_back(allocate(bytes), bytes);
    while (!live.empty()) {
      free(live.back().first, live.back().second);
      live.pop_back();
    }
  };
  step();
  uint64_t maps = memory_stats().maps;
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(memory_stats().maps, maps);
}

TEST(Allocator, TheCacheOfLargeBlocksIsBoundedByWhatWasInUse) {
  if (kPlain) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
  empty_cache();
  uint64_t peak = 0;
  // Each size is used once and never again: the worst case for a cache by size.
  for (int i = 0; i < 200; ++i) {
    size_t bytes = (size_t{1} << 20) * static_cast<size_t>(1 + i);
    void* block = allocate(bytes);
    peak = std::max(peak, large_bytes_in_use());
    free(block, bytes);
    // The earlier tests' peak is still in the window: at most ~230 MiB.
    ASSERT_LE(memory_stats().cached_large, std::max<uint64_t>(peak, 230 * kMiB) * 5 / 4) << i;
  }
  empty_cache();
  EXPECT_EQ(memory_stats().cached_large, 0u);
}

TEST(Allocator, EmptyCacheReturnsSmallAndLargeMemory) {
  if (kPlain) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
  empty_cache();
  uint64_t before = memory_stats().reserved;
  std::vector<void*> blocks;
  for (int i = 0; i < 3000; ++i) blocks.push_back(allocate(10'000));
  void* large = allocate(20 * kMiB);
  EXPECT_GE(memory_stats().reserved, before + 50 * kMiB);
  for (void* block : blocks) free(block, 10'000);
  free(large, 20 * kMiB);
  empty_cache();
  EXPECT_LE(memory_stats().reserved, before + 2 * kMiB);
}

TEST(Allocator, MemoryOfOneSmallSizeServesAnotherLater) {
  if (kPlain) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
  empty_cache();
  uint64_t start = memory_stats().reserved;
  for (size_t bytes : {64u, 128u, 192u, 256u, 320u, 512u, 640u, 1000u}) {
    std::vector<void*> blocks;
    for (size_t used = 0; used < 6 * kMiB; used += bytes) blocks.push_back(allocate(bytes));
    for (void* block : blocks) free(block, bytes);
    // 6 MiB of each of 8 sizes, one after the other, must not add up to 48.
    ASSERT_LE(memory_stats().reserved, start + 12 * kMiB) << bytes;
  }
}

TEST(Allocator, BlocksFreedByAnotherThreadComeBackIntoUse) {
  // A producer allocates, a consumer frees: without a way back, memory would grow with the number of blocks.
  struct Channel {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<unsigned char*, size_t>> blocks;
    bool done = false;
  } channel;
  uint64_t before = memory_stats().allocated;
  std::thread consumer([&] {
    std::unique_lock lock(channel.mutex);
    while (true) {
      channel.changed.wait(lock, [&] { return !channel.blocks.empty() || channel.done; });
      if (channel.blocks.empty()) return;
      auto [data, bytes] = channel.blocks.front();
      channel.blocks.pop_front();
      channel.changed.notify_all();
      lock.unlock();
      EXPECT_EQ(data[0], static_cast<unsigned char>(bytes));
      free(data, bytes);
      lock.lock();
    }
  });
  constexpr unsigned kSeed = 3;
  std::mt19937 random(kSeed);
  uint64_t reserved_early = 0;
  const int rounds = 30'000;
  for (int i = 0; i < rounds; ++i) {
    size_t bytes = 1 + random() % (i % 100 == 0 ? 200'000 : 4000);
    auto* data = static_cast<unsigned char*>(allocate(bytes));
    data[0] = static_cast<unsigned char>(bytes);
    std::unique_lock lock(channel.mutex);
    channel.changed.wait(lock, [&] { return channel.blocks.size() < 64; });
    channel.blocks.emplace_back(data, bytes);
    channel.changed.notify_all();
    if (i == rounds / 3) reserved_early = memory_stats().reserved;
  }
  {
    std::lock_guard lock(channel.mutex);
    channel.done = true;
    channel.changed.notify_all();
  }
  consumer.join();
  EXPECT_EQ(memory_stats().allocated, before);
  EXPECT_LE(memory_stats().reserved, reserved_early + 16 * kMiB) << "seed " << kSeed;
}

TEST(Allocator, AThousandShortThreadsLeaveMemoryFlat) {
  auto run = [](int threads) {
    for (int t = 0; t < threads; ++t)
      std::thread([t] {
        std::vector<std::pair<void*, size_t>> live;
        for (size_t i = 0; i < 60; ++i) {
          size_t bytes = 64 * (1 + (i * 37 + static_cast<size_t>(t)) % 900);
          live.emplace_back(allocate(bytes), bytes);
        }
        for (auto [block, bytes] : live) free(block, bytes);
      }).join();
  };
  uint64_t allocated = memory_stats().allocated;
  run(20);
  uint64_t reserved = memory_stats().reserved;
  run(1000);
  EXPECT_EQ(memory_stats().allocated, allocated);
  EXPECT_LE(memory_stats().reserved, reserved + 4 * kMiB);
}

TEST(Allocator, ManyThreadsExchangeBlocksWithoutLoss) {
  constexpr int kThreads = 4, kSlots = 256;
  struct Slot {
    std::mutex mutex;
    unsigned char* data = nullptr;
    size_t bytes = 0;
  };
  std::vector<Slot> slots(kSlots);
  uint64_t before = memory_stats().allocated;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(100 + t));
      for (int i = 0; i < 8000; ++i) {
        Slot& slot = slots[random() % kSlots];
        size_t bytes = 1 + random() % (random() % 40 == 0 ? 100'000 : 2000);
        auto* data = static_cast<unsigned char*>(allocate(bytes));
        std::memset(data, static_cast<int>(bytes & 0xff), bytes);
        {
          std::lock_guard lock(slot.mutex);
          std::swap(slot.data, data);
          std::swap(slot.bytes, bytes);
        }
        if (!data) continue;
        if (data[0] != (bytes & 0xff) || data[bytes - 1] != (bytes & 0xff))
          ADD_FAILURE() << "damaged, " << bytes;
        free(data, bytes);
        if (i % 1000 == 0) memory_stats();
        if (i % 3000 == 0) empty_cache();
      }
    });
  for (auto& thread : threads) thread.join();
  for (Slot& slot : slots) free(slot.data, slot.bytes);
  EXPECT_EQ(memory_stats().allocated, before);
}

// Its destructor runs after the allocator's own exit hook, which was registered later by the first
// allocation.
struct FreedByThreadLocal {
  void* block = nullptr;
  ~FreedByThreadLocal() {
    void* late = allocate(300);
    std::memset(late, 1, 300);
    free(late, 300);
    free(block, 200);
  }
};

TEST(Allocator, ThreadLocalObjectsMayFreeAfterTheThreadsListsAreGone) {
  uint64_t before = memory_stats().allocated;
  std::thread([] {
    static thread_local FreedByThreadLocal holder;
    holder.block = nullptr;  // constructed before the first allocation
    holder.block = allocate(200);
  }).join();
  EXPECT_EQ(memory_stats().allocated, before);
}

TEST(Allocator, AnImpossibleRequestThrowsOutOfMemoryWithTheSize) {
  for (size_t bytes : {~size_t{0}, (size_t{1} << 62) + 1, size_t{1} << 61}) {
    try {
      free(allocate(bytes), bytes);
      FAIL() << "nothing thrown for " << bytes;
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes) + " bytes requested"), std::string::npos)
          << error.what();
    }
  }
  void* block = allocate(1000);
  free(block, 1000);
}

struct LimitFor {
  explicit LimitFor(uint64_t bytes) { set_memory_limit(bytes); }
  ~LimitFor() { set_memory_limit(saved); }
  uint64_t saved = memory_limit();
};

TEST(Allocator, TheLimitIsNamedInTheErrorAndHoldsForLargeAndSmallBlocks) {
  empty_cache();
  LimitFor limit(memory_stats().reserved + 30 * kMiB);
  try {
    free(allocate(40 * kMiB), 40 * kMiB);
    FAIL() << "nothing thrown";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("limit " + std::to_string(memory_limit()) + " bytes"),
              std::string::npos)
        << error.what();
  }
  std::vector<void*> blocks;
  EXPECT_THROW(
      {
        for (int i = 0; i < 100'000; ++i) blocks.push_back(allocate(1000));
      },
      OutOfMemory);
  EXPECT_GT(blocks.size(), 20'000u);
  EXPECT_LE(memory_stats().reserved, memory_limit());
  for (void* block : blocks) free(block, 1000);
}

TEST(Allocator, CachedBlocksAreReleasedBeforeTheLimitIsReported) {
  empty_cache();
  LimitFor limit(memory_stats().reserved + 60 * kMiB);
  // Each size fits alone, and none fits beside the cached one before it.
  for (size_t mib : {32u, 40u, 48u, 36u, 44u}) {
    void* block = allocate(mib * kMiB);
    free(block, mib * kMiB);
  }
}

TEST(Allocator, AForkedChildMayAllocateWhileOtherThreadsOfTheParentDo) {
  if (kTsan || kPlain)
    GTEST_SKIP() << "the sanitizers' own allocators are not usable in a child of many threads";
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      std::vector<void*> blocks(200);
      while (!stop.load()) {
        for (void*& block : blocks) block = allocate(5000);
        for (void* block : blocks) free(block, 5000);
        free(allocate(200'000), 200'000);
      }
    });
  for (int round = 0; round < 20; ++round) {
    pid_t child = fork();
    if (child < 0) {
      ADD_FAILURE() << "fork failed";
      break;
    }
    if (child == 0) {
      alarm(20);  // a lock left behind becomes a failure
      for (size_t bytes : {100u, 5000u, 60'000u, 200'000u})
        for (int i = 0; i < 50; ++i) std::memset(allocate(bytes), 1, bytes);
      empty_cache();
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    if (HasFailure()) break;
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST(Allocator, ABlockMayBeFreedWhileStaticObjectsAreDestroyed) {
  freed_at_exit.block = allocate(100);
  EXPECT_NE(freed_at_exit.block, nullptr);
}

#if defined(VESTA_TEST_PLAIN)
TEST(AllocatorDeathTest, AddressSanitizerFindsUseAfterFreeAndOverrun) {
  for (size_t bytes : {size_t{100}, size_t{200'000}}) {
    EXPECT_DEATH(
        {
          auto* data = static_cast<volatile char*>(allocate(bytes));
          free(const_cast<char*>(data), bytes);
          data[0] = 1;
        },
        "heap-use-after-free");
    EXPECT_DEATH(
        {
          auto* data = static_cast<volatile char*>(allocate(bytes));
          data[bytes] = 1;
        },
        "heap-buffer-overflow");
  }
}
#endif

}  // namespace
}  // namespace vesta::cpu
