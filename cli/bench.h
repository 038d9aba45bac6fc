#pragma once
// Benches that are part of the `vesta` program: one file in cli/benches/ each, listed in bench_command.cpp. Results are
// JSON lines in the form that tools/bench_cmp reads, or plain text.
#include <cstdint>
#include <string>

namespace vesta::cli {

struct BenchOptions {
  bool json = false, peer = false;
  std::string only;  // cases whose name holds this text; empty = all
  uint64_t seed = 1;
};

struct Bench {
  const char* name;
  const char* doc;
  int (*run)(const BenchOptions& options);  // returns the exit code
};

// One measured figure. A ratio above 1 means that ours is better; lo to hi is its 90 % interval.
struct BenchResult {
  const char* bench = "";
  std::string name;  // the case
  double value = 0;  // median
  const char* unit = "";
  // Spread of `value` itself (5th and 95th percentile of the repetitions), where there is no peer.
  double low = 0, high = 0;
};
void print_result(const BenchOptions& options, const BenchResult& result);

}  // namespace vesta::cli
