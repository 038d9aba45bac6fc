// NaN is the largest value for sort, topk and their kin, whatever its sign bit and payload.
#include <bit>
#include <random>

#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

// NaNs of both signs, quiet with payloads.
Tensor with_nans(int64_t n, int nans, DType dtype) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(double(n - 1 - i));
  Tensor t = make<double>(v, {n}).to(dtype).contiguous();
  std::mt19937_64 random(kSeed);
  for (int k = 0; k < nans; ++k) {
    int64_t at = n * (2 * k + 1) / (2 * nans);
    uint64_t payload = random() & 0xff;
    bool negative = k % 3 != 1;
    switch (dtype) {
      case DType::Float32:
        t.data_ptr<float>()[at] =
            std::bit_cast<float>(uint32_t((negative ? 0xffc00000u : 0x7fc00000u) | payload));
        break;
      case DType::Float64:
        t.data_ptr<double>()[at] =
            std::bit_cast<double>((negative ? 0xfff8ull << 48 : 0x7ff8ull << 48) | payload);
        break;
      default:
        static_cast<uint16_t*>(t.data_ptr())[at] =
            uint16_t((negative ? 0xfe00 : 0x7e00) | (dtype == kHalf ? payload : 0x1c0 | (payload & 0x3f)));
    }
  }
  return t;
}

// pt#190781: from 129 elements on (another algorithm) negative NaNs came first. Right: the numbers in order, then all
// NaNs; descending: the reverse. The index of each result names an element that is the same.
TEST(NanOrder, sort_puts_every_nan_last) {
  for (DType dtype : {kFloat32, kDouble, kHalf, kBFloat16})
    for (int64_t n : {32, 33, 128, 129, 1000}) {
      constexpr int kNans = 6;
      Tensor x = with_nans(n, kNans, dtype);
      for (bool descending : {false, true})
        for (bool stable : {false, true}) {
          auto [v, index] = sort(x, std::optional<bool>(stable), 0, descending);
          Doubles got = values(v), at = values(x.gather(0, index));
          for (int64_t i = 0; i < n; ++i) {
            bool nan = descending ? i < kNans : i >= n - kNans;
            ASSERT_EQ(std::isnan(got[size_t(i)]), nan) << dtype_name(dtype) << " n " << n << " at " << i;
            ASSERT_EQ(std::isnan(at[size_t(i)]), nan);
            if (nan) continue;
            ASSERT_EQ(got[size_t(i)], at[size_t(i)]);
            double before = i && !std::isnan(got[size_t(i - 1)]) ? got[size_t(i - 1)] : got[size_t(i)];
            ASSERT_LE(descending ? got[size_t(i)] : before, descending ? before : got[size_t(i)]);
          }
        }
    }
}

// pt#117617: the same in topk: the largest k hold NaNs first, the smallest k only if there are no other numbers.
TEST(NanOrder, topk_counts_every_nan_as_largest) {
  for (int64_t n : {32, 129, 5000}) {
    Tensor x = with_nans(n, 6, kFloat32);
    Doubles top = values(std::get<0>(topk(x, 8)));
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(top[size_t(i)])) << "n " << n << " at " << i;
    EXPECT_FALSE(std::isnan(top[6]));
    EXPECT_GT(top[6], top[7]);
    for (double low : values(std::get<0>(topk(x, 8, -1, false)))) EXPECT_FALSE(std::isnan(low));
  }
}

// 0..128 with six of them replaced by NaN leaves 123 numbers; quantiles are those of the sorted 123.
TEST(NanOrder, nanquantile_leaves_out_every_nan) {
  Tensor x = with_nans(129, 6, kFloat32);
  Doubles kept;
  for (double v : values(x))
    if (!std::isnan(v)) kept.push_back(v);
  ASSERT_EQ(kept.size(), 123u);
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(number(nanquantile(x, 0.0)), kept.front());
  EXPECT_EQ(number(nanquantile(x, 1.0)), kept.back());
  EXPECT_EQ(number(nanquantile(x, 0.5)), kept[61]);                            // position 0.5 * 122
  EXPECT_NEAR(number(nanquantile(x, 0.25)), (kept[30] + kept[31]) / 2, 1e-4);  // position 30.5
  EXPECT_EQ(number(nanmedian(x)), kept[61]);
  EXPECT_TRUE(std::isnan(number(quantile(x, 0.5))));
}

}  // namespace
}  // namespace vesta::reports
