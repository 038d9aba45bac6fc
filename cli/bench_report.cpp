// The lines that benches print, and the statistics behind them.
#include <vesta/version.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/cpu_isa.h"
#include "base/thread_pool.h"
#include "bench.h"
#include "vesta/error.h"

namespace vesta::cli {
namespace {

// How many of n sorted samples lie outside the 90 % interval of their median, on each side: the normal approximation of
// the binomial's quantile with continuity correction, which gives the exact 1 of 9, 2 of 11, 3 of 13, 7 of 25.
size_t edge_of(size_t n) {
  return size_t(std::max(0.0, double(n) / 2 - 1.645 / 2 * std::sqrt(double(n)) - 0.5));
}

// Four significant digits at least, without the noise of more.
double rounded(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return std::strtod(text, nullptr);
}

}  // namespace

void add_bench_options(CLI::App& app, BenchOptions& o) {
  app.add_flag("--json", o.json, "Print JSON lines: bench, case, value, unit, peer, ratio, ...");
  app.add_flag("--peer", o.peer,
               "Run the peer beside it, where the bench has one; fails where it is not set");
  app.add_option("--peer-python", o.peer_python, "A Python with PyTorch, the peer of gpt and ops")
      ->envname("VESTA_PEER_PYTHON");
  app.add_option("--peer-overhead", o.peer_overhead,
                 "The built bench/peers/overhead_libtorch.cpp, the peer of overhead")
      ->envname("VESTA_PEER_OVERHEAD");
  app.add_option("--pairs", o.pairs, "Alternating measurements of ours and the peer's")
      ->check(CLI::PositiveNumber);
  app.add_option("--only", o.only, "Only cases whose name holds this text");
  app.add_option("--seed", o.seed, "Seed of random data");
  app.add_option("--calls", o.calls, "Run each case so often, without measuring (for profilers)");
  app.add_option("--note", o.note, "Text for the lines' field `note`");
}

std::vector<std::string> bench_arguments(const BenchOptions& o) {
  std::vector<std::string> a;
  auto add = [&a](const char* name, const std::string& value) {
    a.emplace_back(name);
    a.push_back(value);
  };
  BenchOptions plain;
  if (o.json) a.emplace_back("--json");
  if (o.peer) a.emplace_back("--peer");
  if (o.pairs != plain.pairs) add("--pairs", std::to_string(o.pairs));
  if (!o.only.empty()) add("--only", o.only);
  if (o.seed != plain.seed) add("--seed", std::to_string(o.seed));
  if (o.calls != plain.calls) add("--calls", std::to_string(o.calls));
  if (!o.note.empty()) add("--note", o.note);
  return a;
}

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  size_t n = v.size();
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void summarise(BenchResult& r, const std::vector<double>& ours, const std::vector<double>& theirs,
               bool smaller_is_better) {
  VESTA_CHECK(!ours.empty() && (theirs.empty() || theirs.size() == ours.size()), "bench ", r.bench, ": ",
              r.name, " has ", ours.size(), " samples, the peer ", theirs.size());
  r.value = median(ours);
  std::vector<double> spread = ours;
  if (!theirs.empty()) {
    for (size_t i = 0; i < ours.size(); ++i)
      spread[i] = smaller_is_better ? theirs[i] / ours[i] : ours[i] / theirs[i];
    r.peer_value = median(theirs);
    r.ratio = median(spread);
  }
  std::sort(spread.begin(), spread.end());
  size_t edge = edge_of(spread.size());
  r.low = spread[edge];
  r.high = spread[spread.size() - 1 - edge];
}

void print_result(const BenchOptions& options, const BenchResult& r) {
  bool peer = !r.peer.empty();
  if (!options.json) {
    std::printf("%s %-32s %12.6g %-10s", r.bench.c_str(), r.name.c_str(), r.value, r.unit.c_str());
    if (peer) std::printf(" %s %.6g, ratio %.3f", r.peer.c_str(), r.peer_value, r.ratio);
    std::printf(" [%.6g, %.6g]", r.low, r.high);
    if (r.ceiling > 0) std::printf(" %.0f %% of the ceiling", 100 * r.of_ceiling);
    std::puts("");
    std::fflush(stdout);
    return;
  }
  nlohmann::ordered_json j = {
      {"bench", r.bench}, {"case", r.name}, {"value", rounded(r.value)}, {"unit", r.unit}};
  for (const char* absent : {"peer", "peer_value", "ratio"}) j[absent] = nullptr;
  if (peer) {
    j["peer"] = r.peer;
    j["peer_value"] = rounded(r.peer_value);
    j["ratio"] = rounded(r.ratio);
  }
  j["lo"] = rounded(r.low);
  j["hi"] = rounded(r.high);
  for (const char* absent : {"ceiling", "of_ceiling"}) j[absent] = nullptr;
  if (r.ceiling > 0) {
    j["ceiling"] = rounded(r.ceiling);
    j["of_ceiling"] = rounded(r.of_ceiling);
  }
  j["seed"] = options.seed;
  j["machine"] = detail::message(cpu_isa_name(cpu_isa()), " ", num_threads(), "t of ",
                                 std::thread::hardware_concurrency());
  j["commit"] = commit();
  if (!options.note.empty()) j["note"] = options.note;
  std::puts(j.dump().c_str());
  std::fflush(stdout);
}

}  // namespace vesta::cli
