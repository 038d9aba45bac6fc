// What the generic suite cannot see because its samples avoid kinks: gradients at ties and bounds, and special functions
// against closed forms. Values on random data are covered by the suite and by the recorded cases.
#include <gtest/gtest.h>
#include <vesta/autograd.h>
#include <vesta/error.h>

#include <cmath>

#include "vesta/ops.h"

namespace vesta {
namespace {

Tensor vec(std::vector<double> v, DType t = kDouble) {
  Tensor x = empty({int64_t(v.size())}, TensorOptions().dtype(kDouble));
  std::copy(v.begin(), v.end(), x.data_ptr<double>());
  return x.to(t);
}
std::vector<double> values(const Tensor& t) {
  Tensor d = t.detach().to(kDouble).contiguous();
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}
Tensor gradient(const Tensor& y, const Tensor& x) { return autograd::grad({y.sum()}, {x})[0]; }

TEST(PointwiseSemantics, ClampByNumbersHasNoGradientAtItsBounds) {
  Tensor x = vec({-2, -1, 0, 1, 2}).requires_grad_();
  std::vector<double> inside = {0, 0, 1, 0, 0};
  EXPECT_EQ(values(gradient(clamp(x, -1, 1), x)), inside);
  EXPECT_EQ(values(gradient(hardtanh(x), x)), inside);
  EXPECT_EQ(values(gradient(clamp_min(x, 0), x)), (std::vector<double>{0, 0, 0, 1, 1}));
  EXPECT_EQ(values(gradient(relu(x), x)), (std::vector<double>{0, 0, 0, 1, 1}));
}

TEST(PointwiseSemantics, TiesShareTheGradientOfExtrema) {
  for (auto f : {maximum, minimum, fmax, fmin}) {
    Tensor x = vec({1, 2}).requires_grad_(), y = vec({1, 2}).requires_grad_();
    auto g = autograd::grad({f(x, y).sum()}, {x, y});
    EXPECT_EQ(values(g[0]), (std::vector<double>{0.5, 0.5}));
    EXPECT_EQ(values(g[1]), (std::vector<double>{0.5, 0.5}));
  }
}

TEST(PointwiseSemantics, NumbersWinOverNanInFmaxAndTakeItsGradient) {
  Tensor x = vec({NAN, 1, NAN}).requires_grad_(), y = vec({2, NAN, NAN}).requires_grad_();
  Tensor r = fmax(x, y);
  EXPECT_EQ(values(r)[0], 2);
  EXPECT_EQ(values(r)[1], 1);
  EXPECT_TRUE(std::isnan(values(r)[2]));
  auto g = autograd::grad({r.sum()}, {x, y});
  EXPECT_EQ(values(g[0]), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(values(g[1]), (std::vector<double>{1, 0, 0}));
}

TEST(PointwiseSemantics, NdtriInvertsNdtrAcrossTheLowerTail) {
  for (DType t : {kDouble, kFloat}) {
    double low = t == kDouble ? -30 : -9, tol = t == kDouble ? 1e-13 : 2e-6;
    for (double v = low; v <= 0; v += 0.37) {
      Tensor x = vec({v}, t);
      double want = values(x)[0], got = values(special_ndtri(special_ndtr(x)))[0];
      EXPECT_NEAR(got, want, tol * std::max(1.0, std::abs(want))) << dtype_name(t) << " at " << v;
    }
  }
  auto edges = values(special_ndtri(vec({0, 0.5, 1, -0.1, 1.1})));
  EXPECT_EQ(edges[0], -INFINITY);
  EXPECT_NEAR(edges[1], 0, 1e-16);
  EXPECT_EQ(edges[2], INFINITY);
  EXPECT_TRUE(std::isnan(edges[3]) && std::isnan(edges[4]));
}

TEST(PointwiseSemantics, ErfcxAgreesWithItsDefinitionAndItsAsymptote) {
  for (double v = -5; v <= 5; v += 0.23) {
    double want = std::exp(v * v) * std::erfc(v);
    EXPECT_NEAR(values(special_erfcx(vec({v})))[0], want, 1e-13 * want) << v;
  }
  for (double v : {26.9, 27.1, 30.0, 1e3, 1e6}) {
    double u = 1 / (2 * v * v),
           want = (1 - u * (1 - 3 * u * (1 - 5 * u * (1 - 7 * u)))) / (v * std::sqrt(M_PI));
    EXPECT_NEAR(values(special_erfcx(vec({v})))[0], want, 1e-12 * want) << v;
  }
}

TEST(PointwiseSemantics, ZetaAndPolygammaHaveTheirClosedForms) {
  EXPECT_NEAR(values(special_zeta(vec({2}), vec({1})))[0], M_PI * M_PI / 6, 1e-14);
  EXPECT_NEAR(values(special_zeta(vec({4}), vec({1})))[0], std::pow(M_PI, 4) / 90, 1e-14);
  EXPECT_NEAR(values(polygamma(1, vec({0.5})))[0], M_PI * M_PI / 2, 1e-13);
  EXPECT_NEAR(values(igamma(vec({1}), vec({2})))[0] + values(igammac(vec({1}), vec({2})))[0], 1, 1e-15);
  EXPECT_NEAR(values(igamma(vec({0.5}), vec({4})))[0], std::erf(2.0), 1e-14);
}

TEST(PointwiseSemantics, NextafterStepsEachFormatByItsOwnUnit) {
  EXPECT_EQ(values(nextafter(vec({1}, kHalf), vec({2}, kHalf)))[0], 1 + 0x1p-10);
  EXPECT_EQ(values(nextafter(vec({1}, kBFloat16), vec({2}, kBFloat16)))[0], 1 + 0x1p-7);
  EXPECT_EQ(values(nextafter(vec({1}, kFloat), vec({0}, kFloat)))[0], 1 - 0x1p-24);
  EXPECT_EQ(values(nextafter(vec({0}), vec({-1})))[0], -0x1p-1074);
}

TEST(PointwiseSemantics, InPlacePowersKeepTheDtypeOfSelf) {
  Tensor x = vec({2, 3}, kLong);
  x.pow_(2);
  EXPECT_EQ(x.dtype(), kLong);
  EXPECT_EQ(values(x), (std::vector<double>{4, 9}));
  EXPECT_THROW(x.pow_(0.5), TypeError);
  EXPECT_EQ(values(x), (std::vector<double>{4, 9}));
  Tensor leaf = vec({2, 3}).requires_grad_(), y = leaf * 1;
  y.pow_(3);
  EXPECT_EQ(values(gradient(y, leaf)), (std::vector<double>{12, 27}));
}

}  // namespace
}  // namespace vesta
