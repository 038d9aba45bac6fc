#pragma once
// Log lines for people who debug Vesta: VESTA_LOG(Pool, Info, "workers: ", n). Off unless VESTA_LOG names the area; then one
// line per event goes to stderr. A disabled line costs one load and a branch; its arguments are not evaluated.
// Messages meant for users are warnings (vesta/warning.h) or errors.
#include <vesta/error.h>

#include <atomic>
#include <string>
#include <string_view>

namespace vesta {

enum class LogLevel : int { Off = 0, Error = 1, Warning = 2, Info = 3, Debug = 4 };

enum class LogArea : int {
#define VESTA_LOG_AREA(name, text, help) name,
#include "base/log_areas.def"
#undef VESTA_LOG_AREA
  Count
};

// "area:level,..." as in VESTA_LOG; area * = all; later entries win; areas not named are off. Throws ValueError naming the
// choices and changes nothing where the text is malformed. Thread-safe.
void set_log_levels(std::string_view spec);
// Put before each message, e.g. "rank 3 epoch 2". Thread-safe.
void set_log_prefix(std::string prefix);

namespace detail {
inline constexpr int kLogUndecided = 5;  // above every level, so that the first line asks for the settings
struct LogLevels {
  std::atomic<int> of[static_cast<int>(LogArea::Count)];
};
extern LogLevels log_levels;
bool decide_log_levels(LogArea area, LogLevel level) noexcept;
void log_line(LogArea area, LogLevel level, std::string_view message);

inline bool log_enabled(LogArea area, LogLevel level) {
  int now = log_levels.of[static_cast<int>(area)].load(std::memory_order_relaxed);
  if (static_cast<int>(level) > now) [[likely]]
    return false;
  return now != kLogUndecided || decide_log_levels(area, level);
}
}  // namespace detail

// Markdown table of the areas, for docs/env.md.
std::string log_areas_markdown();

}  // namespace vesta

#define VESTA_LOG(area, level, ...)                                                                  \
  do {                                                                                               \
    if (::vesta::detail::log_enabled(::vesta::LogArea::area, ::vesta::LogLevel::level)) [[unlikely]] \
      ::vesta::detail::log_line(::vesta::LogArea::area, ::vesta::LogLevel::level,                    \
                                ::vesta::detail::message(__VA_ARGS__));                              \
  } while (0)
