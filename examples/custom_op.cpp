// An operator defined outside of Vesta: snake(x) = x + sin^2(alpha x) / alpha, an activation for periodic data (Ziyin
// et al., "Neural networks fail to learn periodic functions", 2020). One block gives the function, its loops on every
// layout and dtype, the in-place and out forms and the gradient. The program checks the gradient against finite
// differences, then trains a net with it. Compile such a file with the flags that docs/adding-an-op.md gives.
#define VESTA_OP_LOOPS  // this file's scalar texts become CPU loops; must stand before the include
#include <vesta/op.h>

#include <vesta/autograd.h>
#include <vesta/functional.h>
#include <vesta/nn.h>
#include <vesta/optim.h>

#include <cstdio>

using namespace vesta;

namespace {

using op_block::in;

// clang-format off
const OpDef kOps[] = {
  OP("snake(Tensor self, float alpha=1) -> Tensor",
    .forms = InPlace | Out,
    .types = float_types,
    .scalar = SCALAR(x + square_(sin_(x * alpha)) / alpha, alpha),
    .save = {in(0)},
    .vjp = [](const Grad& g) {
      return grads(G(0) { return g.dy() * (sin(g.in(0) * (2 * g.number("alpha"))) + 1); });
    },
    .shard = Shard::pointwise(),
    .doc = "self + sin(alpha * self)^2 / alpha.",
    .samples = [](SampleGen& s) { s.unary(s.shapes()); s.unary({{3, 4}}, {}, 2.5); }),
};
// clang-format on

Tensor snake(const Tensor& x, double alpha) { return call_by_name("snake", {x, alpha})[0].tensor(); }

struct NetImpl : nn::Module {
  NetImpl() {
    hidden1 = register_module("hidden1", nn::Linear(1, 32));
    hidden2 = register_module("hidden2", nn::Linear(32, 32));
    out = register_module("out", nn::Linear(32, 1));
  }
  Tensor forward(const Tensor& x) { return out(snake(hidden2(snake(hidden1(x), 2)), 2)); }

  nn::Linear hidden1{nullptr}, hidden2{nullptr}, out{nullptr};
};
VESTA_MODULE(Net);

double train() {
  Tensor x = (arange(256, TensorOptions(kFloat)) / 21 - 6).unsqueeze(1), y = sin(x * 3) + x * 0.3;
  Net net;
  optim::AdamW adam(net->parameters(), optim::AdamWOptions(1e-2));
  double loss_value = 0;
  for (int step = 1; step <= 400; ++step) {
    adam.zero_grad();
    Tensor loss = nn::functional::mse_loss(net(x), y);
    loss.backward();
    adam.step();
    loss_value = loss.item<double>();
    if (step % 100 == 0) std::printf("step %d  loss %.5f\n", step, loss_value);
  }
  return loss_value;
}

}  // namespace

int main() {
  try {
    register_ops(kOps);
    manual_seed(1);
    Tensor x = randn({3, 4}, kDouble).requires_grad_();
    auto f = [](const autograd::variable_list& in) { return autograd::variable_list{snake(in[0], 1.5)}; };
    autograd::gradcheck(f, {x});  // throws where the gradient is wrong
    autograd::gradgradcheck(f, {x});
    std::puts("gradients of snake agree with finite differences");
    return train() < 0.05 ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "custom_op: %s\n", error.what());
    return 1;
  }
}
