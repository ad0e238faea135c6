// Conversion between stored and port element types: exact values, rounding, ranges, NaN.
#include "runtime/Data/ElementConvert.h"
#include "TestSupport.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace plimsoll;
using namespace plimsoll::runtime;
using artifact::DType;

namespace {

template <typename Out, typename In>
std::vector<Out> convert(const ElementFormat &format, const std::vector<In> &values, DType target) {
  std::vector<Out> out(values.size());
  auto fault = convertElements(format, reinterpret_cast<const std::byte *>(values.data()), values.size(), target,
                               reinterpret_cast<std::byte *>(out.data()));
  EXPECT_FALSE(fault) << fault->reason;
  return out;
}

template <typename In>
std::string faultOf(Element element, const std::vector<In> &values, DType target, size_t expectedIndex) {
  std::vector<std::byte> out(values.size() * 8);
  auto fault = convertElements({element, false, 1.0, 0.0}, reinterpret_cast<const std::byte *>(values.data()),
                               values.size(), target, out.data());
  if (!fault)
    return "no fault";
  EXPECT_EQ(fault->index, expectedIndex);
  return fault->reason;
}

TEST(ElementConvert, tokensWidenToIntegers) {
  std::vector<uint16_t> tokens = {0, 1, 65535};
  EXPECT_EQ(convert<int64_t>({Element::U16, false, 1, 0}, tokens, DType::I64), (std::vector<int64_t>{0, 1, 65535}));
  EXPECT_EQ(convert<int32_t>({Element::U16, false, 1, 0}, tokens, DType::I32), (std::vector<int32_t>{0, 1, 65535}));
}

TEST(ElementConvert, imagesAreScaled) {
  std::vector<uint8_t> pixels = {0, 51, 255};
  EXPECT_EQ(convert<float>({Element::U8, false, 1.0 / 255.0, -0.5}, pixels, DType::F32),
            (std::vector<float>{-0.5f, -0.3f, 0.5f}));
}

TEST(ElementConvert, bigEndianIsSwapped) {
  std::vector<uint8_t> bytes = {0x01, 0x02, 0xff, 0xfe}; // 258 and -2 as big-endian int16
  std::vector<int32_t> out(2);
  ASSERT_FALSE(convertElements({Element::I16, true, 1, 0}, reinterpret_cast<const std::byte *>(bytes.data()), 2,
                               DType::I32, reinterpret_cast<std::byte *>(out.data())));
  EXPECT_EQ(out, (std::vector<int32_t>{258, -2}));
}

// Every half value survives half -> float -> half; this covers subnormals, both zeros and infinities.
TEST(ElementConvert, everyHalfRoundTrips) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    if ((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff))
      continue; // NaN
    std::vector<uint16_t> half = {static_cast<uint16_t>(bits)};
    std::vector<float> wide = convert<float>({Element::F16, false, 1, 0}, half, DType::F32);
    EXPECT_EQ(convert<uint16_t>({Element::F32, false, 1, 0}, wide, DType::F16)[0] & 0x7fff, bits & 0x7fff);
  }
}

// Half-way cases go to the even neighbour: 1 + 2^-11 lies between 1 and 1 + 2^-10; 1 + 2^-8 likewise in bf16.
TEST(ElementConvert, halfTypesRoundToNearestEven) {
  std::vector<float> values = {1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f, 65504.0f, 0x1p-25f, 3 * 0x1p-25f};
  EXPECT_EQ(convert<uint16_t>({Element::F32, false, 1, 0}, values, DType::F16),
            (std::vector<uint16_t>{0x3c00, 0x3c02, 0x7bff, 0x0000, 0x0002}));
  std::vector<float> brain = {1.0f + 0x1p-8f, 1.0f + 3 * 0x1p-8f};
  EXPECT_EQ(convert<uint16_t>({Element::F32, false, 1, 0}, brain, DType::BF16),
            (std::vector<uint16_t>{0x3f80, 0x3f82}));
}

TEST(ElementConvert, valuesOutOfRangeAreNamed) {
  EXPECT_EQ(faultOf<uint32_t>(Element::U32, {7, 3000000000u}, DType::I32, 1), "3000000000 does not fit i32");
  EXPECT_EQ(faultOf<int64_t>(Element::I64, {-129}, DType::I8, 0), "-129 does not fit i8");
  EXPECT_EQ(faultOf<int64_t>(Element::I64, {0, -1}, DType::U8, 1), "-1 does not fit u8");
  EXPECT_EQ(faultOf<uint8_t>(Element::U8, {0, 1, 2}, DType::Bool, 2), "2 does not fit bool");
  EXPECT_EQ(faultOf<double>(Element::F64, {1e300}, DType::F32, 0), "1e+300 does not fit f32");
  EXPECT_EQ(faultOf<float>(Element::F32, {1, 65520}, DType::F16, 1), "65520 does not fit f16");
}

TEST(ElementConvert, nanIsRefusedAndInfinityKept) {
  float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(faultOf<float>(Element::F32, {0, nan}, DType::F32, 1), "NaN");
  EXPECT_EQ(faultOf<float>(Element::F32, {nan}, DType::F64, 0), "NaN");
  EXPECT_EQ(convert<float>({Element::F32, false, 1, 0}, std::vector<float>{-infinity}, DType::F32)[0], -infinity);
}

TEST(ElementConvert, floatsDoNotFeedIntegers) {
  EXPECT_FAILS(checkConvertible({Element::F32, false, 1, 0}, DType::I64, "x"), ExitCode::Usage,
               "f32 data cannot feed a port of type i64");
  EXPECT_FAILS(checkConvertible({Element::U8, false, 0.5, 0}, DType::I64, "x"), ExitCode::Usage,
               "scale and offset need a floating-point port, this one is i64");
  EXPECT_TRUE(checkConvertible({Element::U8, false, 0.5, 0}, DType::F32, "x"));
}

TEST(ElementConvert, scalarsOfEveryTypeRoundTrip) {
  for (int dtype = 0; dtype <= static_cast<int>(DType::Bool); ++dtype) {
    std::byte bytes[8] = {};
    writeScalar(static_cast<DType>(dtype), 1.0, bytes);
    EXPECT_EQ(readScalar(static_cast<DType>(dtype), bytes), 1.0) << dtype;
  }
  std::byte bytes[8] = {};
  writeScalar(DType::F64, 0.1, bytes);
  EXPECT_EQ(readScalar(DType::F64, bytes), 0.1);
}

} // namespace
