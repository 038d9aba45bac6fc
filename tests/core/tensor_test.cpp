// Tensor itself: foreign memory, access, views and strides, many dims, 0 dims, no elements, versions, printing, errors.
#include <thread>

#include "core/core_testing.h"
#include "graph/tracer.h"
#include "vesta/autograd.h"

namespace vesta {
namespace {

using namespace core_testing;

TEST(FromBlob, the_deleter_runs_once_when_the_last_user_is_gone) {
  int deleted = 0;
  auto* memory = new float[6]{1, 2, 3, 4, 5, 6};
  {
    Tensor view;
    {
      Tensor t = from_blob(memory, {2, 3}, [&](void* p) {
        ++deleted;
        delete[] static_cast<float*>(p);
      });
      EXPECT_EQ(t.data_ptr(), memory);
      view = t.select(0, 1);
      Tensor data = t.data(), alias = t.detach();
    }
    EXPECT_EQ(deleted, 0);
    EXPECT_EQ(values(view), (Doubles{4, 5, 6}));
  }
  EXPECT_EQ(deleted, 1);
}

TEST(FromBlob, data_keeps_the_memory_alive) {
  int deleted = 0;
  float memory[2] = {1, 2};
  Tensor data;
  {
    Tensor t = from_blob(memory, {2}, [&](void*) { ++deleted; });
    data = t.data();
  }
  EXPECT_EQ(deleted, 0);
  data.reset();
  EXPECT_EQ(deleted, 1);
}

TEST(FromBlob, strides_dtypes_and_mistakes) {
  double memory[6] = {1, 2, 3, 4, 5, 6};
  Tensor t = from_blob(memory, {3, 2}, {1, 3}, {}, kDouble);
  EXPECT_EQ(values(t), (Doubles{1, 4, 2, 5, 3, 6}));
  t.fill_(7);
  EXPECT_EQ(memory[5], 7);
  EXPECT_TRUE(from_blob(memory, {1}, TensorOptions(kDouble).requires_grad(true)).requires_grad());
  EXPECT_EQ(from_blob(nullptr, {0, 3}).numel(), 0);
  EXPECT_CONTAINS(error_of<ValueError>([] { from_blob(nullptr, {2}); }), "from_blob");
  EXPECT_THROW(from_blob(memory, {-1}), ValueError);
  EXPECT_THROW(from_blob(memory, {2}, {-1}, {}), ValueError);
  EXPECT_THROW(from_blob(memory, {2}, {1, 1}, {}), ValueError);
  EXPECT_THROW(from_blob(memory, {int64_t(1) << 62, 8}), Error);
  EXPECT_CONTAINS(error_of<ValueError>([&] { from_blob(memory, {1}, TensorOptions(kCUDA)); }), "cuda:0");
}

TEST(Access, accessor_data_ptr_and_item_check_type_and_shape) {
  Tensor t = arange(6, kFloat).view({2, 3});
  Tensor turned = t.transpose(0, 1);
  auto a = turned.accessor<float, 2>();
  EXPECT_EQ(a[2][1], 5);
  EXPECT_EQ(a.size(0), 3);
  EXPECT_CONTAINS(error_of<TypeError>([&] { t.data_ptr<double>(); }),
                  "expected float64, the tensor is float32");
  EXPECT_THROW((t.accessor<int64_t, 2>()), TypeError);
  EXPECT_CONTAINS(error_of<ValueError>([&] { (t.accessor<float, 3>()); }),
                  "expected 3 dims, the tensor has 2");
  EXPECT_CONTAINS(error_of<ValueError>([&] { t.item(); }), "got 6");
  EXPECT_THROW(zeros({0}).item(), ValueError);
  EXPECT_EQ(full({1, 1}, 2.5).item<double>(), 2.5);
  EXPECT_EQ(full({}, 7, TensorOptions(kInt8)).item<int>(), 7);
  EXPECT_TRUE(full({}, true, TensorOptions(kBool)).item().isBoolean());
  EXPECT_EQ(complex(f32({1}), f32({2})).conj().item().toComplexDouble(), std::complex<double>(1, -2));
  EXPECT_CONTAINS(error_of<NotImplementedError>([] { zeros({1}, TensorOptions(kMeta)).item(); }), "meta");
  EXPECT_THROW(zeros({1}, TensorOptions(kMeta)).data_ptr(), NotImplementedError);
}

TEST(Access, undefined_tensors_say_so) {
  Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_FALSE(bool(t));
  EXPECT_CONTAINS(error_of<ValueError>([&] { t.dim(); }), "undefined");
  EXPECT_THROW(t.sizes(), ValueError);
  EXPECT_THROW(t.requires_grad(), ValueError);
  EXPECT_THROW(t + 1, Error);
  EXPECT_EQ(Tensor(std::nullopt).str(), "[ Tensor (undefined) ]");
}

TEST(Access, size_and_stride_count_from_both_ends) {
  Tensor t = zeros({2, 3, 4});
  EXPECT_EQ(t.size(-1), 4);
  EXPECT_EQ(t.stride(0), 12);
  EXPECT_CONTAINS(error_of<IndexError>([&] { t.size(3); }), "[-3, 2], got 3");
  EXPECT_THROW(t.stride(-4), IndexError);
  EXPECT_THROW(zeros({}).size(0), IndexError);
}

TEST(To, returns_itself_where_nothing_changes_and_copies_on_request) {
  Tensor t = f32({1, 2});
  EXPECT_TRUE(t.to(kFloat).is_same(t));
  EXPECT_FALSE(t.to(kFloat, false, true).is_same(t));
  EXPECT_NE(t.to(kFloat, false, true).data_ptr(), t.data_ptr());
  EXPECT_EQ(t.to(kDouble).dtype(), kDouble);
  EXPECT_EQ(t.to(i64({1})).dtype(), kLong);
  EXPECT_EQ(t.to(Device(kCPU), kHalf).dtype(), kHalf);
  EXPECT_TRUE(t.cpu().is_same(t));
}

TEST(Strides, contiguity_ignores_dims_of_one_and_holds_without_elements) {
  Tensor t = zeros({2, 3});
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_FALSE(t.transpose(0, 1).is_contiguous());
  EXPECT_TRUE(t.transpose(0, 1).is_non_overlapping_and_dense());
  EXPECT_FALSE(t.expand({2, 2, 3}).is_non_overlapping_and_dense());
  EXPECT_TRUE(zeros({5, 1, 3}).as_strided({5, 1, 3}, {3, 77, 1}).is_contiguous());
  EXPECT_TRUE(zeros({0, 3}).transpose(0, 1).is_contiguous());
  EXPECT_TRUE(zeros({}).is_contiguous());
  EXPECT_FALSE(zeros({4, 4}).slice(1, 0, 2).is_contiguous());
  EXPECT_TRUE(zeros({4, 4}).slice(0, 1, 3).is_contiguous());
  Tensor c = zeros({2, 3, 4, 5}).permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
  EXPECT_TRUE(c.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(c.is_contiguous());
  EXPECT_TRUE(t.contiguous().is_same(t));
}

TEST(Strides, elementwise_results_keep_the_first_dense_layout) {
  Tensor c = zeros({2, 3}), t = zeros({3, 2}).transpose(0, 1);
  EXPECT_EQ((t + c).strides().vec(), (Sizes{1, 2}));
  EXPECT_EQ((c + t).strides().vec(), (Sizes{3, 1}));
  Tensor p = zeros({2, 3, 4}).permute({2, 0, 1});
  EXPECT_EQ((p * 2).strides().vec(), p.strides().vec());
  EXPECT_TRUE((zeros({4, 4}).slice(1, 0, 2) + 1).is_contiguous());
}

TEST(Strides, view_needs_compatible_strides_and_reshape_copies) {
  Tensor t = arange(6, kFloat).view({2, 3}).transpose(0, 1);
  EXPECT_THROW(t.view({6}), ValueError);
  EXPECT_EQ(values(t.reshape({6})), (Doubles{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(t.view({3, 1, 2}).data_ptr(), t.data_ptr());
  EXPECT_THROW(t.reshape({4}), ValueError);
  EXPECT_EQ(sizes(t.reshape({-1, 2})), (Sizes{3, 2}));
  EXPECT_THROW(t.reshape({-1, -1}), ValueError);
}

TEST(Strides, writes_to_memory_that_overlaps_itself_raise) {
  Tensor t = f32({1, 2}).view({2, 1}).expand({2, 3});
  EXPECT_THROW(t.add_(1), Error);
  EXPECT_THROW(t.zero_(), Error);
}

TEST(Dims, more_than_six_are_as_good_as_few) {
  Tensor t = arange(256, kFloat).view({2, 2, 2, 2, 2, 2, 2, 2});
  EXPECT_EQ(t.dim(), 8);
  EXPECT_EQ(t.stride(0), 128);
  Tensor r = t.permute({7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(r.stride(7), 128);
  EXPECT_EQ(values((r + r).select(7, 1).select(0, 1).reshape({-1}).slice(0, 0, 2)), (Doubles{258, 386}));
  EXPECT_EQ(values(r.contiguous().sum()), (Doubles{255.0 * 128}));
  Tensor x = t.detach().requires_grad_();
  (x.transpose(0, 7) * x).sum().backward();
  EXPECT_EQ(sizes(x.grad()), sizes(x));
  Tensor d = t.data(), c = t.clone();
  EXPECT_EQ(sizes(d), sizes(t));
  EXPECT_EQ(values(c), values(t));
}

TEST(Dims, none_and_no_elements_work_everywhere) {
  Tensor s = full({}, 3), e = zeros({0, 4});
  EXPECT_EQ(s.dim(), 0);
  EXPECT_EQ(s.numel(), 1);
  EXPECT_EQ(values(s + s), (Doubles{6}));
  EXPECT_EQ(sizes(s.sum()), (Sizes{}));
  EXPECT_EQ(e.numel(), 0);
  EXPECT_EQ(sizes(e + zeros({1, 4})), (Sizes{0, 4}));
  EXPECT_EQ(values(e.sum()), (Doubles{0}));
  EXPECT_EQ(sizes(e.sum(0)), (Sizes{4}));
  EXPECT_EQ(sizes(e.transpose(0, 1).contiguous()), (Sizes{4, 0}));
  EXPECT_EQ(e.nbytes(), 0u);
  EXPECT_NO_THROW(e.data_ptr());
}

TEST(SetData, changes_the_elements_and_keeps_identity_and_gradient) {
  Tensor x = f32({1, 2}).requires_grad_();
  (x * 3).sum().backward();
  Tensor other = f32({5, 6, 7});
  x.set_data(other);
  EXPECT_EQ(values(x), (Doubles{5, 6, 7}));
  EXPECT_EQ(x.data_ptr(), other.data_ptr());
  EXPECT_TRUE(x.requires_grad());
  EXPECT_EQ(values(x.grad()), (Doubles{3, 3}));
  Tensor y = x * 1;
  EXPECT_THROW(y.set_data(i64({1})), ValueError);
  EXPECT_THROW(x.set_data(Tensor()), ValueError);
  // Small to large and back: the embedded storage must not be freed twice.
  Tensor big = zeros({10000}), small = f32({1});
  small.set_data(big);
  big.set_data(f32({2}));
  EXPECT_EQ(small.numel(), 10000);
  Tensor owner = f32({8}), view = owner.view({1, 1});
  owner.set_data(big);
  owner.reset();
  EXPECT_EQ(values(view), (Doubles{8}));
  EXPECT_EQ(values(big), (Doubles{2}));
}

TEST(Errors, name_the_operator_the_expectation_and_the_value) {
  EXPECT_CONTAINS(error_of<ValueError>([] { zeros({2, 3}) + zeros({4}); }), "add");
  std::string e = error_of<Error>([] { zeros({2, 3}).matmul(zeros({4, 5})); });
  EXPECT_CONTAINS(e, "3");
  EXPECT_CONTAINS(e, "4");
  EXPECT_CONTAINS(error_of<Error>([] { zeros({2, 3}).select(0, 7); }), "7");
  EXPECT_CONTAINS(error_of<Error>([] { zeros({2, 3}).sum(5); }), "5");
  EXPECT_CONTAINS(error_of<Error>([] { zeros({-2}); }), "-2");
}

TEST(Printing, is_libtorchs) {
  EXPECT_EQ(arange(3, kFloat).str(), " 0\n 1\n 2\n[ CPUFloatType{3} ]");
  EXPECT_EQ(i64({1, 10, 100}).str(), "   1\n  10\n 100\n[ CPULongType{3} ]");
  EXPECT_EQ(ones({2, 2}).str(), " 1  1\n 1  1\n[ CPUFloatType{2,2} ]");
  EXPECT_EQ(f32({0.5f, 0.25f}).str(), " 0.5000\n 0.2500\n[ CPUFloatType{2} ]");
  EXPECT_EQ(f32({1.5f, -2.25f}).str(), " 1.5000\n-2.2500\n[ CPUFloatType{2} ]");
  EXPECT_EQ(f32({12.5f, 2}).str(), " 12.5000\n  2.0000\n[ CPUFloatType{2} ]");
  EXPECT_EQ(ones({2, 2, 2}).str(),
            "(1,.,.) = \n  1  1\n  1  1\n\n(2,.,.) = \n  1  1\n  1  1\n[ CPUFloatType{2,2,2} ]");
  EXPECT_EQ(full({}, 3.5).str(), "3.5\n[ CPUFloatType{} ]");
  EXPECT_EQ(zeros({0, 3}).str(), "[ CPUFloatType{0,3} ]");
  EXPECT_EQ(zeros({2}, kBool).str(), " 0\n 0\n[ CPUBoolType{2} ]");
}

TEST(Printing, mixed_magnitudes_share_a_scale_or_turn_scientific) {
  EXPECT_EQ(f32({1e-3f, 1000.5f}).str(), " 1.0000e-03\n 1.0005e+03\n[ CPUFloatType{2} ]");
  EXPECT_EQ(f32({0.0025f, 0.005f}).str(), "0.001 *\n 2.5000\n 5.0000\n[ CPUFloatType{2} ]");
  EXPECT_EQ(make<double>({1234567.5, 7654321}, {2}).str(), "1e+06 *\n 1.2346\n 7.6543\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(make<double>({1e10, 1}, {2}).str(), " 1.0000e+10\n 1.0000e+00\n[ CPUDoubleType{2} ]");
}

TEST(Printing, slices_count_the_first_dim_fastest_each_with_its_own_format) {
  std::string s = arange(4, kFloat).view({2, 2, 1, 1}).str();
  EXPECT_EQ(s,
            "(1,1,.,.) = \n  0\n\n(2,1,.,.) = \n  2\n\n(1,2,.,.) = \n  1\n\n(2,2,.,.) = \n  3\n[ "
            "CPUFloatType{2,2,1,1} ]");
  EXPECT_EQ(f32({1, 100}).view({2, 1, 1}).str(),
            "(1,.,.) = \n  1\n\n(2,.,.) = \n  100\n[ CPUFloatType{2,1,1} ]");
}

TEST(Tracing, reading_a_value_while_tracing_throws_also_for_captured_tensors) {
  Tensor captured = full({}, 2.0f);
  auto reads = [&](auto f) {
    return error_of<NotImplementedError>([&] {
      graph::trace([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in[0])}; },
                   {f32({1, 2})});
    });
  };
  EXPECT_CONTAINS(reads([&](const Tensor& x) { return x * captured.item(); }), "item");
  EXPECT_CONTAINS(reads([&](const Tensor& x) {
                    captured.add_(1);
                    return x * captured.item();
                  }),
                  "item");
  EXPECT_CONTAINS(reads([&](const Tensor& x) { return x * x.sum().item(); }), "item");
  EXPECT_EQ(captured.item<float>(), 2);
  EXPECT_EQ(captured._version(), 0u);
}

TEST(RandomStreams, do_not_depend_on_the_thread_that_draws) {
  constexpr uint64_t kSeed = 42;
  Generator a(kSeed), b(kSeed);
  Tensor here = randn({1000}, a), there;
  std::thread([&] { there = randn({1000}, b); }).join();
  EXPECT_EQ(values(here), values(there));
  EXPECT_NE(values(randn({1000}, a)), values(here));
}

}  // namespace
}  // namespace vesta
