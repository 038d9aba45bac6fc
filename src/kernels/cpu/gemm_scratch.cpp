#include "kernels/cpu/gemm_scratch.h"

#include <vesta/error.h>

#include <memory>
#include <new>

namespace vesta::cpu {
namespace {

constexpr std::align_val_t kAlign{4096};  // panels start on a page: fewer TLB entries

struct Free {
  void operator()(void* p) const { ::operator delete(p, kAlign); }
};

struct Buffer {
  std::unique_ptr<void, Free> data;
  size_t bytes = 0;
};

}  // namespace

void* gemm_scratch(GemmBuffer which, size_t bytes) {
  static thread_local Buffer buffers[2];  // per thread and never shared: 32 bytes of thread-local storage
  Buffer& buffer = buffers[static_cast<int>(which)];
  if (buffer.bytes < bytes) {
    buffer.data.reset();
    buffer.bytes = 0;
    void* fresh = ::operator new(bytes, kAlign, std::nothrow);
    VESTA_CHECK_AS(OutOfMemory, fresh, "gemm: could not allocate ", bytes, " bytes of scratch");
    buffer.data.reset(fresh);
    buffer.bytes = bytes;
  }
  return buffer.data.get();
}

}  // namespace vesta::cpu
