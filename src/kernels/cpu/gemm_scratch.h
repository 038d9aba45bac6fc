#pragma once
// Reusable packing buffers. Each thread owns two, because the thread that calls gemm() holds the shared packed B while
// it also works on tiles itself. A buffer only grows, is kept between calls and freed when its thread ends.
#include <cstddef>

namespace vesta::cpu {

enum class GemmBuffer { Shared, Tile };

// At least `bytes` bytes, aligned to a page (huge pages from 2 MiB on); valid until this thread's next call for the same buffer. Throws OutOfMemory.
void* gemm_scratch(GemmBuffer which, size_t bytes);

}  // namespace vesta::cpu
