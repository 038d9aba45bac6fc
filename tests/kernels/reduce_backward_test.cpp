// Gradients of variances and products against float64 loops, for every float type, CPU level and layout.
#include "kernels/cpu/reduce_backward.h"

#include <vesta/error.h>

#include "base/thread_pool.h"
#include "kernel_testing.h"

namespace vesta::cpu {
namespace {

using namespace testing;

constexpr uint64_t kSeed = 31;

// Rows in one block, several blocks, beyond the caches' groups; columns narrower and wider than a vector.
const ReduceShape kShapes[] = {{1, 1, 1},    {3, 5, 1},     {70, 16, 1},   {17, 33, 1},
                               {2, 1500, 1}, {1, 70001, 1}, {2, 3000, 1},  {3, 9, 2},
                               {2, 17, 16},  {2, 6, 37},    {1, 300, 300}, {5, 1, 3}};

TEST(ReduceBackward, VariancesMatchFloat64ForEveryTypeLevelAndLayout) {
  for (CpuIsa level : levels())
    for (Elem type : float_types())
      for (ReduceShape s : kShapes) {
        SCOPED_TRACE(::testing::Message()
                     << cpu_isa_name(level) << " type " << int(type) << " shape " << s.outer << ","
                     << s.reduced << "," << s.inner << " seed " << kSeed);
        Random random(kSeed);
        Array x = random.array(type, s.outer * s.reduced * s.inner);
        for (int64_t i = 0; i < x.size(); ++i) x.set(i, x[i] + 3);  // a mean that must be subtracted first
        const Array grad = random.array(type, s.outer * s.inner);
        Array dx(type, x.size());
        reduce_backward_table(level).var(type, grad.data(), x.data(), dx.data(), s, 0.75);
        std::vector<double> want(size_t(x.size()));
        for (int64_t o = 0; o < s.outer; ++o)
          for (int64_t i = 0; i < s.inner; ++i) {
            auto at = [&](int64_t r) { return (o * s.reduced + r) * s.inner + i; };
            long double sum = 0;
            for (int64_t r = 0; r < s.reduced; ++r) sum += x[at(r)];
            const double mean = double(sum / s.reduced);
            for (int64_t r = 0; r < s.reduced; ++r)
              want[size_t(at(r))] = (x[at(r)] - mean) * grad[o * s.inner + i] * 0.75;
          }
        expect_close(dx, want, 2 * epsilon(type) + 64 * epsilon(accumulate_type(type)), "dx");
      }
}

TEST(ReduceBackward, ProductsMatchFloat64AlsoWithZeros) {
  for (CpuIsa level : levels())
    for (Elem type : float_types())
      for (ReduceShape s : kShapes)
        for (int zeros : {0, 1, 2}) {
          SCOPED_TRACE(::testing::Message()
                       << cpu_isa_name(level) << " type " << int(type) << " shape " << s.outer << ","
                       << s.reduced << "," << s.inner << " zeros " << zeros << " seed " << kSeed);
          Random random(kSeed);
          Array x(type, s.outer * s.reduced * s.inner), dx(type, x.size());
          // Powers of two around 1: products are exact, so that every element must be right in all digits.
          for (int64_t i = 0; i < x.size(); ++i) {
            const int64_t r = i / s.inner % 3;
            x.set(i, r == 0 ? -2 : r == 1 ? 0.5 : 1);
          }
          for (int z = 0; z < zeros; ++z) x.set(random.below(x.size()), 0);
          const Array grad = random.array(type, s.outer * s.inner);
          const double subnormal = type == Elem::F16 ? 6e-8 : 0;  // one step of the smallest numbers
          reduce_backward_table(level).prod(type, grad.data(), x.data(), dx.data(), s);
          for (int64_t o = 0; o < s.outer; ++o)
            for (int64_t i = 0; i < s.inner; ++i) {
              auto at = [&](int64_t r) { return (o * s.reduced + r) * s.inner + i; };
              double product = 1;  // of what is not zero
              int64_t met = 0;
              for (int64_t r = 0; r < s.reduced; ++r) x[at(r)] == 0 ? void(++met) : void(product *= x[at(r)]);
              for (int64_t r = 0; r < s.reduced; ++r) {
                const bool own = x[at(r)] == 0;
                const double others = met > int64_t(own) ? 0 : own ? product : product / x[at(r)];
                ASSERT_NEAR(dx[at(r)], grad[o * s.inner + i] * others,
                            epsilon(type) * std::fabs(grad[o * s.inner + i] * others) + subnormal)
                    << o << ", " << r << ", " << i;
              }
            }
        }
}

TEST(ReduceBackward, DoesNotDependOnTheThreadCount) {
  const int threads = num_threads();
  Random random(kSeed);
  for (ReduceShape s : {ReduceShape{300, 129, 1}, ReduceShape{1, 513, 301}, ReduceShape{1, 200000, 1}}) {
    const Array x = random.array(Elem::F32, s.outer * s.reduced * s.inner),
                grad = random.array(Elem::F32, s.outer * s.inner);
    Array var[2] = {{Elem::F32, x.size()}, {Elem::F32, x.size()}},
          prod[2] = {{Elem::F32, x.size()}, {Elem::F32, x.size()}};
    for (int k : {0, 1}) {
      set_num_threads(k ? 3 : 1);
      var_backward(Elem::F32, grad.data(), x.data(), var[k].data(), s, 2);
      prod_backward(Elem::F32, grad.data(), x.data(), prod[k].data(), s);
    }
    set_num_threads(threads);
    EXPECT_TRUE(var[0].same_bits(var[1]) && prod[0].same_bits(prod[1]));
  }
}

TEST(ReduceBackward, RejectsIntegersAndLeavesNothingForEmptyShapes) {
  int64_t x = 7;
  EXPECT_THROW(var_backward(Elem::I64, &x, &x, &x, {1, 1, 1}, 1), TypeError);
  EXPECT_THROW(prod_backward(Elem::I64, &x, &x, &x, {1, 1, 1}), TypeError);
  EXPECT_THROW(prod_backward(Elem::F32, &x, &x, &x, {1, -1, 1}), ValueError);
  var_backward(Elem::F32, &x, &x, &x, {3, 0, 1}, 1);
  prod_backward(Elem::F64, &x, &x, &x, {0, 3, 1});
  EXPECT_EQ(x, 7);
}

}  // namespace
}  // namespace vesta::cpu
