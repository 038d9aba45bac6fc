// Module::clone through Cloneable: deep, complete, and honest about what it cannot copy.
#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/nn.h"

namespace vesta::nn {
namespace {

constexpr uint64_t kSeed = 41;

struct NetImpl : Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    first = register_module("first", Linear(3, 4));
    norm = register_module("norm", LayerNorm(4));
    last = register_module("last", Linear(4, 3));
    scale = register_parameter("scale", ones({1}));
    seen = register_buffer("seen", zeros({}, kInt64));
  }
  Tensor forward(const Tensor& x) { return last(norm(first(x)).relu()) * scale; }
  Linear first{nullptr}, last{nullptr};
  LayerNorm norm{nullptr};
  Tensor scale, seen;
};
VESTA_MODULE(Net);

TEST(Clone, HasTheValuesButNotTheTensorsOfTheOriginal) {
  manual_seed(kSeed);
  Net net;
  net->seen.fill_(7);
  net->eval();
  net->first->weight.requires_grad_(false);
  const auto copy = module_cast<NetImpl>(net->clone());
  ASSERT_TRUE(copy);
  const Tensor x = randn({2, 3});
  test::expect_close(copy->forward(x), net(x), 0);
  EXPECT_EQ(copy->seen.item<int64_t>(), 7);
  EXPECT_FALSE(copy->is_training());
  EXPECT_FALSE(copy->first->is_training());
  EXPECT_FALSE(copy->first->weight.requires_grad());
  EXPECT_TRUE(copy->last->weight.requires_grad());
  const auto ours = net->named_parameters(), theirs = copy->named_parameters();
  ASSERT_EQ(ours.keys(), theirs.keys());
  for (const auto& item : ours) {
    EXPECT_FALSE(item->is_same(theirs[item.key()]));
    EXPECT_NE(item->data_ptr(), theirs[item.key()].data_ptr()) << item.key();
  }
  // The members of the copy are what is registered.
  EXPECT_TRUE(copy->first->weight.is_same(theirs["first.weight"]));
  {
    const NoGradGuard no_grad;
    for (Tensor p : copy->parameters()) p.zero_();
  }
  EXPECT_NE(net->last->weight.abs().sum().item<double>(), 0);
}

TEST(Clone, KeepsDtypes) {
  Net net;
  net->to(kFloat64);
  const auto copy = module_cast<NetImpl>(net->clone());
  EXPECT_EQ(copy->first->weight.dtype(), kFloat64);
  EXPECT_EQ(copy->seen.dtype(), kInt64);
}

TEST(Clone, LayersThatAreMadeFromOptionsNeedNoReset) {
  manual_seed(kSeed);
  Sequential net(Linear(4, 6), ReLU(), Dropout(0.3), GroupNorm(2, 6), PReLU(6),
                 Linear(LinearOptions(6, 2).bias(false)));
  net->eval();
  const Sequential copy(module_cast<SequentialImpl>(net->clone()));
  ASSERT_EQ(copy->size(), 6u);
  const Tensor x = randn({3, 4});
  test::expect_close(copy(x), net(x), 0);
  EXPECT_FALSE(copy->at<Linear>(0).weight.is_same(net->at<Linear>(0).weight));
  EXPECT_EQ(copy->at<Dropout>(2).options.p(), 0.3);
}

TEST(Clone, AnEmbeddingAroundATableGetsATableOfItsOwn) {
  const Tensor table = randn({4, 2});
  const Embedding embedding = Embedding::from_pretrained(table, /*freeze=*/true);
  const auto copy = module_cast<EmbeddingImpl>(embedding->clone());
  EXPECT_NE(copy->weight.data_ptr(), table.data_ptr());
  EXPECT_FALSE(copy->weight.requires_grad());
  test::expect_close(copy->weight, table, 0);
}

struct TiedImpl : Cloneable<TiedImpl> {
  TiedImpl() { reset(); }
  void reset() override {
    table = register_module("table", Embedding(5, 3));
    head = register_module("head", Linear(LinearOptions(3, 5).bias(false)));
    head->weight = head->replace_parameter("weight", table->weight);
  }
  Embedding table{nullptr};
  Linear head{nullptr};
};

TEST(Clone, WeightsThatResetTiesStayTied) {
  const auto tied = make_module<TiedImpl>();
  const auto copy = module_cast<TiedImpl>(tied->clone());
  EXPECT_TRUE(copy->head->weight.is_same(copy->table->weight));
  EXPECT_FALSE(copy->head->weight.is_same(tied->table->weight));
  EXPECT_EQ(copy->parameters().size(), 1u);
  test::expect_close(copy->table->weight, tied->table->weight, 0);
}

TEST(Clone, RefusesToUntieWhatWasTiedLater) {
  Net net;
  net->last->weight = net->last->replace_parameter("weight", net->first->weight);
  EXPECT_NE(test::error_of([&] {
              net->clone();
            }).find("'last.weight' and 'first.weight' are shared in the original only"),
            std::string::npos);
}

TEST(Clone, ModulesPushedLaterAreClonedAsWell) {
  struct OuterImpl : Cloneable<OuterImpl> {
    OuterImpl() { reset(); }
    void reset() override {
      body = register_module("body", Sequential());
      list = register_module("list", ModuleList());
      dict = register_module("dict", ModuleDict());
      extra = register_module("extra", ParameterDict());
    }
    Sequential body;
    ModuleList list;
    ModuleDict dict;
    ParameterDict extra;
  };
  manual_seed(kSeed);
  const auto outer = make_module<OuterImpl>();
  outer->body->push_back(Linear(2, 2));
  outer->body->push_back("act", Tanh());
  outer->list->push_back(Linear(2, 3));
  outer->dict->insert("x", make_module<LinearImpl>(1, 2));
  outer->extra->insert("scale", ones({2}).requires_grad_());
  const auto copy = module_cast<OuterImpl>(outer->clone());
  EXPECT_EQ(copy->named_parameters().keys(), outer->named_parameters().keys());
  const Tensor x = randn({3, 2});
  test::expect_close(copy->body(x), outer->body(x), 0);
  EXPECT_FALSE(copy->body->at<Linear>(0).weight.is_same(outer->body->at<Linear>(0).weight));
  EXPECT_TRUE(copy->extra["scale"].requires_grad());
}

TEST(Clone, OtherModulesSayThatTheyCannotBeCloned) {
  struct PlainImpl : Module {};
  struct WiderLinearImpl : LinearImpl {
    WiderLinearImpl() : LinearImpl(2, 2) {}
    int more = 0;
  };
  EXPECT_THROW(make_module<PlainImpl>()->clone(), NotImplementedError);
  EXPECT_THROW(make_module<WiderLinearImpl>()->clone(), NotImplementedError);
  EXPECT_THROW(Sequential(Linear(1, 1), make_module<WiderLinearImpl>())->clone(), NotImplementedError);
}

TEST(Clone, EveryRecurrentAndTransformerLayerComputesTheSame) {
  manual_seed(kSeed);
  const Tensor x = randn({4, 2, 6});
  LSTM lstm(LSTMOptions(6, 4).num_layers(2).bidirectional(true));
  const LSTM lstm_copy(module_cast<LSTMImpl>(lstm->clone()));
  test::expect_close(std::get<0>(lstm_copy(x)), std::get<0>(lstm(x)), 0);
  Transformer transformer(TransformerOptions(6, 2, 1, 2).dim_feedforward(8).dropout(0));
  const Transformer copy(module_cast<TransformerImpl>(transformer->clone()));
  test::expect_close(copy(x, x), transformer(x, x), 0);
  const auto ours = transformer->named_parameters();
  for (const auto& item : copy->named_parameters())
    EXPECT_FALSE(item->is_same(ours[item.key()])) << item.key();
}

}  // namespace
}  // namespace vesta::nn
