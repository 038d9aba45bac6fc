// The program of the bench `size`: trains a small MLP and prints the loss. With an argument it stops after the first
// step: the time from the start of the process to its first result.
#include <vesta/nn.h>
#include <vesta/ops.h>
#include <vesta/optim.h>

#include <cstdio>

int main(int argc, char**) {
  using namespace vesta;
  manual_seed(0);
  nn::Sequential net(nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 1));
  optim::Adam adam(net->parameters(), optim::AdamOptions(1e-2));
  Tensor x = randn({256, 2}), y = x.select(1, 0) * x.select(1, 1);
  const int steps = argc > 1 ? 1 : 500;
  double first = 0, last = 0;
  for (int step = 0; step < steps; ++step) {
    adam.zero_grad();
    Tensor loss = mse_loss(net->forward(x).squeeze(-1), y);
    loss.backward();
    adam.step();
    if (step == 0) first = loss.item<double>();
    if (step + 1 == steps) last = loss.item<double>();
  }
  std::printf("loss %.4f -> %.4f\n", first, last);
  return argc > 1 || last < 0.1 * first ? 0 : 1;
}
