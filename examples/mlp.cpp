// Trains a small multi-layer perceptron on two interleaved spirals, made on the spot: nn, optim and autograd in one
// screen, with no files and no arguments. Also the program whose static, stripped size is measured.
#include <vesta/autograd.h>
#include <vesta/functional.h>
#include <vesta/nn.h>
#include <vesta/ops.h>
#include <vesta/optim.h>

#include <cmath>
#include <cstdio>
#include <utility>

using namespace vesta;

namespace {

struct NetImpl : nn::Module {
  NetImpl() {
    hidden1 = register_module("hidden1", nn::Linear(2, 64));
    hidden2 = register_module("hidden2", nn::Linear(64, 64));
    out = register_module("out", nn::Linear(64, 2));
  }
  Tensor forward(const Tensor& x) { return out(tanh(hidden2(tanh(hidden1(x))))); }

  nn::Linear hidden1{nullptr}, hidden2{nullptr}, out{nullptr};
};
VESTA_MODULE(Net);

// n points on each arm: positions [2 n, 2], arms [2 n].
std::pair<Tensor, Tensor> spirals(int64_t n) {
  Tensor t = sqrt(rand({n})) * (3 * M_PI), noise = randn({2 * n, 2}) * 0.2;
  Tensor arm = stack({t * cos(t), t * sin(t)}, 1);
  return {(cat({arm, -arm}) + noise) / 5, cat({zeros({n}, kLong), ones({n}, kLong)})};
}

}  // namespace

int main() {
  try {
    manual_seed(1);
    auto [x, y] = spirals(500);
    auto [test_x, test_y] = spirals(200);
    Net net;
    optim::Adam adam(net->parameters(), optim::AdamOptions(5e-3));
    for (int step = 1; step <= 600; ++step) {
      adam.zero_grad();
      Tensor loss = nn::functional::cross_entropy(net(x), y);
      loss.backward();
      adam.step();
      if (step % 100 == 0) std::printf("step %d  loss %.4f\n", step, loss.item<double>());
    }
    NoGradGuard no_grad;
    double accuracy = net(test_x).argmax(1).eq(test_y).to(kFloat).mean().item<double>();
    std::printf("accuracy on new points %.3f\n", accuracy);
    return accuracy > 0.9 ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "mlp: %s\n", error.what());
    return 1;
  }
}
