// Fourier transforms against sums in long double, for lengths of every kind (powers, small and large primes), dims and
// scales; round trips of the public operators and of short-time transforms.
#include <gtest/gtest.h>
#include <vesta/error.h>

#include <cmath>
#include <complex>
#include <limits>

#include "vesta/ops.h"

namespace vesta {
namespace {

constexpr uint64_t kSeed = 50;
using Wide = std::complex<long double>;

Tensor random(std::vector<int64_t> sizes, DType t, uint64_t seed = kSeed) {
  Generator g(seed);
  Tensor x = randn(sizes, g, TensorOptions(kDouble));
  if (t == kComplexFloat || t == kComplexDouble) x = complex(x, randn(sizes, g, TensorOptions(kDouble)));
  return x.to(t);
}
double largest(const Tensor& t) { return t.numel() ? t.abs().max().to(kDouble).item().toDouble() : 0; }

// The defining sum of one line.
std::vector<Wide> transform(const std::vector<Wide>& x, bool forward) {
  int64_t n = int64_t(x.size());
  std::vector<Wide> y(x.size()), root(x.size());
  for (int64_t k = 0; k < n; ++k) {
    long double angle =
        (forward ? -2 : 2) * 3.14159265358979323846264338327950288L * (long double)(k) / (long double)(n);
    root[size_t(k)] = {std::cos(angle), std::sin(angle)};
  }
  for (int64_t k = 0; k < n; ++k)
    for (int64_t j = 0; j < n; ++j) y[size_t(k)] += x[size_t(j)] * root[size_t(j * k % n)];
  return y;
}
std::vector<Wide> line(const Tensor& t) {
  Tensor c = t.to(kComplexDouble).contiguous();
  std::vector<Wide> v;
  for (int64_t i = 0; i < c.numel(); ++i)
    v.emplace_back(c.data_ptr<std::complex<double>>()[i].real(),
                   c.data_ptr<std::complex<double>>()[i].imag());
  return v;
}
// Largest error relative to the root mean square of the result.
double error(const std::vector<Wide>& got, const std::vector<Wide>& want) {
  long double worst = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::abs(got[i] - want[i])), power += std::norm(want[i]);
  return double(worst / std::sqrt(power / (long double)(want.size())));
}

TEST(Fft, LinesOfEveryKindOfLengthAgreeWithTheDefiningSum) {
  std::vector<int64_t> lengths;
  for (int64_t n = 1; n <= 66; ++n) lengths.push_back(n);
  for (int64_t n : {101, 106, 128, 243, 331, 509, 625, 1000, 1009, 1024}) lengths.push_back(n);
  for (int64_t n : lengths)
    for (DType t : {kComplexFloat, kComplexDouble}) {
      SCOPED_TRACE(testing::Message() << dtype_name(t) << " n " << n << " seed " << kSeed);
      double tolerance = t == kComplexFloat ? 4e-7 : 2e-14;
      Tensor x = random({n}, t), real = vesta::real(x).contiguous();
      EXPECT_LT(error(line(fft_fft(x)), transform(line(x), true)), tolerance);
      EXPECT_LT(error(line(fft_ifft(x, std::nullopt, -1, "forward")), transform(line(x), false)), tolerance);
      std::vector<Wide> want = transform(line(real), true), half = want;
      half.resize(size_t(n / 2 + 1));
      EXPECT_LT(error(line(fft_fft(real)), want), tolerance);
      Tensor spectrum = fft_rfft(real);
      EXPECT_LT(error(line(spectrum), half), tolerance);
      EXPECT_LT(error(line(fft_irfft(spectrum, n)), line(real)), tolerance * 2);
    }
}

TEST(Fft, DimsAreTransformedOneAfterAnother) {
  Tensor x = random({3, 4, 5}, kComplexDouble);
  Tensor want = fft_fft(fft_fft(fft_fft(x, {}, 0), {}, 1), {}, 2);
  EXPECT_LT(largest(fft_fftn(x) - want), 1e-13 * largest(want));
  EXPECT_LT(largest(fft_fft2(x) - fft_fft(fft_fft(x, {}, 1), {}, 2)), 1e-13 * largest(want));
  Tensor strided = x.transpose(0, 2);
  EXPECT_LT(largest(fft_fftn(strided, {}, std::vector<int64_t>{2, 0}).transpose(0, 2) -
                    fft_fftn(x, {}, std::vector<int64_t>{0, 2})),
            1e-13 * largest(want));
  Tensor real = random({3, 4, 5}, kDouble), full = fft_fftn(real);
  for (std::vector<int64_t> dims : {std::vector<int64_t>{0, 1, 2}, {2, 0}, {1}}) {
    Tensor r = fft_rfftn(real, {}, dims), f = fft_fftn(real, {}, dims);
    int64_t last = dims.back(), half = real.size(last) / 2 + 1;
    EXPECT_LT(largest(r - f.narrow(last, 0, half)), 1e-13 * largest(full));
    std::vector<int64_t> sizes;
    for (int64_t d : dims) sizes.push_back(real.size(d));
    EXPECT_LT(largest(fft_irfftn(r, sizes, dims) - real), 1e-13);
    EXPECT_LT(largest(fft_hfftn(fft_ihfftn(real, {}, dims), sizes, dims) - real), 1e-13);
  }
}

TEST(Fft, NormsScaleAndSizesCutOrPad) {
  Tensor x = random({2, 6}, kComplexDouble);
  Tensor sum = fft_fft(x);
  EXPECT_LT(largest(fft_fft(x, {}, -1, "ortho") * std::sqrt(6.0) - sum), 1e-13);
  EXPECT_LT(largest(fft_fft(x, {}, -1, "forward") * 6 - sum), 1e-13);
  for (auto norm : {"backward", "ortho", "forward"}) {
    EXPECT_LT(largest(fft_ifft(fft_fft(x, {}, -1, norm), {}, -1, norm) - x), 1e-13) << norm;
    EXPECT_LT(largest(fft_ifftn(fft_fftn(x, {}, {}, norm), {}, {}, norm) - x), 1e-13) << norm;
  }
  EXPECT_LT(largest(fft_fft(x, 4) - fft_fft(x.narrow(1, 0, 4))), 1e-13);
  Tensor longer = cat({x, zeros({2, 3}, x.options())}, 1);
  EXPECT_LT(largest(fft_fft(x, 9) - fft_fft(longer)), 1e-13);
  Tensor ints = arange(8);
  EXPECT_EQ(fft_fft(ints).dtype(), kComplexFloat);
  EXPECT_EQ(largest(fft_ifftshift(fft_fftshift(random({5, 4}, kDouble))) - random({5, 4}, kDouble)), 0);
}

TEST(Fft, AnInverseOfHalfASpectrumIgnoresWhatCannotBe) {
  // The imaginary parts of frequency 0 and n / 2 have no part in a real signal.
  for (int64_t n : {8, 9}) {
    Tensor spectrum = random({n / 2 + 1}, kComplexDouble), clean = spectrum.clone();
    clean[0] = complex(vesta::real(clean[0]), zeros({}, TensorOptions(kDouble)));
    if (n % 2 == 0) clean[n / 2] = complex(vesta::real(clean[n / 2]), zeros({}, TensorOptions(kDouble)));
    EXPECT_LT(largest(fft_irfft(spectrum, n) - fft_irfft(clean, n)), 1e-15) << n;
    EXPECT_LT(largest(fft_rfft(fft_irfft(spectrum, n)) - clean), 1e-14) << n;
  }
}

TEST(Fft, ALineIsNotTouchedByItsNeighbours) {
  Tensor x = random({5, 16}, kDouble);
  Tensor want = fft_rfft(x[2]);
  x[1] = std::nan("");
  x[3] = 1e300;
  EXPECT_EQ(largest(fft_rfft(x)[2] - want), 0);
  EXPECT_EQ(largest(fft_fft(x.transpose(0, 1).contiguous(), {}, 0).select(1, 2).narrow(0, 0, 9) - want), 0);
}

TEST(Fft, ShortTimeTransformsComeBack) {
  for (DType t : {kDouble, kComplexDouble})
    for (bool center : {true, false})
      for (bool normalized : {true, false}) {
        Tensor x = random({2, 64}, t), window = hann_window(16, TensorOptions(kDouble)) + 0.1;
        bool is_complex = t == kComplexDouble;
        Tensor s = stft(x, 16, 4, 16, window, center, "reflect", normalized, !is_complex, true);
        EXPECT_EQ(s.size(1), is_complex ? 16 : 9);
        Tensor back = istft(s, 16, 4, 16, window, center, normalized, !is_complex, 64, is_complex);
        EXPECT_LT(largest(back - x), 1e-13) << center << normalized;
      }
  // One frame by hand.
  Tensor x = random({12}, kDouble), w = random({6}, kDouble, 51);
  Tensor s = stft(x, 6, 3, std::nullopt, w, false, std::nullopt, true);
  EXPECT_LT(largest(s.select(1, 1) - fft_rfft(x.narrow(0, 3, 6) * w)), 1e-14);
}

TEST(Fft, WrongArgumentsThrowTypedErrors) {
  Tensor x = random({4}, kDouble), z = random({4}, kComplexDouble);
  EXPECT_THROW(fft_fft(x, 0), ValueError);
  EXPECT_THROW(fft_fft(x, -3), ValueError);
  EXPECT_THROW(fft_fft(x, {}, 1), IndexError);
  EXPECT_THROW(fft_fft(x, {}, -1, "orthogonal"), ValueError);
  EXPECT_THROW(fft_fft(zeros({0}, x.options())), ValueError);
  EXPECT_THROW(fft_fft(zeros({}, x.options())), ValueError);
  EXPECT_THROW(fft_fft(x.to(kHalf)), TypeError);
  EXPECT_THROW(fft_rfft(z), TypeError);
  EXPECT_THROW(fft_fftn(z, std::vector<int64_t>{4, 4}), ValueError);
  EXPECT_THROW(fft_fftn(z, {}, std::vector<int64_t>{0, 0}), ValueError);
  EXPECT_THROW(_fft_c2r(z, {0}, 0, 9), ValueError);
  EXPECT_THROW(_fft_c2r(z, {0}, 5, 6), ValueError);
  EXPECT_THROW(stft(x, 0), ValueError);
  EXPECT_THROW(stft(x, 8), ValueError);
  EXPECT_THROW(stft(x, 4, 0), ValueError);
  EXPECT_THROW(stft(x, 4, 1, 9), ValueError);
  EXPECT_THROW(stft(x, 4, std::numeric_limits<int64_t>::max(), 4, x.narrow(0, 0, 3)), ValueError);
  EXPECT_THROW(istft(random({3, 4}, kComplexDouble), 4, 2, 4, zeros({4}, x.options())), ValueError);
  EXPECT_THROW(istft(random({3, 4}, kComplexDouble), 6), ValueError);
}

}  // namespace
}  // namespace vesta
