// Single operators, forward and backward, on the sizes of training: NAME/shape/dtype/fwd|bwd in microseconds. The ceiling
// is the time that a plain copy by as many threads takes for the bytes that must be read and written at least. The peer
// is PyTorch with the same expression, alternating with ours.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "bench.h"
#include "bench_peer.h"
#include "ops_case.h"
#include "vesta/autograd.h"
#include "vesta/error.h"
#include "vesta/ops.h"
#include "vesta/tensor.h"

namespace vesta::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<Tensor>;

using Case = OpCase;

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"add/64x64",
       {{{64, 64}}, {{64, 64}}},
       [](const Tensors& x) { return x[0] + x[1]; },
       "x[0] + x[1]",
       "f32 fwd"},
      {"add/1024x1024",
       {{{1024, 1024}}, {{1024, 1024}}},
       [](const Tensors& x) { return x[0] + x[1]; },
       "x[0] + x[1]",
       "f32 bf16 fwd"},
      {"add_row/1024x1024",
       {{{1024, 1024}}, {{1024}}},
       [](const Tensors& x) { return x[0] + x[1]; },
       "x[0] + x[1]"},
      {"mul/1024x1024",
       {{{1024, 1024}}, {{1024, 1024}}},
       [](const Tensors& x) { return x[0] * x[1]; },
       "x[0] * x[1]",
       "f32 fwd bwd"},
      {"exp/1024x1024", {{{1024, 1024}}}, [](const Tensors& x) { return x[0].exp(); }, "x[0].exp()"},
      {"tanh/1024x1024",
       {{{1024, 1024}}},
       [](const Tensors& x) { return x[0].tanh(); },
       "x[0].tanh()",
       "f32 fwd"},
      {"gelu/2048x1536",
       {{{2048, 1536}}},
       [](const Tensors& x) { return gelu(x[0], "tanh"); },
       "F.gelu(x[0], approximate='tanh')"},
      {"transpose_copy/2048x2048",
       {{{2048, 2048}}},
       [](const Tensors& x) { return x[0].t().contiguous(); },
       "x[0].t().contiguous()",
       "f32 fwd"},
      {"sum/4096x1024",
       {{{4096, 1024}}},
       [](const Tensors& x) { return x[0].sum(); },
       "x[0].sum()",
       "f32 bf16 fwd"},
      {"sum_rows/4096x1024",
       {{{4096, 1024}}},
       [](const Tensors& x) { return x[0].sum({-1}); },
       "x[0].sum(-1)",
       "f32 fwd"},
      {"sum_columns/4096x1024",
       {{{4096, 1024}}},
       [](const Tensors& x) { return x[0].sum({0}); },
       "x[0].sum(0)",
       "f32 fwd"},
      {"amax_rows/4096x1024",
       {{{4096, 1024}}},
       [](const Tensors& x) { return x[0].amax({-1}); },
       "x[0].amax(-1)",
       "f32 fwd"},
      {"softmax/64x64",
       {{{64, 64}}},
       [](const Tensors& x) { return x[0].softmax(-1); },
       "x[0].softmax(-1)",
       "f32 fwd"},
      {"softmax/4096x1024",
       {{{4096, 1024}}},
       [](const Tensors& x) { return x[0].softmax(-1); },
       "x[0].softmax(-1)"},
      {"layer_norm/2048x384",
       {{{2048, 384}}, {{384}}, {{384}}},
       [](const Tensors& x) { return layer_norm(x[0], {384}, x[1], x[2]); },
       "F.layer_norm(x[0], (384,), x[1], x[2])"},
      {"cross_entropy/2048x256",
       {{{2048, 256}}, {{2048}, 256}},
       [](const Tensors& x) { return cross_entropy_loss(x[0], x[1]); },
       "F.cross_entropy(x[0], x[1])"},
      {"embedding/2048x384",
       {{{256, 384}}, {{2048}, 256}},
       [](const Tensors& x) { return embedding(x[0], x[1]); },
       "F.embedding(x[1], x[0])",
       "f32 fwd bwd",
       false},
      {"sdpa_causal/8x6x256x64",
       {{{8, 6, 256, 64}}, {{8, 6, 256, 64}}, {{8, 6, 256, 64}}},
       [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, true); },
       "F.scaled_dot_product_attention(x[0], x[1], x[2], is_causal=True)",
       "f32 fwd bwd",
       false},
  };
  return all;
}

double bytes_of(const Tensors& tensors) {
  double bytes = 0;
  for (auto& t : tensors)
    if (t.defined()) bytes += double(t.numel()) * double(t.element_size());
  return bytes;
}

// Microseconds in which as many threads as the pool's copy `bytes` / 2, reading and writing half each; the data stays in
// the caches where it fits, as the operators' does.
double copy_us(double bytes) {
  static std::map<double, double> known;
  if (known.contains(bytes)) return known[bytes];
  size_t threads = size_t(num_threads()), share = std::max<size_t>(64, size_t(bytes / 2) / threads);
  int rounds = int(std::clamp(2e8 / bytes, 3.0, 20000.0));
  std::vector<double> us(threads);
  std::vector<std::thread> pool;
  for (size_t k = 0; k < threads; ++k)
    pool.emplace_back([&, k] {
      std::vector<char> from(share, 1), to(share, 2);
      double best = 1e300;
      for (int part = 0; part < 6; ++part) {
        auto start = Clock::now();
        for (int i = 0; i < rounds; ++i) {
          std::memcpy(to.data(), from.data(), share);
          asm volatile("" : : "r"(to.data()) : "memory");
        }
        best =
            std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - start).count() / rounds);
      }
      us[k] = best;
    });
  for (auto& t : pool) t.join();
  return known[bytes] = *std::max_element(us.begin(), us.end());
}

double sample(const std::function<void()>& body, int calls) {
  for (int i = 0; i < 2; ++i) body();
  double best = 1e300;
  for (int part = 0; part < 5; ++part) {
    auto start = Clock::now();
    for (int i = 0; i < calls; ++i) body();
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - start).count() / calls);
  }
  return best;
}

void run_case(const BenchOptions& o, Peer* peer, const Case& c, ScalarType dtype, const char* dtype_name,
              bool backward) {
  std::string name = c.name + "/" + dtype_name + (backward ? "/bwd" : "/fwd");
  if (!o.wanted(name)) return;
  Tensors inputs, wanted;
  nlohmann::json request = {{"name", name},
                            {"dtype", dtype == kFloat ? "float32" : "bfloat16"},
                            {"expr", c.python},
                            {"bwd", backward}};
  for (auto& in : c.inputs) {
    Tensor t = in.high > 0 ? randint(0, in.high, in.shape, TensorOptions(kLong)) : randn(in.shape).to(dtype);
    if (backward && in.high == 0) wanted.push_back(t.requires_grad_());
    inputs.push_back(t);
    request["inputs"].push_back(in.shape);
    request["high"].push_back(in.high);
  }
  Tensor y = c.run(inputs), dy = ones_like(y);
  std::function<void()> body = [&] { c.run(inputs); };
  if (backward) body = [&] { autograd::grad({y}, wanted, {dy}, true); };
  if (o.calls > 0) {
    for (int i = 0; i < o.calls; ++i) body();
    return;
  }
  int calls = int(std::clamp(5e3 / sample(body, 1), 1.0, 5000.0));  // about 5 ms
  request["calls"] = calls;
  std::vector<double> ours, theirs;
  for (int pair = 0; pair < o.pairs; ++pair) {
    auto ask = [&] {
      theirs.push_back(nlohmann::json::parse(peer->ask(request.dump())).at("us").get<double>());
    };
    if (peer && pair % 2) ask();
    usleep(5000);  // the other side's threads go to sleep
    ours.push_back(sample(body, calls));
    usleep(5000);
    if (peer && pair % 2 == 0) ask();
  }
  BenchResult r{.bench = "ops", .name = name, .unit = "us", .peer = peer ? "pytorch" : ""};
  summarise(r, ours, theirs, true);
  if (c.bandwidth) {
    // Forward: inputs and result. Backward: the result's gradient, the inputs that it depends on, their gradients.
    double bytes = backward ? bytes_of({dy}) + 2 * bytes_of(wanted) : bytes_of(inputs) + bytes_of({y});
    r.ceiling = copy_us(bytes);
    r.of_ceiling = r.ceiling / r.value;
  }
  print_result(o, r);
}

int run(const BenchOptions& o) {
  VESTA_CHECK(!o.peer || !o.peer_python.empty(),
              "bench ops: --peer needs --peer-python or VESTA_PEER_PYTHON, a Python with PyTorch");
  manual_seed(o.seed);
  std::unique_ptr<Peer> peer;
  if (!o.peer_python.empty() && o.calls == 0)
    peer = std::make_unique<Peer>(std::vector<std::string>{o.peer_python, VESTA_BENCH_PEERS "/ops_torch.py",
                                                           std::to_string(num_threads())});
  std::vector<Case> all = cases();
  all.insert(all.end(), spatial_op_cases.begin(), spatial_op_cases.end());
  for (auto& c : all) {
    std::string kinds = c.kinds;
    for (auto [dtype, text] : {std::pair(kFloat, "f32"), std::pair(kBFloat16, "bf16")})
      for (bool backward : {false, true})
        if (kinds.find(text) != kinds.npos && kinds.find(backward ? "bwd" : "fwd") != kinds.npos)
          run_case(o, peer.get(), c, dtype, text, backward);
  }
  return 0;
}

}  // namespace

extern const Bench ops_bench;
const Bench ops_bench = {
    "ops", "single operators, forward and backward, against PyTorch with --peer and a copy's bandwidth", run};

}  // namespace vesta::cli
