// Layer norm and RMS norm against float64 loops, for every float type and CPU level.
#include "kernels/cpu/layer_norm.h"

#include <vesta/error.h>

#include "base/thread_pool.h"
#include "kernel_testing.h"

namespace vesta::cpu {
namespace {

using namespace testing;

struct Case {
  int64_t rows, dim;
};
const Case kCases[] = {{0, 4}, {1, 1}, {3, 7}, {5, 16}, {40, 33}, {19, 128}, {600, 65}};

struct Reference {
  std::vector<double> y, mean, rstd, dx, dweight, dbias;
};

Reference reference(const Array& x, const Array* weight, const Array* bias, const Array& dy, Case c,
                    double eps, bool rms) {
  Reference r;
  r.y.resize(static_cast<size_t>(x.size()));
  r.dx = r.y;
  r.dweight.assign(static_cast<size_t>(c.dim), 0);
  r.dbias = r.dweight;
  const double n = static_cast<double>(c.dim);
  for (int64_t row = 0; row < c.rows; ++row) {
    double mean = 0, square = 0, sum_g = 0, sum_gx = 0;
    auto at = [&](int64_t d) { return row * c.dim + d; };
    if (!rms)
      for (int64_t d = 0; d < c.dim; ++d) mean += x[at(d)] / n;
    for (int64_t d = 0; d < c.dim; ++d) square += (x[at(d)] - mean) * (x[at(d)] - mean) / n;
    const double rstd = 1 / std::sqrt(square + eps);
    r.mean.push_back(mean);
    r.rstd.push_back(rstd);
    for (int64_t d = 0; d < c.dim; ++d) {
      const double xhat = (x[at(d)] - mean) * rstd, g = dy[at(d)] * (weight ? (*weight)[d] : 1);
      r.y[static_cast<size_t>(at(d))] = xhat * (weight ? (*weight)[d] : 1) + (bias ? (*bias)[d] : 0);
      r.dweight[static_cast<size_t>(d)] += dy[at(d)] * xhat;
      r.dbias[static_cast<size_t>(d)] += dy[at(d)];
      sum_g += g;
      sum_gx += g * xhat;
    }
    for (int64_t d = 0; d < c.dim; ++d) {
      const double xhat = (x[at(d)] - mean) * rstd, g = dy[at(d)] * (weight ? (*weight)[d] : 1);
      r.dx[static_cast<size_t>(at(d))] = rstd * (g - (rms ? 0 : sum_g / n) - xhat * sum_gx / n);
    }
  }
  return r;
}

void check(CpuIsa level, Elem type, Elem param, Case c, bool rms, bool with_weight, bool with_bias) {
  SCOPED_TRACE(::testing::Message() << cpu_isa_name(level) << " type " << int(type) << " param " << int(param)
                                    << " " << c.rows << "x" << c.dim << " rms " << rms << " weight "
                                    << with_weight << " bias " << with_bias);
  Random random(23);
  const double eps = 1e-5;
  Array x = random.array(type, c.rows * c.dim, 2);
  for (int64_t i = 0; i < x.size(); ++i)
    x.set(i, x[i] + 3);  // a mean that a one-pass variance would suffer from
  const Array dy = random.array(type, x.size());
  const Array weight = random.array(param, c.dim), bias = random.array(param, c.dim);
  const Elem acc = accumulate_type(type);
  Array y(type, x.size()), mean(acc, c.rows), rstd(acc, c.rows), dx(type, x.size()), dweight(param, c.dim),
      dbias(param, c.dim);
  const void* w = with_weight ? weight.data() : nullptr;
  const void* b = with_bias ? bias.data() : nullptr;
  const LayerNormTable& table = layer_norm_table(level);
  table.forward(rms, type, param, x.data(), w, b, y.data(), mean.data(), rstd.data(), {c.rows, c.dim}, eps);
  const Reference want =
      reference(x, with_weight ? &weight : nullptr, with_bias ? &bias : nullptr, dy, c, eps, rms);
  const double acc_eps = epsilon(acc), tolerance = 4 * epsilon(type) + 30 * acc_eps;
  if (!rms) expect_close(mean, want.mean, 8 * acc_eps, "mean");
  if (c.dim > 1 || rms) expect_close(rstd, want.rstd, 20 * acc_eps, "rstd");
  if (c.dim > 1 || rms) expect_close(y, want.y, tolerance, "y");
  table.backward(rms, type, param, dy.data(), x.data(), w, mean.data(), rstd.data(), dx.data(),
                 dweight.data(), rms ? nullptr : dbias.data(), {c.rows, c.dim});
  if (c.dim == 1 && !rms) return;  // 1 / sqrt(eps) amplifies rounding without a bound worth stating
  expect_close(dx, want.dx, tolerance * 4, "dx");
  const double sums = 4 * epsilon(param) + 30 * acc_eps * std::sqrt(double(c.rows) + 1);
  expect_close(dweight, want.dweight, sums, "dweight");
  if (!rms) expect_close(dbias, want.dbias, sums, "dbias");
}

TEST(LayerNorm, MatchesFloat64ForEveryTypeAndLevel) {
  for (CpuIsa level : levels())
    for (Elem type : float_types())
      for (Case c : kCases) {
        check(level, type, type, c, false, true, true);
        check(level, type, type, c, false, false, false);
        check(level, type, type, c, false, true, false);
        check(level, type, type, c, false, false, true);
        if (elem_size(type) == 2) check(level, type, Elem::F32, c, false, true, true);
      }
}

TEST(RmsNorm, MatchesFloat64ForEveryTypeAndLevel) {
  for (CpuIsa level : levels())
    for (Elem type : float_types())
      for (Case c : kCases) {
        check(level, type, type, c, true, true, false);
        check(level, type, type, c, true, false, false);
        if (elem_size(type) == 2) check(level, type, Elem::F32, c, true, true, false);
      }
}

TEST(LayerNorm, GradientsOfWeightAloneOrInputAloneMatchTheFullOnes) {
  Random random(24);
  const Array x = random.array(Elem::F32, 50 * 20), dy = random.array(Elem::F32, 50 * 20),
              w = random.array(Elem::F32, 20);
  Array y = x, mean(Elem::F32, 50), rstd(Elem::F32, 50);
  layer_norm_forward(Elem::F32, Elem::F32, x.data(), w.data(), nullptr, y.data(), mean.data(), rstd.data(),
                     {50, 20}, 1e-5);
  Array dx(Elem::F32, x.size()), dw(Elem::F32, 20), db(Elem::F32, 20), dx2 = dy, dw2 = dw, db2 = db;
  auto run = [&](void* gx, void* gw, void* gb, const void* g) {
    layer_norm_backward(Elem::F32, Elem::F32, g, x.data(), w.data(), mean.data(), rstd.data(), gx, gw, gb,
                        {50, 20});
  };
  run(dx.data(), dw.data(), db.data(), dy.data());
  run(nullptr, dw2.data(), nullptr, dy.data());
  run(nullptr, nullptr, db2.data(), dy.data());
  run(dx2.data(), nullptr, nullptr, dx2.data());  // dx over dy
  EXPECT_TRUE(dw.same_bits(dw2));
  EXPECT_TRUE(db.same_bits(db2));
  EXPECT_TRUE(dx.same_bits(dx2));
}

TEST(LayerNorm, DoesNotDependOnTheThreadCount) {
  const int threads = num_threads();
  Random random(25);
  const int64_t rows = 1000, dim = 96;
  const Array x = random.array(Elem::F32, rows * dim), dy = random.array(Elem::F32, rows * dim),
              w = random.array(Elem::F32, dim);
  Array results[2][3] = {{x, w, w}, {x, w, w}};
  for (int run = 0; run < 2; ++run) {
    set_num_threads(run == 0 ? 1 : 3);
    Array y = x, mean(Elem::F32, rows), rstd(Elem::F32, rows);
    layer_norm_forward(Elem::F32, Elem::F32, x.data(), w.data(), w.data(), y.data(), mean.data(), rstd.data(),
                       {rows, dim}, 1e-5);
    layer_norm_backward(Elem::F32, Elem::F32, dy.data(), x.data(), w.data(), mean.data(), rstd.data(),
                        results[run][0].data(), results[run][1].data(), results[run][2].data(), {rows, dim});
  }
  set_num_threads(threads);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(results[0][i].same_bits(results[1][i])) << i;
}

TEST(LayerNorm, RejectsWeightsOfAnotherType) {
  double x = 0;
  EXPECT_THROW(
      layer_norm_forward(Elem::F64, Elem::F32, &x, nullptr, nullptr, &x, nullptr, nullptr, {1, 1}, 1e-5),
      TypeError);
  EXPECT_THROW(rms_norm_forward(Elem::I64, Elem::I64, &x, nullptr, &x, nullptr, {1, 1}, 1e-5), TypeError);
}

}  // namespace
}  // namespace vesta::cpu
