// Row loops against float64 loops, for every float type, CPU level and tail.
#include "kernels/cpu/rows.h"

#include "kernel_testing.h"

namespace vesta::cpu {
namespace {

using namespace testing;

TEST(Rows, SumsScaledSumsAndMasksEqualALoop) {
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  for (Elem type : float_types())
    for (int64_t n : {0, 1, 7, 8, 15, 16, 17, 33, 100})
      for (CpuIsa level : levels()) {
        Array x(type, n), out(type, n);
        for (int64_t i = 0; i < n; ++i) x.set(i, normal(engine));
        const bool wide = type == Elem::F64;
        std::vector<double> acc64(size_t(n) + 1, 0.5);
        std::vector<float> acc32(size_t(n) + 1, 0.5f);
        void* acc = wide ? static_cast<void*>(acc64.data()) : acc32.data();
        row_table(level).add(type, x.data(), acc, n);
        row_table(level).add_scaled(type, x.data(), -0.25, acc, n);
        std::vector<uint8_t> mask(size_t(n) + 1);
        for (auto& m : mask) m = uint8_t(engine() % 3);  // any number but 0 is true
        row_table(level).mask(type, x.data(), mask.data(), 2, out.data(), n);
        for (int64_t i = 0; i < n; ++i) {
          const double got = wide ? acc64[size_t(i)] : double(acc32[size_t(i)]);
          ASSERT_NEAR(got, 0.5 + 0.75 * x[i],
                      4 * epsilon(wide ? Elem::F64 : Elem::F32) * (1 + std::fabs(x[i])));
          ASSERT_EQ(out[i], mask[size_t(i)] ? 2 * x[i] : 0);
        }
        EXPECT_EQ(wide ? acc64[size_t(n)] : double(acc32[size_t(n)]), 0.5);  // nothing behind the end
      }
}

TEST(Rows, IndexedSumsEqualALoopAndReadNoIndexTooMany) {
  std::mt19937_64 engine(8);
  std::normal_distribution<double> normal;
  for (Elem type : float_types())
    for (int64_t n : {1, 15, 16, 130, 300})
      for (int64_t count : {0, 1, 7, 40})
        for (CpuIsa level : levels()) {
          constexpr int64_t kRows = 9;
          Array table(type, kRows * n);
          for (int64_t i = 0; i < table.size(); ++i) table.set(i, normal(engine));
          std::vector<int64_t> index(static_cast<size_t>(count + 3));
          for (auto& i : index) i = int64_t(engine() % kRows);
          const bool wide = type == Elem::F64;
          std::vector<double> acc64(size_t(n), 0.5), want(size_t(n), 0.5), size(size_t(n), 1);
          std::vector<float> acc32(size_t(n), 0.5f);
          for (int64_t k = 0; k < count; ++k)
            for (int64_t i = 0; i < n; ++i) {
              want[size_t(i)] += table[index[size_t(k)] * n + i];
              size[size_t(i)] += std::fabs(table[index[size_t(k)] * n + i]);
            }
          row_table(level).add_indexed(type, table.data(), index.data(), count, count + 3,
                                       wide ? static_cast<void*>(acc64.data()) : acc32.data(), n);
          for (int64_t i = 0; i < n; ++i)
            ASSERT_NEAR(wide ? acc64[size_t(i)] : double(acc32[size_t(i)]), want[size_t(i)],
                        double(count + 1) * epsilon(wide ? Elem::F64 : Elem::F32) * size[size_t(i)]);
        }
}

}  // namespace
}  // namespace vesta::cpu
