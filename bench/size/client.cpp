// A program of 20 lines, as a client writes it: the bench `size` measures how long it takes to compile.
#include <vesta/nn.h>
#include <vesta/ops.h>
#include <vesta/optim.h>

#include <cstdio>

int main() {
  using namespace vesta;
  nn::Sequential net(nn::Linear(32, 64), nn::ReLU(), nn::Linear(64, 1));
  optim::Adam adam(net->parameters(), optim::AdamOptions(1e-3));
  Tensor x = randn({16, 32}), y = randn({16, 1});
  for (int step = 0; step < 100; ++step) {
    adam.zero_grad();
    Tensor loss = mse_loss(net->forward(x), y);
    loss.backward();
    adam.step();
    if (step % 10 == 0) std::printf("step %d: loss %g\n", step, loss.item<double>());
  }
}
