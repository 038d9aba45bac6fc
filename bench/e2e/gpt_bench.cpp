// The main job, training a GPT, beside PyTorch: tokens/s in alternating runs of both, peak memory, and how far the two
// loss curves are apart when both start from the same weights and see the same batches. Neither side clips or changes
// its learning rate; both draw their batches from the same text inside the timed steps. Without a peer, ours alone.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "bench_peer.h"
#include "gpt/corpus.h"
#include "gpt/model.h"
#include "temporary.h"
#include "vesta/error.h"
#include "vesta/ops.h"
#include "vesta/optim.h"
#include "vesta/random.h"
#include "vesta/threads.h"

namespace {

using namespace vesta;
using cli::BenchResult;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

struct Options : cli::BenchOptions {
  std::string text = "/usr/share/dictd/gcide.dict.dz";
  int loss_steps = 50;
  int steps = 0;  // in a measurement; 0 = about half a second of it
};

// Most resident memory of this process so far, in bytes.
double peak_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) * 1024;
  return 0;
}

class Training {
 public:
  explicit Training(const gpt::Config& config)
      : model_(config),
        optimizer_(model_->parameters(), optim::AdamWOptions(1e-3).betas({0.9, 0.95}).weight_decay(0.1)) {}
  Tensor step(const Tensor& x, const Tensor& y) {
    Tensor loss = model_->loss(x, y);
    optimizer_.zero_grad();
    loss.backward();
    optimizer_.step();
    return loss;
  }
  void write_weights(const std::string& path) const {
    std::ofstream out(path, std::ios::binary);
    for (auto& p : model_->parameters()) {
      Tensor t = p.detach().contiguous();
      out.write(reinterpret_cast<const char*>(t.data_ptr<float>()), t.numel() * 4);
    }
    VESTA_CHECK_AS(IoError, out.flush(), "bench gpt: cannot write ", path);
  }

 private:
  gpt::Model model_;
  optim::AdamW optimizer_;
};

// The curves from equal weights and batches: the greatest difference of the losses, in nats.
void compare_losses(const Options& o, const gpt::Corpus& corpus, const gpt::Config& c, cli::Peer& peer,
                    const std::string& name) {
  cli::TemporaryFile weights, batches;
  Training training(c);
  training.write_weights(weights.name);
  std::ofstream out(batches.name, std::ios::binary);
  std::vector<double> ours;
  for (int step = 0; step < o.loss_steps; ++step) {
    auto [x, y] = corpus.batch(c.batch, o.seed, uint64_t(step));
    const int64_t *tokens = x.data_ptr<int64_t>(), *next = y.data_ptr<int64_t>();
    for (int64_t row = 0; row < c.batch; ++row) {
      for (int64_t i = 0; i < c.block; ++i) out.put(char(tokens[row * c.block + i]));
      out.put(char(next[row * c.block + c.block - 1]));
    }
    ours.push_back(training.step(x, y).item<double>());
  }
  VESTA_CHECK_AS(IoError, out.flush(), "bench gpt: cannot write ", batches.name);
  json answer = json::parse(
      peer.ask(json{{"do", "losses"}, {"weights", weights.name}, {"batches", batches.name}}.dump(), 600));
  auto theirs = answer.at("losses").get<std::vector<double>>();
  VESTA_CHECK(theirs.size() == ours.size(), "bench gpt: the peer trained ", theirs.size(),
              " steps instead of ", ours.size());
  double worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    double difference = std::abs(ours[i] - theirs[i]);
    if (!(difference <= worst)) worst = difference;  // also where one is not a number
  }
  Options noted = o;
  noted.note =
      detail::message(o.note.empty() ? "" : o.note + "; ", o.loss_steps, " steps; first loss ", ours.front(),
                      " and pytorch ", theirs.front(), ", last ", ours.back(), " and ", theirs.back());
  cli::print_result(
      noted, {.bench = "gpt", .name = name, .value = worst, .unit = "nats", .low = worst, .high = worst});
}

void run_size(const Options& o, const gpt::Corpus& corpus, const gpt::Config& c) {
  std::string speed = c.size + " train eager", memory = c.size + " peak memory",
              losses = c.size + " loss difference";
  bool wants_speed = o.wanted(speed), wants_memory = o.wanted(memory),
       wants_losses = o.wanted(losses) && !o.peer_python.empty();
  if (!wants_speed && !wants_memory && !wants_losses) return;
  manual_seed(o.seed);
  std::unique_ptr<cli::Peer> peer;
  std::string peer_name;
  if (!o.peer_python.empty()) {
    peer = std::make_unique<cli::Peer>(
        std::vector<std::string>{o.peer_python, VESTA_BENCH_PEERS "/gpt_torch.py", "--text", o.text, "--size",
                                 c.size, "--threads", std::to_string(num_threads()), "--serve"});
    peer_name = "pytorch " + json::parse(peer->ask(R"({"do": "about"})")).at("version").get<std::string>();
  }
  auto theirs_of = [&](int n) {
    return json::parse(peer->ask(json{{"do", "steps"}, {"n", n}}.dump(), 600)).at("seconds").get<double>();
  };

  if (wants_speed || wants_memory) {
    Training training(c);
    uint64_t at = 0;
    auto ours_of = [&](int n) {
      auto start = Clock::now();
      for (int i = 0; i < n; ++i) {
        auto [x, y] = corpus.batch(c.batch, o.seed + 1, at++);
        training.step(x, y);
      }
      return std::chrono::duration<double>(Clock::now() - start).count();
    };
    ours_of(2);
    if (peer) theirs_of(2);
    int n = o.steps > 0 ? o.steps : std::max(1, int(0.5 / (ours_of(1) + 1e-9)));
    double tokens = double(n * c.batch * c.block);
    std::vector<double> ours, theirs;
    for (int pair = 0; pair < (wants_speed ? o.pairs : 1); ++pair) {
      // The side that waits lets its threads go to sleep first.
      if (peer && pair % 2) theirs.push_back(tokens / theirs_of(n));
      usleep(20000);
      ours.push_back(tokens / ours_of(n));
      usleep(20000);
      if (peer && pair % 2 == 0) theirs.push_back(tokens / theirs_of(n));
    }
    if (wants_speed) {
      BenchResult r{.bench = "gpt", .name = speed, .unit = "tokens/s", .peer = peer_name};
      cli::summarise(r, ours, theirs, false);
      cli::print_result(o, r);
    }
    if (wants_memory) {
      BenchResult r{.bench = "gpt", .name = memory, .unit = "MB", .peer = peer_name};
      std::vector<double> their_peak;
      if (peer)
        their_peak.push_back(json::parse(peer->ask(R"({"do": "peak"})")).at("bytes").get<double>() / 1e6);
      cli::summarise(r, {peak_bytes() / 1e6}, their_peak, true);
      cli::print_result(o, r);
    }
  }
  if (wants_losses) compare_losses(o, corpus, c, *peer, losses);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"GPT training: speed, memory and losses beside PyTorch", "gpt_bench"};
  cli::add_bench_options(app, o);
  app.add_option("--text", o.text, "The corpus");
  app.add_option("--loss-steps", o.loss_steps, "Steps over which losses are compared")
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", o.steps, "Steps in one measurement; 0: about half a second")
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    VESTA_CHECK(!o.peer || !o.peer_python.empty(),
                "bench gpt: --peer needs --peer-python or VESTA_PEER_PYTHON, a Python with PyTorch");
    // small first: its peak must not hold what another size left behind.
    for (const char* size : {"small", "nano"}) {
      gpt::Config config = gpt::Config::named(size);
      run_size(o, gpt::Corpus(o.text, config.block), config);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "gpt_bench: %s\n", error.what());
    return 1;
  }
}
