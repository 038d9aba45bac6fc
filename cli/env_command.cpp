// `vesta env`: the environment variables that Vesta reads. `--markdown` prints docs/env.md, which a test compares.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/config.h"
#include "commands.h"

namespace vesta::cli {

void add_env(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("env", "List the environment variables that Vesta reads");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "The text of docs/env.md");
  command->callback([&action, markdown] {
    action = [markdown] {
      if (*markdown)
        std::fputs("# Environment variables\n\nPrinted by `vesta env --markdown`; not edited by hand.\n\n",
                   stdout);
      std::fputs(config_markdown().c_str(), stdout);
      return 0;
    };
  });
}

}  // namespace vesta::cli
