// Cross entropy against float64 loops: reductions, ignored rows, class weights, label smoothing, in-place gradients.
#include "kernels/cpu/cross_entropy.h"

#include <vesta/error.h>

#include "base/thread_pool.h"
#include "kernel_testing.h"

namespace vesta::cpu {
namespace {

using namespace testing;

struct Reference {
  std::vector<double> row_loss, lse, dlogits;  // dlogits for a gradient of 1 per row, or of the reduced loss
  double loss = 0, total = 0;
};

Reference reference(const CrossEntropyArgs& a, const Array& x, const Array* weight) {
  Reference r;
  const double s = a.label_smoothing, c = static_cast<double>(a.classes);
  double sum = 0, all = 0;
  for (int64_t j = 0; j < a.classes; ++j) all += weight ? (*weight)[j] : 1;
  for (int64_t i = 0; i < a.rows; ++i) {
    const int64_t t = a.target[i];
    double m = -INFINITY, e = 0;
    for (int64_t j = 0; j < a.classes; ++j) m = std::max(m, x[i * a.row_stride + j]);
    for (int64_t j = 0; j < a.classes; ++j) e += std::exp(x[i * a.row_stride + j] - m);
    const double lse = m + std::log(e), w = t == a.ignore_index ? 0 : weight ? (*weight)[t] : 1;
    r.lse.push_back(lse);
    double loss = 0;
    for (int64_t j = 0; j < a.classes; ++j) {
      const double wj = weight ? (*weight)[j] : 1, p = std::exp(x[i * a.row_stride + j] - lse);
      double d = 0;
      if (t != a.ignore_index) {
        loss += s / c * wj * (lse - x[i * a.row_stride + j]);
        d = (1 - s) * w * (p - (j == t)) + s / c * (p * all - wj);
      }
      r.dlogits.push_back(d);
    }
    if (t != a.ignore_index) loss += (1 - s) * w * (lse - x[i * a.row_stride + t]);
    r.row_loss.push_back(loss);
    sum += loss;
    r.total += w;
  }
  r.loss = a.reduction == LossReduction::Mean ? sum / r.total : sum;
  if (a.reduction == LossReduction::Mean)
    for (double& d : r.dlogits) d /= r.total;
  return r;
}

TEST(CrossEntropy, MatchesFloat64ForEveryOptionTypeAndLevel) {
  const int64_t shapes[][2] = {{1, 1}, {5, 3}, {64, 65}, {33, 256}, {3, 9001}};
  for (CpuIsa level : levels())
    for (Elem type : float_types())
      for (auto& shape : shapes)
        for (int options = 0; options < 24; ++options) {
          const bool weighted = options & 1, smoothed = options & 2, ignoring = options & 4;
          const LossReduction reduction = static_cast<LossReduction>(options / 8);
          SCOPED_TRACE(::testing::Message() << cpu_isa_name(level) << " type " << int(type) << " " << shape[0]
                                            << "x" << shape[1] << " options " << options);
          Random random(31);
          CrossEntropyArgs a;
          a.type = type;
          a.rows = shape[0];
          a.classes = shape[1];
          a.row_stride = shape[1] + 3;
          a.reduction = reduction;
          a.label_smoothing = smoothed ? 0.1 : 0;
          const Array x = random.array(type, a.rows * a.row_stride, 2);
          const Elem acc = accumulate_type(type);
          Array weight(acc, a.classes);
          for (int64_t i = 0; i < a.classes; ++i) weight.set(i, 0.2 + std::fabs(random.normal()));
          std::vector<int64_t> target;
          for (int64_t i = 0; i < a.rows; ++i)
            target.push_back(ignoring && i % 4 == 1 ? a.ignore_index : random.below(a.classes));
          a.target = target.data();
          a.logits = x.data();
          a.weight = weighted ? weight.data() : nullptr;
          const Reference want = reference(a, x, weighted ? &weight : nullptr);
          const bool none = reduction == LossReduction::None;
          Array loss(acc, none ? a.rows : 1), lse(acc, a.rows), total(acc, 1);
          cross_entropy_table(level).forward(a, loss.data(), lse.data(), total.data());
          const double tolerance = 40 * epsilon(acc);
          expect_close(lse, want.lse, tolerance, "logsumexp");
          expect_close(loss, none ? want.row_loss : std::vector<double>{want.loss}, tolerance, "loss");
          if (!none) expect_close(total, {want.total}, tolerance, "total weight");
          Array grad(acc, none ? a.rows : 1), dx(type, a.rows * a.classes);
          std::vector<double> want_dx = want.dlogits;
          for (int64_t i = 0; i < grad.size(); ++i) grad.set(i, 0.5 + i % 3);
          for (int64_t i = 0; i < dx.size(); ++i)
            want_dx[static_cast<size_t>(i)] *= grad[none ? i / a.classes : 0];
          cross_entropy_table(level).backward(a, lse.data(), total.data(), grad.data(), dx.data(), a.classes);
          expect_close(dx, want_dx, tolerance + 2 * epsilon(type), "dlogits");
          Array in_place = x;
          a.logits = in_place.data();
          cross_entropy_table(level).backward(a, lse.data(), total.data(), grad.data(), in_place.data(),
                                              a.row_stride);
          for (int64_t i = 0; i < a.rows; ++i)
            for (int64_t j = 0; j < a.classes; ++j)
              ASSERT_EQ(in_place[i * a.row_stride + j], dx[i * a.classes + j]);
        }
}

TEST(CrossEntropy, ReportsTheFirstTargetOutOfRange) {
  std::vector<int64_t> target{0, -100, 2, 3, -1};
  CrossEntropyArgs a;
  a.rows = 5;
  a.classes = 3;
  a.target = target.data();
  EXPECT_EQ(cross_entropy_check_targets(a), 3);
  a.classes = 4;
  EXPECT_EQ(cross_entropy_check_targets(a), 4);
  a.rows = 4;
  EXPECT_EQ(cross_entropy_check_targets(a), -1);
}

TEST(CrossEntropy, MeanOfOnlyIgnoredRowsIsNan) {
  const std::vector<int64_t> target{-100, -100};
  const float x[4] = {1, 2, 3, 4};
  CrossEntropyArgs a;
  a.rows = a.classes = a.row_stride = 2;
  a.target = target.data();
  a.logits = x;
  float loss = 0, lse[2], total;
  cross_entropy_forward(a, &loss, lse, &total);
  EXPECT_TRUE(std::isnan(loss));
  EXPECT_EQ(total, 0);
}

TEST(CrossEntropy, LogitsOfMinusInfinityAreExcluded) {
  const std::vector<int64_t> target{1};
  const float x[3] = {-INFINITY, 0, 0};
  CrossEntropyArgs a;
  a.rows = 1;
  a.classes = a.row_stride = 3;
  a.target = target.data();
  a.logits = x;
  float loss, lse, total, grad = 1, dx[3];
  cross_entropy_forward(a, &loss, &lse, &total);
  EXPECT_NEAR(loss, std::log(2.0), 1e-6);
  cross_entropy_backward(a, &lse, &total, &grad, dx, 3);
  EXPECT_EQ(dx[0], 0);
  EXPECT_NEAR(dx[1], -0.5, 1e-6);
  EXPECT_NEAR(dx[2], 0.5, 1e-6);
}

TEST(CrossEntropy, DoesNotDependOnTheThreadCount) {
  const int threads = num_threads();
  Random random(32);
  const Array x = random.array(Elem::F32, 9000 * 33);
  std::vector<int64_t> target;
  for (int i = 0; i < 9000; ++i) target.push_back(random.below(33));
  CrossEntropyArgs a;
  a.rows = 9000;
  a.classes = a.row_stride = 33;
  a.target = target.data();
  a.logits = x.data();
  float loss[2], total;
  Array lse(Elem::F32, 9000);
  for (int run = 0; run < 2; ++run) {
    set_num_threads(run == 0 ? 1 : 3);
    cross_entropy_forward(a, &loss[run], lse.data(), &total);
  }
  set_num_threads(threads);
  EXPECT_EQ(loss[0], loss[1]);
}

TEST(CrossEntropy, RejectsLabelSmoothingAboveOne) {
  CrossEntropyArgs a;
  a.classes = 2;
  a.label_smoothing = 1.5;
  EXPECT_THROW(cross_entropy_forward(a, nullptr, nullptr, nullptr), ValueError);
}

}  // namespace
}  // namespace vesta::cpu
