// Cost of a call from C++ on 4 floats: what a program pays per op before any arithmetic; and of a whole training step of
// a tiny MLP, which is mostly such cost. In ns, and in instructions counted by callgrind where valgrind is installed
// (this program runs itself under it: the difference between many and few calls). The peer is the same in libtorch.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <vector>

#include "base/process.h"
#include "bench.h"
#include "temporary.h"
#include "vesta/autograd.h"
#include "vesta/error.h"
#include "vesta/nn.h"
#include "vesta/ops.h"
#include "vesta/optim.h"
#include "vesta/tensor.h"

namespace vesta::cli {
namespace {

constexpr int kBatches = 40;
constexpr int kChain = 50;

struct Case {
  const char* name;
  int calls;                     // in a batch, about a millisecond
  int ops;                       // that a call counts as
  std::function<void(int)> run;  // so many calls; the loop is inside, so that this indirection costs nothing
};

std::vector<Case> make_cases() {
  Tensor a = ones({4}), b = ones({4}), m = ones({4, 4});
  Tensor x = ones({4}).requires_grad_(), y = ones({4}).requires_grad_();
  std::vector<Case> cases;
  cases.push_back({"add_no_grad", 10000, 1, [=](int n) {
                     NoGradGuard no_grad;
                     for (int i = 0; i < n; ++i) Tensor r = a + b;
                   }});
  cases.push_back({"add_grad", 10000, 1, [=](int n) {
                     for (int i = 0; i < n; ++i) Tensor r = x + y;
                   }});
  cases.push_back({"mul_grad", 10000, 1, [=](int n) {
                     for (int i = 0; i < n; ++i) Tensor r = x * y;
                   }});
  cases.push_back({"view", 10000, 1, [=](int n) {
                     for (int i = 0; i < n; ++i) Tensor r = m.view({16});
                   }});
  // A chain of multiplications: recorded, differentiated and freed.
  cases.push_back({"fwd_bwd", 100, kChain, [=, seed = ones({4})](int n) {
                     for (int i = 0; i < n; ++i) {
                       Tensor t = x;
                       for (int k = 0; k < kChain; ++k) t = t * y;
                       Tensor g = autograd::grad({t}, {x}, {seed})[0];
                     }
                   }});
  nn::Sequential net(nn::Linear(32, 64), nn::ReLU(), nn::Linear(64, 1));
  auto adam = std::make_unique<optim::Adam>(net->parameters(), optim::AdamOptions(1e-3));
  Tensor in = randn({16, 32}), out = randn({16, 1});
  // std::function wants to be copyable: the optimiser lives as long as the program.
  cases.push_back({"mlp_step", 100, 1, [=, opt = adam.release()](int n) mutable {
                     for (int i = 0; i < n; ++i) {
                       opt->zero_grad();
                       Tensor loss = mse_loss(net->forward(in), out);
                       loss.backward();
                       opt->step();
                     }
                   }});
  return cases;
}

// Nanoseconds an op: the fastest batch, since others on the machine can only add time.
double measure(const Case& c) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> ns;
  c.run(c.calls);  // warms caches and the allocator
  for (int b = 0; b < kBatches; ++b) {
    auto start = Clock::now();
    c.run(c.calls);
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
                 (double(c.calls) * c.ops));
  }
  return *std::min_element(ns.begin(), ns.end());
}

// Runs a program to its end, its output in a file; whether it ended well.
bool run_quietly(std::vector<std::string> argv, const std::string& output) {
  ProcessOptions p;
  p.argv = std::move(argv);
  p.env = {"VESTA_NUM_THREADS=1"};
  p.stdout_path = p.stderr_path = output;
  auto child = Process::start(p);
  if (!child.ok()) return false;
  child->wait();
  return child->exit_code() == 0;
}

// The peer prints "CASE NS" lines.
std::map<std::string, double> run_peer(const std::string& program) {
  TemporaryFile file;
  bool ok = run_quietly({program}, file.name);
  std::ifstream in(file.name);
  std::map<std::string, double> out;
  std::string name;
  for (double ns; in >> name >> ns;) out[name] = ns;
  VESTA_CHECK(ok && !out.empty(), "bench overhead: the peer '", program, "' failed");
  return out;
}

// Instructions of the whole program that makes `calls` calls of a case; < 0 where valgrind is not there.
double count(const char* name, int calls) {
  TemporaryFile file, log;
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  bool ok = n > 0 && run_quietly({"valgrind", "--tool=callgrind", "--callgrind-out-file=" + file.name,
                                  std::string(self, size_t(n)), "bench", "overhead", "--only", name,
                                  "--calls", std::to_string(calls)},
                                 log.name);
  double total = -1;
  std::ifstream in(file.name);
  for (std::string line; ok && std::getline(in, line);)
    if (line.starts_with("totals: ")) total = std::strtod(line.c_str() + 8, nullptr);
  return total;
}

int run(const BenchOptions& o) {
  VESTA_CHECK(!o.peer || !o.peer_overhead.empty(),
              "bench overhead: --peer needs --peer-overhead or VESTA_PEER_OVERHEAD, the built "
              "bench/peers/overhead_libtorch.cpp");
  manual_seed(o.seed);
  auto cases = make_cases();
  std::erase_if(cases, [&](const Case& c) { return !o.wanted(c.name); });
  if (o.calls > 0) {
    for (auto& c : cases) c.run(o.calls);
    return 0;
  }
  std::vector<std::vector<double>> ours(cases.size()), theirs(cases.size());
  for (int pair = 0; pair < o.pairs; ++pair) {
    std::map<std::string, double> peer;
    if (!o.peer_overhead.empty() && pair % 2) peer = run_peer(o.peer_overhead);
    for (size_t k = 0; k < cases.size(); ++k) ours[k].push_back(measure(cases[k]));
    if (!o.peer_overhead.empty() && pair % 2 == 0) peer = run_peer(o.peer_overhead);
    for (size_t k = 0; k < cases.size(); ++k)
      if (auto found = peer.find(cases[k].name); found != peer.end()) theirs[k].push_back(found->second);
  }
  for (size_t k = 0; k < cases.size(); ++k) {
    BenchResult r{.bench = "overhead", .name = cases[k].name, .unit = "ns"};
    if (!theirs[k].empty()) r.peer = "libtorch";
    summarise(r, ours[k], theirs[k], true);
    print_result(o, r);
  }
  for (auto& c : cases) {
    int few = std::max(2, c.calls / 50), many = few * 11;
    double base = count(c.name, few), all = count(c.name, many);
    if (base < 0 || all < 0) break;
    double each = (all - base) / (double(many - few) * c.ops);
    print_result(
        o, {.bench = "overhead", .name = c.name, .value = each, .unit = "insns", .low = each, .high = each});
  }
  return 0;
}

}  // namespace

extern const Bench overhead_bench;
const Bench overhead_bench = {
    "overhead", "cost of a call on 4 floats and of a tiny training step; --peer: libtorch", run};

}  // namespace vesta::cli
