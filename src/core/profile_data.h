#pragma once
// What a Recorder gathers and a Profile reads.
#include <deque>
#include <string_view>
#include <unordered_map>

#include "vesta/profiler.h"

namespace vesta::profiler {

struct Profile::Data {
  Options options;
  std::vector<Event> events;
  int64_t start_ns = 0, wall_ns = 0;

  void open(std::string_view name);
  void close(int64_t bytes);
  void fold_peak();
  std::string_view own_name(std::string_view name);

  int innermost = -1;  // the open event
  struct Level {
    int64_t begin, peak;  // host memory in use
  };
  std::vector<Level> levels;      // of the recording itself, then of each open event
  std::deque<std::string> names;  // of ranges and nodes; operators own theirs
  std::unordered_map<std::string_view, std::string_view> own_names;
};

}  // namespace vesta::profiler
