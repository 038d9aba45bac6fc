// Derivatives at kinks, ties, saturation, on empty, 0-dim and complex tensors; second derivatives by create_graph.
#include <functional>

#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

using Fn = std::function<Tensor(const Tensor&)>;

// pt#198017: whatever derivative is chosen where there is none, forward and reverse mode must choose the same linear map
// J: <J v, w> = <v, J^T w> exactly, up to rounding. For complex tensors <a, b> = Re sum a conj(b), with real J.
double pairing(const Tensor& a, const Tensor& b) {
  if (is_complex(a.dtype())) return number(vesta::real(a * b.conj()).sum());
  return number((a * b).sum());
}

void check(const char* name, const Fn& f, const Tensor& x) {
  Generator g(kSeed);
  DType t = x.dtype();
  Tensor v = draw(g, x.sizes().vec(), t);
  Tensor leaf = x.detach().requires_grad_();
  Tensor y = f(leaf);
  Tensor w = draw(g, y.sizes().vec(), y.dtype());
  Tensor back = autograd::grad({y}, {leaf}, {w}, std::nullopt, false, true)[0];
  if (!back.defined()) back = zeros_like(x);
  auto [value, forward] =
      autograd::jvp([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in[0])}; }, {x}, {v});
  Tensor tangent = forward[0].defined() ? forward[0] : zeros_like(y);
  EXPECT_TRUE(all_finite(back)) << name << back;
  double left = pairing(tangent, w), right = pairing(v, back);
  EXPECT_NEAR(left, right, 1e-10 * (1 + std::abs(left))) << name;
}

TEST(BoundaryDerivatives, forward_and_reverse_mode_agree_at_kinks_ties_and_saturation) {
  // Zeros of both signs, ties with each other and with the bounds below, and where exponentials vanish.
  Tensor kinks = make<double>({0, -0.0, 1, 1, -1, -1, 3, -3, 6, 0.5, -0.5, 40}, {3, 4});
  Tensor one = ones({3, 4}, kDouble);
  const std::pair<const char*, Fn> functions[] = {
      {"abs", [](const Tensor& x) { return x.abs(); }},
      {"relu", [](const Tensor& x) { return relu(x); }},
      {"relu6", [](const Tensor& x) { return relu6(x); }},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); }},
      {"elu", [](const Tensor& x) { return elu(x); }},
      {"selu", [](const Tensor& x) { return selu(x); }},
      {"celu", [](const Tensor& x) { return celu(x); }},
      {"hardtanh", [](const Tensor& x) { return hardtanh(x); }},
      {"hardsigmoid", [](const Tensor& x) { return hardsigmoid(x); }},
      {"hardswish", [](const Tensor& x) { return hardswish(x); }},
      {"hardshrink", [](const Tensor& x) { return hardshrink(x); }},
      {"softshrink", [](const Tensor& x) { return softshrink(x); }},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"silu", [](const Tensor& x) { return silu(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"mish", [](const Tensor& x) { return mish(x); }},
      {"log_sigmoid", [](const Tensor& x) { return log_sigmoid(x); }},
      {"threshold", [](const Tensor& x) { return threshold(x, 1, 7); }},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x * 100); }},
      {"tanh", [](const Tensor& x) { return tanh(x * 100); }},
      {"erf", [](const Tensor& x) { return erf(x * 100); }},
      {"sinc", [](const Tensor& x) { return sinc(x); }},
      {"sign", [](const Tensor& x) { return x.sign(); }},
      {"round", [](const Tensor& x) { return x.round(); }},
      {"frac", [](const Tensor& x) { return x.frac(); }},
      {"square", [](const Tensor& x) { return x.square(); }},
      {"pow 0", [](const Tensor& x) { return x.pow(0); }},
      {"pow 1", [](const Tensor& x) { return x.pow(1); }},
      {"pow 2", [](const Tensor& x) { return x.pow(2); }},
      {"clamp", [](const Tensor& x) { return x.clamp(-1, 1); }},
      {"clamp tensor", [=](const Tensor& x) { return x.clamp(one.neg(), one); }},
      {"maximum", [=](const Tensor& x) { return maximum(x, one); }},
      {"minimum", [=](const Tensor& x) { return minimum(x, x.flip(IntArrayRef{1})); }},
      {"fmax", [=](const Tensor& x) { return fmax(x, one); }},
      {"fmin", [=](const Tensor& x) { return fmin(x, one); }},
      {"copysign", [](const Tensor& x) { return copysign(x, x.flip(IntArrayRef{1})); }},
      {"hypot", [=](const Tensor& x) { return hypot(x, one); }},
      {"atan2", [=](const Tensor& x) { return atan2(x, one); }},
      {"xlogy", [=](const Tensor& x) { return xlogy(x, one * 2); }},
      {"max", [](const Tensor& x) { return x.max(); }},
      {"min", [](const Tensor& x) { return x.min(); }},
      {"amax", [](const Tensor& x) { return x.amax({1}); }},
      {"amin", [](const Tensor& x) { return x.amin({0}); }},
      {"max dim", [](const Tensor& x) { return std::get<0>(x.max(1)); }},
      {"median", [](const Tensor& x) { return x.median(); }},
      {"sort", [](const Tensor& x) { return std::get<0>(x.sort(1)); }},
      {"topk", [](const Tensor& x) { return std::get<0>(x.topk(2)); }},
      {"cummax", [](const Tensor& x) { return std::get<0>(x.cummax(1)); }},
      {"cumprod", [](const Tensor& x) { return x.cumprod(1); }},
      {"prod", [](const Tensor& x) { return x.prod(); }},
      {"prod dim", [](const Tensor& x) { return x.prod(1); }},
      {"logsumexp", [](const Tensor& x) { return logsumexp(x * 100, 1); }},
      {"softmax", [](const Tensor& x) { return softmax(x * 100, 1); }},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x * 100, 1); }},
      {"l1_loss", [=](const Tensor& x) { return l1_loss(x, one); }},
      {"huber_loss", [=](const Tensor& x) { return huber_loss(x, one); }},
      {"smooth_l1_loss", [=](const Tensor& x) { return smooth_l1_loss(x, one); }},
      {"max_pool2d",
       [](const Tensor& x) {
         return max_pool2d(x.reshape({1, 1, 3, 4}), IntArrayRef{2, 2});
       }},
      {"norm 1", [](const Tensor& x) { return x.norm(1); }},
      {"norm 2 of a zero row", [](const Tensor& x) { return (x * 0).norm(2); }},
      {"norm inf", [](const Tensor& x) { return linalg_vector_norm(x, kInf); }},
      {"nan_to_num", [](const Tensor& x) { return x.nan_to_num(); }},
      {"dist", [=](const Tensor& x) { return x.dist(x.detach()); }},
      {"cdist", [](const Tensor& x) { return cdist(x, x.detach()); }},
  };
  for (auto& [name, f] : functions) check(name, f, kinks);
}

TEST(BoundaryDerivatives, forward_and_reverse_mode_agree_on_empty_and_0_dim_tensors) {
  const std::pair<const char*, Fn> functions[] = {
      {"exp", [](const Tensor& x) { return x.exp(); }},
      {"sum", [](const Tensor& x) { return x.sum(); }},
      {"prod", [](const Tensor& x) { return x.prod(); }},
      {"norm", [](const Tensor& x) { return x.norm(); }},
      {"cumsum", [](const Tensor& x) { return x.cumsum(-1); }},
      {"softmax", [](const Tensor& x) { return softmax(x, -1); }},
      {"logsumexp",
       [](const Tensor& x) {
         return logsumexp(x.reshape({-1, 1}), 1);
       }},
      {"sort", [](const Tensor& x) { return std::get<0>(x.sort(-1)); }},
      {"flatten", [](const Tensor& x) { return x.flatten(); }},
      {"cat",
       [](const Tensor& x) {
         return cat({x.reshape({-1}), x.reshape({-1})});
       }},
      {"where", [](const Tensor& x) { return where(x > 0, x, x * 2); }},
  };
  for (auto& [name, f] : functions) {
    check(name, f, make<double>({0.5}, {}));
    if (std::string(name) != "logsumexp") check(name, f, zeros({0}, kDouble));
    if (std::string(name) != "logsumexp") check(name, f, zeros({0, 3}, kDouble));
  }
}

TEST(BoundaryDerivatives, forward_and_reverse_mode_agree_on_complex_tensors) {
  using C = std::complex<double>;
  Tensor x = make<C>({C(0, 0), C(1, 0), C(0, 1), C(-1, 0), C(0, -1), C(3, 4)}, {2, 3});
  const std::pair<const char*, Fn> functions[] = {
      {"abs", [](const Tensor& z) { return z.abs(); }},
      {"angle", [](const Tensor& z) { return (z + C(0.5, 0.25)).angle(); }},
      {"sgn", [](const Tensor& z) { return z.sgn(); }},
      {"square", [](const Tensor& z) { return z * z; }},
      {"z conj z", [](const Tensor& z) { return z * z.conj(); }},
      {"exp", [](const Tensor& z) { return z.exp(); }},
      {"real", [](const Tensor& z) { return vesta::real(z); }},
      {"imag", [](const Tensor& z) { return vesta::imag(z); }},
      {"view_as_real", [](const Tensor& z) { return view_as_real(z); }},
      {"sum", [](const Tensor& z) { return z.sum(); }},
      {"prod", [](const Tensor& z) { return z.prod(); }},
      {"mm", [](const Tensor& z) { return z.mm(z.t()); }},
      {"mm conj", [](const Tensor& z) { return z.mm(z.t().conj()); }},
      {"tanh", [](const Tensor& z) { return z.tanh(); }},
  };
  for (auto& [name, f] : functions) check(name, f, x);
}

// pt#181581: a gradient taken with create_graph lost its graph without a word. f = x^3: f' = 3 x^2, f'' = 6 x, f''' = 6.
TEST(BoundaryDerivatives, create_graph_keeps_every_order_of_a_cube) {
  const std::pair<const char*, Fn> cubes[] = {
      {"pow", [](const Tensor& x) { return x.pow(3); }},
      {"products", [](const Tensor& x) { return x * x * x; }},
      {"checkpoint",
       [](const Tensor& x) { return autograd::checkpoint([](const Tensor& z) { return z.pow(3); }, x); }},
  };
  for (auto& [name, cube] : cubes) {
    Tensor x = make<double>({2, -1.5, 0}, {3}).requires_grad_();
    Tensor g = cube(x).sum();
    const Doubles want[] = {{12, 6.75, 0}, {12, -9, 0}, {6, 6, 6}};
    for (int order = 0; order < 3; ++order) {
      g = autograd::grad({g.sum()}, {x}, {}, true, true)[0];
      EXPECT_EQ(values(g), want[order]) << name << " order " << order + 1;
      EXPECT_TRUE(order == 2 || g.requires_grad()) << name << " order " << order + 1;
    }
  }
}

}  // namespace
}  // namespace vesta::reports
