// Convolutions and their two transposes against one float64 loop that scatters products, for every type and both memory
// formats, on chosen and random shapes.
#include "kernels/cpu/conv.h"

#include <vesta/error.h>
#include <vesta/threads.h>

#include "kernel_testing.h"

namespace vesta::cpu {
namespace {

using namespace testing;

constexpr uint64_t kSeed = 41;

struct Problem {
  ConvShape shape;
  std::vector<double> x, w, bias_y, bias_x, dy;  // channels first
  std::vector<double> y, dx, dw;                 // references
};

int64_t count(const int64_t (&d)[3]) { return d[0] * d[1] * d[2]; }

// y and dx with their biases, and dw: every product of the three once.
void reference(Problem& p) {
  const ConvShape& s = p.shape;
  const int64_t xg = s.x_group(), yg = s.y_group(), in = s.in_numel(), out = s.out_numel(), taps = s.taps();
  p.y.assign(p.dy.size(), 0);
  p.dx.assign(p.x.size(), 0);
  p.dw.assign(p.w.size(), 0);
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.y_channels; ++c)
      for (int64_t o = 0; o < out; ++o) {
        const int64_t at = (n * s.y_channels + c) * out + o;
        const int64_t od[3] = {o / (s.out[1] * s.out[2]), o / s.out[2] % s.out[1], o % s.out[2]};
        for (int64_t j = 0; j < xg; ++j)
          for (int64_t t = 0; t < taps; ++t) {
            const int64_t kd[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1],
                                   t % s.kernel[2]};
            int64_t from = 0;
            bool inside = true;
            for (int d = 0; d < 3; ++d) {
              const int64_t i = od[d] * s.stride[d] - s.pad[d] + kd[d] * s.dilation[d];
              inside &= i >= 0 && i < s.in[d];
              from = from * s.in[d] + i;
            }
            if (!inside) continue;
            const auto xi = static_cast<size_t>((n * s.x_channels + c / yg * xg + j) * in + from);
            const auto wi = static_cast<size_t>((c * xg + j) * taps + t), yi = static_cast<size_t>(at);
            p.y[yi] += p.x[xi] * p.w[wi];
            p.dx[xi] += p.dy[yi] * p.w[wi];
            p.dw[wi] += p.dy[yi] * p.x[xi];
          }
      }
  for (size_t i = 0; i < p.y.size(); ++i)
    p.y[i] += p.bias_y[i / static_cast<size_t>(out) % static_cast<size_t>(s.y_channels)];
  for (size_t i = 0; i < p.dx.size(); ++i)
    p.dx[i] += p.bias_x[i / static_cast<size_t>(in) % static_cast<size_t>(s.x_channels)];
}

std::vector<double> reordered(const std::vector<double>& v, int64_t channels, int64_t area, bool to_last) {
  std::vector<double> r(v.size());
  const auto images = static_cast<int64_t>(v.size()) / std::max<int64_t>(1, channels * area);
  for (int64_t n = 0; n < images; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < area; ++i) {
        const auto first = static_cast<size_t>((n * channels + c) * area + i);
        const auto last = static_cast<size_t>((n * area + i) * channels + c);
        r[to_last ? last : first] = v[to_last ? first : last];
      }
  return r;
}

std::vector<double> drawn(Random& random, Elem type, int64_t n) { return random.array(type, n).values(); }

Problem problem(Random& random, Elem type, const ConvShape& s) {
  Problem p;
  p.shape = s;
  p.x = drawn(random, type, s.batch * s.x_channels * s.in_numel());
  p.w = drawn(random, type, s.y_channels * s.x_group() * s.taps());
  p.dy = drawn(random, type, s.batch * s.y_channels * s.out_numel());
  p.bias_y = drawn(random, type, s.y_channels);
  p.bias_x = drawn(random, type, s.x_channels);
  return p;
}

// A sum of n products of unit normals is of size sqrt(n), and so are its partial sums.
double tolerance(Elem type, int64_t products) {
  const double n = static_cast<double>(products);
  return 2 * epsilon(type) + epsilon(accumulate_type(type)) * (8 * std::sqrt(n) + n / 4);
}

void check(Elem type, ConvLayout layout, const Problem& p) {
  const ConvShape& s = p.shape;
  const bool last = layout == ConvLayout::Last;
  if (last && !conv_takes_last(type, s)) return;
  const auto given = [&](const std::vector<double>& v, int64_t channels, int64_t area) {
    return Array(type, last ? reordered(v, channels, area, true) : v);
  };
  const Array x = given(p.x, s.x_channels, s.in_numel()), dy = given(p.dy, s.y_channels, s.out_numel());
  const Array w(type, p.w), bias_y(type, p.bias_y), bias_x(type, p.bias_x);
  Array y(type, dy.size()), dx(type, x.size()), dw(type, w.size());
  Array y1 = y, dx1 = dx, dw1 = dw;
  const auto run = [&](Array& a, Array& b, Array& c) {
    conv_forward(type, layout, s, x.data(), w.data(), bias_y.data(), a.data());
    conv_backward_data(type, layout, s, dy.data(), w.data(), bias_x.data(), b.data());
    conv_backward_weight(type, layout, s, dy.data(), x.data(), c.data());
  };
  run(y, dx, dw);
  const auto back = [&](const std::vector<double>& v, int64_t channels, int64_t area) {
    return last ? reordered(v, channels, area, true) : v;
  };
  expect_close(y, back(p.y, s.y_channels, s.out_numel()), tolerance(type, s.x_group() * s.taps()), "y");
  expect_close(dx, back(p.dx, s.x_channels, s.in_numel()), tolerance(type, s.y_group() * s.taps()), "dx");
  expect_close(dw, p.dw, tolerance(type, s.batch * s.out_numel()), "dw");

  const int threads = num_threads();
  set_num_threads(1);
  run(y1, dx1, dw1);
  set_num_threads(threads);
  EXPECT_TRUE(y.same_bits(y1) && dx.same_bits(dx1) && dw.same_bits(dw1)) << "one thread gives other bits";
}

std::string text(const ConvShape& s) {
  std::ostringstream out;
  out << "batch " << s.batch << " groups " << s.groups << " channels " << s.x_channels << " -> "
      << s.y_channels;
  const auto list = [&](const char* name, const int64_t(&v)[3]) {
    out << " " << name << " " << v[0] << "x" << v[1] << "x" << v[2];
  };
  list("in", s.in);
  list("out", s.out);
  list("kernel", s.kernel);
  list("stride", s.stride);
  list("pad", s.pad);
  list("dilation", s.dilation);
  return out.str();
}

void check_all(const ConvShape& s, const std::vector<Elem>& types) {
  Random random(kSeed);
  for (const Elem type : types) {
    Problem p = problem(random, type, s);
    reference(p);
    for (const ConvLayout layout : {ConvLayout::First, ConvLayout::Last}) {
      SCOPED_TRACE(::testing::Message() << "seed " << kSeed << " type " << int(type) << " layout "
                                        << int(layout) << " " << text(s));
      check(type, layout, p);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

ConvShape shape(int64_t batch, int64_t groups, int64_t x_channels, int64_t y_channels,
                std::vector<int64_t> in, std::vector<int64_t> kernel, int64_t stride = 1, int64_t pad = 0,
                int64_t dilation = 1) {
  ConvShape s;
  s.batch = batch, s.groups = groups, s.x_channels = x_channels, s.y_channels = y_channels;
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t d = 3 - in.size() + i;
    s.in[d] = in[i], s.kernel[d] = kernel[i], s.stride[d] = stride, s.pad[d] = pad, s.dilation[d] = dilation;
    s.out[d] = (in[i] + 2 * pad - dilation * (kernel[i] - 1) - 1) / stride + 1;
  }
  return s;
}

TEST(Conv, AgreesWithTheLoopInOneToThreeDims) {
  check_all(shape(2, 1, 5, 7, {37}, {3}), float_types());
  check_all(shape(1, 1, 3, 20, {61}, {8}, 3, 4, 2), float_types());
  check_all(shape(2, 1, 6, 18, {13, 17}, {3, 3}, 1, 1), float_types());
  check_all(shape(3, 1, 3, 16, {23, 20}, {7, 7}, 2, 3), float_types());
  check_all(shape(2, 1, 4, 15, {14, 9}, {3, 2}, 2, 1, 2), float_types());
  check_all(shape(2, 1, 5, 6, {5, 6, 7}, {3, 2, 3}, 1, 1), float_types());
  check_all(shape(1, 1, 4, 6, {7, 6, 9}, {2, 3, 3}, 2, 2, 2), float_types());
}

TEST(Conv, AgreesWithTheLoopForOneTap) {
  check_all(shape(3, 1, 33, 20, {9, 7}, {1, 1}), float_types());
  check_all(shape(2, 2, 8, 34, {6, 5}, {1, 1}), float_types());
  check_all(shape(2, 1, 9, 17, {9, 8}, {1, 1}, 2),
            float_types());  // leaves results of the transpose untouched
  check_all(shape(2, 1, 9, 17, {9, 8}, {1, 1}, 1, 1), float_types());
}

TEST(Conv, AgreesWithTheLoopForGroups) {
  check_all(shape(2, 3, 12, 9, {11, 13}, {3, 3}, 1, 1), float_types());
  check_all(shape(2, 2, 34, 70, {6, 7}, {3, 3}, 2, 1), float_types());
}

TEST(Conv, AgreesWithTheLoopForDepthwiseShapes) {
  for (const int64_t width : {5, 16, 31, 70})
    check_all(shape(2, 6, 6, 6, {7, width}, {3, 3}, 1, 1), float_types());
  check_all(shape(2, 6, 6, 6, {3, 5, 33}, {1, 3, 3}, 1, 1), float_types());
  check_all(shape(2, 18, 18, 18, {9, 12}, {5, 3}, 2, 2), float_types());
  check_all(shape(1, 5, 5, 10, {12, 11}, {3, 4}, 1, 1, 2), float_types());  // two results a channel
  check_all(shape(2, 3, 3, 3, {4, 7, 9}, {2, 3, 3}, 3, 1), float_types());
  check_all(shape(3, 40, 40, 40, {33}, {7}, 1, 3), float_types());
}

// More than one K block, tile, slice and strip.
TEST(Conv, AgreesWithTheLoopOnLargerShapes) {
  check_all(shape(2, 1, 130, 65, {15, 14}, {3, 3}, 1, 1), {Elem::F32, Elem::BF16});
  check_all(shape(1, 1, 16, 32, {40, 41}, {3, 3}, 1, 1), {Elem::F32, Elem::F64});
  check_all(shape(20, 1, 24, 24, {7, 7}, {3, 3}, 1, 1), {Elem::F32, Elem::F16});
  check_all(shape(2, 1, 600, 20, {5, 5}, {2, 2}), {Elem::F32, Elem::F64});
}

// Channels first with at least 8 channels gathers from the source itself: lines of every length, steps of 1 and 2, small
// images that run together, K that ends within a channel block, groups, phases.
TEST(Conv, AgreesWithTheLoopWithoutAPaddedCopy) {
  check_all(shape(6, 1, 32, 48, {4, 4}, {3, 3}, 1, 1), float_types());
  check_all(shape(5, 1, 24, 40, {9, 13}, {3, 3}, 2, 1), float_types());
  check_all(shape(3, 1, 70, 9, {8, 35}, {3, 3}, 2, 2, 3), float_types());
  check_all(shape(3, 1, 16, 30, {70}, {5}, 1, 2), float_types());
  check_all(shape(2, 1, 9, 10, {4, 5, 6}, {3, 3, 3}, 2, 1), float_types());
  check_all(shape(2, 1, 10, 12, {5, 4, 37}, {2, 3, 3}, 1, 2), {Elem::F32, Elem::BF16});
  check_all(shape(4, 2, 40, 22, {7, 6}, {3, 3}, 1, 1), float_types());
  check_all(shape(2, 1, 12, 8, {6, 5}, {4, 4}, 2, 1), float_types());
  check_all(shape(3, 1, 8, 20, {3, 2}, {3, 3}, 1, 3, 2), {Elem::F32});  // whole lines of padding
  check_all(shape(9, 1, 64, 64, {1, 1}, {3, 3}, 1, 1), {Elem::F32});
  check_all(shape(2, 1, 1024, 16, {3, 3}, {1, 1}, 2),
            {Elem::F32});  // weight rows 4096 bytes apart are copied
}

// Result channels that fill vectors run by chains over taps: images as rows of tiles where lines are short, merged taps where
// channels are few, tiles at a line's edges, boxes cut in every dim, blocks of rows, kernels wider than the image.
TEST(Conv, AgreesWithTheLoopByChains) {
  check_all(shape(17, 1, 32, 48, {5, 6}, {3, 3}, 1, 1), float_types());
  check_all(shape(9, 1, 40, 34, {7, 7}, {3, 3}, 2, 1), float_types());
  check_all(shape(16, 1, 33, 16, {3, 4, 5}, {2, 3, 3}, 1, 1), {Elem::F32, Elem::BF16});
  check_all(shape(16, 1, 32, 16, {6, 11}, {3, 3}, 1, 1), {Elem::F32, Elem::F16});
  check_all(shape(2, 1, 16, 16, {8, 33}, {3, 5}, 1, 2, 2), float_types());
  check_all(shape(1, 1, 64, 16, {5000}, {5}, 2, 2), {Elem::F32});
  check_all(shape(1, 1, 16, 32, {4100}, {7}, 3, 3), {Elem::F32, Elem::F64});
  check_all(shape(1, 1, 32, 32, {9, 12, 30}, {3, 3, 3}, 1, 1), {Elem::F32});
  check_all(shape(2, 1, 16, 16, {6, 11, 29}, {3, 3, 3}, 2, 1), float_types());
  check_all(shape(3, 2, 64, 96, {9, 15}, {3, 3}, 2, 1), {Elem::F32, Elem::BF16});
  check_all(shape(4, 2, 64, 160, {7, 9}, {1, 1}), float_types());
  check_all(shape(1, 1, 64, 320, {6, 6}, {3, 3}, 1, 1), {Elem::F32});
  check_all(shape(2, 1, 64, 32, {2, 3}, {5, 7}, 1, 3), float_types());
  check_all(shape(2, 1, 64, 32, {9, 9}, {2, 2}, 3), float_types());  // results and sources that no tap meets
}

TEST(Conv, AgreesWithTheLoopOnRandomShapes) {
  Random random(kSeed + 1);
  for (int i = 0; i < 60; ++i) {
    const int64_t groups = 1 + random.below(3);
    std::vector<int64_t> in, kernel;
    const auto dims = static_cast<size_t>(1 + random.below(3));
    const int64_t stride = 1 + random.below(3), pad = random.below(3), dilation = 1 + random.below(3);
    for (size_t d = 0; d < dims; ++d) {
      kernel.push_back(1 + random.below(4));
      const int64_t reach = dilation * (kernel.back() - 1) + 1;
      in.push_back(std::max<int64_t>(1, reach - 2 * pad) + random.below(dims == 3 ? 5 : 15));
    }
    ConvShape s = shape(1 + random.below(3), groups, groups * (1 + random.below(9)),
                        groups * (1 + random.below(20)), in, kernel, stride, pad, dilation);
    // The gradient of a transposed convolution with output padding has a result that stops early.
    if (random.below(3) == 0 && s.out[2] > 1) --s.out[2];
    check_all(s, {Elem::F32, float_types()[static_cast<size_t>(random.below(4))]});
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Conv, TakesHugePaddingAndDilationWithoutHugeMemory) {
  ConvShape s = shape(1, 1, 2, 3, {5}, {3}, 1, 1'000'000, 1'000'000);
  ASSERT_EQ(s.out[2], 5);
  check_all(s, {Elem::F32});
  s = shape(1, 1, 8, 8, {300}, {2}, 150, 0, 1);
  check_all(s, {Elem::F32});
}

TEST(Conv, AnInfinityReachesOnlyTheResultsThatReadIt) {
  Random random(kSeed + 2);
  for (const ConvShape& s :
       {shape(2, 1, 3, 20, {9, 11}, {3, 3}, 1, 1), shape(2, 1, 9, 20, {9, 11}, {3, 3}, 1, 1),
        shape(2, 1, 9, 20, {9, 11}, {3, 3}, 2, 1), shape(2, 4, 4, 4, {9, 11}, {3, 3}, 1, 1)}) {
    Problem p = problem(random, Elem::F32, s);
    p.x[57] = INFINITY;
    for (auto& v : p.w) v = std::fabs(v) + 0.1;
    reference(p);
    SCOPED_TRACE(text(s));
    for (const ConvLayout layout : {ConvLayout::First, ConvLayout::Last}) check(Elem::F32, layout, p);
  }
}

TEST(Conv, IntegersAreExactAndWrap) {
  const ConvShape s = shape(2, 2, 4, 6, {5, 6}, {3, 2}, 2, 1);
  Random random(kSeed + 3);
  for (const Elem type : {Elem::I64, Elem::I32, Elem::I16, Elem::I8, Elem::U8}) {
    Problem p;
    p.shape = s;
    const auto draw = [&](int64_t n) {
      std::vector<double> v;
      for (int64_t i = 0; i < n; ++i)
        v.push_back(
            static_cast<double>(random.below(type == Elem::U8 ? 9 : 19) - (type == Elem::U8 ? 0 : 9)));
      return v;
    };
    p.x = draw(s.batch * s.x_channels * count(s.in));
    p.w = draw(s.y_channels * s.x_group() * count(s.kernel));
    p.dy = draw(s.batch * s.y_channels * count(s.out));
    p.bias_y = draw(s.y_channels);
    p.bias_x = draw(s.x_channels);
    reference(p);
    const Array x(type, p.x), w(type, p.w), bias(type, p.bias_y), dy(type, p.dy);
    Array y(type, dy.size()), dw(type, w.size());
    conv_forward(type, ConvLayout::First, s, x.data(), w.data(), bias.data(), y.data());
    conv_backward_weight(type, ConvLayout::First, s, dy.data(), x.data(), dw.data());
    const auto wrapped = [&](double v) {
      const auto i = static_cast<int64_t>(v);
      return type == Elem::I8    ? double(int8_t(i))
             : type == Elem::U8  ? double(uint8_t(i))
             : type == Elem::I16 ? double(int16_t(i))
                                 : v;
    };
    for (int64_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y[i], wrapped(p.y[static_cast<size_t>(i)])) << "type " << int(type) << " y " << i;
    for (int64_t i = 0; i < dw.size(); ++i)
      ASSERT_EQ(dw[i], wrapped(p.dw[static_cast<size_t>(i)])) << "type " << int(type) << " dw " << i;
  }
  EXPECT_THROW(conv_forward(Elem::Bool, ConvLayout::First, s, nullptr, nullptr, nullptr, nullptr), TypeError);
}

}  // namespace
}  // namespace vesta::cpu
