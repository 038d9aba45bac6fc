// Element types, promotion, Scalar, Device: tables and edge values.
#include <cmath>
#include <limits>

#include "core/core_testing.h"

namespace vesta {
namespace {

using namespace core_testing;
constexpr float kInf = std::numeric_limits<float>::infinity();

// The float that has exactly the value of a half, from the format's definition.
double half_value(uint16_t bits) {
  int sign = bits >> 15, exponent = bits >> 10 & 31, fraction = bits & 1023;
  double v = exponent == 31 ? (fraction ? NAN : INFINITY)
             : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                            : std::ldexp(fraction, -24);
  return sign ? -v : v;
}

TEST(HalfConversion, every_half_becomes_its_value_and_comes_back) {
  for (uint32_t b = 0; b < 65536; ++b) {
    Half h = Half::from_bits(uint16_t(b));
    double want = half_value(uint16_t(b));
    float got = float(h);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << b;
      ASSERT_TRUE(std::isnan(float(Half(got)))) << b;
    } else {
      ASSERT_EQ(double(got), want) << b;
      ASSERT_EQ(std::signbit(got), std::signbit(want)) << b;
      ASSERT_EQ(Half(got).bits, b);
    }
  }
}

TEST(HalfConversion, rounds_to_nearest_ties_to_even) {
  // Between each two neighbours: just below the middle, the middle, just above.
  for (uint32_t b = 0; b < 0x7bff; ++b) {
    double lo = half_value(uint16_t(b)), hi = half_value(uint16_t(b + 1));
    float middle = float((lo + hi) / 2);
    ASSERT_EQ(double(middle), (lo + hi) / 2);
    ASSERT_EQ(Half(middle).bits, b & 1 ? b + 1 : b) << b;
    ASSERT_EQ(Half(std::nextafter(middle, 0.0f)).bits, b) << b;
    ASSERT_EQ(Half(std::nextafter(middle, kInf)).bits, b + 1) << b;
    ASSERT_EQ(Half(-middle).bits, (b & 1 ? b + 1 : b) | 0x8000u) << b;
  }
}

TEST(HalfConversion, overflows_to_infinity_from_65520) {
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Half(kInf).bits, 0x7c00);
  EXPECT_EQ(Half(0x1p-25f).bits, 0);  // a tie with zero
  EXPECT_EQ(Half(std::nextafter(0x1p-25f, 1.0f)).bits, 1);
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  EXPECT_EQ(Half(1e-45f).bits, 0);
}

TEST(BFloat16Conversion, rounds_to_nearest_ties_to_even_and_keeps_nan) {
  for (uint32_t b = 0; b < 0x7f7f; ++b) {
    uint32_t m = b << 16 | 0x8000;
    float middle;
    std::memcpy(&middle, &m, 4);
    ASSERT_EQ(BFloat16(middle).bits, b & 1 ? b + 1 : b);
    ASSERT_EQ(BFloat16(std::nextafter(middle, 0.0f)).bits, b);
    ASSERT_EQ(BFloat16(std::nextafter(middle, kInf)).bits, b + 1);
    ASSERT_EQ(BFloat16(float(BFloat16::from_bits(uint16_t(b)))).bits, b);
  }
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  uint32_t low_payload = 0x7f800001;
  float nan;
  std::memcpy(&nan, &low_payload, 4);
  EXPECT_TRUE(std::isnan(float(BFloat16(nan))));
}

TEST(DTypeConversion, of_tensors_agrees_with_the_scalar_types) {
  std::vector<float> v{0,     -0.0f, 1,    -1,    0.1f, 65504, 65519,      65520,  1e-8f, 3e-8f,
                       6e-5f, 1e38f, kInf, -kInf, 2049, 2051,  1.0009766f, 256.5f, 257};
  for (int pad = 0; pad < 40; ++pad) v.push_back(float(pad) * 0.37f - 5);  // past a vector's width
  Tensor t = f32(v), h = t.to(kHalf), b = t.to(kBFloat16);
  for (size_t i = 0; i < v.size(); ++i) {
    EXPECT_EQ(h.data_ptr<Half>()[i].bits, Half(v[i]).bits) << v[i];
    EXPECT_EQ(b.data_ptr<BFloat16>()[i].bits, BFloat16(v[i]).bits) << v[i];
  }
  Tensor back = h.to(kFloat);
  for (size_t i = 0; i < v.size(); ++i) EXPECT_EQ(back.data_ptr<float>()[i], float(Half(v[i])));
}

TEST(DTypeConversion, to_integers_truncates_and_to_bool_asks_for_zero) {
  Tensor t = f32({-2.9f, -0.5f, 0, 0.5f, 2.9f, 100.7f});
  EXPECT_EQ(values(t.to(kLong)), (Doubles{-2, 0, 0, 0, 2, 100}));
  EXPECT_EQ(values(t.to(kInt8)), (Doubles{-2, 0, 0, 0, 2, 100}));
  EXPECT_EQ(values(t.to(kBool)), (Doubles{1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(values(i64({300, -1, 256}).to(kUInt8)), (Doubles{44, 255, 0}));
  EXPECT_EQ(values(f32({NAN}).to(kBool)), (Doubles{1}));
}

TEST(DTypes, names_round_trip_and_sizes_are_right) {
  for (int i = 0; i < kNumDTypes; ++i) {
    std::string name = dtype_name(DType(i));
    EXPECT_EQ(parse_dtype(name.data(), name.size()), DType(i)) << name;
  }
  EXPECT_EQ(parse_dtype("float", 5), DType::Undefined);
  EXPECT_EQ(element_size(kComplex128), 16u);
  EXPECT_EQ(element_size(kBFloat16), 2u);
  EXPECT_THROW(set_default_dtype(kLong), TypeError);
}

// Rows and columns: bool uint8 int8 int16 int32 int64 half bfloat16 float double complex64 complex128, as PyTorch 2.x.
TEST(Promotion, is_pytorchs_table) {
  constexpr DType b1 = kBool, u1 = kUInt8, i1 = kInt8, i2 = kInt16, i4 = kInt32, i8 = kInt64, f2 = kHalf,
                  bf = kBFloat16, f4 = kFloat, f8 = kDouble, c8 = kComplex64, c16 = kComplex128;
  const DType all[] = {b1, u1, i1, i2, i4, i8, f2, bf, f4, f8, c8, c16};
  const DType table[12][12] = {{b1, u1, i1, i2, i4, i8, f2, bf, f4, f8, c8, c16},
                               {u1, u1, i2, i2, i4, i8, f2, bf, f4, f8, c8, c16},
                               {i1, i2, i1, i2, i4, i8, f2, bf, f4, f8, c8, c16},
                               {i2, i2, i2, i2, i4, i8, f2, bf, f4, f8, c8, c16},
                               {i4, i4, i4, i4, i4, i8, f2, bf, f4, f8, c8, c16},
                               {i8, i8, i8, i8, i8, i8, f2, bf, f4, f8, c8, c16},
                               {f2, f2, f2, f2, f2, f2, f2, f4, f4, f8, c8, c16},
                               {bf, bf, bf, bf, bf, bf, f4, bf, f4, f8, c8, c16},
                               {f4, f4, f4, f4, f4, f4, f4, f4, f4, f8, c8, c16},
                               {f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, c16, c16},
                               {c8, c8, c8, c8, c8, c8, c8, c8, c8, c16, c8, c16},
                               {c16, c16, c16, c16, c16, c16, c16, c16, c16, c16, c16, c16}};
  for (int a = 0; a < 12; ++a)
    for (int b = 0; b < 12; ++b) {
      EXPECT_EQ(dtype_name(promote_types(all[a], all[b])), std::string(dtype_name(table[a][b])))
          << dtype_name(all[a]) << " " << dtype_name(all[b]);
      EXPECT_EQ(result_type(zeros({2}, all[a]), zeros({2}, all[b])), table[a][b]);
    }
}

TEST(Promotion, dims_outrank_zero_dims_and_those_outrank_numbers_within_a_category) {
  EXPECT_EQ(result_type(zeros({2}, kFloat), zeros({}, kDouble)), kFloat);
  EXPECT_EQ(result_type(zeros({2}, kInt8), zeros({}, kLong)), kInt8);
  EXPECT_EQ(result_type(zeros({2}, kLong), zeros({}, kHalf)), kHalf);
  EXPECT_EQ(result_type(zeros({}, kFloat), zeros({}, kDouble)), kDouble);
  EXPECT_EQ(result_type(zeros({2}, kHalf), Scalar(2.5)), kHalf);
  EXPECT_EQ(result_type(zeros({2}, kLong), Scalar(2.5)), kFloat);
  EXPECT_EQ(result_type(zeros({2}, kBool), Scalar(2)), kLong);
  EXPECT_EQ(result_type(zeros({2}, kUInt8), Scalar(2000)), kUInt8);
  EXPECT_EQ(result_type(zeros({2}, kBool), Scalar(true)), kBool);
  EXPECT_EQ(result_type(zeros({2}, kDouble), Scalar(std::complex<double>(0, 1))), kComplex128);
  EXPECT_EQ(result_type(zeros({2}, kFloat), Scalar(std::complex<double>(0, 1))), kComplex64);
  EXPECT_EQ((zeros({2}, kInt) / zeros({2}, kInt)).dtype(), kFloat);
  EXPECT_EQ((zeros({2}, kBool) + zeros({2}, kBool)).dtype(), kBool);
}

TEST(Promotion, in_place_results_must_fit_the_category) {
  Tensor t = i64({1, 2});
  EXPECT_THROW(t.add_(1.5), Error);
  EXPECT_EQ(values(t), (Doubles{1, 2}));
  EXPECT_EQ(f32({1}).add_(zeros({1}, kDouble)).dtype(), kFloat);
  EXPECT_FALSE(can_cast(kFloat, kLong));
  EXPECT_FALSE(can_cast(kComplex64, kFloat));
  EXPECT_FALSE(can_cast(kLong, kBool));
  EXPECT_TRUE(can_cast(kDouble, kHalf));
}

TEST(Scalars, keep_their_class_and_convert_only_without_surprise) {
  EXPECT_TRUE(Scalar(true).isBoolean());
  EXPECT_TRUE(Scalar(3).isIntegral());
  EXPECT_FALSE(Scalar(true).isIntegral());
  EXPECT_TRUE(Scalar(true).isIntegral(true));
  EXPECT_TRUE(Scalar(3.0f).isFloatingPoint());
  EXPECT_EQ(Scalar(2.9).toLong(), 2);
  EXPECT_EQ(Scalar(-2.9).to<int>(), -2);
  EXPECT_EQ(Scalar(INT64_MIN).toLong(), INT64_MIN);
  EXPECT_EQ(Scalar(int64_t(9007199254740993)).toLong(), 9007199254740993);  // 2^53 + 1
  EXPECT_CONTAINS(error_of<ValueError>([] { Scalar(1e300).toLong(); }), "int64");
  EXPECT_THROW(Scalar(NAN).toLong(), ValueError);
  EXPECT_THROW(Scalar(0x1p63).toLong(), ValueError);
  EXPECT_EQ(Scalar(-0x1p63).toLong(), INT64_MIN);
  Scalar z(std::complex<double>(1, 2));
  EXPECT_CONTAINS(error_of<ValueError>([&] { z.toDouble(); }), "1+2j");
  EXPECT_EQ(Scalar(std::complex<double>(4, 0)).toDouble(), 4);
  EXPECT_EQ(z.conj().toComplexDouble(), std::complex<double>(1, -2));
  EXPECT_EQ((-Scalar(3)).toLong(), -3);
  EXPECT_EQ((-Scalar(INT64_MIN)).toLong(), INT64_MIN);  // wraps, as the operators do
  EXPECT_THROW(-Scalar(true), TypeError);
  EXPECT_TRUE(Scalar(NAN).toBool());
  EXPECT_TRUE(Scalar(2).equal(2.0));
  EXPECT_EQ(Scalar().toLong(), 0);
}

TEST(Devices, texts_round_trip_and_mistakes_are_value_errors) {
  EXPECT_TRUE(Device("cpu").is_cpu());
  EXPECT_EQ(Device("cuda:3").index(), 3);
  EXPECT_EQ(Device("cuda").str(), "cuda:0");
  EXPECT_EQ(Device("meta").str(), "meta");
  for (const char* bad : {"", "gpu", "cuda:", "cuda:x", "cuda:16", "cuda:-1", "cuda:001", "cpu:1x", "CPU"})
    EXPECT_CONTAINS(error_of<ValueError>([&] { (void)Device(bad); }), "\"" + std::string(bad) + "\"");
  for (int k = 0; k < 16; ++k) EXPECT_TRUE(Device::unpack(Device(kCUDA, k).packed()) == Device(kCUDA, k));
}

}  // namespace
}  // namespace vesta
