#pragma once
// Discrete Fourier transforms of any length along one dim of a contiguous array [outer, n, inner], by kissfft's template
// with Bluestein's algorithm for lengths that have a large prime factor. Single precision is computed in double and
// rounded once: kissfft is scalar code, so that costs little, and its single precision twiddles lose digits with the
// length. Unscaled sums times `scale`; threads share the lines, results do not depend on their number.
#include <complex>
#include <cstdint>

namespace vesta::cpu {

struct FftShape {
  int64_t outer = 1, n = 1, inner = 1;
};

// T is float or double. in and out may be the same.
template <class T>
void fft_complex(const std::complex<T>* in, std::complex<T>* out, FftShape shape, bool forward, double scale);
// From n real values to the n / 2 + 1 first frequencies along the last dim (inner = 1).
template <class T>
void fft_real(const T* in, std::complex<T>* out, int64_t outer, int64_t n, double scale);
// Back: from n / 2 + 1 frequencies to n real values. What must be real for a real result (frequency 0, and n / 2 where
// n is even) is taken as real.
template <class T>
void fft_real_inverse(const std::complex<T>* in, T* out, int64_t outer, int64_t n, double scale);

}  // namespace vesta::cpu
