// ModuleList, ModuleDict, ParameterList, ParameterDict, Functional.
#include <sstream>

#include "support/expect.h"
#include "vesta/indexing.h"
#include "vesta/nn.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

TEST(ModuleList, ExtendsByAnyRowOfModulesAndGivesTypedPointers) {
  ModuleList list;
  list->extend(std::vector<Linear>{Linear(2, 3), Linear(3, 4)});
  list->extend(std::vector<ModulePtr<ReLUImpl>>{make_module<ReLUImpl>()});
  ASSERT_EQ(list->size(), 3u);
  ModulePtr<LinearImpl> second = list->ptr<LinearImpl>(1);
  EXPECT_EQ(second->options.out_features(), 4);
  EXPECT_EQ(second.get(), list[1].get());
  EXPECT_THROW(list->ptr<LinearImpl>(2), TypeError);
  Sequential row(Linear(2, 2), ReLU());
  EXPECT_EQ(row->ptr<ReLUImpl>(1).get(), row[1].get());
}

TEST(Sequential, CallsUnpoolingWithItsLastArgumentLeftOut) {
  Sequential row(MaxUnpool1d(3));
  // Values go to the places from which pooling took them.
  Tensor values = arange(1, 4).to(kFloat).view({1, 1, 3}), places = arange(1, 6, 2).view({1, 1, 3});
  Tensor expected = zeros({1, 1, 9});
  for (int64_t k = 0; k < 3; ++k) expected.index_put_({0, 0, 2 * k + 1}, double(k + 1));
  EXPECT_TRUE(equal(row->forward(values, places), expected));
}

TEST(Braces, OfOneNumberMeanThatNumberForAllDims) {
  EXPECT_EQ(MaxPool2d{2}(zeros({1, 1, 4, 6})).sizes(), IntArrayRef({1, 1, 2, 3}));
  EXPECT_EQ(AvgPool3d{2}(zeros({1, 1, 4, 6, 2})).sizes(), IntArrayRef({1, 1, 2, 3, 1}));
  EXPECT_EQ(AdaptiveAvgPool2d{1}(zeros({1, 1, 4, 6})).sizes(), IntArrayRef({1, 1, 1, 1}));
  EXPECT_EQ(Unfold{2}(zeros({1, 1, 3, 3})).sizes(), IntArrayRef({1, 4, 4}));
  EXPECT_EQ(ReflectionPad2d{1}(zeros({1, 1, 3, 4})).sizes(), IntArrayRef({1, 1, 5, 6}));
  EXPECT_EQ(
      MaxUnpool3d { 3 } -> options.kernel_size()->at(2), 3);
  EXPECT_THROW((ReflectionPad2d{1, 2, 3}), ValueError);
}

TEST(ModuleList, InsertRenumbersTheRest) {
  ModuleList list(Linear(1, 1), Tanh());
  list->insert(1, ReLU());
  EXPECT_EQ(list->size(), 3u);
  EXPECT_NE(list->ptr(1)->as<ReLU>(), nullptr);
  EXPECT_NE(list->ptr(2)->as<Tanh>(), nullptr);
  EXPECT_EQ(list->named_children().keys(), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_THROW(list->insert(4, ReLU()), IndexError);
  EXPECT_THROW(list->at<Linear>(1), TypeError);
}

TEST(ModuleDict, KeepsOrderReplacesAndRemoves) {
  ModuleDict dict;
  dict->insert("b", make_module<LinearImpl>(1, 2));
  dict->insert("a", make_module<ReLUImpl>());
  EXPECT_EQ(dict->keys(), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(dict->named_parameters().keys(), (std::vector<std::string>{"b.weight", "b.bias"}));
  dict->insert("b", make_module<TanhImpl>());
  EXPECT_EQ(dict->keys(), (std::vector<std::string>{"b", "a"}));
  EXPECT_TRUE(dict->parameters().empty());
  EXPECT_NE(dict["b"]->as<Tanh>(), nullptr);
  EXPECT_THROW(dict->at<Linear>("b"), TypeError);
  const auto removed = dict->pop("b");
  EXPECT_NE(removed->as<Tanh>(), nullptr);
  EXPECT_FALSE(dict->contains("b"));
  EXPECT_EQ(dict->named_children().keys(), std::vector<std::string>{"a"});
  EXPECT_EQ(test::error_of([&] { dict["b"]; }), "module 'b' is not defined");
  dict->update(*dict);
  EXPECT_EQ(dict->size(), 1u);
  dict->clear();
  EXPECT_TRUE(dict->empty());
  EXPECT_TRUE(dict->children().empty());
}

TEST(ParameterList, RegistersTensorsAsTheyAre) {
  ParameterList list(ones({2}).requires_grad_(), zeros({3}));
  EXPECT_EQ(list->size(), 2u);
  EXPECT_TRUE(list->at(0).requires_grad());
  EXPECT_FALSE(list[1].requires_grad());
  list->extend(*list);
  EXPECT_EQ(list->size(), 4u);
  EXPECT_EQ(list->parameters().size(), 2u);  // the same tensors under more names
  EXPECT_THROW(list->at(4), IndexError);
  std::ostringstream text;
  text << *list;
  EXPECT_NE(text.str().find("(0): Parameter containing: [CPUFloatType of size [2]]"), std::string::npos);
}

TEST(ParameterDict, KeepsOrderReplacesAndRemoves) {
  ParameterDict dict;
  dict->insert("w", ones({2}).requires_grad_());
  dict->insert("b", zeros({1}));
  dict->insert("w", full({3}, 2.0));
  EXPECT_EQ(dict->keys(), (std::vector<std::string>{"w", "b"}));
  EXPECT_EQ(dict["w"].size(0), 3);
  EXPECT_EQ(dict->pop("w").size(0), 3);
  EXPECT_FALSE(dict->contains("w"));
  EXPECT_THROW(dict["w"], ValueError);
  EXPECT_EQ(dict->named_parameters().keys(), std::vector<std::string>{"b"});
}

TEST(Functional, PutsAFunctionIntoASequential) {
  Sequential net(Functional([](Tensor x) { return x * 2; }),
                 Functional(functional::elu, functional::ELUFuncOptions().alpha(0.5)));
  test::expect_close(net(full({1}, -1.0)), {0.5 * (std::exp(-2.0) - 1)}, 1e-6);
  EXPECT_THROW(Functional(FunctionalImpl::Function()), ValueError);
}

}  // namespace
}  // namespace vesta::nn
