#include "kernels/cpu/gemm_scratch.h"

#include <vesta/error.h>

#include <memory>

#include "base/prim/prim.h"

namespace vesta::cpu {
namespace {

struct Unmap {
  size_t bytes = 0;
  void operator()(void* pages) const { prim::unmap_pages(pages, bytes); }
};
using Buffer = std::unique_ptr<void, Unmap>;

}  // namespace

void* gemm_scratch(GemmBuffer which, size_t bytes) {
  static thread_local Buffer buffers[2];  // per thread and never shared: 32 bytes of thread-local storage
  Buffer& buffer = buffers[static_cast<int>(which)];
  if (buffer.get_deleter().bytes < bytes) {
    buffer.reset();
    // Half as much again, so that slowly growing products do not map anew each time.
    const size_t step = bytes < prim::kHugePageBytes ? prim::page_bytes() : prim::kHugePageBytes;
    const size_t want = (bytes + bytes / 2 + step - 1) / step * step;
    buffer = Buffer(nullptr, Unmap{});
    void* pages = prim::map_pages(want, step, step == prim::kHugePageBytes);
    VESTA_CHECK_AS(OutOfMemory, pages, "gemm: could not allocate ", want, " bytes of scratch");
    buffer = Buffer(pages, Unmap{want});
  }
  return buffer.get();
}

}  // namespace vesta::cpu
