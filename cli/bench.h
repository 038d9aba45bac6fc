#pragma once
// Benches: what they are given, and how they report. Those in cli/benches/ are part of the `vesta` program and listed in
// bench_command.cpp; programs in bench/ link bench_report.cpp for the same lines. One JSON line a figure.
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace vesta::cli {

struct BenchOptions {
  bool json = false, peer = false;
  std::string only;  // cases whose name holds this text; empty = all
  uint64_t seed = 1;
  int pairs = 9;                           // alternating measurements of ours and the peer's
  int calls = 0;                           // > 0: run each case so often and measure nothing
  std::string peer_python, peer_overhead;  // programs to run as peers; empty: no peer
  std::string note;                        // copied into each line, e.g. that the machine was busy

  bool wanted(const std::string& name) const { return name.find(only) != std::string::npos; }
};

void add_bench_options(CLI::App& app, BenchOptions& options);
// The command line that gives another bench program the same options; peers come by the environment.
std::vector<std::string> bench_arguments(const BenchOptions& options);

struct Bench {
  const char* name;
  const char* doc;
  int (*run)(const BenchOptions& options);  // returns the exit code
};

// One measured figure: the median of ours, and of the peer's where there is one. ratio is the median of the pairs'
// ratios, > 1 = ours is better; low to high is its 90 % interval (without a peer: that of the value).
struct BenchResult {
  std::string bench, name;  // name: the case
  double value = 0;
  std::string unit;
  double low = 0, high = 0;
  std::string peer;  // "" = none
  double peer_value = 0, ratio = 0;
  double ceiling = 0, of_ceiling = 0;  // 0 = unknown. What the machine's bandwidth or arithmetic would allow
};
void print_result(const BenchOptions& options, const BenchResult& result);

double median(std::vector<double> samples);
// Fills value, low and high, and, where `theirs` is not empty, the peer's fields. Sample i of both was taken side by
// side. The interval is that of the median by order statistics (ranks 2 of 9, 3 of 11, 4 of 13).
// smaller_is_better: times, bytes; otherwise rates.
void summarise(BenchResult& result, const std::vector<double>& ours, const std::vector<double>& theirs,
               bool smaller_is_better);

}  // namespace vesta::cli
