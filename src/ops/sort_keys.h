#pragma once
// Order-preserving integer keys: the total order of sort, topk, median and unique (NaN largest, -0 equal to 0) becomes
// unsigned comparison, so that one sorter serves every dtype. 8-byte types get 64-bit keys, the others 32-bit ones.
#include <utility>
#include <algorithm>
#include <bit>
#include <vector>

#include "ops/visit.h"

namespace vesta {

template <class T>
using SortKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
inline SortKey<T> sort_key(T v) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    using U = SortKey<T>;
    if (v != v) return ~U(0);
    U u = std::bit_cast<U>(v + T(0));  // -0 + 0 is +0
    constexpr U sign = U(1) << (sizeof(T) * 8 - 1);
    return u & sign ? ~u : u | sign;
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return sort_key(float(v));
  } else if constexpr (std::is_signed_v<T>) {
    using U = SortKey<T>;
    using S = std::make_signed_t<U>;
    return U(S(v)) ^ (U(1) << (sizeof(U) * 8 - 1));
  } else {
    return SortKey<T>(v);
  }
}

struct WideEntry {
  uint64_t key;
  uint32_t index;
  friend bool operator<(const WideEntry& a, const WideEntry& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; }
};
// (key, index) as one comparable value; the index makes every sort stable.
template <class K>
struct SortEntry;
template <>
struct SortEntry<uint32_t> {
  using type = uint64_t;
  static type make(uint32_t key, uint32_t index) { return uint64_t(key) << 32 | index; }
  static uint32_t key(type e) { return uint32_t(e >> 32); }
  static uint32_t index(type e) { return uint32_t(e); }
};
template <>
struct SortEntry<uint64_t> {
  using type = WideEntry;
  static type make(uint64_t key, uint32_t index) { return {key, index}; }
  static uint64_t key(const type& e) { return e.key; }
  static uint32_t index(const type& e) { return e.index; }
};

inline uint64_t sort_bits(uint64_t e) { return e >> 32; }
inline uint64_t sort_bits(const WideEntry& e) { return e.key; }

// Stable passes by the digits of kBits, those in which all keys agree left out.
template <int kBits, int kKeyBits, class E>
inline void sort_digits(std::vector<E>& e, std::vector<E>& scratch) {
  constexpr int kDigits = (kKeyBits + kBits - 1) / kBits;
  constexpr size_t kValues = size_t(1) << kBits;
  uint64_t differing = 0, first = sort_bits(e[0]);
  for (const E& v : e) differing |= sort_bits(v) ^ first;
  scratch.resize(e.size());
  for (int d = 0; d < kDigits; ++d) {
    if (!(differing >> (d * kBits) & (kValues - 1))) continue;
    size_t count[kValues] = {}, at = 0;
    for (const E& v : e) ++count[sort_bits(v) >> (d * kBits) & (kValues - 1)];
    for (auto& c : count) at += std::exchange(c, at);
    for (const E& v : e) scratch[count[sort_bits(v) >> (d * kBits) & (kValues - 1)]++] = v;
    e.swap(scratch);
  }
}
// Sorts by key. Entries must come in the order of their index, which the stable passes keep among equal keys. Digits beat
// comparing from a length on; short ones where the counters would outweigh the entries.
inline void sort_entries(std::vector<uint64_t>& e, std::vector<uint64_t>& scratch) {
  if (e.size() < 128) return std::sort(e.begin(), e.end());
  e.size() < 8192 ? sort_digits<8, 32>(e, scratch) : sort_digits<11, 32>(e, scratch);
}
inline void sort_entries(std::vector<WideEntry>& e, std::vector<WideEntry>& scratch) {
  if (e.size() < 512) return std::sort(e.begin(), e.end());
  e.size() < 8192 ? sort_digits<8, 64>(e, scratch) : sort_digits<11, 64>(e, scratch);
}

}  // namespace vesta
