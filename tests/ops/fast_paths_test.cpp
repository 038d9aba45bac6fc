// The short ways that loops take by layout and size, against plain float64 loops over strided accessors: broadcast rows and
// columns, transposed and padded operands, halves, tiles of a transposition, digit sorts, counted values, lockstep searches.
#include <gtest/gtest.h>
#include <vesta/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/thread_pool.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

Tensor draw(std::vector<int64_t> sizes, uint64_t seed, DType t = kFloat) {
  return randn(sizes, Generator(seed), TensorOptions(kDouble)).to(t);
}
// Element (i, j) of any 2-D tensor, by its strides.
double at(const Tensor& t, int64_t i, int64_t j) {
  Tensor e = t.as_strided({}, {}, t.storage_offset() + i * t.stride(0) + j * t.stride(1));
  return e.to(kDouble).item<double>();
}
std::vector<double> values(const Tensor& t) {
  Tensor d = t.to(kDouble).contiguous().reshape({-1});
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}
// Rows and columns drawn at random: reading every element one by one would take too long.
void expect_sum(const Tensor& x, const Tensor& y, double tolerance, const std::string& what) {
  Tensor out = x + y, xe = x.expand(out.sizes()), ye = y.expand(out.sizes());
  uint64_t state = 12345;
  int64_t rows = out.size(0), cols = out.size(1);
  for (int n = 0; n < 400 && out.numel() > 0; ++n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int64_t i = int64_t(state >> 33) % rows;
    int64_t j = n < 40 ? (n % 2 ? cols - 1 - n % cols : n % cols) : int64_t(state >> 11 & 0xffffff) % cols;
    if (j < 0) j = 0;
    double want = at(xe, i, j) + at(ye, i, j);
    ASSERT_NEAR(at(out, i, j), want, tolerance * (1 + std::fabs(want))) << what << " at " << i << ", " << j;
  }
}

TEST(FastPaths, SumsOfEveryLayoutEqualElementByElement) {
  for (DType t : {kFloat, kDouble, kBFloat16, kHalf}) {
    double tolerance = t == kBFloat16 ? 0.01 : t == kHalf ? 1e-3 : 1e-6;
    for (auto [r, c] : {std::pair<int64_t, int64_t>{1, 1},
                        {3, 5},
                        {70, 63},
                        {64, 64},
                        {301, 457},
                        {513, 1024},
                        {40, 2049},
                        {9, 5000}}) {
      std::string size = std::string(dtype_name(t)) + " " + std::to_string(r) + "x" + std::to_string(c);
      Tensor x = draw({r, c}, 1, t);
      expect_sum(x, draw({c}, 2, t), tolerance, size + " row");
      expect_sum(draw({c}, 2, t), x, tolerance, size + " row first");
      expect_sum(x, draw({c}, 2, t == kFloat ? kBFloat16 : kFloat), tolerance, size + " row of another type");
      expect_sum(x, draw({r, 1}, 3, t), tolerance, size + " column");
      expect_sum(x, draw({}, 4, t), tolerance, size + " number");
      expect_sum(x, draw({c, r}, 5, t).t(), tolerance, size + " transposed");
      expect_sum(draw({c, r}, 5, t).t(), x, tolerance, size + " transposed first");
      expect_sum(x, draw({r, 2 * c}, 6, t).slice(1, 0, std::nullopt, 2), tolerance, size + " every other");
      expect_sum(x, draw({r, c + 3}, 7, t).slice(1, 2, c + 2), tolerance, size + " padded");
      expect_sum(draw({r, c + 3}, 7, t).slice(1, 2, c + 2), draw({c}, 2, t), tolerance,
                 size + " padded and row");
      expect_sum(draw({r, 1}, 3, t), draw({1, c}, 8, t), tolerance, size + " column and row");
    }
  }
}

TEST(FastPaths, ResultsOfBroadcastLoopsDoNotDependOnThreads) {
  Tensor x = draw({700, 333}, 1), row = draw({333}, 2), column = draw({700, 1}, 3);
  int threads = num_threads();
  set_num_threads(1);
  Tensor a = (x + row).exp() * column;
  Tensor sums = x.sum({0}), rows = x.t().sum({0}), scan = x.cumsum(1);
  set_num_threads(3);
  EXPECT_TRUE(equal(a, (x + row).exp() * column));
  EXPECT_TRUE(equal(sums, x.sum({0})));
  EXPECT_TRUE(equal(rows, x.t().sum({0})));
  EXPECT_TRUE(equal(scan, x.cumsum(1)));
  set_num_threads(threads);
}

TEST(FastPaths, ClampKeepsNanAndBounds) {
  Tensor x = draw({1000}, 1) * 3;
  x[7] = NAN;
  Tensor y = x.clamp(-1, 1.5);
  for (int64_t i = 0; i < 1000; ++i) {
    float v = x.data_ptr<float>()[i], got = y.data_ptr<float>()[i];
    if (i == 7)
      EXPECT_TRUE(std::isnan(got));
    else
      EXPECT_EQ(got, std::min(std::max(v, -1.f), 1.5f)) << i;
  }
  EXPECT_EQ(x.clamp(2, 1)[0].item<float>(), 1);  // max wins
}

TEST(FastPaths, GeluKeepsItsRelativeAccuracy) {
  Tensor x = linspace(-9, 9, 200001), y = gelu(x), g = gelu_backward(ones_like(x), x);
  double worst = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    double v = x.data_ptr<float>()[i], want = 0.5 * v * std::erfc(-v / std::sqrt(2.0));
    double phi = 0.5 * std::erfc(-v / std::sqrt(2.0)),
           slope = phi + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
    if (want != 0) worst = std::max(worst, std::fabs(y.data_ptr<float>()[i] - want) / std::fabs(want));
    ASSERT_NEAR(g.data_ptr<float>()[i], slope, 4e-7) << v;
  }
  EXPECT_LT(worst, 4.5e-7);  // 6.2 ulp
}

TEST(FastPaths, CopiesOfTransposedAndPermutedTensorsMoveEveryElement) {
  for (DType t : {kBool, kHalf, kFloat, kDouble, kComplexDouble})
    for (auto [r, c] : {std::pair<int64_t, int64_t>{8, 8}, {16, 16}, {17, 33}, {100, 65}, {129, 250}}) {
      Tensor x = arange(r * c).remainder(251).view({r, c}).to(t), y = x.t().contiguous();
      ASSERT_EQ(y.sizes(), IntArrayRef({c, r}));
      auto have = values(y.is_complex() ? real(y) : y), from = values(x.is_complex() ? real(x) : x);
      for (int64_t i = 0; i < r; ++i)
        for (int64_t j = 0; j < c; ++j)
          ASSERT_EQ(have[size_t(j * r + i)], from[size_t(i * c + j)]) << dtype_name(t) << i << "," << j;
    }
  Tensor x = arange(2 * 3 * 19 * 43).view({2, 3, 19, 43});
  for (std::vector<int64_t> order : {std::vector<int64_t>{0, 2, 1, 3}, {0, 2, 3, 1}, {3, 1, 0, 2}}) {
    Tensor y = x.permute(order).contiguous();
    int64_t n = 0;
    std::vector<int64_t> i(4, 0);
    for (i[0] = 0; i[0] < y.size(0); ++i[0])
      for (i[1] = 0; i[1] < y.size(1); ++i[1])
        for (i[2] = 0; i[2] < y.size(2); ++i[2])
          for (i[3] = 0; i[3] < y.size(3); ++i[3], ++n) {
            int64_t want = 0;
            for (size_t d = 0; d < 4; ++d) want += i[d] * x.stride(order[d]);
            ASSERT_EQ(y.data_ptr<int64_t>()[n], want);
          }
  }
  for (double v : {0.0, 1.0, -2.5}) {
    Tensor f = full({1003}, v), b = full({1003}, v, TensorOptions(kBFloat16));
    for (double e : values(f)) ASSERT_EQ(e, v);
    for (double e : values(b)) ASSERT_EQ(e, v);
  }
}

// Rows of 1 to 600 bytes keep together while the dims before them swap, which copies them in blocks that overlap; more
// elements than a thread's share, and shares that begin inside a row.
TEST(FastPaths, ShortRowsAreCopiedWholeWhateverTheirLength) {
  for (DType t : {kFloat, kBFloat16, kByte, kDouble})
    for (int64_t row : {1, 3, 7, 15, 16, 17, 43, 75, 128, 150}) {
      const int64_t a = 70000 / row / 12 + 2, b = 5, c = 3;
      Tensor x = arange(a * b * c * row).remainder(251).view({a, b, c, row}).to(t);
      Tensor y = x.permute({2, 1, 0, 3}).contiguous(), from = x.to(kLong), to = y.to(kLong);
      const int64_t* in = from.data_ptr<int64_t>();
      const int64_t* out = to.data_ptr<int64_t>();
      int64_t wrong = 0;
      for (int64_t k = 0; k < c; ++k)
        for (int64_t j = 0; j < b; ++j)
          for (int64_t i = 0; i < a; ++i)
            for (int64_t r = 0; r < row; ++r) wrong += *out++ != in[((i * b + j) * c + k) * row + r];
      EXPECT_EQ(wrong, 0) << dtype_name(t) << " rows of " << row;
    }
}

TEST(FastPaths, ConversionsRoundToNearestEvenAndKeepNan) {
  Tensor x = draw({1027}, 1) * 1e3;
  x[40] = NAN, x[41] = INFINITY, x[42] = 1e-41, x[43] = 3.3961775e38;
  for (const Tensor& in : {x, stack({x, x}, 1).select(1, 0)}) {
    Tensor y = in.to(kBFloat16), back = y.to(kFloat);
    for (int64_t i = 0; i < 1027; ++i) {
      float want = float(BFloat16(x.data_ptr<float>()[i])), got = back.data_ptr<float>()[i];
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(got)) << i;
      else
        ASSERT_EQ(got, want) << i;
    }
  }
  EXPECT_TRUE(equal(x.nan_to_num(0, 0, 0).to(kLong), x.nan_to_num(0, 0, 0).to(kDouble).trunc().to(kLong)));
}

TEST(FastPaths, ReductionsOfPermutedAndSplitDimsEqualALoop) {
  Tensor x = draw({7, 5, 9, 33}, 1, kDouble);
  for (std::vector<int64_t> order :
       {std::vector<int64_t>{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {0, 2, 3, 1}})
    for (std::vector<int64_t> dims :
         {std::vector<int64_t>{0}, {3}, {1, 3}, {0, 2}, {0, 2, 3}, {0, 1, 2, 3}}) {
      Tensor p = x.permute(order), sum = p.sum(dims), most = p.amax(dims),
             f = p.to(kFloat).to(kBFloat16).sum(dims);
      std::vector<double> want(size_t(sum.numel()), 0), top(size_t(sum.numel()), -INFINITY);
      Tensor c = p.contiguous();
      for (int64_t n = 0; n < c.numel(); ++n) {
        int64_t rest = n, to = 0, step = 1;
        for (int64_t d = 3; d >= 0; --d) {
          int64_t i = rest % p.size(d);
          rest /= p.size(d);
          if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
          to += i * step;
          step *= p.size(d);
        }
        want[size_t(to)] += c.data_ptr<double>()[n];
        top[size_t(to)] = std::max(top[size_t(to)], c.data_ptr<double>()[n]);
      }
      auto have = values(sum), high = values(most), half = values(f);
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(have[i], want[i], 1e-10);
        ASSERT_EQ(high[i], top[i]);
        ASSERT_NEAR(half[i], want[i], 0.02 * (10 + std::fabs(want[i])));
      }
    }
  Tensor wide = draw({65, 3001}, 2), sums = wide.to(kDouble).sum({0});
  EXPECT_LT((wide.sum({0}).to(kDouble) - sums).abs().max().item<double>(), 1e-4);
}

TEST(FastPaths, ExtremesFindNanInAnyRowAndBlock) {
  for (int64_t columns : {1, 15, 64, 100, 1024, 3000, 70000}) {
    Tensor x = draw({6, columns}, 1);
    x[1][columns - 1] = NAN, x[4][columns / 2] = NAN;
    Tensor high = x.amax({1}), low = x.amin({1});
    for (int64_t r = 0; r < 6; ++r) {
      const float* p = x.data_ptr<float>() + r * columns;
      if (r == 1 || r == 4) {
        EXPECT_TRUE(std::isnan(high[r].item<float>()) && std::isnan(low[r].item<float>())) << columns;
      } else {
        EXPECT_EQ(high[r].item<float>(), *std::max_element(p, p + columns)) << columns;
        EXPECT_EQ(low[r].item<float>(), *std::min_element(p, p + columns)) << columns;
      }
    }
  }
  EXPECT_FALSE(std::signbit(zeros({40}).amin().item<float>()));
}

template <class T>
void expect_sorted(const Tensor& x) {
  auto [sorted, index] = x.sort(0);
  const T *p = x.data_ptr<T>(), *q = sorted.data_ptr<T>();
  std::vector<int64_t> order(size_t(x.numel()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return p[a] < p[b] || (p[a] == p[a] && p[b] != p[b]); });
  for (size_t i = 0; i < order.size(); ++i) {
    ASSERT_EQ(index.data_ptr<int64_t>()[i], order[i]) << i << " of " << x.numel();
    if (p[order[i]] == p[order[i]]) {
      ASSERT_EQ(q[i], p[order[i]]);
    }
  }
}
TEST(FastPaths, SortsOfEveryLengthAreStable) {
  for (int64_t n : {1, 100, 127, 128, 500, 512, 1025, 8191, 8192, 30000}) {
    Tensor x = draw({n}, uint64_t(n));
    if (n > 100) x[n / 3] = NAN, x[5] = -INFINITY, x[6] = 0.0, x[7] = -0.0;
    expect_sorted<float>(x);
    expect_sorted<double>(x.to(kDouble));
    Tensor few = (draw({n}, 3) * 4).to(kLong);
    expect_sorted<int64_t>(few);
    expect_sorted<int32_t>(few.to(kInt));
    if (n > 20) few[3] = INT64_MIN, few[4] = INT64_MAX;
    expect_sorted<int64_t>(few);
  }
  for (int64_t k : {1, 10, 62, 63, 1000}) {
    Tensor x = draw({3, 1000}, 9);
    auto [top, at] = x.topk(k);
    EXPECT_TRUE(equal(top, std::get<0>(x.sort(1, true)).narrow(1, 0, k))) << k;
    EXPECT_TRUE(equal(x.gather(1, at), top)) << k;
  }
}

TEST(FastPaths, SelectionsByMaskKeepTheirOrder) {
  for (auto [r, c] : {std::pair<int64_t, int64_t>{0, 3}, {3, 5}, {200, 333}, {2, 40000}, {40000, 1}})
    for (double share : {0.0, 0.02, 0.5, 1.0}) {
      Tensor x = draw({r, c}, 1), m = rand({r, c}, Generator(2), TensorOptions(kFloat)).lt(share);
      std::vector<float> want;
      std::vector<int64_t> where_set;
      for (int64_t i = 0; i < r * c; ++i)
        if (m.data_ptr<bool>()[i])
          want.push_back(x.data_ptr<float>()[i]), where_set.push_back(i / c), where_set.push_back(i % c);
      Tensor got = x.masked_select(m), at = m.nonzero();
      ASSERT_EQ(got.numel(), int64_t(want.size()));
      ASSERT_TRUE(std::equal(want.begin(), want.end(), got.data_ptr<float>()));
      ASSERT_EQ(at.sizes(), IntArrayRef({int64_t(want.size()), 2}));
      ASSERT_TRUE(std::equal(where_set.begin(), where_set.end(), at.data_ptr<int64_t>()));
    }
}

TEST(FastPaths, UniqueAndCountsOfSmallAndHugeRanges) {
  for (int64_t far : {int64_t(0), int64_t(1) << 40, INT64_MAX}) {
    Tensor x = (draw({50000}, 1) * 50).to(kLong);
    if (far) x[3] = far, x[4] = INT64_MIN;
    std::vector<int64_t> want(x.data_ptr<int64_t>(), x.data_ptr<int64_t>() + x.numel());
    std::sort(want.begin(), want.end());
    want.erase(std::unique(want.begin(), want.end()), want.end());
    Tensor got = std::get<0>(_unique2(x));
    ASSERT_EQ(got.numel(), int64_t(want.size()));
    EXPECT_TRUE(std::equal(want.begin(), want.end(), got.data_ptr<int64_t>()));
    auto [again, inverse, counts] = _unique2(x, true, true, true);
    EXPECT_TRUE(equal(again, got));
    EXPECT_TRUE(equal(again.index_select(0, inverse), x));
    EXPECT_EQ(counts.sum().item<int64_t>(), x.numel());
  }
  Tensor x = (rand({200000}, Generator(3), TensorOptions(kFloat)) * 300).to(kLong), bins = bincount(x);
  std::vector<int64_t> want(size_t(x.max().item<int64_t>() + 1), 0);
  for (int64_t i = 0; i < x.numel(); ++i) ++want[size_t(x.data_ptr<int64_t>()[i])];
  EXPECT_TRUE(std::equal(want.begin(), want.end(), bins.data_ptr<int64_t>()));
  x[199999] = -1;
  EXPECT_THROW(bincount(x), ValueError);
}

TEST(FastPaths, SearchesInLockstepEqualOneByOne) {
  for (int64_t n : {1, 2, 7, 8, 1000}) {
    Tensor s = std::get<0>(draw({n}, 1).sort()), v = draw({101}, 2);
    v[3] = s[0], v[4] = s[n - 1], v[5] = NAN, v[6] = INFINITY, v[7] = -INFINITY;
    for (bool right : {false, true}) {
      Tensor many = searchsorted(s, v, false, right);
      for (int64_t i = 0; i < 101; ++i)
        ASSERT_EQ(many[i].item<int64_t>(),
                  searchsorted(s, v.slice(0, i, i + 1), false, right)[0].item<int64_t>())
            << n << ", " << i;
    }
  }
}

TEST(FastPaths, SearchesFollowABisectionAlsoWhereNanEndsTheSequence) {
  for (int64_t n : {1, 3, 8, 100, 1023})
    for (bool right : {false, true})
      for (bool sorted_by_index : {false, true}) {
        Tensor s = std::get<0>(draw({3, n}, 1).mul(4).round().sort()), v = draw({3, 53}, 2).mul(4).round();
        s.slice(1, n - n / 4).fill_(NAN);
        v.select(1, 7).fill_(NAN);
        std::optional<Tensor> order;
        Tensor shown = s;
        if (sorted_by_index) {  // the same sequence, reached through a permutation
          order = arange(n - 1, -1, -1, TensorOptions(kLong)).expand({3, n}).contiguous();
          shown = s.flip({1});
        }
        Tensor found = searchsorted(shown, v, false, right, {}, order);
        auto have = values(found), p = values(s), x = values(v);
        for (int64_t i = 0; i < 3 * 53; ++i) {
          int64_t low = 0, high = n;
          while (low < high) {
            int64_t mid = (low + high) / 2;
            double m = p[size_t(i / 53 * n + mid)];
            bool stop = right ? m > x[size_t(i)] : m >= x[size_t(i)];
            stop ? high = mid : low = mid + 1;
          }
          ASSERT_EQ(have[size_t(i)], double(low)) << n << ", " << i << ", " << right;
        }
      }
}

TEST(FastPaths, GatherAndScatterAddOfLongAndShortRunsEqualALoop) {
  const std::vector<std::vector<int64_t>> shapes = {{1, 9000}, {5, 4100}, {300, 3}, {40, 70}};
  for (auto& shape : shapes)
    for (int64_t dim : {0, 1})
      for (DType t : {kFloat, kBFloat16, kLong})
        for (bool whole : {false, true}) {  // whether the index has all of self's rows
          Tensor self = draw(shape, 1, kDouble).mul(4).round().to(t);
          std::vector<int64_t> picks = shape;
          picks[size_t(dim)] = shape[size_t(dim)] * 2 + 1;
          if (!whole) picks[size_t(1 - dim)] = std::max<int64_t>(1, shape[size_t(1 - dim)] / 2);
          Tensor index = randint(0, shape[size_t(dim)], picks, Generator(3), TensorOptions(kLong));
          Tensor src = draw(picks, 4, kDouble).mul(4).round().to(t);
          auto x = values(self), sum = x, add = values(src), by = values(index);
          auto got = values(self.gather(dim, index)), added = values(self.scatter_add(dim, index, src));
          for (int64_t i = 0; i < picks[0]; ++i)
            for (int64_t j = 0; j < picks[1]; ++j) {
              size_t at = size_t(i * picks[1] + j),
                     from = size_t(dim ? i * shape[1] + int64_t(by[at]) : int64_t(by[at]) * shape[1] + j);
              ASSERT_EQ(got[at], x[from]) << dtype_name(t) << ", " << dim;
              sum[from] += add[at];
            }
          for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(added[i], sum[i], t == kBFloat16 ? 0.5 : 1e-4);
          for (int64_t wrong : {int64_t(-1), shape[size_t(dim)], INT64_MIN, INT64_MAX}) {
            Tensor bad = index.clone(), before = self.clone();
            bad.view({-1})[bad.numel() - 1] = wrong;
            EXPECT_THROW(self.gather(dim, bad), IndexError);
            EXPECT_THROW(self.scatter_add_(dim, bad, src), IndexError);
            EXPECT_THROW(self.scatter_(dim, bad, src), IndexError);
            EXPECT_TRUE(equal(self, before));
          }
        }
}

TEST(FastPaths, CosinesOfRowsAndColumnsEqualALoop) {
  for (DType t : {kFloat, kDouble, kBFloat16})
    for (auto [outer, n, inner] :
         {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {3, 17, 1}, {2, 3000, 1}, {2, 70, 5}, {1, 9, 40}}) {
      Tensor x = draw({outer, n, inner}, 1, t), y = draw({outer, n, inner}, 2, t);
      auto have = values(cosine_similarity(x, y, 1)), a = values(x), b = values(y);
      ASSERT_EQ(have.size(), size_t(outer * inner));
      for (int64_t k = 0; k < outer * inner; ++k) {
        double aa = 0, bb = 0, ab = 0;
        for (int64_t i = 0; i < n; ++i) {
          size_t at = size_t((k / inner * n + i) * inner + k % inner);
          aa += a[at] * a[at], bb += b[at] * b[at], ab += a[at] * b[at];
        }
        ASSERT_NEAR(have[size_t(k)], ab / std::sqrt(aa * bb),
                    t == kBFloat16 ? 4e-3
                    : t == kFloat  ? 1e-6
                                   : 1e-14);
      }
    }
  // Squares that leave float's range, zero vectors, broadcasting, an empty dim.
  Tensor big = full({1, 8}, 1e30), tiny = full({1, 8}, 1e-22), zero = zeros({1, 8});
  EXPECT_NEAR(cosine_similarity(big, big).item<double>(), 1, 1e-6);
  EXPECT_NEAR(cosine_similarity(tiny, tiny, 1, 1e-30).item<double>(), 1, 1e-6);
  EXPECT_EQ(cosine_similarity(zero, big).item<double>(), 0);
  EXPECT_TRUE(std::isnan(cosine_similarity(big, full({1, 8}, NAN)).item<double>()));
  EXPECT_EQ(cosine_similarity(draw({4, 8}, 1), draw({8}, 2), -1).sizes(), (IntArrayRef{4}));
  EXPECT_EQ(cosine_similarity(zeros({4, 0}), zeros({4, 0})).sum().item<double>(), 0);
  EXPECT_THROW(cosine_similarity(zeros({4, 3}), zeros({4, 3}), 2), IndexError);
}

TEST(FastPaths, NonzeroOfOneToFourDims) {
  for (std::vector<int64_t> shape : {std::vector<int64_t>{40000}, {7, 5000}, {3, 5, 1000}, {2, 3, 4, 700}}) {
    Tensor x = randint(0, 3, shape, Generator(5), TensorOptions(kLong)).sub(1), found = x.nonzero();
    const int64_t nd = x.dim(), *p = x.data_ptr<int64_t>(), *q = found.data_ptr<int64_t>();
    int64_t met = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      if (p[i] == 0) continue;
      int64_t flat = 0;
      for (int64_t d = 0; d < nd; ++d) flat = flat * shape[size_t(d)] + q[met * nd + d];
      ASSERT_EQ(flat, i);
      ++met;
    }
    ASSERT_EQ(found.sizes(), (IntArrayRef{met, nd}));
  }
}

TEST(FastPaths, IndexedSumsEqualALoopAndRefuseBadIndicesFirst) {
  for (DType t : {kFloat, kDouble, kBFloat16, kLong}) {
    Tensor self = draw({40, 70}, 1, kDouble).mul(4).round().to(t),
           add = draw({300, 70}, 2, kDouble).mul(4).round().to(t);
    Tensor index = randint(0, 40, {300}, Generator(3), TensorOptions(kLong));
    std::vector<double> want = values(self), rows = values(add);
    for (int64_t i = 0; i < 300; ++i)
      for (int64_t j = 0; j < 70; ++j)
        want[size_t(index.data_ptr<int64_t>()[i] * 70 + j)] += rows[size_t(i * 70 + j)];
    auto by_add = values(self.index_add(0, index, add)), by_put = values(self.index_put({index}, add, true));
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(by_add[i], want[i], t == kBFloat16 ? 0.5 : 1e-4) << dtype_name(t);
      ASSERT_NEAR(by_put[i], want[i], t == kBFloat16 ? 0.5 : 1e-4) << dtype_name(t);
    }
    Tensor bad = index.clone(), before = self.clone();
    bad[299] = 40;
    EXPECT_THROW(self.index_add_(0, bad, add), IndexError);
    bad[299] = -41;
    EXPECT_THROW(self.index_put_({bad}, add, true), IndexError);
    EXPECT_THROW(self.gather(0, bad.unsqueeze(1)), IndexError);
    EXPECT_TRUE(equal(self, before));
  }
}

TEST(FastPaths, DistancesByPanelsEqualALoop) {
  for (auto [n, m, d] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 4, 1}, {5, 17, 3}, {9, 33, 129}, {30, 40, 300}})
    for (double p : {1.0, 2.0, double(INFINITY)}) {
      Tensor x = draw({2, n, d}, 1), y = draw({2, m, d}, 2), r = cdist(x, y, p);
      auto a = values(x), b = values(y), have = values(r);
      for (int64_t k = 0; k < 2 * n * m; ++k) {
        int64_t batch = k / (n * m), i = k / m % n, j = k % m;
        double sum = 0;
        for (int64_t e = 0; e < d; ++e) {
          double v = std::fabs(a[size_t((batch * n + i) * d + e)] - b[size_t((batch * m + j) * d + e)]);
          sum = p == 1 ? sum + v : p == 2 ? sum + v * v : std::max(sum, v);
        }
        double want = p == 2 ? std::sqrt(sum) : sum;
        ASSERT_NEAR(have[size_t(k)], want, 2e-5 * (1 + want)) << p << " " << n << "x" << m << "x" << d;
      }
    }
}

TEST(FastPaths, FlipsOfEveryLength) {
  for (int64_t n : {1, 7, 8, 9, 64, 101}) {
    Tensor x = arange(3 * n).view({3, n}), y = x.flip({1});
    for (int64_t i = 0; i < 3 * n; ++i) ASSERT_EQ(y.data_ptr<int64_t>()[i], i / n * n + (n - 1 - i % n));
  }
}

}  // namespace
}  // namespace vesta
