// Linux: waiting, cores, memory, threads. Files and processes are in linux_io.cpp.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/prim/prim.h"

namespace vesta::prim {

bool futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns) {
  timespec limit{};
  if (timeout_ns >= 0) {
    limit.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
  }
  long rc = syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected,
                    timeout_ns >= 0 ? &limit : nullptr, nullptr, 0);
  return rc == 0 || errno != ETIMEDOUT;
}

void futex_wake(const std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr,
          0);
}

int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

namespace {

// The text of a small file (/proc, /sys), empty if it cannot be read.
std::string small_file(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  char buffer[4096];
  while (text.size() < (1u << 20)) {
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return text;
}

// quota / period in cores, rounded up; 0 = no limit or not a number ("max", "-1").
int quota_cores(const std::string& quota, const std::string& period) {
  long long q = std::strtoll(quota.c_str(), nullptr, 10);
  long long p = std::strtoll(period.c_str(), nullptr, 10);
  if (q <= 0 || p <= 0) return 0;
  return static_cast<int>(std::min<long long>((q - 1) / p + 1, INT_MAX));
}

void keep_lower(int& best, int cores) {
  if (cores > 0 && (best == 0 || cores < best)) best = cores;
}

// The path of a cgroup as /proc/self/cgroup gives it; v2 has controller "" and hierarchy 0. False if not
// listed.
bool cgroup_path(const std::string& table, std::string_view controller, std::string* path) {
  size_t at = 0;
  while (at < table.size()) {
    size_t end = std::min(table.find('\n', at), table.size());
    std::string_view line(table.data() + at, end - at);
    at = end + 1;
    size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string names = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    bool match =
        controller.empty() ? names == ",," : names.find("," + std::string(controller) + ",") != names.npos;
    if (!match) continue;
    *path = std::string(line.substr(second + 1));
    return true;
  }
  return false;
}

// Every ancestor's limit holds too. Inside a container the path may not exist below the mount; the mount's
// root does.
template <class Limit>
int lowest_on_path(const std::string& mount, std::string path, Limit limit) {
  int best = 0;
  while (true) {
    if (path == "/") path.clear();
    keep_lower(best, limit(mount + path));
    if (path.empty()) return best;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace

int cgroup_cores(const std::string& root) {
  const std::string table = small_file(root + "/proc/self/cgroup");
  int best = 0;
  std::string path;
  if (cgroup_path(table, "", &path)) {
    auto limit = [](const std::string& folder) {
      std::string text = small_file(folder + "/cpu.max");  // "<quota|max> <period>"
      size_t space = text.find(' ');
      return space == std::string::npos ? 0 : quota_cores(text.substr(0, space), text.substr(space + 1));
    };
    keep_lower(best, lowest_on_path(root + "/sys/fs/cgroup", path, limit));
  }
  if (cgroup_path(table, "cpu", &path)) {
    auto limit = [](const std::string& folder) {
      return quota_cores(small_file(folder + "/cpu.cfs_quota_us"), small_file(folder + "/cpu.cfs_period_us"));
    };
    keep_lower(best, lowest_on_path(root + "/sys/fs/cgroup/cpu", path, limit));
    keep_lower(best, lowest_on_path(root + "/sys/fs/cgroup/cpu,cpuacct", path, limit));
  }
  return best;
}

int available_cores() {
  int cores = 0;
  // The kernel wants a mask at least as wide as its own; grow until it fits.
  for (int bits = 1024; bits <= (1 << 16) && cores == 0; bits *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(bits));
    if (!set) break;
    size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(bits));
    CPU_ZERO_S(bytes, set);
    if (sched_getaffinity(0, bytes, set) == 0) cores = CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
  }
  if (cores <= 0) cores = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  int quota = cgroup_cores();
  return quota > 0 ? std::min(cores, quota) : cores;
}

int current_cpu() { return sched_getcpu(); }

void avoid_cpu(int cpu) {
  constexpr int kBits = 1 << 16;
  cpu_set_t* set = CPU_ALLOC(kBits);
  if (!set) return;
  size_t bytes = CPU_ALLOC_SIZE(kBits);
  CPU_ZERO_S(bytes, set);
  if (cpu >= 0 && sched_getaffinity(getpid(), bytes, set) == 0) {
    CPU_CLR_S(static_cast<size_t>(cpu), bytes, set);
    if (CPU_COUNT_S(bytes, set) > 0) sched_setaffinity(0, bytes, set);
  }
  CPU_FREE(set);
}

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void* map_pages(size_t bytes, size_t alignment, bool huge) {
  // mmap aligns to pages only: map more, then cut both ends.
  size_t mapped = alignment > page_bytes() ? bytes + alignment : bytes;
  if (mapped < bytes) return nullptr;
  void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  uintptr_t from = reinterpret_cast<uintptr_t>(start);
  uintptr_t block = (from + alignment - 1) & ~(alignment - 1);
  size_t head = block - from;
  size_t tail = mapped - head - bytes;
  if (head) munmap(start, head);
  if (tail) munmap(reinterpret_cast<void*>(block + bytes), tail);
  if (huge) madvise(reinterpret_cast<void*>(block), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(block);
}

void discard_pages(void* pages, size_t bytes) { madvise(pages, bytes, MADV_DONTNEED); }

void unmap_pages(void* pages, size_t bytes) { munmap(pages, bytes); }

void at_fork(void (*prepare)(), void (*parent)(), void (*child)()) { pthread_atfork(prepare, parent, child); }

void set_thread_name(const char* name) {
  char cut[16] = {};
  std::strncpy(cut, name, 15);
  pthread_setname_np(pthread_self(), cut);
}

SignalBlock::SignalBlock() {
  static_assert(sizeof(sigset_t) <= sizeof saved_);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, reinterpret_cast<sigset_t*>(saved_));
}

SignalBlock::~SignalBlock() { pthread_sigmask(SIG_SETMASK, reinterpret_cast<sigset_t*>(saved_), nullptr); }

}  // namespace vesta::prim
