// Sinks over streams and functions.
#include "serialize/byte_sink.h"

#include <vesta/error.h>

#include <ostream>

namespace vesta {

void StreamSink::write(const void* data, size_t bytes) {
  out_.write(static_cast<const char*>(data), std::streamsize(bytes));
  VESTA_CHECK_AS(IoError, out_.good(), "save: the stream did not take ", bytes, " bytes");
}

void FunctionSink::write(const void* data, size_t bytes) {
  if (bytes == 0) return;
  const size_t taken = function_(data, bytes);
  VESTA_CHECK_AS(IoError, taken == bytes, "save: the writer function took ", taken, " of ", bytes, " bytes");
}

}  // namespace vesta
