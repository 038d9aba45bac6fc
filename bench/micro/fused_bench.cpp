// Times the fused CPU kernels alone, without tensors: attention, norms, softmax, cross entropy, optimiser steps and
// reductions on the shapes of a small GPT and on rows in cache and in memory. One JSON line a case: the median of
// repeated runs, with GB/s or GFLOP/s by the bytes or operations that the algorithm needs. Takes no arguments, or a
// prefix of the case names to run.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/adamw.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/cross_entropy.h"
#include "kernels/cpu/layer_norm.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/softmax.h"

namespace {

using namespace vesta;
using namespace vesta::cpu;

const char* filter = "";

std::vector<float> randoms(int64_t n) {
  static std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = normal(engine);
  return v;
}

std::vector<uint16_t> random_bf16(int64_t n) {
  std::vector<uint16_t> out;
  for (float x : randoms(n)) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    out.push_back(static_cast<uint16_t>(u >> 16));
  }
  return out;
}

// Whether cases whose names start with `kind` may run; asked before their data is made.
bool wanted(const char* kind) { return *filter == 0 || std::strncmp(filter, kind, std::strlen(kind)) == 0; }

// work: bytes for unit GB/s, operations for GFLOP/s.
void report(const std::string& name, double work, const char* unit, const std::function<void()>& run) {
  if (name.rfind(filter, 0) != 0) return;
  using Clock = std::chrono::steady_clock;
  auto seconds = [&](int repeats) {
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) run();
    return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
  };
  const auto warm =
      Clock::now() + std::chrono::milliseconds(100);  // clocks, pages, the worker's first wake-up
  while (Clock::now() < warm) run();
  const int repeats = std::max(1, static_cast<int>(1e-2 / std::max(seconds(3), 1e-9)));
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) times.push_back(seconds(repeats));
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf(
      "{\"bench\":\"fused\",\"case\":\"%s\",\"us\":%.3f,\"lo_us\":%.3f,\"hi_us\":%.3f,\"value\":%.2f,"
      "\"unit\":\"%s\","
      "\"threads\":%d}\n",
      name.c_str(), median * 1e6, times[1] * 1e6, times[13] * 1e6, work / median * 1e-9, unit, num_threads());
  std::fflush(stdout);
}

void attention(const char* label, int64_t b, int64_t h, int64_t t, int64_t d, bool causal, Elem type) {
  const std::string name = std::string("attention ") + label;
  if (!wanted("attention")) return;
  const int64_t width = h * d, n = b * t * width;
  const size_t size = elem_size(type);
  std::vector<float> f32 = randoms(3 * n), grad32 = randoms(n);
  std::vector<uint16_t> b16 = random_bf16(3 * n), grad16 = random_bf16(n);
  char* qkv = type == Elem::F32 ? reinterpret_cast<char*>(f32.data()) : reinterpret_cast<char*>(b16.data());
  const void* grad =
      type == Elem::F32 ? static_cast<void*>(grad32.data()) : static_cast<void*>(grad16.data());
  std::vector<float> out(static_cast<size_t>(n)), dqkv(static_cast<size_t>(3 * n)),
      lse(static_cast<size_t>(b * h * t));
  AttentionArgs a;
  a.type = type;
  a.batch = b;
  a.heads = h;
  a.q_len = a.k_len = t;
  a.dim = d;
  a.scale = 1 / std::sqrt(static_cast<double>(d));
  a.causal = causal;
  a.q = qkv;
  a.k = qkv + size * static_cast<size_t>(width);
  a.v = qkv + size * static_cast<size_t>(2 * width);
  a.q_strides = a.k_strides = a.v_strides = {t * 3 * width, d, 3 * width};
  a.out_strides = {t * width, d, width};
  AttentionGrads g;
  g.grad_out = grad;
  g.out = out.data();
  g.logsumexp = lse.data();
  g.grad_out_strides = a.out_strides;
  char* d_base = reinterpret_cast<char*>(dqkv.data());
  g.dq = d_base;
  g.dk = d_base + size * static_cast<size_t>(width);
  g.dv = d_base + size * static_cast<size_t>(2 * width);
  g.dq_strides = g.dk_strides = g.dv_strides = a.q_strides;
  const double flops = static_cast<double>(b * h * t * t * d) * 4 * (causal ? 0.5 : 1);
  report(name + " forward", flops, "GFLOP/s", [&] { attention_forward(a, out.data(), lse.data()); });
  report(name + " backward", flops * 2.5, "GFLOP/s", [&] { attention_backward(a, g); });
}

void norms(int64_t rows, int64_t dim) {
  if (!wanted("layer_norm")) return;
  const int64_t n = rows * dim;
  std::vector<float> x = randoms(n), dy = randoms(n), w = randoms(dim), b = w, y = x, dx = x, dw = w, db = w;
  std::vector<float> mean(static_cast<size_t>(rows)), rstd = mean;
  const std::string shape = std::to_string(rows) + "x" + std::to_string(dim);
  const double bytes = static_cast<double>(n) * 4;
  report("layer_norm forward " + shape, 2 * bytes, "GB/s", [&] {
    layer_norm_forward(Elem::F32, Elem::F32, x.data(), w.data(), b.data(), y.data(), mean.data(), rstd.data(),
                       {rows, dim}, 1e-5);
  });
  report("layer_norm backward " + shape, 3 * bytes, "GB/s", [&] {
    layer_norm_backward(Elem::F32, Elem::F32, dy.data(), x.data(), w.data(), mean.data(), rstd.data(),
                        dx.data(), dw.data(), db.data(), {rows, dim});
  });
}

void softmax(int64_t rows, int64_t dim) {
  if (!wanted("softmax")) return;
  std::vector<float> x = randoms(rows * dim), y = x, dx = x;
  const std::string shape = std::to_string(rows) + "x" + std::to_string(dim);
  const double bytes = static_cast<double>(rows * dim) * 4;
  report("softmax forward " + shape, 2 * bytes, "GB/s", [&] {
    softmax_forward(Elem::F32, x.data(), y.data(), {rows, dim, 1}, false);
  });
  report("softmax backward " + shape, 3 * bytes, "GB/s", [&] {
    softmax_backward(Elem::F32, x.data(), y.data(), dx.data(), {rows, dim, 1}, false);
  });
}

void cross_entropy(int64_t rows, int64_t classes) {
  if (!wanted("cross_entropy")) return;
  std::vector<float> x = randoms(rows * classes), dx = x, lse(static_cast<size_t>(rows));
  std::vector<int64_t> target(static_cast<size_t>(rows));
  for (size_t i = 0; i < target.size(); ++i) target[i] = static_cast<int64_t>(i * 37) % classes;
  CrossEntropyArgs a;
  a.logits = x.data();
  a.rows = rows;
  a.classes = a.row_stride = classes;
  a.target = target.data();
  float loss = 0, total = 0, grad = 1;
  const std::string shape = std::to_string(rows) + "x" + std::to_string(classes);
  const double bytes = static_cast<double>(rows * classes) * 4;
  report("cross_entropy forward " + shape, bytes, "GB/s",
         [&] { cross_entropy_forward(a, &loss, lse.data(), &total); });
  report("cross_entropy backward " + shape, 2 * bytes, "GB/s",
         [&] { cross_entropy_backward(a, lse.data(), &total, &grad, dx.data(), classes); });
}

void optimisers(const char* label, int64_t tensors, int64_t numel) {
  if (!wanted("adamw") && !wanted("grad_norm")) return;
  std::vector<std::vector<float>> p, g, m, v;
  std::vector<AdamTensor> list;
  std::vector<FlatTensor> flat;
  for (int64_t i = 0; i < tensors; ++i) {
    for (auto* buffers : {&p, &g, &m}) buffers->push_back(randoms(numel));
    v.push_back(std::vector<float>(static_cast<size_t>(numel), 1.f));
    list.push_back({p.back().data(), g.back().data(), m.back().data(), v.back().data(), nullptr, numel, 10});
    flat.push_back({g.back().data(), numel});
  }
  AdamOptions options;
  options.weight_decay = 0.01;
  const double n = static_cast<double>(tensors * numel);
  report(std::string("adamw ") + label, n * 28, "GB/s",
         [&] { adam_step({}, list.data(), tensors, options); });
  report(std::string("grad_norm ") + label, n * 4, "GB/s",
         [&] { sum_of_squares(Elem::F32, flat.data(), tensors); });
}

void reductions(int64_t outer, int64_t reduced, int64_t inner) {
  if (!wanted("sum") && !wanted("max") && !wanted("argmax") && !wanted("var")) return;
  const int64_t n = outer * reduced * inner;
  std::vector<float> x = randoms(n), out(static_cast<size_t>(outer * inner));
  std::vector<int64_t> index(out.size());
  const ReduceShape shape{outer, reduced, inner};
  const std::string name =
      std::to_string(outer) + "x" + std::to_string(reduced) + "x" + std::to_string(inner);
  const double bytes = static_cast<double>(n) * 4;
  report("sum " + name, bytes, "GB/s",
         [&] { reduce(ReduceOp::Sum, Elem::F32, x.data(), shape, out.data(), Elem::F32); });
  report("max " + name, bytes, "GB/s",
         [&] { reduce(ReduceOp::Max, Elem::F32, x.data(), shape, out.data(), Elem::F32); });
  report("argmax " + name, bytes, "GB/s",
         [&] { arg_reduce(true, Elem::F32, x.data(), shape, index.data(), nullptr); });
  report("var " + name, bytes, "GB/s",
         [&] { var_mean(Elem::F32, x.data(), shape, 1, false, out.data(), nullptr); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) filter = argv[1];
  attention("nano B12 H4 T64 D32 causal", 12, 4, 64, 32, true, Elem::F32);
  attention("small B8 H6 T256 D64 causal", 8, 6, 256, 64, true, Elem::F32);
  attention("small B8 H6 T256 D64 causal bf16", 8, 6, 256, 64, true, Elem::BF16);
  attention("B1 H8 T1024 D64", 1, 8, 1024, 64, false, Elem::F32);
  attention("B1 H2 T2048 D128 causal", 1, 2, 2048, 128, true, Elem::F32);
  norms(768, 128);
  norms(2048, 384);
  norms(4096, 4096);
  softmax(3072, 64);
  softmax(12288, 256);
  softmax(256, 32768);
  cross_entropy(768, 65);
  cross_entropy(2048, 256);
  cross_entropy(1024, 50257);
  optimisers("50 x 16K", 50, 16384);
  optimisers("1000 x 100", 1000, 100);
  optimisers("10 x 1M", 10, 1 << 20);
  reductions(1, 1000, 1);
  reductions(1, 1 << 24, 1);
  reductions(2048, 384, 1);
  reductions(1, 2048, 384);
  reductions(1, 1 << 20, 8);
  return 0;
}
