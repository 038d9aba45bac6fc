#pragma once
// What a thread carries from call to call. Under 512 bytes and initial-exec: the default TLS model costs an add 15 ns
// in a shared library.
#include <cstdint>

#include "vesta/tensor_impl.h"

namespace vesta {

struct ThreadState {
  uint32_t mode = 0;  // interpreters that see every call of this thread (a trace, autocast)
  uint32_t enabled = TensorImpl::kInterpreters;  // cleared bits: grad mode off, or an interpreter is running
  bool grad_mode = true;
  bool inference_mode = false;
  uint64_t sequence = 0;  // of the next autograd node
  void* tracer = nullptr;
  DType autocast_dtype = DType::BFloat16;
  bool autocast_cache = true;
  bool check_nan = true;        // what anomaly mode does with NaN
  bool anomaly = false;         // nodes remember where they were recorded, gradients are checked for NaN
  uint32_t autocast_depth = 0;  // scopes that are open
  void* saved_hooks = nullptr;  // the innermost autograd::SavedTensorHooks
  uint32_t tangent_level = 0;   // forward-mode levels that are open
  void* profile = nullptr;      // what a profiler::Recorder gathers
  const char* running_op = "";  // for error messages
};

extern constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

}  // namespace vesta
