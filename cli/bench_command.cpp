// `vesta bench`: runs a bench of this program, or a bench program that lies beside it (NAME_bench).
#include <vesta/error.h>
#include <vesta/version.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/cpu_isa.h"
#include "base/process.h"
#include "base/thread_pool.h"
#include "bench.h"
#include "commands.h"

namespace vesta::cli {

extern const Bench overhead_bench;

namespace {

const Bench* const kBenches[] = {&overhead_bench};

std::filesystem::path folder_of(const char* program) {
  std::error_code error;
  auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path(program).parent_path() : self.parent_path();
}

std::vector<std::string> programs_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with("_bench") && entry.is_regular_file()) names.push_back(name.substr(0, name.size() - 6));
  }
  std::sort(names.begin(), names.end());
  return names;
}

int list(const std::filesystem::path& folder) {
  for (auto* bench : kBenches) std::printf("%-16s %s\n", bench->name, bench->doc);
  for (auto& name : programs_in(folder))
    std::printf("%-16s the program %s_bench\n", name.c_str(), name.c_str());
  return 0;
}

int run_program(const std::filesystem::path& path, const BenchOptions& o) {
  std::fflush(stdout);
  ProcessOptions options;
  options.argv = {path.string()};
  if (o.json) options.argv.push_back("--json");
  if (o.peer) options.argv.push_back("--peer");
  options.own_group = false;  // ^C reaches it
  auto child = Process::start(options);
  VESTA_CHECK_AS(IoError, child.ok(), "bench: cannot start '", path.string(), "': ", child.error());
  child->wait();
  return child->exit_code();
}

int run(const std::string& name, const BenchOptions& o, const std::filesystem::path& folder) {
  if (name.empty()) return list(folder);
  for (auto* bench : kBenches)
    if (name == bench->name) return bench->run(o);
  for (auto& program : programs_in(folder))
    if (name == program) return run_program(folder / (name + "_bench"), o);
  throw ValueError("bench: there is no bench named '" + name + "'; `vesta bench` lists them");
}

}  // namespace

void print_result(const BenchOptions& options, const BenchResult& r) {
  if (!options.json) {
    std::printf("%s %-24s %10.1f %s  [%.1f, %.1f]\n", r.bench, r.name.c_str(), r.value, r.unit, r.low,
                r.high);
    return;
  }
  nlohmann::ordered_json j = {{"bench", r.bench}, {"case", r.name}, {"value", r.value}, {"unit", r.unit}};
  for (const char* absent : {"peer", "peer_value", "ratio"}) j[absent] = nullptr;
  j["lo"] = r.low;
  j["hi"] = r.high;
  j["ceiling"] = nullptr;
  j["of_ceiling"] = nullptr;
  j["seed"] = options.seed;
  j["machine"] = detail::message(cpu_isa_name(cpu_isa()), " ", num_threads(), "t of ",
                                 std::thread::hardware_concurrency());
  j["commit"] = commit();
  std::puts(j.dump().c_str());
}

void add_bench(CLI::App& app, const char* program, Action& action) {
  auto* command = app.add_subcommand("bench", "Run a bench; without a name, list them");
  auto name = std::make_shared<std::string>();
  auto o = std::make_shared<BenchOptions>();
  command->add_option("NAME", *name, "The bench");
  command->add_flag("--json", o->json, "Print JSON lines: bench, case, value, unit, peer, ratio, ...");
  command->add_flag("--peer", o->peer, "Run the peer beside it, where the bench has one");
  command->add_option("--only", o->only, "Only cases whose name holds this text");
  command->add_option("--seed", o->seed, "Seed of random data");
  command->callback([&action, name, o, program] {
    action = [name, o, program] { return run(*name, *o, folder_of(program)); };
  });
}

}  // namespace vesta::cli
