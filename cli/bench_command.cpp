// `vesta bench`: runs a bench of this program, or a bench program that lies beside it (NAME_bench).
#include <vesta/error.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/process.h"
#include "bench.h"
#include "commands.h"

namespace vesta::cli {

extern const Bench overhead_bench, ops_bench;

namespace {

const Bench* const kBenches[] = {&overhead_bench, &ops_bench};

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
  options.argv = bench_arguments(o);
  options.argv.insert(options.argv.begin(), path.string());
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

void add_bench(CLI::App& app, const char* program, Action& action) {
  auto* command = app.add_subcommand("bench", "Run a bench; without a name, list them");
  auto name = std::make_shared<std::string>();
  auto o = std::make_shared<BenchOptions>();
  command->add_option("NAME", *name, "The bench");
  add_bench_options(*command, *o);
  command->callback([&action, name, o, program] {
    action = [name, o, program] { return run(*name, *o, folder_of(program)); };
  });
}

}  // namespace vesta::cli
