// Child processes on top of prim/io.h.
#include "base/process.h"

#include <vesta/error.h>

#include <string_view>
#include <utility>

#include "base/config.h"
#include "base/prim/io.h"

namespace vesta {

Result<Process> Process::start(const ProcessOptions& options) {
  VESTA_CHECK(!options.argv.empty() && !options.argv[0].empty(), "Process::start: argv is empty");
  std::vector<std::string> env = options.env;
  for (const std::string& var : env)
    VESTA_CHECK(var.find('=') != std::string::npos && var[0] != '=',
                "Process::start: expected NAME=value in env, got '", var, "'");
  for (std::string& inherited : inherited_environment()) {
    std::string_view name = std::string_view(inherited).substr(0, inherited.find('=') + 1);
    bool replaced = false;
    for (const std::string& var : options.env) replaced |= std::string_view(var).starts_with(name);
    if (!replaced) env.push_back(std::move(inherited));
  }
  int id = 0;
  int error =
      prim::spawn(options.argv, env, {options.stdout_path, options.stderr_path}, options.own_group, &id);
  if (error) return Failure{"start '" + options.argv[0] + "': " + prim::error_text(error)};
  return Process(id, options.own_group);
}

Process::Process(Process&& other) noexcept
    : id_(std::exchange(other.id_, 0)), own_group_(other.own_group_), code_(other.code_) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(own_group_, other.own_group_);
  std::swap(code_, other.code_);
  return *this;
}

Process::~Process() {
  if (id_ == 0 || code_ >= 0) return;
  prim::signal_process(id_, own_group_, true);
  bool ended = false;
  prim::wait_process(id_, -1, &ended, &code_);
}

bool Process::wait(int64_t timeout_ms) {
  VESTA_CHECK_AS(InternalError, id_ != 0, "Process::wait: the process was moved away");
  if (code_ >= 0) return true;
  bool ended = false;
  int error = prim::wait_process(id_, timeout_ms, &ended, &code_);
  VESTA_CHECK_AS(IoError, error == 0, "wait for process ", id_, ": ", prim::error_text(error));
  return ended;
}

void Process::terminate(bool hard) {
  if (id_ != 0 && code_ < 0) prim::signal_process(id_, own_group_, hard);
}

}  // namespace vesta
