// DLPack in both directions: elements are shared, deleters run once, and what cannot be taken stays with the caller.
#include "vesta/dlpack.h"

#include "file_testing.h"
#include "vesta/autograd.h"
#include "vesta/sample_gen.h"

namespace vesta {
namespace {

using namespace dlpack;  // NOLINT

// All of them, those that only store too.
#define VESTA_ROW(name, ...) DType::name,
constexpr DType kAllTypes[] = {VESTA_ALL_DTYPES(VESTA_ROW)};
#undef VESTA_ROW

// A producer that counts what happens to its structs.
template <class Managed>
struct Producer {
  std::vector<float> data = {0, 1, 2, 3, 4, 5};
  std::vector<int64_t> shape = {2, 3}, strides = {3, 1};
  int deleted = 0;
  Managed managed{};
  Producer() {
    managed.dl_tensor = {data.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape.data(), strides.data(), 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) managed.version = kVersion;
  }
};
using New = Producer<DLManagedTensorVersioned>;
using Old = Producer<DLManagedTensor>;

TEST(DLPack, EveryTypeAndStrideGoesOutAndComesBackSharingItsElements) {
  for (DType dtype : kAllTypes) {
    SampleGen gen(dtype, 9);
    const Tensor base = gen.t({4, 6});
    for (const Tensor& t : {base, base.t(), base.slice(1, 1, 6, 2), base.select(0, 1), gen.t({}),
                            gen.t({0, 3}), gen.t({1, 5}), base.slice(0, 0, 1).expand({3, 6})}) {
      const Tensor versioned = from_dlpack(to_dlpack(t)), old = from_dlpack(to_dlpack_unversioned(t));
      for (auto& back : {versioned, old}) {
        EXPECT_TRUE(same_elements(t, back)) << dtype_name(dtype);
        if (t.numel()) {
          EXPECT_EQ(t.data_ptr(), back.data_ptr());
        }
      }
    }
  }
}

TEST(DLPack, AnExportedStructDescribesTheTensorAndKeepsItAlive) {
  Tensor t = arange(12, TensorOptions(kFloat64)).view({3, 4});
  DLManagedTensorVersioned* out = to_dlpack(t.slice(0, 1, 2).t());
  t.reset();
  EXPECT_EQ(out->version.major, 1u);
  EXPECT_EQ(out->flags, 0u);
  const DLTensor& d = out->dl_tensor;
  EXPECT_EQ(d.device.device_type, kDLCPU);
  EXPECT_EQ(d.ndim, 2);
  EXPECT_EQ(d.dtype.code, kDLFloat);
  EXPECT_EQ(d.dtype.bits, 64);
  EXPECT_EQ(d.dtype.lanes, 1);
  EXPECT_EQ(d.shape[0], 4);
  EXPECT_EQ(d.shape[1], 1);
  EXPECT_EQ(d.strides[0], 1);
  EXPECT_EQ(d.strides[1], 1) << "of a single element";
  EXPECT_EQ(static_cast<double*>(d.data)[3], 7.0);
  out->deleter(out);
}

TEST(DLPack, ImportsShareMemoryAndDeleteOnceAfterTheLastTensor) {
  New producer;
  {
    Tensor t = from_dlpack(&producer.managed);
    const Tensor row = t.select(0, 1);
    t.reset();
    EXPECT_EQ(row.data_ptr<float>()[2], 5);
    producer.data[5] = 50;
    EXPECT_EQ(row.data_ptr<float>()[2], 50);
    EXPECT_EQ(producer.deleted, 0);
  }
  EXPECT_EQ(producer.deleted, 1);
  Old old;
  old.managed.deleter = nullptr;
  from_dlpack(&old.managed).fill_(Scalar(1));
  EXPECT_EQ(old.data[0], 1);
}

TEST(DLPack, NullStridesOffsetsAndOddStridesAreUnderstood) {
  Old producer;
  producer.managed.dl_tensor.strides = nullptr;
  EXPECT_EQ(from_dlpack(&producer.managed).strides().vec(), (std::vector<int64_t>{3, 1}));
  producer.managed.dl_tensor.byte_offset = 4;
  producer.managed.dl_tensor.ndim = 1;
  EXPECT_EQ(from_dlpack(&producer.managed).data_ptr<float>()[0], 1);
  producer.managed.dl_tensor.ndim = 0;
  EXPECT_EQ(from_dlpack(&producer.managed).item<float>(), 1);
  EXPECT_EQ(producer.deleted, 3);
  // A stride of a single row may be anything.
  New row;
  row.shape = {1, 6};
  row.strides = {INT64_MAX, 1};
  EXPECT_EQ(from_dlpack(&row.managed).numel(), 6);
  // Empty: data may be null.
  New nothing;
  nothing.shape = {0, 3};
  nothing.managed.dl_tensor.data = nullptr;
  EXPECT_EQ(from_dlpack(&nothing.managed).numel(), 0);
  EXPECT_EQ(nothing.deleted, 1);
}

TEST(DLPack, ReadOnlyNegativeAndUnalignedDataAreCopied) {
  New fixed;
  fixed.managed.flags = kReadOnly;
  Tensor t = from_dlpack(&fixed.managed);
  EXPECT_EQ(fixed.deleted, 1);
  t.fill_(Scalar(9));
  EXPECT_EQ(fixed.data[0], 0);

  New backwards;
  backwards.strides = {3, -1};
  backwards.managed.dl_tensor.byte_offset = 8;
  t = from_dlpack(&backwards.managed);
  EXPECT_EQ(backwards.deleted, 1);
  const float expected[] = {2, 1, 0, 5, 4, 3};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(t.data_ptr<float>()[i], expected[i]);

  New odd;
  std::vector<char> bytes(25);
  std::memcpy(bytes.data() + 1, odd.data.data(), 24);
  odd.managed.dl_tensor.data = bytes.data();
  odd.managed.dl_tensor.byte_offset = 1;
  EXPECT_EQ(from_dlpack(&odd.managed).data_ptr<float>()[5], 5);
}

TEST(DLPack, WhatCannotBeTakenStaysWithTheCaller) {
  New p;
  const DLTensor good = p.managed.dl_tensor;
  const auto refused = [&] {
    const std::string text = message_of([&] { from_dlpack(&p.managed); });
    p.managed.dl_tensor = good;
    p.managed.version = kVersion;
    p.shape = {2, 3};
    p.strides = {3, 1};
    EXPECT_EQ(p.deleted, 0);
    return text;
  };
  DLTensor& d = p.managed.dl_tensor;
  p.managed.version.major = 2;
  d.shape = reinterpret_cast<int64_t*>(1);  // must not be read
  EXPECT_SAYS(refused(), "expected DLPack 1.x, got 2.1");
  d.device.device_type = kDLCUDA;
  EXPECT_SAYS(refused(), "device type 2");
  d.ndim = -1;
  EXPECT_SAYS(refused(), "got -1");
  d.ndim = INT32_MAX;
  EXPECT_SAYS(refused(), "0 to 64 dims");
  d.shape = nullptr;
  EXPECT_SAYS(refused(), "shape is null");
  d.data = nullptr;
  EXPECT_SAYS(refused(), "data pointer is null");
  d.dtype.lanes = 4;
  EXPECT_SAYS(refused(), "32 bits and 4 lanes");
  d.dtype = {kDLUInt, 128, 1};
  EXPECT_SAYS(refused(), "type code 1 of 128 bits");
  d.dtype = {kDLFloat4_e2m1fn, 4, 1};  // only pairs
  EXPECT_SAYS(refused(), "4 bits and 1 lanes");
  d.dtype = {kDLFloat, 8, 1};
  EXPECT_SAYS(refused(), "type code 2 of 8 bits");
  p.shape = {-1, 3};
  EXPECT_SAYS(refused(), "got -1");
  p.shape = {INT64_MAX, INT64_MAX};
  EXPECT_SAYS(refused(), "do not fit into 63 bits");
  p.shape = {0, INT64_MAX};
  EXPECT_SAYS(refused(), "do not fit into 63 bits");
  p.strides = {INT64_MIN, 1};
  EXPECT_SAYS(refused(), "strides do not fit");
  p.strides = {INT64_MAX, INT64_MAX};
  EXPECT_SAYS(refused(), "strides do not fit");
  EXPECT_SAYS(message_of([] { from_dlpack(static_cast<DLManagedTensor*>(nullptr)); }), "null");
  EXPECT_SAYS(message_of([] { from_dlpack(static_cast<DLManagedTensorVersioned*>(nullptr)); }), "null");
}

TEST(DLPack, WhatCannotBeGivenIsRefused) {
  SampleGen gen(kComplex64, 2);
  EXPECT_SAYS(message_as<ValueError>([&] { to_dlpack(gen.t({2}).conj()); }), "resolve_conj");
  EXPECT_SAYS(message_as<ValueError>([] { to_dlpack(Tensor()); }), "undefined");
  EXPECT_SAYS(message_as<ValueError>([] { to_dlpack(empty({2}, Device(DeviceType::Meta))); }),
              "expected a tensor with data");
  const Tensor leaf = ones({2}).requires_grad_();
  EXPECT_FALSE(from_dlpack(to_dlpack(leaf)).requires_grad());
}

}  // namespace
}  // namespace vesta
