#pragma once
// The profiler's side of the funnel: an interpreter that is outermost while a Recorder lives, and scopes for what is no
// operator call (nodes of backward, user ranges).
#include "core/registry.h"
#include "core/thread_state.h"

namespace vesta::profiler {

void interpret(const Op& op, const Value* args, Value* outs, uint32_t bits);

inline bool recording() { return thread_state.mode & TensorImpl::kProfile; }
// Opens an event; only while recording(). `name` is copied.
void open(std::string_view name);
void close();

}  // namespace vesta::profiler
