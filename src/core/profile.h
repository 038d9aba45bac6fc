#pragma once
// The profiler's side of the funnel: an interpreter that is outermost while a Recorder lives, and events for what is no
// operator call (nodes of backward, user ranges).
#include <atomic>

#include "core/registry.h"

namespace vesta::profiler {

void interpret(const Op& op, const Value* args, Value* outs, uint32_t bits);

// TensorImpl::kProfile while a Recorder lives, else 0: read by every call of every thread, written twice a recording.
extern std::atomic<uint32_t> process_mode;
inline bool recording() { return process_mode.load(std::memory_order_relaxed) != 0; }

// An open event of a recording. Closing it after the end of that recording does nothing.
struct Mark {
  uint64_t recording = 0;  // 0: nothing is open
  int event = -1;
};
// On the calling thread. `name` is copied.
Mark open(std::string_view name);
// Also ends what is still open inside it.
void close(Mark mark) noexcept;

}  // namespace vesta::profiler
