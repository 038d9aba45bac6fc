// Call overhead, MLP step and start-up of libtorch (the peer of `vesta bench overhead`). Prints "CASE NANOSECONDS" lines,
// the fastest of some batches as ours; with one argument only starts up to a first result. One thread, as ours: all of it
// is small work. Build against libtorch's headers and libraries (Debian: libtorch-dev; or a PyTorch wheel's folders):
//   g++ -O2 -std=c++20 overhead_libtorch.cpp -I/usr/include/torch/csrc/api/include -ltorch -ltorch_cpu -lc10
#include <torch/torch.h>

#include <chrono>
#include <cstdio>

using Clock = std::chrono::steady_clock;

template <class F>
void measure(const char* name, int calls, int ops, F f) {
  double best = 1e300;
  for (int i = 0; i < calls; ++i) f();
  for (int batch = 0; batch < 15; ++batch) {
    auto start = Clock::now();
    for (int i = 0; i < calls; ++i) f();
    best = std::min(
        best, std::chrono::duration<double, std::nano>(Clock::now() - start).count() / (double(calls) * ops));
  }
  std::printf("%s %.1f\n", name, best);
}

int main(int argc, char**) {
  if (argc > 1) {
    std::printf("%g\n", (torch::ones({4}) + 1).sum().item<float>());
    return 0;
  }
  torch::set_num_threads(1);
  auto a = torch::ones({4}), b = torch::ones({4}), m = torch::ones({4, 4});
  auto x = torch::ones({4}, torch::requires_grad()), y = torch::ones({4}, torch::requires_grad());
  {
    torch::NoGradGuard no_grad;
    measure("add_no_grad", 2000, 1, [&] { auto r = a + b; });
  }
  measure("add_grad", 2000, 1, [&] { auto r = x + y; });
  measure("mul_grad", 2000, 1, [&] { auto r = x * y; });
  measure("view", 2000, 1, [&] { auto r = m.view({16}); });
  auto seed = torch::ones({4});
  measure("fwd_bwd", 10, 50, [&] {
    auto t = x;
    for (int k = 0; k < 50; ++k) t = t * y;
    auto g = torch::autograd::grad({t}, {x}, {seed});
  });
  torch::nn::Sequential net(torch::nn::Linear(32, 64), torch::nn::ReLU(), torch::nn::Linear(64, 1));
  torch::optim::Adam opt(net->parameters(), 1e-3);
  auto in = torch::randn({16, 32}), out = torch::randn({16, 1});
  measure("mlp_step", 30, 1, [&] {
    opt.zero_grad();
    auto loss = torch::mse_loss(net->forward(in), out);
    loss.backward();
    opt.step();
  });
}
