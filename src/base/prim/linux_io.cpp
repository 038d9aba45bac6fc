// Linux: files, shared libraries and processes.
#if !defined(VESTA_EMBEDDED)
#include <dlfcn.h>
#endif
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/prim/io.h"
#include "base/prim/prim.h"

namespace vesta::prim {
namespace {

// Repeats a call that a signal interrupted.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int code_of(long result) { return result < 0 ? errno : 0; }

}  // namespace

std::string error_text(int error) {
  char buffer[256];
  return strerror_r(error, buffer, sizeof buffer);
}

int open_read(const std::string& path, int* file) {
  *file = retry([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  return code_of(*file);
}

int create_new(const std::string& path, int* file) {
  *file = retry([&] { return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  return code_of(*file);
}

int read_some(int file, void* data, size_t bytes, size_t* got) {
  ssize_t n = retry([&] { return read(file, data, bytes); });
  *got = n > 0 ? static_cast<size_t>(n) : 0;
  return code_of(n);
}

int write_all(int file, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t n = retry([&] { return write(file, at, std::min(bytes, size_t{1} << 30)); });
    if (n < 0) return errno;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return 0;
}

int file_bytes(int file, uint64_t* bytes) {
  struct stat info {};
  if (fstat(file, &info) < 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  *bytes = static_cast<uint64_t>(info.st_size);
  return 0;
}

int get_mode(const std::string& path, uint32_t* mode) {
  struct stat info {};
  if (stat(path.c_str(), &info) < 0) return errno;
  *mode = info.st_mode & 07777;
  return 0;
}

int set_mode(int file, uint32_t mode) { return code_of(fchmod(file, mode)); }

int sync_file(int file) {
  return code_of(retry([&] { return fsync(file); }));
}

int sync_folder(const std::string& folder) {
  int fd = retry([&] { return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) return errno;
  int error = sync_file(fd);
  close(fd);
  // Some file systems (FUSE, some network ones) cannot sync a folder: that is no failure of the write.
  return error == EINVAL || error == ENOTSUP ? 0 : error;
}

int rename_over(const std::string& from, const std::string& to) {
  return code_of(rename(from.c_str(), to.c_str()));
}
int remove_file(const std::string& path) { return code_of(unlink(path.c_str())); }
// Not repeated on EINTR: Linux has closed the file by then.
int close_file(int file) {
  int error = code_of(close(file));
  return error == EINTR ? 0 : error;
}

int map_file(int file, size_t bytes, bool writable, void** data) {
  // No reservation: a large file that is only read must not count as memory to be committed.
  int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  *data = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  return *data == MAP_FAILED ? errno : 0;
}

void unmap_file(void* data, size_t bytes) { munmap(data, bytes); }

#if defined(VESTA_EMBEDDED)
void* open_library(const char* name, std::string* error) {
  *error = std::string(name) + ": this build loads no libraries (VESTA_EMBEDDED)";
  return nullptr;
}
void* library_symbol(void*, const char*) { return nullptr; }
#else
void* open_library(const char* name, std::string* error) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* text = dlerror();
    *error = text ? text : std::string(name) + ": dlopen failed";
  }
  return library;
}
void* library_symbol(void* library, const char* name) { return dlsym(library, name); }
#endif

int process_id() { return getpid(); }

int spawn(const std::vector<std::string>& argv, const std::vector<std::string>& env, const SpawnFiles& files,
          bool own_group, int* process) {
  std::vector<char*> args, vars;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  for (const std::string& var : env) vars.push_back(const_cast<char*>(var.c_str()));
  args.push_back(nullptr);
  vars.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (int error = posix_spawn_file_actions_init(&actions)) return error;
  if (int error = posix_spawnattr_init(&attributes)) {
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }
  // The child starts with no blocked signals, whatever the calling thread blocks.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  short flags = POSIX_SPAWN_SETSIGMASK;
  if (own_group) {
    flags = static_cast<short>(flags | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
  }
  posix_spawnattr_setflags(&attributes, flags);
  constexpr int kCreate = O_WRONLY | O_CREAT | O_TRUNC;
  int error = 0;
  if (!files.out.empty())
    error = posix_spawn_file_actions_addopen(&actions, 1, files.out.c_str(), kCreate, 0666);
  if (!error && !files.err.empty())
    error = files.err == files.out
                ? posix_spawn_file_actions_adddup2(&actions, 1, 2)
                : posix_spawn_file_actions_addopen(&actions, 2, files.err.c_str(), kCreate, 0666);
  pid_t pid = 0;
  if (!error) error = posix_spawnp(&pid, args[0], &actions, &attributes, args.data(), vars.data());
  *process = pid;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

namespace {

// Sleeps until the process ends or the time is over. Kernels before 5.3 have no pidfd: then short sleeps.
void sleep_until_ended(int process, int64_t ms) {
#if defined(SYS_pidfd_open)
  int fd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (fd >= 0) {
    pollfd wait{fd, POLLIN, 0};
    poll(&wait, 1, static_cast<int>(std::min<int64_t>(ms, 1 << 30)));
    close(fd);
    return;
  }
#endif
  poll(nullptr, 0, static_cast<int>(std::min<int64_t>(ms, 2)));
}

}  // namespace

int wait_process(int process, int64_t timeout_ms, bool* ended, int* code) {
  const int64_t deadline_ns = monotonic_ns() + std::max<int64_t>(timeout_ms, 0) * 1'000'000;
  while (true) {
    int status = 0;
    pid_t got = retry([&] { return waitpid(process, &status, timeout_ms < 0 ? 0 : WNOHANG); });
    if (got < 0) return errno;
    *ended = got == process;
    if (*ended) {
      *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return 0;
    }
    int64_t left_ns = deadline_ns - monotonic_ns();
    if (left_ns <= 0) return 0;
    sleep_until_ended(process, left_ns / 1'000'000 + 1);
  }
}

int signal_process(int process, bool own_group, bool hard) {
  return code_of(kill(own_group ? -process : process, hard ? SIGKILL : SIGTERM));
}

}  // namespace vesta::prim
