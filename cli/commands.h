#pragma once
// The subcommands of the `vesta` program: each adds its options to the command line and sets what runs when it is chosen.
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace vesta::cli {

// What the chosen subcommand does; returns the exit code.
using Action = std::function<int()>;

void add_ops(CLI::App& app, Action& action);
// Writes the Markdown reference of all operators into the folder `dir`, which must exist. Throws IoError.
int write_reference(const std::string& dir);
void add_env(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_files(CLI::App& app, Action& action);
// `program`: path of the running program, beside which bench programs lie.
void add_bench(CLI::App& app, const char* program, Action& action);

}  // namespace vesta::cli
