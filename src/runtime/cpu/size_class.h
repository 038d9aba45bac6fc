#pragma once
// Block sizes: multiples of 64 B up to 1 KiB, then 8 sizes for each doubling, so that a block is at most 12.5
// % larger than the request (tiny requests: at most 64 B). Small classes are numbered 0..63, large ones start
// at 0 again.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace vesta::cpu {

inline constexpr unsigned kSmallClasses = 64;
inline constexpr size_t kMaxSmallBytes = 64 * 1024;
inline constexpr size_t kMaxRequest = size_t{1} << 62;
inline constexpr unsigned kLargeClasses = (62 - 16) * 8;

constexpr unsigned log2_floor(size_t value) { return static_cast<unsigned>(std::bit_width(value)) - 1; }

// bytes <= kMaxSmallBytes; 0 counts as 1.
constexpr unsigned small_class(size_t bytes) {
  if (bytes <= 1024) return static_cast<unsigned>((bytes + (bytes == 0) + 63) / 64) - 1;
  size_t last = bytes - 1;
  unsigned log = log2_floor(last);
  return 16 + (log - 10) * 8 + static_cast<unsigned>(last >> (log - 3) & 7);
}

inline constexpr auto kSmallClassBytes = [] {
  std::array<uint32_t, kSmallClasses> table{};
  for (unsigned c = 0; c < 16; ++c) table[c] = 64 * (c + 1);
  for (unsigned c = 16; c < kSmallClasses; ++c) table[c] = (9 + (c - 16) % 8) << ((c - 16) / 8 + 7);
  return table;
}();

// kMaxSmallBytes < bytes <= kMaxRequest.
constexpr unsigned large_class(size_t bytes) {
  size_t last = bytes - 1;
  unsigned log = log2_floor(last);
  return (log - 16) * 8 + static_cast<unsigned>(last >> (log - 3) & 7);
}

constexpr size_t large_class_bytes(size_t bytes) {
  unsigned shift = log2_floor(bytes - 1) - 3;
  return (((bytes - 1) >> shift) + 1) << shift;
}

static_assert(kSmallClassBytes[small_class(1)] == 64 && kSmallClassBytes[small_class(1025)] == 1152);
static_assert(small_class(kMaxSmallBytes) == kSmallClasses - 1 && kSmallClassBytes[63] == kMaxSmallBytes);
static_assert(large_class(kMaxSmallBytes + 1) == 0 && large_class(kMaxRequest) == kLargeClasses - 1);

}  // namespace vesta::cpu
