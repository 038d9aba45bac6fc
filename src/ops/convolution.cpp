// Convolutions of 1 to 3 spatial dims and their transposes. `convolution` and `convolution_backward` hold the kernels;
// the others bring their arguments to that form. Gradients of any order are convolutions of the same kind. The result is
// channels-last where the input or the weight is. Complex tensors are four real convolutions.
#include "core/storage.h"
#include "kernels/cpu/batch_norm.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/copy.h"
#include "ops/conv_params.h"

namespace vesta {
namespace {

using namespace op_block;

// Floating, complex and integer tensors of one dtype, bias included.
constexpr TypeRule conv_types = same_number;
constexpr TypeRule number_args{same_number.mask, Promote::None};  // of ops that hand their tensors on

// ---- shapes ----
void out_in_format(InferCtx& c, int j, ArrayRef<SymInt> sizes, DType dtype, Device device, bool last) {
  if (!last) return c.out(j, sizes, dtype, device);
  for (SymInt s : sizes) VESTA_CHECK(s >= 0, c.name(), ": expected sizes >= 0, got ", s.str());
  c.out_strided(j, sizes, channels_last_strides(sizes), dtype, device);
}
void infer_convolution(InferCtx& c) {
  VESTA_CHECK(c.dim(0) >= 3 && c.dim(0) <= 5, c.name(), ": expected an input with 3 to 5 dims, got ", c.dim(0));
  ConvParams p = conv_params(c, 3, c.dim(0) - 2);
  SymDims sizes = conv_output_sizes(c, c.sizes(0), c.sizes(1), p);
  if (c.has(2))
    VESTA_CHECK(c.dim(2) == 1 && c.sizes(2)[0] == sizes[1], c.name(), ": expected a bias with ", sizes[1].str(), " elements, one a channel of the result");
  out_in_format(c, 0, sizes, c.dtype_of(0), c.tensor(0).device(), is_channels_last(c.tensor(0)) || is_channels_last(c.tensor(1)));
}
const bool* mask_of(const Args& a, int i) {
  VESTA_CHECK(a.value(i).length == 3, a.name(), ": expected 3 flags in output_mask, got ", a.value(i).length);
  return static_cast<const bool*>(a.value(i).ptr);
}
void infer_convolution_backward(InferCtx& c) {
  VESTA_CHECK(c.dim(1) >= 3 && c.dim(1) <= 5, c.name(), ": expected an input with 3 to 5 dims, got ", c.dim(1));
  ConvParams p = conv_params(c, 4, c.dim(1) - 2);
  SymDims sizes = conv_output_sizes(c, c.sizes(1), c.sizes(2), p);
  VESTA_CHECK(c.sizes(0) == ArrayRef<SymInt>(sizes), c.name(), ": grad_output does not have the shape of the convolution's result");
  bool last = is_channels_last(c.tensor(1)) || is_channels_last(c.tensor(2));
  const bool* mask = mask_of(c, 10);
  Device device = c.tensor(0).device();
  mask[0] ? out_in_format(c, 0, c.sizes(1), c.dtype_of(0), device, last) : c.out_none(0);
  mask[1] ? out_in_format(c, 1, c.sizes(2), c.dtype_of(0), device, last) : c.out_none(1);
  mask[2] ? c.out(2, {sizes[1]}, c.dtype_of(0), device) : c.out_none(2);
}

// ---- kernels ----
// The sizes as the kernels count them: y is the smaller side, the result of the plain direction.
cpu::ConvShape kernel_shape(const Tensor& x, const Tensor& y, const Tensor& weight, const ConvParams& p) {
  cpu::ConvShape s;
  s.batch = x.size(0);
  s.groups = p.groups;
  s.x_channels = x.size(1);
  s.y_channels = y.size(1);
  for (int d = 0; d < p.dims; ++d) {
    int to = kMaxSpatial - p.dims + d;
    s.in[to] = x.size(d + 2);
    s.out[to] = y.size(d + 2);
    s.kernel[to] = weight.size(d + 2);
    s.stride[to] = p.stride[d];
    s.pad[to] = p.pad[d];
    s.dilation[to] = p.dilation[d];
  }
  return s;
}
Tensor dense(const Tensor& t, bool last) {
  if (!last) return t.contiguous();
  return t.contiguous(t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
}
Tensor dense_empty(const Tensor& like, bool last) {
  Tensor t = empty_cpu(like.sizes(), like.dtype());
  return last ? dense(t, true) : t;
}
// Runs `f` on dense tensors, or on real and imaginary parts of complex ones: f(a, b, out) is linear in a and in b.
// conj_b takes b's conjugate. `out` may be in any layout.
template <class F>
void bilinear(const Tensor& a, const Tensor& b, bool conj_b, const Tensor& out, F f) {
  if (!is_complex(out.dtype())) return f(a, b, out);
  Tensor ar = vesta::real(a).contiguous(), ai = vesta::imag(a).contiguous(), br = vesta::real(b).contiguous(), bi = vesta::imag(b).contiguous();
  if (conj_b) bi = -bi;
  auto part = [&](const Tensor& p, const Tensor& q) {
    Tensor r = empty_cpu(out.sizes(), p.dtype());
    f(p, q, r);
    return r;
  };
  cpu::copy_elements(out, vesta::complex(part(ar, br) - part(ai, bi), part(ar, bi) + part(ai, br)));
}
bool in_format(const Tensor& out, bool last) {
  if (!last) return out.is_contiguous();
  return out.is_contiguous(out.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
}
// f writes a tensor in the wanted format, which is `out` or is copied there.
template <class F>
void written(const Tensor& out, bool last, F f) {
  if (in_format(out, last)) return f(out);
  Tensor t = dense_empty(out, last);
  f(t);
  cpu::copy_elements(out, t);
}
void add_complex_bias(const Tensor& out, const Tensor& bias) {
  if (!bias.defined() || !is_complex(out.dtype())) return;
  std::vector<int64_t> shape(size_t(out.dim()), 1);
  shape[1] = bias.size(0);
  cpu::copy_elements(out, out + bias.view(shape));
}
const void* real_bias(const Tensor& bias) { return bias.defined() && !is_complex(bias.dtype()) ? bias.data_ptr() : nullptr; }

// Whether the kernels run in channels last. Not for types and shapes that they do not take that way: then the tensors are
// brought to channels first, and the result back.
bool runs_last(const Tensor& x, const Tensor& y, const Tensor& input, const Tensor& weight, const ConvParams& p) {
  if (is_complex(input.dtype()) || !(is_channels_last(input) || is_channels_last(weight))) return false;
  return cpu::conv_takes_last(cpu::elem_of(input.dtype()), kernel_shape(x, y, weight, p));
}

void k_convolution(const KernelCtx& k) {
  const Tensor &input = k.tensor(0), &weight = k.tensor(1), &out = k.out();
  if (out.numel() == 0) return;
  ConvParams p = conv_params(k, 3, int(input.dim()) - 2);
  Tensor bias = k.has(2) ? k.tensor(2).contiguous() : Tensor();
  bool last = runs_last(p.transposed ? out : input, p.transposed ? input : out, input, weight, p);
  auto layout = last ? cpu::ConvLayout::Last : cpu::ConvLayout::First;
  bilinear(input, weight, false, out, [&](const Tensor& x, const Tensor& w, const Tensor& y) {
    Tensor xd = dense(x, last), wd = w.contiguous();
    written(y, last, [&](const Tensor& t) {
      cpu::Elem type = cpu::elem_of(t.dtype());
      if (p.transposed)
        cpu::conv_backward_data(type, layout, kernel_shape(t, xd, wd, p), xd.data_ptr(), wd.data_ptr(), real_bias(bias), t.data_ptr());
      else
        cpu::conv_forward(type, layout, kernel_shape(xd, t, wd, p), xd.data_ptr(), wd.data_ptr(), real_bias(bias), t.data_ptr());
    });
  });
  add_complex_bias(out, bias);
}

// Sums over everything but channels.
void bias_gradient(const Tensor& dy, const Tensor& db) {
  if (!is_floating_point(dy.dtype())) {
    std::vector<int64_t> dims{0};
    for (int64_t d = 2; d < dy.dim(); ++d) dims.push_back(d);
    return cpu::copy_elements(db, vesta::sum(dy, dims));
  }
  bool last = is_channels_last(dy);
  Tensor g = last ? dy : dy.contiguous(), sum = empty_cpu(db.sizes(), kDouble);
  int64_t inner = 1;
  for (int64_t d = 2; d < dy.dim(); ++d) inner *= dy.size(d);
  cpu::channel_sum(cpu::elem_of(dy.dtype()), {dy.size(0), dy.size(1), inner, last}, g.data_ptr(), sum.data_ptr<double>());
  cpu::copy_elements(db, sum);
}

void k_convolution_backward(const KernelCtx& k) {
  const Tensor &dy = k.tensor(0), &input = k.tensor(1), &weight = k.tensor(2);
  ConvParams p = conv_params(k, 4, int(input.dim()) - 2);
  bool last = runs_last(p.transposed ? dy : input, p.transposed ? input : dy, input, weight, p);
  auto layout = last ? cpu::ConvLayout::Last : cpu::ConvLayout::First;
  if (Tensor dx = k.out(0); dx.defined() && dx.numel())
    bilinear(dy, weight, true, dx, [&](const Tensor& g, const Tensor& w, const Tensor& r) {
      Tensor gd = dense(g, last), wd = w.contiguous();
      written(r, last, [&](const Tensor& t) {
        cpu::Elem type = cpu::elem_of(t.dtype());
        if (p.transposed)
          cpu::conv_forward(type, layout, kernel_shape(gd, t, wd, p), gd.data_ptr(), wd.data_ptr(), nullptr, t.data_ptr());
        else
          cpu::conv_backward_data(type, layout, kernel_shape(t, gd, wd, p), gd.data_ptr(), wd.data_ptr(), nullptr, t.data_ptr());
      });
    });
  if (Tensor dw = k.out(1); dw.defined() && dw.numel())
    bilinear(dy, input, true, dw, [&](const Tensor& g, const Tensor& x, const Tensor& r) {
      Tensor gd = dense(g, last), xd = dense(x, last);
      written(r, false, [&](const Tensor& t) {
        const Tensor &big = p.transposed ? gd : xd, &small = p.transposed ? xd : gd;
        cpu::conv_backward_weight(cpu::elem_of(t.dtype()), layout, kernel_shape(big, small, t, p), small.data_ptr(), big.data_ptr(), t.data_ptr());
      });
    });
  if (Tensor db = k.out(2); db.defined() && db.numel()) bias_gradient(dy, db);
}

// ---- gradients ----
std::vector<int64_t> per_channel(int64_t dims, int64_t channels) {
  std::vector<int64_t> s(size_t(dims), 1);
  s[1] = channels;
  return s;
}
int vjp_convolution(const Grad& g) {
  const bool mask[3] = {g.needs(0), g.needs(1), g.needs(2)};
  IntArrayRef sizes = g.out_sizes();
  const int64_t bias_sizes[] = {sizes[1]};
  auto [dx, dw, db] = convolution_backward(g.dy(), g.in(0), g.in(1), mask[2] ? OptionalIntArrayRef(IntArrayRef(bias_sizes)) : OptionalIntArrayRef(), g.ints(3), g.ints(4), g.ints(5),
                                           g.flag(6), g.ints(7), g.integer(8), mask);
  if (mask[0]) g.set(0, dx);
  if (mask[1]) g.set(1, dw);
  if (mask[2]) g.set(2, db);
  return 0;
}
// With B(dy, x, w) = (dx, dw, db): dx is linear in dy and w, dw in dy and x, db in dy. So for cotangents (ggx, ggw, ggb)
//   to dy: conv(ggx, w) + conv(x, ggw) + ggb,   to x: the dx of B(dy, x, ggw),   to w: the dw of B(dy, ggx, w).
Tensor double_backward_dy(const Tensor& ggx, const Tensor& ggw, const Tensor& x, const Tensor& w, const Args& a, int at) {
  auto conv = [&](const Tensor& p, const Tensor& q) {
    return convolution(p, q, Tensor(), a.ints(at), a.ints(at + 1), a.ints(at + 2), a.flag(at + 3), a.ints(at + 4), a.integer(at + 5));
  };
  Tensor r = ggx.defined() ? conv(ggx, w) : Tensor();
  if (ggw.defined()) {
    Tensor second = conv(x, ggw);
    r = r.defined() ? r + second : second;
  }
  return r;
}
Tensor with_bias_cotangent(const Tensor& r, const Tensor& ggb, IntArrayRef sizes) {
  if (!ggb.defined()) return r;
  VESTA_CHECK(ggb.dim() == 1 && sizes.size() >= 2 && ggb.size(0) == sizes[1], "convolution: the cotangent of the bias does not have one element a channel");
  Tensor b = ggb.view(per_channel(int64_t(sizes.size()), ggb.size(0)));
  return r.defined() ? r + b : b.expand(sizes);
}
Tensor part_of_backward(int which, const Tensor& dy, const Tensor& x, const Tensor& w, const Args& a, int at) {
  const bool mask[3] = {which == 0, which == 1, false};
  auto [dx, dw, db] = convolution_backward(dy, x, w, {}, a.ints(at), a.ints(at + 1), a.ints(at + 2), a.flag(at + 3), a.ints(at + 4), a.integer(at + 5), mask);
  return which == 0 ? dx : dw;
}
int vjp_convolution_backward(const Grad& g) {
  Tensor ggx = g.dy(0), ggw = g.dy(1), ggb = g.dy(2);
  return grads(
      G(0) { return with_bias_cotangent(double_backward_dy(ggx, ggw, g.in(1), g.in(2), g, 4), ggb, g.sizes(0)); },
      G(1) { return ggw.defined() ? part_of_backward(0, g.in(0), g.in(1), ggw, g, 4) : Tensor(); },
      G(2) { return ggx.defined() ? part_of_backward(1, g.in(0), ggx, g.in(2), g, 4) : Tensor(); });
}
Results double_backward(const Args& a) {
  const Tensor &ggx = a.tensor(0), &ggw = a.tensor(1), &ggb = a.tensor(2), &dy = a.tensor(3), &w = a.tensor(4), &x = a.tensor(5);
  VESTA_CHECK(x.dim() >= 3 && dy.dim() == x.dim() && w.dim() == x.dim(), a.name(), ": expected gO, weight and self with as many dims, at least 3, got ", dy.dim(), ", ", w.dim(), " and ", x.dim());
  const bool* mask = mask_of(a, 12);
  Tensor to_dy, to_x, to_w;
  if (mask[0]) to_dy = with_bias_cotangent(double_backward_dy(ggx, ggw, x, w, a, 6), ggb, dy.sizes());
  if (mask[1]) to_x = ggw.defined() ? part_of_backward(0, dy, x, ggw, a, 6) : zeros_like(x);
  if (mask[2]) to_w = ggx.defined() ? part_of_backward(1, dy, ggx, w, a, 6) : zeros_like(w);
  return {to_dy, to_x, to_w};
}

// ---- conv1d, conv2d, conv3d and their transposes ----
// A sample without batch gets one for the call.
struct Batched {
  Tensor input;
  bool added;
  Tensor result(const Tensor& y) const { return added ? y.squeeze(0) : y; }
};
Batched batched(const Args& a, int dims) {
  const Tensor& x = a.tensor(0);
  VESTA_CHECK(x.dim() == dims + 1 || x.dim() == dims + 2, a.name(), ": expected an input with ", dims + 1, " or ", dims + 2, " dims, got ", x.dim());
  VESTA_CHECK(a.tensor(1).dim() == dims + 2, a.name(), ": expected a weight with ", dims + 2, " dims, got ", a.tensor(1).dim());
  bool add = x.dim() == dims + 1;
  return {add ? x.unsqueeze(0) : x, add};
}
template <int dims>
Results conv_nd(const Args& a) {
  Batched b = batched(a, dims);
  int64_t zero[dims] = {};
  return b.result(convolution(b.input, a.tensor(1), a.tensor(2), a.ints(3), a.ints(4), a.ints(5), false, zero, a.integer(6)));
}
// Padding by name. "same" keeps the size for stride 1; where the total is odd, one more comes after than before.
Tensor conv_mode(const Args& a, const Tensor& input, int dims, std::string_view mode, IntArrayRef stride, IntArrayRef dilation, int64_t groups) {
  VESTA_CHECK(mode == "valid" || mode == "same", a.name(), ": expected padding \"valid\", \"same\" or numbers, got \"", mode, "\"");
  VESTA_CHECK(input.dim() == dims + 2 && a.tensor(1).dim() == dims + 2, a.name(), ": expected an input and a weight with ", dims + 2, " dims, got ", input.dim(), " and ",
              a.tensor(1).dim());
  std::vector<int64_t> pad(size_t(dims), 0), extra, none(size_t(dims), 0);
  Tensor x = input;
  if (mode == "same") {
    int64_t s[kMaxSpatial], dil[kMaxSpatial];
    read_conv_list(a, stride, "stride", dims, 1, s);
    read_conv_list(a, dilation, "dilation", dims, 1, dil);
    bool odd = false;
    for (int d = dims - 1; d >= 0; --d) {
      VESTA_CHECK(s[d] == 1, a.name(), ": padding \"same\" needs stride 1, got ", s[d]);
      int64_t kernel = a.tensor(1).size(d + 2);
      VESTA_CHECK(kernel >= 1 && kernel < int64_t(1) << 31, a.name(), ": expected a kernel size of at least 1, got ", kernel);
      int64_t total = dil[d] * (kernel - 1);
      pad[size_t(d)] = total / 2;
      extra.push_back(0);
      extra.push_back(total % 2);
      odd |= total % 2 != 0;
    }
    if (odd) x = constant_pad_nd(x, extra, 0);
  }
  return convolution(x, a.tensor(1), a.tensor(2), stride, pad, dilation, false, none, groups);
}
template <int dims>
Results conv_nd_mode(const Args& a) {
  Batched b = batched(a, dims);
  return b.result(conv_mode(a, b.input, dims, a.string(4), a.ints(3), a.ints(5), a.integer(6)));
}
template <int dims>
Results conv_transpose_nd(const Args& a) {
  Batched b = batched(a, dims);
  return b.result(convolution(b.input, a.tensor(1), a.tensor(2), a.ints(3), a.ints(4), a.ints(7), true, a.ints(5), a.integer(6)));
}

// ---- conv_tbc: [time, batch, channels], weight [kernel, in, out] ----
void check_tbc(const Args& a, const Tensor& x, const Tensor& w, const Tensor& bias) {
  VESTA_CHECK(x.dim() == 3 && w.dim() == 3 && bias.dim() == 1, a.name(), ": expected an input [time, batch, channels], a weight [kernel, in, out] and a bias [out], got ", x.dim(), ", ",
              w.dim(), " and ", bias.dim(), " dims");
}
Tensor tbc_to_bct(const Tensor& t) { return t.permute({1, 2, 0}); }
Tensor bct_to_tbc(const Tensor& t) { return t.permute({2, 0, 1}).contiguous(); }
Results conv_tbc_of(const Args& a) {
  check_tbc(a, a.tensor(0), a.tensor(1), a.tensor(2));
  return bct_to_tbc(convolution(tbc_to_bct(a.tensor(0)), a.tensor(1).permute({2, 1, 0}), a.tensor(2), {1}, {a.integer(3)}, {1}, false, {0}, 1));
}
Results conv_tbc_backward_of(const Args& a) {
  const Tensor &dy = a.tensor(0), &w = a.tensor(2), &bias = a.tensor(3);
  check_tbc(a, a.tensor(1), w, bias);
  VESTA_CHECK(dy.dim() == 3, a.name(), ": expected a gradient with 3 dims, got ", dy.dim());
  const bool all[3] = {true, true, true};
  auto [dx, dw, db] = convolution_backward(tbc_to_bct(dy), tbc_to_bct(a.tensor(1)), w.permute({2, 1, 0}), {{bias.size(0)}}, {1}, {a.integer(4)}, {1}, false, {0}, 1, all);
  return {bct_to_tbc(dx), dw.permute({2, 1, 0}).contiguous(), db};
}

// ---- samples ----
using Ints = std::vector<int64_t>;
void sample_convolution(SampleGen& s) {
  s(s.t({2, 2, 5}), s.t({2, 2, 2}), s.t({2}), Ints{2}, Ints{1}, Ints{1}, false, Ints{0}, 1);
  s(s.t({1, 4, 3, 2}), s.t({4, 2, 2, 1}), std::nullopt, Ints{1, 1}, Ints{1, 0}, Ints{2, 1}, false, Ints{0, 0}, 2);
  s(s.t({1, 2, 2, 3}), s.t({2, 1, 2, 2}), s.t({2}), Ints{2, 1}, Ints{0, 1}, Ints{1, 2}, true, Ints{1, 0}, 2);
  s(s.t({1, 1, 2, 3, 2}), s.t({2, 1, 2, 2, 1}), s.t({2}), Ints{1}, Ints{0}, Ints{1}, false, Ints{0}, 1);
  s(s.t({0, 2, 3}), s.t({1, 2, 2}), std::nullopt, Ints{1}, Ints{0}, Ints{1}, false, Ints{0}, 1);
  if (s.dtype() == kFloat || s.dtype() == kBFloat16) {
    s(s.t({2, 3, 11, 19}), s.t({5, 3, 3, 3}), s.t({5}), Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, false, Ints{0, 0}, 1);
    s(s.t({2, 6, 12, 9}), s.t({6, 1, 3, 5}), s.t({6}), Ints{2, 2}, Ints{1, 2}, Ints{1, 1}, false, Ints{0, 0}, 6);
  }
}
void sample_convolution_backward(SampleGen& s) {
  std::vector<bool> all{true, true, true};
  s(s.t({2, 2, 3}), s.t({2, 2, 5}), s.t({2, 2, 2}), Ints{2}, Ints{2}, Ints{1}, Ints{1}, false, Ints{0}, 1, all);
  s(s.t({1, 2, 3, 2}), s.t({1, 2, 3, 2}), s.t({2, 1, 2, 1}), std::nullopt, Ints{1, 1}, Ints{1, 0}, Ints{2, 1}, false, Ints{0, 0}, 2, all);
  s(s.t({1, 2, 5, 3}), s.t({1, 2, 2, 3}), s.t({2, 1, 2, 2}), Ints{2}, Ints{2, 1}, Ints{0, 1}, Ints{1, 2}, true, Ints{1, 0}, 2, all);
}
template <int dims>
void sample_conv(SampleGen& s) {
  Ints x(dims + 2, 3), w(dims + 2, 2), last(x.begin() + 1, x.end());
  x[0] = 1, x[1] = 2, last[0] = 2;
  if (dims == 3) x[2] = 2;
  s(s.t(x), s.t(w), s.t({2}));
  s(s.t(last), s.t(w), std::nullopt, 2, 1);
}
template <int dims>
void sample_conv_mode(SampleGen& s) {
  Ints x(dims + 2, 3), w(dims + 2, 2);
  x[0] = 1, x[1] = 2;
  if (dims == 3) x[2] = 2;
  s(s.t(x), s.t(w), s.t({2}), 1, "same");
  s(s.t(x), s.t(w), std::nullopt, 1, "valid");
}
template <int dims>
void sample_transpose(SampleGen& s) {
  Ints x(dims + 2, 2), w(dims + 2, 2);
  x[0] = 1;
  s(s.t(x), s.t(w), s.t({2}), 2, 1, 1);
}

constexpr OpDef table[] = {
OP("convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
  .autocast = Autocast::Lower,
  .forms = Out, .types = conv_types, .infer = infer_convolution, .kernels = {{Cpu, k_convolution}},
  .save = {in(0), in(1)}, .vjp = vjp_convolution,
  .shard = {"conv"}, .doc = "Convolution of [N, C, ...] with [filters, C / groups, kernel...] over 1 to 3 dims, or its transpose.", .samples = sample_convolution),
OP("convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
  .forms = Out, .types = conv_types, .infer = infer_convolution_backward, .kernels = {{Cpu, k_convolution_backward}},
  .save = {in(0), in(1), in(2)}, .vjp = vjp_convolution_backward,
  .shard = {"conv-bwd"}, .doc = "Gradients of convolution in input, weight and bias, as the mask asks.", .samples = sample_convolution_backward),
OP("_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args,
  .decompose = [](const Args& a) -> Results {
      return convolution(a.tensor(0), a.tensor(1), a.tensor(2), a.ints(3), a.ints(4), a.ints(5), a.flag(6), a.ints(7), a.integer(8)); },
  .shard = {"conv"}, .doc = "convolution; the flags choose nothing here.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 4}), s.t({2, 2, 2}), s.t({2}), Ints{1}, Ints{1}, Ints{1}, false, Ints{0}, 1, false, false, false, false); }),
OP("_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, int[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args,
  .decompose = [](const Args& a) -> Results {
      return convolution(a.tensor(0), a.tensor(1), a.tensor(2), a.ints(3), a.ints(4), a.ints(5), a.flag(6), a.ints(7), a.integer(8)); },
  .shard = {"conv"}, .doc = "convolution; the flags choose nothing here.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 4}), s.t({2, 2, 2}), s.t({2}), Ints{1}, Ints{1}, Ints{1}, false, Ints{0}, 1, false, false, false); }),
OP("_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, SymInt groups) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args,
  .decompose = [](const Args& a) -> Results { return conv_mode(a, a.tensor(0), int(a.tensor(0).dim()) - 2, a.string(4), a.ints(3), a.ints(5), a.integer(6)); },
  .shard = {"conv"}, .doc = "convolution with padding \"valid\" (none) or \"same\" (keeps the size, stride 1 only).",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 4}), s.t({2, 2, 2}), s.t({2}), Ints{1}, "same", Ints{1}, 1); s(s.t({1, 2, 4}), s.t({2, 1, 2}), std::nullopt, Ints{2}, "valid", Ints{1}, 2); }),
OP("_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, Tensor self, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
  .types = number_args, .decompose = double_backward,
  .shard = {"conv-bwd"}, .doc = "Gradients of convolution_backward in grad_output, input and weight, as the mask asks.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 4}), s.t({2, 2, 2}), s.t({2}), s.t({1, 2, 3}), s.t({2, 2, 2}), s.t({1, 2, 4}), Ints{1}, Ints{0}, Ints{1}, false, Ints{0}, 1, std::vector<bool>{true, true, true}); }),
OP("conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] dilation=1, SymInt groups=1) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args, .decompose = conv_nd<1>, .shard = {"conv"}, .doc = "Convolution over the last dim of [N, C, L] or [C, L].", .samples = sample_conv<1>),
OP("conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, str padding='valid', SymInt[1] dilation=1, SymInt groups=1) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args, .decompose = conv_nd_mode<1>, .shard = {"conv"}, .doc = "conv1d with padding \"valid\" or \"same\".", .samples = sample_conv_mode<1>),
OP("conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] dilation=1, SymInt groups=1) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args, .decompose = conv_nd<2>, .shard = {"conv"}, .doc = "Convolution over the last two dims of [N, C, H, W] or [C, H, W].", .samples = sample_conv<2>),
OP("conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str padding='valid', SymInt[2] dilation=1, SymInt groups=1) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args, .decompose = conv_nd_mode<2>, .shard = {"conv"}, .doc = "conv2d with padding \"valid\" or \"same\".", .samples = sample_conv_mode<2>),
OP("conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] dilation=1, SymInt groups=1) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args, .decompose = conv_nd<3>, .shard = {"conv"}, .doc = "Convolution over the last three dims of [N, C, D, H, W] or [C, D, H, W].", .samples = sample_conv<3>),
OP("conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, str padding='valid', SymInt[3] dilation=1, SymInt groups=1) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args, .decompose = conv_nd_mode<3>, .shard = {"conv"}, .doc = "conv3d with padding \"valid\" or \"same\".", .samples = sample_conv_mode<3>),
OP("conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args, .decompose = conv_transpose_nd<1>, .shard = {"conv"}, .doc = "Transposed convolution over the last dim; weight [C, out / groups, kernel].", .samples = sample_transpose<1>),
OP("conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args, .decompose = conv_transpose_nd<2>, .shard = {"conv"}, .doc = "Transposed convolution over the last two dims.", .samples = sample_transpose<2>),
OP("conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] dilation=1) -> Tensor",
  .autocast = Autocast::Lower,
  .types = number_args, .decompose = conv_transpose_nd<3>, .shard = {"conv"}, .doc = "Transposed convolution over the last three dims.", .samples = sample_transpose<3>),
OP("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
  .autocast = Autocast::Lower,
  .forms = Out, .types = number_args, .decompose = conv_tbc_of,
  .shard = {"conv"}, .doc = "Convolution over time of [time, batch, channels] with a weight [kernel, in, out].",
  .samples = [](SampleGen& s) { s(s.t({4, 1, 2}), s.t({2, 2, 2}), s.t({2}), 1); }),
OP("conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad) -> (Tensor, Tensor, Tensor)",
  .types = number_args, .decompose = conv_tbc_backward_of,
  .shard = {"conv-bwd"}, .doc = "Gradients of conv_tbc in input, weight and bias for the gradient self.",
  .samples = [](SampleGen& s) { s(s.t({5, 1, 2}), s.t({4, 1, 2}), s.t({2, 2, 2}), s.t({2}), 1); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(convolution, table)
