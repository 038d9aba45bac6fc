#pragma once
// Sampling an image or volume at the coordinates of a grid, and its gradients. Input (n, c, d, h, w) with any strides;
// 2-D images have d = 1. The grid is contiguous (n, points, 2 or 3), x first, -1 and 1 being the borders; the output is
// contiguous (n, c, points). F32 and F64. Results do not depend on the number of threads.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

enum class GridMode : uint8_t { Bilinear = 0, Nearest = 1, Bicubic = 2 };  // bicubic: 2-D only
enum class GridPadding : uint8_t { Zeros = 0, Border = 1, Reflection = 2 };

struct GridSample {
  GridMode mode = GridMode::Bilinear;
  GridPadding padding = GridPadding::Zeros;
  bool align_corners = false;
  int dims = 2;
  int64_t n = 1, c = 1, points = 1;
  int64_t size[3] = {1, 1, 1};  // d, h, w of the input
  int64_t stride_n = 0, stride_c = 0, stride[3] = {0, 0, 0};
};

void grid_sample(Elem type, const void* x, const void* grid, void* y, const GridSample& g);
// dx (null: not wanted) is contiguous (n, c, d, h, w), dgrid (null: not wanted) has the grid's layout, dy y's.
void grid_sample_backward(Elem type, const void* dy, const void* x, const void* grid, void* dx, void* dgrid,
                          const GridSample& g);

struct GridSampleTable {
  void (*forward)(Elem, const void*, const void*, void*, const GridSample&);
  void (*backward)(Elem, const void*, const void*, const void*, void*, void*, const GridSample&);
};
const GridSampleTable& grid_sample_table(CpuIsa level);

}  // namespace vesta::cpu
