// Recording of events. One Recorder per thread; nothing is shared between threads, so nothing is locked.
#include "core/profile.h"

#include <chrono>
#include <deque>
#include <unordered_map>

#include "core/call.h"
#include "core/profile_data.h"
#include "runtime/cpu/memory_budget.h"

namespace vesta::profiler {
namespace {

Profile::Data* current() { return static_cast<Profile::Data*>(thread_state.profile); }

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

// The memory peak of an event is watched between its edges and those of its children: at each edge the watched peak
// is folded into the open event and started anew.
void Profile::Data::open(std::string_view name) {
  fold_peak();
  Event e;
  e.name = name;
  e.parent = innermost;
  innermost = int(events.size());
  events.push_back(std::move(e));
  levels.push_back({cpu::bytes_in_use(), cpu::bytes_in_use()});
  events[size_t(innermost)].begin_ns = now_ns() - start_ns;
}

void Profile::Data::close(int64_t bytes) {
  Event& e = events[size_t(innermost)];
  e.end_ns = now_ns() - start_ns;
  fold_peak();
  Level level = levels.back();
  levels.pop_back();
  e.peak_bytes = level.peak - level.begin;
  e.bytes += bytes;
  levels.back().peak = std::max(levels.back().peak, level.peak);
  innermost = e.parent;
}

void Profile::Data::fold_peak() {
  levels.back().peak = std::max(levels.back().peak, cpu::watched_peak());
  cpu::restart_watched_peak();
}

std::string_view Profile::Data::own_name(std::string_view name) {
  auto it = own_names.find(name);
  if (it != own_names.end()) return it->second;
  const std::string& kept = names.emplace_back(name);
  own_names.emplace(kept, kept);
  return kept;
}

void open(std::string_view name) { current()->open(current()->own_name(name)); }
void close() { current()->close(0); }

void interpret(const Op& op, const Value* args, Value* outs, uint32_t bits) {
  Profile::Data* data = current();
  data->open(op.name);  // an operator's name lives as long as the process
  if (data->options.shapes) data->events.back().shapes = shapes_of(op, args);
  try {
    redispatch(op, args, outs, bits);
  } catch (...) {
    if (thread_state.profile == data) data->close(0);
    throw;
  }
  if (thread_state.profile == data) data->close(allocated_by(op, outs));
}

Recorder::Recorder(Options options) : data_(std::make_unique<Profile::Data>()) {
  VESTA_CHECK(!thread_state.profile, "profiler: this thread is being recorded already");
  data_->options = options;
  data_->start_ns = now_ns();
  cpu::restart_watched_peak();
  data_->levels.push_back({cpu::bytes_in_use(), cpu::bytes_in_use()});
  thread_state.profile = data_.get();
  thread_state.mode |= TensorImpl::kProfile;
}

Recorder::~Recorder() {
  if (!data_) return;
  thread_state.profile = nullptr;
  thread_state.mode &= ~TensorImpl::kProfile;
}

Profile Recorder::stop() {
  VESTA_CHECK(data_, "profiler: the recorder was stopped already");
  VESTA_CHECK(thread_state.profile == data_.get(), "profiler: stop() was called on another thread");
  while (data_->innermost >= 0) data_->close(0);  // ranges that are still open end here
  data_->fold_peak();
  data_->wall_ns = now_ns() - data_->start_ns;
  thread_state.profile = nullptr;
  thread_state.mode &= ~TensorImpl::kProfile;
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

Range::Range(std::string_view name) : open_(recording()) {
  if (open_) open(name);
}
Range::~Range() {
  if (open_ && recording()) close();
}

}  // namespace vesta::profiler
