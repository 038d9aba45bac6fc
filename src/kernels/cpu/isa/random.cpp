// Random fills, compiled per CPU level. Words are made 16 blocks at a time in lanes, then mapped by plain loops that
// vectorise. A chunk is a whole number of blocks, so chunks are independent.
#include "kernels/cpu/random.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "vesta/scalar/prelude.h"

#include "vesta/scalar/prelude_random.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

using namespace vesta::scalar;

constexpr int kLanes = 16;        // blocks made together
constexpr int64_t kBuffer = 512;  // elements mapped together
constexpr int64_t kChunk = 8192;  // elements per parallel chunk; a multiple of kBuffer

// `n` words from block `block` on; writes whole groups of 4 * kLanes.
void make_words(RandomStream s, uint64_t block, uint32_t* out, int64_t n) {
  for (int64_t at = 0; at < n; at += 4 * kLanes, block += kLanes) {
    uint32_t w[4][kLanes];
    for (int l = 0; l < kLanes; ++l) {
      PhiloxBlock b = philox_(s.seed, s.call, block + static_cast<uint64_t>(l));
      w[0][l] = b.w0, w[1][l] = b.w1, w[2][l] = b.w2, w[3][l] = b.w3;
    }
    for (int l = 0; l < kLanes; ++l)
      for (int j = 0; j < 4; ++j) out[at + 4 * l + j] = w[j][l];
  }
}

// Uniform numbers of elements [first, first + n), first a multiple of 4; room for kBuffer.
void uniforms(RandomStream s, int64_t first, float* u, int64_t n) {
  alignas(64) uint32_t w[kBuffer];
  make_words(s, static_cast<uint64_t>(first) / 4, w, n);
  for (int64_t i = 0; i < kBuffer; ++i) u[i] = uniform_(w[i]);
}
void uniforms(RandomStream s, int64_t first, double* u, int64_t n) {
  alignas(64) uint32_t w[2 * kBuffer];
  make_words(s, static_cast<uint64_t>(first) / 2, w, 2 * n);
  for (int64_t i = 0; i < kBuffer; ++i)
    u[i] = uniform_(static_cast<uint64_t>(w[2 * i]) | static_cast<uint64_t>(w[2 * i + 1]) << 32);
}

template <class R>
R below(R x) {
  R r;
  if constexpr (sizeof(R) == 4)
    r = __builtin_nextafterf(x, -__builtin_inff());
  else
    r = __builtin_nextafter(x, -__builtin_inf());
  return r;
}

// Maps kBuffer uniforms in place.
template <class R>
void map(Distribution d, R* u, R a, R b) {
  constexpr R kTiny = sizeof(R) == 4 ? R(0x1p-25) : R(0x1p-54);  // stands for 0 under a logarithm
  switch (d) {
    case Distribution::Uniform: {
      R top = a < b ? below(b) : b, width = b - a;
      for (int64_t i = 0; i < kBuffer; ++i) {
        R v = u[i] * width + a;
        u[i] = v > top ? top : v;
      }
      return;
    }
    case Distribution::Normal:
    case Distribution::LogNormal: {
      R even[kBuffer / 2], odd[kBuffer / 2];
      for (int64_t i = 0; i < kBuffer / 2; ++i) {
        NormalPair<R> p = normal_pair_(u[2 * i], u[2 * i + 1]);
        even[i] = p.even * b + a;
        odd[i] = p.odd * b + a;
      }
      for (int64_t i = 0; i < kBuffer / 2; ++i) u[2 * i] = even[i], u[2 * i + 1] = odd[i];
      if (d == Distribution::LogNormal)
        for (int64_t i = 0; i < kBuffer; ++i) u[i] = exp_(u[i]);
      return;
    }
    case Distribution::Exponential:
      for (int64_t i = 0; i < kBuffer; ++i) u[i] = -log_(u[i] > R(0) ? u[i] : kTiny) / a;
      return;
    case Distribution::Cauchy:
      for (int64_t i = 0; i < kBuffer; ++i) u[i] = tan_(R(3.141592653589793) * (u[i] - R(0.5))) * b + a;
      return;
    case Distribution::Geometric: {
      R scale = log_(R(1) - a);  // -inf for a = 1: every number becomes 1
      for (int64_t i = 0; i < kBuffer; ++i) {
        R v = ceil_(log_(u[i] > R(0) ? u[i] : kTiny) / scale);
        u[i] = v < R(1) ? R(1) : v;
      }
      return;
    }
  }
}

template <class R>
void fill_as(Distribution d, RandomStream s, double a, double b, R* out, int64_t n) {
  parallel_for(0, n, kChunk, [&](int64_t begin, int64_t end) {
    alignas(64) R u[kBuffer];
    for (int64_t i = begin; i < end; i += kBuffer) {
      int64_t count = std::min(kBuffer, end - i);
      // Whole groups of words: the last normal pair needs both, and lanes past the end are never stored.
      uniforms(s, i, u, kBuffer);
      map<R>(d, u, static_cast<R>(a), static_cast<R>(b));
      std::memcpy(out + i, u, static_cast<size_t>(count) * sizeof(R));
    }
  });
}
void fill(Elem type, Distribution d, RandomStream s, double a, double b, void* out, int64_t n) {
  if (type == Elem::F32)
    fill_as(d, s, a, b, static_cast<float*>(out), n);
  else
    fill_as(d, s, a, b, static_cast<double*>(out), n);
}

void integers(RandomStream s, int64_t low, uint64_t range, int64_t* out, int64_t n) {
  bool wide = range == 0 || range > (uint64_t(1) << 32);
  uint64_t base = static_cast<uint64_t>(low);
  parallel_for(0, n, kChunk, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t w[2 * kBuffer];
    for (int64_t i = begin; i < end; i += kBuffer) {
      int64_t count = std::min(kBuffer, end - i);
      if (wide) {
        make_words(s, static_cast<uint64_t>(i) / 2, w, 2 * kBuffer);
        for (int64_t j = 0; j < count; ++j) {
          uint64_t v = static_cast<uint64_t>(w[2 * j]) | static_cast<uint64_t>(w[2 * j + 1]) << 32;
          if (range) v = static_cast<uint64_t>((static_cast<unsigned __int128>(v) * range) >> 64);
          out[i + j] = static_cast<int64_t>(base + v);
        }
      } else {
        make_words(s, static_cast<uint64_t>(i) / 4, w, kBuffer);
        for (int64_t j = 0; j < count; ++j) out[i + j] = static_cast<int64_t>(base + (w[j] * range >> 32));
      }
    }
  });
}

void mask(RandomStream s, double p, uint8_t* out, int64_t n) {
  // u = top / 2^24 < p, as integers.
  double scaled = p * 0x1p24;
  uint32_t limit = scaled >= 0x1p24 ? 1u << 24 : static_cast<uint32_t>(__builtin_ceil(scaled));
  parallel_for(0, n, kChunk, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t w[kBuffer];
    for (int64_t i = begin; i < end; i += kBuffer) {
      int64_t count = std::min(kBuffer, end - i);
      make_words(s, static_cast<uint64_t>(i) / 4, w, kBuffer);
      for (int64_t j = 0; j < count; ++j) out[i + j] = w[j] >> 8 < limit;
    }
  });
}

void words(RandomStream s, uint64_t first_block, uint32_t* out, int64_t n) {
  uint32_t w[4 * kLanes];
  for (int64_t i = 0; i < n; i += 4 * kLanes, first_block += kLanes) {
    make_words(s, first_block, w, 4 * kLanes);
    std::memcpy(out + i, w, static_cast<size_t>(std::min<int64_t>(4 * kLanes, n - i)) * 4);
  }
}

}  // namespace

extern const RandomTable kRandomTable;
const RandomTable kRandomTable = {fill, integers, mask, words};

}  // namespace vesta::cpu::VESTA_ISA
