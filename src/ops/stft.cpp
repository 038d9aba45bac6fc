// Short-time Fourier transforms: frames of a signal, weighted by a window, through the one-dim transforms.
#include <algorithm>

#include "base/checked_math.h"
#include "ops/infer.h"
#include "vesta/op.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

constexpr int64_t kByRootN = 1, kByN = 2, kUnscaled = 0;  // of _fft_c2c and its kin

// The window with zeros on both sides up to n_fft; ones where none is given; undefined where it would change nothing.
Tensor full_window(const Args& a, const Tensor& window, int64_t win_length, int64_t n_fft, const TensorOptions& options, bool always) {
  VESTA_CHECK(win_length > 0 && win_length <= n_fft, a.name(), ": expected win_length in [1, ", n_fft, "], got ", win_length);
  if (window.defined()) {
    VESTA_CHECK(window.dim() == 1 && window.size(0) == win_length, a.name(), ": expected a window of ", win_length, " values");
    VESTA_CHECK_AS(TypeError, is_floating_point(window.dtype()) || is_complex(window.dtype()), a.name(), ": expected a floating or complex window, got ", dtype_name(window.dtype()));
  }
  Tensor w = window;
  if (!w.defined()) {
    if (win_length == n_fft && !always) return w;
    w = ones({win_length}, options);
  }
  int64_t left = (n_fft - win_length) / 2;
  return win_length == n_fft ? w : constant_pad_nd(w, {left, n_fft - win_length - left});
}
struct Settings {
  int64_t n_fft, hop, win_length;
};
Settings settings(const Args& a) {
  int64_t n_fft = a.integer(1);
  VESTA_CHECK(n_fft > 0, a.name(), ": expected n_fft > 0, got ", n_fft);
  Settings s{n_fft, a.integer(2, n_fft / 4), a.integer(3, n_fft)};
  VESTA_CHECK(s.hop > 0, a.name(), ": expected hop_length > 0, got ", s.hop);
  return s;
}
bool complex_default(const Args& a, int i, bool otherwise) { return a.has(i) ? a.flag(i) : otherwise; }

// Arguments from `normalized` on start at position `rest`.
Results stft(const Args& a, bool center, std::string_view pad_mode, int rest) {
  const Tensor& self = a.tensor(0);
  VESTA_CHECK_AS(TypeError, is_floating_point(self.dtype()) || is_complex(self.dtype()), a.name(), ": expected a floating or complex signal, got ", dtype_name(self.dtype()));
  VESTA_CHECK(self.dim() == 1 || self.dim() == 2, a.name(), ": expected a signal of 1 or 2 dims, got ", self.dim());
  Settings s = settings(a);
  const Tensor& window = a.tensor(4);
  Tensor x = self.dim() == 1 ? self.unsqueeze(0) : self;
  if (center) {  // padding modes want a channel dim
    int64_t by = s.n_fft / 2;
    x = pad(x.unsqueeze(0), {by, by}, pad_mode).squeeze(0);
  }
  int64_t length = x.size(1);
  VESTA_CHECK(s.n_fft <= length, a.name(), ": expected n_fft in [1, ", length, "], the signal's length, got ", s.n_fft);
  Tensor w = full_window(a, window, s.win_length, s.n_fft, x.options(), false);
  x = x.unfold(1, s.n_fft, s.hop);
  if (w.defined()) x = x * w;
  bool normalized = a.flag(rest), onesided = complex_default(a, rest + 1, !x.is_complex());
  bool as_complex = complex_default(a, rest + 2, self.is_complex() || (window.defined() && window.is_complex()));
  VESTA_CHECK(!x.is_complex() || !onesided, a.name(), ": a complex signal or window has no one-sided spectrum; use onesided=false");
  int64_t norm = normalized ? kByRootN : kUnscaled;
  Tensor y = x.is_complex() ? _fft_c2c(x, {2}, norm, true) : _fft_r2c(x, {2}, norm, onesided);
  y = y.transpose(1, 2);
  if (self.dim() == 1) y = y.squeeze(0);
  return as_complex ? y : view_as_real(y);
}

bool readable(const Tensor& t) { return t.impl()->bits & TensorImpl::kHasData; }

// Frames [channels, frames, n] added up where they overlap, each `hop` after the one before.
Tensor overlap_add(const Tensor& frames, int64_t hop, int64_t length) {
  int64_t channels = frames.size(0), count = frames.size(1), n = frames.size(2);
  TensorOptions index(kLong);
  index = index.device(frames.device());
  Tensor at = (arange(0, count, index) * hop).unsqueeze(1) + arange(0, n, index);
  return zeros({channels, length}, frames.options()).index_add(1, at.reshape({-1}), frames.reshape({channels, count * n}));
}
Results istft(const Args& a) {
  Tensor x = a.tensor(0);
  Settings s = settings(a);
  if (!x.is_complex()) {
    VESTA_CHECK(is_floating_point(x.dtype()) && x.dim() >= 1 && x.size(-1) == 2, a.name(), ": expected a complex spectrum, or a real one with a last dim of size 2");
    x = view_as_complex(x.contiguous());
  }
  VESTA_CHECK(x.dim() == 2 || x.dim() == 3, a.name(), ": expected a complex spectrum of 2 or 3 dims, got ", x.dim());
  VESTA_CHECK(x.numel() > 0, a.name(), ": expected a spectrum that is not empty");
  bool one_channel = x.dim() == 2;
  if (one_channel) x = x.unsqueeze(0);
  int64_t frames = x.size(-1), bins = x.size(-2), channels = x.size(0);
  bool center = a.flag(5), normalized = a.flag(6), as_complex = a.flag(9);
  bool onesided = complex_default(a, 7, s.n_fft != bins);
  VESTA_CHECK(bins == (onesided ? s.n_fft / 2 + 1 : s.n_fft), a.name(), ": expected ", onesided ? s.n_fft / 2 + 1 : s.n_fft, " frequencies, got ", bins);
  VESTA_CHECK(s.hop <= s.win_length, a.name(), ": expected hop_length <= win_length, got ", s.hop, " and ", s.win_length);
  Tensor w = full_window(a, a.tensor(4), s.win_length, s.n_fft, TensorOptions(x.dtype() == kComplexFloat ? kFloat : kDouble).device(x.device()), true);
  int64_t whole = checked_add(s.n_fft, checked_mul(s.hop, frames - 1, a.name()), a.name());
  x = x.transpose(1, 2);
  int64_t norm = normalized ? kByRootN : kByN;
  if (as_complex) {
    VESTA_CHECK(!onesided, a.name(), ": a one-sided spectrum gives a real signal; use return_complex=false");
    x = _fft_c2c(x, {2}, norm, false);
  } else {
    VESTA_CHECK(!w.is_complex(), a.name(), ": a complex window gives a complex signal; use return_complex=true");
    if (!onesided) x = x.narrow(-1, 0, s.n_fft / 2 + 1);
    x = _fft_c2r(x, {2}, norm, s.n_fft);
  }
  Tensor y = overlap_add(x * w, s.hop, whole);
  Tensor envelope = overlap_add((w * w).expand({1, frames, s.n_fft}), s.hop, whole);
  int64_t start = center ? s.n_fft / 2 : 0, end = center ? whole - s.n_fft / 2 : whole, missing = 0;
  if (a.has(8)) {
    VESTA_CHECK(a.integer(8) >= 0, a.name(), ": expected length >= 0, got ", a.integer(8));
    end = checked_add(start, a.integer(8), a.name());
    missing = std::max<int64_t>(0, end - whole);
    end = std::min(end, whole);
  }
  VESTA_CHECK(end > start, a.name(), ": nothing is left of ", whole, " samples after cutting ", start, " at the start");
  y = y.narrow(1, start, end - start);
  envelope = envelope.narrow(1, start, end - start);
  if (readable(envelope))
    VESTA_CHECK(envelope.detach().abs().min().item().toDouble() >= 1e-11, a.name(), ": the windows leave samples out: their squares sum to zero somewhere");
  y = y / envelope;
  if (missing) y = constant_pad_nd(y, {0, missing});
  (void)channels;
  return one_channel ? y.squeeze(0) : y;
}

bool suits(SampleGen& s) { return s.dtype() == kFloat || s.dtype() == kDouble; }

constexpr OpDef table[] = {
OP("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None) -> Tensor",
  .autocast = Autocast::Float32,
  .types = any_types, .decompose = [](const Args& a) { return stft(a, false, "", 5); }, .shard = {"replicate"},
  .doc = "Spectra of the frames of a signal [time] or [batch, time], as [batch, frequencies, frames].",
  .samples = [](SampleGen& s) { if (suits(s)) { s(s.t({9}), 4, 2, 3, s.t({3}, range(0.5, 1)), true, true, true); s(s.t({2, 8}), 4, OwnedValue(), OwnedValue(), OwnedValue(), false, false, true); } }),
OP("stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? return_complex=None) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return stft(a, a.flag(5), a.string(6), 7); }, .shard = {"replicate"},
  .doc = "stft of a signal that is padded by n_fft / 2 on both sides, so that frames are centred.",
  .samples = [](SampleGen& s) { if (suits(s)) { s(s.t({9}), 4, 2, 3, s.t({3}, range(0.5, 1)), true, "reflect", true, true, true); s(s.t({2, 8}), 4, OwnedValue(), OwnedValue(), OwnedValue(), true, "constant", false, false, false); } }),
OP("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
  .autocast = Autocast::Float32,
  .types = any_types, .decompose = istft, .shard = {"replicate"},
  .doc = "The signal of a spectrum [batch, frequencies, frames]: the frames overlap and add, divided by the squared windows.",
  .samples = [](SampleGen& s) { if (is_complex(s.dtype())) { s(s.t({3, 4}), 4, 2); s(s.t({2, 3, 4}), 4, 1, OwnedValue(), OwnedValue(), true, true, true, 4); s(s.t({4, 3}), 4, 2, OwnedValue(), OwnedValue(), false, false, false, OwnedValue(), true); } }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(stft, table)
