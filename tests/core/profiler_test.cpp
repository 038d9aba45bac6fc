// The profiler: nesting, counts, memory, the table and the trace.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/thread_pool.h"
#include "core/core_testing.h"
#include "vesta/autograd.h"
#include "vesta/profiler.h"

namespace vesta {
namespace {

using namespace core_testing;

const profiler::Summary* find(const std::vector<profiler::Summary>& list, const std::string& name) {
  for (auto& s : list)
    if (s.name == name) return &s;
  return nullptr;
}

TEST(Profiler, counts_calls_and_nests_what_operators_and_backward_call) {
  Tensor x = randn({64, 64}).requires_grad_();
  profiler::Profile p = profiler::record([&] {
    profiler::Range range("step");
    for (int i = 0; i < 3; ++i) x.mm(x).sum().backward();
  });
  auto ops = p.by_op();
  ASSERT_TRUE(find(ops, "mm"));
  EXPECT_EQ(find(ops, "mm")->calls, 9);  // three forward, two for each backward
  ASSERT_TRUE(find(ops, "MmBackward"));
  EXPECT_EQ(find(ops, "MmBackward")->calls, 3);
  const auto* step = find(ops, "step");
  ASSERT_TRUE(step);
  int64_t self = 0;
  for (auto& s : ops) {
    EXPECT_GE(s.self_ns, 0) << s.name;
    EXPECT_LE(s.self_ns, s.total_ns) << s.name;
    self += s.self_ns;
  }
  EXPECT_EQ(self, step->total_ns);  // every event lies inside the range
  EXPECT_LE(step->total_ns, p.wall_ns());
  for (auto& e : p.events()) {
    EXPECT_LE(e.begin_ns, e.end_ns);
    if (e.parent < 0) continue;
    EXPECT_LE(p.events()[size_t(e.parent)].begin_ns, e.begin_ns);
    EXPECT_GE(p.events()[size_t(e.parent)].end_ns, e.end_ns);
  }
}

TEST(Profiler, gives_bytes_of_results_and_the_memory_peak_of_each_operator) {
  constexpr int64_t kElements = 1 << 20;
  profiler::Profile p = profiler::record([&] {
    Tensor a = zeros({kElements});
    Tensor b = a + a;
    {
      profiler::Range range("two temporaries");
      Tensor c = (b * 2).exp_() * 3;
    }
  });
  auto ops = p.by_op();
  EXPECT_EQ(find(ops, "add.Tensor")->bytes, kElements * 4);
  EXPECT_GE(find(ops, "add.Tensor")->peak_bytes, kElements * 4);
  EXPECT_LT(find(ops, "add.Tensor")->peak_bytes, kElements * 5);
  EXPECT_GE(find(ops, "two temporaries")->peak_bytes, kElements * 8);
  EXPECT_LT(find(ops, "two temporaries")->peak_bytes, kElements * 10);
  EXPECT_GE(p.peak_bytes(), kElements * 16);
}

TEST(Profiler, table_and_chrome_trace_hold_the_operators) {
  profiler::Recorder recorder({.shapes = true});
  Tensor y = randn({8, 16}).mm(randn({16, 4}));
  profiler::Profile p = recorder.stop();
  std::string table = p.table(10, true);
  EXPECT_NE(table.find("mm"), std::string::npos);
  EXPECT_NE(table.find("[8, 16], [16, 4]"), std::string::npos) << table;
  std::string path = (std::filesystem::temp_directory_path() / "vesta_profiler_test.json").string();
  p.write_chrome_trace(path);
  auto json = nlohmann::json::parse(read_all(path));
  std::filesystem::remove(path);
  bool found = false;
  for (auto& e : json["traceEvents"])
    if (e["name"] == "mm") {
      found = true;
      EXPECT_EQ(e["ph"], "X");
      EXPECT_GE(e["dur"].get<double>(), 0);
      EXPECT_EQ(e["args"]["result_bytes"], 8 * 4 * 4);
    }
  EXPECT_TRUE(found);
  EXPECT_THROW(p.write_chrome_trace("/no/such/folder/trace.json"), IoError);
}

TEST(Profiler, survives_errors_and_refuses_a_second_recorder) {
  profiler::Recorder recorder;
  EXPECT_THROW(profiler::Recorder second, ValueError);
  EXPECT_THROW(randn({2, 3}).mm(randn({2, 3})), ValueError);
  Tensor y = ones({2}) + 1;
  profiler::Profile p = recorder.stop();
  EXPECT_EQ(find(p.by_op(), "mm")->calls, 1);
  for (auto& e : p.events()) EXPECT_GE(e.end_ns, e.begin_ns);
  EXPECT_THROW(recorder.stop(), ValueError);
  EXPECT_EQ(profiler::record([] {}).events().size(), 0u);
}

TEST(Profiler, sees_the_operators_of_other_threads_each_nested_in_its_own) {
  constexpr int kThreads = 4, kSteps = 50;
  std::atomic<int> ready = 0;
  std::atomic<bool> go = false, opened = false, stop = false;
  std::vector<std::thread> early;  // there before the recording begins, as a loader's workers are
  for (int t = 0; t < kThreads; ++t)
    early.emplace_back([&] {
      ++ready;
      while (!go) std::this_thread::yield();
      for (int i = 0; i < kSteps; ++i) {
        profiler::Range range("worker");
        Tensor x = ones({8, 8}).requires_grad_();
        x.mm(x).sum().backward();
      }
    });
  std::thread late_to_end([&] {
    while (!go) std::this_thread::yield();
    profiler::Range range("unfinished");
    opened = true;
    while (!stop) std::this_thread::yield();
    ones({2}) + 1;  // after the recording
  });
  while (ready < kThreads) std::this_thread::yield();
  profiler::Recorder recorder;
  go = true;
  Tensor y = ones({4}) * 2;
  for (auto& t : early) t.join();
  std::thread([] { ones({4}).exp(); }).join();  // may get the number of a thread that has ended
  while (!opened) std::this_thread::yield();
  profiler::Profile p = recorder.stop();
  stop = true;
  late_to_end.join();

  EXPECT_GE(p.num_threads(), kThreads + 2);
  auto ops = p.by_op();
  EXPECT_EQ(find(ops, "worker")->calls, kThreads * kSteps);
  EXPECT_EQ(find(ops, "mm")->calls, kThreads * kSteps * 3);
  EXPECT_EQ(find(ops, "MmBackward")->calls, kThreads * kSteps);
  EXPECT_EQ(find(ops, "exp")->calls, 1);
  EXPECT_FALSE(find(ops, "add.Tensor"));
  std::set<int> threads;
  for (size_t i = 0; i < p.events().size(); ++i) {
    auto& e = p.events()[i];
    EXPECT_LE(e.begin_ns, e.end_ns);
    EXPECT_GE(e.peak_bytes, 0);
    EXPECT_LE(p.events()[i ? i - 1 : 0].begin_ns, e.begin_ns);
    threads.insert(e.thread);
    EXPECT_TRUE(e.thread == 0 || !e.name.starts_with("mul")) << e.name;
    EXPECT_TRUE(e.thread != 0 || (e.name != "worker" && e.name != "exp")) << e.name;
    if (e.parent < 0) continue;
    auto& parent = p.events()[size_t(e.parent)];
    EXPECT_EQ(parent.thread, e.thread);
    EXPECT_LE(parent.begin_ns, e.begin_ns);
    EXPECT_GE(parent.end_ns, e.end_ns);
  }
  EXPECT_EQ(int(threads.size()), p.num_threads());
  EXPECT_NE(p.table().find("threads"), std::string::npos);

  std::string path = (std::filesystem::temp_directory_path() / "vesta_profiler_threads.json").string();
  p.write_chrome_trace(path);
  auto json = nlohmann::json::parse(read_all(path));
  std::filesystem::remove(path);
  std::set<int> rows, named;
  for (auto& e : json["traceEvents"]) (e["ph"] == "M" ? named : rows).insert(e["tid"].get<int>());
  EXPECT_EQ(rows.size(), threads.size());
  EXPECT_EQ(rows, named);
}

TEST(Profiler, sees_operators_called_from_the_pool) {
  profiler::Profile p = profiler::record([] {
    parallel_for(0, 64, 1, [](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ones({16}).cos();
    });
  });
  EXPECT_EQ(find(p.by_op(), "cos")->calls, 64);
}

TEST(Profiler, a_range_outlives_its_recording_and_does_not_end_an_event_of_the_next) {
  std::optional<profiler::Range> range;
  {
    profiler::Recorder recorder;
    range.emplace("first");
    recorder.stop();
  }
  profiler::Recorder recorder;
  profiler::Range outer("outer");
  range.reset();
  Tensor x = ones({2}).cos();
  auto events = recorder.stop();
  for (auto& e : events.events()) EXPECT_TRUE(e.name != "cos" || e.parent == 0);
  EXPECT_EQ(find(events.by_op(), "outer")->calls, 1);
}

}  // namespace
}  // namespace vesta
