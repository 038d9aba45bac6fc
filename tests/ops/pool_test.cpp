// Pooling, interpolation and grid sampling against plain loops in double, over window shapes, layouts and dtypes; ties,
// NaN, positions, memory formats and bad arguments.
#include <gtest/gtest.h>
#include <vesta/autograd.h>
#include <vesta/error.h>

#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "vesta/ops.h"
#include "vesta/random.h"

namespace vesta {
namespace {

constexpr uint64_t kSeed = 4242;
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
using Ints = std::vector<int64_t>;

Tensor draw(Ints sizes, DType t = kDouble, uint64_t seed = kSeed) {
  return randn(sizes, Generator(seed), TensorOptions(kDouble)).to(t);
}
double at(const Tensor& t, Ints index) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * t.stride(int64_t(d));
  return t.data_ptr<double>()[offset];
}
void expect_close(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  const Tensor a = got.to(kDouble).contiguous(), b = want.to(kDouble).contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data_ptr<double>()[i], y = b.data_ptr<double>()[i];
    if (std::isnan(y) && std::isnan(x)) continue;
    if (std::isinf(y)) {
      ASSERT_EQ(x, y) << what << ", element " << i;
      continue;
    }
    ASSERT_NEAR(x, y, tolerance * (1 + std::abs(y))) << what << ", element " << i << ", seed " << kSeed;
  }
}

struct Window {
  int64_t kh, kw, sh, sw, ph, pw, dh, dw;
  bool ceil;
  std::string str() const {
    return ::testing::PrintToString(Ints{kh, kw, sh, sw, ph, pw, dh, dw, int64_t(ceil)});
  }
  int64_t size(int64_t in, int64_t k, int64_t s, int64_t p, int64_t d) const {
    const double room = double(in + 2 * p - d * (k - 1) - 1) / double(s);
    int64_t n = int64_t(ceil ? std::ceil(room) : std::floor(room)) + 1;
    if (ceil && (n - 1) * s >= in + p) --n;
    return n;
  }
};
const std::vector<Window>& windows() {
  static const std::vector<Window> list = {{2, 2, 2, 2, 0, 0, 1, 1, false}, {3, 3, 2, 2, 1, 1, 1, 1, false},
                                           {3, 3, 1, 1, 1, 1, 1, 1, true},  {2, 3, 3, 1, 1, 0, 1, 2, false},
                                           {3, 2, 2, 3, 1, 1, 2, 1, true},  {5, 4, 4, 5, 2, 2, 1, 1, true},
                                           {1, 1, 3, 2, 0, 0, 1, 1, true},  {4, 1, 1, 1, 2, 0, 1, 1, false}};
  return list;
}
const std::vector<Ints>& images() {
  static const std::vector<Ints> list = {{2, 3, 7, 9}, {1, 5, 6, 6}, {3, 8, 5, 11}, {0, 2, 7, 7}};
  return list;
}

TEST(Pool, MaximaAndPositionsAreThoseOfPlainLoopsInBothLayouts) {
  for (const Ints& sizes : images())
    for (const Window& w : windows()) {
      const Tensor x = draw(sizes);
      const int64_t oh = w.size(sizes[2], w.kh, w.sh, w.ph, w.dh),
                    ow = w.size(sizes[3], w.kw, w.sw, w.pw, w.dw);
      if (oh < 1 || ow < 1) continue;
      for (const bool last : {false, true}) {
        auto [y, index] =
            max_pool2d_with_indices(last ? x.contiguous(MemoryFormat::ChannelsLast) : x, {w.kh, w.kw},
                                    {w.sh, w.sw}, {w.ph, w.pw}, {w.dh, w.dw}, w.ceil);
        ASSERT_EQ(y.sizes(), (IntArrayRef{sizes[0], sizes[1], oh, ow})) << w.str();
        ASSERT_TRUE(!last || y.numel() == 0 || y.is_contiguous(MemoryFormat::ChannelsLast));
        const Tensor values = y.contiguous(), positions = index.contiguous();
        int64_t i = 0;
        for (int64_t n = 0; n < sizes[0]; ++n)
          for (int64_t c = 0; c < sizes[1]; ++c)
            for (int64_t a = 0; a < oh; ++a)
              for (int64_t b = 0; b < ow; ++b, ++i) {
                double best = -std::numeric_limits<double>::infinity();
                int64_t where = -1;
                for (int64_t u = 0; u < w.kh; ++u)
                  for (int64_t v = 0; v < w.kw; ++v) {
                    const int64_t p = a * w.sh - w.ph + u * w.dh, q = b * w.sw - w.pw + v * w.dw;
                    if (p < 0 || q < 0 || p >= sizes[2] || q >= sizes[3]) continue;
                    const double value = at(x, {n, c, p, q});
                    if (where < 0 || value > best) best = value, where = p * sizes[3] + q;
                  }
                ASSERT_EQ(values.data_ptr<double>()[i], best) << w.str();
                ASSERT_EQ(positions.data_ptr<int64_t>()[i], where) << w.str() << ", channels last " << last;
              }
      }
    }
}

TEST(Pool, MaximaOfSequencesAreThoseOfPlainLoops) {
  for (const int64_t length : {1, 2, 5, 33, 100, 257})
    for (const Ints& window : {Ints{2, 2, 0}, Ints{2, 2, 1}, Ints{3, 2, 1}, Ints{3, 3, 0}, Ints{3, 3, 1},
                               Ints{4, 4, 2}, Ints{4, 4, 0}, Ints{5, 3, 2}}) {
      const int64_t kernel = window[0], stride = window[1], padding = window[2];
      if (length + 2 * padding < kernel) continue;
      Tensor x = draw({2, 3, length}, kFloat);
      float* v = x.data_ptr<float>();
      for (int64_t i = 0; i + 1 < x.numel(); i += 5) v[i + 1] = v[i];  // ties
      for (int64_t i = 3; i < x.numel(); i += 17) v[i] = std::nanf("");
      auto [y, index] = max_pool1d_with_indices(x, kernel, stride, padding);
      for (int64_t row = 0; row < 6; ++row)
        for (int64_t o = 0; o < y.size(2); ++o) {
          int64_t where = -1;
          for (int64_t i = o * stride - padding; i < o * stride - padding + kernel; ++i) {
            if (i < 0 || i >= length) continue;
            const float next = v[row * length + i];
            if (where < 0 || next > v[row * length + where] || std::isnan(next)) where = i;
          }
          const int64_t at = row * y.size(2) + o;
          ASSERT_EQ(index.data_ptr<int64_t>()[at], where)
              << "length " << length << " window " << ::testing::PrintToString(window) << " seed " << kSeed;
          const float got = y.data_ptr<float>()[at], want = v[row * length + where];
          ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)));
        }
    }
}

TEST(Pool, MeansAreThoseOfPlainLoopsInBothLayouts) {
  for (const Ints& sizes : images())
    for (const Window& w : windows())
      for (const bool count_pad : {true, false})
        for (const int64_t divisor : {0, 7}) {
          if (w.dh != 1 || w.dw != 1) continue;
          const Tensor x = draw(sizes);
          const int64_t oh = w.size(sizes[2], w.kh, w.sh, w.ph, 1),
                        ow = w.size(sizes[3], w.kw, w.sw, w.pw, 1);
          if (oh < 1 || ow < 1) continue;
          Tensor want = zeros({sizes[0], sizes[1], oh, ow}, kDouble);
          int64_t i = 0;
          for (int64_t n = 0; n < sizes[0]; ++n)
            for (int64_t c = 0; c < sizes[1]; ++c)
              for (int64_t a = 0; a < oh; ++a)
                for (int64_t b = 0; b < ow; ++b, ++i) {
                  double sum = 0;
                  int64_t inside = 0, padded = 0;
                  for (int64_t u = 0; u < w.kh; ++u)
                    for (int64_t v = 0; v < w.kw; ++v) {
                      const int64_t p = a * w.sh - w.ph + u, q = b * w.sw - w.pw + v;
                      // Windows end where the padding does.
                      padded += p < sizes[2] + w.ph && q < sizes[3] + w.pw;
                      if (p < 0 || q < 0 || p >= sizes[2] || q >= sizes[3]) continue;
                      sum += at(x, {n, c, p, q});
                      ++inside;
                    }
                  want.data_ptr<double>()[i] = sum / double(divisor ? divisor : count_pad ? padded : inside);
                }
          const std::optional<int64_t> with = divisor ? std::optional<int64_t>(divisor) : std::nullopt;
          for (const bool last : {false, true}) {
            const Tensor in = last ? x.contiguous(MemoryFormat::ChannelsLast) : x;
            const Tensor y =
                avg_pool2d(in, {w.kh, w.kw}, {w.sh, w.sw}, {w.ph, w.pw}, w.ceil, count_pad, with);
            expect_close(y, want, 1e-13, w.str());
            ASSERT_TRUE(!last || y.numel() == 0 || y.is_contiguous(MemoryFormat::ChannelsLast));
            expect_close(avg_pool2d(in.to(kBFloat16).to(kFloat), {w.kh, w.kw}, {w.sh, w.sw}, {w.ph, w.pw},
                                    w.ceil, count_pad, with)
                             .to(kBFloat16),
                         avg_pool2d(in.to(kBFloat16), {w.kh, w.kw}, {w.sh, w.sw}, {w.ph, w.pw}, w.ceil,
                                    count_pad, with),
                         0, "bfloat16 accumulates in float32");
          }
        }
}

TEST(Pool, VolumesArePooledAsSlicesOfImages) {
  // A window of depth 1 does the same to each slice.
  const Tensor x = draw({2, 3, 4, 6, 5});
  auto [y, index] = max_pool3d_with_indices(x, {1, 3, 2}, {1, 2, 2}, {0, 1, 1});
  const Tensor mean = avg_pool3d(x, {1, 3, 2}, {1, 2, 2}, {0, 1, 1}, false, false);
  for (int64_t d = 0; d < 4; ++d) {
    auto [want, position] = max_pool2d_with_indices(x.select(2, d), {3, 2}, {2, 2}, {1, 1});
    expect_close(y.select(2, d), want, 0, "max");
    expect_close(index.select(2, d), position + d * 30, 0, "positions");
    expect_close(mean.select(2, d), avg_pool2d(x.select(2, d), {3, 2}, {2, 2}, {1, 1}, false, false), 1e-14,
                 "mean");
  }
  const Tensor last = x.contiguous(MemoryFormat::ChannelsLast3d);
  EXPECT_TRUE(max_pool3d(last, {2}).is_contiguous(MemoryFormat::ChannelsLast3d));
  expect_close(max_pool3d(last, {2}), max_pool3d(x, {2}), 0, "channels last");
  expect_close(avg_pool3d(last, {2}), avg_pool3d(x, {2}), 1e-14, "channels last");
}

TEST(Pool, TheFirstMaximumCountsAndNaNWins) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), low = -std::numeric_limits<double>::infinity();
  Tensor x = full({1, 1, 2, 8}, 1, kDouble);
  double* p = x.data_ptr<double>();
  p[2] = p[11] = 5;  // window 1: equal maxima at 2 and 11
  p[4] = nan;        // window 2: NaN beside 7
  p[13] = 7;
  for (int i : {6, 7, 14, 15}) p[i] = low;  // window 3: only -infinity
  for (const DType t : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    auto [y, index] = max_pool2d_with_indices(x.to(t), {2});
    const Tensor values = y.to(kDouble);
    EXPECT_EQ(index.data_ptr<int64_t>()[0], 0);
    EXPECT_EQ(index.data_ptr<int64_t>()[1], 2);
    EXPECT_EQ(index.data_ptr<int64_t>()[2], 4);
    EXPECT_TRUE(std::isnan(values.data_ptr<double>()[2]));
    EXPECT_EQ(index.data_ptr<int64_t>()[3], 6);
    EXPECT_EQ(values.data_ptr<double>()[3], low);
  }
  EXPECT_TRUE(std::isnan(at(adaptive_avg_pool2d(x, {1, 4}), {0, 0, 0, 2})));
}

TEST(Pool, GradientsOfOverlappingWindowsAddUp) {
  Tensor x = zeros({1, 1, 1, 5}, kDouble);
  x.data_ptr<double>()[2] = 1;
  x.requires_grad_();
  max_pool2d(x, {1, 3}, {1, 1}, {0, 1}).sum().backward();
  // Windows around 1, 2 and 3 all have their maximum at 2; the outer two find the first zero.
  const std::vector<double> want = {1, 0, 3, 1, 0};
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(x.grad().data_ptr<double>()[i], want[size_t(i)]) << i;
}

TEST(Pool, AdaptiveWindowsCoverTheInput) {
  for (const Ints& out : {Ints{3, 4}, Ints{1, 1}, Ints{7, 9}, Ints{10, 2}}) {
    const Tensor x = draw({2, 3, 7, 9});
    Tensor mean = zeros({2, 3, out[0], out[1]}, kDouble), largest = zeros({2, 3, out[0], out[1]}, kDouble);
    for (int64_t a = 0; a < out[0]; ++a)
      for (int64_t b = 0; b < out[1]; ++b) {
        const int64_t h0 = a * 7 / out[0], h1 = ((a + 1) * 7 + out[0] - 1) / out[0];
        const int64_t w0 = b * 9 / out[1], w1 = ((b + 1) * 9 + out[1] - 1) / out[1];
        const Tensor part = x.slice(2, h0, h1).slice(3, w0, w1);
        mean.slice(2, a, a + 1).slice(3, b, b + 1).copy_(part.mean({2, 3}, true));
        largest.slice(2, a, a + 1).slice(3, b, b + 1).copy_(part.amax({2, 3}, true));
      }
    for (const bool last : {false, true}) {
      const Tensor in = last ? x.contiguous(MemoryFormat::ChannelsLast) : x;
      expect_close(adaptive_avg_pool2d(in, out), mean, 1e-14, "mean");
      expect_close(std::get<0>(adaptive_max_pool2d(in, out)), largest, 0, "max");
    }
  }
}

TEST(Pool, UnpoolingPutsMaximaBackWhereTheyWere) {
  const Tensor x = draw({2, 3, 6, 8});
  auto [y, index] = max_pool2d_with_indices(x, {2});
  const Tensor back = max_unpool2d(y, index, {6, 8});
  expect_close(max_pool2d(back.abs(), {2}), y.abs(), 0, "the maxima");
  EXPECT_EQ((back != 0).sum().item<int64_t>(), y.numel());
  Tensor bad = index.clone();
  bad.data_ptr<int64_t>()[5] = 48;
  EXPECT_THROW(max_unpool2d(y, bad, {6, 8}), IndexError);
  bad.data_ptr<int64_t>()[5] = -1;
  EXPECT_THROW(max_unpool2d(y, bad, {6, 8}), IndexError);
  EXPECT_THROW(max_pool2d_with_indices_backward(y, x, {2}, {2}, {0}, {1}, false, bad + 48), IndexError);
  EXPECT_THROW(max_unpool2d(y, index.to(kInt), {6, 8}), TypeError);
}

TEST(Pool, BadWindowsThrowAndExtremeOnesDoNotOverflow) {
  const Tensor x = draw({1, 2, 5, 5});
  for (const int64_t bad : {int64_t(0), int64_t(-1), kHuge, -kHuge - 1}) {
    EXPECT_THROW(max_pool2d(x, {bad}), ValueError);
    EXPECT_THROW(avg_pool2d(x, {2, bad}), ValueError);
    EXPECT_THROW(max_pool2d(x, {2}, {bad}), ValueError);
    EXPECT_THROW(avg_pool2d(x, {2}, {bad}), ValueError);
    EXPECT_THROW(max_pool2d(x, {2}, {1}, {0}, {bad}), ValueError);
    if (bad != 0) {
      EXPECT_THROW(max_pool2d(x, {2}, {1}, {bad}), ValueError);
      EXPECT_THROW(adaptive_avg_pool2d(x, {2, bad}), ValueError);
    }
    EXPECT_THROW(upsample_nearest2d(x, {3, bad}), ValueError);
    EXPECT_THROW(max_unpool2d(x, zeros({1, 2, 5, 5}, kLong), {5, bad}), ValueError);
  }
  EXPECT_THROW(max_pool2d(x, {2}, {1}, {2}), ValueError);       // padding beyond half
  EXPECT_THROW(max_pool2d(x, {6}), ValueError);                 // no room
  EXPECT_THROW(max_pool2d(x, {2}, {1}, {0}, {5}), ValueError);  // no room
  EXPECT_THROW(avg_pool2d(x, {2}, {}, {0}, false, true, 0), ValueError);
  EXPECT_THROW(max_pool2d(x, {2, 2, 2}), ValueError);
  EXPECT_THROW(max_pool2d(draw({2, 2}), {1}), ValueError);
  EXPECT_THROW(max_pool2d(zeros({1, 2, 0, 5}), {1}), ValueError);
  EXPECT_THROW(max_pool2d(zeros({1, 1, 4, 4}, kBool), {2}), TypeError);
  // A window of 2^31 - 1 with as much padding as allowed sees all of the input from everywhere.
  const int64_t large = (int64_t(1) << 31) - 1;
  expect_close(max_pool2d(x, {large}, {large}, {large / 2}), x.amax({2, 3}, true), 0, "a large window");
  expect_close(avg_pool2d(x, {large}, {large}, {large / 2}, false, false), x.mean({2, 3}, true), 1e-12,
               "a large window");
  EXPECT_NO_THROW(avg_pool3d(full({1, 1, 1, 1, 1}, 1, kLong), {large}, {large}, {large / 2}));
  EXPECT_EQ(avg_pool2d(full({1, 1, 1, 1}, -kHuge - 1, kLong), {1}, {1}, {0}, false, true, -1).item<int64_t>(),
            -kHuge - 1);
}

TEST(Pool, WindowsThatMeetNoElementGiveTheLowestValueAndNoGradient) {
  // Kernel 2 with dilation 3 and padding 1 over 2 elements: positions -1 and 2.
  Tensor x = full({1, 1, 2, 2}, 3, kDouble).requires_grad_();
  auto [y, index] = max_pool2d_with_indices(x, {2, 2}, {1, 1}, {1, 1}, {3, 3});
  EXPECT_EQ(y.item<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(index.item<int64_t>(), -1);
  y.sum().backward();
  EXPECT_EQ(x.grad().abs().sum().item<double>(), 0);
}

TEST(Pool, FractionalWindowsStartWhereTheSamplesSay) {
  const Tensor x = draw({1, 1, 6, 7}), samples = full({1, 1, 2}, 0.25, kDouble);
  auto [y, index] = fractional_max_pool2d(x, {2, 3}, {3, 2}, samples);
  // Height: alpha 2, starts floor((i + 0.25) 2) - floor(0.5) = 0, 2, and 4; width: alpha 4, starts 1 - 1 = 0, and 4.
  const Ints rows = {0, 2, 4}, columns = {0, 4};
  for (size_t a = 0; a < 3; ++a)
    for (size_t b = 0; b < 2; ++b)
      EXPECT_EQ(at(y, {0, 0, int64_t(a), int64_t(b)}),
                x.slice(2, rows[a], rows[a] + 2).slice(3, columns[b], columns[b] + 3).max().item<double>());
  EXPECT_THROW(fractional_max_pool2d(x, {2, 3}, {3, 2}, samples * 5), ValueError);
  EXPECT_THROW(fractional_max_pool2d(x, {2, 3}, {6, 2}, samples), ValueError);
}

// ---- interpolation ----
TEST(Interpolation, LinearIsExactOnStraightLines) {
  // Inside of the outer pixels' centres a linear function is reproduced.
  const int64_t in = 6, out = 17;
  const Tensor x = (arange(in, kDouble) * 3 + 1).reshape({1, 1, in});
  const Tensor a = upsample_linear1d(x, {out}, true), b = upsample_linear1d(x, {out}, false);
  for (int64_t o = 0; o < out; ++o) {
    EXPECT_NEAR(at(a, {0, 0, o}), 1 + 3 * double(o) * double(in - 1) / double(out - 1), 1e-12);
    const double source =
        std::min(std::max((double(o) + 0.5) * double(in) / double(out) - 0.5, 0.0), double(in - 1));
    EXPECT_NEAR(at(b, {0, 0, o}), 1 + 3 * source, 1e-12);
  }
}
TEST(Interpolation, EveryModeKeepsConstantsAndTheMemoryFormat) {
  for (const Ints& out : {Ints{9, 4}, Ints{2, 3}, Ints{5, 6}, Ints{1, 1}}) {
    const Tensor x = full({2, 3, 5, 6}, 2.5, kDouble), last = x.contiguous(MemoryFormat::ChannelsLast);
    const Tensor want = full({2, 3, out[0], out[1]}, 2.5, kDouble);
    for (const bool corners : {false, true}) {
      expect_close(upsample_bilinear2d(x, out, corners), want, 1e-14, "bilinear");
      expect_close(upsample_bicubic2d(x, out, corners), want, 1e-14, "bicubic");
      expect_close(_upsample_bilinear2d_aa(x, out, corners), want, 1e-14, "bilinear, antialiased");
      expect_close(_upsample_bicubic2d_aa(x, out, corners), want, 1e-14, "bicubic, antialiased");
      expect_close(_upsample_lanczos2d_aa(x, out, corners), want, 1e-14, "lanczos, antialiased");
    }
    expect_close(upsample_nearest2d(x, out), want, 0, "nearest");
    if (out[0] > 1) {
      EXPECT_TRUE(upsample_nearest2d(last, out).is_contiguous(MemoryFormat::ChannelsLast));
      EXPECT_TRUE(upsample_bilinear2d(last, out, false).is_contiguous(MemoryFormat::ChannelsLast));
    }
    const Tensor r = draw({2, 3, 5, 6}), rl = r.contiguous(MemoryFormat::ChannelsLast);
    expect_close(upsample_bicubic2d(rl, out, false), upsample_bicubic2d(r, out, false), 1e-14,
                 "channels last");
    expect_close(upsample_nearest2d(rl, out), upsample_nearest2d(r, out), 0, "channels last");
  }
}
TEST(Interpolation, NearestPicksTheNeighboursOfTheFormula) {
  const Tensor x = arange(7, kDouble).reshape({1, 1, 7});
  for (const int64_t out : {1, 3, 7, 10, 50}) {
    const Tensor a = upsample_nearest1d(x, {out}), b = _upsample_nearest_exact1d(x, {out});
    for (int64_t o = 0; o < out; ++o) {
      EXPECT_EQ(at(a, {0, 0, o}), double(o * 7 / out)) << out;
      EXPECT_EQ(at(b, {0, 0, o}), double((2 * o + 1) * 7 / (2 * out))) << out;
    }
  }
  EXPECT_EQ(upsample_nearest1d(x.to(kUInt8), {14}).dtype(), kUInt8);
  EXPECT_EQ(at(upsample_nearest1d(x.to(kUInt8), {14}).to(kDouble), {0, 0, 13}), 6);
}
TEST(Interpolation, CubicGoesThroughItsPixels) {
  const Tensor x = draw({1, 2, 4, 5}), y = upsample_bicubic2d(x, {10, 13}, true);
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 5; ++j) EXPECT_NEAR(at(y, {0, 1, i * 3, j * 3}), at(x, {0, 1, i, j}), 1e-12);
}
TEST(Interpolation, ShrinkingWithAntialiasAveragesBlocks) {
  // A triangle of width 2 * 4 around each block of 4: weights 1, 3, 5, 7, 7, 5, 3, 1 over 32, cut off at the border.
  const Tensor x = draw({1, 1, 1, 12}), y = _upsample_bilinear2d_aa(x, {1, 3}, false);
  const double w[] = {1, 3, 5, 7, 7, 5, 3, 1};
  double sum = 0;
  for (int64_t i = 0; i < 8; ++i) sum += w[i] * at(x, {0, 0, 0, i + 2}) / 32;
  EXPECT_NEAR(at(y, {0, 0, 0, 1}), sum, 1e-12);
}
TEST(Interpolation, ScalesOutOfTheOrdinaryAreHarmless) {
  const Tensor x = draw({1, 1, 4, 4});
  for (const double s : {0.0, -1.0, 1e-300, 1e300, std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (const bool corners : {false, true}) {
      EXPECT_EQ(upsample_bilinear2d(x, {3, 5}, corners, s, s).sizes(), (IntArrayRef{1, 1, 3, 5}));
      EXPECT_EQ(upsample_bicubic2d(x, {3, 5}, corners, s, s).sizes(), (IntArrayRef{1, 1, 3, 5}));
      EXPECT_EQ(_upsample_bicubic2d_aa(x, {3, 5}, corners, s, s).sizes(), (IntArrayRef{1, 1, 3, 5}));
    }
    EXPECT_EQ(upsample_nearest2d(x, {3, 5}, s, s).sizes(), (IntArrayRef{1, 1, 3, 5}));
  }
  EXPECT_THROW(upsample_nearest2d(x, std::nullopt, std::vector<double>{0.1, 0.1}), ValueError);
  EXPECT_THROW(upsample_nearest2d(x, std::nullopt, std::vector<double>{1e300, 1.0}), ValueError);
  EXPECT_THROW(upsample_nearest2d(x, std::nullopt, std::vector<double>{2.0}), ValueError);
}

// ---- grids ----
TEST(GridSample, TheIdentityGridGivesTheImage) {
  const Tensor x = draw({2, 3, 5, 6}), v = draw({2, 3, 4, 5, 6});
  const Tensor images = eye(2, 3, kDouble).expand({2, 2, 3}), volumes = eye(3, 4, kDouble).expand({2, 3, 4});
  for (const bool corners : {false, true}) {
    const Tensor grid = affine_grid_generator(images, {2, 3, 5, 6}, corners);
    for (const int64_t mode : {0, 1, 2})
      for (const int64_t padding : {0, 1, 2}) {
        expect_close(grid_sampler(x, grid, mode, padding, corners), x, 1e-12, "image");
        expect_close(grid_sampler(x.contiguous(MemoryFormat::ChannelsLast), grid, mode, padding, corners), x,
                     1e-12, "image");
      }
    const Tensor points = affine_grid_generator(volumes, {2, 3, 4, 5, 6}, corners);
    for (const int64_t mode : {0, 1})
      expect_close(grid_sampler(v, points, mode, 0, corners), v, 1e-12, "volume");
  }
}
TEST(GridSample, PaddingModesReadZerosTheBorderOrTheReflection) {
  // One row of 4 pixels at -1, -1/3, 1/3, 1 (corners aligned); x = -5/3 is one pixel left of the first.
  Tensor x = arange(4, kDouble).reshape({1, 1, 1, 4}) + 1, grid = zeros({1, 1, 3, 2}, kDouble);
  grid.data_ptr<double>()[0] = -5.0 / 3;
  grid.data_ptr<double>()[2] = 1e30;
  grid.data_ptr<double>()[4] = std::nan("");
  auto value = [&](int64_t mode, int64_t padding, int64_t i) {
    return at(grid_sampler(x, grid, mode, padding, true), {0, 0, 0, i});
  };
  for (const int64_t mode : {0, 1, 2}) {
    EXPECT_NEAR(value(mode, 0, 0), 0, 1e-12);
    EXPECT_NEAR(value(mode, 1, 0), 1, 1e-12);
    EXPECT_NEAR(value(mode, 2, 0), 2, 1e-12);
  }
  for (const int64_t mode : {0, 1}) {
    EXPECT_EQ(value(mode, 0, 1), 0);
    EXPECT_EQ(value(mode, 1, 1), 4);
    EXPECT_EQ(value(mode, 0, 2), 0);
    EXPECT_EQ(value(mode, 1, 2), 1);
    EXPECT_TRUE(std::isfinite(value(mode, 2, 1)));
  }
}
// Many channels are sampled together, few one by one: the same values and gradients.
TEST(GridSample, ManyChannelsEqualTheirSlices) {
  for (const DType type : {kDouble, kFloat})
    for (const int64_t channels : {8, 16, 19, 37})
      for (const int padding : {0, 1})
        for (const bool corners : {false, true})
          for (const bool last : {false, true}) {
            const double tolerance = type == kDouble ? 1e-12 : 2e-5;
            Tensor x = draw({2, channels, 6, 5}, type), grid = draw({2, 9, 8, 2}, type, kSeed + 1);
            if (last) x = x.contiguous(MemoryFormat::ChannelsLast);
            const Tensor dy = draw({2, channels, 9, 8}, type, kSeed + 2);
            x.requires_grad_(), grid.requires_grad_();
            const Tensor y = grid_sampler(x, grid, 0, padding, corners);
            auto got = autograd::grad({y}, {x, grid}, {dy});
            std::vector<Tensor> ys;
            for (int64_t c = 0; c < channels; ++c)
              ys.push_back(grid_sampler(x.slice(1, c, c + 1), grid, 0, padding, corners));
            const Tensor want_y = cat(ys, 1);
            auto want = autograd::grad({want_y}, {x, grid}, {dy});
            expect_close(y.detach(), want_y.detach(), tolerance, "values");
            expect_close(got[0], want[0], tolerance, "gradient of the image");
            expect_close(got[1], want[1], tolerance * 10, "gradient of the grid");
          }
}

TEST(GridSample, ManyChannelsOfPointsOutsideReadNothing) {
  Tensor x = draw({1, 9, 2, 2}, kFloat), grid = draw({1, 2, 4, 2}, kFloat);
  x.select(1, 0).fill_(std::numeric_limits<float>::infinity());
  float* g = grid.data_ptr<float>();
  for (const auto& [i, v] : {std::pair(0, 1e30f), std::pair(3, -1e30f), std::pair(4, std::nanf("")),
                             std::pair(6, 3.5f), std::pair(9, std::numeric_limits<float>::infinity())})
    g[i] = v;
  g[7] = -3.5f;
  const Tensor y = grid_sampler(x, grid, 0, 0, true).contiguous();
  for (const int64_t point : {0, 1, 2, 3, 4})
    for (int64_t c = 0; c < 9; ++c) EXPECT_EQ(y.data_ptr<float>()[c * 8 + point], 0.f) << point << " " << c;
  const Tensor border = grid_sampler(x, grid, 0, 1, true).contiguous();
  const Tensor want = grid_sampler(x.slice(1, 5, 6), grid, 0, 1, true).contiguous();
  expect_close(border.slice(1, 5, 6), want, 1e-6, "border");
}

TEST(GridSample, BadGridsThrow) {
  const Tensor x = draw({2, 3, 5, 6}), grid = zeros({2, 4, 4, 2}, kDouble);
  EXPECT_THROW(grid_sampler(x, grid, 3, 0, false), ValueError);
  EXPECT_THROW(grid_sampler(x, grid, 0, 3, false), ValueError);
  EXPECT_THROW(grid_sampler(x, grid, -1, 0, false), ValueError);
  EXPECT_THROW(grid_sampler(x, zeros({1, 4, 4, 2}, kDouble), 0, 0, false), ValueError);
  EXPECT_THROW(grid_sampler(x, zeros({2, 4, 4, 3}, kDouble), 0, 0, false), ValueError);
  EXPECT_THROW(grid_sampler(x, grid.to(kFloat), 0, 0, false), TypeError);
  EXPECT_THROW(grid_sampler(draw({2, 3, 4, 5, 6}), zeros({2, 1, 1, 1, 3}, kDouble), 2, 0, false), ValueError);
  Tensor a = x.clone().requires_grad_();
  const Tensor y = grid_sampler(a, grid, 0, 0, false);
  EXPECT_THROW(autograd::grad({y.sum()}, {a}, {}, std::nullopt, true), NotImplementedError);
}

TEST(Pool, LargeInputsDoNotDependOnTheNumberOfThreads) {
  const int threads = num_threads();
  const Tensor x = draw({3, 17, 61, 67}, kFloat);
  std::vector<Tensor> first;
  for (const int n : {1, 2}) {
    set_num_threads(n);
    Tensor in = x.clone().requires_grad_();
    const Tensor y = max_pool2d(in, {3}, {2}, {1}) + avg_pool2d(in, {3}, {2}, {1}) +
                     upsample_bilinear2d(adaptive_avg_pool2d(in, {7, 5}), {31, 34}, false);
    y.sum().backward();
    if (n == 1) {
      first = {y.detach(), in.grad()};
    } else {
      expect_close(y.detach(), first[0], 0, "result");
      expect_close(in.grad(), first[1], 0, "gradient");
    }
  }
  set_num_threads(threads);
}

}  // namespace
}  // namespace vesta
