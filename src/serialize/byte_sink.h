#pragma once
// Where a writer's bytes go: a file that appears complete or not at all, memory, a stream or a function.
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "base/file.h"

namespace vesta {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(const void* data, size_t bytes) = 0;
  void write(std::string_view text) { write(text.data(), text.size()); }
};

class FileSink : public ByteSink {
 public:
  explicit FileSink(const std::string& path) : file_(path) {}
  using ByteSink::write;
  void write(const void* data, size_t bytes) override { file_.write(data, bytes); }
  // Without it nothing appears under the path.
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
};

// `Text` is std::string or std::vector<char>.
template <class Text>
class MemorySink : public ByteSink {
 public:
  using ByteSink::write;
  void write(const void* data, size_t bytes) override {
    auto* begin = static_cast<const char*>(data);
    content.insert(content.end(), begin, begin + bytes);
  }
  Text content;
};

class StreamSink : public ByteSink {
 public:
  explicit StreamSink(std::ostream& out) : out_(out) {}
  using ByteSink::write;
  void write(const void* data, size_t bytes) override;

 private:
  std::ostream& out_;
};

// The function says how many bytes it took; fewer than it was given is an IoError.
class FunctionSink : public ByteSink {
 public:
  using Write = std::function<size_t(const void* data, size_t bytes)>;
  explicit FunctionSink(const Write& function) : function_(function) {}
  using ByteSink::write;
  void write(const void* data, size_t bytes) override;

 private:
  const Write& function_;
};

}  // namespace vesta
