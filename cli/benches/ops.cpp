// Single operators, forward and backward, on the sizes of training: NAME/shape/dtype/fwd|bwd in microseconds. The tables
// of cases are in ops_*.cpp; about a third of the shapes is drawn from the seed. The ceiling is the time that a plain copy by as many threads takes for the bytes that must be read and written at least. The peer
// is PyTorch with the same expression, alternating with ours.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
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
#include "ops_cases.h"
#include "vesta/autograd.h"
#include "vesta/error.h"
#include "vesta/ops.h"
#include "vesta/tensor.h"

namespace vesta::cli {
namespace {

using Clock = std::chrono::steady_clock;
OpCases all_cases(uint64_t seed) {
  OpCases all;
  for (auto* add : {add_pointwise_cases, add_reduction_cases, add_norm_cases, add_spatial_cases,
                    add_index_cases, add_step_cases})
    add(all, seed);
  return all;
}

// The peer's word.
const char* dtype_word(DType dtype) {
  return dtype == kFloat      ? "float32"
         : dtype == kBFloat16 ? "bfloat16"
         : dtype == kDouble   ? "float64"
                              : "int64";
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

Tensor make_input(const BenchInput& in, DType dtype, bool backward) {
  std::vector<int64_t> shape = in.shape;
  const size_t last = shape.size() - 1;
  if (in.is("transposed")) std::swap(shape[last], shape[last - 1]);
  if (in.is("every_other")) shape[last] *= 2;
  Tensor t;
  if (in.high > 0)
    t = randint(0, in.high, shape, TensorOptions(kLong));
  else if (in.is("mask"))
    t = rand(shape).lt(0.5);
  else if (is_integral(dtype, true))
    t = randint(0, 1000, shape, TensorOptions(dtype));
  else if (in.is("uniform"))
    t = (rand(shape) * 0.98 + 0.01).to(dtype);
  else
    t = randn(shape).to(dtype);
  if (in.is("sorted")) t = std::get<0>(t.sort(-1));
  if (in.is("transposed")) t = t.transpose(-1, -2);
  if (in.is("every_other")) t = t.slice(-1, 0, std::nullopt, 2);
  if (backward && is_floating_point(t.dtype()) && !in.is("fixed")) t = t.detach().requires_grad_();
  return t;
}

void run_case(const BenchOptions& o, Peer* peer, const OpCase& c, DType dtype, const char* dtype_name,
              bool backward) {
  std::string name = c.name + "/" + dtype_name + (backward ? "/bwd" : "/fwd");
  if (!o.wanted(name)) return;
  Tensors inputs, wanted;
  nlohmann::json request = {{"name", name},
                            {"dtype", dtype_word(dtype)},
                            {"expr", c.python},
                            {"setup", c.python_setup},
                            {"bwd", backward}};
  for (auto& in : c.inputs) {
    inputs.push_back(make_input(in, dtype, backward));
    if (inputs.back().requires_grad()) wanted.push_back(inputs.back());
    request["inputs"].push_back(in.shape);
    request["high"].push_back(in.high);
    request["form"].push_back(in.form);
  }
  BenchStep step = c.prepare ? c.prepare(inputs) : [&] { return c.run(inputs); };
  Tensor y = step(), dy = backward ? ones_like(y) : Tensor();
  std::function<void()> body = [&] { step(); };
  if (backward) body = [&] { autograd::grad({y}, wanted, {dy}, true); };
  if (o.calls > 0) {
    for (int i = 0; i < o.calls; ++i) body();
    return;
  }
  int calls = int(std::clamp(3e3 / sample(body, 1), 1.0, 3000.0));  // about 3 ms
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
  for (auto& c : all_cases(o.seed)) {
    std::string kinds = c.kinds;
    for (auto [dtype, text] : {std::pair(kFloat, "f32"), std::pair(kBFloat16, "bf16"),
                               std::pair(kDouble, "f64"), std::pair(kLong, "i64")})
      for (bool backward : {false, true})
        if (kinds.find(text) != kinds.npos && kinds.find(backward ? "bwd" : "fwd") != kinds.npos)
          run_case(o, peer.get(), c, dtype, text, backward);
  }
  return 0;
}

}  // namespace

std::vector<int64_t> DrawnShapes::matrix(int64_t elements, int64_t low, int64_t high) {
  const double share = double(between(0, 1'000'000)) / 1e6;
  const int64_t columns = int64_t(double(low) * std::pow(double(high) / double(low), share));
  return {std::max<int64_t>(1, elements / columns), columns};
}

std::string case_name(const char* op, const std::vector<int64_t>& shape) {
  std::string name = op;
  for (size_t d = 0; d < shape.size(); ++d) name += (d ? "x" : "/") + std::to_string(shape[d]);
  return name;
}

extern const Bench ops_bench;
const Bench ops_bench = {
    "ops", "single operators, forward and backward, against PyTorch with --peer and a copy's bandwidth", run};

}  // namespace vesta::cli
