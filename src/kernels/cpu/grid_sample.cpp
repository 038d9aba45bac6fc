// Grid sampling: argument checks and the choice of the CPU level.
#include "kernels/cpu/grid_sample.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(GridSampleTable, kGridSampleTable, grid_sample_table)

namespace {

void check(Elem type, const GridSample& g) {
  VESTA_CHECK_AS(TypeError, type == Elem::F32 || type == Elem::F64,
                 "grid_sample: expected float32 or float64");
  VESTA_CHECK(g.dims == 2 || (g.dims == 3 && g.mode != GridMode::Bicubic),
              "grid_sample: bicubic is for images");
}

}  // namespace

void grid_sample(Elem type, const void* x, const void* grid, void* y, const GridSample& g) {
  check(type, g);
  grid_sample_table().forward(type, x, grid, y, g);
}

void grid_sample_backward(Elem type, const void* dy, const void* x, const void* grid, void* dx, void* dgrid,
                          const GridSample& g) {
  check(type, g);
  grid_sample_table().backward(type, dy, x, grid, dx, dgrid, g);
}

}  // namespace vesta::cpu
