// Cases of `vesta bench ops` on images and sequences: the sizes of ResNets, MobileNets, U-Nets and small LSTMs.
#include "ops_cases.h"
#include "vesta/ops.h"

namespace vesta::cli {
namespace {

// As torch.lstm: x[0] the input, x[1] and x[2] the state, x[3..6] the parameters of one layer.
Tensor one_layer_lstm(const Tensors& x) {
  return std::get<0>(
      lstm(x[0], {{x[1], x[2]}}, {{x[3], x[4], x[5], x[6]}}, true, 1, 0.0, true, false, false));
}

const std::vector<OpCase> cases = {
    {"conv2d_3x3/8x64x56x56",
     {{{8, 64, 56, 56}}, {{64, 64, 3, 3}}, {{64}}},
     [](const Tensors& x) { return conv2d(x[0], x[1], x[2], 1, 1); },
     "F.conv2d(x[0], x[1], x[2], 1, 1)",
     "f32 fwd bwd",
     false},
    {"conv2d_3x3/8x256x14x14",
     {{{8, 256, 14, 14}}, {{256, 256, 3, 3}}, {{256}}},
     [](const Tensors& x) { return conv2d(x[0], x[1], x[2], 1, 1); },
     "F.conv2d(x[0], x[1], x[2], 1, 1)",
     "f32 fwd bwd",
     false},
    {"conv2d_1x1/8x256x14x14",
     {{{8, 256, 14, 14}}, {{512, 256, 1, 1}}, {{512}}},
     [](const Tensors& x) { return conv2d(x[0], x[1], x[2]); },
     "F.conv2d(x[0], x[1], x[2])",
     "f32 fwd bwd",
     false},
    {"conv2d_7x7_s2/8x3x224x224",
     {{{8, 3, 224, 224}}, {{64, 3, 7, 7}}, {{64}}},
     [](const Tensors& x) { return conv2d(x[0], x[1], x[2], 2, 3); },
     "F.conv2d(x[0], x[1], x[2], 2, 3)",
     "f32 fwd bwd",
     false},
    {"conv2d_3x3_s2/8x64x56x56",
     {{{8, 64, 56, 56}}, {{128, 64, 3, 3}}, {{128}}},
     [](const Tensors& x) { return conv2d(x[0], x[1], x[2], 2, 1); },
     "F.conv2d(x[0], x[1], x[2], 2, 1)",
     "f32 fwd bwd",
     false},
    {"conv2d_depthwise/8x128x28x28",
     {{{8, 128, 28, 28}}, {{128, 1, 3, 3}}, {{128}}},
     [](const Tensors& x) { return conv2d(x[0], x[1], x[2], 1, 1, 1, 128); },
     "F.conv2d(x[0], x[1], x[2], 1, 1, 1, 128)",
     "f32 fwd bwd"},
    // Stored channels last; the permutation is a view.
    {"conv2d_channels_last/8x64x56x56",
     {{{8, 56, 56, 64}}, {{64, 64, 3, 3}}, {{64}}},
     [](const Tensors& x) {
       return conv2d(x[0].permute({0, 3, 1, 2}), x[1], x[2], 1, 1);
     },
     "F.conv2d(x[0].permute(0, 3, 1, 2), x[1], x[2], 1, 1)",
     "f32 fwd bwd",
     false},
    {"conv2d_3x3/1x16x16x16",
     {{{1, 16, 16, 16}}, {{16, 16, 3, 3}}, {{16}}},
     [](const Tensors& x) { return conv2d(x[0], x[1], x[2], 1, 1); },
     "F.conv2d(x[0], x[1], x[2], 1, 1)",
     "f32 fwd bwd",
     false},
    {"conv1d_5/16x64x512",
     {{{16, 64, 512}}, {{64, 64, 5}}, {{64}}},
     [](const Tensors& x) { return conv1d(x[0], x[1], x[2], 1, 2); },
     "F.conv1d(x[0], x[1], x[2], 1, 2)",
     "f32 fwd bwd",
     false},
    {"conv3d_3x3x3/2x16x16x32x32",
     {{{2, 16, 16, 32, 32}}, {{16, 16, 3, 3, 3}}, {{16}}},
     [](const Tensors& x) { return conv3d(x[0], x[1], x[2], 1, 1); },
     "F.conv3d(x[0], x[1], x[2], 1, 1)",
     "f32 fwd bwd",
     false},
    {"conv_transpose2d_4x4_s2/8x64x28x28",
     {{{8, 64, 28, 28}}, {{64, 64, 4, 4}}, {{64}}},
     [](const Tensors& x) { return conv_transpose2d(x[0], x[1], x[2], 2, 1); },
     "F.conv_transpose2d(x[0], x[1], x[2], 2, 1)",
     "f32 fwd bwd",
     false},
    {"max_pool2d_3_s2/8x64x112x112",
     {{{8, 64, 112, 112}}},
     [](const Tensors& x) { return max_pool2d(x[0], 3, 2, 1); },
     "F.max_pool2d(x[0], 3, 2, 1)",
     "f32 fwd bwd"},
    {"max_pool1d_2/16x64x512",
     {{{16, 64, 512}}},
     [](const Tensors& x) { return max_pool1d(x[0], 2); },
     "F.max_pool1d(x[0], 2)",
     "f32 fwd bwd"},
    {"avg_pool2d_2/8x64x56x56",
     {{{8, 64, 56, 56}}},
     [](const Tensors& x) { return avg_pool2d(x[0], 2); },
     "F.avg_pool2d(x[0], 2)",
     "f32 fwd bwd"},
    {"adaptive_avg_pool2d_1/16x512x7x7",
     {{{16, 512, 7, 7}}},
     [](const Tensors& x) {
       return adaptive_avg_pool2d(x[0], {1, 1});
     },
     "F.adaptive_avg_pool2d(x[0], 1)",
     "f32 fwd bwd"},
    {"upsample_bilinear2d/8x32x32x32",
     {{{8, 32, 32, 32}}},
     [](const Tensors& x) {
       return upsample_bilinear2d(x[0], {64, 64}, false);
     },
     "F.interpolate(x[0], (64, 64), mode='bilinear')",
     "f32 fwd bwd"},
    {"upsample_nearest2d/8x32x32x32",
     {{{8, 32, 32, 32}}},
     [](const Tensors& x) {
       return upsample_nearest2d(x[0], {64, 64});
     },
     "F.interpolate(x[0], (64, 64), mode='nearest')",
     "f32 fwd bwd"},
    {"grid_sample/8x16x32x32",
     {{{8, 16, 32, 32}}, {{8, 32, 32, 2}}},
     [](const Tensors& x) { return grid_sampler(x[0], x[1], 0, 0, false); },
     "F.grid_sample(x[0], x[1], align_corners=False)",
     "f32 fwd bwd",
     false},
    {"batch_norm/16x64x56x56",
     {{{16, 64, 56, 56}}, {{64}}, {{64}}},
     [](const Tensors& x) { return batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5, true); },
     "F.batch_norm(x[0], None, None, x[1], x[2], True)",
     "f32 fwd bwd"},
    {"group_norm/16x64x28x28",
     {{{16, 64, 28, 28}}, {{64}}, {{64}}},
     [](const Tensors& x) { return group_norm(x[0], 8, x[1], x[2]); },
     "F.group_norm(x[0], 8, x[1], x[2])",
     "f32 fwd bwd"},
    {"lstm/64x32x128",
     {{{64, 32, 128}}, {{1, 32, 128}}, {{1, 32, 128}}, {{512, 128}}, {{512, 128}}, {{512}}, {{512}}},
     one_layer_lstm,
     "torch.lstm(x[0], (x[1], x[2]), x[3:7], True, 1, 0.0, True, False, False)[0]",
     "f32 fwd bwd",
     false},
    {"lstm/16x4x32",
     {{{16, 4, 32}}, {{1, 4, 32}}, {{1, 4, 32}}, {{128, 32}}, {{128, 32}}, {{128}}, {{128}}},
     one_layer_lstm,
     "torch.lstm(x[0], (x[1], x[2]), x[3:7], True, 1, 0.0, True, False, False)[0]",
     "f32 fwd bwd",
     false},
};

}  // namespace

void add_spatial_cases(OpCases& all, uint64_t) { all.insert(all.end(), cases.begin(), cases.end()); }

}  // namespace vesta::cli
