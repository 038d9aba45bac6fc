// Batch and layer normalisation: half precision, memory formats, high derivatives.
#include <functional>

#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

Tensor train_batch_norm(const Tensor& x) {
  return batch_norm(x, Tensor(), Tensor(), Tensor(), Tensor(), true, 0.1, 1e-5, true);
}

// pt#147303: NaN for fp16 in channels_last. With xhat = (x - m) / s and L = <g, xhat>, L does not change when a constant
// is added to a channel, and hardly (by eps alone) when it is scaled: sum dx = 0 and sum dx xhat = 0 per channel.
TEST(Normalization, fp16_channels_last_batch_norm_has_the_gradient_of_the_contiguous_layout) {
  Generator g(kSeed);
  Tensor x = rand({16, 3, 64, 60}, g).to(kHalf), dy = draw(g, {16, 3, 64, 60}, kHalf);
  auto gradient = [&](MemoryFormat f) {
    Tensor leaf = x.contiguous(f).requires_grad_();
    return autograd::grad({train_batch_norm(leaf)}, {leaf}, {dy.contiguous(f)})[0];
  };
  Tensor plain = gradient(MemoryFormat::Contiguous), last = gradient(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(all_finite(plain));
  EXPECT_TRUE(all_finite(last));
  // Both round the same float32 values to fp16; sums in another order may move a value by an ulp (2^-10 of up to 16).
  EXPECT_LE(distance(plain, last), 16.0 / 1024);
  Tensor wide = x.to(kDouble), dx = last.to(kDouble);
  Tensor xhat = (wide - wide.mean({0, 2, 3}, true)) / wide.var({0, 2, 3}, false, true).sqrt();
  double n = double(x.numel()) / 3, size = number(dx.abs().mean());
  // N roundings of relative size 2^-11, which add up like a random walk.
  EXPECT_LE(number(dx.sum({0, 2, 3}).abs().max()), 10 * std::sqrt(n) * size / 2048);
  EXPECT_LE(number((dx * xhat).sum({0, 2, 3}).abs().max()),
            10 * std::sqrt(n) * size / 2048 + n * size * 1e-3);
}

// The third derivative along v of t -> <f(x + t v), w>, from nested gradients.
double third_derivative(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& v,
                        const Tensor& w, double at = 0, int order = 3) {
  Tensor t = full({}, at, kDouble).requires_grad_();
  Tensor y = (f(x + t * v) * w).sum();
  for (int k = 0; k < order; ++k) y = autograd::grad({y}, {t}, {}, true, true)[0];
  return number(y);
}

// pt#186256, pt#175754: derivatives were wrong from the third on. The same function of primitives must have the same
// derivatives, and the third is the slope of the second: (f''(h) - f''(-h)) / 2h, with an error of h^2 and eps / h.
void check_third(const std::function<Tensor(const Tensor&)>& op,
                 const std::function<Tensor(const Tensor&)>& primitives, Sizes sizes) {
  Generator g(kSeed);
  Tensor x = draw(g, sizes), v = draw(g, sizes), w = draw(g, sizes);
  double got = third_derivative(op, x, v, w);
  EXPECT_NEAR(got, third_derivative(primitives, x, v, w), 1e-9 * (1 + std::abs(got)));
  constexpr double kStep = 1e-4;
  double slope =
      (third_derivative(op, x, v, w, kStep, 2) - third_derivative(op, x, v, w, -kStep, 2)) / (2 * kStep);
  EXPECT_NEAR(got, slope, 1e-5 * (1 + std::abs(got)));
}

TEST(Normalization, third_derivative_of_batch_norm_is_that_of_its_formula) {
  for (Sizes sizes : {Sizes{4, 1}, Sizes{5, 3}, Sizes{2, 3, 2}})
    check_third(
        train_batch_norm,
        [](const Tensor& x) {
          std::vector<int64_t> dims = {0};
          for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
          Tensor c = x - x.mean(dims, true);
          return c / ((c * c).mean(dims, true) + 1e-5).sqrt();
        },
        sizes);
}

TEST(Normalization, third_derivative_of_layer_norm_is_that_of_its_formula) {
  check_third([](const Tensor& x) { return layer_norm(x, {5}); },
              [](const Tensor& x) {
                Tensor c = x - x.mean({-1}, true);
                return c / ((c * c).mean({-1}, true) + 1e-5).sqrt();
              },
              {3, 5});
}

}  // namespace
}  // namespace vesta::reports
