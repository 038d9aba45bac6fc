// save and load: tensors, lists, modules, optimisers, schedulers, loader states, archives in files, streams and functions.
#include "vesta/archive.h"

#include <sstream>

#include "base/file.h"
#include "file_testing.h"
#include "vesta/autograd.h"
#include "vesta/data.h"
#include "vesta/nn.h"
#include "vesta/optim.h"
#include "vesta/sample_gen.h"
#include "vesta/torch_file.h"

namespace vesta {
namespace {

struct NetImpl : nn::Module {
  NetImpl()
      : first(register_module("first", nn::Linear(3, 5))), last(register_module("last", nn::Linear(5, 2))) {
    register_buffer("count", zeros({}, TensorOptions(kInt64)));
    register_buffer("scratch", zeros({2}), false);
  }
  Tensor forward(const Tensor& x) { return last(relu(first(x))); }
  nn::Linear first, last;
};
VESTA_MODULE(Net);

class Archives : public FileTest {};

void train(Net& net, optim::Optimizer& optimizer, const Tensor& x, int steps) {
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    net->forward(x).pow(2).sum().backward();
    optimizer.step();
  }
}

TEST_F(Archives, ATensorAndAListOfThemAreReadBackThroughEverySink) {
  SampleGen gen(kFloat32, 5);
  const Tensor t = gen.t({3, 4});
  const std::vector<Tensor> list = {gen.t({2}), gen.t({4, 4}).t(), gen.make({3}, {}, kInt64)};
  save(t, path("t.pt"));
  save(list, path("list.pt"));
  Tensor back;
  load(back, path("t.pt"));
  EXPECT_TRUE(same_elements(t, back));
  std::vector<Tensor> back_list;
  load(back_list, path("list.pt"));
  ASSERT_EQ(back_list.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_elements(list[i], back_list[i]));

  std::stringstream stream;
  save(t, stream);
  const std::string bytes = stream.str();
  EXPECT_EQ(bytes, read_all(path("t.pt")));
  Tensor from_stream, from_memory, from_function;
  load(from_stream, stream);
  load(from_memory, bytes.data(), bytes.size());
  load(
      from_function,
      [&](uint64_t at, void* data, size_t n) {
        std::memcpy(data, bytes.data() + at, n);
        return n;
      },
      [&] { return bytes.size(); });
  for (auto& other : {from_stream, from_memory, from_function}) EXPECT_TRUE(same_elements(t, other));
  std::string written;
  save(t, [&](const void* data, size_t n) {
    written.append(static_cast<const char*>(data), n);
    return n;
  });
  EXPECT_EQ(written, bytes);
}

TEST_F(Archives, LoadingIntoADefinedTensorKeepsItsIdentity) {
  save(full({2, 3}, 4.0), path("t.pt"));
  Tensor target = zeros({7}).requires_grad_();
  const Tensor same = target;
  load(target, path("t.pt"));
  EXPECT_TRUE(target.is_same(same));
  EXPECT_TRUE(target.requires_grad());
  EXPECT_EQ(same.sizes().vec(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(same.detach().data_ptr<float>()[5], 4.0f);
}

TEST_F(Archives, AModuleIsReadBackAndItsFileIsAStateDict) {
  manual_seed(1);
  Net net;
  net->named_buffers()["count"].fill_(Scalar(9));
  save(net, path("net.pt"));
  const IValue root = load_torch(path("net.pt"));
  std::vector<std::string> names;
  for (auto& [key, value] : root.toDict()) names.push_back(key.toStringRef());
  EXPECT_EQ(names, net->state_dict().keys());
  EXPECT_FALSE(root.toDict().contains("scratch"));
  Net other;
  const Tensor weight = other->first->weight;
  load(other, path("net.pt"));
  for (auto& item : net->state_dict())
    EXPECT_TRUE(same_elements(*item, other->state_dict()[item.key()])) << item.key();
  EXPECT_TRUE(weight.is_same(other->first->weight));
  nn::Linear wrong(3, 4);
  const std::string text = message_as<ValueError>([&] { load(wrong, path("net.pt")); });
  EXPECT_SAYS(text, "missing: weight");
  EXPECT_SAYS(text, "unexpected: ");
}

TEST_F(Archives, AModuleOfNestedObjectsIsRead) {
  // As libtorch's torch::save writes it: a dict a submodule, with attributes that are no tensors.
  Net net;
  GenericDict first{{"training", true}, {"weight", net->first->weight}, {"bias", net->first->bias}};
  GenericDict last{{"weight", net->last->weight}, {"bias", net->last->bias}, {"hook", nullptr}};
  save_torch(
      path("net.pt"),
      GenericDict{
          {"training", true}, {"count", zeros({}, TensorOptions(kInt64))}, {"first", first}, {"last", last}});
  Net other;
  load(other, path("net.pt"));
  EXPECT_TRUE(same_elements(other->last->weight, net->last->weight));
}

TEST_F(Archives, TrainingGoesOnAfterLoadingAsIfNothingHadHappened) {
  manual_seed(2);
  SampleGen gen(kFloat32, 3);
  const Tensor x = gen.t({8, 3});
  Net net;
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(0.01).amsgrad(true));
  train(net, optimizer, x, 3);
  static_cast<optim::AdamWOptions&>(optimizer.param_groups()[0].options()).set_lr(0.002);
  save(net, path("net.pt"));
  save(optimizer, path("optimizer.pt"));
  Net copy;
  optim::AdamW resumed(copy->parameters(), optim::AdamWOptions(0.5).amsgrad(true));
  load(copy, path("net.pt"));
  load(resumed, path("optimizer.pt"));
  EXPECT_EQ(resumed.param_groups()[0].options().get_lr(), 0.002);
  train(net, optimizer, x, 3);
  train(copy, resumed, x, 3);
  for (size_t i = 0; i < net->parameters().size(); ++i)
    EXPECT_TRUE(same_elements(net->parameters()[i], copy->parameters()[i])) << i;
}

TEST_F(Archives, TheStateOfAPythonOptimiserIsRead) {
  // The value of torch.optim.Adam(...).state_dict() after one step, written by torch.save.
  const Tensor average = full({2}, 0.5), square = full({2}, 0.25);
  const GenericDict slots{{"step", full({}, 1.0)}, {"exp_avg", average}, {"exp_avg_sq", square}};
  const GenericDict group{{"lr", 0.003},
                          {"betas", IValue::tuple({0.8, 0.9})},
                          {"eps", 1e-7},
                          {"weight_decay", 0},
                          {"amsgrad", false},
                          {"maximize", false},
                          {"foreach", nullptr},
                          {"capturable", false},
                          {"params", IValue::list({0, 1})}};
  save_torch(path("adam.pt"),
             GenericDict{{"state", GenericDict{{1, slots}}}, {"param_groups", IValue::list({group})}});
  const Tensor a = ones({3}).requires_grad_(), b = ones({2}).requires_grad_();
  optim::Adam adam({a, b}, optim::AdamOptions(1.0));
  load(adam, path("adam.pt"));
  auto& options = static_cast<optim::AdamOptions&>(adam.param_groups()[0].options());
  EXPECT_EQ(options.lr(), 0.003);
  EXPECT_EQ(options.betas(), std::make_tuple(0.8, 0.9));
  EXPECT_EQ(options.eps(), 1e-7);
  const auto state = adam.state_dict();
  EXPECT_TRUE(same_elements(state["state.0.1.exp_avg"], average));
  EXPECT_TRUE(same_elements(state["state.0.1.exp_avg_sq"], square));
  EXPECT_EQ(state["state.0.1.step"].item<double>(), 1.0);
  EXPECT_FALSE(state.contains("state.0.0.exp_avg")) << "a parameter without a step";
}

TEST_F(Archives, SchedulersLoadersAndValuesAreReadBack) {
  const Tensor a = ones({3}).requires_grad_();
  optim::SGD sgd({a}, optim::SGDOptions(1.0));
  optim::StepLR schedule(sgd, 2, 0.5);
  for (int i = 0; i < 5; ++i) schedule.step();
  save(schedule, path("schedule.pt"));
  optim::SGD other_sgd({a}, optim::SGDOptions(1.0));
  optim::StepLR other(other_sgd, 2, 0.5);
  load(other, path("schedule.pt"));
  EXPECT_EQ(other.last_epoch(), 5);
  const data::DataLoaderState state{UINT64_MAX, 3, 17};
  save(state, path("loader.pt"));
  data::DataLoaderState back;
  load(back, path("loader.pt"));
  EXPECT_TRUE(back.seed == UINT64_MAX && back.epoch == 3 && back.position == 17);
  IValue value;
  save(IValue::list({1, "x"}), path("value.pt"));
  load(value, path("value.pt"));
  EXPECT_EQ(value.str(), "[1, 'x']");
  OrderedDict<std::string, Tensor> dict, back_dict;
  dict.insert("w", a);
  save(dict, path("dict.pt"));
  load(back_dict, path("dict.pt"));
  EXPECT_TRUE(same_elements(back_dict["w"], a));
}

// A type with functions of its own.
struct Counter {
  int64_t count = 0;
  void save(serialize::OutputArchive& archive) const { archive.write("count", count); }
  void load(serialize::InputArchive& archive) {
    IValue v;
    archive.read("count", v);
    count = v.toInt();
  }
};

TEST_F(Archives, KeysNestAndMissingOnesAreNamed) {
  serialize::OutputArchive out, inner;
  inner.write("w", ones({2}));
  out.write("inner", inner);
  out.write("n", 5);
  out.write("undefined", Tensor());
  EXPECT_SAYS(message_as<ValueError>([&] { out.write("n", 6); }), "'n' is written twice");
  out.save_to(path("a.pt"));
  serialize::InputArchive in, nested;
  in.load_from(path("a.pt"));
  EXPECT_EQ(in.keys(), (std::vector<std::string>{"inner", "n", "undefined"}));
  in.read("inner", nested);
  Tensor w, u = ones({1});
  nested.read("w", w);
  EXPECT_EQ(w.numel(), 2);
  in.read("undefined", u);
  EXPECT_FALSE(u.defined());
  EXPECT_FALSE(in.try_read("other", w));
  EXPECT_FALSE(in.try_read("n", w));
  EXPECT_SAYS(message_as<ValueError>([&] { in.read("other", w); }), "'other' is missing");
  EXPECT_SAYS(message_as<ValueError>([&] { in.read("n", w); }), "'n' holds a int");
  Counter counter{41}, back;
  save(counter, path("c.pt"));
  load(back, path("c.pt"));
  EXPECT_EQ(back.count, 41);
}

TEST_F(Archives, AFullDiskAndABrokenStreamAreReported) {
  std::ofstream full("/dev/full");
  ASSERT_TRUE(full.good());
  EXPECT_SAYS(message_as<IoError>([&] { save(ones({100000}), full); }), "the stream did not take");
  EXPECT_SAYS(message_as<IoError>([&] { save(ones({2}), [](const void*, size_t) { return size_t{0}; }); }),
              "the writer function took 0");
  Tensor t;
  EXPECT_SAYS(message_as<IoError>([&] {
                load(
                    t, [](uint64_t, void*, size_t) { return size_t{1}; }, [] { return size_t{10}; });
              }),
              "gave 1 of 10 bytes");
  EXPECT_SAYS(message_as<IoError>([&] { save(ones({2}), path("none/a.pt")); }), "No such file or directory");
  EXPECT_SAYS(message_as<NotImplementedError>([&] { load(t, path("x"), Device("cuda")); }),
              "expected the CPU");
}

}  // namespace
}  // namespace vesta
