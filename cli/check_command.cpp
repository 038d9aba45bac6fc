// `vesta check`: runs recorded cases and says where results differ.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "commands.h"
#include "embedded/golden_exceptions.h"
#include "golden/golden.h"

namespace vesta::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  bool json = false, verbose = false;
  std::string op, exceptions;
};

std::string built_in_exceptions() {
  auto& file = embedded::golden_exceptions::kFiles[0];
  return std::string(file.data, file.size);
}

int check(const Options& o) {
  golden::Exceptions exceptions(o.exceptions.empty() ? built_in_exceptions() : read_all(o.exceptions));
  golden::Summary total;
  std::vector<std::pair<std::string, golden::CaseResult>> mismatches;
  for (auto& file : o.files) {
    golden::CheckOptions options;
    options.op = o.op;
    // Before each case, so that the last line names the one that ended the program.
    if (o.verbose)
      options.before = [](const std::string& id) { std::fprintf(stderr, "run %s\n", id.c_str()); };
    options.after = [&](const golden::CaseResult& r) {
      bool failed = r.outcome == golden::Outcome::Failed;
      if (failed) mismatches.emplace_back(file, r);
      if (o.json) return;
      if (failed)
        std::printf("MISMATCH %s: %s\n", r.id.c_str(), r.message.c_str());
      else if (o.verbose && r.outcome == golden::Outcome::Accepted)
        std::printf("accepted %s: %s\n", r.id.c_str(), r.message.c_str());
      else if (o.verbose && r.outcome == golden::Outcome::NotRegistered)
        std::printf("not registered %s\n", r.id.c_str());
      else if (o.verbose)
        std::printf("ok %s\n", r.id.c_str());
    };
    golden::check_file(file, options, exceptions, total);
  }
  if (o.json) {
    nlohmann::ordered_json j = {{"cases", total.cases},
                                {"passed", total.passed},
                                {"failed", total.failed},
                                {"accepted", total.accepted},
                                {"not_registered", total.not_registered}};
    j["missing_ops"] = total.missing_ops;
    j["mismatches"] = nlohmann::ordered_json::array();
    for (auto& [file, r] : mismatches)
      j["mismatches"].push_back({{"id", r.id}, {"op", r.op}, {"file", file}, {"message", r.message}});
    // Messages may quote bytes that are not UTF-8.
    std::puts(j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    if (!total.missing_ops.empty()) {
      std::printf("not registered:");
      for (auto& [op, n] : total.missing_ops) std::printf(" %s (%d)", op.c_str(), n);
      std::puts("");
    }
    if (total.failed) {
      std::printf("ops with mismatches:");
      for (auto& [op, n] : total.by_op)
        if (n.second) std::printf(" %s (%d of %d)", op.c_str(), n.second, n.first);
      std::puts("");
    }
    for (auto& d : exceptions.list)
      if (d.passed && !d.failed)
        std::printf("exception %s is no longer needed: %d cases pass\n", d.pattern.c_str(), d.passed);
    std::printf(
        "%d cases: %d passed, %d failed, %d accepted differences, %d of %zu ops that are not registered\n",
        total.cases, total.passed, total.failed, total.accepted, total.not_registered,
        total.missing_ops.size());
  }
  return total.failed ? 1 : 0;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "check", "Run recorded operator calls and compare the results; exit code 1 where one differs");
  auto o = std::make_shared<Options>();
  command->add_option("FILE", o->files, "Recordings: NAME.jsonl, with NAME.safetensors beside it")
      ->required();
  command->add_flag("--json", o->json, "Print one JSON object: counts, missing ops, mismatches");
  command->add_flag("--verbose", o->verbose, "Print every case");
  command->add_option("--op", o->op, "Only this op: NAME or NAME.OVERLOAD");
  command->add_option("--exceptions", o->exceptions,
                      "Accepted differences, \"ID-PATTERN  reason\" a line, instead of the built-in list");
  command->callback([&action, o] { action = [o] { return check(*o); }; });
}

}  // namespace vesta::cli
