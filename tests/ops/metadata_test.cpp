// Questions about tensors and dtypes, and the operators that change which memory a tensor shows.
#include <gtest/gtest.h>
#include <vesta/error.h>

#include "core/registry.h"
#include "graph/tracer.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/owned_value.h"

namespace vesta {
namespace {

OwnedValue ask(const char* name, std::vector<OwnedValue> args) {
  return call_by_name(name, std::move(args)).at(0);
}
bool yes(const OwnedValue& v) {
  EXPECT_EQ(v.kind(), ValueKind::Bool);
  return v.scalar().toBool();
}
Tensor numbers(std::vector<int64_t> sizes) {
  int64_t n = 1;
  for (auto s : sizes) n *= s;
  return arange(n, TensorOptions(kDouble)).view(sizes);
}

TEST(Metadata, ResultsAreNumbersBoolsAndDtypes) {
  Tensor f = numbers({3, 4}), z = f.to(kComplexDouble);
  EXPECT_TRUE(yes(ask("is_floating_point", {f})));
  EXPECT_FALSE(yes(ask("is_floating_point", {z})));
  EXPECT_TRUE(yes(ask("is_complex", {z})));
  EXPECT_FALSE(yes(ask("is_signed", {f.to(kByte)})));
  EXPECT_TRUE(yes(ask("is_conj", {z.conj()})));
  EXPECT_TRUE(yes(ask("is_neg", {_neg_view(f)})));
  EXPECT_EQ(ask("size.int", {f, -1}).scalar().toLong(), 4);
  EXPECT_EQ(ask("stride.int", {f.t(), 0}).scalar().toLong(), 1);
  EXPECT_EQ(ask("sym_numel", {f}).scalar().toLong(), 12);
  EXPECT_EQ(ask("sym_storage_offset", {f[2]}).scalar().toLong(), 8);
  EXPECT_FALSE(yes(ask("sym_is_contiguous", {f.t()})));
  OwnedValue t = ask("promote_types", {kByte, kChar});
  EXPECT_EQ(t.kind(), ValueKind::DType);
  EXPECT_EQ(DType(t.scalar().toLong()), kShort);
  EXPECT_FALSE(yes(ask("can_cast", {kFloat, kLong})));
  EXPECT_EQ(DType(ask("result_type.Scalar", {f.to(kLong), Scalar(1.5)}).scalar().toLong()), kFloat);
  EXPECT_EQ(DType(ask("result_type.Scalar_Scalar", {Scalar(1), Scalar(true)}).scalar().toLong()), kLong);
  EXPECT_THROW(ask("size.int", {f, 2}), IndexError);
  EXPECT_THROW(ask("size.int", {f, INT64_MIN}), IndexError);
  EXPECT_THROW(ask("stride.int", {f[0][0], 0}), IndexError);
}

TEST(Metadata, ItemGivesTheValueOfEveryKind) {
  for (DType t : {kBool, kByte, kChar, kShort, kInt, kLong, kHalf, kBFloat16, kFloat, kDouble}) {
    Scalar v = ask("item", {ones({}, TensorOptions(t))}).scalar();
    EXPECT_EQ(v.toDouble(), 1) << dtype_name(t);
    EXPECT_EQ(v.isFloatingPoint(), is_floating_point(t)) << dtype_name(t);
  }
  Tensor z = complex(full({}, 2., TensorOptions(kDouble)), full({}, 3., TensorOptions(kDouble)));
  EXPECT_EQ(ask("item", {z}).scalar().toComplexDouble(), std::complex<double>(2, 3));
  EXPECT_EQ(item(z.conj()).toComplexDouble(), std::complex<double>(2, -3));
  EXPECT_THROW(ask("item", {ones({2})}), ValueError);
  EXPECT_TRUE(yes(ask("is_nonzero", {full({}, NAN)})));
  EXPECT_FALSE(yes(ask("is_nonzero", {zeros({1, 1})})));
  EXPECT_THROW(_assert_async(zeros({})), ValueError);
  try {
    _assert_async(zeros({}), "must hold");
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("must hold"), std::string::npos);
  }
}

TEST(Metadata, SizesMayBeAskedForWhileTracingAndValuesNot) {
  graph::Graph g = graph::trace(
      [](const std::vector<Tensor>& in) {
        EXPECT_EQ(ask("sym_size.int", {in[0], 1}).scalar().toLong(), 4);
        EXPECT_TRUE(yes(ask("is_floating_point", {in[0]})));
        EXPECT_THROW(ask("item", {in[0].sum()}), NotImplementedError);
        EXPECT_THROW(Tensor(in[0] * 1).t_(), NotImplementedError);
        return std::vector<Tensor>{in[0] * 2};
      },
      {numbers({3, 4})});
  EXPECT_EQ(g.calls.size(), 3u);  // the sum, the product with 1, and the one with 2
}

TEST(Metadata, AutogradSwitchesWorkByName) {
  Tensor x = numbers({3});
  call_by_name("requires_grad_", {x});
  EXPECT_TRUE(x.requires_grad());
  Tensor y = x * 2;
  EXPECT_TRUE(yes(ask("is_leaf", {x})));
  EXPECT_FALSE(yes(ask("is_leaf", {y})));
  EXPECT_EQ(call_by_name("retain_grad", {y}).size(), 0u);
  y.sum().backward();
  EXPECT_EQ(y.grad()[0].item<double>(), 1);
  call_by_name("set_data", {x, numbers({2})});
  EXPECT_EQ(x.numel(), 2);
}

TEST(ReshapeInPlace, ViewsOfTheSameMemoryUnderTheSameName) {
  Tensor t = numbers({2, 3}), alias = t.view({6});
  uint32_t version = t._version();
  EXPECT_TRUE(t.t_().is_same(t));
  EXPECT_EQ(t.sizes().vec(), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(t[2][1].item<double>(), 5);
  EXPECT_GT(t._version(), version);
  t.unsqueeze_(0);
  EXPECT_EQ(t.dim(), 3);
  t.squeeze_();
  t.transpose_(0, 1);
  EXPECT_TRUE(t.is_contiguous());
  t[0][0] = 9;
  EXPECT_EQ(alias[0].item<double>(), 9);
  t.as_strided_({2, 2}, {1, 2}, 1);
  EXPECT_EQ(t[1][1].item<double>(), 4);
  EXPECT_THROW(t.as_strided_({2, 2}, {4, 1}, 2), ValueError);
  EXPECT_THROW(t.transpose_(0, 2), IndexError);
  EXPECT_EQ(t.sizes().vec(), (std::vector<int64_t>{2, 2}));
}

TEST(ReshapeInPlace, GradientsFollowTheNewShape) {
  Tensor x = numbers({2, 3}).requires_grad_(), w = numbers({3, 2});
  Tensor y = x * 2;
  y.t_();
  (y * w).sum().backward();
  Tensor want = (w * 2).t();
  EXPECT_TRUE(equal(x.grad(), want));
  // Of a view: later writes to its base are seen through the new shape.
  Tensor z = numbers({2, 3}).requires_grad_(), base = z * 1, view = base.view({2, 3});
  view.t_();
  base.mul_(3);
  auto g = autograd::grad({(view * w).sum()}, {z});
  EXPECT_TRUE(equal(g[0], (w * 3).t()));
  EXPECT_THROW(x.t_(), ValueError);
  NoGradGuard no_grad;
  EXPECT_NO_THROW(x.t_());
}

TEST(ReshapeInPlace, ResizeKeepsElementsAndGrows) {
  Tensor t = arange(6, TensorOptions(kLong)), other = t.view({2, 3});
  t.resize_({2, 2});
  EXPECT_EQ(t[1][1].item<int64_t>(), 3);
  t.resize_({100, 7});
  EXPECT_EQ(t.numel(), 700);
  EXPECT_EQ(t[0][5].item<int64_t>(), 5);
  t.fill_(1);
  EXPECT_EQ(other[1][2].item<int64_t>(), 5);  // it kept the old memory
  EXPECT_THROW(other.resize_({100}), ValueError);
  EXPECT_THROW(t.resize_({-1}), ValueError);
  EXPECT_THROW(t.resize_({INT64_MAX, 2}), ValueError);
  EXPECT_THROW(t.resize_({INT64_MAX / 4}), ValueError);
  EXPECT_EQ(t.numel(), 700);
  t.resize_as_(zeros({2, 0}));
  EXPECT_EQ(t.numel(), 0);
  EXPECT_THROW(numbers({2}).requires_grad_().resize_({3}), ValueError);
  Tensor c = zeros({1}).resize_({1, 2, 3, 4}, MemoryFormat::ChannelsLast);
  EXPECT_TRUE(c.is_contiguous(MemoryFormat::ChannelsLast));
}

TEST(ReshapeInPlace, SetShowsOtherMemoryWithinItsBounds) {
  Tensor source = numbers({12}), t = numbers({2});
  t.set_(source, 2, {2, 3}, {3, 1});
  EXPECT_EQ(t[1][2].item<double>(), 7);
  t[0][0] = -1;
  EXPECT_EQ(source[2].item<double>(), -1);
  EXPECT_TRUE(yes(ask("is_set_to", {t, source.slice(0, 2, 8).view({2, 3})})));
  EXPECT_FALSE(yes(ask("is_set_to", {t, source})));
  EXPECT_THROW(t.set_(source, 3, {2, 5}, {5, 1}), ValueError);
  EXPECT_THROW(t.set_(source, -1, {2}, {1}), ValueError);
  EXPECT_THROW(t.set_(source, 0, {2}, {INT64_MAX}), ValueError);
  EXPECT_THROW(t.set_(source, INT64_MAX, {2}, {1}), ValueError);
  EXPECT_THROW(t.set_(source.to(kFloat)), TypeError);
  Tensor view = source.view({3, 4});
  view.set_(numbers({5}));
  EXPECT_FALSE(view._is_view());
  EXPECT_EQ(view[4].item<double>(), 4);
  t.set_();
  EXPECT_EQ(t.numel(), 0);
  for (int64_t n : {1, 1000}) {  // small tensors carry their memory in their own block
    Tensor a = numbers({n}), b = numbers({n});
    a.set_(b);
    b = Tensor();
    EXPECT_EQ(a[n - 1].item<double>(), double(n - 1));
  }
}

TEST(ReshapeInPlace, DetachMakesALeaf) {
  Tensor x = numbers({3}).requires_grad_(), y = x * 2;
  y.detach_();
  EXPECT_TRUE(y.is_leaf());
  EXPECT_FALSE(y.requires_grad());
  EXPECT_THROW(Tensor((x * 2).view({3})).detach_(), ValueError);
}

}  // namespace
}  // namespace vesta
