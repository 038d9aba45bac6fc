// How big and how slow to build: bytes of a static, stripped program that trains an MLP (bench/size/mlp.cpp, linked with
// the library of the preset `embedded`), its time from start to a first result, seconds to compile a client of 20 lines
// with this build's headers, seconds from an edited operator to its tests having run again, and, with --cold, seconds of
// a whole build without a compiler cache. Needs the source tree.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/process.h"
#include "bench.h"
#include "temporary.h"
#include "vesta/error.h"

namespace {

using namespace vesta;
using cli::BenchResult;

const std::string kSource = VESTA_BENCH_SOURCE;
constexpr double kMaxBytes = 8e6, kMaxStartMs = 20, kMaxClientS = 2, kMaxEditS = 20,
                 kMaxColdS = 600;  // the project's limits, as ceilings

// Seconds that a command takes. IoError with its output where it fails.
double run(const std::vector<std::string>& argv, const std::vector<std::string>& env = {}) {
  cli::TemporaryFile log;
  ProcessOptions p;
  p.argv = argv;
  p.env = env;
  p.stdout_path = p.stderr_path = log.name;
  auto start = std::chrono::steady_clock::now();
  auto child = Process::start(p);
  VESTA_CHECK_AS(IoError, child.ok(), "bench size: cannot start '", argv[0], "': ", child.error());
  child->wait();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  log.kept = child->exit_code() != 0;
  VESTA_CHECK_AS(IoError, child->exit_code() == 0, "bench size: '", argv[0], "' ended with ",
                 child->exit_code(), "; its output is in ", log.name);
  return seconds;
}

// of_ceiling is the share of the limit that is used: below 1 is within it.
void report(const cli::BenchOptions& o, const char* name, const char* unit, double limit,
            const std::vector<double>& values) {
  BenchResult r{.bench = "size", .name = name, .unit = unit};
  cli::summarise(r, values, {}, true);
  r.ceiling = limit;
  r.of_ceiling = r.value / limit;
  cli::print_result(o, r);
}

// Builds and runs the program with the library of the preset `embedded` and the given operator families, without the
// library's build being part of any figure. The size of the program in bytes.
double build_static_program(const std::string& program, const std::string& families) {
  const std::string build = kSource + "/build/embedded";
  run({"cmake", "-S", kSource, "--preset", "embedded", "-DVESTA_BUILD_TESTS=OFF", "-DVESTA_BUILD_CLI=OFF",
       "-DVESTA_FAMILIES=" + families});
  run({"cmake", "--build", build, "--target", "vesta"});
  run({VESTA_BENCH_CXX, "-std=c++20", "-Os", "-ffunction-sections", "-fdata-sections", "-static", "-s",
       "-Wl,--gc-sections", "-I", kSource + "/include", "-I", build + "/gen/include",
       kSource + "/bench/size/mlp.cpp", build + "/lib/libvesta.a", "-pthread", "-o", program});
  run({program});  // trains; fails where it does not learn
  struct stat info {};
  VESTA_CHECK_AS(IoError, stat(program.c_str(), &info) == 0, "bench size: cannot read ", program);
  return double(info.st_size);
}

void static_program(const cli::BenchOptions& o, const cli::TemporaryFolder& folder) {
  const bool bytes = o.wanted("static_mlp_bytes"), start = o.wanted("start_ms");
  const std::string program = folder.name + "/mlp";
  if (o.wanted("static_mlp_training_bytes"))
    report(o, "static_mlp_training_bytes", "bytes", kMaxBytes, {build_static_program(program, "training")});
  if (!bytes && !start) return;
  const double size = build_static_program(program, "all");
  if (bytes) report(o, "static_mlp_bytes", "bytes", kMaxBytes, {size});
  if (start) {
    std::vector<double> ms;
    for (int i = 0; i < 25; ++i) ms.push_back(1e3 * run({program, "first"}));
    report(o, "start_ms", "ms", kMaxStartMs, ms);
  }
}

// An edit of a file with scalar texts, which are compiled for every CPU level: the slowest kind. This build's tests must
// be up to date before.
double edit_an_operator() {
  const std::vector<std::string> no_cache = {"CCACHE_DISABLE=1"};
  const std::string build = VESTA_BENCH_BUILD;
  run({"cmake", "--build", build, "--target", "test_ops"});
  run({"touch", kSource + "/src/ops/pointwise_arith.cpp"});
  return run({"cmake", "--build", build, "--target", "test_ops"}, no_cache) +
         run({build + "/bin/test_ops", "--gtest_filter=*pointwise_arith"});
}

}  // namespace

int main(int argc, char** argv) {
  cli::BenchOptions o;
  bool cold = false;
  CLI::App app{"Size of a static program, start-up, and build times", "size_bench"};
  cli::add_bench_options(app, o);
  app.add_flag("--cold", cold, "Also build library and program anew, without a compiler cache: minutes");
  CLI11_PARSE(app, argc, argv);
  try {
    cli::TemporaryFolder folder;
    static_program(o, folder);
    if (o.wanted("client_compile_s")) {
      std::vector<double> seconds;
      for (int i = 0; i < 5; ++i)
        seconds.push_back(run({VESTA_BENCH_CXX, "-std=c++20", "-O2", "-c", "-I", kSource + "/include", "-I",
                               VESTA_BENCH_BUILD "/gen/include", kSource + "/bench/size/client.cpp", "-o",
                               folder.name + "/client.o"}));
      report(o, "client_compile_s", "s", kMaxClientS, seconds);
    }
    if (o.wanted("op_edit_s")) {
      std::vector<double> seconds;
      for (int i = 0; i < 3; ++i) seconds.push_back(edit_an_operator());
      report(o, "op_edit_s", "s", kMaxEditS, seconds);
    }
    if (cold && o.wanted("cold_build_s")) {
      std::string build = folder.name + "/build";
      std::vector<std::string> no_cache = {"CCACHE_DISABLE=1"};
      double seconds =
          run({"cmake", "-S", kSource, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
               "-DVESTA_BUILD_TESTS=OFF", "-DVESTA_BUILD_BENCH=OFF", "-DVESTA_BUILD_EXAMPLES=OFF"},
              no_cache);
      seconds += run({"cmake", "--build", build, "-j", "2"}, no_cache);
      report(o, "cold_build_s", "s", kMaxColdS, {seconds});
    }
    return 0;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "size_bench: %s\n", error.what());
    return 1;
  }
}
