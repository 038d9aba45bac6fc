// Recording of events. All threads write into the one recording under one lock: it also orders the events, and the
// memory peak is the process's.
#include "core/profile.h"

#include <chrono>
#include <mutex>

#include "core/call.h"
#include "core/profile_data.h"
#include "core/thread_state.h"
#include "runtime/cpu/memory_budget.h"

namespace vesta::profiler {

constinit std::atomic<uint32_t> process_mode{0};

namespace {

// The recording under way, and how many there were: `lock` protects both and the data. Operators of other threads find
// it gone or find it whole.
constinit std::mutex lock;
Profile::Data* current = nullptr;
uint64_t recordings = 0;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string shapes_of(const Op& op, const Value* args) {
  std::string text;
  auto add = [&](TensorImpl* t) {
    text += text.empty() ? "[" : ", [";
    for (int d = 0; t && d < t->ndim; ++d) text += (d ? ", " : "") + std::to_string(t->sizes_data()[d]);
    text += "]";
  };
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    if (v.kind == ValueKind::Tensor) add(v.tensor);
    if (v.kind == ValueKind::TensorList)
      for (auto& t : v.tensors()) add(t.impl());
  }
  return text;
}

int64_t allocated_by(const Op& op, const Value* outs) {
  if (op.mutates || op.returns_view) return 0;
  auto bytes = [](const TensorImpl* t) {
    return !t || (t->bits & TensorImpl::kView) || !t->storage ? 0 : int64_t(t->storage->bytes);
  };
  if (op.list_result >= 0) {
    int64_t sum = 0;
    for (auto& t : outs[0].tensors()) sum += bytes(t.impl());
    return sum;
  }
  int64_t sum = 0;
  for (int j = 0; j < op.num_outs; ++j)
    if (outs[j].kind == ValueKind::Tensor) sum += bytes(outs[j].tensor);
  return sum;
}

}  // namespace

int Profile::Data::thread_index() {
  auto [it, fresh] = thread_of.try_emplace(std::this_thread::get_id(), int(threads.size()));
  if (fresh) threads.emplace_back();
  return it->second;
}

// The memory peak of an event is watched between its edges and those of all others: at each edge the watched peak is
// folded into each thread's innermost open event and started anew.
void Profile::Data::fold_peak() {
  int64_t peak = cpu::watched_peak();
  cpu::restart_watched_peak();
  whole.peak = std::max(whole.peak, peak);
  for (Thread& t : threads)
    if (!t.levels.empty()) t.levels.back().peak = std::max(t.levels.back().peak, peak);
}

int Profile::Data::open(std::string_view name, std::string shapes) {
  fold_peak();
  int index = int(events.size());
  Event e;
  e.name = name;
  e.thread = thread_index();
  e.shapes = std::move(shapes);
  Thread& t = threads[size_t(e.thread)];
  e.parent = t.innermost;
  t.levels.push_back({cpu::bytes_in_use(), cpu::bytes_in_use()});
  e.begin_ns = now_ns() - start_ns;
  events.push_back(std::move(e));
  t.innermost = index;
  return index;
}

void Profile::Data::close_innermost(int thread) {
  Thread& t = threads[size_t(thread)];
  Event& e = events[size_t(t.innermost)];
  e.end_ns = now_ns() - start_ns;
  fold_peak();
  Level level = t.levels.back();
  t.levels.pop_back();
  e.peak_bytes = level.peak - level.begin;
  if (!t.levels.empty()) t.levels.back().peak = std::max(t.levels.back().peak, level.peak);
  t.innermost = e.parent;
}

// Events inside it that are still open end with it: a Range may be destroyed late, or by another thread.
void Profile::Data::close(int event, int64_t bytes) {
  int thread = events[size_t(event)].thread;
  events[size_t(event)].bytes += bytes;
  for (int e = threads[size_t(thread)].innermost; e >= event; e = threads[size_t(thread)].innermost)
    close_innermost(thread);
}

void Profile::Data::close_all() {
  for (int t = 0; t < int(threads.size()); ++t)
    while (threads[size_t(t)].innermost >= 0) close_innermost(t);
}

std::string_view Profile::Data::own_name(std::string_view name) {
  auto it = own_names.find(name);
  if (it != own_names.end()) return it->second;
  const std::string& kept = names.emplace_back(name);
  own_names.emplace(kept, kept);
  return kept;
}

Mark open(std::string_view name) {
  std::lock_guard guard(lock);
  if (!current) return {};
  return {current->number, current->open(current->own_name(name), {})};
}

namespace {
void close(Mark mark, int64_t bytes) {
  std::lock_guard guard(lock);
  if (current && current->number == mark.recording) current->close(mark.event, bytes);
}
}  // namespace

void close(Mark mark) noexcept {
  if (mark.recording) close(mark, 0);
}

void interpret(const Op& op, const Value* args, Value* outs, uint32_t bits) {
  Mark mark;
  {
    std::unique_lock guard(lock);
    if (current && current->options.shapes) {  // sizes are read without the lock
      guard.unlock();
      std::string shapes = shapes_of(op, args);
      guard.lock();
      if (current) mark = {current->number, current->open(op.name, std::move(shapes))};
    } else if (current) {
      mark = {current->number,
              current->open(op.name, {})};  // an operator's name lives as long as the process
    }
  }
  try {
    redispatch(op, args, outs, bits);
  } catch (...) {
    close(mark);
    throw;
  }
  if (mark.recording) close(mark, allocated_by(op, outs));
}

Recorder::Recorder(Options options) : data_(std::make_unique<Profile::Data>()) {
  std::lock_guard guard(lock);
  VESTA_CHECK(!current, "profiler: something is being recorded already");
  data_->options = options;
  data_->number = ++recordings;
  data_->thread_index();  // this thread is number 0
  data_->start_ns = now_ns();
  cpu::restart_watched_peak();
  data_->whole = {cpu::bytes_in_use(), cpu::bytes_in_use()};
  thread_state.profile = data_.get();
  current = data_.get();
  process_mode.store(TensorImpl::kProfile, std::memory_order_relaxed);
}

Recorder::~Recorder() {
  if (data_) stop_recording();
}

void Recorder::stop_recording() {
  std::lock_guard guard(lock);
  process_mode.store(0, std::memory_order_relaxed);
  current = nullptr;
  thread_state.profile = nullptr;
  data_->close_all();
  data_->fold_peak();
  data_->wall_ns = now_ns() - data_->start_ns;
}

Profile Recorder::stop() {
  VESTA_CHECK(data_, "profiler: the recorder was stopped already");
  VESTA_CHECK(thread_state.profile == data_.get(), "profiler: stop() was called on another thread");
  stop_recording();
  return Profile(std::move(data_));
}

Profile::Profile(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Profile::Profile(Profile&&) noexcept = default;
Profile& Profile::operator=(Profile&&) noexcept = default;
Profile::~Profile() = default;

Profile record(const std::function<void()>& fn, Options options) {
  Recorder recorder(options);
  fn();
  return recorder.stop();
}

Range::Range(std::string_view name) {
  if (!recording()) return;
  Mark mark = open(name);
  recording_ = mark.recording;
  event_ = mark.event;
}
Range::~Range() { close(Mark{recording_, event_}); }

}  // namespace vesta::profiler
