#pragma once
// Files, shared libraries and processes as the operating system offers them. Thin wrappers: functions that return int give
// 0 or an errno value, see error_text(); base/file, base/dl and base/process make typed errors of them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vesta::prim {

// strerror, thread-safe.
std::string error_text(int error);

int open_read(const std::string& path, int* file);
// Fails with EEXIST where the path exists. The mode is 0666 less the umask.
int create_new(const std::string& path, int* file);
// Up to `bytes`; *got = 0 at the end of the file.
int read_some(int file, void* data, size_t bytes, size_t* got);
int write_all(int file, const void* data, size_t bytes);
int file_bytes(int file, uint64_t* bytes);
// Permission bits of a path; ENOENT where there is none.
int get_mode(const std::string& path, uint32_t* mode);
int set_mode(int file, uint32_t mode);
int sync_file(int file);
// Makes a rename in the folder durable.
int sync_folder(const std::string& folder);
int rename_over(const std::string& from, const std::string& to);
int remove_file(const std::string& path);
int close_file(int file);
// Private: nothing written to the memory reaches the file. bytes > 0.
int map_file(int file, size_t bytes, bool writable, void** data);
void unmap_file(void* data, size_t bytes);

// Null and a message in *error where it fails.
void* open_library(const char* name, std::string* error);
void* library_symbol(void* library, const char* name);

int process_id();
struct SpawnFiles {
  std::string out, err;  // "" = inherited; else created or cut to length 0; equal paths share one file
};
// Looks argv[0] up in PATH unless it has a slash. `env` is the whole environment ("NAME=value").
// own_group: a group of its own, so that a signal to the group reaches grandchildren too.
int spawn(const std::vector<std::string>& argv, const std::vector<std::string>& env, const SpawnFiles& files,
          bool own_group, int* process);
// Waits up to timeout_ms (< 0: for ever). *ended false: still running. Else *code is the exit status, or 128 + signal.
int wait_process(int process, int64_t timeout_ms, bool* ended, int* code);
// hard: SIGKILL, else SIGTERM.
int signal_process(int process, bool own_group, bool hard);

}  // namespace vesta::prim
