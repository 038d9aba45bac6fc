#pragma once
// A per-thread scratch buffer for kernels: grows, never shrinks before the thread ends, so a steady training loop does
// not allocate. One user at a time per thread: a kernel must not call another scratch user while it holds the pointer.
#include <cstddef>

namespace vesta::cpu {

// At least `bytes` bytes, 64-byte aligned, uninitialised; valid until this thread's next call.
// Throws OutOfMemory.
void* thread_scratch(size_t bytes);

// A heap block shared by the chunks of one parallel region (partial sums); freed with the scope.
class SharedScratch {
 public:
  explicit SharedScratch(size_t bytes);  // throws OutOfMemory
  ~SharedScratch();
  SharedScratch(const SharedScratch&) = delete;
  SharedScratch& operator=(const SharedScratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

}  // namespace vesta::cpu
