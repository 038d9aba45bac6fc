// The `vesta` program. Exit codes: 0 done, 1 the work failed (a mismatch, an unreadable file), 2 a wrong command line.
#include <vesta/error.h>
#include <vesta/version.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/cpu_isa.h"
#include "base/thread_pool.h"
#include "commands.h"

namespace {

std::string version_text() {
  return vesta::detail::message("vesta ", vesta::version(), " (commit ", vesta::commit(), ")\ncompiler ",
                                vesta::compiler(), "\nisa ", vesta::cpu_isa_name(vesta::cpu_isa()),
                                "\nthreads ", vesta::num_threads());
}

int run(int argc, char** argv) {
  CLI::App app("Vesta: tensors, autograd and training for C++", "vesta");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", version_text, "Version, commit, compiler, CPU level and threads");
  vesta::cli::Action action;
  vesta::cli::add_ops(app, action);
  vesta::cli::add_check(app, action);
  vesta::cli::add_files(app, action);
  vesta::cli::add_env(app, action);
  vesta::cli::add_bench(app, argv[0], action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // --help and --version come this way too
  }
  if (!action) {
    std::fputs(app.help().c_str(), stderr);
    return 2;
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int code = run(argc, argv);
    if (std::fflush(stdout) != 0) {
      std::perror("vesta: write to standard output");
      return 1;
    }
    return code;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "vesta: %s\n", error.what());
    return 1;
  }
}
