// Log lines and warnings: what is on, how a line looks, wrong settings, handlers.
#include "base/log.h"

#include <gtest/gtest.h>
#include <vesta/warning.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace vesta {
namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override {
    set_log_levels("");
    set_log_prefix("");
  }
};

template <class Body>
std::string stderr_of(Body body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

// "[vesta SECONDS rest" with 6 decimals: gives rest; else the whole line, which no test expects.
std::string without_time(const std::string& line) {
  const std::string head = "[vesta ";
  if (line.rfind(head, 0) != 0) return line;
  char* end = nullptr;
  double seconds = std::strtod(line.c_str() + head.size(), &end);
  std::string number(line.c_str() + head.size(), static_cast<const char*>(end));
  size_t point = number.find('.');
  bool good = seconds >= 0 && point != std::string::npos && number.size() - point == 7 && *end == ' ';
  return good ? std::string(end + 1) : line;
}

std::string error_of(std::string_view spec) {
  try {
    set_log_levels(spec);
  } catch (const ValueError& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST_F(Log, ADisabledLineIsNeitherPrintedNorEvaluated) {
  set_log_levels("memory:debug,pool:warning");
  int evaluated = 0;
  EXPECT_EQ(stderr_of([&] {
              VESTA_LOG(Pool, Info, "x", ++evaluated);
              VESTA_LOG(Cpu, Error, "x", ++evaluated);
            }),
            "");
  EXPECT_EQ(evaluated, 0);
}

TEST_F(Log, ALineHasTimeAreaLevelPrefixAndStaysOneLine) {
  set_log_levels("pool:info");
  set_log_prefix("rank 3");
  std::string line = stderr_of([] { VESTA_LOG(Pool, Info, "two\nlines, ", 7); });
  EXPECT_EQ(without_time(line), "pool info rank 3] two lines, 7\n");
}

TEST_F(Log, LaterEntriesWinAndAStarMeansAllAreas) {
  set_log_levels("*:debug,pool:off");
  EXPECT_EQ(stderr_of([] { VESTA_LOG(Pool, Error, "x"); }), "");
  EXPECT_NE(stderr_of([] { VESTA_LOG(Cpu, Debug, "x"); }), "");
}

TEST_F(Log, AWrongSettingNamesTheChoicesAndChangesNothing) {
  set_log_levels("pool:info");
  EXPECT_EQ(error_of("pool"), "VESTA_LOG: expected area:level,..., got 'pool'");
  EXPECT_EQ(error_of("cpu:debug,poll:info"),
            "VESTA_LOG: expected an area of *, cpu, memory, pool, warnings; got 'poll'");
  EXPECT_EQ(error_of("pool:loud"),
            "VESTA_LOG: expected a level of off, error, warning, info, debug; got 'loud'");
  EXPECT_NE(stderr_of([] { VESTA_LOG(Pool, Info, "still on"); }), "");
  EXPECT_EQ(stderr_of([] { VESTA_LOG(Cpu, Error, "still off"); }), "");
}

TEST_F(Log, LinesOfSeveralThreadsDoNotMix) {
  set_log_levels("pool:info");
  std::string text = stderr_of([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t] {
        for (int i = 0; i < 50; ++i)
          VESTA_LOG(Pool, Info, "thread ", t, " ", std::string(200, static_cast<char>('a' + t)));
      });
    for (auto& thread : threads) thread.join();
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 200);
  std::vector<int> lines(4);
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    std::string line = without_time(text.substr(at, end - at));
    at = end + 1;
    int matches = 0;
    for (int t = 0; t < 4; ++t) {
      if (line !=
          "pool info] thread " + std::to_string(t) + " " + std::string(200, static_cast<char>('a' + t)))
        continue;
      ++lines[static_cast<size_t>(t)];
      ++matches;
    }
    ASSERT_EQ(matches, 1) << line;
  }
  EXPECT_EQ(lines, (std::vector<int>(4, 50)));
}

TEST_F(Log, TheTableListsTheAreas) { EXPECT_NE(log_areas_markdown().find("| `pool` | "), std::string::npos); }

// Collects warnings while it lives.
struct Collector {
  Collector() { set_warning_handler(&take, this); }
  ~Collector() { set_warning_handler(nullptr); }
  static void take(const char* message, void* self) {
    static_cast<Collector*>(self)->texts.emplace_back(message);
  }
  std::vector<std::string> texts;
};

TEST(Warning, GoesToStderrUnlessTheProgramTakesIt) {
  EXPECT_EQ(stderr_of([] { warn("op: slow path"); }), "vesta: warning: op: slow path\n");
  Collector collector;
  EXPECT_EQ(stderr_of([] { warn("op: slow path"); }), "");
  EXPECT_EQ(collector.texts, (std::vector<std::string>{"op: slow path"}));
}

TEST(Warning, OnceMeansOnceForEachText) {
  Collector collector;
  for (int i = 0; i < 3; ++i) {
    warn_once("first text");
    warn_once("second text");
  }
  EXPECT_EQ(collector.texts, (std::vector<std::string>{"first text", "second text"}));
  EXPECT_FALSE(set_warn_always(true));
  warn_once("first text");
  EXPECT_TRUE(set_warn_always(false));
  warn_once("first text");
  EXPECT_EQ(collector.texts.size(), 3u);
}

TEST(Warning, AHandlerMayThrowAndMayWarnItself) {
  set_warning_handler([](const char* message, void*) {
    set_warning_handler(nullptr);
    throw std::runtime_error(message);
  });
  EXPECT_THROW(warn("as an error"), std::runtime_error);
  EXPECT_EQ(set_warning_handler(nullptr), nullptr);
}

}  // namespace
}  // namespace vesta
