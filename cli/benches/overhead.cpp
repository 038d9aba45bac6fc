// Cost of a call from C++ on 4 floats: what a program pays per op before any arithmetic. Each case repeats batches of
// calls; the median batch counts, the 5th and 95th percentile show the noise.
#include <algorithm>
#include <chrono>
#include <vector>

#include "base/thread_pool.h"
#include "bench.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/tensor.h"

namespace vesta::cli {
namespace {

constexpr int kBatches = 200;

// Nanoseconds per op; a batch is `calls` calls of body, each counted as `ops` ops.
template <class Body>
void measure(const BenchOptions& o, const char* name, int calls, int ops, Body body) {
  if (!o.only.empty() && std::string(name).find(o.only) == std::string::npos) return;
  using Clock = std::chrono::steady_clock;
  std::vector<double> ns;
  for (int b = 0; b < kBatches + 20; ++b) {
    auto start = Clock::now();
    for (int i = 0; i < calls; ++i) body();
    double per_op =
        std::chrono::duration<double, std::nano>(Clock::now() - start).count() / (double(calls) * ops);
    if (b >= 20) ns.push_back(per_op);  // the first ones warm caches and the allocator
  }
  std::sort(ns.begin(), ns.end());
  print_result(o, {"overhead", name, ns[kBatches / 2], "ns", ns[kBatches / 20], ns[kBatches * 19 / 20]});
}

int run(const BenchOptions& o) {
  Tensor a = ones({4}), b = ones({4}), sink;
  {
    NoGradGuard no_grad;
    measure(o, "add_no_grad", 1000, 1, [&] { sink = a + b; });
    measure(o, "view", 1000, 1, [&] { sink = a.view({2, 2}); });
  }
  Tensor x = ones({4}).requires_grad_(), y = ones({4}).requires_grad_();
  measure(o, "add_grad", 1000, 1, [&] { sink = x + y; });
  measure(o, "mul_grad", 1000, 1, [&] { sink = x * y; });
  constexpr int kChain = 50;
  Tensor seed = ones({4});
  measure(o, "fwd_bwd", 20, kChain, [&] {
    Tensor t = x;
    for (int i = 0; i < kChain; ++i) t = t * y;
    sink = autograd::grad({t}, {x}, {seed})[0];
  });
  return 0;
}

}  // namespace

extern const Bench overhead_bench;
const Bench overhead_bench = {
    "overhead", "ns an op on 4 floats: add and mul with and without recording, a view, forward and backward",
    run};

}  // namespace vesta::cli
