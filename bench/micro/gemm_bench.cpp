// GEMM against oneDNN and OpenBLAS, in one process, one JSON line a result (design: alternating A/B pairs, median of the
// pair ratios with a 90 % interval, share of what this machine can do: the multiply-add peak measured here, or, where
// reading a matrix beyond the caches bounds it, the read bandwidth). A stand-alone program; --help lists its options.
// Odd shapes are drawn from the seed. The peers are loaded with dlopen: missing ones give no line. For oneDNN both
// dnnl_sgemm and the matmul primitive with pre-packed weights (tag any) are timed. Fused epilogues are compared with the
// plain product of the same shape.
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
#include "core/registry.h"
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
  static constexpr int kCpu = 1, kBf16 = 2, kF32 = 3, kS32 = 4, kS8 = 5, kAny = 1, kInOrder = 1,
                       kWeights = 131;
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
  int (*desc_by_strides)(MemoryDesc*, int, const int64_t*, int, const int64_t*) = nullptr;
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
             symbol(lib, "dnnl_memory_desc_init_by_strides", d.desc_by_strides) &&
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

struct Case {
  GemmType type;
  int64_t m, n, k;
  int threads;
  const char* form = "NN";  // as in BLAS: which operand is stored transposed
  int64_t batch = 1;
  bool blas = true;                // OpenBLAS too; its pauses are long
  const char* epilogue = nullptr;  // "gelu", "gelu+res"

  bool transposed_a() const { return form[0] == 'T'; }
  bool transposed_b() const { return form[1] == 'T'; }
  size_t item_bytes() const {
    return type == GemmType::F64 ? 8 : type == GemmType::F32 ? 4 : type == GemmType::I8 ? 1 : 2;
  }
  size_t out_bytes() const { return type == GemmType::I8 ? 4 : item_bytes(); }
  // Few rows: what counts is how fast B is read, when it is beyond the caches.
  bool reads() const { return m <= 2 && static_cast<size_t>(n * k) * item_bytes() > (size_t{24} << 20); }
  std::string name() const {
    static const char* names[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "c64", "c128", "int8"};
    std::string text = std::string(names[static_cast<int>(type)]) + " ";
    if (batch > 1) text += std::to_string(batch) + "x ";
    text += std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " + form + " ";
    if (epilogue) text += std::string("bias+") + epilogue + " ";
    return text + std::to_string(threads) + "t";
  }
};

// oneDNN's matmul with weights in the layout it likes best, packed before the clock starts (batches take them as they
// are).
struct Matmul {
  const OneDnn& d;
  void* primitive = nullptr;
  void* memory[3] = {};
  bool ok = false;

  Matmul(const OneDnn& dnn, const Case& x, void* a, void* b, void* c) : d(dnn) {
    if (!d.ok) return;
    const int type = x.type == GemmType::F32    ? OneDnn::kF32
                     : x.type == GemmType::Bf16 ? OneDnn::kBf16
                     : x.type == GemmType::I8   ? OneDnn::kS8
                                                : 0;
    if (type == 0) return;
    const int to = type == OneDnn::kS8 ? OneDnn::kS32 : type, dims = x.batch > 1 ? 3 : 2;
    const int64_t da[] = {x.batch, x.m, x.k}, db[] = {x.batch, x.k, x.n}, dc[] = {x.batch, x.m, x.n};
    const int64_t sa[] = {x.m * x.k, x.transposed_a() ? 1 : x.k, x.transposed_a() ? x.m : 1};
    const int64_t sb[] = {x.k * x.n, x.transposed_b() ? 1 : x.n, x.transposed_b() ? x.k : 1};
    const int64_t sc[] = {x.m * x.n, x.n, 1};
    const int skip = 3 - dims;
    OneDnn::MemoryDesc ma, mb, mb_plain, mc;
    auto desc = std::make_unique<OneDnn::MatmulDesc>();
    void *pd = nullptr, *reorder_pd = nullptr, *reorder = nullptr, *plain = nullptr;
    if (d.desc_by_strides(&ma, dims, da + skip, type, sa + skip) ||
        d.desc_by_strides(&mb_plain, dims, db + skip, type, sb + skip) ||
        d.desc_by_strides(&mc, dims, dc + skip, to, sc + skip) ||
        (dims == 2 ? d.desc_by_tag(&mb, dims, db + skip, type, OneDnn::kAny)
                   : d.desc_by_strides(&mb, dims, db + skip, type, sb + skip)) ||
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

// GB/s of reading memory beyond the caches, all threads together, the best of a few passes.
double read_bandwidth(int threads) {
  constexpr int64_t kBytes = int64_t{192} << 20, kChunk = 1 << 20;
  static std::unique_ptr<char, decltype(&std::free)> data(nullptr, &std::free);
  if (!data) {
    data.reset(static_cast<char*>(std::aligned_alloc(size_t{2} << 20, kBytes)));
    madvise(data.get(), kBytes, MADV_HUGEPAGE);
    std::memset(data.get(), 1, kBytes);
  }
  double best = 0;
  for (int repeat = 0; repeat < 6; ++repeat) {
    const double start = now();
    const auto read = [](int64_t from, int64_t to) {
      typedef uint64_t V __attribute__((vector_size(16), aligned(1), may_alias));
      const char* p = data.get();
      V x{}, y{};
      for (int64_t i = from; i < to; i += 64) {
        __builtin_prefetch(p + i + 1024);
        x += *reinterpret_cast<const V*>(p + i) + *reinterpret_cast<const V*>(p + i + 16);
        y += *reinterpret_cast<const V*>(p + i + 32) + *reinterpret_cast<const V*>(p + i + 48);
      }
      asm volatile("" : : "x"(x + y));
    };
    if (threads == 1) {
      read(0, kBytes);
    } else {
      vesta::parallel_for(0, kBytes, kChunk, read);
    }
    best = std::max(best, static_cast<double>(kBytes) / (now() - start) * 1e-9);
  }
  return best;
}

// The library's own GELU (erf), as the compiler fuses it.
void gelu_row(void* t, int64_t n, int64_t, int64_t, const void*) {
  static const vesta::ScalarLoop loop =
      vesta::find_op("_gelu_erf")->loops[static_cast<int>(vesta::ComputeType::F32)];
  alignas(64) float out[1024];
  for (int64_t i = 0; i < n; i += 1024) {
    float* from = static_cast<float*>(t) + i;
    const int64_t count = std::min<int64_t>(1024, n - i);
    const void* in[] = {from};
    void* outs[] = {out};
    loop(in, outs, count, nullptr);
    std::memcpy(from, out, static_cast<size_t>(count) * 4);
  }
}

// One thread a core, ours and (OMP_PROC_BIND in main) the peer's: left alone, this kernel often wakes a worker on its
// caller's core and leaves it there for a millisecond.
void set_threads(int threads) {
  vesta::set_num_threads(threads);
  // The pool counts the cores it may use when it starts: before this thread is pinned to one.
  vesta::parallel_for(0, threads, 1, [](int64_t, int64_t) {});
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
  bool peers = true, list = false;
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
  double ceiling[3] = {}, bandwidth[3] = {};  // by threads

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

  using Matrix = std::unique_ptr<char, decltype(&std::free)>;
  // On huge pages, as Vesta's own large tensors are.
  static Matrix make(GemmType type, size_t bytes, int64_t count, std::mt19937_64& rng) {
    constexpr size_t kPage = size_t{2} << 20;
    const size_t total = (static_cast<size_t>(count) * bytes + 64 + kPage - 1) / kPage * kPage;
    Matrix p(static_cast<char*>(std::aligned_alloc(kPage, total)), &std::free);
    madvise(p.get(), total, MADV_HUGEPAGE);
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = rng();
      const float x = static_cast<float>(static_cast<int64_t>(bits >> 40)) * 0x1p-23f - 1;
      if (type == GemmType::F64) reinterpret_cast<double*>(p.get())[i] = x;
      if (type == GemmType::F32) reinterpret_cast<float*>(p.get())[i] = x;
      if (type == GemmType::F16) reinterpret_cast<uint16_t*>(p.get())[i] = vesta::cpu::float_to_f16(x);
      if (type == GemmType::Bf16) reinterpret_cast<uint16_t*>(p.get())[i] = vesta::cpu::float_to_bf16(x);
      if (type == GemmType::I8) p.get()[i] = static_cast<char>(bits);
    }
    return p;
  }

  void one(const Case& x) {
    const std::string name = x.name();
    if (!wanted(name)) return;
    if (options.list) {
      std::printf("%s\n", name.c_str());
      return;
    }
    set_threads(x.threads);
    peers.threads(x.threads);
    const bool ta = x.transposed_a(), tb = x.transposed_b();
    const int64_t m = x.m, n = x.n, k = x.k;
    std::mt19937_64 rng(options.seed);
    auto a = make(x.type, x.item_bytes(), m * k * x.batch, rng),
         b = make(x.type, x.item_bytes(), k * n * x.batch, rng),
         c = make(x.type == GemmType::I8 ? GemmType::F32 : x.type, x.out_bytes(), m * n * x.batch, rng);
    GemmArgs g;
    g.type = x.type;
    g.out = x.type == GemmType::I8 ? GemmType::I32 : x.type;
    g.m = m, g.n = n, g.k = k, g.batch = x.batch;
    g.a = a.get(), g.a_row = ta ? 1 : k, g.a_col = ta ? m : 1, g.a_batch = m * k;
    g.b = b.get(), g.b_row = tb ? 1 : n, g.b_col = tb ? k : 1, g.b_batch = k * n;
    g.c = c.get(), g.ldc = n, g.c_batch = m * n;
    const auto ours = [&] { gemm_at(options.level, g); };
    double work = 2e-9 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                  static_cast<double>(x.batch);
    const double scale = x.type == GemmType::F64    ? 0.5
                         : x.type == GemmType::Bf16 ? 2
                         : x.type == GemmType::I8   ? 4
                                                    : 1;
    double top = ceiling[x.threads] * scale;
    const char* unit = "GFLOP/s";
    if (x.reads()) {
      work = 1e-9 * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(x.item_bytes());
      if (bandwidth[x.threads] == 0) bandwidth[x.threads] = read_bandwidth(x.threads);
      top = bandwidth[x.threads];
      unit = "GB/s";
    }
    if (x.epilogue) {
      auto bias = make(x.type, x.item_bytes(), n, rng), residual = make(x.type, x.item_bytes(), m * n, rng);
      vesta::cpu::GemmEpilogue e;
      e.bias = bias.get();
      e.apply = gelu_row;
      if (std::strstr(x.epilogue, "res")) e.residual = residual.get(), e.residual_ld = n;
      GemmArgs fused = g;
      fused.epilogue = &e;
      report(
          name, work, unit, top, "the plain product", [&] { gemm_at(options.level, fused); }, ours);
      return;
    }
    bool any = false;
    if (options.peers) {
      Matmul matmul(peers.dnn, x, a.get(), b.get(), c.get());
      if (matmul.ok) {
        report(name, work, unit, top, x.batch > 1 ? "oneDNN matmul" : "oneDNN matmul prepacked", ours,
               [&] { matmul.run(); });
        any = true;
      }
    }
    const auto* fa = reinterpret_cast<const float*>(a.get());
    const auto* fb = reinterpret_cast<const float*>(b.get());
    auto* fc = reinterpret_cast<float*>(c.get());
    const int64_t lda = ta ? m : k, ldb = tb ? k : n;
    if (options.peers && x.batch == 1 && x.type == GemmType::F32 && peers.dnn.ok) {
      report(name, work, unit, top, "dnnl_sgemm", ours, [&] {
        peers.dnn.sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, fa, lda, fb, ldb, 0, fc, n);
      });
      any = true;
    }
    const auto i = [](int64_t v) { return static_cast<int>(v); };
    constexpr int kRowMajor = 101, kNo = 111, kYes = 112;
    if (options.peers && x.batch == 1 && x.type == GemmType::F32 && peers.cblas_sgemm && x.blas) {
      report(name, work, unit, top, "OpenBLAS", ours, [&] {
        peers.cblas_sgemm(kRowMajor, ta ? kYes : kNo, tb ? kYes : kNo, i(m), i(n), i(k), 1, fa, i(lda), fb,
                          i(ldb), 0, fc, i(n));
      });
      any = true;
    }
    if (options.peers && x.batch == 1 && x.type == GemmType::F64 && peers.cblas_dgemm) {
      report(name, work, unit, top, "OpenBLAS", ours, [&] {
        peers.cblas_dgemm(kRowMajor, ta ? kYes : kNo, tb ? kYes : kNo, i(m), i(n), i(k), 1,
                          reinterpret_cast<const double*>(a.get()), i(lda),
                          reinterpret_cast<const double*>(b.get()), i(ldb), 0,
                          reinterpret_cast<double*>(c.get()), i(n));
      });
      any = true;
    }
    if (!any) report(name, work, unit, top, "", ours, nullptr);
  }

  void run() {
    if (!options.list) {
      ceiling[1] = peak_of(1);
      set_threads(2);
      ceiling[2] = vesta::num_threads() == 2 ? peak_of(2) : 0;
    }
    std::mt19937_64 rng(options.seed);
    const auto size = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
    };
    const auto odd = [&](GemmType type, int64_t low, int64_t high, int threads, const char* form = "NN") {
      const int64_t m = size(low, high), n = size(low, high), k = size(low, high);
      one({type, m, n, k, threads, form});
    };
    const GemmType f32 = GemmType::F32, bf16 = GemmType::Bf16, f16 = GemmType::F16, f64 = GemmType::F64,
                   int8 = GemmType::I8;
    for (int64_t s : {16, 32, 48, 64, 96, 128, 512}) one({f32, s, s, s, 1});
    one({f32, 2048, 2048, 2048, 2});
    odd(f32, 200, 700, 1);
    odd(f32, 700, 1500, 2);
    odd(f32, 20, 100, 1);
    odd(f32, 200, 700, 1, "TN");
    odd(f32, 200, 700, 1, "NT");
    odd(f32, 200, 700, 1, "TT");
    // One row: reading the weights is all there is to it. Sixteen: nearly as much arithmetic.
    for (GemmType type : {f32, bf16})
      for (const char* form : {"NN", "NT"})
        for (int64_t s : {4096, 8192}) {
          one({type, 1, s, s, 2, form});
          one({.type = type, .m = 16, .n = s, .k = s, .threads = 2, .form = form, .blas = false});
        }
    one({f32, 4, 4096, 1024, 2, "NT"});
    one({bf16, 512, 512, 512, 1});
    one({bf16, 2048, 2048, 2048, 2});
    odd(bf16, 200, 1000, 1);
    one({bf16, 2048, 1536, 384, 2, "NT"});
    one({f16, 512, 512, 512, 1});
    odd(f16, 200, 1000, 2);
    one({int8, 512, 512, 512, 1});
    one({int8, 2048, 2048, 2048, 2});
    odd(int8, 200, 1000, 1);
    one({f64, 512, 512, 512, 1});
    odd(f64, 200, 700, 2);
    // Attention's products of a small batch, and many tiny ones.
    for (const char* form : {"NN", "NT"}) {
      one({f32, 64, 64, 256, 2, form, 48});
      one({f32, 256, 256, 64, 2, form, 48});
      one({bf16, 64, 64, 256, 2, form, 48});
    }
    one({f32, 16, 16, 16, 2, "NN", 1000});
    for (const char* epilogue : {"gelu", "gelu+res"}) {
      one({.type = f32, .m = 2048, .n = 1536, .k = 384, .threads = 2, .form = "NT", .epilogue = epilogue});
      one({.type = f32, .m = 2048, .n = 2048, .k = 2048, .threads = 2, .epilogue = epilogue});
      one({.type = bf16, .m = 2048, .n = 2048, .k = 2048, .threads = 2, .epilogue = epilogue});
    }
    // GPT nano and small: y = x W^T (NT), dX = dY W (NN), dW = dY^T X (TN).
    struct Linear {
      int64_t rows, in, out;
    };
    const auto train = [&](int64_t m, int64_t n, int64_t k, const char* form) {
      one({.type = f32, .m = m, .n = n, .k = k, .threads = 2, .form = form, .blas = false});
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
      train(l.rows, l.out, l.in, "NT");
      train(l.rows, l.in, l.out, "NN");
      train(l.out, l.in, l.rows, "TN");
    }
  }
};

constexpr char kUsage[] =
    "usage: gemm_bench [--seed N] [--pairs N] [--only TEXT] [--level NAME] [--no-peers] [--list] [--help]\n"
    "Times matrix products beside oneDNN and OpenBLAS, one JSON line a result.\n"
    "  --seed N     of the data and the odd shapes (7)\n"
    "  --pairs N    alternating pairs of samples a result (11; from 9 on lo and hi are a 90 % interval)\n"
    "  --only TEXT  cases whose name holds TEXT, e.g. 'bf16', '2048x2048x2048', 'TN'\n"
    "  --level NAME kernels of a CPU level: baseline, v3, v4, v4bf16\n"
    "  --no-peers   only Vesta\n"
    "  --list       the names of the cases, without running them\n";

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  const auto refuse = [](const std::string& what) {
    std::fprintf(stderr, "gemm_bench: %s\n%s", what.c_str(), kUsage);
    return 2;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") return std::fputs(kUsage, stdout) < 0;
    if (option == "--json") continue;  // what it prints anyway; ./dev bench passes it on
    if (option == "--no-peers" || option == "--list") {
      (option == "--list" ? bench.options.list : bench.options.peers) = option == "--list";
      continue;
    }
    if (option != "--seed" && option != "--pairs" && option != "--only" && option != "--level")
      return refuse("unknown option '" + option + "'");
    if (++i == argc) return refuse(option + " takes a value");
    const char* value = argv[i];
    char* end = nullptr;
    if (option == "--only") bench.options.only = value;
    if (option == "--seed" || option == "--pairs") {
      const uint64_t number = std::strtoull(value, &end, 10);
      if (end == value || *end != 0) return refuse(option + " takes a number, not '" + value + "'");
      if (option == "--seed") bench.options.seed = number;
      if (option == "--pairs") bench.options.pairs = static_cast<int>(std::clamp<uint64_t>(number, 1, 1000));
    }
    if (option == "--level") {
      bool known = false;
      for (int level = 0; level <= static_cast<int>(vesta::cpu_isa()); ++level)
        if (!std::strcmp(value, vesta::cpu_isa_name(static_cast<vesta::CpuIsa>(level))))
          bench.options.level = static_cast<vesta::CpuIsa>(level), known = true;
      if (!known) return refuse(std::string("this machine has no level '") + value + "'");
    }
  }
  vesta::init();
  bench.where = machine();
  setenv("OMP_PROC_BIND", "true", 1);
  if (bench.options.peers && !bench.options.list) bench.peers.load();
  bench.run();
  return 0;
}
