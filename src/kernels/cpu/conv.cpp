// Convolution: chooses the algorithm for a shape.
#include "kernels/cpu/conv.h"

#include <vesta/error.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/conv_direct.h"
#include "kernels/cpu/conv_kernels.h"
#include "kernels/cpu/conv_plan.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {
namespace {

constexpr double kSmallProducts = 2048;  // below, plain loops cost less than a plan
constexpr int64_t kChainChannels = 8;    // fewer leave too little between a line's edges
constexpr int64_t kChainDepth = 64;      // products of a sum that pay for the tile's start and end

double products(const ConvShape& s) {
  return static_cast<double>(s.batch) * static_cast<double>(s.y_channels) * static_cast<double>(s.x_group()) *
         static_cast<double>(s.out_numel()) * static_cast<double>(s.taps());
}

bool planned(Elem type, ConvLayout layout, const ConvShape& s) {
  return is_float(type) && conv_plan_fits(s) && (layout == ConvLayout::Last || products(s) > kSmallProducts);
}

// One tap at every position: a matrix product over channels.
bool pointwise(const ConvShape& s) {
  for (int d = 0; d < 3; ++d)
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.pad[d] != 0 || s.in[d] != s.out[d]) return false;
  return true;
}
bool depthwise(ConvLayout layout, const ConvShape& s) {
  return s.x_group() == 1 && s.groups > 1 && (layout == ConvLayout::First || s.y_group() == 1);
}

// Channels last always runs by chains; channels first where the result channels fill their vectors.
bool chained(ConvLayout layout, int64_t channels, int64_t rows, int64_t taps) {
  if (layout == ConvLayout::Last) return true;
  const int64_t lanes = 16, padded = (rows + lanes - 1) / lanes * lanes;
  return rows * 5 >= padded * 4 && channels * taps >= kChainDepth && channels >= kChainChannels;
}

// The bias of a result row, for channels first: rows are channels there.
struct RowBias {
  const void* values;  // of the accumulation type
  int64_t rows;
  bool wide;
};
void add_row_bias(void* t, int64_t n, int64_t row, int64_t, const void* ctx) {
  const auto& bias = *static_cast<const RowBias*>(ctx);
  const int64_t i = row % bias.rows;
  if (bias.wide) {
    const double v = static_cast<const double*>(bias.values)[i];
    for (int64_t e = 0; e < n; ++e) static_cast<double*>(t)[e] += v;
  } else {
    const float v = static_cast<const float*>(bias.values)[i];
    for (int64_t e = 0; e < n; ++e) static_cast<float*>(t)[e] += v;
  }
}

// result[rows, area] = w[rows, channels] * source[channels, area] for each image and group; w by strides.
void run_pointwise(Elem type, ConvLayout layout, const ConvShape& s, bool transposed, const void* source,
                   const void* w, const void* bias, void* result) {
  const auto size = static_cast<int64_t>(elem_size(type)),
             acc = static_cast<int64_t>(elem_size(accumulate_type(type)));
  const int64_t rows = transposed ? s.x_group() : s.y_group(),
                channels = transposed ? s.y_group() : s.x_group();
  const int64_t w_row = transposed ? 1 : s.x_group(), w_channel = transposed ? s.x_group() : 1,
                area = s.in_numel();
  std::vector<char> wide_bias(static_cast<size_t>(bias ? rows * s.groups * acc : 0));
  if (bias) conv_kernels(cpu_isa()).widen(type, bias, rows * s.groups, wide_bias.data());
  for (int64_t group = 0; group < s.groups; ++group) {
    const char* weight = static_cast<const char*>(w) + group * s.y_group() * s.x_group() * size;
    GemmArgs g;
    g.type = g.out = conv_gemm_type(type);
    g.k = channels;
    GemmEpilogue epilogue;
    const RowBias row_bias{wide_bias.data() + group * rows * acc, rows, type == Elem::F64};
    if (layout == ConvLayout::First) {
      g.m = rows, g.n = area, g.batch = s.batch;
      g.a = weight, g.a_row = w_row, g.a_col = w_channel, g.a_batch = 0;
      g.b = static_cast<const char*>(source) + group * channels * area * size, g.b_row = area, g.b_col = 1;
      g.b_batch = s.groups * channels * area;
      g.c = static_cast<char*>(result) + group * rows * area * size, g.ldc = area,
      g.c_batch = s.groups * rows * area;
      epilogue.apply = add_row_bias;
      epilogue.ctx = &row_bias;
    } else {
      g.m = s.batch * area, g.n = rows;
      g.a = static_cast<const char*>(source) + group * channels * size, g.a_row = s.groups * channels,
      g.a_col = 1;
      g.b = weight, g.b_row = w_channel, g.b_col = w_row;
      g.c = static_cast<char*>(result) + group * rows * size, g.ldc = s.groups * rows;
      epilogue.bias = bias ? static_cast<const char*>(bias) + group * rows * size : nullptr;
    }
    if (bias) g.epilogue = &epilogue;
    gemm(g);
  }
}

void check_layout(Elem type, ConvLayout layout) {
  VESTA_CHECK_AS(NotImplementedError, layout == ConvLayout::First || is_float(type),
                 "convolution: channels last is for floating types");
}

}  // namespace

bool conv_takes_last(Elem type, const ConvShape& s) {
  return is_float(type) && conv_plan_fits(s) && !(s.x_group() == 1 && s.groups > 1 && s.y_group() != 1);
}

void conv_forward(Elem type, ConvLayout layout, const ConvShape& s, const void* x, const void* w,
                  const void* bias, void* y) {
  check_layout(type, layout);
  if (!planned(type, layout, s)) return conv_direct_forward(type, s, x, w, bias, y);
  if (pointwise(s) && s.x_group() > 0 &&
      !(layout == ConvLayout::First && chained(layout, s.x_group(), s.y_group(), 1)))
    return run_pointwise(type, layout, s, false, x, w, bias, y);
  const ConvPlan plan = conv_plan(s);
  if (depthwise(layout, s))
    return (layout == ConvLayout::First ? conv_first_depthwise : conv_last_depthwise)(type, plan, x, w, bias,
                                                                                      y);
  if (chained(layout, plan.channels, plan.rows, s.taps()))
    return conv_chain_run(type, layout, plan, x, w, bias, y);
  conv_first_run(type, plan, x, w, bias, y);
}

void conv_backward_data(Elem type, ConvLayout layout, const ConvShape& s, const void* y, const void* w,
                        const void* bias, void* x) {
  check_layout(type, layout);
  if (!planned(type, layout, s)) return conv_direct_backward_data(type, s, y, w, bias, x);
  if (pointwise(s) && s.y_group() > 0 &&
      !(layout == ConvLayout::First && chained(layout, s.y_group(), s.x_group(), 1)))
    return run_pointwise(type, layout, s, true, y, w, bias, x);
  const ConvPlan plan = conv_transposed_plan(s);
  if (depthwise(layout, s) && s.y_group() == 1)
    return (layout == ConvLayout::First ? conv_first_depthwise : conv_last_depthwise)(type, plan, y, w, bias,
                                                                                      x);
  if (chained(layout, plan.channels, plan.rows, s.taps()))
    return conv_chain_run(type, layout, plan, y, w, bias, x);
  conv_first_run(type, plan, y, w, bias, x);
}

void conv_backward_weight(Elem type, ConvLayout layout, const ConvShape& s, const void* y, const void* x,
                          void* w) {
  check_layout(type, layout);
  if (!planned(type, layout, s)) return conv_direct_backward_weight(type, s, y, x, w);
  if (depthwise(layout, s))
    return (layout == ConvLayout::First ? conv_first_depthwise_weight : conv_last_depthwise_weight)(type, s,
                                                                                                    y, x, w);
  if (chained(layout, s.x_group(), s.y_group(), s.taps())) return conv_chain_weight(type, layout, s, y, x, w);
  conv_first_weight(type, s, y, x, w);
}

}  // namespace vesta::cpu
