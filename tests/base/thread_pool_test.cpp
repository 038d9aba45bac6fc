// parallel_for: coverage of the range, fixed chunking, exceptions, nesting, concurrent callers, resizing,
// fork.
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vesta/error.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/config.h"

namespace vesta {
namespace {

// Restores the number of threads that a test changes.
class ThreadPool : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(saved_); }
  int saved_ = num_threads();
};

std::vector<std::pair<int64_t, int64_t>> chunks_of(int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> seen;
  parallel_for(begin, end, grain, [&](int64_t from, int64_t to) {
    std::lock_guard lock(mutex);
    seen.emplace_back(from, to);
  });
  std::sort(seen.begin(), seen.end());
  return seen;
}

TEST_F(ThreadPool, EveryIndexIsVisitedOnceForManyRangesAndGrains) {
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    for (int64_t begin : {int64_t{0}, int64_t{-5}, int64_t{1000}})
      for (int64_t length : {0, 1, 2, 3, 16, 17, 1000})
        for (int64_t grain : {1, 2, 5, 16, 2000}) {
          std::vector<std::atomic<int>> hits(static_cast<size_t>(length));
          parallel_for(begin, begin + length, grain, [&](int64_t from, int64_t to) {
            for (int64_t i = from; i < to; ++i) hits[static_cast<size_t>(i - begin)].fetch_add(1);
          });
          for (auto& hit : hits)
            ASSERT_EQ(hit.load(), 1) << threads << " " << begin << " " << length << " " << grain;
        }
  }
}

TEST_F(ThreadPool, ChunksDependOnTheGrainAndNotOnTheNumberOfThreads) {
  set_num_threads(1);
  auto expected = chunks_of(3, 1003, 37);
  ASSERT_EQ(expected.size(), 28u);
  EXPECT_EQ(expected[0], (std::pair<int64_t, int64_t>(3, 40)));
  EXPECT_EQ(expected.back(), (std::pair<int64_t, int64_t>(1002, 1003)));
  for (int threads : {2, 4, 1}) {
    set_num_threads(threads);
    EXPECT_EQ(chunks_of(3, 1003, 37), expected) << threads;
  }
}

TEST_F(ThreadPool, AnEmptyOrReversedRangeCallsNothing) {
  set_num_threads(2);
  auto fail = [](int64_t, int64_t) { FAIL(); };
  parallel_for(5, 5, 1, fail);
  parallel_for(5, 2, 1, fail);
}

TEST_F(ThreadPool, WrongGrainsRangesAndThreadCountsAreRejectedWithTheValue) {
  auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const ValueError& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  auto nothing = [](int64_t, int64_t) {};
  EXPECT_EQ(message([&] { parallel_for(0, 9, 0, nothing); }), "parallel_for: expected a grain >= 1, got 0");
  EXPECT_EQ(message([&] { set_num_threads(0); }), "set_num_threads: expected a number in [1, 4096], got 0");
  int64_t low = std::numeric_limits<int64_t>::min();
  EXPECT_NE(message([&] { parallel_for(low, 9, 1, nothing); }).find("longer than 2^63 - 1"),
            std::string::npos);
}

TEST_F(ThreadPool, RangesAtTheEndsOfInt64Work) {
  set_num_threads(3);
  const int64_t high = std::numeric_limits<int64_t>::max(), low = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(chunks_of(high - 5, high, 2), (std::vector<std::pair<int64_t, int64_t>>{
                                              {high - 5, high - 3}, {high - 3, high - 1}, {high - 1, high}}));
  EXPECT_EQ(chunks_of(low, low + 3, 2),
            (std::vector<std::pair<int64_t, int64_t>>{{low, low + 2}, {low + 2, low + 3}}));
  EXPECT_EQ(chunks_of(0, high, high / 2 + 1).size(), 2u);
}

TEST_F(ThreadPool, TwoThreadsReallyRunAtTheSameTime) {
  set_num_threads(2);
  // Both chunks wait for each other, so one thread alone would never get through.
  std::atomic<int> arrived{0};
  std::set<int> indices;
  std::mutex mutex;
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    arrived.fetch_add(1);
    while (arrived.load() < 2) std::this_thread::yield();
    std::lock_guard lock(mutex);
    indices.insert(thread_index());
  });
  EXPECT_EQ(indices, (std::set<int>{0, 1}));
  EXPECT_EQ(thread_index(), 0);
}

TEST_F(ThreadPool, ThreadIndicesStayBelowTheNumberOfThreads) {
  for (int threads : {5, 2, 3}) {
    set_num_threads(threads);
    std::atomic<bool> good{true};
    parallel_for(0, 500, 1, [&](int64_t, int64_t) {
      if (thread_index() < 0 || thread_index() >= threads) good = false;
    });
    EXPECT_TRUE(good) << threads;
  }
}

TEST_F(ThreadPool, OneThreadStartsNoWorkers) {
  set_num_threads(1);
  auto self = std::this_thread::get_id();
  parallel_for(0, 100, 1, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
}

TEST_F(ThreadPool, AnExceptionReachesTheCallerAndStopsTheHandOut) {
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    std::atomic<int64_t> ran{0};
    try {
      parallel_for(0, 1'000'000, 1, [&](int64_t from, int64_t) {
        ran.fetch_add(1);
        if (from == 10) throw std::runtime_error("chunk 10");
      });
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "chunk 10");
    }
    EXPECT_LT(ran.load(), 1'000'000) << threads;
    // The pool is usable again.
    EXPECT_EQ(chunks_of(0, 10, 3).size(), 4u);
  }
}

TEST_F(ThreadPool, WhenAllChunksThrowExactlyOneExceptionArrives) {
  set_num_threads(4);
  for (int round = 0; round < 200; ++round) {
    int caught = 0;
    try {
      parallel_for(0, 64, 1, [&](int64_t from, int64_t) { throw std::runtime_error(std::to_string(from)); });
    } catch (const std::runtime_error&) {
      ++caught;
    }
    ASSERT_EQ(caught, 1);
  }
}

TEST_F(ThreadPool, NestedCallsRunInlineOnTheSameThreadWithTheSameIndex) {
  set_num_threads(3);
  std::atomic<int64_t> sum{0};
  std::atomic<bool> same{true};
  parallel_for(0, 8, 1, [&](int64_t outer, int64_t) {
    auto self = std::this_thread::get_id();
    int index = thread_index();
    parallel_for(0, 100, 7, [&](int64_t from, int64_t to) {
      if (std::this_thread::get_id() != self || thread_index() != index) same = false;
      sum.fetch_add((to - from) * (outer + 1));
    });
  });
  EXPECT_TRUE(same);
  EXPECT_EQ(sum.load(), 3600);
}

TEST_F(ThreadPool, ManyUserThreadsMayCallAtTheSameTime) {
  set_num_threads(3);
  constexpr int kCallers = 6, kRounds = 300;
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c)
    callers.emplace_back([&, c] {
      for (int round = 0; round < kRounds; ++round) {
        std::atomic<int64_t> sum{0};
        bool threw = false;
        try {
          parallel_for(0, 97, 4, [&](int64_t from, int64_t to) {
            for (int64_t i = from; i < to; ++i) sum.fetch_add(i, std::memory_order_relaxed);
            if (c == 0 && from == 48) throw std::runtime_error("mine");
          });
        } catch (const std::runtime_error&) {
          threw = true;
        }
        if (threw != (c == 0)) wrong.fetch_add(1);
        if (c != 0 && sum.load() != 97 * 96 / 2) wrong.fetch_add(1);
      }
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(ThreadPool, ResizingWhileOthersCallLosesNoWork) {
  std::atomic<bool> stop{false};
  std::thread resizer([&] {
    for (int n = 1; !stop.load(); n = n % 5 + 1) {
      set_num_threads(n);
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < 300; ++round) {
    std::atomic<int64_t> count{0};
    parallel_for(0, 50, 1, [&](int64_t, int64_t) { count.fetch_add(1); });
    EXPECT_EQ(count.load(), 50);
  }
  stop = true;
  resizer.join();
}

TEST_F(ThreadPool, WorkersThatFellAsleepWakeUpForTheNextRegion) {
  set_num_threads(2);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> arrived{0};
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      arrived.fetch_add(1);
      while (arrived.load() < 2) std::this_thread::yield();
    });
    // Longer than the spin limit (30 us): the worker is asleep at the next round in most rounds.
    usleep(300);
  }
}

#if !defined(__SANITIZE_THREAD__)  // TSan does not follow threads started in a forked child
TEST_F(ThreadPool, AForkedChildStartsItsOwnWorkers) {
  set_num_threads(2);
  chunks_of(0, 10, 1);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a hang becomes a failure
    std::atomic<int> arrived{0};
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      arrived.fetch_add(1);
      while (arrived.load() < 2) std::this_thread::yield();
    });
    _exit(arrived.load() == 2 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(chunks_of(0, 10, 1).size(), 10u);
}
#endif

}  // namespace
}  // namespace vesta
