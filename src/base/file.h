#pragma once
// Files: read-only maps, whole reads, and writes that are either complete or absent. Errors are IoErrors with the path and
// the system's reason. Not for streams that are read in small pieces.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vesta {

// A file's bytes, mapped while this object lives; they change or fault (SIGBUS) if others change or cut the file.
// Read-only, or copy-on-write: pages that are written become this process's own, the file never changes.
class MappedFile {
 public:
  enum class Access { ReadOnly, CopyOnWrite };
  explicit MappedFile(const std::string& path, Access access = Access::ReadOnly);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  // Only with CopyOnWrite.
  std::byte* writable_data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

std::string read_all(const std::string& path);

// Writes to a temporary file in the same folder; commit() syncs it and renames it over `path`, so that a reader, or a
// restart after a crash, finds the old or the new content. Without commit() the temporary file is removed. An existing
// file's permissions are kept; a symbolic link is replaced. Externally synchronised.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();
  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  void check(int error, const char* action);

  std::string path_;
  std::string temporary_;
  int file_ = -1;
};

void write_file(const std::string& path, std::string_view content);

}  // namespace vesta
