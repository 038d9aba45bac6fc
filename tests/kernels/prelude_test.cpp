// The scalar prelude against long double references: accuracy at every CPU level on uniform, log-uniform and special
// arguments, equal bits on the levels with FMA, exact integer and conversion semantics, complex functions.
// The bounds below are those of docs/scalar.md.
#include "vesta/scalar/prelude.h"

#include <complex>
#include <limits>

#include "kernels/kernel_testing.h"
#include "kernels/prelude_loops.h"

namespace vesta::cpu {
namespace {

namespace vs = vesta::scalar;
using Real = long double;

const PreludeLoops& loops_of(CpuIsa isa) {
#ifdef VESTA_ALL_ISA
  if (isa >= CpuIsa::V4) return v4::prelude_loops;
  if (isa >= CpuIsa::V3) return v3::prelude_loops;
#endif
  (void)isa;
  return baseline::prelude_loops;
}
// Without it fma_ rounds twice. A build of one level has that level's loops for every machine.
#ifdef VESTA_ALL_ISA
bool has_fma(CpuIsa isa) { return isa >= CpuIsa::V3 || vs::kHasFma; }
#else
bool has_fma(CpuIsa) { return vs::kHasFma; }
#endif

// |got - want| in units of the last place of want's binade; huge where one is NaN or infinite and the other is not.
template <class R>
double ulps(R got, Real want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  const R rounded = static_cast<R>(want);
  if (std::isinf(rounded) || std::isinf(got)) {
    if (rounded == got) return 0;
    // At the edge of overflow one of the two may be the largest finite number.
    const Real edge = std::numeric_limits<R>::max() * (1 - 8 * Real(std::numeric_limits<R>::epsilon()));
    return std::fabs(want) > edge && std::fabs(Real(got)) > edge && (want > 0) == (got > 0) ? 1 : 1e30;
  }
  int exponent = std::numeric_limits<R>::min_exponent;
  if (want != 0) std::frexp(want, &exponent);
  exponent = std::max(exponent, std::numeric_limits<R>::min_exponent) - std::numeric_limits<R>::digits;
  return static_cast<double>(std::fabs(Real(got) - want) / std::ldexp(Real(1), exponent));
}

template <class R>
const std::vector<R>& special_values() {
  using L = std::numeric_limits<R>;
  static const std::vector<R> values = {R(0),
                                        -R(0),
                                        R(1),
                                        R(-1),
                                        R(0.5),
                                        R(-0.5),
                                        R(2),
                                        R(-2),
                                        R(1.5),
                                        R(-2.5),
                                        R(3),
                                        L::infinity(),
                                        -L::infinity(),
                                        L::quiet_NaN(),
                                        L::denorm_min(),
                                        -L::denorm_min(),
                                        L::min(),
                                        -L::min(),
                                        L::max(),
                                        -L::max(),
                                        L::epsilon(),
                                        R(1) + L::epsilon(),
                                        R(1) - L::epsilon() / 2,
                                        R(0.7071067811865476),
                                        R(1.4142135623730951),
                                        R(10),
                                        R(100),
                                        R(-100),
                                        R(1e5),
                                        R(-1e5),
                                        R(1.5707963267948966),
                                        R(3.141592653589793),
                                        R(1e10),
                                        R(1e13),
                                        R(0.55),
                                        R(0.925)};
  return values;
}

// Half uniform on [lo, hi], half with uniformly distributed exponents down to the subnormals.
template <class R>
std::vector<R> arguments(double lo, double hi, int n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<R> x(n);
  const double top = std::max(std::fabs(lo), std::fabs(hi));
  const double bottom = std::numeric_limits<R>::min_exponent - std::numeric_limits<R>::digits;
  for (int i = 0; i < n; ++i) {
    const double u = std::ldexp(static_cast<double>(random() >> 11), -53);
    double v = lo + (hi - lo) * u;
    if (i % 2) v = std::exp2(bottom + (std::log2(top) - bottom) * u) * (random() & 1 ? 1 : -1);
    x[i] = static_cast<R>(std::min(std::max(v, lo), hi));
  }
  return x;
}

struct Domain {
  double lo, hi;
};
struct UnaryCase {
  const char* name;
  Real (*reference)(Real);
  double ulps32, ulps64;
  Domain f32, f64;
  bool specials;  // also at special_values(), whose reference must then be right
};

constexpr Real kSqrtHalf = 0.70710678118654752440L;
constexpr Real kPi = 3.14159265358979323846L;
Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }
Real softplus(Real x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
Real gelu_erf(Real x) { return x * std::erfc(-x * kSqrtHalf) / 2; }
Real gelu_tanh(Real x) {
  const Real k = 2 * std::sqrt(2 / kPi);
  return x * sigmoid(k * (x + Real(0.044715) * x * x * x));
}
Real sign(Real x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
Real digamma(Real x) {
  if (x <= 0 && x == std::floor(x))
    return x == 0 ? std::copysign(std::numeric_limits<Real>::infinity(), -x) : NAN;
  if (x < 0) {
    const Real f = x - std::round(x);
    return digamma(1 - x) - kPi * std::cos(kPi * f) / std::sin(kPi * f);
  }
  Real sum = 0;
  for (; x < 30; x += 1) sum -= 1 / x;
  const Real w = 1 / (x * x);
  const Real series =
      w * (1.0L / 12 -
           w * (1.0L / 120 - w * (1.0L / 252 - w * (1.0L / 240 - w * (1.0L / 132 - w * 691 / 32760)))));
  return sum + std::log(x) - Real(0.5) / x - series;
}
// Newton's method on erf or erfc, started by bisection: independent of the prelude.
Real erfinv(Real x) {
  const Real a = std::fabs(x);
  if (!(a < 1)) return a == 1 ? std::copysign(std::numeric_limits<Real>::infinity(), x) : NAN;
  if (a < 1e-8L) return x * std::sqrt(kPi) / 2;
  Real low = 0, high = 7;
  for (int i = 0; i < 20; ++i) {
    const Real middle = (low + high) / 2;
    (std::erfc(middle) > 1 - a ? low : high) = middle;
  }
  Real y = (low + high) / 2;
  for (int i = 0; i < 5; ++i) {
    const Real miss = a < 0.5L ? std::erf(y) - a : (1 - a) - std::erfc(y);
    y -= miss * std::sqrt(kPi) / 2 * std::exp(y * y);
  }
  return std::copysign(y, x);
}

// clang-format off
const UnaryCase kUnaryCases[] = {
    {"exp", std::exp, 1, 1, {-105, 90}, {-746, 711}, true},
    {"expm1", std::expm1, 1.6, 2, {-105, 90}, {-746, 711}, true},
    {"expm1", std::expm1, 1.6, 2, {-1, 1}, {-1, 1}, false},
    {"exp2", std::exp2, 1, 1, {-151, 129}, {-1076, 1025}, true},
    {"log", std::log, 1, 1, {0, 3.4e38}, {0, 1.7e308}, true},
    {"log", std::log, 1, 1, {0.4, 2.5}, {0.4, 2.5}, false},
    {"log1p", std::log1p, 1.6, 1, {-1, 3.4e38}, {-1, 1.7e308}, true},
    {"log1p", std::log1p, 1.6, 1, {-0.9, 2}, {-0.9, 2}, false},
    {"log2", std::log2, 1.6, 1.1, {0, 3.4e38}, {0, 1.7e308}, true},
    {"log2", std::log2, 1.6, 1.1, {0.4, 2.5}, {0.4, 2.5}, false},
    {"log10", std::log10, 1.5, 1.1, {0, 3.4e38}, {0, 1.7e308}, true},
    {"log10", std::log10, 1.5, 1.1, {0.4, 2.5}, {0.4, 2.5}, false},
    {"sin", std::sin, 1.6, 0.8, {-1e4, 1e4}, {-1e4, 1e4}, false},
    {"sin", std::sin, 1.6, 0.8, {-1.4e14, 1.4e14}, {-1e13, 1e13}, false},
    {"sin", std::sin, 8, 0.8, {-3.4e38, 3.4e38}, {-3.2, 3.2}, false},
    {"cos", std::cos, 1.6, 0.8, {-1e4, 1e4}, {-1e4, 1e4}, false},
    {"cos", std::cos, 1.6, 0.8, {-1.4e14, 1.4e14}, {-1e13, 1e13}, false},
    {"cos", std::cos, 8, 0.8, {-3.4e38, 3.4e38}, {-3.2, 3.2}, false},
    {"tan", std::tan, 3.2, 2.2, {-1e4, 1e4}, {-1e4, 1e4}, false},
    {"tan", std::tan, 3.2, 2.2, {-1.4e14, 1.4e14}, {-1e13, 1e13}, false},
    {"asin", std::asin, 1, 1, {-1, 1}, {-1, 1}, true},
    {"acos", std::acos, 1, 1, {-1, 1}, {-1, 1}, true},
    {"atan", std::atan, 2.2, 2.2, {-10, 10}, {-10, 10}, true},
    {"sinh", std::sinh, 2.3, 2.3, {-90, 90}, {-711, 711}, true},
    {"sinh", std::sinh, 2.3, 2.3, {-2, 2}, {-2, 2}, false},
    {"cosh", std::cosh, 1.5, 1.5, {-90, 90}, {-711, 711}, true},
    {"tanh", std::tanh, 1.6, 1.6, {-11, 11}, {-21, 21}, true},
    {"tanh", std::tanh, 1.6, 1.6, {-1, 1}, {-1, 1}, false},
    {"asinh", std::asinh, 2.1, 2, {-4, 4}, {-4, 4}, true},
    {"asinh", std::asinh, 2.1, 2, {-3e38, 3e38}, {-1e307, 1e307}, false},
    {"acosh", std::acosh, 2.1, 2, {1, 4}, {1, 4}, true},
    {"acosh", std::acosh, 2.1, 2, {1, 3e38}, {1, 1e307}, false},
    {"atanh", std::atanh, 2.2, 2, {-1, 1}, {-1, 1}, true},
    {"erf", std::erf, 1.1, 1.3, {-5, 5}, {-7, 7}, true},
    {"erfc", std::erfc, 5.5, 5, {-5, 11}, {-5, 28}, true},
    {"erfinv", erfinv, 3, 3.5, {-1, 1}, {-1, 1}, true},
    {"ndtr", [](Real x) { return std::erfc(-x * kSqrtHalf) / 2; }, 4.8, 5, {-13, 10}, {-20, 10}, false},
    {"lgamma", std::lgamma, 0.6, 5, {0, 200}, {0, 200}, false},
    {"lgamma", std::lgamma, 0.6, 5, {0.4, 9}, {0.4, 9}, false},
    {"digamma", digamma, 0.6, 30, {0, 200}, {0, 200}, false},
    {"digamma", digamma, 0.6, 30, {0.5, 4}, {0.5, 4}, false},
    {"sqrt", std::sqrt, 0.5, 0.5, {0, 3e38}, {0, 1e308}, true},
    {"rsqrt", [](Real x) { return 1 / std::sqrt(x); }, 1.5, 1.5, {0, 3e38}, {0, 1e308}, true},
    {"abs", std::fabs, 0, 0, {-3e38, 3e38}, {-1e308, 1e308}, true},
    {"sign", sign, 0, 0, {-3e38, 3e38}, {-1e308, 1e308}, true},
    {"floor", std::floor, 0, 0, {-100, 100}, {-100, 100}, true},
    {"floor", std::floor, 0, 0, {-3e7, 3e7}, {-2e16, 2e16}, false},
    {"ceil", std::ceil, 0, 0, {-100, 100}, {-100, 100}, true},
    {"ceil", std::ceil, 0, 0, {-3e7, 3e7}, {-2e16, 2e16}, false},
    {"round", std::nearbyint, 0, 0, {-100, 100}, {-100, 100}, true},
    {"round", std::nearbyint, 0, 0, {-3e7, 3e7}, {-2e16, 2e16}, false},
    {"trunc", std::trunc, 0, 0, {-100, 100}, {-100, 100}, true},
    {"trunc", std::trunc, 0, 0, {-3e7, 3e7}, {-2e16, 2e16}, false},
    {"frac", [](Real x) { return x - std::trunc(x); }, 0, 0, {-100, 100}, {-100, 100}, true},
    {"sigmoid", sigmoid, 2.5, 2.5, {-86, 90}, {-707, 90}, true},
    {"sigmoid", sigmoid, 2.5, 2.5, {-6, 6}, {-6, 6}, false},
    {"softplus", softplus, 2.2, 2, {-86, 90}, {-707, 90}, true},
    {"softplus", softplus, 2.2, 2, {-4, 4}, {-4, 4}, false},
    {"log_sigmoid", [](Real x) { return -softplus(-x); }, 2.2, 2, {-90, 86}, {-700, 700}, true},
    {"silu", [](Real x) { return x * sigmoid(x); }, 3.2, 3.2, {-86, 90}, {-700, 90}, false},
    {"gelu_erf", gelu_erf, 3.2, 6.5, {-14.2, 10}, {-20, 10}, false},
    {"gelu_erf", gelu_erf, 3.2, 6.5, {-2, 2}, {-2, 2}, false},
    {"gelu_erf_slope", [](Real x) { return std::erfc(-x * kSqrtHalf) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi); }, 4.5, 8, {-0.5, 10}, {-0.5, 10}, false},
    {"gelu_tanh", gelu_tanh, 3.5, 3.5, {-9.5, 10}, {-20, 10}, false},
    {"reciprocal", [](Real x) { return 1 / x; }, 0.5, 0.5, {-3e38, 3e38}, {-1e308, 1e308}, true},
    {"square", [](Real x) { return x * x; }, 0.5, 0.5, {-1e19, 1e19}, {-1e150, 1e150}, true},
};
// clang-format on

const PreludeUnary* find_unary(const PreludeLoops& loops, const std::string& name) {
  for (int i = 0; i < loops.unary_count; ++i)
    if (name == loops.unary[i].name) return &loops.unary[i];
  return nullptr;
}
const PreludeBinary* find_binary(const PreludeLoops& loops, const std::string& name) {
  for (int i = 0; i < loops.binary_count; ++i)
    if (name == loops.binary[i].name) return &loops.binary[i];
  return nullptr;
}

// Double rounding of the reference adds a little to a correctly rounded result; without FMA errors grow.
double allowed(double bound, bool fma) { return bound == 0 ? 0 : fma ? bound + 0.001 : 2 * bound + 1; }

template <class R, class Loop>
void check_unary(const UnaryCase& test, Loop loop, Domain domain, double bound, CpuIsa isa) {
  std::vector<R> x = arguments<R>(domain.lo, domain.hi, 20000, 17);
  if (test.specials) x.insert(x.end(), special_values<R>().begin(), special_values<R>().end());
  std::vector<R> out(x.size());
  loop(x.data(), out.data(), static_cast<int>(x.size()));
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const Real want = test.reference(x[i]);
    const double error = ulps(out[i], want);
    if (!(error <= worst)) worst = error, at = i;
    if (want == 0 && x[i] == 0 && bound != 0) {
      EXPECT_EQ(std::signbit(out[i]), std::signbit(want)) << test.name << "(" << x[i] << ")";
    }
  }
  EXPECT_LE(worst, allowed(bound, has_fma(isa)))
      << test.name << (sizeof(R) == 4 ? " f32" : " f64") << " level " << static_cast<int>(isa)
      << " at x = " << std::hexfloat << x[at] << ": got " << out[at] << ", want "
      << static_cast<R>(test.reference(x[at]));
}

TEST(Prelude, UnaryFunctionsStayWithinTheirUlpsAtEveryLevel) {
  for (CpuIsa isa : testing::levels()) {
    for (const UnaryCase& test : kUnaryCases) {
      const PreludeUnary* loop = find_unary(loops_of(isa), test.name);
      ASSERT_NE(loop, nullptr) << test.name;
      check_unary<float>(test, loop->f32, test.f32, test.ulps32, isa);
      check_unary<double>(test, loop->f64, test.f64, test.ulps64, isa);
    }
  }
}

TEST(Prelude, EveryUnaryLoopHasAReference) {
  const PreludeLoops& loops = loops_of(CpuIsa::Baseline);
  for (int i = 0; i < loops.unary_count; ++i) {
    bool found = false;
    for (const UnaryCase& test : kUnaryCases) found |= std::string(test.name) == loops.unary[i].name;
    EXPECT_TRUE(found) << loops.unary[i].name;
  }
}

// The functions that use FMA give the same bits wherever there is one, over all bit patterns.
template <class R, class Bits>
std::vector<R> random_bits(int n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<R> x(n);
  for (R& v : x) {
    const Bits b = static_cast<Bits>(random());
    std::memcpy(&v, &b, sizeof v);
  }
  return x;
}
template <class R, class Bits>
int64_t differing(const std::vector<R>& a, const std::vector<R>& b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    Bits p, q;
    std::memcpy(&p, &a[i], sizeof p);
    std::memcpy(&q, &b[i], sizeof q);
    count += p != q && !(std::isnan(a[i]) && std::isnan(b[i]));
  }
  return count;
}

TEST(Prelude, LevelsWithFmaGiveEqualBits) {
  if (testing::levels().size() < 3) GTEST_SKIP() << "this machine or build has no second level with FMA";
  const PreludeLoops &a = loops_of(CpuIsa::V3), &b = loops_of(CpuIsa::V4);
  constexpr int kCount = 200000;
  std::vector<float> x = random_bits<float, uint32_t>(kCount, 3), y = random_bits<float, uint32_t>(kCount, 4);
  std::vector<double> xd = random_bits<double, uint64_t>(kCount / 4, 5),
                      yd = random_bits<double, uint64_t>(kCount / 4, 6);
  const std::vector<float> mid = arguments<float>(-20, 20, kCount, 7);
  const std::vector<double> midd = arguments<double>(-20, 20, kCount / 4, 8);
  x.insert(x.end(), mid.begin(), mid.end());
  y.insert(y.end(), mid.rbegin(), mid.rend());
  xd.insert(xd.end(), midd.begin(), midd.end());
  yd.insert(yd.end(), midd.rbegin(), midd.rend());
  const int n = static_cast<int>(x.size()), nd = static_cast<int>(xd.size());
  std::vector<float> p(n), q(n);
  std::vector<double> pd(nd), qd(nd);
  for (int i = 0; i < a.unary_count; ++i) {
    a.unary[i].f32(x.data(), p.data(), n);
    b.unary[i].f32(x.data(), q.data(), n);
    EXPECT_EQ((differing<float, uint32_t>(p, q)), 0) << a.unary[i].name << " f32";
    a.unary[i].f64(xd.data(), pd.data(), nd);
    b.unary[i].f64(xd.data(), qd.data(), nd);
    EXPECT_EQ((differing<double, uint64_t>(pd, qd)), 0) << a.unary[i].name << " f64";
  }
  for (int i = 0; i < a.binary_count; ++i) {
    a.binary[i].f32(x.data(), y.data(), p.data(), n);
    b.binary[i].f32(x.data(), y.data(), q.data(), n);
    EXPECT_EQ((differing<float, uint32_t>(p, q)), 0) << a.binary[i].name << " f32";
    a.binary[i].f64(xd.data(), yd.data(), pd.data(), nd);
    b.binary[i].f64(xd.data(), yd.data(), qd.data(), nd);
    EXPECT_EQ((differing<double, uint64_t>(pd, qd)), 0) << a.binary[i].name << " f64";
  }
}

// ---- binary functions ----

Real python_mod(Real x, Real y) {
  const Real r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
template <class R>
R floor_divide(R a, R b) {  // CPython's and PyTorch's definition
  if (b == 0) return a / b;
  const R mod = std::fmod(a, b);
  R div = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
  if (div == 0) return std::copysign(R(0), a / b);
  const R floored = std::floor(div);
  return div - floored > R(0.5) ? floored + 1 : floored;
}
struct BinaryCase {
  const char* name;
  Real (*reference)(Real, Real);
  double ulps32, ulps64;
  double exponent;  // |x| and |y| lie in 2^[-exponent, exponent]
};
const BinaryCase kBinaryCases[] = {
    {"pow", std::pow, 0.52, 1.1, 5},       {"atan2", std::atan2, 2.2, 2.2, 3},
    {"atan2", std::atan2, 2.2, 2.2, 60},   {"hypot", std::hypot, 0.6, 1.3, 3},
    {"hypot", std::hypot, 0.6, 1.3, 60},   {"fmod", std::fmod, 0, 0, 3},
    {"fmod", std::fmod, 0, 0, 25},         {"remainder", python_mod, 0.6, 0.6, 3},
    {"copysign", std::copysign, 0, 0, 60}, {"max", std::fmax, 0, 0, 60},
    {"min", std::fmin, 0, 0, 60},          {"fmax", std::fmax, 0, 0, 60},
    {"fmin", std::fmin, 0, 0, 60},
};

template <class R, class Loop>
void check_binary(const BinaryCase& test, Loop loop, double bound, CpuIsa isa) {
  constexpr int kCount = 20000;
  std::mt19937_64 random(23);
  std::uniform_real_distribution<double> exponent(-test.exponent, test.exponent);
  std::vector<R> x(kCount), y(kCount), out(kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = static_cast<R>(std::exp2(exponent(random)) * (random() & 1 ? 1 : -1));
    y[i] = static_cast<R>(std::exp2(exponent(random)) * (random() & 1 ? 1 : -1));
    if (i % 4 == 0) y[i] = std::round(y[i]) + (y[i] > 0 ? 1 : -1);  // whole exponents and divisors
  }
  loop(x.data(), y.data(), out.data(), kCount);
  double worst = 0;
  int at = 0;
  for (int i = 0; i < kCount; ++i) {
    const double error = ulps(out[i], test.reference(x[i], y[i]));
    if (!(error <= worst)) worst = error, at = i;
  }
  EXPECT_LE(worst, allowed(bound, has_fma(isa)))
      << test.name << (sizeof(R) == 4 ? " f32" : " f64") << " level " << static_cast<int>(isa) << " at "
      << std::hexfloat << x[at] << ", " << y[at] << ": got " << out[at] << ", want "
      << static_cast<R>(test.reference(x[at], y[at]));
}

TEST(Prelude, BinaryFunctionsStayWithinTheirUlpsAtEveryLevel) {
  for (CpuIsa isa : testing::levels()) {
    for (const BinaryCase& test : kBinaryCases) {
      const PreludeBinary* loop = find_binary(loops_of(isa), test.name);
      ASSERT_NE(loop, nullptr) << test.name;
      check_binary<float>(test, loop->f32, test.ulps32, isa);
      check_binary<double>(test, loop->f64, test.ulps64, isa);
    }
  }
}

template <class R, class Loop>
void check_floordiv(Loop loop) {
  std::vector<R> x = arguments<R>(-50, 50, 4000, 31), y = arguments<R>(-7, 7, 4000, 32), out(4000);
  for (size_t i = 0; i < x.size(); i += 3) x[i] = std::round(x[i]), y[i] = std::round(y[i]);
  for (size_t i = 1; i < x.size(); i += 2)
    y[i] = R(0.1) * std::round(y[i] * 10 + 1);  // exponents without overflow
  loop(x.data(), y.data(), out.data(), 4000);
  for (size_t i = 0; i < x.size(); ++i) {
    const R want = floor_divide(x[i], y[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(out[i])) << x[i] << " // " << y[i];
    } else {
      EXPECT_EQ(out[i], want) << x[i] << " // " << y[i];
    }
  }
}
TEST(Prelude, FloorDivisionFollowsTheRemainder) {
  for (CpuIsa isa : testing::levels()) {
    const PreludeBinary* loop = find_binary(loops_of(isa), "floordiv");
    check_floordiv<float>(loop->f32);
    check_floordiv<double>(loop->f64);
  }
  EXPECT_EQ(vs::floordiv_(1.0, 0.1), 9.0);
  EXPECT_EQ(vs::floordiv_(1.0f, 0.0f), INFINITY);
  EXPECT_EQ(vs::remainder_(-1e-20, 1.0), 1.0);
  EXPECT_EQ(vs::remainder_(-5.5, static_cast<double>(INFINITY)), INFINITY);
  EXPECT_EQ(vs::div_trunc_(-7.0f, 2.0f), -3.0f);
}

// C's special cases of two arguments, every pair of special values.
template <class R>
void check_special_pairs(const PreludeLoops& loops, const char* name, Real (*reference)(Real, Real),
                         double bound) {
  const PreludeBinary* entry = find_binary(loops, name);
  for (R x : special_values<R>()) {
    for (R y : special_values<R>()) {
      R got;
      if constexpr (sizeof(R) == 4) {
        entry->f32(&x, &y, &got, 1);
      } else {
        entry->f64(&x, &y, &got, 1);
      }
      const Real want = reference(x, y);
      EXPECT_LE(ulps(got, want), bound)
          << name << "(" << x << ", " << y << ") = " << got << ", want " << want;
      if (want == 0 && std::string(name) != "hypot") {
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << name << "(" << x << ", " << y << ")";
      }
    }
  }
}
TEST(Prelude, SpecialPairsFollowIeee754) {
  for (CpuIsa isa : testing::levels()) {
    const PreludeLoops& loops = loops_of(isa);
    const double slack = has_fma(isa) ? 2.2 : 5;
    check_special_pairs<float>(loops, "pow", std::pow, slack);
    check_special_pairs<double>(loops, "pow", std::pow, slack);
    check_special_pairs<float>(loops, "atan2", std::atan2, slack);
    check_special_pairs<double>(loops, "atan2", std::atan2, slack);
    check_special_pairs<float>(loops, "hypot", std::hypot, slack);
    check_special_pairs<double>(loops, "hypot", std::hypot, slack);
  }
}

TEST(Prelude, MinAndMaxPropagateNanAndFminAndFmaxIgnoreIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(vs::max_(nan, 1.0f)) && std::isnan(vs::max_(1.0f, nan)));
  EXPECT_TRUE(std::isnan(vs::min_(nan, 1.0f)) && std::isnan(vs::min_(1.0f, nan)));
  EXPECT_EQ(vs::fmax_(nan, 1.0f), 1.0f);
  EXPECT_EQ(vs::fmax_(1.0f, nan), 1.0f);
  EXPECT_EQ(vs::fmin_(nan, 1.0f), 1.0f);
  EXPECT_EQ(vs::fmin_(1.0f, nan), 1.0f);
  EXPECT_EQ(vs::sign_(nan), 0.0f);
  EXPECT_TRUE(vs::isnan_(nan) && !vs::isinf_(nan) && !vs::isfinite_(nan));
  EXPECT_TRUE(vs::isinf_(-INFINITY) && !vs::isfinite_(INFINITY) && vs::isfinite_(3.0f));
}

// Left of zero lgamma and digamma cross zero between the poles, where only the absolute error is bounded.
TEST(Prelude, GammaFunctionsReflectAndHavePoles) {
  for (double x : arguments<double>(-30, 0, 4000, 51)) {
    if (x == std::floor(x) || x > -1e-300) continue;  // a pole, or a reciprocal beyond the range
    const Real want = std::lgamma(static_cast<Real>(x)), psi = digamma(x);
    EXPECT_LE(std::fabs(vs::lgamma_(x) - want), 2e-14 + 1e-15 * std::fabs(want)) << x;
    // The cotangent's argument |x| carries an error of half an ulp, which a nearby pole amplifies.
    EXPECT_LE(std::fabs(vs::digamma_(x) - psi), 1e-13 + 1e-15 * std::fabs(psi)) << x;
  }
  const double inf = std::numeric_limits<double>::infinity();
  for (double x : {0.0, -0.0, -1.0, -7.0, -1e17, inf, -inf}) EXPECT_EQ(vs::lgamma_(x), inf) << x;
  EXPECT_EQ(vs::lgamma_(1.0), 0.0);
  EXPECT_EQ(vs::lgamma_(2.0), 0.0);
  EXPECT_EQ(vs::digamma_(0.0), -inf);
  EXPECT_EQ(vs::digamma_(-0.0), inf);
  EXPECT_EQ(vs::digamma_(inf), inf);
  EXPECT_TRUE(std::isnan(vs::digamma_(-3.0)) && std::isnan(vs::lgamma_(std::nan(""))));
}

TEST(Prelude, LargeDoubleAnglesStayBounded) {
  for (double x : {0x1p51, -0x1p60, 1e300, std::numeric_limits<double>::max()}) {
    EXPECT_LE(std::fabs(vs::sin_(x)), 1.0) << x;
    EXPECT_LE(std::fabs(vs::cos_(x)), 1.0) << x;
  }
  EXPECT_TRUE(std::isnan(vs::sin_(static_cast<double>(INFINITY))) && std::isnan(vs::cos_(INFINITY)));
}

// ---- integers ----

template <class I>
std::vector<I> edge_integers() {
  using L = std::numeric_limits<I>;
  std::vector<I> v = {0,
                      1,
                      -1,
                      2,
                      -2,
                      3,
                      -3,
                      7,
                      -7,
                      31,
                      32,
                      63,
                      64,
                      65,
                      100,
                      -100,
                      L::max(),
                      L::min(),
                      L::max() - 1,
                      L::min() + 1,
                      L::max() / 2,
                      46341,
                      -46341};
  std::mt19937_64 random(5);
  for (int i = 0; i < 60; ++i) v.push_back(static_cast<I>(random()) >> (random() % (8 * sizeof(I))));
  return v;
}
template <class I>
I wrap(__int128 v) {
  return static_cast<I>(static_cast<std::make_unsigned_t<I>>(v));
}
template <class I>
void check_integers() {
  constexpr int kWidth = 8 * sizeof(I);
  for (I a : edge_integers<I>()) {
    EXPECT_EQ(vs::abs_(a), wrap<I>(a < 0 ? -static_cast<__int128>(a) : a));
    EXPECT_EQ(vs::neg_(a), wrap<I>(-static_cast<__int128>(a)));
    EXPECT_EQ(vs::sign_(a), (a > 0) - (a < 0));
    for (I b : edge_integers<I>()) {
      SCOPED_TRACE(std::to_string(a) + ", " + std::to_string(b));
      const __int128 x = a, y = b;
      EXPECT_EQ(vs::add_(a, b), wrap<I>(x + y));
      EXPECT_EQ(vs::sub_(a, b), wrap<I>(x - y));
      EXPECT_EQ(vs::mul_(a, b), wrap<I>(x * y));
      EXPECT_EQ(vs::div_trunc_(a, b), b == 0 ? 0 : wrap<I>(x / y));
      const __int128 r = b == 0 ? 0 : x % y, q = b == 0 ? 0 : x / y;
      const bool adjust = r != 0 && (r < 0) != (y < 0);
      EXPECT_EQ(vs::fmod_(a, b), wrap<I>(r));
      EXPECT_EQ(vs::remainder_(a, b), wrap<I>(adjust ? r + y : r));
      EXPECT_EQ(vs::floordiv_(a, b), wrap<I>(adjust ? q - 1 : q));
      EXPECT_EQ(vs::min_(a, b), std::min(a, b));
      EXPECT_EQ(vs::max_(a, b), std::max(a, b));
      const bool inside = b >= 0 && b < kWidth;
      EXPECT_EQ(vs::lshift_(a, b), inside ? wrap<I>(static_cast<unsigned __int128>(x) << b) : 0);
      EXPECT_EQ(vs::rshift_(a, b), inside ? a >> b : (a < 0 ? -1 : 0));
      I power = 1;
      if (b >= 0 && b <= 100) {
        for (I k = 0; k < b; ++k) power = wrap<I>(static_cast<__int128>(power) * a);
        EXPECT_EQ(vs::pow_(a, b), power);
      } else if (b < 0) {
        EXPECT_EQ(vs::pow_(a, b), a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0);
      }
      const I g = vs::gcd_(a, b);
      if (a != std::numeric_limits<I>::min() && b != std::numeric_limits<I>::min() && (a || b)) {
        EXPECT_GT(g, 0);
        EXPECT_EQ(a % g, 0);
        EXPECT_EQ(b % g, 0);
        EXPECT_EQ(vs::gcd_(wrap<I>(a / g), wrap<I>(b / g)), 1);
      }
    }
  }
}
// Quotients right at and beside whole numbers, operands of every magnitude, and the extremes.
TEST(Prelude, DivisionOf64BitIntegersIsExactAtEveryLevel) {
  std::mt19937_64 random(23);
  constexpr int kCount = 100000;
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> a(kCount), b(kCount), out(kCount);
  for (int i = 0; i < kCount; ++i) {
    a[i] = static_cast<int64_t>(random()) >> (random() % 64);
    b[i] = static_cast<int64_t>(random()) >> (random() % 64);
    if (random() % 8 == 0) a[i] = random() & 1 ? kMin + static_cast<int64_t>(random() % 3) : kMax;
    if (random() % 8 == 0) b[i] = random() & 1 ? kMin + static_cast<int64_t>(random() % 3) : kMax;
    if (random() % 4 == 0 && b[i] != 0 && b[i] != -1) a[i] = a[i] / b[i] * b[i];
    if (random() % 4 == 0 && a[i] != kMin) --a[i];
  }
  for (CpuIsa isa : testing::levels()) {
    const PreludeLoops& loops = loops_of(isa);
    ASSERT_EQ(loops.integer_count, 4);
    for (int k = 0; k < loops.integer_count; ++k) {
      const std::string name = loops.integer[k].name;
      loops.integer[k].i64(a.data(), b.data(), out.data(), kCount);
      int wrong = 0;
      for (int i = 0; i < kCount && wrong < 3; ++i) {
        // By 0 everything is 0; the quotient by -1 wraps.
        const bool plain = b[i] != 0 && b[i] != -1;
        int64_t q = plain ? a[i] / b[i] : b[i] == 0 ? 0 : vs::neg_(a[i]), r = plain ? a[i] % b[i] : 0;
        const bool down = r != 0 && (r < 0) != (b[i] < 0);
        const int64_t want = name == "div_trunc"  ? q
                             : name == "floordiv" ? q - down
                             : name == "fmod"     ? r
                                                  : r + (down ? b[i] : 0);
        EXPECT_EQ(out[i], want) << name << " of " << a[i] << " and " << b[i] << " level "
                                << static_cast<int>(isa);
        wrong += out[i] != want;
      }
    }
  }
}

TEST(Prelude, IntegersWrapAndNeverTrap) {
  check_integers<int32_t>();
  check_integers<int64_t>();
}

TEST(Prelude, BoolsFollowLogic) {
  for (int a : {0, 1, 7}) {
    for (int b : {0, 1, 2}) {
      const uint8_t x = static_cast<uint8_t>(a), y = static_cast<uint8_t>(b);
      EXPECT_EQ(vs::and_(x, y), a && b);
      EXPECT_EQ(vs::or_(x, y), a || b);
      EXPECT_EQ(vs::xor_(x, y), !a != !b);
      EXPECT_EQ(vs::add_(x, y), a || b);
      EXPECT_EQ(vs::mul_(x, y), a && b);
      EXPECT_EQ(vs::not_(x), !a);
    }
  }
}

// ---- conversions ----

TEST(Prelude, FloatToIntegerSaturatesAndNanGivesZero) {
  EXPECT_EQ(vs::to_i32_(NAN), 0);
  EXPECT_EQ(vs::to_i32_(3e9f), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(vs::to_i32_(-3e9f), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(vs::to_i32_(-INFINITY), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(vs::to_i32_(2147483647.0), 2147483647);
  EXPECT_EQ(vs::to_i32_(2147483648.0), 2147483647);
  EXPECT_EQ(vs::to_i32_(-2.9), -2);
  EXPECT_EQ(vs::to_i64_(INFINITY), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(vs::to_i64_(-1e19), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(vs::to_i64_(9007199254740993.0 * 512), static_cast<int64_t>(9007199254740992) * 512);
  EXPECT_EQ(vs::to_i64_(std::nan("")), 0);
}

TEST(Prelude, HalfFormatsRoundToNearestEven) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const uint16_t u = static_cast<uint16_t>(h);
    const float f = vs::f16_to_f32_(u), b = vs::bf16_to_f32_(u), want = testing::from_half(u);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(f));
    } else {
      EXPECT_EQ(f, want) << h;
      EXPECT_EQ(vs::f32_to_f16_(f), u);
    }
    if (std::isnan(b)) {
      EXPECT_TRUE(std::isnan(vs::bf16_to_f32_(vs::f32_to_bf16_(b))));
    } else {
      EXPECT_EQ(vs::f32_to_bf16_(b), u);
    }
  }
  const std::vector<float> x = arguments<float>(-70000, 70000, 50000, 41);
  for (float v : x) {
    EXPECT_EQ(vs::f32_to_f16_(v), testing::to_half(v)) << v;
    // bf16: the nearer of the two neighbours that truncation gives, the even one on a tie.
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    const uint32_t low = bits >> 16, rest = bits & 0xffff;
    const uint32_t want = low + (rest > 0x8000 || (rest == 0x8000 && (low & 1)));
    EXPECT_EQ(vs::f32_to_bf16_(v), want) << v;
  }
  EXPECT_EQ(vs::f32_to_f16_(65519.0f), 0x7bff);
  EXPECT_EQ(vs::f32_to_f16_(65520.0f), 0x7c00);
  EXPECT_EQ(vs::f32_to_bf16_(3.4e38f), 0x7f80);
}

// ---- complex ----

using Complex = std::complex<Real>;
template <class R>
struct ComplexCase {
  const char* name;
  vs::cplx<R> (*function)(vs::cplx<R>);
  Complex (*reference)(const Complex&);
  double epsilons;  // |got - want| / |want|, in units of the type's epsilon
  double range;
};
#define COMPLEX_CASE(name, epsilons, range)                                                                  \
  {                                                                                                          \
#name, [](vs::cplx <R> z) { return vs::name##_(z); },                                                    \
                                                       [](const Complex& z) { return std::name(z); },        \
                                                                                                   epsilons, \
                                                                                                   range     \
  }

template <class R>
void check_complex() {
  const ComplexCase<R> cases[] = {
      COMPLEX_CASE(exp, 4, 10),
      COMPLEX_CASE(log, 3, 10),
      COMPLEX_CASE(log10, 4, 10),
      COMPLEX_CASE(sqrt, 3, 10),
      COMPLEX_CASE(sin, 5, 5),
      COMPLEX_CASE(cos, 5, 5),
      COMPLEX_CASE(tan, 8, 3),
      COMPLEX_CASE(sinh, 5, 5),
      COMPLEX_CASE(cosh, 5, 5),
      COMPLEX_CASE(tanh, 8, 3),
      COMPLEX_CASE(asin, 6, 5),
      COMPLEX_CASE(acos, 6, 5),
      COMPLEX_CASE(atan, 6, 5),
      COMPLEX_CASE(asinh, 6, 5),
      COMPLEX_CASE(acosh, 6, 5),
      COMPLEX_CASE(atanh, 6, 5),
      {"sigmoid", [](vs::cplx<R> z) { return vs::sigmoid_(z); },
       [](const Complex& z) { return Real(1) / (Real(1) + std::exp(-z)); }, 10, 2.5},
      {"reciprocal", [](vs::cplx<R> z) { return vs::reciprocal_(z); },
       [](const Complex& z) { return Real(1) / z; }, 3, 10},
  };
  const Real epsilon = std::numeric_limits<R>::epsilon();
  std::mt19937_64 random(77);
  for (const auto& test : cases) {
    std::uniform_real_distribution<double> uniform(-test.range, test.range);
    for (int i = 0; i < 4000; ++i) {
      const R re = static_cast<R>(uniform(random)), im = static_cast<R>(uniform(random));
      const vs::cplx<R> got = test.function(vs::cplx<R>(re, im));
      const Complex want = test.reference(Complex(re, im));
      const Real error = std::abs(Complex(got.re, got.im) - want) / std::abs(want) / epsilon;
      ASSERT_LE(error, 2 * test.epsilons)
          << test.name << "(" << re << ", " << im << ") = " << got.re << ", " << got.im << ", want " << want;
    }
  }
}
TEST(Prelude, ComplexFunctionsMatchTheReference) {
  check_complex<float>();
  check_complex<double>();
}

template <class R>
void check_complex_arithmetic() {
  std::mt19937_64 random(78);
  const Real epsilon = std::numeric_limits<R>::epsilon();
  // Exponents up to near overflow: the division must not square them in its own range.
  const int top = std::numeric_limits<R>::max_exponent - 10;
  std::uniform_int_distribution<int> exponent(-top + 20, top);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  for (int i = 0; i < 4000; ++i) {
    const int e = exponent(random);
    auto value = [&](int power) {
      return vs::cplx<R>(static_cast<R>(std::ldexp(mantissa(random), power)),
                         static_cast<R>(std::ldexp(mantissa(random), power)));
    };
    const vs::cplx<R> b = value(e), a = value(std::min(std::max(e, -top / 2), top / 2));
    const Complex x(a.re, a.im), y(b.re, b.im), want = x / y;
    if (std::abs(want) > std::numeric_limits<R>::max() / 4 ||
        std::abs(want) < std::numeric_limits<R>::min() * 4)
      continue;
    const vs::cplx<R> got = a / b;
    ASSERT_LE(std::abs(Complex(got.re, got.im) - want) / std::abs(want) / epsilon, 4) << x << " / " << y;
    EXPECT_LE(ulps(vs::absr_(b), std::abs(y)), 2.5) << y;
    EXPECT_LE(ulps(vs::argr_(b), std::arg(y)), 5) << y;
  }
  const vs::cplx<R> i(R(0), R(1));
  EXPECT_TRUE(i * i == vs::cplx<R>(R(-1)));
  EXPECT_TRUE(vs::conj_(i) == -i);
  EXPECT_TRUE(vs::pow_(vs::cplx<R>(R(0)), vs::cplx<R>(R(0))) == vs::cplx<R>(R(1)));
  EXPECT_TRUE(vs::pow_(vs::cplx<R>(R(0)), vs::cplx<R>(R(2), R(1))) == vs::cplx<R>(R(0)));
  EXPECT_TRUE(vs::sign_(vs::cplx<R>(R(0))) == vs::cplx<R>(R(0)));
}
TEST(Prelude, ComplexArithmeticNeitherOverflowsNorVanishesEarly) {
  check_complex_arithmetic<float>();
  check_complex_arithmetic<double>();
}

TEST(Prelude, ComplexPowersMatchTheReference) {
  std::mt19937_64 random(79);
  std::uniform_real_distribution<double> uniform(-3, 3);
  for (int i = 0; i < 4000; ++i) {
    const vs::cplx<double> a(uniform(random), uniform(random)), b(uniform(random), uniform(random));
    const vs::cplx<double> got = vs::pow_(a, b);
    const Complex want = std::pow(Complex(a.re, a.im), Complex(b.re, b.im));
    ASSERT_LE(std::abs(Complex(got.re, got.im) - want) / std::abs(want), 1e-14);
  }
}

}  // namespace
}  // namespace vesta::cpu
