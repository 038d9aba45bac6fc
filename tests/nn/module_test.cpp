// Module: registration, traversal, state dicts, conversion, printing.
#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/nn.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

using test::error_of;

struct InnerImpl : Module {
  explicit InnerImpl(int64_t width) {
    weight = register_parameter("weight", ones({width}));
    count = register_buffer("count", zeros({}, kInt64));
    scratch = register_buffer("scratch", zeros({2}), /*persistent=*/false);
  }
  Tensor forward(const Tensor& x) { return x * weight; }
  Tensor weight, count, scratch;
};
VESTA_MODULE(Inner);

struct OuterImpl : Module {
  OuterImpl() : first(register_module("first", Inner(3))), second(register_module("second", Inner(3))) {
    scale = register_parameter("scale", full({1}, 2.0));
    none = register_parameter("none", {}, false);
  }
  Tensor forward(const Tensor& x) { return second(first(x)) * scale; }
  Inner first, second;
  Tensor scale, none;
};
VESTA_MODULE(Outer);

TEST(Module, ParametersAreListedByDottedNameOwnOnesFirst) {
  Outer outer;
  EXPECT_EQ(outer->named_parameters().keys(),
            (std::vector<std::string>{"scale", "first.weight", "second.weight"}));
  EXPECT_EQ(outer->named_parameters(false).keys(), std::vector<std::string>{"scale"});
  EXPECT_EQ(outer->parameters().size(), 3u);
  EXPECT_TRUE(outer->parameters()[1].is_same(outer->first->weight));
  EXPECT_TRUE(outer->first->weight.requires_grad());
  EXPECT_EQ(outer->named_buffers().keys(),
            (std::vector<std::string>{"first.count", "first.scratch", "second.count", "second.scratch"}));
}

TEST(Module, ModulesAreVisitedDepthFirst) {
  Outer outer;
  EXPECT_EQ(outer->named_modules().keys(), (std::vector<std::string>{"", "first", "second"}));
  EXPECT_EQ(outer->modules(false).size(), 2u);
  EXPECT_EQ(outer->named_children().keys(), (std::vector<std::string>{"first", "second"}));
  std::string visited;
  outer->apply([&](const std::string& name, Module&) { visited += name + ";"; }, "net");
  EXPECT_EQ(visited, "net;net.first;net.second;");
  EXPECT_EQ(outer->children()[0]->as<Inner>(), outer->first.get());
  EXPECT_EQ(outer->children()[0]->as<Outer>(), nullptr);
}

TEST(Module, AModuleRegisteredTwiceIsListedOnce) {
  struct Shared : Module {
    Inner inner{4};
    Shared() {
      register_module("a", inner);
      register_module("b", inner);
    }
  };
  auto shared = make_module<Shared>();
  EXPECT_EQ(shared->named_parameters().keys(), std::vector<std::string>{"a.weight"});
  EXPECT_EQ(shared->modules().size(), 2u);
  // As in PyTorch, the state has every name, so that it loads into an untied model.
  EXPECT_EQ(shared->state_dict().keys(),
            (std::vector<std::string>{"a.weight", "a.count", "b.weight", "b.count"}));
}

TEST(Module, TiedWeightsAreOneParameter) {
  Outer outer;
  outer->second->weight = outer->second->replace_parameter("weight", outer->first->weight);
  EXPECT_EQ(outer->named_parameters().keys(), (std::vector<std::string>{"scale", "first.weight"}));
  EXPECT_EQ(outer->state_dict().size(), 5u);
  outer(ones({3})).sum().backward();
  // d/dw of 2 w^2 x summed at w = 1, x = 1.
  EXPECT_EQ((outer->first->weight.grad().accessor<float, 1>()[0]), 4);
}

TEST(Module, BadNamesAreRefused) {
  InnerImpl inner(1);
  EXPECT_EQ(error_of([&] { inner.register_parameter("", ones({1})); }),
            "register_parameter: the name must not be empty");
  EXPECT_EQ(error_of([&] { inner.register_parameter("a.b", ones({1})); }),
            "register_parameter: the name must not contain a dot, got 'a.b'");
  EXPECT_EQ(error_of([&] { inner.register_parameter("weight", ones({1})); }),
            "parameter 'weight' already defined");
  EXPECT_NE(error_of([&] { inner.register_buffer("weight", ones({1})); }).find("already a parameter"),
            std::string::npos);
  EXPECT_NE(error_of([&] { inner.register_module("x", ModulePtr<Module>()); }).find("'x' is null"),
            std::string::npos);
  Inner empty(nullptr);
  EXPECT_TRUE(empty.is_empty());
  EXPECT_EQ(error_of([&] { empty->parameters(); }), "ModuleHolder: this holder is empty");
}

TEST(Module, ModulesAreFreedWithTheirLastHolder) {
  static int alive;
  struct CountedImpl : Module {
    CountedImpl() { ++alive; }
    ~CountedImpl() override { --alive; }
  };
  alive = 0;
  {
    ModuleHolder<CountedImpl> a, b = a;
    ModuleList list;
    list->push_back(a);
    a = ModuleHolder<CountedImpl>(nullptr);
    EXPECT_EQ(alive, 1);
    ModulePtr<Module> base = b.ptr();
    b = ModuleHolder<CountedImpl>(nullptr);
    list = ModuleList();
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Module, TrainAndEvalReachAllDescendants) {
  Outer outer;
  EXPECT_TRUE(outer->second->is_training());
  outer->eval();
  EXPECT_FALSE(outer->is_training());
  EXPECT_FALSE(outer->second->is_training());
  outer->train();
  EXPECT_TRUE(outer->second->is_training());
}

TEST(Module, AStateDictRestoresAnotherModuleInPlace) {
  Outer a, b;
  {
    NoGradGuard no_grad;
    for (Tensor& p : a->parameters()) p.fill_(7);
    a->first->count.fill_(5);
  }
  const Tensor weight = b->first->weight;
  const auto found = b->load_state_dict(a->state_dict());
  EXPECT_TRUE(found.empty());
  EXPECT_TRUE(b->parameters()[1].is_same(weight));
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_EQ((weight.accessor<float, 1>()[2]), 7);
  EXPECT_EQ(b->first->count.item<int64_t>(), 5);
  EXPECT_FALSE(a->state_dict().contains("first.scratch"));
  // The dict's tensors alias the module's.
  a->state_dict()["scale"].fill_(9);
  EXPECT_EQ(a->scale.item<float>(), 9);
}

TEST(Module, AStateDictThatDoesNotFitIsRefusedWithAllNamesAndChangesNothing) {
  Outer outer;
  StateDict dict = outer->state_dict();
  dict.erase("scale");
  dict.erase("second.count");
  dict.insert("third.weight", ones({2}));
  dict["first.weight"] = ones({2, 2});
  dict["second.weight"] = full({3}, 5.0);
  EXPECT_EQ(error_of([&] { outer->load_state_dict(dict); }).substr(0, 20), "load_state_dict: the");
  const std::string message = error_of([&] { outer->load_state_dict(dict); });
  EXPECT_NE(message.find("missing: scale; second.count"), std::string::npos) << message;
  EXPECT_NE(message.find("unexpected: third.weight"), std::string::npos) << message;
  EXPECT_NE(message.find("wrong shape: first.weight: expected [3], got [2, 2]"), std::string::npos)
      << message;
  EXPECT_EQ((outer->second->weight.accessor<float, 1>()[0]), 1);
  // Shapes must fit even where names need not.
  EXPECT_THROW(outer->load_state_dict(dict, false), ValueError);
  dict.erase("first.weight");
  const auto found = outer->load_state_dict(dict, false);
  EXPECT_EQ(found.missing, (std::vector<std::string>{"scale", "first.weight", "second.count"}));
  EXPECT_EQ(found.unexpected, std::vector<std::string>{"third.weight"});
  EXPECT_EQ((outer->second->weight.accessor<float, 1>()[0]), 5);
}

TEST(Module, LoadingConvertsTheDtype) {
  Inner inner(2);
  StateDict dict = inner->state_dict();
  dict["weight"] = full({2}, 1.5, kFloat64);
  inner->load_state_dict(dict);
  EXPECT_EQ(inner->weight.dtype(), kFloat32);
  EXPECT_EQ((inner->weight.accessor<float, 1>()[1]), 1.5f);
}

TEST(Module, ConversionKeepsTheTensorsAndConvertsGradients) {
  Outer outer;
  outer(ones({3})).sum().backward();
  const Tensor weight = outer->first->weight;
  outer->to(kFloat64);
  EXPECT_TRUE(outer->parameters()[1].is_same(weight));
  EXPECT_EQ(weight.dtype(), kFloat64);
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_EQ(weight.grad().dtype(), kFloat64);
  EXPECT_EQ(outer->first->count.dtype(), kInt64);
  EXPECT_EQ(outer->first->scratch.dtype(), kFloat64);
  EXPECT_EQ(outer(ones({3}, kFloat64)).dtype(), kFloat64);
  EXPECT_THROW(outer->to(kInt64), TypeError);
}

TEST(Module, ZeroGradDropsOrZeroes) {
  Outer outer;
  outer(ones({3})).sum().backward();
  const Tensor grad = outer->scale.grad();
  outer->zero_grad(/*set_to_none=*/false);
  EXPECT_TRUE(outer->scale.grad().is_same(grad));
  EXPECT_EQ(grad.item<float>(), 0);
  outer->zero_grad();
  EXPECT_FALSE(outer->scale.grad().defined());
}

TEST(Module, PrintingShowsTheTree) {
  struct NetImpl : Module {
    NetImpl()
        : Module("Net"),
          body(register_module("body",
                               Sequential(Linear(2, 3), ReLU(), Linear(LinearOptions(3, 1).bias(false))))) {}
    Sequential body;
  };
  std::ostringstream out;
  out << NetImpl();
  EXPECT_EQ(out.str(),
            "Net(\n"
            "  (body): vesta::nn::Sequential(\n"
            "    (0): vesta::nn::Linear(in_features=2, out_features=3, bias=true)\n"
            "    (1): vesta::nn::ReLU()\n"
            "    (2): vesta::nn::Linear(in_features=3, out_features=1, bias=false)\n"
            "  )\n"
            ")");
  EXPECT_EQ(Outer()->name().substr(Outer()->name().size() - 9), "OuterImpl");
}

TEST(OrderedDict, KeepsOrderAndFindsAmongMany) {
  OrderedDict<std::string, int> dict("entry");
  for (int i = 0; i < 100; ++i) dict.insert("k" + std::to_string(i), i);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(dict["k" + std::to_string(i)], i);
  dict.erase("k50");
  EXPECT_EQ(dict.find("k50"), nullptr);
  EXPECT_EQ(dict["k51"], 51);
  EXPECT_EQ(dict.items()[50].key(), "k51");
  EXPECT_EQ(error_of([&] { dict["nine"]; }), "entry 'nine' is not defined");
  EXPECT_EQ(error_of([&] { dict.insert("k7", 0); }), "entry 'k7' already defined");
}

TEST(OrderedDict, GivesEntriesByPositionAndTakesAnothersEntries) {
  OrderedDict<std::string, int> dict{{"a", 1}, {"b", 2}}, more{{"c", 3}, {"a", 4}};
  EXPECT_EQ(dict[1].key(), "b");
  EXPECT_EQ(dict[size_t(0)].value(), 1);
  EXPECT_THROW(dict[2], IndexError);
  EXPECT_EQ(error_of([&] { dict.update(more); }), "Key 'a' already defined");
  EXPECT_EQ(dict.keys(), (std::vector<std::string>{"a", "b", "c"}));
  OrderedDict<std::string, int> none;
  EXPECT_EQ(none.key_description(), "Key");
  EXPECT_THROW(none.front(), ValueError);
  EXPECT_THROW(none.back(), ValueError);
}

// An owner that is no ModulePtr, as std::shared_ptr is in the libtorch entry.
struct Owner : ModuleKeeper {
  explicit Owner(std::shared_ptr<InnerImpl> m) : module(std::move(m)) {}
  std::shared_ptr<InnerImpl> module;
};

TEST(ModuleKeeper, KeepsAForeignModuleUntilTheLastPointerGoes) {
  auto foreign = std::make_shared<InnerImpl>(2);
  std::weak_ptr<InnerImpl> watch = foreign;
  auto first = ModulePtr<InnerImpl>::share(foreign.get());
  first->keep_by(std::make_unique<Owner>(foreign));
  EXPECT_NE(first->keeper(), nullptr);
  foreign.reset();
  ModulePtr<InnerImpl> second = first;
  first = nullptr;
  ASSERT_FALSE(watch.expired());
  // Released and taken again, while its owner holds it.
  foreign = watch.lock();
  second = nullptr;
  EXPECT_EQ(foreign->keeper(), nullptr);
  second = ModulePtr<InnerImpl>::share(foreign.get());
  second->keep_by(std::make_unique<Owner>(foreign));
  foreign.reset();
  EXPECT_FALSE(watch.expired());
  second = nullptr;
  EXPECT_TRUE(watch.expired());
}

TEST(Module, ListsItsModulesAsPointersThatKeepThem) {
  std::vector<ModulePtr<Module>> all;
  {
    Outer outer;
    all = outer->modules();
  }
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1]->as<Inner>()->weight.numel(), 3);
}

TEST(Module, PrintsUnderAnotherNamespaceWhereOneIsSet) {
  std::ostringstream own, other;
  own << Sequential(ReLU());
  set_printed_namespace("torch");
  other << Sequential(ReLU());
  set_printed_namespace(nullptr);
  EXPECT_EQ(own.str(), "vesta::nn::Sequential(\n  (0): vesta::nn::ReLU()\n)");
  EXPECT_EQ(other.str(), "torch::nn::Sequential(\n  (0): torch::nn::ReLU()\n)");
}

}  // namespace
}  // namespace vesta::nn
