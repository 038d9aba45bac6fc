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

// Sorts 32-bit keys by three 11-bit digits from a length on where that beats comparing.
inline void sort_entries(std::vector<uint64_t>& e, std::vector<uint64_t>& scratch) {
  if (e.size() < 2048) {
    std::sort(e.begin(), e.end());
    return;
  }
  scratch.resize(e.size());
  for (int shift : {32, 43, 54}) {
    size_t count[2048] = {}, at = 0;
    for (uint64_t v : e) ++count[v >> shift & 2047];
    for (auto& c : count) at += std::exchange(c, at);
    for (uint64_t v : e) scratch[count[v >> shift & 2047]++] = v;
    e.swap(scratch);
  }
}
inline void sort_entries(std::vector<WideEntry>& e, std::vector<WideEntry>&) { std::sort(e.begin(), e.end()); }

}  // namespace vesta
