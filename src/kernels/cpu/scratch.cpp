// Scratch memory of the CPU kernels: one growing block per thread, and scoped blocks for partial results.
#include "kernels/cpu/scratch.h"

#include <vesta/error.h>

#include <cstdlib>

namespace vesta::cpu {
namespace {

constexpr size_t kAlign = 64;

void* allocate(size_t bytes) {
  const size_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
  void* data = std::aligned_alloc(kAlign, rounded == 0 ? kAlign : rounded);
  VESTA_CHECK_AS(OutOfMemory, data != nullptr, "kernel scratch: cannot allocate ", bytes, " bytes");
  return data;
}

struct Block {
  void* data = nullptr;
  size_t bytes = 0;
  ~Block() { std::free(data); }
};

thread_local Block block;  // one per thread, owned by it

}  // namespace

void* thread_scratch(size_t bytes) {
  if (bytes > block.bytes) [[unlikely]] {
    std::free(block.data);
    block.data = nullptr;
    block.bytes = 0;
    block.data = allocate(bytes);
    block.bytes = bytes;
  }
  return block.data;
}

SharedScratch::SharedScratch(size_t bytes) : data_(allocate(bytes)) {}
SharedScratch::~SharedScratch() { std::free(data_); }

}  // namespace vesta::cpu
