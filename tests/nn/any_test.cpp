// AnyValue, AnyModule, and Sequential over modules of any signature.
#include "support/expect.h"
#include "vesta/nn.h"

namespace vesta::nn {
namespace {

struct CountImpl : Module {
  explicit CountImpl(int start = 0) : start_(start) {}
  int forward(int x, const std::string& text) { return start_ + x + int(text.size()); }
  int start_;
};
VESTA_MODULE(Count);

struct DefaultsImpl : Module {
  int forward(int a, int b = 2, double c = 3.0) { return a + b * 10 + int(c) * 100; }
  VESTA_FORWARD_DEFAULTS({1, AnyValue(2)}, {2, AnyValue(3.0)})
};

TEST(AnyValue, GivesBackExactlyTheTypeThatWasPutIn) {
  AnyValue value(5);
  EXPECT_EQ(value.get<int>(), 5);
  EXPECT_EQ(value.try_get<float>(), nullptr);
  EXPECT_THROW(value.get<float>(), TypeError);
  EXPECT_EQ(value.type_info(), typeid(int));
  AnyValue text(std::string("abc"));
  *text.try_get<std::string>() += "d";
  EXPECT_EQ(text.get<std::string>(), "abcd");
}

TEST(AnyModule, CallsForwardWithValuesOfAnyTypes) {
  AnyModule any(Count(3));
  EXPECT_EQ(any.forward<int>(4, std::string("xy")), 9);
  EXPECT_NE(test::error_of([&] {
              any.forward<int>(4.0, std::string("xy"));
            }).find("argument #0 of type int, got double"),
            std::string::npos);
  EXPECT_NE(test::error_of([&] { any.forward<int>(4); }).find("expected 2 arguments, got 1"),
            std::string::npos);
  EXPECT_THROW(any.forward<double>(4, std::string("xy")), TypeError);
  EXPECT_EQ(any.get<Count>()->start_, 3);
  EXPECT_EQ(any.get<CountImpl>().start_, 3);
  EXPECT_EQ(any.ptr<CountImpl>()->start_, 3);
  EXPECT_THROW(any.get<LinearImpl>(), TypeError);
  EXPECT_EQ(any.type_info(), typeid(CountImpl));
}

TEST(AnyModule, TakesModulesByValueByPointerAndByHolder) {
  EXPECT_EQ(AnyModule(CountImpl(1)).forward<int>(1, std::string()), 2);
  EXPECT_EQ(AnyModule(make_module<CountImpl>(2)).forward<int>(1, std::string()), 3);
  AnyModule empty;
  EXPECT_TRUE(empty.is_empty());
  EXPECT_EQ(test::error_of([&] { empty.forward(ones({1})); }),
            "AnyModule: cannot call forward on an empty module");
  empty = Count(4);
  EXPECT_EQ(empty.forward<int>(1, std::string()), 5);
}

TEST(AnyModule, FillsInTheDefaultsOfForward) {
  AnyModule any(make_module<DefaultsImpl>());
  EXPECT_EQ(any.forward<int>(1), 321);
  EXPECT_EQ(any.forward<int>(1, 5), 351);
  EXPECT_EQ(any.forward<int>(1, 5, 7.0), 751);
  EXPECT_NE(test::error_of([&] { any.forward<int>(); }).find("expected 1 to 3 arguments, got 0"),
            std::string::npos);
}

TEST(Sequential, PassesValuesOfOtherTypesFromModuleToModule) {
  struct SplitImpl : Module {
    std::tuple<Tensor, int> forward(const Tensor& x) { return {x * 2, 3}; }
  };
  struct JoinImpl : Module {
    Tensor forward(std::tuple<Tensor, int> both) { return std::get<0>(both) * std::get<1>(both); }
  };
  Sequential net(Identity(), make_module<SplitImpl>(), make_module<JoinImpl>(), ReLU());
  test::expect_close(net(full({2}, 1.5)), {9, 9}, 0);
  Sequential numbers(Count(1), make_module<DefaultsImpl>());
  EXPECT_EQ(numbers->forward<int>(2, std::string("abc")), 326);
  EXPECT_THROW(numbers->forward<double>(2, std::string("abc")), TypeError);
  Sequential wrong(ReLU(), Count(1));
  EXPECT_THROW(wrong(ones({1})), TypeError);
  Sequential recurrent(Linear(3, 4), GRU(4, 5));
  const auto [out, state] = recurrent->forward<std::tuple<Tensor, Tensor>>(ones({2, 1, 3}));
  EXPECT_EQ(out.sizes(), IntArrayRef({2, 1, 5}));
}

TEST(Sequential, NestsExtendsAndTakesNames) {
  Sequential inner(Linear(2, 2), Tanh());
  Sequential outer(inner, Linear(2, 1));
  EXPECT_EQ(outer(ones({3, 2})).sizes(), IntArrayRef({3, 1}));
  EXPECT_EQ(outer->named_parameters().keys(),
            (std::vector<std::string>{"0.0.weight", "0.0.bias", "1.weight", "1.bias"}));
  Sequential named({{"a", Linear(2, 2)}, {"b", ReLU()}});
  named->extend(*inner);
  EXPECT_EQ(named->named_children().keys(), (std::vector<std::string>{"a", "b", "2", "3"}));
  OrderedDict<std::string, AnyModule> dict{{"x", Linear(2, 3)}, {"y", ReLU()}};
  EXPECT_EQ(Sequential(dict)->named_children().keys(), (std::vector<std::string>{"x", "y"}));
}

}  // namespace
}  // namespace vesta::nn
