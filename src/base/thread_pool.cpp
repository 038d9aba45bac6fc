// The pool behind parallel_for: each thread takes the chunks of its own contiguous share of the range in order, so that
// its reads are streams and come back to the same core's cache in the next region; then it helps with the other shares.
// Workers spin ~30 us and then sleep on a futex. One region runs at a time, and a caller that finds the pool taken
// (another user thread is in a region) or that is itself inside a region runs all its chunks inline.
#include "base/thread_pool.h"

#include <vesta/error.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "base/prim/prim.h"

namespace vesta {
namespace {

constexpr int64_t kSpinNs = 30'000;
constexpr int kMaxThreads = 4096;

// State word of the pool. Open: a region runs and workers may join. Waiting: the caller sleeps until Active
// is 0.
constexpr uint32_t kOpen = 1u << 31;
constexpr uint32_t kWaiting = 1u << 30;
constexpr uint32_t kLimitShift = 15;
constexpr uint32_t kCountMask =
    (1u << kLimitShift) - 1;  // Active in the low bits, the most workers above them
static_assert(kMaxThreads <= static_cast<int>(kCountMask));

struct ThreadState {
  int index = 0;
  bool in_region = false;
};
// initial-exec: a parallel_for must not pay a call into the dynamic linker.
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadState this_thread;

// Spins until done() or until `ns` have passed; true if done.
template <class Done>
bool spin(int64_t ns, Done done) {
  int64_t deadline = 0;
  while (true) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      prim::cpu_relax();
    }
    int64_t now = prim::monotonic_ns();
    if (deadline == 0) deadline = now + ns;
    if (now >= deadline) return done();
  }
}

class Pool {
 public:
  // Takes the pool unless a region runs.
  bool try_acquire() {
    return !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire);
  }
  void release() { taken_.store(false, std::memory_order_release); }

  // The rest is for the thread that holds the pool.
  void resize(int workers);
  int workers() const { return static_cast<int>(threads_.size()); }
  void run(int64_t begin, int64_t end, int64_t grain, int64_t chunks,
           FunctionRef<void(int64_t, int64_t)> body);

  // Threads that run regions inline because the pool was taken: they are runnable too, so spinning must count
  // them.
  std::atomic<int> inline_callers{0};

 private:
  struct Job {
    FunctionRef<void(int64_t, int64_t)>* body = nullptr;
    int64_t begin = 0, end = 0, grain = 1, chunks = 0;
    int shares = 1;
  };
  // A thread's share: chunks [next, end).
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  static constexpr int kMaxShares = 64;

  void work(int index, uint32_t seen);
  bool join();
  void leave();
  void run_chunks(int index);
  void wait_until_idle();
  bool may_spin() const {
    return live_.load(std::memory_order_relaxed) + inline_callers.load(std::memory_order_relaxed) <= cores_;
  }

  // Written by the caller only while state_ is not open and no worker is active; read by workers after
  // join().
  Job job_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
  const int cores_ = prim::available_cores();
  const int ranks_ = std::max(1, config().local_world_size);
  std::atomic<int> live_{1};         // runnable threads of all ranks on this host, as far as known
  std::atomic<int> keep_{0};         // workers with an index above it end
  std::atomic<int> caller_cpu_{-1};  // where the last region was started

  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};  // changes with each region; idle workers wait on it
  std::atomic<int> sleepers_{0};
  Share shares_[kMaxShares];  // with more threads several begin at the same one
  std::atomic<bool> failed_{false};
  alignas(64) std::atomic<bool> taken_{false};
};

void Pool::resize(int workers) {
  if (workers == this->workers()) return;
  if (workers < this->workers()) {
    keep_.store(workers, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    prim::futex_wake(epoch_, kMaxThreads);
    while (this->workers() > workers) {
      threads_.back().join();
      threads_.pop_back();
    }
  } else {
    keep_.store(workers, std::memory_order_relaxed);
    prim::SignalBlock no_signals;
    threads_.reserve(static_cast<size_t>(workers));
    while (this->workers() < workers) {
      int index = this->workers() + 1;
      uint32_t seen = epoch_.load(std::memory_order_relaxed);
      try {
        threads_.emplace_back([this, index, seen] { work(index, seen); });
      } catch (const std::system_error&) {
        break;  // the system has no more threads for us: fewer workers do the same work
      }
    }
  }
  live_.store((this->workers() + 1) * ranks_, std::memory_order_relaxed);
  VESTA_LOG(Pool, Info, "workers: ", this->workers(), may_spin() ? ", spinning" : ", not spinning");
}

bool Pool::join() {
  uint32_t state = state_.load(std::memory_order_relaxed);
  while ((state & kOpen) && (state & kCountMask) < (state >> kLimitShift & kCountMask)) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  }
  return false;
}

void Pool::leave() {
  uint32_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kCountMask) == 1 && (before & kWaiting)) prim::futex_wake(state_, 1);
}

void Pool::run_chunks(int index) {
  const Job& job = job_;
  for (int k = 0; k < job.shares; ++k) {
    Share& share = shares_[(index + k) % job.shares];
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      if (failed_.load(std::memory_order_relaxed)) return;
      int64_t chunk = share.next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= share.end) break;
      int64_t from = job.begin + chunk * job.grain;
      int64_t to = chunk + 1 == job.chunks ? job.end : from + job.grain;
      try {
        (*job.body)(from, to);
      } catch (...) {
        if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
        return;
      }
    }
  }
}

void Pool::work(int index, uint32_t seen) {
  this_thread.index = index;
  this_thread.in_region = true;  // whatever a body calls runs inline
  char name[16];
  std::snprintf(name, sizeof name, "vesta-%d", index);
  prim::set_thread_name(name);
  int avoided = -1;
  while (true) {
    auto changed = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
    bool spun = may_spin() ? spin(kSpinNs, changed) : changed();
    if (!spun) {
      // A sleeper is often woken on the caller's core, where it waits until the caller is done: with as many threads
      // as cores (more cores: the kernel finds an idle one) keep away from there.
      int cpu = caller_cpu_.load(std::memory_order_relaxed);
      if (cpu != avoided && keep_.load(std::memory_order_relaxed) + 1 >= cores_)
        prim::avoid_cpu(avoided = cpu);
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      while (!changed()) prim::futex_wait(epoch_, seen);
      sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
    seen = epoch_.load(std::memory_order_acquire);
    if (index > keep_.load(std::memory_order_relaxed)) return;
    if (!join()) continue;
    run_chunks(index);
    leave();
  }
}

void Pool::run(int64_t begin, int64_t end, int64_t grain, int64_t chunks,
               FunctionRef<void(int64_t, int64_t)> body) {
  const uint32_t limit = static_cast<uint32_t>(std::min<int64_t>(workers(), chunks - 1));
  const int shares = std::min(static_cast<int>(limit) + 1, kMaxShares);
  job_ = {&body, begin, end, grain, chunks, shares};
  // chunks / shares each, one more for the first few: products would overflow for ranges near 2^63.
  const int64_t each = chunks / shares, longer = chunks % shares;
  for (int64_t k = 0, first = 0; k < shares; ++k) {
    shares_[k].next.store(first, std::memory_order_relaxed);
    shares_[k].end = first += each + (k < longer);
  }
  caller_cpu_.store(prim::current_cpu(), std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  state_.store(kOpen | limit << kLimitShift, std::memory_order_release);
  // seq_cst pairs with the worker's sleepers_ increment: either it sees the new epoch or we see the sleeper.
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) prim::futex_wake(epoch_, static_cast<int>(limit));

  this_thread.in_region = true;
  run_chunks(0);
  this_thread.in_region = false;

  // Close: a worker that wakes only now must not join, so a short region never waits for a sleeper.
  uint32_t state = state_.fetch_and(kCountMask, std::memory_order_acq_rel);
  if ((state & kCountMask) != 0) wait_until_idle();
  if (failed_.load(std::memory_order_relaxed)) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Pool::wait_until_idle() {
  auto idle = [&] { return (state_.load(std::memory_order_acquire) & kCountMask) == 0; };
  if (may_spin() && spin(kSpinNs, idle)) return;
  uint32_t state = state_.fetch_or(kWaiting, std::memory_order_acq_rel) | kWaiting;
  while ((state & kCountMask) != 0) {
    prim::futex_wait(state_, state);
    state = state_.load(std::memory_order_acquire);
  }
}

// Leaked on purpose: at exit, workers may still look at it while static destructors run. Null until the first
// region and again in a forked child, where the parent's workers do not exist.
constinit std::atomic<Pool*> the_pool{nullptr};
constinit std::atomic<int> wanted_threads{0};  // 0 = not decided yet

Pool& pool() {
  Pool* current = the_pool.load(std::memory_order_acquire);
  if (current) return *current;
  // A plain flag, not a static's guard: a guard held by another thread at fork() would stay locked in the
  // child.
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) {
    prim::at_fork(nullptr, nullptr, [] {
      the_pool.store(nullptr, std::memory_order_relaxed);
      // The forking thread may have been a worker or inside a region; in the child it is an ordinary thread.
      this_thread = {};
    });
  }
  auto fresh = std::make_unique<Pool>();
  if (the_pool.compare_exchange_strong(current, fresh.get(), std::memory_order_acq_rel))
    return *fresh.release();
  return *current;
}

int default_threads() {
  const Config& settings = config();
  if (settings.num_threads) return settings.num_threads;
  if (settings.omp_num_threads) return settings.omp_num_threads;
  return std::max(1, prim::available_cores() / std::max(1, settings.local_world_size));
}

void run_inline(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  while (end - begin > grain) {
    body(begin, begin + grain);
    begin += grain;
  }
  body(begin, end);
}

}  // namespace

int num_threads() {
  int n = wanted_threads.load(std::memory_order_relaxed);
  if (n > 0) return n;
  int decided = default_threads();
  // set_num_threads may have won in the meantime; its value stays.
  return wanted_threads.compare_exchange_strong(n, decided, std::memory_order_relaxed) ? decided : n;
}

void set_num_threads(int n) {
  VESTA_CHECK(n >= 1 && n <= kMaxThreads, "set_num_threads: expected a number in [1, ", kMaxThreads,
              "], got ", n);
  wanted_threads.store(n, std::memory_order_relaxed);
}

int thread_index() { return this_thread.index; }

void parallel_for(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (begin >= end) return;
  VESTA_CHECK(grain >= 1, "parallel_for: expected a grain >= 1, got ", grain);
  int64_t length;
  VESTA_CHECK(!__builtin_sub_overflow(end, begin, &length), "parallel_for: the range [", begin, ", ", end,
              ") is longer than 2^63 - 1");
  if (length <= grain) return body(begin, end);
  if (this_thread.in_region) return run_inline(begin, end, grain, body);
  const int wanted = num_threads();
  // Also with one thread the pool is looked at: workers of an earlier, larger setting must end.
  if (wanted == 1 && !the_pool.load(std::memory_order_acquire)) return run_inline(begin, end, grain, body);
  Pool& shared = pool();
  if (!shared.try_acquire()) {
    shared.inline_callers.fetch_add(1, std::memory_order_relaxed);
    struct Leave {
      Pool& pool;
      ~Leave() { pool.inline_callers.fetch_sub(1, std::memory_order_relaxed); }
    } leave{shared};
    return run_inline(begin, end, grain, body);
  }
  struct Release {
    Pool& pool;
    ~Release() { pool.release(); }
  } release{shared};
  shared.resize(wanted - 1);
  if (shared.workers() == 0) return run_inline(begin, end, grain, body);
  shared.run(begin, end, grain, (length - 1) / grain + 1, body);
}

}  // namespace vesta
