#pragma once
// The header of .npy data, checked; apart from files so that it can be tested on bytes alone.
// Format: numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "serialize/byte_region.h"
#include "vesta/dtype.h"

namespace vesta {

struct NpyHeader {
  DType dtype = DType::Undefined;
  bool swapped = false;  // big-endian elements
  bool fortran = false;
  std::vector<int64_t> sizes;
  uint64_t begin = 0;  // of the elements
  uint64_t bytes = 0;  // of the elements
};

// NumPy itself accepts no more than 10,000 bytes of an untrusted header.
constexpr uint64_t kMaxNpyHeader = 1 << 20;
constexpr size_t kMaxNpyDims = 64;

// `where` starts the messages. Guarantee: the elements fill the rest of `file` exactly.
NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& where);
// Magic and header for little-endian elements, padded so that the elements start at a multiple of 64.
// ValueError: a dtype that NumPy has not got.
std::string print_npy_header(DType dtype, bool fortran, IntArrayRef sizes, const std::string& where);

// The array in `file`, showing its bytes where byte order and alignment allow.
Tensor npy_tensor(const ByteRegion& file, const std::string& where);
// Header and the bytes to write after it; `elements` may share memory with `tensor`.
struct NpyContent {
  std::string header;
  Tensor elements;
};
NpyContent npy_content(const Tensor& tensor, const std::string& where);

}  // namespace vesta
