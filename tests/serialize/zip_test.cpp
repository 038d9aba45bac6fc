// The zip container: archives written here byte by byte, zip64, and archives that lie about themselves.
#include "serialize/zip.h"
#include "file_testing.h"

namespace vesta {
namespace {

std::string archive(bool zip64 = false, ZipWriter::Method method = ZipWriter::Method::Stored) {
  MemorySink<std::string> sink;
  ZipWriter zip(sink, zip64);
  zip.add("a/one", "content of one", 14, method);
  zip.add("a/two", std::string(1000, 'x').data(), 1000, method);
  zip.add("empty", nullptr, 0, method);
  zip.finish();
  return sink.content;
}

std::string le(uint64_t value, size_t bytes) {
  return std::string(reinterpret_cast<const char*>(&value), bytes);
}

// One stored entry "n" with content "hi" (CRC-32 0xd8932aac), as an independent writer would give it: with a data
// descriptor behind the content, a comment in both places, and something in front.
std::string by_hand() {
  const std::string front = "#!";
  const std::string local = "PK\3\4" + le(20, 2) + le(8, 2) + le(0, 2) + le(0, 4) + le(0, 4) + le(0, 4) +
                            le(0, 4) + le(1, 2) + le(0, 2) + "n" + "hi" + "PK\7\x8" + le(0xd8932aac, 4) +
                            le(2, 4) + le(2, 4);
  const std::string entry = "PK\1\2" + le(20, 2) + le(20, 2) + le(8, 2) + le(0, 2) + le(0, 4) +
                            le(0xd8932aac, 4) + le(2, 4) + le(2, 4) + le(1, 2) + le(0, 2) + le(3, 2) +
                            le(0, 2) + le(0, 2) + le(0, 4) + le(front.size(), 4) + "n" + "abc";
  return front + local + entry + "PK\5\6" + le(0, 4) + le(1, 2) + le(1, 2) + le(entry.size(), 4) +
         le(front.size() + local.size(), 4) + le(7, 2) + "comment";
}

std::string content(const std::string& file, const std::string& name) {
  const ZipReader zip(region_of(file), "zip");
  const ZipEntry* entry = zip.find(name);
  return entry ? std::string(zip.read(*entry, true).text()) : "missing";
}

TEST(ZipArchives, EntriesAreReadBackStoredDeflatedAndWith64BitFields) {
  for (bool zip64 : {false, true})
    for (auto method : {ZipWriter::Method::Stored, ZipWriter::Method::Deflated}) {
      const std::string file = archive(zip64, method);
      const ZipReader zip(region_of(file), "zip");
      ASSERT_EQ(zip.entries().size(), 3u);
      EXPECT_EQ(content(file, "a/one"), "content of one");
      EXPECT_EQ(content(file, "a/two"), std::string(1000, 'x'));
      EXPECT_EQ(content(file, "empty"), "");
      EXPECT_EQ(content(file, "other"), "missing");
      for (auto& e : zip.entries()) {
        if (method == ZipWriter::Method::Stored) {
          EXPECT_EQ(e.begin % ZipWriter::kAlignment, 0u) << e.name;
        }
      }
    }
  MemorySink<std::string> sink;
  ZipWriter none(sink);
  none.finish();
  EXPECT_TRUE(ZipReader(region_of(sink.content), "zip").entries().empty());
}

TEST(ZipArchives, AnArchiveOfAnotherWriterIsRead) { EXPECT_EQ(content(by_hand(), "n"), "hi"); }

TEST(ZipArchives, ArchivesThatLieAreRefusedWithTheReason) {
  const std::string good = archive();
  const size_t directory = good.find("PK\1\2"), end = good.rfind("PK\5\6"),
               second = good.find("PK\1\2", directory + 4);
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string file = good;
    file.replace(at, bytes.size(), bytes);
    return file;
  };
  const std::string good64 = archive(true);
  const size_t end64 = good64.rfind("PK\6\6"), directory64 = good64.find("PK\1\2");
  const auto with64 = [&](size_t at, const std::string& bytes) {
    std::string file = good64;
    file.replace(at, bytes.size(), bytes);
    return file;
  };
  struct Case {
    std::string file, reason;
  };
  const Case cases[] = {
      {"", "only 0 bytes"},
      {std::string(100, 'x'), "no end of a zip archive"},
      {good.substr(0, good.size() - 1), "no end of a zip archive"},
      {good + "x", "no end of a zip archive"},
      {with(end + 4, le(1, 2)), "in several parts"},
      {with(end + 10, le(9, 2)), "claims 9 entries"},
      {with(end + 10, le(2, 2)), "bytes after its last entry"},
      {with(end + 12, le(0xffffff, 4)), "not inside the file"},
      {with(end + 16, le(0xffffffff, 4)), "not inside the file"},
      {with(directory, "PK\1\3"), "expected a directory entry"},
      {with(directory + 8, le(1, 2)), "is encrypted"},
      {with(directory + 10, le(12, 2)), "compression method 12"},
      {with(directory + 20, le(13, 4)), "has 13 bytes but claims 14"},
      {with(directory + 20, le(0xfffffff0, 4) + le(0xfffffff0, 4)), "claims 4294967280 bytes"},
      {with(directory + 28, le(0xffff, 2)), "ends inside an entry"},
      {with(directory + 42, le(0xffffff00, 4)), "outside the file"},
      {with(directory + 42, le(1, 4)), "no entry is at byte 1"},
      {with(directory + 46, "b"), "calls itself 'a/one'"},
      {with(second + 42, le(0, 4)), "calls itself 'a/one'"},
      {with(directory + 20, le(500, 4) + le(500, 4)), "overlaps another"},
      {with(26, le(0xffff, 2)), "the file ends inside entry"},
      {with(8, le(8, 2)), "differs from the directory"},
      {with64(end64 + 40, le(UINT64_MAX, 8)), "not inside the file"},
      {with64(end64 + 32, le(UINT64_MAX, 8)), "entries in"},
      {with64(good64.rfind("PK\6\7") + 8, le(UINT64_MAX, 8)), "zip64 end record is not"},
      {with64(directory64 + 46 + 5, le(7, 2)), "lacks its 64-bit sizes"},
      {with64(directory64 + 46 + 5 + 4, le(UINT64_MAX, 8) + le(UINT64_MAX, 8)), "bytes, the file has"},
  };
  for (auto& c : cases) {
    const std::string got = message_of([&] { ZipReader(region_of(c.file), "zip"); });
    EXPECT_SAYS(got, c.reason);
  }
}

TEST(ZipArchives, NamesThatAppearTwiceAreRefused) {
  MemorySink<std::string> sink;
  ZipWriter zip(sink);
  zip.add("same", "1");
  zip.add("same", "2");
  zip.finish();
  EXPECT_SAYS(message_as<IoError>([&] { ZipReader(region_of(sink.content), "zip"); }),
              "'same' appears twice");
}

TEST(ZipArchives, DamagedContentIsFoundByChecksumAndByTheInflater) {
  std::string stored = archive();
  stored[stored.find("content of one")] = 'C';
  EXPECT_SAYS(message_as<IoError>([&] { content(stored, "a/one"); }), "checksum");
  const std::string deflated = archive(false, ZipWriter::Method::Deflated);
  const ZipReader zip(region_of(deflated), "zip");
  const ZipEntry e = *zip.find("a/two");
  int refused = 0;
  for (uint64_t i = 0; i < e.compressed; ++i) {
    std::string file = deflated, got;
    file[size_t(e.begin + i)] = char(file[size_t(e.begin + i)] ^ 0x55);
    const std::string text = message_of([&] { got = content(file, "a/two"); });
    refused += text != "nothing thrown";
    // Some edits leave the content: of bits behind the end, or of how far back in the run of x it is copied from.
    EXPECT_TRUE(text != "nothing thrown" || got == std::string(1000, 'x')) << i;
  }
  EXPECT_GT(refused, 0);
}

TEST(ZipArchives, AnEntryCannotClaimMoreThanItsBytesCanInflateTo) {
  std::string file = archive(false, ZipWriter::Method::Deflated);
  const size_t directory = file.find("PK\1\2");
  file.replace(directory + 24, 4, le(0x7fffffff, 4));
  EXPECT_SAYS(message_as<IoError>([&] { ZipReader(region_of(file), "zip"); }), "more than its");
  // Within reach, but not true.
  file.replace(directory + 24, 4, le(1500, 4));
  EXPECT_SAYS(message_as<IoError>([&] { content(file, "a/one"); }), "damaged");
}

}  // namespace
}  // namespace vesta
