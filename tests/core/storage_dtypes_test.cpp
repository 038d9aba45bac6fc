// The dtypes that only store: values of every code, rounding against float64, casts of tensors, the operators that move
// elements, and the errors of those that compute.
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <sstream>

#include "core/core_testing.h"
#include "vesta/indexing.h"

namespace vesta {
namespace {

using namespace core_testing;
using indexing::Slice;

#define VESTA_ROW(name, ...) DType::name,
constexpr DType kStorageTypes[] = {VESTA_STORAGE_DTYPES(VESTA_ROW)};
#undef VESTA_ROW
constexpr uint64_t kSeed = 20261130;

// An 8-bit format by its definition: sign, exponent, mantissa.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  Float8Kind kind;

  double value(int code) const {
    int sign = code >> 7, exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1),
        mantissa = code & ((1 << mantissa_bits) - 1);
    if (kind == Float8Kind::Fnuz && code == 0x80) return NAN;
    if (kind == Float8Kind::Finite && (code & 0x7f) == 0x7f) return NAN;
    if (kind == Float8Kind::Ieee && exponent == (1 << exponent_bits) - 1)
      return mantissa ? NAN : sign ? -INFINITY : INFINITY;
    double m = exponent ? 1 + std::ldexp(mantissa, -mantissa_bits) : std::ldexp(mantissa, -mantissa_bits);
    double v = std::ldexp(m, (exponent ? exponent : 1) - bias);
    return sign ? -v : v;
  }
  // Codes of finite numbers >= 0, in order.
  int largest() const { return kind == Float8Kind::Ieee ? 0x7b : kind == Float8Kind::Finite ? 0x7e : 0x7f; }
  // The nearest code, ties to the even one; what lies beyond the largest by the kind's rule.
  int nearest(double x) const {
    int sign = std::signbit(x) ? 0x80 : 0;
    int nan = kind == Float8Kind::Fnuz ? 0x80 : sign | 0x7f;
    if (std::isnan(x)) return nan;
    double magnitude = std::fabs(x);
    int low = 0, high = largest();
    double top = value(high), step = top - value(high - 1);
    if (magnitude > top) {
      if (kind == Float8Kind::Finite) return sign | high;
      // The next number would have an even code in both other kinds.
      if (magnitude < top + step / 2) return sign | high;
      return kind == Float8Kind::Ieee ? sign | (high + 1) : nan;
    }
    while (high - low > 1) {
      int middle = (low + high) / 2;
      (value(middle) <= magnitude ? low : high) = middle;
    }
    double below = magnitude - value(low), above = value(high) - magnitude;
    int code = below < above || (below == above && low % 2 == 0) ? low : high;
    return kind == Float8Kind::Fnuz && code == 0 ? 0 : sign | code;
  }
};

// Random floats of all exponents near the format's range, their neighbours, and special values.
std::vector<float> many_floats(double largest) {
  std::mt19937_64 random(kSeed);
  std::vector<float> v{0,         -0.0f,    INFINITY,   -INFINITY,      NAN,
                       -NAN,      1,        -1,         1e-40f,         1e30f,
                       -1e30f,    3.4e38f,  0x1p-126f,  0x1p-127f,      0x1.8p-127f,
                       0x1p-128f, 0x1p127f, 0x1.8p127f, 0x1.7ffffep127f};
  for (int i = 0; i < 200000; ++i) {
    uint32_t bits = uint32_t(random());
    float f;
    std::memcpy(&f, &bits, 4);
    v.push_back(f);
    double scale = std::ldexp(1 + double(random() >> 12) * 0x1p-52, int(random() % 36) - 20);
    v.push_back(float(scale * (random() & 1 ? 1 : -1)));
    v.push_back(float((double(random() >> 11) * 0x1p-53 - 0.5) * 2.4 * largest));
  }
  return v;
}

template <class T>
void check_format(const Format& f) {
  SCOPED_TRACE(dtype_name(DTypeOf<T>::value));
  for (int code = 0; code < 256; ++code) {
    double want = f.value(code);
    float got = float(T::from_bits(uint8_t(code)));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << code;
      ASSERT_TRUE(std::isnan(float(T(got)))) << code;
      continue;
    }
    ASSERT_EQ(double(got), want) << code;
    ASSERT_EQ(std::signbit(got), std::signbit(want)) << code;
    ASSERT_EQ(T(got).bits, code);
  }
  // Between each two neighbours: the middle and just beside it.
  for (int code = 0; code < f.largest(); ++code) {
    float middle = float((f.value(code) + f.value(code + 1)) / 2);
    for (float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY), -middle})
      ASSERT_EQ(int(T(x).bits), f.nearest(double(x))) << x;
  }
  std::vector<float> v = many_floats(f.value(f.largest()));
  Tensor t = f32(v), cast = t.to(DTypeOf<T>::value);
  for (size_t i = 0; i < v.size(); ++i) {
    ASSERT_EQ(int(T(v[i]).bits), f.nearest(double(v[i]))) << v[i];
    ASSERT_EQ(cast.data_ptr<T>()[i].bits, T(v[i]).bits) << v[i];
  }
  Tensor back = cast.to(kDouble);
  for (size_t i = 0; i < v.size(); ++i) {
    double want = f.value(cast.data_ptr<T>()[i].bits), got = back.data_ptr<double>()[i];
    ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << v[i];
  }
}

TEST(Float8, every_code_and_dense_random_floats_round_as_float64_says) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  check_format<Float8_e4m3fn>({4, 3, 7, Float8Kind::Finite});
  check_format<Float8_e5m2>({5, 2, 15, Float8Kind::Ieee});
  check_format<Float8_e4m3fnuz>({4, 3, 8, Float8Kind::Fnuz});
  check_format<Float8_e5m2fnuz>({5, 2, 16, Float8Kind::Fnuz});
}

TEST(Float8, the_codes_that_pytorch_gives_at_the_edges) {
  // Read off PyTorch 2.14.1: x.to(dtype).view(torch.uint8).
  auto codes = [](DType t, std::vector<float> v) { return values(f32(v).to(t).view(kByte)); };
  std::vector<float> v{0,     -0.0f, INFINITY, -INFINITY,  NAN,      448, 464, 465, 480, -480,
                       61439, 61440, 0x1p-10f, 0x1.8p-10f, 0x1p-17f, 240, 247, 248, -1,  1.6f};
  EXPECT_EQ(codes(kFloat8_e4m3fn, v), (Doubles{0,    0x80, 0x7e, 0xfe, 0x7f, 0x7e, 0x7e, 0x7e, 0x7e, 0xfe,
                                               0x7e, 0x7e, 0,    1,    0,    0x77, 0x77, 0x78, 0xb8, 0x3d}));
  EXPECT_EQ(codes(kFloat8_e5m2, v), (Doubles{0,    0x80, 0x7c, 0xfc, 0x7f, 0x5f, 0x5f, 0x5f, 0x60, 0xe0,
                                             0x7b, 0x7c, 0x14, 0x16, 0,    0x5c, 0x5c, 0x5c, 0xbc, 0x3e}));
  EXPECT_EQ(codes(kFloat8_e4m3fnuz, v),
            (Doubles{0,    0,    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                     0x80, 0x80, 1,    2,    0,    0x7f, 0x7f, 0x80, 0xc0, 0x45}));
  EXPECT_EQ(codes(kFloat8_e5m2fnuz, v),
            (Doubles{0,    0,    0x80, 0x80, 0x80, 0x63, 0x63, 0x63, 0x64, 0xe4,
                     0x7f, 0x80, 0x18, 0x1a, 1,    0x60, 0x60, 0x60, 0xc0, 0x42}));
  EXPECT_EQ(codes(kFloat8_e8m0fnu, {0, INFINITY, NAN, 1e-40f, 0x1p-127f, 0x1.8p-127f, 0x1p-126f, 0x1p127f,
                                    0x1.8p127f, -1, 1.4999f, 1.5f, 3, 240}),
            (Doubles{0, 255, 255, 0, 0, 1, 1, 254, 255, 127, 127, 128, 129, 135}));
}

TEST(Float8, a_scale_of_powers_of_two_rounds_halfway_up) {
  for (int code = 0; code < 255; ++code) {
    ASSERT_EQ(double(float(Float8_e8m0fnu::from_bits(uint8_t(code)))), std::ldexp(1.0, code - 127));
    ASSERT_EQ(int(Float8_e8m0fnu(float(std::ldexp(1.0, code - 127))).bits), code);
  }
  EXPECT_TRUE(std::isnan(float(Float8_e8m0fnu::from_bits(255))));
  for (float x : many_floats(1e3)) {
    int want;
    double m = std::fabs(double(x));
    if (!std::isfinite(x)) {
      want = 255;
    } else if (m < 0x1p-126) {
      want = m > 0x1p-127 ? 1 : 0;
    } else {
      int exponent = std::ilogb(m);
      want = exponent + 127 + (std::ldexp(m, -exponent) >= 1.5 ? 1 : 0);
    }
    ASSERT_EQ(int(Float8_e8m0fnu(x).bits), want) << x;
  }
}

TEST(StorageCasts, of_every_source_type_go_through_float) {
  Tensor base = f32({-300, -2.5f, -1, 0, 0.3f, 1, 1.6f, 100, 300, 70000});
  for (DType from :
       {kHalf, kBFloat16, kFloat, kDouble, kLong, kInt, kShort, kComplexFloat, kComplexDouble, kBool}) {
    Tensor source = base.to(from), plain = source.to(kFloat);
    for (DType to : {kFloat8_e4m3fn, kFloat8_e5m2, kFloat8_e4m3fnuz, kFloat8_e5m2fnuz, kFloat8_e8m0fnu}) {
      Tensor want = plain.to(to).view(kByte);
      EXPECT_TRUE(equal(source.to(to).view(kByte), want)) << dtype_name(from) << " " << dtype_name(to);
      // Every second element, and a broadcast one.
      EXPECT_TRUE(equal(source.slice(0, 0, 10, 2).to(to).view(kByte), want.slice(0, 0, 10, 2)));
      Tensor target = zeros({10}, to);
      target.copy_(source[4]);
      EXPECT_TRUE(equal(target.view(kByte), want[4].expand({10})));
    }
  }
}

TEST(StorageCasts, of_unsigned_integers_wrap_and_reach_beyond_int64) {
  Tensor f = f32({70000, 65535, -1, -2.5f, 0.9f});
  EXPECT_EQ(values(f.to(kUInt16)), (Doubles{4464, 65535, 65535, 65534, 0}));
  EXPECT_EQ(values(make<double>({5e9, 4e9, -1}, {3}).to(kUInt32)), (Doubles{705032704, 4e9, 4294967295}));
  Tensor big = make<double>({1e19, 0x1p63, -1, -5.5, 3.5, NAN, INFINITY}, {7}).to(kUInt64);
  const uint64_t* p = big.data_ptr<uint64_t>();
  EXPECT_EQ(p[0], 10000000000000000000u);
  EXPECT_EQ(p[1], uint64_t(1) << 63);
  EXPECT_EQ(p[2], UINT64_MAX);
  EXPECT_EQ(p[3], UINT64_MAX - 4);
  EXPECT_EQ(p[4], 3u);
  EXPECT_EQ(p[5], 0u);
  EXPECT_EQ(p[6], UINT64_MAX);
  Tensor u = make<uint64_t>({UINT64_MAX, uint64_t(1) << 63, 5}, {3});
  EXPECT_EQ(values(u), (Doubles{0x1p64, 0x1p63, 5}));
  EXPECT_EQ(u.to(kFloat).data_ptr<float>()[1], 0x1p63f);
  EXPECT_EQ(u.to(kLong).data_ptr<int64_t>()[0], -1);
  EXPECT_EQ(values(u.to(kInt)), (Doubles{-1, 0, 5}));
  EXPECT_EQ(values(u.to(kBool)), (Doubles{1, 1, 1}));
  EXPECT_EQ(u.to(kComplexDouble).data_ptr<std::complex<double>>()[1], std::complex<double>(0x1p63));
  EXPECT_EQ(u[0].item<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(u[2].item<int64_t>(), 5);
  EXPECT_EQ(u[2].item().toLong(), 5);
  EXPECT_CONTAINS(error_of<ValueError>([&] { u[0].item(); }), "below 2^63, got 18446744073709551615");
  EXPECT_EQ(full({1}, -1, kUInt64).item<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(values(full({2}, 3, kUInt16)), (Doubles{3, 3}));
  EXPECT_EQ(values(full({2}, 1e19, kUInt64)), (Doubles{1e19, 1e19}));
  EXPECT_EQ(values(u == u), (Doubles{1, 1, 1}));
  EXPECT_EQ(values(u != 5), (Doubles{1, 1, 0}));
}

TEST(StorageCasts, of_complex_halves_keep_both_parts) {
  using C = std::complex<float>;
  Tensor c = make<C>({{1, -2}, {0.1f, 65504}, {NAN, 3}}, {3}), h = c.to(kComplexHalf);
  EXPECT_EQ(h.element_size(), 4u);
  EXPECT_EQ(h.data_ptr<ComplexHalf>()[1].re.bits, Half(0.1f).bits);
  Tensor back = h.to(kComplexFloat);
  EXPECT_EQ(back.data_ptr<C>()[0], C(1, -2));
  EXPECT_EQ(back.data_ptr<C>()[1], C(float(Half(0.1f)), 65504));
  Tensor parts = view_as_real(h);
  EXPECT_EQ(parts.dtype(), kHalf);
  EXPECT_EQ(sizes(parts), (Sizes{3, 2}));
  EXPECT_EQ(real(h).dtype(), kHalf);
  EXPECT_EQ(values(imag(h)), (Doubles{-2, 65504, 3}));
  EXPECT_EQ(view_as_complex(parts).dtype(), kComplexHalf);
  EXPECT_EQ(values(imag(h.conj().resolve_conj())), (Doubles{2, -65504, -3}));
  EXPECT_EQ(values(imag(h.conj().clone())), (Doubles{2, -65504, -3}));
  EXPECT_EQ(values(f32({1, 2}).to(kComplexHalf)), (Doubles{1, 2}));
  EXPECT_EQ(values(full({2}, std::complex<double>(1, 2), kComplexHalf)), (Doubles{1, 1}));
  EXPECT_EQ(h[0].item().toComplexDouble(), std::complex<double>(1, -2));
  EXPECT_EQ(values(h[0] == h[0]), (Doubles{1}));
}

// Random bytes as `count` elements of a type. Bytes of float8 NaNs are among them: they must be moved as they are.
Tensor random_elements(DType t, std::vector<int64_t> sizes) {
  std::mt19937_64 random(kSeed + uint64_t(t));
  Tensor out = empty_cpu(sizes, t);
  auto* p = static_cast<uint8_t*>(out.data_ptr());
  for (size_t i = 0; i < out.nbytes(); ++i) p[i] = uint8_t(random());
  return out;
}
DType bits_of(DType t) {
  size_t n = element_size(t);
  return n == 1 ? kByte : n == 2 ? kShort : n == 4 ? kInt : kLong;
}

TEST(StorageTypes, are_moved_as_their_bits_are) {
  Tensor rows = i64({2, 0, -1}), keep = mask({1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0}, {4, 3});
  Tensor places = make<int64_t>({0, 2, 1, 1, 0, 3}, {2, 3});
  struct Move {
    const char* name;
    std::function<Tensor(const Tensor&, const Tensor&)> run;
  };
  const Move moves[] = {
      {"clone", [](auto& x, auto&) { return x.clone(); }},
      {"contiguous", [](auto& x, auto&) { return x.t().contiguous(); }},
      {"copy_", [](auto& x, auto& y) { return x.clone().copy_(y); }},
      {"copy_ broadcast", [](auto& x, auto& y) { return x.clone().copy_(y[1]); }},
      {"select", [](auto& x, auto&) { return x.select(1, 2); }},
      {"slice", [](auto& x, auto&) { return x.slice(0, 1, 4, 2); }},
      {"index",
       [](auto& x, auto&) {
         return x.index({Slice(1, 3), 0});
       }},
      {"index None",
       [](auto& x, auto&) {
         return x.index({indexing::None, "...", -1});
       }},
      {"index tensor", [&](auto& x, auto&) { return x.index({rows.clamp_min(0)}); }},
      {"index mask", [&](auto& x, auto&) { return x.index({keep}); }},
      {"index_put", [&](auto& x, auto& y) { return x.index_put({rows}, y[0]); }},
      {"index_select", [&](auto& x, auto&) { return x.index_select(0, rows.clamp_min(0)); }},
      {"index_copy",
       [&](auto& x, auto& y) {
         return x.index_copy(0, i64({3, 0}), y.slice(0, 0, 2));
       }},
      {"gather", [&](auto& x, auto&) { return x.gather(0, places); }},
      {"scatter", [&](auto& x, auto& y) { return x.scatter(0, places, y); }},
      {"take",
       [&](auto& x, auto&) {
         return x.take(i64({11, 0, -1}));
       }},
      {"masked_select", [&](auto& x, auto&) { return x.masked_select(keep); }},
      {"where", [&](auto& x, auto& y) { return where(keep, x, y); }},
      {"flip", [](auto& x, auto&) { return x.flip({0}); }},
      {"roll", [](auto& x, auto&) { return x.roll(1, 1); }},
      {"repeat",
       [](auto& x, auto&) {
         return x.repeat({2, 1});
       }},
      {"cat",
       [](auto& x, auto& y) {
         return cat({x, y, x}, 1);
       }},
      {"stack",
       [](auto& x, auto& y) {
         return stack({x, y});
       }},
      {"reshape",
       [](auto& x, auto&) {
         return x.t().reshape({2, 6});
       }},
      {"permute",
       [](auto& x, auto&) {
         return x.permute({1, 0});
       }},
      {"expand",
       [](auto& x, auto&) {
         return x.unsqueeze(0).expand({2, 4, 3});
       }},
      {"split", [](auto& x, auto&) { return x.split(3)[1]; }},
      {"unbind", [](auto& x, auto&) { return x.unbind(1)[2]; }},
      {"narrow", [](auto& x, auto&) { return x.narrow(1, 1, 2); }},
      {"as_strided",
       [](auto& x, auto&) {
         return x.as_strided({2, 2}, {3, 2}, 1);
       }},
      {"unfold", [](auto& x, auto&) { return x.unfold(0, 2, 1); }},
      {"diagonal", [](auto& x, auto&) { return x.diagonal(); }},
      {"detach", [](auto& x, auto&) { return x.detach(); }},
      {"to copy", [](auto& x, auto&) { return x.to(x.dtype(), false, true); }},
      {"embedding",
       [&](auto& x, auto&) {
         return embedding(x, i64({3, 1}));
       }},
  };
  for (DType t : kStorageTypes) {
    SCOPED_TRACE(dtype_name(t));
    DType bits = bits_of(t);
    Tensor x = random_elements(t, {4, 3}), y = random_elements(t, {5, 3}).slice(0, 1);
    for (auto& m : moves) {
      SCOPED_TRACE(m.name);
      Tensor got = m.run(x, y), want = m.run(x.view(bits), y.view(bits));
      EXPECT_EQ(got.dtype(), t);
      EXPECT_TRUE(equal(got.view(bits), want));
    }
    EXPECT_EQ(cat({x, zeros({0, 3}, t)}).dtype(), t);
  }
}

TEST(StorageTypes, are_made_empty_and_filled) {
  for (DType t : kStorageTypes) {
    SCOPED_TRACE(dtype_name(t));
    EXPECT_EQ(empty({2, 0}, t).numel(), 0);
    EXPECT_EQ(empty_like(zeros({2}, t)).dtype(), t);
    EXPECT_EQ(zeros({}, t).dim(), 0);
    Tensor z = random_elements(t, {3, 4}), part = z.slice(1, 1, 3);
    part.zero_();
    EXPECT_EQ(values(part.contiguous().view(kByte).to(kDouble).sum()), (Doubles{0}));
    EXPECT_EQ(z.meta().dtype(), t);
    EXPECT_EQ(z.nbytes(), 12 * element_size(t));
    if (t == kFloat4_e2m1fn_x2) {
      EXPECT_CONTAINS(error_of<TypeError>([&] { ones({2}, t); }), "view it as uint8");
      EXPECT_CONTAINS(error_of<TypeError>([&] { z.to(kFloat); }), "float4_e2m1fn_x2 to float32");
      EXPECT_CONTAINS(error_of<TypeError>([&] { f32({1}).to(t); }), "float32 to float4_e2m1fn_x2");
      EXPECT_CONTAINS(error_of<TypeError>([&] { z.select(0, 0).select(0, 0).item(); }), "two numbers");
      EXPECT_CONTAINS(error_of<TypeError>([&] { z == z; }), "eq.Tensor: does not take float4_e2m1fn_x2");
      continue;
    }
    EXPECT_EQ(values(ones({2}, t)), (Doubles{1, 1}));
    EXPECT_EQ(values(full({2}, 2, t)), (Doubles{2, 2}));
    EXPECT_EQ(values(full_like(zeros({2}, t), 4.0)), (Doubles{4, 4}));
    EXPECT_EQ(values(zeros({2}, t).fill_(true)), (Doubles{1, 1}));
    EXPECT_EQ(eye(2, TensorOptions(t))[1][1].item().toDouble(), 1);
    Tensor w = ones({3}, t);
    w.index_put_({1}, 2);
    EXPECT_EQ(values(w), (Doubles{1, 2, 1}));
    EXPECT_EQ(w[1].item<double>(), 2);
    EXPECT_EQ(values(w == w), (Doubles{1, 1, 1}));
    EXPECT_EQ(values(w != 1), (Doubles{0, 1, 0}));
    EXPECT_TRUE(equal(w, w.clone()));
    EXPECT_EQ(values(zeros({2, 2}, t).copy_(f32({1, 2}))), (Doubles{1, 2, 1, 2}));
  }
}

TEST(StorageTypes, are_seen_as_other_types_of_the_same_bytes) {
  Tensor bytes = make<uint8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, {2, 8});
  for (DType t : kStorageTypes) {
    SCOPED_TRACE(dtype_name(t));
    Tensor v = bytes.view(t);
    EXPECT_EQ(sizes(v), (Sizes{2, 8 / int64_t(element_size(t))}));
    EXPECT_TRUE(equal(v.view(kByte), bytes));
    EXPECT_TRUE(v.is_alias_of(bytes));
  }
  EXPECT_EQ(values(bytes.view(kUInt16).slice(1, 0, 2)), (Doubles{0x0201, 0x0403, 0x0a09, 0x0c0b}));
  EXPECT_CONTAINS(error_of<ValueError>([&] {
                    make<uint8_t>({1, 2, 3}, {3}).view(kUInt16);
                  }),
                  "divisible by 2");
}

TEST(StorageTypes, are_refused_by_operators_that_compute) {
  struct Call {
    const char* op;
    std::function<void(const Tensor&)> run;
  };
  const Call calls[] = {
      {"add", [](auto& x) { x + x; }},
      {"add", [](auto& x) { x + 1; }},
      {"mul", [](auto& x) { x* x; }},
      {"neg", [](auto& x) { -x; }},
      {"abs", [](auto& x) { x.abs(); }},
      {"relu", [](auto& x) { x.relu(); }},
      {"sum", [](auto& x) { x.sum(); }},
      {"max", [](auto& x) { x.max(); }},
      {"lt", [](auto& x) { x < x; }},
      {"sort", [](auto& x) { x.sort(); }},
      {"cumsum", [](auto& x) { x.cumsum(0); }},
      {"mm", [](auto& x) { x.mm(x); }},
      {"softmax", [](auto& x) { x.softmax(0); }},
      {"uniform", [](auto& x) { x.clone().uniform_(); }},
      {"nonzero", [](auto& x) { x.nonzero(); }},
      {"tril", [](auto& x) { x.tril(); }},
      {"bitwise", [](auto& x) { x.bitwise_and(x); }},
  };
  for (DType t : kStorageTypes) {
    SCOPED_TRACE(dtype_name(t));
    Tensor x = zeros({3, 3}, t);
    for (auto& c : calls) {
      if (c.op == std::string("lt") && t == kComplexHalf) continue;
      std::string message = error_of<TypeError>([&] { c.run(x); });
      EXPECT_CONTAINS(message, c.op);
      EXPECT_CONTAINS(message, dtype_name(t));
      EXPECT_CONTAINS(message, t == kFloat4_e2m1fn_x2 ? "view them as uint8" : "cast first");
    }
    EXPECT_THROW(arange(0, 5, t), TypeError);
    EXPECT_THROW(rand({2}, t), TypeError);
    EXPECT_THROW(set_default_dtype(t), TypeError);
  }
  // In place, the result of other types is cast.
  Tensor out = zeros({2}, kFloat8_e5m2);
  add_out(out, f32({1, 2}), f32({3, 4}));
  EXPECT_EQ(values(out), (Doubles{4, 6}));
}

TEST(StorageTypes, promote_as_pytorch_says) {
  for (DType u : {kUInt16, kUInt32, kUInt64}) {
    EXPECT_EQ(promote_types(u, u), u);
    for (DType f : {kHalf, kBFloat16, kFloat, kDouble}) EXPECT_EQ(promote_types(u, f), f);
    for (DType i : {kBool, kByte, kInt8, kInt, kLong, kComplexFloat})
      EXPECT_CONTAINS(error_of<TypeError>([&] { promote_types(i, u); }), "no common type");
    EXPECT_EQ(result_type(zeros({2}, u), Scalar(1)), u);
    EXPECT_EQ(result_type(zeros({2}, u), Scalar(1.5)), kFloat);
  }
  for (DType f : {kFloat8_e4m3fn, kFloat8_e5m2, kFloat8_e4m3fnuz, kFloat8_e5m2fnuz, kFloat8_e8m0fnu,
                  kFloat4_e2m1fn_x2}) {
    EXPECT_EQ(promote_types(f, f), f);
    for (DType other : {kBool, kByte, kInt, kLong, kHalf, kFloat, kComplexFloat, kUInt16, kComplexHalf})
      EXPECT_THROW(promote_types(f, other), TypeError) << dtype_name(other);
    EXPECT_EQ(result_type(zeros({2}, f), Scalar(1.5)), f);
    EXPECT_THROW(result_type(zeros({2}, f), Scalar(std::complex<double>(0, 1))), TypeError);
  }
  EXPECT_EQ(promote_types(kComplexHalf, kBool), kComplexHalf);
  EXPECT_EQ(promote_types(kComplexHalf, kLong), kComplexHalf);
  EXPECT_EQ(promote_types(kComplexHalf, kHalf), kComplexHalf);
  EXPECT_EQ(promote_types(kComplexHalf, kFloat), kComplexFloat);
  EXPECT_EQ(promote_types(kComplexHalf, kDouble), kComplexDouble);
  EXPECT_EQ(promote_types(kComplexHalf, kComplexFloat), kComplexFloat);
  EXPECT_EQ(values(cat({ones({1}, kUInt16), f32({0.5f})})), (Doubles{1, 0.5}));
  EXPECT_TRUE(can_cast(kUInt16, kInt));
  EXPECT_FALSE(can_cast(kFloat8_e5m2, kInt));
  EXPECT_TRUE(can_cast(kFloat8_e5m2, kHalf));
}

TEST(StorageTypes, have_libtorchs_names_and_properties) {
  EXPECT_STREQ(to_string(kUInt16), "UInt16");
  EXPECT_STREQ(to_string(kFloat8_e4m3fn), "Float8_e4m3fn");
  EXPECT_STREQ(to_string(kComplexHalf), "ComplexHalf");
  EXPECT_STREQ(dtype_name(kComplexHalf), "complex32");
  EXPECT_STREQ(dtype_name(kFloat4_e2m1fn_x2), "float4_e2m1fn_x2");
  EXPECT_EQ(zeros({2}, kFloat8_e8m0fnu).toString(), "CPUFloat8_e8m0fnuType");
  EXPECT_FALSE(is_signed(kUInt32));
  EXPECT_TRUE(is_signed(kFloat8_e4m3fn));
  EXPECT_FALSE(is_signed(kFloat8_e8m0fnu));
  EXPECT_TRUE(is_floating_point(kFloat8_e5m2));
  EXPECT_TRUE(is_complex(kComplexHalf));
  EXPECT_FALSE(is_complex(kFloat8_e5m2));
  EXPECT_TRUE(is_integral(kUInt64));
  EXPECT_EQ(element_size(kFloat4_e2m1fn_x2), 1u);
  EXPECT_EQ(int(DType::Complex128), 11);  // numbers that files and the C interface know
}

TEST(StorageTypes, are_printed_as_their_values) {
  EXPECT_EQ(f32({1.5f, -0.25f}).to(kFloat8_e4m3fn).str(), " 1.5000\n-0.2500\n[ CPUFloat8_e4m3fnType{2} ]");
  EXPECT_EQ(make<uint16_t>({1, 65535}, {2}).str(), "     1\n 65535\n[ CPUUInt16Type{2} ]");
  EXPECT_CONTAINS(make<uint8_t>({1, 35}, {2}).view(kFloat4_e2m1fn_x2).str(),
                  " 35\n[ CPUFloat4_e2m1fn_x2Type{2} ]");
  EXPECT_CONTAINS(zeros({2}, kComplexHalf).str(), "[ CPUComplexHalfType{2} ]");
}

TEST(StorageTypes, take_part_in_autograd_as_copies) {
  Tensor x = f32({1, 2}).requires_grad_();
  x.to(kFloat8_e5m2).to(kFloat).sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{1, 1}));
  EXPECT_THROW(zeros({2}, kUInt16).requires_grad_(), Error);
}

}  // namespace
}  // namespace vesta
