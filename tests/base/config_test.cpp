// Parsing of settings and the printed table; also the CPU level, the first user of a setting.
#include "base/config.h"

#include <gtest/gtest.h>
#include <vesta/error.h>

#include <map>
#include <string>

#include "base/cpu_isa.h"

namespace vesta {
namespace {

Config parse(std::map<std::string, std::string> env) {
  return parse_config([&](const char* name) -> const char* {
    auto found = env.find(name);
    return found == env.end() ? nullptr : found->second.c_str();
  });
}

std::string error_of(std::map<std::string, std::string> env) {
  try {
    parse(std::move(env));
  } catch (const ValueError& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Config, AnEmptyEnvironmentGivesTheDefaults) {
  Config c = parse({});
  EXPECT_EQ(c.num_threads, 0);
  EXPECT_EQ(c.omp_num_threads, 0);
  EXPECT_EQ(c.local_world_size, 1);
  EXPECT_EQ(c.memory_limit, 0u);
  EXPECT_EQ(c.cpu_isa, "");
  EXPECT_EQ(parse({{"VESTA_NUM_THREADS", ""}}).num_threads, 0);
}

TEST(Config, ValuesAreParsed) {
  Config c = parse({{"VESTA_NUM_THREADS", "3"},
                    {"OMP_NUM_THREADS", " 4,2"},
                    {"LOCAL_WORLD_SIZE", "8"},
                    {"VESTA_MEMORY_LIMIT", "512M"},
                    {"VESTA_LOG", "pool:debug"}});
  EXPECT_EQ(c.num_threads, 3);
  EXPECT_EQ(c.omp_num_threads, 4);
  EXPECT_EQ(c.local_world_size, 8);
  EXPECT_EQ(c.memory_limit, 512ull << 20);
  EXPECT_EQ(c.log, "pool:debug");
  EXPECT_EQ(parse({{"VESTA_MEMORY_LIMIT", "1048576"}}).memory_limit, 1048576u);
  EXPECT_EQ(parse({{"VESTA_MEMORY_LIMIT", "2t"}}).memory_limit, 2ull << 40);
}

TEST(Config, OurOwnVariablesRejectMalformedTextByName) {
  EXPECT_EQ(error_of({{"VESTA_NUM_THREADS", "two"}}),
            "VESTA_NUM_THREADS: expected a count in [1, 4096], got 'two'");
  EXPECT_EQ(error_of({{"VESTA_NUM_THREADS", "0"}}),
            "VESTA_NUM_THREADS: expected a count in [1, 4096], got '0'");
  EXPECT_EQ(error_of({{"VESTA_MEMORY_LIMIT", "5X"}}),
            "VESTA_MEMORY_LIMIT: expected a size in bytes such as 1048576, 512M or 8G, got '5X'");
  EXPECT_NE(error_of({{"VESTA_MEMORY_LIMIT", "M"}}).find("VESTA_MEMORY_LIMIT"), std::string::npos);
  EXPECT_NE(error_of({{"VESTA_MEMORY_LIMIT", "99999999999T"}}).find("VESTA_MEMORY_LIMIT"), std::string::npos);
}

TEST(Config, VariablesOfOtherSoftwareCountAsUnsetWhenMalformed) {
  EXPECT_EQ(parse({{"OMP_NUM_THREADS", "many"}, {"LOCAL_WORLD_SIZE", "-3"}}).omp_num_threads, 0);
  EXPECT_EQ(parse({{"LOCAL_WORLD_SIZE", "-3"}}).local_world_size, 0);
}

TEST(Config, TheTableListsEveryVariableOnOneLine) {
  std::string table = config_markdown();
  for (const char* name : {"VESTA_NUM_THREADS", "OMP_NUM_THREADS", "LOCAL_WORLD_SIZE", "VESTA_CPU_ISA",
                           "VESTA_MEMORY_LIMIT", "VESTA_LOG", "VESTA_GOLDEN_DIR"})
    EXPECT_NE(table.find(std::string("\n| `") + name + "` | "), std::string::npos) << name;
  EXPECT_EQ(table.find("| variable | kind | default | meaning |\n|---|---|---|---|\n"), 0u);
}

TEST(CpuIsa, TheLevelAgreesWithTheCompilersOwnDetection) {
  EXPECT_STREQ(cpu_isa_name(CpuIsa::V4Bf16), "v4bf16");
#if defined(__x86_64__)
  if (!config().cpu_isa.empty()) GTEST_SKIP() << "VESTA_CPU_ISA is set";
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  EXPECT_EQ(cpu_isa() >= CpuIsa::V3, v3);
  EXPECT_EQ(cpu_isa() >= CpuIsa::V4, v4);
#endif
}

}  // namespace
}  // namespace vesta
