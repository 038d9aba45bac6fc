// Plans of convolutions: taps, phases and the padded source.
#include "kernels/cpu/conv_plan.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/conv_kernels.h"
#include "kernels/cpu/isa_table.h"
#include "runtime/cpu/allocator.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(ConvKernels, kConvKernels, conv_kernels)

namespace {

constexpr int64_t kMostPhases = 64;
constexpr int64_t kPaddedFactor = 4;    // of the source's size, and
constexpr int64_t kPaddedExtra = 4096;  // elements beside it, that a padded plane may take

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Every combination of one entry of each dim.
template <class T, class F>
void for_products(const std::vector<T> (&lists)[3], F f) {
  for (const T& a : lists[0])
    for (const T& b : lists[1])
      for (const T& c : lists[2]) f(a, b, c);
}

struct DimTap {
  int64_t index, offset;
};

void add_taps(ConvPhase& phase, const std::vector<DimTap> (&taps)[3], const ConvShape& s) {
  for_products(taps, [&](const DimTap& a, const DimTap& b, const DimTap& c) {
    phase.taps.push_back(
        {(a.index * s.kernel[1] + b.index) * s.kernel[2] + c.index, {a.offset, b.offset, c.offset}});
  });
}

// The range of source coordinates over all phases; {0, 0} where there are no taps.
void find_range(ConvPlan& plan) {
  bool any = false;
  for (int d = 0; d < 3; ++d) plan.first[d] = plan.last[d] = 0;
  for (const ConvPhase& phase : plan.phases)
    for (const ConvTap& tap : phase.taps) {
      for (int d = 0; d < 3; ++d) {
        const int64_t end = (phase.count[d] - 1) * plan.step[d] + tap.offset[d];
        plan.first[d] = any ? std::min(plan.first[d], tap.offset[d]) : tap.offset[d];
        plan.last[d] = any ? std::max(plan.last[d], end) : end;
      }
      any = true;
    }
}

}  // namespace

ConvPlan conv_plan(const ConvShape& s) {
  ConvPlan plan;
  ConvPhase phase;
  std::vector<DimTap> taps[3];
  for (int d = 0; d < 3; ++d) {
    plan.step[d] = s.stride[d];
    plan.source[d] = s.in[d];
    plan.result[d] = phase.count[d] = s.out[d];
    phase.first[d] = 0;
    phase.step[d] = 1;
    for (int64_t k = 0; k < s.kernel[d]; ++k) taps[d].push_back({k, k * s.dilation[d] - s.pad[d]});
  }
  add_taps(phase, taps, s);
  plan.phases.push_back(std::move(phase));
  plan.batch = s.batch;
  plan.groups = s.groups;
  plan.channels = s.x_group();
  plan.rows = s.y_group();
  plan.w_row = s.x_group() * s.taps();
  plan.w_channel = s.taps();
  plan.w_group = s.y_group() * plan.w_row;
  find_range(plan);
  return plan;
}

// x position i = first + q * stride meets tap k where i + pad - k * dilation is a multiple of stride, namely at
// y position q + (first + pad - k * dilation) / stride.
ConvPlan conv_transposed_plan(const ConvShape& s) {
  ConvPlan plan;
  struct DimPhase {
    int64_t first, count;
    std::vector<DimTap> taps;
  };
  std::vector<DimPhase> dims[3];
  for (int d = 0; d < 3; ++d) {
    plan.step[d] = 1;
    plan.source[d] = s.out[d];
    plan.result[d] = s.in[d];
    for (int64_t first = 0; first < std::min(s.stride[d], s.in[d]); ++first) {
      DimPhase phase{first, (s.in[d] - first + s.stride[d] - 1) / s.stride[d], {}};
      for (int64_t k = 0; k < s.kernel[d]; ++k) {
        const int64_t at = first + s.pad[d] - k * s.dilation[d];
        if (at % s.stride[d] == 0) phase.taps.push_back({k, at / s.stride[d]});
      }
      dims[d].push_back(std::move(phase));
    }
  }
  for_products(dims, [&](const DimPhase& a, const DimPhase& b, const DimPhase& c) {
    ConvPhase phase;
    const DimPhase* parts[3] = {&a, &b, &c};
    for (int d = 0; d < 3; ++d) {
      phase.count[d] = parts[d]->count;
      phase.first[d] = parts[d]->first;
      phase.step[d] = s.stride[d];
    }
    const std::vector<DimTap> taps[3] = {a.taps, b.taps, c.taps};
    add_taps(phase, taps, s);
    plan.phases.push_back(std::move(phase));
  });
  plan.batch = s.batch;
  plan.groups = s.groups;
  plan.channels = s.y_group();
  plan.rows = s.x_group();
  plan.w_row = s.taps();
  plan.w_channel = s.x_group() * s.taps();
  plan.w_group = s.y_group() * plan.w_channel;
  find_range(plan);
  return plan;
}

bool conv_plan_fits(const ConvShape& s) {
  // In double, which cannot overflow: sizes and attributes are below 2^33 here.
  double padded_x = 1, padded_y = 1, phases = 1, taps = 1, x = 1, y = 1;
  for (int d = 0; d < 3; ++d) {
    const auto in = static_cast<double>(s.in[d]), out = static_cast<double>(s.out[d]);
    const double reach = static_cast<double>(s.kernel[d] - 1) * static_cast<double>(s.dilation[d]);
    const auto stride = static_cast<double>(s.stride[d]);
    padded_x *= (out - 1) * stride + reach + stride;
    padded_y *= in / stride + reach / stride + 2;
    phases *= std::min(stride, in);
    taps *= static_cast<double>(s.kernel[d]);
    x *= in;
    y *= out;
  }
  const auto fits = [](double padded, double plain) {
    return padded <= static_cast<double>(kPaddedFactor) * plain + static_cast<double>(kPaddedExtra);
  };
  return fits(padded_x, x) && fits(padded_y, y) && phases <= static_cast<double>(kMostPhases) && taps <= 1e6;
}

ConvScratch::ConvScratch(size_t bytes) : data_(static_cast<char*>(allocate(bytes))), bytes_(bytes) {}
ConvScratch::~ConvScratch() { free(data_, bytes_); }

GemmType conv_gemm_type(Elem type) {
  switch (type) {
    case Elem::F64:
      return GemmType::F64;
    case Elem::F16:
      return GemmType::F16;
    case Elem::BF16:
      return GemmType::Bf16;
    default:
      return GemmType::F32;
  }
}

ConvPadded conv_padded(const ConvPlan& plan) {
  ConvPadded p;
  for (int d = 0; d < 2; ++d) p.rows[d] = plan.last[d] - plan.first[d] + 1;
  p.step = plan.step[2];
  p.columns = (plan.last[2] - plan.first[2]) / p.step + 1;
  return p;
}

void conv_pad(Elem type, const ConvPlan& plan, const ConvPadded& padded, const void* source, int64_t count,
              void* out) {
  ConvPlane plane;
  for (int d = 0; d < 3; ++d) {
    plane.source[d] = plan.source[d];
    plane.first[d] = plan.first[d];
  }
  plane.rows[0] = padded.rows[0];
  plane.rows[1] = padded.rows[1];
  plane.step = padded.step;
  plane.columns = padded.columns;
  const ConvKernels& kernels = conv_kernels();
  const auto acc = static_cast<int64_t>(elem_size(accumulate_type(type)));
  const auto size = static_cast<int64_t>(elem_size(type));
  const int64_t grain = std::max<int64_t>(1, 16384 / padded.plane());
  parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      kernels.pad_plane(type, static_cast<const char*>(source) + i * plan.source_area() * size, plane,
                        static_cast<char*>(out) + i * padded.plane() * acc);
  });
}

namespace {

template <class A>
void sum_weight(Elem type, const A* partial, int64_t splits, int64_t groups, int64_t rows, int64_t columns,
                char* w) {
  constexpr int64_t kRows = 16;  // result elements next to one another that are written together
  const int64_t blocks = ceil_div(rows, kRows), all = groups * rows * columns,
                size = static_cast<int64_t>(elem_size(type));
  const ConvKernels& kernels = conv_kernels();
  parallel_for(0, groups * blocks, ceil_div(4096, std::max<int64_t>(1, columns)),
               [&](int64_t begin, int64_t end) {
                 std::vector<A> sum(static_cast<size_t>(kRows * columns));
                 for (int64_t b = begin; b < end; ++b) {
                   const int64_t group = b / blocks, i0 = b % blocks * kRows, n = std::min(kRows, rows - i0);
                   const A* from = partial + (group * rows + i0) * columns;
                   for (int64_t e = 0; e < n * columns; ++e) {
                     A t = from[e];
                     for (int64_t s = 1; s < splits; ++s) t += from[s * all + e];
                     sum[static_cast<size_t>(e)] = t;
                   }
                   for (int64_t j = 0; j < columns; ++j) {
                     A row[kRows];
                     for (int64_t i = 0; i < n; ++i) row[i] = sum[static_cast<size_t>(i * columns + j)];
                     kernels.narrow(type, row, n, w + ((group * columns + j) * rows + i0) * size);
                   }
                 }
               });
}

}  // namespace

void conv_sum_weight(Elem type, const char* partial, int64_t splits, int64_t groups, int64_t rows,
                     int64_t columns, void* w) {
  if (type == Elem::F64)
    sum_weight(type, reinterpret_cast<const double*>(partial), splits, groups, rows, columns,
               static_cast<char*>(w));
  else
    sum_weight(type, reinterpret_cast<const float*>(partial), splits, groups, rows, columns,
               static_cast<char*>(w));
}

}  // namespace vesta::cpu
