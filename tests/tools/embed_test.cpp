// tools/embed: the files of tests/tools/data/ are linked into this program by vesta_embed.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "embedded/test_data.h"
#include "tools/run_program.h"

namespace vesta::test {
namespace {

const embedded::test_data::File* find(std::string_view name) {
  for (const auto& file : embedded::test_data::kFiles) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

// FNV-1a, 64 bits, from its definition (Fowler, Noll, Vo).
uint64_t fnv1a(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

TEST(Embed, BytesSizeAndHashAreTheFilesOwn) {
  struct {
    const char* name;
    std::string_view bytes;
  } expected[] = {{"data/text.txt", "line one\nline \"two\" \\ end"},
                  {"data/bytes.bin", std::string_view("\0\1\377\0binary\0", 11)},
                  {"data/empty.txt", ""}};
  EXPECT_EQ(std::size(embedded::test_data::kFiles), std::size(expected));
  for (const auto& want : expected) {
    const auto* file = find(want.name);
    ASSERT_TRUE(file) << want.name;
    EXPECT_EQ(std::string_view(file->data, file->size), want.bytes) << want.name;
    EXPECT_EQ(file->data[file->size], '\0') << want.name;
    EXPECT_EQ(file->hash, fnv1a(want.bytes)) << want.name;
  }
}

TEST(Embed, AMissingFileIsNamed) {
  TempFolder folder;
  ProgramResult result = run_tool("embed", folder.path() + "/out x / " + folder.path() + "/missing");
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_NE(result.output.find("cannot read " + folder.path() + "/missing"), std::string::npos)
      << result.output;
}

}  // namespace
}  // namespace vesta::test
