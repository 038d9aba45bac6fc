// Files on top of prim/io.h.
#include "base/file.h"

#include <vesta/error.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "base/prim/io.h"

namespace vesta {
namespace {

void check_io(int error, const char* action, const std::string& path) {
  VESTA_CHECK_AS(IoError, error == 0, action, " '", path, "': ", prim::error_text(error));
}

struct OpenFile {
  int file = -1;
  explicit OpenFile(const std::string& path) { check_io(prim::open_read(path, &file), "open", path); }
  ~OpenFile() { prim::close_file(file); }
};

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

MappedFile::MappedFile(const std::string& path, Access access) {
  OpenFile open(path);
  uint64_t bytes = 0;
  check_io(prim::file_bytes(open.file, &bytes), "map", path);
  VESTA_CHECK_AS(IoError, bytes <= SIZE_MAX, "map '", path, "': ", bytes,
                 " bytes do not fit into the address space");
  // An empty file cannot be mapped, and needs no memory.
  if (bytes == 0) return;
  check_io(prim::map_file(open.file, static_cast<size_t>(bytes), access == Access::CopyOnWrite, &data_),
           "map", path);
  size_ = static_cast<size_t>(bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (size_) prim::unmap_file(data_, size_);
}

std::string read_all(const std::string& path) {
  OpenFile open(path);
  uint64_t expected = 0;
  check_io(prim::file_bytes(open.file, &expected), "read", path);
  // The size is only a hint: /proc says 0, and a file may grow meanwhile.
  std::string text;
  size_t used = 0;
  text.resize(static_cast<size_t>(expected) + 1);
  while (true) {
    size_t got = 0;
    check_io(prim::read_some(open.file, text.data() + used, text.size() - used, &got), "read", path);
    if (got == 0) break;
    used += got;
    if (used == text.size()) text.resize(used + used / 2 + 4096);
  }
  text.resize(used);
  return text;
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  // Unique in this process by the counter, on this host by the process id; what a crashed process with the same id left
  // behind, and other hosts' files on a shared folder, are passed over by EEXIST.
  static std::atomic<unsigned> counter{0};
  int error = EEXIST;
  for (int attempt = 0; attempt < 1000 && error == EEXIST; ++attempt) {
    temporary_ = detail::message(path_, ".tmp.", prim::process_id(), ".", counter.fetch_add(1));
    error = prim::create_new(temporary_, &file_);
  }
  check_io(error, "create", temporary_);
  uint32_t mode = 0;
  if (prim::get_mode(path_, &mode) == 0) check(prim::set_mode(file_, mode), "set the permissions of");
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  prim::close_file(file_);
  prim::remove_file(temporary_);
}

// The temporary file goes at the first error, also where the constructor throws and no destructor runs.
void AtomicFile::check(int error, const char* action) {
  if (error == 0) return;
  if (file_ >= 0) prim::close_file(std::exchange(file_, -1));
  prim::remove_file(temporary_);
  check_io(error, action, path_);
}

void AtomicFile::write(const void* data, size_t bytes) {
  VESTA_CHECK_AS(IoError, file_ >= 0, "write '", path_, "': the file is committed or failed before");
  check(prim::write_all(file_, data, bytes), "write");
}

void AtomicFile::commit() {
  VESTA_CHECK_AS(IoError, file_ >= 0, "commit '", path_, "': the file is committed or failed before");
  check(prim::sync_file(file_), "sync");
  check(prim::close_file(std::exchange(file_, -1)), "close");
  check(prim::rename_over(temporary_, path_), "rename to");
  check_io(prim::sync_folder(folder_of(path_)), "sync the folder of", path_);
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace vesta
