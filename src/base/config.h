#pragma once
// Settings from the environment: the only code that calls getenv. Variables are declared in config.def.
// Read once, at first use, then immutable; settings that change at run time have their own setters elsewhere.
#include <cstdint>
#include <string>
#include <vector>

#include "base/function_ref.h"

namespace vesta {

struct Config {
  using Count = int;         // >= 1; 0 = unset
  using HostCount = int;     // the same, but text that is no count means unset
  using Bytes = uint64_t;    // 0 = no limit
  using Text = std::string;  // "" = unset
#define VESTA_CONFIG(kind, field, name, default_text, help) kind field;
#include "base/config.def"
#undef VESTA_CONFIG
};

// The process's settings. Throws ValueError naming the variable where its text is malformed.
const Config& config();

// Parses with another source of variables (tests). `get` returns null where a name is unset.
Config parse_config(FunctionRef<const char*(const char* name)> get);

// This process's variables as "NAME=value", for child processes.
std::vector<std::string> inherited_environment();

// All variables as a markdown table, in the order of config.def: the text of docs/env.md.
std::string config_markdown();

}  // namespace vesta
