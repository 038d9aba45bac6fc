// Lines of an array through kissfft. Lines along an inner dim are gathered some at a time, so that memory is read in
// runs.
#include "kernels/cpu/fft.h"

#include <kissfft/kissfft.hh>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/thread_pool.h"

namespace vesta::cpu {
namespace {

using Complex = std::complex<double>;

// exp(2 pi i k / n), exact to rounding for large k and n: k is reduced to an eighth of the circle.
Complex unit_root(int64_t k, int64_t n) {
  k %= n;
  // 8 k / n as octant + rest.
  __int128 eighths = __int128(8) * k;
  int octant = int(eighths / n);
  double angle = double(int64_t(eighths % n)) / double(n) * (M_PI / 4);
  if (octant & 1) angle = M_PI / 4 - angle;  // mirrored within the quarter
  double c = std::cos(angle), s = std::sin(angle);
  if (octant & 1) std::swap(c, s);
  switch (octant >> 1) {
    case 0:
      return {c, s};
    case 1:
      return {-s, c};
    case 2:
      return {-c, -s};
    default:
      return {s, -c};
  }
}

int64_t largest_prime_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; p += p == 2 ? 1 : 2)
    while (n % p == 0) largest = p, n /= p;
  return std::max(largest, n);
}

// Transforms lines of one length in one direction. Not for several threads at once: kissfft keeps scratch memory.
class Plan {
 public:
  Plan(int64_t n, bool forward) : n_(n), forward_(forward) {
    // kissfft's generic butterfly takes p operations an element for a prime p; three transforms of twice the length
    // are cheaper from about here on.
    if (largest_prime_factor(n) <= 50) {
      direct_ = std::make_unique<kissfft<double>>(size_t(n), !forward);
      return;
    }
    // L. Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", 1970:
    // jk = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution with a chirp.
    padded_ = 1;
    while (padded_ < 2 * n - 1) padded_ *= 2;
    there_ = std::make_unique<kissfft<double>>(size_t(padded_), false);
    back_ = std::make_unique<kissfft<double>>(size_t(padded_), true);
    chirp_.resize(size_t(n));
    for (int64_t j = 0; j < n; ++j) {
      Complex w = unit_root(int64_t(__int128(j) * j % (2 * n)), 2 * n);
      chirp_[size_t(j)] = forward ? std::conj(w) : w;
    }
    std::vector<Complex> filter(static_cast<size_t>(padded_));
    filter[0] = std::conj(chirp_[0]);
    for (int64_t j = 1; j < n; ++j)
      filter[size_t(j)] = filter[size_t(padded_ - j)] = std::conj(chirp_[size_t(j)]);
    filter_.resize(size_t(padded_));
    there_->transform(filter.data(), filter_.data());
    a_.resize(size_t(padded_));
    b_.resize(size_t(padded_));
  }
  int64_t n() const { return n_; }
  bool forward() const { return forward_; }
  // in and out do not overlap.
  void transform(const Complex* in, Complex* out) {
    if (direct_) return direct_->transform(in, out);
    std::fill(a_.begin(), a_.end(), Complex(0));
    for (int64_t j = 0; j < n_; ++j) a_[size_t(j)] = in[j] * chirp_[size_t(j)];
    there_->transform(a_.data(), b_.data());
    for (size_t j = 0; j < b_.size(); ++j) b_[j] *= filter_[j];
    back_->transform(b_.data(), a_.data());
    double scale = 1.0 / double(padded_);
    for (int64_t k = 0; k < n_; ++k) out[k] = a_[size_t(k)] * chirp_[size_t(k)] * scale;
  }

 private:
  int64_t n_, padded_ = 0;
  bool forward_;
  std::unique_ptr<kissfft<double>> direct_, there_, back_;
  std::vector<Complex> chirp_, filter_, a_, b_;
};

// The thread's last plans: batches and repeated calls of one length find theirs. Long ones are not kept.
Plan& plan_for(int64_t n, bool forward, std::unique_ptr<Plan>& own) {
  constexpr size_t kKept = 8;
  constexpr int64_t kLongest = 1 << 16;
  if (n > kLongest) {
    own = std::make_unique<Plan>(n, forward);
    return *own;
  }
  thread_local std::vector<std::unique_ptr<Plan>> kept;
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i]->n() == n && kept[i]->forward() == forward) {
      std::rotate(kept.begin(), kept.begin() + std::ptrdiff_t(i), kept.begin() + std::ptrdiff_t(i) + 1);
      return *kept[0];
    }
  if (kept.size() == kKept) kept.pop_back();
  kept.insert(kept.begin(), std::make_unique<Plan>(n, forward));
  return *kept[0];
}

// Lines a chunk: about 30,000 operations, by the length alone.
int64_t grain_of(int64_t n) {
  return std::max<int64_t>(1, 1 << 15 >> std::min(15, int(std::log2(double(n) + 1)) + 3));
}

template <class T>
std::complex<T> narrowed(Complex v, double scale) {
  return {T(v.real() * scale), T(v.imag() * scale)};
}

}  // namespace

template <class T>
void fft_complex(const std::complex<T>* in, std::complex<T>* out, FftShape s, bool forward, double scale) {
  constexpr int64_t kWidth = 8;  // neighbouring lines gathered together
  if (s.outer == 0 || s.n == 0 || s.inner == 0) return;
  int64_t groups = (s.inner + kWidth - 1) / kWidth, width = std::min(kWidth, s.inner);
  int64_t grain = std::max<int64_t>(1, grain_of(s.n) / width);
  parallel_for(0, s.outer * groups, grain, [&](int64_t begin, int64_t end) {
    std::unique_ptr<Plan> own;
    Plan& plan = plan_for(s.n, forward, own);
    std::vector<Complex> lines(size_t(s.n * width)), result(static_cast<size_t>(s.n * width));
    for (int64_t g = begin; g < end; ++g) {
      int64_t first = g % groups * kWidth, count = std::min(kWidth, s.inner - first);
      int64_t base = g / groups * s.n * s.inner + first;
      for (int64_t j = 0; j < s.n; ++j)
        for (int64_t w = 0; w < count; ++w) {
          std::complex<T> v = in[base + j * s.inner + w];
          lines[size_t(w * s.n + j)] = {double(v.real()), double(v.imag())};
        }
      for (int64_t w = 0; w < count; ++w) plan.transform(lines.data() + w * s.n, result.data() + w * s.n);
      for (int64_t j = 0; j < s.n; ++j)
        for (int64_t w = 0; w < count; ++w)
          out[base + j * s.inner + w] = narrowed<T>(result[size_t(w * s.n + j)], scale);
    }
  });
}

template <class T>
void fft_real(const T* in, std::complex<T>* out, int64_t outer, int64_t n, double scale) {
  if (outer == 0 || n == 0) return;
  // An even line is a complex one of half the length; its two halves are told apart afterwards.
  bool even = n % 2 == 0;
  int64_t length = even ? n / 2 : n, half = n / 2 + 1;
  std::vector<Complex> roots;
  if (even)
    for (int64_t k = 0; k < half; ++k) roots.push_back(std::conj(unit_root(k, n)));
  parallel_for(0, outer, grain_of(n), [&](int64_t begin, int64_t end) {
    std::unique_ptr<Plan> own;
    Plan& plan = plan_for(length, true, own);
    std::vector<Complex> line(static_cast<size_t>(length)), z(static_cast<size_t>(length));
    for (int64_t o = begin; o < end; ++o) {
      const T* x = in + o * n;
      std::complex<T>* y = out + o * half;
      for (int64_t j = 0; j < length; ++j)
        line[size_t(j)] = even ? Complex(double(x[2 * j]), double(x[2 * j + 1])) : Complex(double(x[j]), 0);
      plan.transform(line.data(), z.data());
      if (!even) {
        for (int64_t k = 0; k < half; ++k) y[k] = narrowed<T>(z[size_t(k)], scale);
        continue;
      }
      for (int64_t k = 0; k < half; ++k) {
        Complex a = z[size_t(k % length)], b = std::conj(z[size_t((length - k) % length)]);
        Complex evens = (a + b) * 0.5, odds = Complex(0, -0.5) * (a - b);
        Complex v = evens + roots[size_t(k)] * odds;
        if (k == 0 || k == length) v = v.real();
        y[k] = narrowed<T>(v, scale);
      }
    }
  });
}

template <class T>
void fft_real_inverse(const std::complex<T>* in, T* out, int64_t outer, int64_t n, double scale) {
  if (outer == 0 || n == 0) return;
  bool even = n % 2 == 0;
  int64_t length = even ? n / 2 : n, half = n / 2 + 1;
  std::vector<Complex> roots;
  if (even)
    for (int64_t k = 0; k < length; ++k) roots.push_back(unit_root(k, n));
  parallel_for(0, outer, grain_of(n), [&](int64_t begin, int64_t end) {
    std::unique_ptr<Plan> own;
    Plan& plan = plan_for(length, false, own);
    std::vector<Complex> line(static_cast<size_t>(length)), z(static_cast<size_t>(length));
    for (int64_t o = begin; o < end; ++o) {
      const std::complex<T>* x = in + o * half;
      T* y = out + o * n;
      auto at = [&](int64_t k) {
        Complex v(double(x[k].real()), double(x[k].imag()));
        return k == 0 || 2 * k == n ? Complex(v.real()) : v;
      };
      if (even) {
        for (int64_t k = 0; k < length; ++k) {
          Complex a = at(k), b = std::conj(at(length - k));
          line[size_t(k)] = (a + b) + Complex(0, 1) * (a - b) * roots[size_t(k)];
        }
      } else {
        for (int64_t k = 0; k < n; ++k) line[size_t(k)] = k < half ? at(k) : std::conj(at(n - k));
      }
      plan.transform(line.data(), z.data());
      for (int64_t j = 0; j < length; ++j) {
        if (even) {
          y[2 * j] = T(z[size_t(j)].real() * scale);
          y[2 * j + 1] = T(z[size_t(j)].imag() * scale);
        } else {
          y[j] = T(z[size_t(j)].real() * scale);
        }
      }
    }
  });
}

template void fft_complex<float>(const std::complex<float>*, std::complex<float>*, FftShape, bool, double);
template void fft_complex<double>(const std::complex<double>*, std::complex<double>*, FftShape, bool, double);
template void fft_real<float>(const float*, std::complex<float>*, int64_t, int64_t, double);
template void fft_real<double>(const double*, std::complex<double>*, int64_t, int64_t, double);
template void fft_real_inverse<float>(const std::complex<float>*, float*, int64_t, int64_t, double);
template void fft_real_inverse<double>(const std::complex<double>*, double*, int64_t, int64_t, double);

}  // namespace vesta::cpu
