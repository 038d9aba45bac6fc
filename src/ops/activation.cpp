// Activation functions and their fused backward passes: one loop forward, one loop backward.
// Softmax and its relatives reduce over a dim and live elsewhere.
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// Floating only: integers are rejected, as in PyTorch.
constexpr TypeRule activation_types{types::kFloatMask, Promote::Types};

bool tanh_form(const Args& a, int i) {
  std::string_view s = a.string(i);
  VESTA_CHECK(s == "none" || s == "tanh", a.name(), ": expected approximate to be 'none' or 'tanh', got '", s, "'");
  return s == "tanh";
}

// Halves of dim `dim` for glu: the size must be even and the tensor not 0-dim.
std::pair<Tensor, Tensor> halves(const Args& a, const Tensor& t, int64_t dim) {
  VESTA_CHECK(t.dim() > 0, a.name(), ": expected at least 1 dim, got a 0-dim tensor");
  dim = wrap_dim(a, dim, t.dim());
  int64_t n = t.size(dim);
  VESTA_CHECK(n % 2 == 0, a.name(), ": expected an even size at dim ", dim, ", got ", n);
  return {t.narrow(dim, 0, n / 2), t.narrow(dim, n / 2, n / 2)};
}

// The weight of prelu, shaped to broadcast along dim 1 of self.
Tensor prelu_weight(const Args& a, const Tensor& x, const Tensor& w) {
  if (w.numel() == 1 && w.dim() <= 1) return w.reshape({});
  VESTA_CHECK(w.dim() == 1, a.name(), ": expected a 0-dim or 1-dim weight, got ", w.dim(), " dims");
  VESTA_CHECK(x.dim() > 0, a.name(), ": expected a 0-dim self to have one weight, got ", w.numel());
  int64_t channels = x.dim() > 1 ? x.size(1) : 1;
  VESTA_CHECK(w.numel() == channels, a.name(), ": expected one weight or one per channel (", channels, "), got ", w.numel());
  std::vector<int64_t> sizes(size_t(x.dim()), 1);
  if (x.dim() > 1) sizes[1] = channels;
  return w.reshape(sizes);
}

constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;

constexpr OpDef table[] = {
// ---- relu and relatives ----
OP("relu(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = real_types,
  .scalar = SCALAR_FOR(Floats | Ints, max_(x, T(0))),
  .save = {out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return threshold_backward(g.dy(), g.out(), 0); }); },
  .shard = {"pw-inc"}, .doc = "max(self, 0); NaN stays.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
  .forms = InPlace | Out, .types = real_types,
  .scalar = SCALAR_FOR(Floats | Ints, where_(x <= threshold, value, x), threshold, value),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return threshold_backward(g.dy(), g.in(0), g.scalar(1)); }); },
  .shard = Shard::pointwise(), .doc = "value where self <= threshold, else self.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(1), Scalar(2)); }),
OP("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
  .forms = Out, .types = real_types,
  .scalar = SCALAR_FOR(Floats | Ints, where_(y <= threshold, T(0), x), threshold),
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return threshold_backward(g.dy(), g.in(1), g.scalar(2)); },
                                          G(1) { return zeros_like(g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "grad_output where self > threshold, else 0.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), Scalar(0)); s(s.t({}), s.t({}), Scalar(1)); }),
OP("relu6(Tensor self) -> Tensor",
  .forms = InPlace, .types = real_types,
  .decompose = [](const Args& a) -> Results { return hardtanh(a.tensor(0), 0, 6); },
  .shard = Shard::pointwise(), .doc = "min(max(self, 0), 6).",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-3, 8)); }),
OP("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
  .forms = InPlace | Out, .types = real_types,
  .scalar = SCALAR_FOR(Floats | Ints, min_(max_val, max_(min_val, x)), min_val, max_val),  // see clamp
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return hardtanh_backward(g.dy(), g.in(0), g.scalar(1), g.scalar(2)); }); },
  .shard = Shard::pointwise(), .doc = "self limited to [min_val, max_val].",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(-2), Scalar(1)); }),
OP("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
  .forms = Out, .types = real_types,
  .scalar = SCALAR_FOR(Floats | Ints, where_((y <= min_val) | (y >= max_val), T(0), x), min_val, max_val),
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return hardtanh_backward(g.dy(), g.in(1), g.scalar(2), g.scalar(3)); },
                                          G(1) { return zeros_like(g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "grad_output where self is strictly inside (min_val, max_val), else 0.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), Scalar(-2), Scalar(1)); s(s.t({}), s.t({}), Scalar(-2), Scalar(1)); }),
OP("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
  .forms = InPlace | Out, .types = activation_types,
  .scalar = SCALAR(where_(x > T(0), x, x * negative_slope), negative_slope),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return leaky_relu_backward(g.dy(), g.in(0), g.scalar(1), false); }); },
  .shard = Shard::pointwise(), .doc = "self, times negative_slope where it is not positive.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); s.unary({{3, 4}}, {}, Scalar(0.25)); }),
OP("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
  .forms = Out, .types = activation_types,
  .scalar = SCALAR(where_(y > T(0), x, x * negative_slope), negative_slope),
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return leaky_relu_backward(g.dy(), g.in(1), g.scalar(2), g.flag(3)); },
                                          G(1) { return zeros_like(g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of leaky_relu; self may be its result if the slope is not negative.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), Scalar(0.25), false); s(s.t({}), s.t({}), Scalar(0.25), true); }),
OP("_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
  .types = activation_types,
  .scalar = SCALAR(where_(x > T(0), x, x * y)),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) {
      auto [dx, dw] = _prelu_kernel_backward(g.dy(), g.in(0), g.in(1));
      return grads(G(0) { return dx; }, G(1) { return dw; }); },
  .shard = Shard::pointwise(), .doc = "prelu with a weight that broadcasts.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({4})); s(s.t({}), s.t({})); }),
OP("_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
  .types = activation_types,
  .scalar = SCALAR2((where_(y > T(0), x, x * z)), (where_(y > T(0), T(0), x * y))),
  .save = {in(0), in(1), in(2)},
  .vjp = [](const Grad& g) {
      Tensor a = g.dy(0), b = g.dy(1), x = g.in(1), neg = x <= 0, zero = zeros({}, g.in(0).options());
      return grads(G(0) { return where(neg, a * g.in(2) + b * x, a); },
                   G(1) { return where(neg, b * g.in(0), zero); }, G(2) { return where(neg, a * g.in(0), zero); }); },
  .materialize = true,
  .shard = Shard::pointwise(), .doc = "Both gradients of _prelu_kernel, the weight's not yet summed.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4})); }),
OP("prelu(Tensor self, Tensor weight) -> Tensor",
  .autocast = Autocast::Lower,
  .types = activation_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(0).dtype() == a.tensor(1).dtype(), "prelu: expected weight of dtype ", dtype_name(a.tensor(0).dtype()),
                     ", got ", dtype_name(a.tensor(1).dtype()));
      return _prelu_kernel(a.tensor(0), prelu_weight(a, a.tensor(0), a.tensor(1))); },
  .shard = Shard::pointwise(), .doc = "self, times weight (one, or one per channel of dim 1) where it is not positive.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({4})); s(s.t({2, 3, 2}), s.t({3})); s(s.t({5}), s.t({1})); s(s.t({}), s.t({})); }),
OP("rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, bool self_is_result) -> Tensor",
  .forms = Out, .types = activation_types,
  .decompose = [](const Args& a) -> Results {
      double lower = a.number(3), upper = a.number(4);
      if (a.flag(5) && upper - lower > 1e-6) return a.tensor(0) * a.tensor(2);
      return leaky_relu_backward(a.tensor(0), a.tensor(1), (lower + upper) / 2, a.flag(6)); },
  .save = {in(0).if_needs(2), in(1), in(2).if_needs(0)},
  .vjp = [](const Grad& g) {
      bool noisy = g.flag(5) && g.number(4) - g.number(3) > 1e-6;
      return grads(G(0) { return noisy ? g.dy() * g.in(2) : leaky_relu_backward(g.dy(), g.in(1), (g.number(3) + g.number(4)) / 2, g.flag(6)); },
                   G(1) { return zeros_like(g.dy()); }, G(2) { return noisy ? g.dy() * g.in(0) : zeros_like(g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of rrelu: times noise in training, else that of leaky_relu with the mean slope.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}, range(1, 2)), Scalar(0.1), Scalar(0.3), true, false);
                                s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}, range(1, 2)), Scalar(0.1), Scalar(0.3), false, false); }),

OP("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
  .forms = InPlace, .types = activation_types,
  .decompose = [](const Args& a) -> Results {
      double lower = a.number(1), upper = a.number(2);
      const Tensor& x = a.tensor(0);
      VESTA_CHECK_AS(TypeError, is_floating_point(x.dtype()), "rrelu: does not take ", dtype_name(x.dtype()), " tensors");
      VESTA_CHECK(lower <= upper, "rrelu: expected lower <= upper, got ", lower, " and ", upper);
      if (!a.flag(3)) return leaky_relu(x, (lower + upper) / 2);
      std::optional<Generator> generator;
      if (a.has(4)) generator = Generator::borrow(static_cast<GeneratorState*>(const_cast<void*>(a.value(4).ptr)));
      Tensor slope = empty(x.sizes(), x.options().requires_grad(false)).uniform_(lower, upper, generator);
      return _prelu_kernel(x, slope); },
  .shard = {"random"}, .doc = "leaky_relu whose slopes are drawn from [lower, upper) in training, else their mean.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(0.1), Scalar(0.3)); }),

// ---- made of exp ----
OP("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
  .forms = InPlace | Out, .types = activation_types,
  .scalar = SCALAR(where_(x <= T(0), expm1_(x * input_scale) * (alpha * scale), x * scale), alpha, scale, input_scale),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return elu_backward(g.dy(), g.scalar(1), g.scalar(2), g.scalar(3), false, g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "scale * self, and scale * alpha * expm1(input_scale * self) where self <= 0.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); s.unary({{3, 4}}, {}, Scalar(1.5), Scalar(0.7), Scalar(2)); }),
OP("elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor",
  .forms = Out, .types = activation_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(!a.flag(4) || a.number(1) >= 0, "elu_backward: expected alpha >= 0 where the result is given, got ", a.number(1));
      return a.flag(4) ? _elu_backward_result(a.tensor(0), a.tensor(5), a.scalar(1), a.scalar(2), a.scalar(3))
                       : _elu_backward_self(a.tensor(0), a.tensor(5), a.scalar(1), a.scalar(2), a.scalar(3)); },
  .shard = Shard::pointwise(), .doc = "Gradient of elu from its input or from its result.",
  .samples = [](SampleGen& s) { for (bool r : {false, true}) s(s.t({3, 4}), Scalar(1.5), Scalar(0.7), Scalar(2), r, s.t({3, 4}, range(-1, 2))); }),
OP("_elu_backward_self(Tensor grad_output, Tensor self, Scalar alpha, Scalar scale, Scalar input_scale) -> Tensor",
  .types = activation_types,
  .scalar = SCALAR(where_(y <= T(0), x * (input_scale * alpha * scale) * exp_(y * input_scale), x * scale), alpha, scale, input_scale),
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return _elu_backward_self(g.dy(), g.in(1), g.scalar(2), g.scalar(3), g.scalar(4)); },
      G(1) { double in_scale = g.number(4), k = in_scale * in_scale * g.number(2) * g.number(3);
             return g.dy() * g.in(0) * where(g.in(1) <= 0, (g.in(1) * in_scale).exp() * k, zeros({}, g.dy().options())); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of elu from its input.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), Scalar(1.5), Scalar(0.7), Scalar(2)); }),
OP("_elu_backward_result(Tensor grad_output, Tensor result, Scalar alpha, Scalar scale, Scalar input_scale) -> Tensor",
  .types = activation_types,
  .scalar = SCALAR(where_(y <= T(0), x * input_scale * (y + alpha * scale), x * scale), alpha, scale, input_scale),
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return _elu_backward_result(g.dy(), g.in(1), g.scalar(2), g.scalar(3), g.scalar(4)); },
      G(1) { return where(g.in(1) <= 0, g.dy() * g.in(0) * g.scalar(4), zeros({}, g.dy().options())); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of elu from its result.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}, range(-1, 2)), Scalar(1.5), Scalar(0.7), Scalar(2)); }),
OP("celu(Tensor self, Scalar alpha=1.0) -> Tensor",
  .forms = InPlace | Out, .types = activation_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.number(1) != 0, "celu: expected alpha != 0 (ZeroDivisionError)");
      return elu(a.tensor(0), a.scalar(1), 1.0, 1.0 / a.number(1)); },
  .shard = Shard::pointwise(), .doc = "max(0, self) + min(0, alpha * expm1(self / alpha)).",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); s.unary({{3, 4}}, {}, Scalar(2)); }),
OP("selu(Tensor self) -> Tensor",
  .forms = InPlace, .types = activation_types,
  .decompose = [](const Args& a) -> Results { return elu(a.tensor(0), kSeluAlpha, kSeluScale); },
  .shard = Shard::pointwise(), .doc = "elu with the constants of self-normalising networks.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("silu(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = {types::kFloatMask | types::kComplexMask, Promote::Types},
  .scalar = SCALAR_FOR(Floats, silu_(x)) | SCALAR_FOR(Complexes, x * sigmoid_(x)),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return silu_backward(g.dy(), g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "self * sigmoid(self).",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("silu_backward(Tensor grad_output, Tensor self) -> Tensor",
  .forms = Out, .types = {types::kFloatMask | types::kComplexMask, Promote::Types},
  .scalar = SCALAR(x * sigmoid_(y) * (T(1) + y * (T(1) - sigmoid_(y)))) |
            SCALAR_FOR(Complexes, x * conj_(sigmoid_(y) * (T(1) + y * (T(1) - sigmoid_(y))))),
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return silu_backward(g.dy(), g.in(1).conj()); },
      G(1) { Tensor x = g.in(1), s = sigmoid(x);  // d/dx s (1 + x (1 - s)) = s (1 - s) (2 + x (1 - 2 s))
             return g.dy().conj() * g.in(0) * (s * (1 - s) * (x * (1 - s * 2) + 2)).conj(); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of silu.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); s(s.t({}), s.t({})); }),
OP("mish(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = activation_types,
  .scalar = SCALAR(x * tanh_(softplus_(x))),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return mish_backward(g.dy(), g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "self * tanh(softplus(self)).",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("mish_backward(Tensor grad_output, Tensor self) -> Tensor",
  .types = activation_types,
  .scalar = SCALAR(x * (tanh_(softplus_(y)) + y * sigmoid_(y) * (T(1) - square_(tanh_(softplus_(y)))))),
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return mish_backward(g.dy(), g.in(1)); },
      G(1) { // t = tanh(softplus x), u = 1 - t^2, t' = s u: second derivative s u (2 + x (1 - s) - 2 x s t)
             Tensor x = g.in(1), s = sigmoid(x), t = softplus(x).tanh(), u = 1 - t * t;
             return g.dy() * g.in(0) * s * u * (x * (1 - s - s * t * 2) + 2); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of mish.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); s(s.t({}), s.t({})); }),
OP("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
  .forms = Out, .types = activation_types,
  .scalar = SCALAR(where_(x * beta > threshold, x, softplus_(x * beta) / beta), beta, threshold),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return softplus_backward(g.dy(), g.in(0), g.scalar(1), g.scalar(2)); }); },
  .shard = Shard::pointwise(), .doc = "log(1 + exp(beta * self)) / beta; self where beta * self > threshold.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); s.unary({{3, 4}}, {}, Scalar(2), Scalar(1)); }),
OP("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
  .forms = Out, .types = activation_types,
  .scalar = SCALAR(where_(y * beta > threshold, x, x * sigmoid_(y * beta)), beta, threshold),
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return softplus_backward(g.dy(), g.in(1), g.scalar(2), g.scalar(3)); },
      G(1) { Tensor z = g.in(1) * g.scalar(2), s = sigmoid(z);
             return where(z > g.scalar(3), zeros({}, g.dy().options()), g.dy() * g.in(0) * s * (1 - s) * g.scalar(2)); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of softplus.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), Scalar(2), Scalar(20)); s(s.t({}), s.t({}), Scalar(2), Scalar(1)); }),
OP("log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
  .forms = Out, .types = activation_types,
  .scalar = SCALAR2((log_sigmoid_(x)), (exp_(-abs_(x)))),
  .save = {in(0), out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      Tensor d = g.dy(0).defined() ? log_sigmoid_backward(g.dy(0), g.in(0), g.out(1)) : Tensor();
      if (!g.dy(1).defined()) return d;
      Tensor e = -g.dy(1) * g.out(1) * sgn(g.in(0));
      return d.defined() ? d + e : e; }); },
  .shard = Shard::pointwise(), .doc = "log(sigmoid(self)), and exp(-|self|) for the gradient.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
  .forms = Out, .types = activation_types,
  // From self alone: sigmoid is as cheap as using the buffer, and gradients of gradients then have one path.
  .scalar = SCALAR(x * sigmoid_(-y)),
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return g.dy() * sigmoid(-g.in(1)); },
      G(1) { Tensor s = sigmoid(g.in(1)); return -g.dy() * g.in(0) * s * (1 - s); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of log_sigmoid; buffer is not read.",
  .samples = [](SampleGen& s) { Tensor x = s.t({3, 4}); s(s.t({3, 4}), x, (-x.abs()).exp()); }),
OP("log_sigmoid(Tensor self) -> Tensor",
  .forms = Out, .types = activation_types,
  .scalar = SCALAR(log_sigmoid_(x)),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return log_sigmoid_backward(g.dy(), g.in(0), g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "log(sigmoid(self)).",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),

// ---- gelu ----
OP("gelu(Tensor self, *, str approximate='none') -> Tensor",
  .forms = InPlace | Out, .types = activation_types,
  .decompose = [](const Args& a) -> Results { return tanh_form(a, 1) ? _gelu_tanh(a.tensor(0)) : _gelu_erf(a.tensor(0)); },
  .shard = Shard::pointwise(), .doc = "self * Phi(self), or its tanh approximation.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); s.unary({{3, 4}}, {}, "tanh"); }),
OP("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
  .forms = Out, .types = activation_types,
  .decompose = [](const Args& a) -> Results {
      return tanh_form(a, 2) ? _gelu_tanh_backward(a.tensor(0), a.tensor(1)) : _gelu_erf_backward(a.tensor(0), a.tensor(1)); },
  .shard = Shard::pointwise(), .doc = "Gradient of gelu.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); s(s.t({}), s.t({}), "tanh"); }),
OP("_gelu_erf(Tensor self) -> Tensor",
  .forms = InPlace, .types = activation_types,
  .scalar = SCALAR(gelu_erf_(x)),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _gelu_erf_backward(g.dy(), g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "self * Phi(self).",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("_gelu_erf_backward(Tensor grad_output, Tensor self) -> Tensor",
  .types = activation_types,
  .scalar = SCALAR(x * gelu_erf_slope_(y)),
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return _gelu_erf_backward(g.dy(), g.in(1)); },
      G(1) { Tensor x = g.in(1), x2 = x * x; return g.dy() * g.in(0) * (2 - x2) * (x2 * -0.5).exp() * 0.3989422804014327; }); },
  .shard = Shard::pointwise(), .doc = "Gradient of gelu(approximate='none').",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); s(s.t({}), s.t({})); }),
OP("_gelu_tanh(Tensor self) -> Tensor",
  .forms = InPlace, .types = activation_types,
  .scalar = SCALAR(gelu_tanh_(x)),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _gelu_tanh_backward(g.dy(), g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("_gelu_tanh_backward(Tensor grad_output, Tensor self) -> Tensor",
  .types = activation_types,
  // s (1 + y (1 - s) w') with s = sigmoid(w), w = 2 sqrt(2 / pi) (y + 0.044715 y^3)
  .scalar = SCALAR(x * sigmoid_(T(1.5957691216057308) * y * (T(1) + T(0.044715) * y * y)) *
                   (T(1) + y * sigmoid_(T(-1.5957691216057308) * y * (T(1) + T(0.044715) * y * y)) * T(1.5957691216057308) *
                               (T(1) + T(0.134145) * y * y))),
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return _gelu_tanh_backward(g.dy(), g.in(1)); },
      G(1) { // y' = s + x s r w', r = 1 - s: y'' = s r (2 w' + x w'' + x w'^2 (1 - 2 s))
             constexpr double k = 1.5957691216057308, c = 0.044715;
             Tensor x = g.in(1), x2 = x * x, s = sigmoid(x * (x2 * c + 1) * k), w1 = (x2 * (3 * c) + 1) * k;
             return g.dy() * g.in(0) * s * (1 - s) * (w1 * 2 + x2 * (6 * c * k) + x * w1 * w1 * (1 - s * 2)); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of gelu(approximate='tanh').",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); s(s.t({}), s.t({})); }),

// ---- piecewise polynomials ----
OP("hardsigmoid(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = activation_types,
  .scalar = SCALAR(min_(max_(x + T(3), T(0)), T(6)) / T(6)),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return hardsigmoid_backward(g.dy(), g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "relu6(self + 3) / 6.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-5, 5)); }),
OP("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
  .forms = Out, .types = activation_types,
  .scalar = SCALAR(where_((y > T(-3)) & (y < T(3)), x / T(6), T(0))),
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return hardsigmoid_backward(g.dy(), g.in(1)); }, G(1) { return zeros_like(g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of hardsigmoid.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}, range(-5, 5))); s(s.t({}), s.t({})); }),
OP("hardswish(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = activation_types,
  .scalar = SCALAR(x * min_(max_(x + T(3), T(0)), T(6)) / T(6)),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return hardswish_backward(g.dy(), g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "self * relu6(self + 3) / 6.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-5, 5)); }),
OP("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
  .forms = Out, .types = activation_types,
  .scalar = SCALAR(where_(y <= T(-3), T(0), where_(y < T(3), x * (y / T(3) + T(0.5)), x))),
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return hardswish_backward(g.dy(), g.in(1)); },
      G(1) { return hardtanh_backward(g.dy() * g.in(0), g.in(1), -3, 3) / 3; }); },
  .shard = Shard::pointwise(), .doc = "Gradient of hardswish.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}, range(-5, 5))); s(s.t({}), s.t({})); }),
OP("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
  .forms = Out, .types = activation_types,
  .scalar = SCALAR(where_((x >= -lambd) & (x <= lambd), T(0), x), lambd),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return hardshrink_backward(g.dy(), g.in(0), g.scalar(1)); }); },
  .shard = Shard::pointwise(), .doc = "0 where |self| <= lambd, else self.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
  .forms = Out, .types = activation_types,
  .scalar = SCALAR(where_((y >= -lambd) & (y <= lambd), T(0), x), lambd),
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return hardshrink_backward(g.dy(), g.in(1), g.scalar(2)); }, G(1) { return zeros_like(g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of hardshrink.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), Scalar(1)); }),
OP("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
  .forms = Out, .types = activation_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.number(1) >= 0, "softshrink: expected lambd >= 0, got ", a.number(1));
      return _softshrink(a.tensor(0), a.scalar(1)); },
  .shard = Shard::pointwise(), .doc = "self moved towards 0 by lambd.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("_softshrink(Tensor self, Scalar lambd) -> Tensor",
  .types = activation_types,
  // NaN times 0 is the NaN of the middle case.
  .scalar = SCALAR(where_(x > lambd, x - lambd, where_(x < -lambd, x + lambd, where_(x == x, T(0), x))), lambd),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return softshrink_backward(g.dy(), g.in(0), g.scalar(1)); }); },
  .shard = Shard::pointwise(), .doc = "softshrink without the check of lambd.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(1)); }),
OP("softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
  .forms = Out, .types = activation_types,
  .scalar = SCALAR(where_((y >= -lambd) & (y <= lambd), T(0), x), lambd),
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return softshrink_backward(g.dy(), g.in(1), g.scalar(2)); }, G(1) { return zeros_like(g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of softshrink.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), Scalar(1)); }),
OP("glu(Tensor self, int dim=-1) -> Tensor",
  .forms = Out, .types = activation_types,
  .decompose = [](const Args& a) -> Results {
      auto [x, gate] = halves(a, a.tensor(0), a.integer(1));
      return x * sigmoid(gate); },
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return glu_backward(g.dy(), g.in(0), g.integer(1)); }); },
  .shard = {"split"}, .doc = "First half along dim times the sigmoid of the second.",
  .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({4, 3}), 0); s(s.t({2, 0})); }),
OP("glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
  .forms = Out, .types = activation_types,
  .decompose = [](const Args& a) -> Results {
      auto [x, gate] = halves(a, a.tensor(1), a.integer(2));
      Tensor s = sigmoid(gate);
      return cat({a.tensor(0) * s, sigmoid_backward(a.tensor(0), s) * x}, a.integer(2)); },
  .shard = Shard::pointwise(), .doc = "Gradient of glu.",
  .samples = [](SampleGen& s) { s(s.t({3, 2}), s.t({3, 4}), -1); s(s.t({2, 3}), s.t({4, 3}), 0); }),
};

}  // namespace
}  // namespace vesta

VESTA_FAMILY(activation, table)
