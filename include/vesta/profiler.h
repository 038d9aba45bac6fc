#pragma once
// Where a program's time and memory go, by operator:
//
//   profiler::Profile p = profiler::record([&] { loss = net->forward(x); loss.backward(); });
//   std::puts(p.table().c_str());
//   p.write_chrome_trace("trace.json");  // for ui.perfetto.dev or chrome://tracing
//
// Records the operator calls and Ranges of all threads (calls made by other operators and by backward nest inside them):
// also those of data loader workers and of threads that start meanwhile. What the pool does for an operator counts as
// that operator's time.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vesta::profiler {

struct Options {
  bool shapes = false;  // keep the argument shapes of each call: for the trace and by_op(true)
};

struct Event {
  std::string_view name;  // valid while its Profile lives
  int64_t begin_ns = 0;   // since the recording began
  int64_t end_ns = 0;
  int parent = -1;    // index of the enclosing event, which is of the same thread
  int thread = 0;     // 0: the one that recorded; others in the order in which they first appear
  int64_t bytes = 0;  // of the results it allocated, those of its children included
  int64_t peak_bytes =
      0;  // most host memory in use during it (by all threads), less what was in use when it began
  std::string shapes;  // "[8, 16], [16]"; empty without Options::shapes
};

// All calls of one operator on all threads (and with by_op(true): of one set of shapes). Times of threads add up.
struct Summary {
  std::string name;
  std::string shapes;
  int64_t calls = 0;
  int64_t total_ns = 0;    // an operator inside a call of itself is not counted twice
  int64_t self_ns = 0;     // without what it called
  int64_t bytes = 0;       // results allocated
  int64_t peak_bytes = 0;  // largest of its calls
};

class Profile {
 public:
  Profile(Profile&&) noexcept;
  Profile& operator=(Profile&&) noexcept;
  ~Profile();
  const std::vector<Event>& events() const;  // in the order of their beginnings
  int num_threads() const;                   // at least 1
  int64_t wall_ns() const;
  int64_t peak_bytes() const;  // most host memory in use, less what was in use at the start
  // Sorted by self time, largest first.
  std::vector<Summary> by_op(bool by_shapes = false) const;
  std::string table(size_t rows = 25, bool by_shapes = false) const;
  // Chrome's trace format (JSON), a row a thread. Throws IoError where the file cannot be written.
  void write_chrome_trace(const std::string& path) const;

  struct Data;

 private:
  friend class Recorder;
  explicit Profile(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

// Records from construction to stop() (or destruction), which both must be called on one thread. One at a time: a second
// throws. What is still running then ends there; what began before is not seen, only what it calls.
class Recorder {
 public:
  explicit Recorder(Options options = {});
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Profile stop();

 private:
  void stop_recording();
  std::unique_ptr<Profile::Data> data_;
};

Profile record(const std::function<void()>& fn, Options options = {});

// Names a stretch of the program: `profiler::Range r("data loading");`. Costs one test where nothing is recorded.
class Range {
 public:
  explicit Range(std::string_view name);
  ~Range();
  Range(const Range&) = delete;

 private:
  uint64_t recording_ = 0;  // 0: none
  int event_ = -1;
};

}  // namespace vesta::profiler
