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
  const char* running_op = "";  // for error messages
};

extern constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

}  // namespace vesta
