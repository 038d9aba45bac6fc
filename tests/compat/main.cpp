// A small libtorch program: a data set of points in two spirals, a network with a block of its own, custom autograd
// functions, training with SGD, Adam and an optimiser of its own, random numbers, saving, loading, indexing. It checks
// its own results and returns 1 where one is wrong. Nothing in it is Vesta's.
#include <torch/torch.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace {

int failures = 0;
void expect(bool right, const std::string& what) {
  if (right) return;
  std::cerr << "wrong: " << what << '\n';
  ++failures;
}

// Points of two arms; the target is the arm.
class Spirals : public torch::data::datasets::Dataset<Spirals> {
 public:
  explicit Spirals(size_t count) : count_(count) {}
  torch::data::Example<> get(size_t index) override {
    const int64_t arm = index % 2;
    const double t = 0.5 + 2.5 * static_cast<double>(index) / static_cast<double>(count_);
    const double angle = t + 3.141592653589793 * static_cast<double>(arm);
    auto point = torch::tensor({t * std::cos(angle), t * std::sin(angle)}, torch::kFloat32);
    return {point, torch::tensor(arm, torch::kInt64)};
  }
  torch::optional<size_t> size() const override { return count_; }

 private:
  size_t count_;
};

// x * x, with a gradient of its own.
struct Square : public torch::autograd::Function<Square> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x) {
    ctx->save_for_backward({x});
    return x * x;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list grads) {
    auto saved = ctx->get_saved_variables();
    return {2 * saved[0] * grads[0]};
  }
};

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(int64_t width)
      : linear(torch::nn::LinearOptions(width, width).bias(true)),
        norm(torch::nn::LayerNormOptions({width})) {
    register_module("linear", linear);
    register_module("norm", norm);
    scale = register_parameter("scale", torch::ones({1}));
    calls = register_buffer("calls", torch::zeros({1}, torch::kInt64));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    calls.add_(1);
    return x + scale * torch::gelu(norm(linear->forward(x)));
  }
  torch::nn::Linear linear;
  torch::nn::LayerNorm norm;
  torch::Tensor scale, calls;
};
TORCH_MODULE(Block);

struct Net : torch::nn::Module {
  Net() {
    body = register_module("body", torch::nn::Sequential(torch::nn::Linear(2, 16), torch::nn::ReLU(),
                                                         Block(16), torch::nn::Dropout(0.0)));
    // As many programs do: a module behind a shared_ptr.
    head = register_module("head", std::make_shared<torch::nn::LinearImpl>(16, 2));
  }
  torch::Tensor forward(torch::Tensor x) { return torch::log_softmax(head->forward(body->forward(x)), 1); }
  torch::nn::Sequential body{nullptr};
  std::shared_ptr<torch::nn::LinearImpl> head;
};

template <class Loader, class Optimizer>
double train(Net& net, Loader& loader, Optimizer& optimizer, int epochs) {
  double last = 0;
  net.train();
  for (int epoch = 0; epoch < epochs; ++epoch) {
    double sum = 0;
    size_t batches = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto loss = torch::nll_loss(net.forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      sum += loss.template item<double>();
      ++batches;
    }
    last = sum / static_cast<double>(batches);
  }
  return last;
}

double accuracy(Net& net, Spirals& data) {
  torch::NoGradGuard no_grad;
  net.eval();
  int64_t right = 0;
  for (size_t i = 0; i < *data.size(); ++i) {
    auto example = data.get(i);
    right +=
        net.forward(example.data.unsqueeze(0)).argmax(1).item<int64_t>() == example.target.item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(*data.size());
}

void check_training() {
  torch::manual_seed(1);
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  auto net = std::make_shared<Net>();
  net->to(device);
  Spirals data(128);
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      data.map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions().batch_size(32).workers(2));

  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  const double first = train(*net, loader, sgd, 1);
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(0.01));
  const double last = train(*net, loader, adam, 40);
  expect(last < 0.2 * first, "the loss falls: " + std::to_string(first) + " to " + std::to_string(last));
  expect(accuracy(*net, data) > 0.95, "both arms are told apart");

  torch::save(net, "net.pt");
  torch::save(adam, "adam.pt");
  auto again = std::make_shared<Net>();
  torch::load(again, "net.pt");
  auto x = torch::randn({5, 2});
  again->eval();
  expect(torch::equal(net->forward(x), again->forward(x)), "a loaded network computes the same");
  expect(again->named_buffers()["body.2.calls"].item<int64_t>() > 0, "buffers are saved");
  torch::optim::Adam loaded(again->parameters(), torch::optim::AdamOptions(0.01));
  torch::load(loaded, "adam.pt");
  for (auto* pair : {&net, &again}) {
    (*pair)->zero_grad();
    torch::nll_loss((*pair)->forward(x), torch::tensor({0, 1, 0, 1, 0})).backward();
  }
  adam.step();
  loaded.step();
  expect(torch::allclose(net->head->weight, again->head->weight), "a loaded optimiser steps the same");
}

void check_modules() {
  auto shared = std::make_shared<BlockImpl>(4);
  std::weak_ptr<BlockImpl> watch = shared;
  {
    torch::nn::Sequential row(shared, torch::nn::Tanh());
    shared.reset();
    expect(!watch.expired(), "a container keeps a shared module alive");
    expect(row->size() == 2, "size of a Sequential");
  }
  expect(watch.expired(), "and lets it go");

  Block block(4);
  std::shared_ptr<BlockImpl> pointer = block.ptr();
  expect(pointer.get() == block.get(), "a holder's pointer");
  torch::nn::ModuleList list(torch::nn::Linear(2, 3), block);
  expect(list->size() == 2, "size of a ModuleList");
}

void check_tensors() {
  using namespace torch::indexing;
  auto t = torch::arange(0, 24).reshape({2, 3, 4});
  expect(t.index({1, Slice(None, None, 2), -1}).equal(torch::tensor({15, 23})), "slices");
  expect(t.index({"...", 0}).sizes() == torch::IntArrayRef({2, 3}), "an ellipsis");
  t.index_put_({0, Slice(), 0}, 7);
  expect(t.index({0, 2, 0}).item<int64_t>() == 7, "writing through an index");
  expect(t.index({t > 20}).numel() == 3, "a mask");
  expect(torch::tensor({{1.5, 2.5}, {3.5, 4.5}}).dtype() == torch::kFloat,
         "fractions take the default dtype");

  auto x = torch::tensor({1.0, -2.0, 3.0}, torch::requires_grad());
  Square::apply(x).sum().backward();
  expect(torch::allclose(x.grad(), torch::tensor({2.0, -4.0, 6.0})), "a custom function's gradient");

  auto spectrum = torch::fft::fft(torch::ones({8}));
  expect(std::abs(torch::real(spectrum)[0].item<float>() - 8) < 1e-6, "torch::fft");
  float raw[] = {1, 2, 3, 4};
  auto wrapped = torch::from_blob(raw, {2, 2}, torch::TensorOptions().dtype(torch::kFloat32));
  expect(wrapped.to(torch::kFloat64).sum().item<double>() == 10, "from_blob");

  bool thrown = false;
  try {
    torch::ones({2, 3}).matmul(torch::ones({2, 3}));
  } catch (const c10::Error&) {
    thrown = true;
  }
  expect(thrown, "a wrong shape is a c10::Error");
  try {
    TORCH_CHECK(1 > 2, "one is not more than ", 2);
  } catch (const c10::Error& error) {
    expect(std::string(error.what()).find("one is not more than 2") == 0, "TORCH_CHECK's text");
  }
}

void expect_near(const torch::Tensor& got, std::vector<double> wanted, const std::string& what) {
  auto values = torch::tensor(wanted, torch::kFloat64);
  expect((got.to(torch::kFloat64).flatten() - values).abs().max().item<double>() < 1e-6, what);
}

// As PyTorch 2.14.1 gives them on a CPU.
void check_random() {
  torch::manual_seed(0);
  expect_near(torch::rand({3}), {0.49625658988952637, 0.7682217955589294, 0.08847743272781372}, "rand");
  torch::manual_seed(0);
  torch::nn::Linear linear(2, 3);
  expect_near(linear->weight.detach(),
              {-0.005293981172144413, 0.37932288646698, -0.5819807648658752, -0.5203874707221985,
               -0.27234524488449097, 0.1896158903837204},
              "the first weights of a Linear");
  expect_near(linear->bias.detach(), {-0.014010033570230007, 0.5606575012207031, -0.06275151669979095},
              "and its bias");
  torch::manual_seed(0);
  torch::nn::Conv2d conv(1, 2, 2);
  expect_near(conv->bias.detach(), {-0.04437202215194702, 0.1323062777519226}, "a convolution's bias");
  torch::manual_seed(0);
  expect_near(torch::dropout(torch::ones({10}), 0.5, true), {0, 0, 2, 0, 0, 0, 2, 2, 0, 2}, "dropout");
  torch::manual_seed(0);
  expect_near(torch::feature_dropout(torch::ones({2, 3, 2}), 0.5, true), {0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0},
              "dropout of channels");
  auto generator = torch::make_generator<torch::CPUGeneratorImpl>(0);
  expect_near(torch::randn({2}, generator), {1.5409960746765137, -0.293428897857666},
              "a generator of one's own");
}

struct SignOptions : torch::optim::OptimizerCloneableOptions<SignOptions> {
  explicit SignOptions(double lr = 0.1) : lr_(lr) {}
  TORCH_ARG(double, lr) = 0.1;

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { this->lr(lr); }
};
struct SignState : torch::optim::OptimizerCloneableParamState<SignState> {
  int64_t steps = 0;
};
// Steps of one length against the gradient's sign.
class SignDescent : public torch::optim::Optimizer {
 public:
  SignDescent(std::vector<torch::Tensor> parameters, SignOptions options)
      : Optimizer(std::move(parameters), std::make_unique<SignOptions>(options)) {}
  torch::Tensor step(LossClosure closure = nullptr) override {
    torch::NoGradGuard no_grad;
    for (auto& group : param_groups_) {
      auto& options = static_cast<SignOptions&>(group.options());
      for (auto& parameter : group.params()) {
        if (!parameter.grad().defined()) continue;
        auto& state = state_[c10::guts::to_string(parameter.unsafeGetTensorImpl())];
        if (!state) state = std::make_unique<SignState>();
        ++static_cast<SignState&>(*state).steps;
        parameter.add_(parameter.grad().sign(), -options.lr());
      }
    }
    return {};
  }
};

// x * factor, whose factor waits in the context.
struct Scale : public torch::autograd::Function<Scale> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x, double factor) {
    ctx->saved_data["factor"] = factor;
    return x * factor;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list grads) {
    return {grads[0] * ctx->saved_data["factor"].toDouble(), torch::Tensor()};
  }
};

void check_own_parts() {
  auto w = torch::tensor({1.0, -1.0}, torch::requires_grad());
  SignDescent optimizer({w}, SignOptions(0.25));
  for (int i = 0; i < 4; ++i) {
    optimizer.zero_grad();
    w.abs().sum().backward();
    optimizer.step();
  }
  expect_near(w.detach(), {0, 0}, "an optimiser of one's own");
  auto& state = *optimizer.state().at(c10::guts::to_string(w.unsafeGetTensorImpl()));
  expect(static_cast<SignState&>(state).steps == 4, "and its state");
  torch::optim::StepLR schedule(optimizer, 1, 0.5);
  schedule.step();
  expect(optimizer.param_groups()[0].options().get_lr() == 0.125, "a schedule over it");

  auto x = torch::ones({2}, torch::requires_grad());
  double seen = 0;
  x.register_hook([&seen](torch::Tensor grad) { seen = grad.sum().item<double>(); });
  auto y = Scale::apply(x, 5.5);
  expect(!y.grad_fn()->name().empty(), "a node's name");
  y.sum().backward();
  expect(x.grad()[0].item<double>() == 5.5 && seen == 11, "saved_data, and a hook that only looks");
}

}  // namespace

int main() {
  check_random();
  check_own_parts();
  check_tensors();
  check_modules();
  check_training();
  std::cout << (failures ? "failed" : "all right") << std::endl;
  return failures ? 1 : 0;
}
