#pragma once
// Part of the scalar prelude, included by random kernels only: Philox4x32-10 (Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3", SC 2011) and the maps from words to floats. A stream is (seed, call): the key is the seed, the
// counter is (block, call). Word j of the stream is word j % 4 of block j / 4. Float element i uses word i, double
// element i the words 2 i (low half) and 2 i + 1.

namespace vesta::scalar {

struct PhiloxBlock {
  uint32_t w0, w1, w2, w3;
};

VESTA_FN PhiloxBlock philox_(uint64_t seed, uint64_t call, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = static_cast<uint32_t>(call), c3 = static_cast<uint32_t>(call >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0, p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

// In [0, 1): the top 24 bits of a word, the top 53 of a pair.
VESTA_FN float uniform_(uint32_t w) { return static_cast<float>(static_cast<int32_t>(w >> 8)) * 0x1p-24f; }
VESTA_FN double uniform_(uint64_t w) { return static_cast<double>(static_cast<int64_t>(w >> 11)) * 0x1p-53; }

// Box-Muller: two independent standard normal numbers from two uniform ones.
template <class R>
struct NormalPair {
  R even, odd;
};
template <class R>
VESTA_FN NormalPair<R> normal_pair_(R u, R v) {
  R r = sqrt_(R(-2) * log_(R(1) - u));
  auto t = sincos_(R(6.283185307179586) * v);
  return {r * t.cos, r * t.sin};
}

}  // namespace vesta::scalar
