// The system layer: quota of cgroups (v1, v2, containers), waiting with a limit, aligned pages.
#include "base/prim/prim.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

namespace vesta::prim {
namespace {

namespace fs = std::filesystem;

// Lays out files below a temporary root and asks for the quota.
int quota(const std::map<std::string, std::string>& files) {
  std::string root = (fs::temp_directory_path() / "vesta_prim_XXXXXX").string();
  EXPECT_NE(mkdtemp(root.data()), nullptr);
  for (auto& [name, text] : files) {
    fs::create_directories(fs::path(root + name).parent_path());
    std::ofstream(root + name) << text;
  }
  int cores = cgroup_cores(root);
  fs::remove_all(root);
  return cores;
}

TEST(CgroupCores, NoFilesOrNoLimitMeanZero) {
  EXPECT_EQ(quota({}), 0);
  EXPECT_EQ(quota({{"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"}}), 0);
  EXPECT_EQ(quota({{"/proc/self/cgroup", "nonsense\n:\n"}}), 0);
}

TEST(CgroupCores, AQuotaIsRoundedUp) {
  EXPECT_EQ(quota({{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "200000 100000\n"}}), 2);
  EXPECT_EQ(quota({{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"}}), 2);
  EXPECT_EQ(quota({{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "1000 100000\n"}}), 1);
}

TEST(CgroupCores, TheLowestLimitOfAllAncestorsHolds) {
  EXPECT_EQ(quota({{"/proc/self/cgroup", "0::/a/b/c\n"},
                   {"/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n"},
                   {"/sys/fs/cgroup/a/cpu.max", "300000 100000\n"}}),
            3);
}

TEST(CgroupCores, InAContainerTheMountsRootHolds) {
  EXPECT_EQ(
      quota({{"/proc/self/cgroup", "0::/kubepods/pod1/x\n"}, {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}}),
      4);
}

TEST(CgroupCores, VersionOneIsRead) {
  EXPECT_EQ(quota({{"/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/a\n0::/\n"},
                   {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "250000\n"},
                   {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"}}),
            3);
  EXPECT_EQ(quota({{"/proc/self/cgroup", "4:cpu,cpuacct:/a\n"},
                   {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"},
                   {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"}}),
            0);
  // Only the exact controller counts: cpuset is another one.
  EXPECT_EQ(quota({{"/proc/self/cgroup", "4:cpuset:/a\n"},
                   {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "250000\n"},
                   {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"}}),
            0);
}

TEST(AvailableCores, TheAffinityOfTheThreadIsRespected) {
  EXPECT_GE(available_cores(), 1);
  std::thread([] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(available_cores(), 1);
  }).join();
}

TEST(Futex, AWaitEndsAtItsLimitAtAChangedWordAndWhenWoken) {
  std::atomic<uint32_t> word{1};
  int64_t start = monotonic_ns();
  EXPECT_FALSE(futex_wait(word, 1, 2'000'000));
  EXPECT_GE(monotonic_ns() - start, 2'000'000);
  EXPECT_TRUE(futex_wait(word, 0)) << "a changed word returns at once";
  std::thread waker([&] {
    word.store(2);
    futex_wake(word, 1);
  });
  while (word.load() == 1) futex_wait(word, 1);
  waker.join();
}

TEST(Pages, AreAlignedZeroedAndZeroAgainAfterDiscard) {
  for (size_t alignment : {page_bytes(), size_t{1} << 20, kHugePageBytes}) {
    constexpr size_t kBytes = size_t{3} << 20;
    auto* data = static_cast<unsigned char*>(map_pages(kBytes, alignment, alignment == kHugePageBytes));
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % alignment, 0u);
    EXPECT_EQ(data[0] | data[kBytes - 1], 0);
    std::memset(data, 1, kBytes);
    discard_pages(data, kBytes);
    EXPECT_EQ(data[0] | data[kBytes / 2] | data[kBytes - 1], 0);
    unmap_pages(data, kBytes);
  }
  EXPECT_EQ(map_pages(~size_t{0} - page_bytes() + 1, page_bytes(), false), nullptr);
  EXPECT_EQ(map_pages(~size_t{0} - page_bytes() + 1, kHugePageBytes, false), nullptr);
}

}  // namespace
}  // namespace vesta::prim
