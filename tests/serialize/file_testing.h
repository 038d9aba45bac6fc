#pragma once
// Helpers of the file tests: a folder of their own, comparison of tensors by bytes, messages of errors, mutations.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "serialize/byte_region.h"
#include "support/temp_folder.h"
#include "vesta/error.h"
#include "vesta/ops.h"

namespace vesta {

class FileTest : public test::FolderTest {};

// A string literal with zero bytes in it.
template <size_t N>
std::string raw(const char (&text)[N]) {
  return std::string(text, N - 1);
}

inline ByteRegion region_of(const std::string& bytes) { return copy_region(bytes.data(), bytes.size()); }

// Equal dtype, sizes and element bytes.
inline bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.sizes() == b.sizes())) return false;
  const Tensor p = a.detach().resolve_conj().resolve_neg().contiguous(),
               q = b.detach().resolve_conj().resolve_neg().contiguous();
  return p.nbytes() == 0 || std::memcmp(p.data_ptr(), q.data_ptr(), p.nbytes()) == 0;
}

// What `f` throws, or "nothing thrown". Only Vesta's errors are expected.
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing thrown";
}
template <class E, class F>
std::string message_as(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const Error& e) {
    return std::string("another type of error: ") + e.what();
  }
  return "nothing thrown";
}
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// Random edits of a file: bits, bytes, cuts, repeats, and numbers replaced by extreme ones.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}
  size_t below(size_t n) { return size_t(random_() % std::max<size_t>(1, n)); }
  std::string operator()(std::string file) {
    for (size_t edits = 1 + below(4); edits > 0 && !file.empty(); --edits) {
      const size_t at = below(file.size());
      switch (below(8)) {
        case 0:
          file[at] = char(random_());
          break;
        case 1:
          file[at] = char(file[at] ^ (1 << below(8)));
          break;
        case 2:
          if (below(4) == 0) file.resize(at);  // seldom: what follows is lost to other edits
          break;
        case 3:
          file.erase(at, 1 + below(8));
          break;
        case 4:
          file.insert(at, file.substr(below(file.size()), 1 + below(16)));
          break;
        case 5: {
          static constexpr uint64_t kExtreme[] = {
              0,          1,          0x7f,       0x80,       0xff,       0x7fff,    0xffff,
              0x7fffffff, 0x80000000, 0xffffffff, 1ull << 40, 1ull << 62, INT64_MAX, uint64_t(INT64_MIN),
              UINT64_MAX};
          const uint64_t value = kExtreme[below(std::size(kExtreme))];
          const size_t width = size_t{1} << below(4);
          std::memcpy(file.data() + at, &value, std::min(width, file.size() - at));
          break;
        }
        case 6: {
          const size_t other = below(file.size());
          std::swap(file[at], file[other]);
          break;
        }
        default:
          file.insert(at, 1 + below(4), char(random_()));
      }
    }
    return file;
  }

 private:
  std::mt19937_64 random_;
};

// Reads the elements that a tensor claims to have (the first and last, and up to 4,096 of them), so that a place outside
// of its memory is seen by the sanitizer.
inline unsigned touch(const Tensor& t) {
  if (t.numel() == 0) return 0;
  const auto* data = static_cast<const uint8_t*>(t.data_ptr());
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  const size_t width = t.element_size();
  unsigned sum = 0;
  for (size_t b = 0; b < width; ++b) sum += data[b] + data[size_t(last) * width + b];
  const int64_t step = std::max<int64_t>(1, last / 4096);
  for (int64_t i = 0; i <= last; i += step) sum += data[size_t(i) * width];
  return sum;
}

}  // namespace vesta
