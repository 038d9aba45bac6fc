// Scalar's conversions: what fits, what throws.
#include <cmath>
#include <limits>

#include "core/core_testing.h"

namespace vesta {
namespace {

using namespace core_testing;

TEST(ScalarConversion, gives_every_type_that_the_value_fits_into) {
  Scalar s(200);
  EXPECT_EQ(s.toInt(), 200);
  EXPECT_EQ(s.toLong(), 200);
  EXPECT_EQ(s.toShort(), 200);
  EXPECT_EQ(s.toByte(), 200);
  EXPECT_EQ(s.toFloat(), 200.0f);
  EXPECT_EQ(float(s.toHalf()), 200.0f);
  EXPECT_EQ(float(s.toBFloat16()), 200.0f);
  EXPECT_EQ(s.toDouble(), 200.0);
  EXPECT_EQ(s.toComplexFloat(), std::complex<float>(200));
  EXPECT_EQ(s.toUInt64(), 200u);
  EXPECT_TRUE(s.toBool());
  EXPECT_EQ(s.to<uint16_t>(), 200);
  EXPECT_EQ(float(s.to<Float8_e4m3fn>()), 192.0f);  // between 192 and 208: to even
  EXPECT_EQ(Scalar(2.9).toInt(), 2);
  EXPECT_EQ(Scalar(-2.9).to<int64_t>(), -2);
  EXPECT_EQ(Scalar(std::complex<double>(3, 0)).toInt(), 3);
  EXPECT_EQ(Scalar(true).toDouble(), 1.0);
  EXPECT_EQ(Scalar(Half(1.5f)).toDouble(), 1.5);
  EXPECT_EQ(Scalar(Float8_e5m2(1.5f)).toDouble(), 1.5);
  EXPECT_EQ(Scalar(ComplexHalf({1, 2})).toComplexDouble(), std::complex<double>(1, 2));
  EXPECT_TRUE(std::isinf(Scalar(INFINITY).toFloat()));
  EXPECT_TRUE(std::isnan(Scalar(NAN).toFloat()));
  EXPECT_TRUE(std::isinf(float(Scalar(1e6).toHalf())));
}

TEST(ScalarConversion, refuses_what_does_not_fit) {
  EXPECT_CONTAINS(error_of<ValueError>([] { Scalar(200).toChar(); }), "200 does not fit into int8");
  EXPECT_THROW(Scalar(int64_t(1) << 40).toInt(), ValueError);
  EXPECT_THROW(Scalar(40000).toShort(), ValueError);
  EXPECT_THROW(Scalar(256).toByte(), ValueError);
  EXPECT_THROW(Scalar(-256).toByte(), ValueError);
  EXPECT_EQ(Scalar(-1).toByte(), 255);  // as in libtorch
  EXPECT_EQ(Scalar(-1).toUInt64(), UINT64_MAX);
  EXPECT_EQ(Scalar(0x1p63).toUInt64(), uint64_t(1) << 63);
  EXPECT_THROW(Scalar(0x1p64).toUInt64(), ValueError);
  EXPECT_THROW(Scalar(1e39).toFloat(), ValueError);
  EXPECT_THROW(Scalar(0x1p63).toLong(), ValueError);
  EXPECT_THROW(Scalar(NAN).toLong(), ValueError);
  EXPECT_THROW(Scalar(std::complex<double>(1, 2)).toDouble(), ValueError);
  EXPECT_THROW(Scalar(UINT64_MAX), ValueError);
  EXPECT_EQ(Scalar(uint64_t(INT64_MAX)).toLong(), INT64_MAX);
}

TEST(ScalarConversion, keeps_the_class_of_the_number) {
  EXPECT_TRUE(Scalar(1.0f).isFloatingPoint());
  EXPECT_TRUE(Scalar(1).isIntegral());
  EXPECT_FALSE(Scalar(true).isIntegral());
  EXPECT_TRUE(Scalar(true).isIntegral(true));
  EXPECT_TRUE(Scalar(true).isBoolean());
  EXPECT_TRUE(Scalar(std::complex<float>(1, 2)).isComplex());
  EXPECT_EQ(Scalar(1.0f).type(), kDouble);
  EXPECT_NEAR(Scalar(std::exp(2.0)).log().toDouble(), 2, 1e-15);
  EXPECT_EQ(Scalar(std::complex<double>(-1, 0)).log().toComplexDouble().real(), 0);
}

}  // namespace
}  // namespace vesta
