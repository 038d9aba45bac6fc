#pragma once
// What a Recorder gathers and a Profile reads. While it is being recorded, profile.cpp's lock protects it.
#include <deque>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "vesta/profiler.h"

namespace vesta::profiler {

struct Profile::Data {
  Options options;
  uint64_t number = 0;  // of the recording, counted from 1
  std::vector<Event> events;
  int64_t start_ns = 0, wall_ns = 0;

  int open(std::string_view name, std::string shapes);
  void close(int event, int64_t bytes);
  void close_innermost(int thread);
  void close_all();
  void fold_peak();
  std::string_view own_name(std::string_view name);
  int thread_index();  // of the caller

  struct Level {
    int64_t begin, peak;  // host memory in use
  };
  Level whole{};  // of the recording itself
  struct Thread {
    int innermost = -1;         // the open event
    std::vector<Level> levels;  // of each open event
  };
  std::vector<Thread> threads;
  // The system may give an ended thread's id to another: the two share a row then.
  std::unordered_map<std::thread::id, int> thread_of;
  std::deque<std::string> names;  // of ranges and nodes; operators own theirs
  std::unordered_map<std::string_view, std::string_view> own_names;
};

}  // namespace vesta::profiler
