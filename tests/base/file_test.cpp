// Files, libraries and processes on the real system: contents, atomicity, errors with path and reason.
#include "base/file.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vesta/error.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/dl.h"
#include "base/process.h"

namespace vesta {
namespace {

namespace fs = std::filesystem;

class Files : public test::FolderTest {
 protected:
  int count() const {
    int n = 0;
    for (auto& entry : fs::directory_iterator(folder_)) (void)entry, ++n;
    return n;
  }
};

template <class Body>
std::string io_error_of(Body body) {
  try {
    body();
  } catch (const IoError& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST_F(Files, WhatIsWrittenIsReadAndMapped) {
  std::string content(3'000'000, 'x');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 % 251);
  write_file(path("a"), content);
  EXPECT_EQ(read_all(path("a")), content);
  MappedFile map(path("a"));
  ASSERT_EQ(map.bytes().size(), content.size());
  EXPECT_EQ(std::memcmp(map.bytes().data(), content.data(), content.size()), 0);
  MappedFile moved = std::move(map);
  EXPECT_EQ(map.bytes().size(), 0u);
  EXPECT_EQ(moved.bytes().size(), content.size());
  EXPECT_EQ(count(), 1) << "no temporary file stays";
}

TEST_F(Files, EmptyFilesAndFilesWithoutASizeAreRead) {
  write_file(path("empty"), "");
  EXPECT_EQ(read_all(path("empty")), "");
  EXPECT_EQ(MappedFile(path("empty")).bytes().size(), 0u);
  // Its size is reported as 0.
  EXPECT_NE(read_all("/proc/self/status").find("Name:"), std::string::npos);
}

TEST_F(Files, AMissingFileIsNamedWithTheReason) {
  EXPECT_EQ(io_error_of([&] { read_all(path("none")); }),
            "open '" + path("none") + "': No such file or directory");
  EXPECT_EQ(io_error_of([&] { MappedFile map(path("none")); }),
            "open '" + path("none") + "': No such file or directory");
  EXPECT_EQ(io_error_of([&] { read_all(folder_); }), "read '" + folder_ + "': Is a directory");
}

TEST_F(Files, WithoutCommitTheOldContentStaysAndNothingElse) {
  write_file(path("a"), "old");
  {
    AtomicFile file(path("a"));
    file.write("new, ");
    EXPECT_EQ(count(), 2);
    EXPECT_EQ(read_all(path("a")), "old");
  }
  EXPECT_EQ(read_all(path("a")), "old");
  EXPECT_EQ(count(), 1);
  AtomicFile file(path("a"));
  file.write("new, ");
  file.write("longer");
  file.commit();
  EXPECT_EQ(read_all(path("a")), "new, longer");
  EXPECT_EQ(count(), 1);
  EXPECT_NE(io_error_of([&] { file.write("more"); }).find("committed or failed before"), std::string::npos);
}

TEST_F(Files, PermissionsOfAReplacedFileAreKept) {
  write_file(path("a"), "old");
  ASSERT_EQ(chmod(path("a").c_str(), 0640), 0);
  write_file(path("a"), "new");
  struct stat info {};
  ASSERT_EQ(stat(path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(Files, AFailedWriteRemovesItsTemporaryFile) {
  EXPECT_NE(io_error_of([&] { write_file(path("none/a"), "x"); }).find("No such file or directory"),
            std::string::npos);
  // A folder in the way makes the rename fail after the data was written.
  fs::create_directory(path("folder"));
  write_file(path("folder/inside"), "x");
  std::string error = io_error_of([&] { write_file(path("folder"), "x"); });
  EXPECT_EQ(error, "rename to '" + path("folder") + "': Is a directory");
  EXPECT_EQ(count(), 1);
}

TEST_F(Files, AWriteThatTheSystemCutsShortIsReportedAndLeavesNothing) {
  write_file(path("a"), "old");
  // A limit on the size of files stands in for a full disk.
  rlimit saved{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &saved), 0);
  auto* old_handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small = saved;
  small.rlim_cur = 100'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string error = io_error_of([&] { write_file(path("a"), std::string(300'000, 'x')); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &saved), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error, "write '" + path("a") + "': File too large");
  EXPECT_EQ(read_all(path("a")), "old");
  EXPECT_EQ(count(), 1);
}

TEST_F(Files, ConcurrentWritersLeaveOneWholeContent) {
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) write_file(path("a"), std::string(10'000, static_cast<char>('a' + t)));
    });
  for (auto& writer : writers) writer.join();
  std::string content = read_all(path("a"));
  ASSERT_EQ(content.size(), 10'000u);
  EXPECT_EQ(content, std::string(10'000, content[0]));
  EXPECT_EQ(count(), 1);
}

TEST(Library, OpensFindsAndReportsWhatIsMissing) {
#if defined(VESTA_EMBEDDED)
  EXPECT_FALSE(Library::open("libc.so.6"));
#else
  Result<Library> libc = Library::open("libc.so.6");
  ASSERT_TRUE(libc) << libc.error();
  auto length = libc->symbol<size_t(const char*)>("strlen");
  ASSERT_TRUE(length) << length.error();
  EXPECT_EQ((*length)("four"), 4u);
  EXPECT_EQ(libc->symbol<void()>("no_such_symbol").error(),
            "library 'libc.so.6' has no symbol 'no_such_symbol'");
#endif
  EXPECT_NE(Library::open("libnosuch.so.1").error().find("open library 'libnosuch.so.1': "),
            std::string::npos);
}

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.argv = {"sh", "-c", script};
  return options;
}

TEST_F(Files, AProcessGetsItsEnvironmentAndFilesAndGivesItsCode) {
  ProcessOptions options = shell("echo out $VESTA_TEST_WORD; echo err >&2; exit 7");
  options.env = {"VESTA_TEST_WORD=hello"};
  options.stdout_path = path("out");
  options.stderr_path = path("err");
  Result<Process> process = Process::start(options);
  ASSERT_TRUE(process) << process.error();
  EXPECT_TRUE(process->wait(20'000));
  EXPECT_EQ(process->exit_code(), 7);
  EXPECT_EQ(read_all(path("out")), "out hello\n");
  EXPECT_EQ(read_all(path("err")), "err\n");
  options.stderr_path = options.stdout_path;
  Result<Process> joined = Process::start(options);
  ASSERT_TRUE(joined) << joined.error();
  EXPECT_TRUE(joined->wait(20'000));
  EXPECT_EQ(read_all(path("out")), "out hello\nerr\n");
}

TEST(Processes, AMissingProgramIsAFailureThatNamesIt) {
  ProcessOptions options;
  options.argv = {"no-such-program-here"};
  EXPECT_EQ(Process::start(options).error(), "start 'no-such-program-here': No such file or directory");
  options.argv = {};
  EXPECT_THROW((void)Process::start(options), ValueError);
  options.argv = {"sh"};
  options.env = {"NOVALUE"};
  EXPECT_THROW((void)Process::start(options), ValueError);
}

TEST(Processes, ARunningChildTimesOutAndCanBeEnded) {
  Result<Process> process = Process::start(shell("sleep 100 & wait"));
  ASSERT_TRUE(process) << process.error();
  EXPECT_FALSE(process->wait(20));
  EXPECT_EQ(process->exit_code(), -1);
  process->terminate();
  EXPECT_TRUE(process->wait(20'000));
  EXPECT_EQ(process->exit_code(), 128 + 15);
  EXPECT_TRUE(process->wait(0));
}

TEST(Processes, DestroyingTheObjectEndsTheChild) {
  int id = 0;
  {
    Result<Process> process = Process::start(shell("exec sleep 100"));
    ASSERT_TRUE(process) << process.error();
    id = process->id();
    EXPECT_EQ(kill(id, 0), 0);
  }
  EXPECT_EQ(kill(id, 0), -1) << "the child is gone and waited for";
}

}  // namespace
}  // namespace vesta
