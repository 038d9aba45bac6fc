// Training steps of a ResNet-18 for 32 x 32 images and of a two-layer LSTM, beside PyTorch: milliseconds a step, in
// alternating runs of both. The data is random and stays the same, so that a step is the network, its loss, the
// gradients and the optimiser and nothing else. Both sides count their parameters, and must agree.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench.h"
#include "bench_peer.h"
#include "vesta/error.h"
#include "vesta/nn.h"
#include "vesta/ops.h"
#include "vesta/optim.h"
#include "vesta/random.h"
#include "vesta/threads.h"

namespace {

using namespace vesta;
using cli::BenchResult;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

nn::Conv2d conv3x3(int64_t in, int64_t out, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

// Two convolutions and what goes around them.
struct ResidualImpl : nn::Module {
  ResidualImpl(int64_t in, int64_t out, int64_t stride) {
    register_module("conv1", conv1 = conv3x3(in, out, stride));
    register_module("norm1", norm1 = nn::BatchNorm2d(out));
    register_module("conv2", conv2 = conv3x3(out, out, 1));
    register_module("norm2", norm2 = nn::BatchNorm2d(out));
    if (stride == 1 && in == out) return;
    register_module("project",
                    project = nn::Conv2d(nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)));
    register_module("norm3", norm3 = nn::BatchNorm2d(out));
  }
  Tensor forward(const Tensor& x) {
    Tensor y = norm2(conv2(norm1(conv1(x)).relu()));
    return (y + (project.is_empty() ? x : norm3(project(x)))).relu();
  }
  nn::Conv2d conv1{nullptr}, conv2{nullptr}, project{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
};
VESTA_MODULE(Residual);

struct ResNetImpl : nn::Module {
  ResNetImpl() {
    register_module("first", first = conv3x3(3, 64, 1));
    register_module("norm", norm = nn::BatchNorm2d(64));
    int64_t in = 64;
    for (int64_t out : {64, 128, 256, 512})
      for (int64_t stride : {out == 64 ? 1 : 2, 1}) {
        blocks.push_back(Residual(in, out, stride));
        register_module("block" + std::to_string(blocks.size()), blocks.back());
        in = out;
      }
    register_module("head", head = nn::Linear(512, 10));
  }
  Tensor forward(const Tensor& x) {
    Tensor y = norm(first(x)).relu();
    for (auto& block : blocks) y = block(y);
    return head(adaptive_avg_pool2d(y, {1, 1}).flatten(1));
  }
  nn::Conv2d first{nullptr};
  nn::BatchNorm2d norm{nullptr};
  std::vector<Residual> blocks;
  nn::Linear head{nullptr};
};
VESTA_MODULE(ResNet);

struct LstmNetImpl : nn::Module {
  LstmNetImpl() {
    register_module("lstm", lstm = nn::LSTM(nn::LSTMOptions(128, 256).num_layers(2)));
    register_module("head", head = nn::Linear(256, 10));
  }
  Tensor forward(const Tensor& x) {
    auto [y, state] = lstm(x);
    return head(y.select(0, -1));
  }
  nn::LSTM lstm{nullptr};
  nn::Linear head{nullptr};
};
VESTA_MODULE(LstmNet);

struct Job {
  std::string name;  // of the case, and for the peer
  std::function<void()> step;
  int64_t parameters = 0;
};

template <class Net, class Optimizer, class Options>
Job job(std::string name, Net net, Options options, const Tensor& x, const Tensor& labels) {
  auto optimizer = std::make_shared<Optimizer>(net->parameters(), options);
  Job j{std::move(name), [=]() mutable {
          Tensor loss = cross_entropy_loss(net(x), labels);
          optimizer->zero_grad();
          loss.backward();
          optimizer->step();
        }};
  for (auto& p : net->parameters()) j.parameters += p.numel();
  return j;
}

void run(const cli::BenchOptions& o, const Job& j, cli::Peer* peer, const std::string& peer_name) {
  if (peer) {
    const auto theirs = json::parse(peer->ask(json{{"do", "begin"}, {"net", j.name}}.dump(), 600));
    VESTA_CHECK(theirs.at("parameters") == j.parameters, "bench train: the peer's ", j.name, " has ",
                theirs.at("parameters").dump(), " parameters, ours ", j.parameters);
  }
  auto ours_of = [&](int n) {
    const auto start = Clock::now();
    for (int i = 0; i < n; ++i) j.step();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count() / n;
  };
  auto theirs_of = [&](int n) {
    return json::parse(peer->ask(json{{"do", "steps"}, {"n", n}}.dump(), 600)).at("seconds").get<double>() *
           1e3 / n;
  };
  ours_of(2);
  if (peer) theirs_of(2);
  const int n = std::max(1, static_cast<int>(400 / (ours_of(1) + 1e-9)));
  std::vector<double> ours, theirs;
  for (int pair = 0; pair < o.pairs; ++pair) {
    if (peer && pair % 2) theirs.push_back(theirs_of(n));
    usleep(20000);  // the side that waits lets its threads go to sleep first
    ours.push_back(ours_of(n));
    usleep(20000);
    if (peer && pair % 2 == 0) theirs.push_back(theirs_of(n));
  }
  BenchResult r{.bench = "train", .name = j.name + " step", .unit = "ms", .peer = peer_name};
  cli::summarise(r, ours, theirs, true);
  cli::print_result(o, r);
}

}  // namespace

int main(int argc, char** argv) {
  cli::BenchOptions o;
  CLI::App app{"Training steps of a ResNet-18 and of an LSTM beside PyTorch", "train_bench"};
  cli::add_bench_options(app, o);
  CLI11_PARSE(app, argc, argv);
  try {
    VESTA_CHECK(!o.peer || !o.peer_python.empty(),
                "bench train: --peer needs --peer-python or VESTA_PEER_PYTHON, a Python with PyTorch");
    manual_seed(o.seed);
    std::unique_ptr<cli::Peer> peer;
    std::string peer_name;
    if (!o.peer_python.empty()) {
      peer = std::make_unique<cli::Peer>(std::vector<std::string>{
          o.peer_python, VESTA_BENCH_PEERS "/train_torch.py", std::to_string(num_threads())});
      peer_name = "pytorch " + json::parse(peer->ask(R"({"do": "about"})")).at("version").get<std::string>();
    }
    // One net at a time, so that neither side holds the other's memory.
    if (o.wanted("resnet18 16x3x32x32 step"))
      run(o,
          job<ResNet, optim::SGD>("resnet18 16x3x32x32", ResNet(),
                                  optim::SGDOptions(0.01).momentum(0.9).weight_decay(5e-4),
                                  randn({16, 3, 32, 32}), randint(0, 10, {16}, TensorOptions(kLong))),
          peer.get(), peer_name);
    if (o.wanted("lstm 64x32x128 step"))
      run(o,
          job<LstmNet, optim::Adam>("lstm 64x32x128", LstmNet(), optim::AdamOptions(1e-3),
                                    randn({64, 32, 128}), randint(0, 10, {32}, TensorOptions(kLong))),
          peer.get(), peer_name);
    return 0;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "train_bench: %s\n", error.what());
    return 1;
  }
}
