// Parsers of the kinds of settings, the one getenv, and the printed table.
#include "base/config.h"

#include <vesta/error.h>

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace vesta {
namespace {

// The whole text as a number >= 0; false where it is not one.
bool parse_number(std::string_view text, uint64_t* value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

int parse_Count(const char* name, std::string_view text) {
  if (text.empty()) return 0;
  uint64_t value = 0;
  VESTA_CHECK(parse_number(text, &value) && value >= 1 && value <= 4096, name,
              ": expected a count in [1, 4096], got '", text, "'");
  return static_cast<int>(value);
}

int parse_HostCount(const char*, std::string_view text) {
  text = text.substr(0, text.find(','));  // OMP_NUM_THREADS=4,2 lists nesting levels; the first is ours
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  uint64_t value = 0;
  return parse_number(text, &value) && value >= 1 && value <= 4096 ? static_cast<int>(value) : 0;
}

uint64_t parse_Bytes(const char* name, std::string_view text) {
  if (text.empty()) return 0;
  std::string_view digits = text;
  int shift = 0;
  switch (digits.back()) {
    case 'K':
    case 'k':
      shift = 10;
      break;
    case 'M':
    case 'm':
      shift = 20;
      break;
    case 'G':
    case 'g':
      shift = 30;
      break;
    case 'T':
    case 't':
      shift = 40;
      break;
    default:
      break;
  }
  if (shift) digits.remove_suffix(1);
  uint64_t value = 0;
  VESTA_CHECK(parse_number(digits, &value) && value <= (std::numeric_limits<uint64_t>::max() >> shift), name,
              ": expected a size in bytes such as 1048576, 512M or 8G, got '", text, "'");
  return value << shift;
}

std::string parse_Text(const char*, std::string_view text) { return std::string(text); }

}  // namespace

Config parse_config(FunctionRef<const char*(const char*)> get) {
  auto text = [&](const char* name, const char* default_text) {
    const char* set = get(name);
    return set && *set ? set : default_text;
  };
  Config result;
#define VESTA_CONFIG(kind, field, name, default_text, help) \
  result.field = parse_##kind(name, text(name, default_text));
#include "base/config.def"
#undef VESTA_CONFIG
  return result;
}

const Config& config() {
  // Leaked on purpose: threads that outlive main may still read it.
  static const Config& settings =
      *new Config(parse_config([](const char* name) -> const char* { return std::getenv(name); }));
  return settings;
}

std::vector<std::string> inherited_environment() {
  std::vector<std::string> out;
  for (char** var = environ; var && *var; ++var) out.emplace_back(*var);
  return out;
}

std::string config_markdown() {
  std::string out = "| variable | kind | default | meaning |\n|---|---|---|---|\n";
#define VESTA_CONFIG(kind, field, name, default_text, help)                                              \
  out += std::string("| `" name "` | " #kind " | ") + (*default_text ? "`" default_text "`" : "unset") + \
         " | " help " |\n";
#include "base/config.def"
#undef VESTA_CONFIG
  return out;
}

}  // namespace vesta
