// Levels by area and the writing of lines: one write per line, so that lines of several threads do not mix.
#include "base/log.h"

#include <array>
#include <cstdio>
#include <mutex>

#include "base/config.h"
#include "base/prim/prim.h"

namespace vesta {
namespace {

constexpr int kAreas = static_cast<int>(LogArea::Count);
constexpr std::array<const char*, kAreas> kAreaNames = {
#define VESTA_LOG_AREA(name, text, help) text,
#include "base/log_areas.def"
#undef VESTA_LOG_AREA
};
constexpr std::array<const char*, 5> kLevelNames = {"off", "error", "warning", "info", "debug"};

template <class Names>
int index_of(const Names& names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<int>(i);
  return -1;
}

template <class Names>
std::string joined(const Names& names) {
  std::string out;
  for (const char* name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

std::array<int, kAreas> parse_levels(std::string_view spec) {
  std::array<int, kAreas> levels{};
  while (!spec.empty()) {
    std::string_view entry = spec.substr(0, spec.find(','));
    spec.remove_prefix(std::min(spec.size(), entry.size() + 1));
    size_t colon = entry.find(':');
    VESTA_CHECK(colon != entry.npos, "VESTA_LOG: expected area:level,..., got '", entry, "'");
    int area = index_of(kAreaNames, entry.substr(0, colon));
    bool all = entry.substr(0, colon) == "*";
    VESTA_CHECK(all || area >= 0, "VESTA_LOG: expected an area of *, ", joined(kAreaNames), "; got '",
                entry.substr(0, colon), "'");
    int level = index_of(kLevelNames, entry.substr(colon + 1));
    VESTA_CHECK(level >= 0, "VESTA_LOG: expected a level of ", joined(kLevelNames), "; got '",
                entry.substr(colon + 1), "'");
    for (int i = 0; i < kAreas; ++i)
      if (all || i == area) levels[static_cast<size_t>(i)] = level;
  }
  return levels;
}

void store_levels(const std::array<int, kAreas>& levels) {
  for (int i = 0; i < kAreas; ++i)
    detail::log_levels.of[i].store(levels[static_cast<size_t>(i)], std::memory_order_relaxed);
}

// Leaked on purpose: threads that outlive main may still log.
struct Prefix {
  std::mutex mutex;
  std::string text;
};
Prefix& prefix() {
  static Prefix& it = *new Prefix;
  return it;
}

}  // namespace

namespace detail {

// Process-wide by nature: the environment, then set_log_levels, decide them.
constinit LogLevels log_levels = {{
#define VESTA_LOG_AREA(name, text, help) kLogUndecided,
#include "base/log_areas.def"
#undef VESTA_LOG_AREA
}};

// noexcept: a malformed setting must not make a log line throw. config() reports it where it is used.
bool decide_log_levels(LogArea area, LogLevel level) noexcept {
  std::array<int, kAreas> levels{};
  try {
    levels = parse_levels(config().log);
  } catch (const Error& error) {
    std::fprintf(stderr, "vesta: logging is off: %s\n", error.what());
  } catch (...) {
  }
  for (int i = 0; i < kAreas; ++i) {
    int undecided = kLogUndecided;
    log_levels.of[i].compare_exchange_strong(undecided, levels[static_cast<size_t>(i)],
                                             std::memory_order_relaxed);
  }
  return static_cast<int>(level) <= log_levels.of[static_cast<int>(area)].load(std::memory_order_relaxed);
}

void log_line(LogArea area, LogLevel level, std::string_view message) {
  static const int64_t start_ns = prim::monotonic_ns();
  char time[32];
  std::snprintf(time, sizeof time, "[vesta %.6f ",
                static_cast<double>(prim::monotonic_ns() - start_ns) * 1e-9);
  std::string line = time;
  line += std::string(kAreaNames[static_cast<size_t>(area)]) + " " + kLevelNames[static_cast<size_t>(level)];
  {
    std::lock_guard lock(prefix().mutex);
    if (!prefix().text.empty()) line += " " + prefix().text;
  }
  line += "] ";
  for (char c : message) line += c == '\n' || c == '\r' ? ' ' : c;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace detail

void set_log_levels(std::string_view spec) { store_levels(parse_levels(spec)); }

void set_log_prefix(std::string text) {
  std::lock_guard lock(prefix().mutex);
  prefix().text = std::move(text);
}

std::string log_areas_markdown() {
  std::string out = "| area | what is logged |\n|---|---|\n";
#define VESTA_LOG_AREA(name, text, help) out += "| `" text "` | " help " |\n";
#include "base/log_areas.def"
#undef VESTA_LOG_AREA
  return out;
}

}  // namespace vesta
