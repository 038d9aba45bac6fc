// GEMM against oneDNN and OpenBLAS, in one process, one JSON line a result (design: alternating A/B pairs, median of the
// pair ratios with a 90 % interval, share of the multiply-add peak measured here). A stand-alone program:
//   gemm_bench [--seed N] [--pairs N] [--only TEXT] [--level NAME] [--no-peers]
// A third of the square cases is drawn from the seed. The peers are loaded with dlopen: missing ones give no line. For
// oneDNN f32 both dnnl_sgemm and the matmul primitive with pre-packed weights (tag any) are timed.
#include <dlfcn.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/cpu_isa.h"
#include "base/thread_pool.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/gemm_half.h"

namespace {

using vesta::cpu::GemmArgs;
using vesta::cpu::GemmType;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The few C functions of the peers that we call, declared here: no header or library is needed to build.
struct OneDnn {
  static constexpr int kCpu = 1, kF32 = 3, kBf16 = 2, kAny = 1, kAb = 3, kInOrder = 1, kWeights = 131;
  static constexpr int kArgSource = 1, kArgWeights = 33, kArgTo = 17;
  struct Arg {
    int arg;
    void* memory;
  };
  // Opaque and larger than the library's own descriptors (696 and 2800 bytes in 2.6).
  struct MemoryDesc {
    alignas(16) char bytes[2048];
  };
  struct MatmulDesc {
    alignas(16) char bytes[8192];
  };
  int (*sgemm)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t,
               float, float*, int64_t) = nullptr;
  int (*engine_create)(void**, int, size_t) = nullptr;
  int (*stream_create)(void**, void*, unsigned) = nullptr;
  int (*stream_wait)(void*) = nullptr;
  int (*desc_by_tag)(MemoryDesc*, int, const int64_t*, int, int) = nullptr;
  int (*matmul_init)(MatmulDesc*, const MemoryDesc*, const MemoryDesc*, const MemoryDesc*,
                     const MemoryDesc*) = nullptr;
  int (*pd_create)(void**, const void*, const void*, void*, const void*) = nullptr;
  const MemoryDesc* (*pd_query_md)(const void*, int, int) = nullptr;
  int (*primitive_create)(void**, const void*) = nullptr;
  int (*primitive_execute)(const void*, void*, int, const Arg*) = nullptr;
  int (*primitive_destroy)(void*) = nullptr;
  int (*memory_create)(void**, const MemoryDesc*, void*, void*) = nullptr;
  int (*memory_destroy)(void*) = nullptr;
  int (*reorder_create)(void**, const MemoryDesc*, void*, const MemoryDesc*, void*, const void*) = nullptr;
  void* engine = nullptr;
  void* stream = nullptr;
  bool ok = false;
};

template <class F>
bool symbol(void* library, const char* name, F& f) {
  f = reinterpret_cast<F>(dlsym(library, name));
  return f != nullptr;
}

struct Peers {
  OneDnn dnn;
  void (*cblas_sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                      float*, int) = nullptr;
  void (*cblas_dgemm)(int, int, int, int, int, int, double, const double*, int, const double*, int, double,
                      double*, int) = nullptr;
  void (*blas_threads)(int) = nullptr;
  void (*omp_threads)(int) = nullptr;

  void load() {
    if (void* lib = dlopen("libdnnl.so.2", RTLD_NOW)) {
      OneDnn& d = dnn;
      d.ok = symbol(lib, "dnnl_sgemm", d.sgemm) && symbol(lib, "dnnl_engine_create", d.engine_create) &&
             symbol(lib, "dnnl_stream_create", d.stream_create) &&
             symbol(lib, "dnnl_stream_wait", d.stream_wait) &&
             symbol(lib, "dnnl_memory_desc_init_by_tag", d.desc_by_tag) &&
             symbol(lib, "dnnl_matmul_desc_init", d.matmul_init) &&
             symbol(lib, "dnnl_primitive_desc_create", d.pd_create) &&
             symbol(lib, "dnnl_primitive_desc_query_md", d.pd_query_md) &&
             symbol(lib, "dnnl_primitive_create", d.primitive_create) &&
             symbol(lib, "dnnl_primitive_execute", d.primitive_execute) &&
             symbol(lib, "dnnl_primitive_destroy", d.primitive_destroy) &&
             symbol(lib, "dnnl_memory_create", d.memory_create) &&
             symbol(lib, "dnnl_memory_destroy", d.memory_destroy) &&
             symbol(lib, "dnnl_reorder_primitive_desc_create", d.reorder_create) &&
             d.engine_create(&d.engine, OneDnn::kCpu, 0) == 0 &&
             d.stream_create(&d.stream, d.engine, OneDnn::kInOrder) == 0;
      if (void* omp = dlopen("libgomp.so.1", RTLD_NOW)) symbol(omp, "omp_set_num_threads", omp_threads);
    }
    if (void* lib = dlopen("libopenblas.so.0", RTLD_NOW)) {
      symbol(lib, "cblas_sgemm", cblas_sgemm);
      symbol(lib, "cblas_dgemm", cblas_dgemm);
      symbol(lib, "openblas_set_num_threads", blas_threads);
      // It starts its threads at the first call; afterwards ours are pinned, and they would inherit that.
      std::vector<float> x(256 * 256), y(256 * 256);
      if (blas_threads) blas_threads(2);
      if (cblas_sgemm)
        cblas_sgemm(101, 111, 111, 256, 256, 256, 1, x.data(), 256, x.data(), 256, 0, y.data(), 256);
    }
  }
  void threads(int n) {
    if (omp_threads) omp_threads(n);
    if (blas_threads) blas_threads(n);
  }
};

// oneDNN's matmul with weights in the layout it likes best, packed before the clock starts.
struct Matmul {
  const OneDnn& d;
  void* primitive = nullptr;
  void* memory[3] = {};
  bool ok = false;

  Matmul(const OneDnn& dnn, int type, int64_t m, int64_t n, int64_t k, void* a, void* b, void* c) : d(dnn) {
    if (!d.ok) return;
    const int64_t da[] = {m, k}, db[] = {k, n}, dc[] = {m, n};
    OneDnn::MemoryDesc ma, mb, mb_plain, mc;
    auto desc = std::make_unique<OneDnn::MatmulDesc>();
    void *pd = nullptr, *reorder_pd = nullptr, *reorder = nullptr, *plain = nullptr;
    if (d.desc_by_tag(&ma, 2, da, type, OneDnn::kAb) || d.desc_by_tag(&mb, 2, db, type, OneDnn::kAny) ||
        d.desc_by_tag(&mb_plain, 2, db, type, OneDnn::kAb) || d.desc_by_tag(&mc, 2, dc, type, OneDnn::kAb) ||
        d.matmul_init(desc.get(), &ma, &mb, nullptr, &mc) ||
        d.pd_create(&pd, desc.get(), nullptr, d.engine, nullptr))
      return;
    const OneDnn::MemoryDesc* packed = d.pd_query_md(pd, OneDnn::kWeights, 0);
    void* const allocate = reinterpret_cast<void*>(static_cast<size_t>(-1));
    if (!packed || d.memory_create(&memory[0], &ma, d.engine, a) ||
        d.memory_create(&plain, &mb_plain, d.engine, b) ||
        d.memory_create(&memory[1], packed, d.engine, allocate) ||
        d.memory_create(&memory[2], &mc, d.engine, c) ||
        d.reorder_create(&reorder_pd, &mb_plain, d.engine, packed, d.engine, nullptr) ||
        d.primitive_create(&reorder, reorder_pd) || d.primitive_create(&primitive, pd))
      return;
    const OneDnn::Arg args[] = {{OneDnn::kArgSource, plain}, {OneDnn::kArgTo, memory[1]}};
    ok = d.primitive_execute(reorder, d.stream, 2, args) == 0 && d.stream_wait(d.stream) == 0;
    d.primitive_destroy(reorder);
    d.memory_destroy(plain);
  }
  ~Matmul() {
    if (primitive) d.primitive_destroy(primitive);
    for (void* m : memory)
      if (m) d.memory_destroy(m);
  }
  void run() const {
    const OneDnn::Arg args[] = {
        {OneDnn::kArgSource, memory[0]}, {OneDnn::kArgWeights, memory[1]}, {OneDnn::kArgTo, memory[2]}};
    d.primitive_execute(primitive, d.stream, 3, args);
    d.stream_wait(d.stream);
  }
};

// Peak of independent multiply-adds, GFLOP/s of one thread; the widest vectors that the kernels use on this machine.
#if defined(__x86_64__)
// 10 chains in named variables: an array would be kept in memory.
#define VESTA_PEAK_LOOP(lanes, instruction)                                                                  \
  typedef float V __attribute__((vector_size(4 * lanes)));                                                   \
  const V y = V{} + 0.999f, z = V{} + 0.001f;                                                                \
  V x0 = z, x1 = z, x2 = z, x3 = z, x4 = z, x5 = z, x6 = z, x7 = z, x8 = z, x9 = z;                          \
  double best = 0;                                                                                           \
  for (int repeat = 0; repeat < 30; ++repeat) {                                                              \
    const double start = now();                                                                              \
    for (int i = 0; i < 100000; ++i)                                                                         \
      asm volatile(instruction                                                                               \
                   " %10, %11, %0\n" instruction " %10, %11, %1\n" instruction " %10, %11, %2\n" instruction \
                   " %10, %11, %3\n" instruction " %10, %11, %4\n" instruction " %10, %11, %5\n" instruction \
                   " %10, %11, %6\n" instruction " %10, %11, %7\n" instruction " %10, %11, %8\n" instruction \
                   " %10, %11, %9"                                                                           \
                   : "+v"(x0), "+v"(x1), "+v"(x2), "+v"(x3), "+v"(x4), "+v"(x5), "+v"(x6), "+v"(x7),         \
                     "+v"(x8), "+v"(x9)                                                                      \
                   : "v"(y), "v"(z));                                                                        \
    best = std::max(best, 100000.0 * 10 * 2 * lanes / (now() - start) * 1e-9);                               \
  }                                                                                                          \
  return best
[[gnu::target("avx512f"), gnu::noinline]] double peak_wide() { VESTA_PEAK_LOOP(16, "vfmadd213ps"); }
[[gnu::target("avx2,fma"), gnu::noinline]] double peak_narrow() { VESTA_PEAK_LOOP(8, "vfmadd213ps"); }
double peak() {
  if (vesta::cpu_isa() >= vesta::CpuIsa::V4) return peak_wide();
  return vesta::cpu_isa() >= vesta::CpuIsa::V3 ? peak_narrow() : 0;
}
#else
double peak() { return 0; }
#endif

double peak_of(int threads) {
  if (threads == 1) return peak();
  std::vector<double> each(static_cast<size_t>(threads));
  vesta::parallel_for(0, threads, 1, [&](int64_t i, int64_t) { each[static_cast<size_t>(i)] = peak(); });
  double sum = 0;
  for (double p : each) sum += p;
  return sum;
}

// One thread a core, ours and (OMP_PROC_BIND in main) the peer's: left alone, this kernel often wakes a worker on its
// caller's core and leaves it there for a millisecond.
void set_threads(int threads) {
  vesta::set_num_threads(threads);
  const auto pin = [](int core) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(core, &mask);
    sched_setaffinity(0, sizeof mask, &mask);
  };
  pin(0);
  for (int repeat = 0; threads > 1 && repeat < 6; ++repeat)
    vesta::parallel_for(0, 4 * threads, 1, [&](int64_t, int64_t) {
      pin(vesta::thread_index());
      const double start = now();
      while (now() - start < 1e-3) {
      }
    });
}

struct Options {
  uint64_t seed = 7;
  int pairs = 11;
  std::string only;
  bool peers = true;
  vesta::CpuIsa level = vesta::cpu_isa();
};

struct Machine {
  std::string name, commit;
};

std::string first_line(const char* command) {
  std::string out;
  if (FILE* pipe = popen(command, "r")) {
    char line[128];
    if (std::fgets(line, sizeof line, pipe)) out = line;
    pclose(pipe);
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

Machine machine() {
  Machine m;
  std::ifstream info("/proc/cpuinfo");
  std::string line, model = "unknown";
  int cores = 0;
  while (std::getline(info, line)) {
    if (line.rfind("processor", 0) == 0) ++cores;
    if (line.rfind("model name", 0) == 0) model = line.substr(line.find(':') + 2);
  }
  m.name = model + " x" + std::to_string(cores);
  m.commit = first_line("git rev-parse --short HEAD 2>/dev/null");
  return m;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : (v[v.size() / 2] + v[(v.size() - 1) / 2]) / 2;
}

// Seconds of one call: `count` calls in a row, after one untimed.
double sample(const std::function<void()>& f, int count) {
  f();
  const double start = now();
  for (int i = 0; i < count; ++i) f();
  return (now() - start) / count;
}

struct Bench {
  Options options;
  Machine where;
  Peers peers;
  double ceiling[3] = {};  // by threads

  bool wanted(const std::string& name) const { return name.find(options.only) != std::string::npos; }

  void report(const std::string& name, double work, const char* unit, double top, const std::string& peer,
              const std::function<void()>& ours, const std::function<void()>& theirs) {
    // A sample lasts 8 ms or more. The pause lets the other side's spinning threads fall asleep: libgomp's spin for
    // milliseconds, OpenBLAS's for some 20.
    const useconds_t wait = peer == "OpenBLAS" ? 40000 : 10000;
    ours();
    const double once = std::max(1e-8, sample(ours, 2));
    const int count = std::max(1, static_cast<int>(8e-3 / once));
    std::vector<double> mine, other, ratio;
    for (int i = 0; i < options.pairs; ++i) {
      const auto pause = [wait] { usleep(wait); };
      double a, b = 0;
      if (i % 2) {
        if (theirs) b = sample(theirs, count), pause();
        a = sample(ours, count);
      } else {
        a = sample(ours, count);
        if (theirs) pause(), b = sample(theirs, count);
      }
      pause();
      mine.push_back(work / a);
      if (theirs) other.push_back(work / b), ratio.push_back(b / a);
    }
    std::sort(ratio.begin(), ratio.end());
    const double value = median(mine);
    // 90 % interval of the median by order statistics: ranks 2 of 9, 3 of 11, 4 of 13.
    const size_t edge = ratio.size() >= 9 ? (ratio.size() - 5) / 2 : 0;
    std::printf("{\"bench\":\"gemm\",\"case\":\"%s\",\"value\":%.2f,\"unit\":\"%s\",", name.c_str(), value,
                unit);
    if (theirs)
      std::printf("\"peer\":\"%s\",\"peer_value\":%.2f,\"ratio\":%.3f,\"lo\":%.3f,\"hi\":%.3f,", peer.c_str(),
                  median(other), median(ratio), ratio[edge], ratio[ratio.size() - 1 - edge]);
    std::printf("\"ceiling\":%.1f,\"of_ceiling\":%.3f,\"seed\":%llu,\"machine\":\"%s\",\"commit\":\"%s\"}\n",
                top, top > 0 ? value / top : 0, static_cast<unsigned long long>(options.seed),
                where.name.c_str(), where.commit.c_str());
    std::fflush(stdout);
  }

  // form: NN, NT or TN as in BLAS (which operand is stored transposed).
  void one(GemmType type, int64_t m, int64_t n, int64_t k, int threads, const char* form = "NN",
           bool training = false) {
    static const char* names[] = {"f32", "f64", "f16", "bf16"};
    const std::string name = std::string(names[static_cast<int>(type)]) + " " + std::to_string(m) + "x" +
                             std::to_string(n) + "x" + std::to_string(k) + " " + form + " " +
                             std::to_string(threads) + "t";
    if (!wanted(name)) return;
    set_threads(threads);
    peers.threads(threads);
    const bool ta = form[0] == 'T', tb = form[1] == 'T';
    std::mt19937_64 rng(options.seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const size_t bytes = type == GemmType::F64 ? 8 : type == GemmType::F32 ? 4 : 2;
    const auto make = [&](int64_t count) {
      // On huge pages, as Vesta's own large tensors are.
      constexpr size_t kPage = size_t{2} << 20;
      const size_t total = (static_cast<size_t>(count) * bytes + 64 + kPage - 1) / kPage * kPage;
      std::unique_ptr<char, decltype(&std::free)> p(static_cast<char*>(std::aligned_alloc(kPage, total)),
                                                    &std::free);
      madvise(p.get(), total, MADV_HUGEPAGE);
      for (int64_t i = 0; i < count; ++i) {
        const float x = uniform(rng);
        if (type == GemmType::F64) reinterpret_cast<double*>(p.get())[i] = x;
        if (type == GemmType::F32) reinterpret_cast<float*>(p.get())[i] = x;
        if (type == GemmType::F16) reinterpret_cast<uint16_t*>(p.get())[i] = vesta::cpu::float_to_f16(x);
        if (type == GemmType::Bf16) reinterpret_cast<uint16_t*>(p.get())[i] = vesta::cpu::float_to_bf16(x);
      }
      return p;
    };
    auto a = make(m * k), b = make(k * n), c = make(m * n);
    GemmArgs g;
    g.type = g.out = type;
    g.m = m, g.n = n, g.k = k;
    g.a = a.get(), g.a_row = ta ? 1 : k, g.a_col = ta ? m : 1;
    g.b = b.get(), g.b_row = tb ? 1 : n, g.b_col = tb ? k : 1;
    g.c = c.get(), g.ldc = n;
    const auto ours = [&] { gemm_at(options.level, g); };
    const double work = 2e-9 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const double scale = type == GemmType::F64 ? 0.5 : type == GemmType::Bf16 ? 2 : 1;
    const double top = ceiling[threads] * scale;
    bool any = false;
    if (options.peers && (type == GemmType::F32 || type == GemmType::Bf16) && !ta && !tb) {
      Matmul matmul(peers.dnn, type == GemmType::F32 ? OneDnn::kF32 : OneDnn::kBf16, m, n, k, a.get(),
                    b.get(), c.get());
      if (matmul.ok) {
        report(name, work, "GFLOP/s", top, "oneDNN matmul prepacked", ours, [&] { matmul.run(); });
        any = true;
      }
    }
    const auto* fa = reinterpret_cast<const float*>(a.get());
    const auto* fb = reinterpret_cast<const float*>(b.get());
    auto* fc = reinterpret_cast<float*>(c.get());
    const int64_t lda = ta ? m : k, ldb = tb ? k : n;
    if (options.peers && type == GemmType::F32 && peers.dnn.ok) {
      report(name, work, "GFLOP/s", top, "dnnl_sgemm", ours, [&] {
        peers.dnn.sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, fa, lda, fb, ldb, 0, fc, n);
      });
      any = true;
    }
    const auto i = [](int64_t v) { return static_cast<int>(v); };
    constexpr int kRowMajor = 101, kNo = 111, kYes = 112;
    // Training shapes go without OpenBLAS: its pauses are long.
    if (options.peers && type == GemmType::F32 && peers.cblas_sgemm && !training) {
      report(name, work, "GFLOP/s", top, "OpenBLAS", ours, [&] {
        peers.cblas_sgemm(kRowMajor, ta ? kYes : kNo, tb ? kYes : kNo, i(m), i(n), i(k), 1, fa, i(lda), fb,
                          i(ldb), 0, fc, i(n));
      });
      any = true;
    }
    if (options.peers && type == GemmType::F64 && peers.cblas_dgemm) {
      report(name, work, "GFLOP/s", top, "OpenBLAS", ours, [&] {
        peers.cblas_dgemm(kRowMajor, ta ? kYes : kNo, tb ? kYes : kNo, i(m), i(n), i(k), 1,
                          reinterpret_cast<const double*>(a.get()), i(lda),
                          reinterpret_cast<const double*>(b.get()), i(ldb), 0,
                          reinterpret_cast<double*>(c.get()), i(n));
      });
      any = true;
    }
    if (!any) report(name, work, "GFLOP/s", top, "", ours, nullptr);
  }

  void run() {
    ceiling[1] = peak_of(1);
    set_threads(2);
    ceiling[2] = vesta::num_threads() == 2 ? peak_of(2) : 0;
    std::mt19937_64 rng(options.seed);
    const auto size = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
    };
    for (int64_t s : {16, 32, 64, 128, 512}) one(GemmType::F32, s, s, s, 1);
    one(GemmType::F32, 2048, 2048, 2048, 2);
    one(GemmType::F32, size(200, 700), size(200, 700), size(200, 700), 1);
    one(GemmType::F32, size(700, 1500), size(700, 1500), size(700, 1500), 2);
    one(GemmType::F32, size(20, 100), size(20, 100), size(20, 100), 1);
    one(GemmType::F32, 1, 4096, 4096, 2);
    one(GemmType::F32, 1, 4096, 4096, 2, "NT");
    one(GemmType::F32, 4, 4096, 1024, 2, "NT");
    one(GemmType::Bf16, 512, 512, 512, 1);
    one(GemmType::Bf16, 2048, 2048, 2048, 2);
    one(GemmType::Bf16, size(200, 1000), size(200, 1000), size(200, 1000), 1);
    one(GemmType::F64, 512, 512, 512, 1);
    one(GemmType::F64, size(200, 700), size(200, 700), size(200, 700), 2);
    // GPT nano and small: y = x W^T (NT), dX = dY W (NN), dW = dY^T X (TN).
    struct Linear {
      int64_t rows, in, out;
    };
    for (Linear l : {Linear{768, 128, 384},
                     {768, 128, 128},
                     {768, 128, 512},
                     {768, 512, 128},
                     {768, 128, 256},
                     {2048, 384, 1152},
                     {2048, 384, 384},
                     {2048, 384, 1536},
                     {2048, 1536, 384},
                     {2048, 384, 256}}) {
      one(GemmType::F32, l.rows, l.out, l.in, 2, "NT", true);
      one(GemmType::F32, l.rows, l.in, l.out, 2, "NN", true);
      one(GemmType::F32, l.out, l.in, l.rows, 2, "TN", true);
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--seed") bench.options.seed = std::strtoull(value, nullptr, 10), ++i;
    if (option == "--pairs") bench.options.pairs = std::max(1, std::atoi(value)), ++i;
    if (option == "--only") bench.options.only = value, ++i;
    if (option == "--no-peers") bench.options.peers = false;
    if (option == "--level") {
      for (int level = 0; level <= static_cast<int>(vesta::cpu_isa()); ++level)
        if (!std::strcmp(value, vesta::cpu_isa_name(static_cast<vesta::CpuIsa>(level))))
          bench.options.level = static_cast<vesta::CpuIsa>(level);
      ++i;
    }
  }
  bench.where = machine();
  setenv("OMP_PROC_BIND", "true", 1);
  if (bench.options.peers) bench.peers.load();
  bench.run();
  return 0;
}
