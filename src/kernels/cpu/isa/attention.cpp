// Attention by blocks, in the manner of FlashAttention-2 (Dao 2023). A unit of work is one head, or a part of it where
// there are few heads; units and blocks depend on the shape alone, never on the number of threads.
//
// Forward, per unit of up to kUnitRows queries: for each block of kKeys keys, K is packed transposed and V plainly;
// for each kRows queries: S = (scale Q) K^T, running maximum and sum, P = exp(S - max), O = O * correction + P V.
// Backward, per unit of keys: K, K^T and V^T are packed, dK and dV stay in scratch; for each kRows queries:
//   P = exp(S - logsumexp), dP = dO V^T, dS = P (dP - rowsum(dO O)), dV += P^T dO, dK += dS^T (scale Q), dQ += dS K.
// All five products are block_product(); a causal row tile of 8 queries computes only the key vectors it can see.
#include "kernels/cpu/attention.h"

#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/isa/attention_block.h"
#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kKeys = 128;      // keys a block: scores of kRows queries are 32 KB of float
constexpr int64_t kRows = 64;       // queries a block
constexpr int64_t kUnitRows = 256;  // queries that share one packing of the keys in the forward pass
constexpr int64_t kUnits = 8;       // fewer heads than this are cut into parts

// Carves aligned arrays out of one block of scratch: measures with a null base, then places.
struct Carver {
  char* base;
  size_t used = 0;
  template <class A>
  A* take(int64_t n) {
    char* at = base + used;
    used += size_t(round_up(n * int64_t{sizeof(A)}, 64));
    return reinterpret_cast<A*>(at);
  }
};

// Adds the mask to (or applies it on) n scores of one query row.
template <class A>
void apply_mask(const AttentionArgs& args, int64_t batch, int64_t head, int64_t row, int64_t key, A* scores,
                int64_t n) {
  const int64_t at =
      batch * args.mask_batch + head * args.mask_head + row * args.mask_row + key * args.mask_col;
  if (args.mask_kind == MaskKind::Bool) {
    const uint8_t* mask = static_cast<const uint8_t*>(args.mask) + at;
    for (int64_t j = 0; j < n; ++j) scores[j] = mask[j * args.mask_col] ? scores[j] : -kInfinity<A>;
    return;
  }
  const A* mask = static_cast<const A*>(args.mask) + at;
  if (args.mask_col == 1) {
    for (int64_t j = 0; j < n; ++j) scores[j] += mask[j];
  } else {
    for (int64_t j = 0; j < n; ++j) scores[j] += mask[j * args.mask_col];
  }
}

// One softmax step on a row of n visible scores: they become exp(score - max), zeroed past n up to `padded` columns;
// max and sum are the row's running values. Returns the factor for what was accumulated before.
template <class A>
VESTA_INLINE A softmax_step(A* scores, int64_t n, int64_t padded, A* row_max, A* row_sum, bool first) {
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  V m0 = V::set1(-kInfinity<A>), m1 = m0;
  int64_t j = 0;
  for (; j + 2 * L <= n; j += 2 * L) {
    m0 = max(m0, load(scores + j));
    m1 = max(m1, load(scores + j + L));
  }
  for (; j + L <= n; j += L) m0 = max(m0, load(scores + j));
  if (j < n) m1 = max(m1, load_n(scores + j, static_cast<int>(n - j), -kInfinity<A>));
  A m = max_lanes(max(m0, m1));
  A correction = 0;
  if (!first) {
    m = m > *row_max ? m : *row_max;
    correction = *row_max == m ? A(1) : std::exp(*row_max - m);
  }
  const V shift = V::set1(m == -kInfinity<A> ? A(0) : m);
  V s0 = V::zero(), s1 = V::zero();
  for (j = 0; j + 2 * L <= n; j += 2 * L) {
    const V a = exp(load(scores + j) - shift), b = exp(load(scores + j + L) - shift);
    store(scores + j, a);
    store(scores + j + L, b);
    s0 = s0 + a;
    s1 = s1 + b;
  }
  for (; j < n; j += L) {
    const V a = keep_lanes(exp(load(scores + j) - shift), n - j);
    store(scores + j, a);
    s1 = s1 + a;
  }
  for (; j < padded; j += L) store(scores + j, V::zero());
  const A sum = sum_lanes(s0 + s1);
  *row_sum = first ? sum : *row_sum * correction + sum;
  *row_max = m;
  return correction;
}

// Keys of a block starting at `key` that query `row` may see, of `keys` in the block.
VESTA_INLINE int64_t visible(bool causal, int64_t row, int64_t key, int64_t keys) {
  if (!causal) return keys;
  const int64_t n = row + 1 - key;
  return n < 0 ? 0 : n < keys ? n : keys;
}

// Units a chunk: neighbouring heads share pages and the prefetchers' streams in packed layouts, so a thread takes a few
// in a row. The cut changes no result, hence may look at the number of threads.
int64_t units_each(int64_t units, int64_t cost) {
  const int64_t few = grain_for(cost, 65536), share = units / (6 * int64_t{num_threads()});
  return few > share ? few : share;
}

template <class S>
void forward_unit(const AttentionArgs& args, int64_t batch, int64_t head, int64_t row0, int64_t rows, S* out,
                  Acc<S>* lse) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  constexpr int64_t kWidth = kTileVecs * L;
  const int64_t dim = args.dim, query_ld = round_up(dim, L), value_ld = round_up(args.value_dim, kWidth);
  const int64_t last =
      args.causal && row0 + rows < args.k_len ? row0 + rows : args.k_len;  // keys any row can see
  const int64_t block_keys = last < kKeys ? last : kKeys, score_ld = round_up(block_keys, kWidth);
  A *keys_t, *values, *queries, *sums, *scores, *row_max, *row_sum;
  Carver carver{nullptr};
  for (int pass = 0; pass < 2; ++pass) {
    keys_t = carver.take<A>(score_ld * dim);
    values = carver.take<A>(score_ld * value_ld);
    queries = carver.take<A>(rows * query_ld);
    sums = carver.take<A>(rows * value_ld);
    scores = carver.take<A>(kRows * score_ld);
    row_max = carver.take<A>(rows);
    row_sum = carver.take<A>(rows);
    if (pass == 0) carver = {static_cast<char*>(thread_scratch(carver.used))};
  }
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const S* q = static_cast<const S*>(args.q) + batch * args.q_strides.batch + head * args.q_strides.head +
               row0 * args.q_strides.row;
  const S* k = static_cast<const S*>(args.k) + batch * args.k_strides.batch + kv_head * args.k_strides.head;
  const S* v = static_cast<const S*>(args.v) + batch * args.v_strides.batch + kv_head * args.v_strides.head;
  pack_rows(q, args.q_strides.row, rows, dim, A(args.scale), queries, query_ld);

  for (int64_t key = 0; key < last; key += kKeys) {
    const int64_t keys = last - key < kKeys ? last - key : kKeys;
    const Factor<A> right =
        pack_transposed(k + key * args.k_strides.row, args.k_strides.row, keys, dim, keys_t);
    pack_rows(v + key * args.v_strides.row, args.v_strides.row, keys, args.value_dim, A(1), values, value_ld);
    const bool first = key == 0;
    for (int64_t r = 0; r < rows; r += kRows) {
      const int64_t m = rows - r < kRows ? rows - r : kRows;
      if (visible(args.causal, row0 + r + m - 1, key, keys) == 0) continue;
      auto seen = [&](int64_t end) { return visible(args.causal, row0 + r + end - 1, key, keys); };
      block_product<false>(m, (keys + L - 1) / L, queries + r * query_ld, query_ld, right, scores, score_ld,
                           false, [&](int64_t, int64_t end) {
                             return Range{0, dim, (seen(end) + L - 1) / L};
                           });
      for (int64_t i = 0; i < m; ++i) {
        const int64_t n = seen(i + 1);
        A* row = scores + i * score_ld;
        if (args.mask_kind != MaskKind::None) apply_mask(args, batch, head, row0 + r + i, key, row, n);
        const int64_t padded = n + kMaxTileRows < keys ? n + kMaxTileRows : keys;
        const A correction = softmax_step(row, n, padded, row_max + r + i, row_sum + r + i, first);
        if (!first && correction != 1) {
          A* sum = sums + (r + i) * value_ld;
          for (int64_t d = 0; d < value_ld; d += L) store(sum + d, load(sum + d) * V::set1(correction));
        }
      }
      block_product<false>(m, (args.value_dim + L - 1) / L, scores, score_ld,
                           Factor<A>{values, value_ld, kWidth}, sums + r * value_ld, value_ld, !first,
                           [&](int64_t, int64_t end) {
                             return Range{0, seen(end), value_ld};
                           });
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    S* to = out + batch * args.out_strides.batch + head * args.out_strides.head +
            (row0 + i) * args.out_strides.row;
    const bool empty = last == 0 || row_sum[i] == 0;
    const V inverse = V::set1(empty ? A(0) : A(1) / row_sum[i]);
    for (int64_t d = 0; d < args.value_dim; d += L) {
      const int64_t n = args.value_dim - d;
      const V a = empty ? V::zero() : load(sums + i * value_ld + d) * inverse;
      n >= L ? store(to + d, a) : store_n(to + d, a, static_cast<int>(n));
    }
    if (lse)
      lse[(batch * args.heads + head) * args.q_len + row0 + i] =
          empty ? -kInfinity<A> : row_max[i] + std::log(row_sum[i]);
  }
}

template <class S>
void forward_typed(const AttentionArgs& args, S* out, Acc<S>* lse) {
  const int64_t heads = args.batch * args.heads;
  if (heads == 0 || args.q_len == 0) return;
  int64_t unit_rows = args.q_len < kUnitRows ? args.q_len : kUnitRows;
  if (heads * ((args.q_len + kUnitRows - 1) / kUnitRows) < kUnits) {
    const int64_t wanted = round_up((heads * args.q_len + kUnits - 1) / kUnits, kRows);
    unit_rows = wanted < unit_rows ? wanted : unit_rows;
  }
  const int64_t parts = (args.q_len + unit_rows - 1) / unit_rows;
  const int64_t cost = unit_rows * args.k_len * (args.dim + args.value_dim);  // fused multiply-adds
  parallel_for(0, heads * parts, units_each(heads * parts, cost), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t row = u % parts * unit_rows, rest = args.q_len - row, h = u / parts;
      forward_unit(args, h / args.heads, h % args.heads, row, rest < unit_rows ? rest : unit_rows, out, lse);
    }
  });
}

// One row of the backward pass: scores become P, dp becomes dS, both zeroed past n up to `padded` columns.
template <class A>
VESTA_INLINE void probabilities_step(A* scores, A* dp, int64_t n, int64_t padded, A lse, A delta) {
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  int64_t j = 0;
  if (lse != -kInfinity<A>) {  // else: nothing was visible, all zeros
    const V shift = V::set1(lse), d = V::set1(delta);
    for (; j + L <= n; j += L) {
      const V p = exp(load(scores + j) - shift);
      store(scores + j, p);
      store(dp + j, p * (load(dp + j) - d));
    }
    if (j < n) {
      const V p = keep_lanes(exp(load(scores + j) - shift), n - j);
      store(scores + j, p);
      store(dp + j, keep_lanes(p * (load(dp + j) - d), n - j));
      j += L;
    }
  }
  for (; j < padded; j += L) {
    store(scores + j, V::zero());
    store(dp + j, V::zero());
  }
}

// One kv head, keys [key_begin, key_end) with key_begin a multiple of kKeys. dq_sums: [group, q_len, dq_ld], zeroed by
// the first key block here; the caller scales and stores it.
template <class S>
struct BackwardUnit {
  using A = Acc<S>;
  using V = Vec<A>;
  static constexpr int L = V::kLanes;
  static constexpr int64_t kWidth = kTileVecs * L;
  const AttentionArgs& args;
  const AttentionGrads& grads;
  const int64_t group = args.heads / args.kv_heads;
  const int64_t ld = round_up(args.dim, kWidth), value_ld = round_up(args.value_dim, kWidth);

  void store_rows(const A* from, int64_t from_ld, int64_t rows, int64_t n, A scale, S* to,
                  int64_t stride) const {
    const V factor = V::set1(scale);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t d = 0; d < n; d += L) {
        const V a = load(from + i * from_ld + d) * factor;
        n - d >= L ? store(to + i * stride + d, a) : store_n(to + i * stride + d, a, static_cast<int>(n - d));
      }
  }

  void run(int64_t batch, int64_t kv_head, int64_t key_begin, int64_t key_end, A* dq_shared) const {
    const int64_t widest = key_end - key_begin < kKeys ? key_end - key_begin : kKeys,
                  score_ld = round_up(widest, kWidth);
    A *keys, *keys_t, *values_t, *dk, *dv, *queries, *dout, *scores, *dp, *dq_sums;
    Carver carver{nullptr};
    for (int pass = 0; pass < 2; ++pass) {
      keys = carver.take<A>(score_ld * ld);
      keys_t = carver.take<A>(score_ld * args.dim);
      values_t = carver.take<A>(score_ld * args.value_dim);
      dk = carver.take<A>(score_ld * ld);
      dv = carver.take<A>(score_ld * value_ld);
      queries = carver.take<A>(kRows * ld);
      dout = carver.take<A>(kRows * value_ld);
      scores = carver.take<A>(kRows * score_ld);
      dp = carver.take<A>(kRows * score_ld);
      dq_sums = dq_shared ? dq_shared : carver.take<A>(group * args.q_len * ld);
      if (pass == 0) carver = {static_cast<char*>(thread_scratch(carver.used))};
    }
    if (key_begin == key_end) std::memset(dq_sums, 0, size_t(group * args.q_len * ld) * sizeof(A));
    const S* k = static_cast<const S*>(args.k) + batch * args.k_strides.batch + kv_head * args.k_strides.head;
    const S* v = static_cast<const S*>(args.v) + batch * args.v_strides.batch + kv_head * args.v_strides.head;
    for (int64_t key = key_begin; key < key_end; key += kKeys) {
      const int64_t n = key_end - key < kKeys ? key_end - key : kKeys;
      const bool first_block = key == key_begin;
      pack_rows(k + key * args.k_strides.row, args.k_strides.row, n, args.dim, A(1), keys, ld);
      const Factor<A> key_factor =
          pack_transposed(k + key * args.k_strides.row, args.k_strides.row, n, args.dim, keys_t);
      const Factor<A> value_factor =
          pack_transposed(v + key * args.v_strides.row, args.v_strides.row, n, args.value_dim, values_t);
      bool first = true;  // dk and dv hold nothing yet
      for (int64_t g = 0; g < group; ++g) {
        const int64_t head = kv_head * group + g;
        for (int64_t row = 0; row < args.q_len; row += kRows) {
          const int64_t m = args.q_len - row < kRows ? args.q_len - row : kRows;
          A* dq = dq_sums + (g * args.q_len + row) * ld;
          if (visible(args.causal, row + m - 1, key, n) == 0) {
            if (first_block) std::memset(dq, 0, size_t(m * ld) * sizeof(A));
            continue;
          }
          query_block(batch, head, row, m, key, n, score_ld, queries, dout, scores, dp, key_factor,
                      value_factor);
          auto seen = [&](int64_t end) { return visible(args.causal, row + end - 1, key, n); };
          // The first query of the block that sees key j.
          auto since = [&](int64_t j) { return args.causal && key + j > row ? key + j - row : 0; };
          auto from_key = [&](int64_t j, int64_t) {
            const int64_t begin = since(j);
            return Range{begin < m ? begin : m, m, INT64_MAX};
          };
          block_product<true>(n, (args.value_dim + L - 1) / L, scores, score_ld,
                              Factor<A>{dout, value_ld, kWidth}, dv, value_ld, !first, from_key);
          block_product<true>(n, (args.dim + L - 1) / L, dp, score_ld, Factor<A>{queries, ld, kWidth}, dk, ld,
                              !first, from_key);
          block_product<false>(m, (args.dim + L - 1) / L, dp, score_ld, Factor<A>{keys, ld, kWidth}, dq, ld,
                               !first_block, [&](int64_t, int64_t end) {
                                 return Range{0, seen(end), INT64_MAX};
                               });
          first = false;
        }
      }
      if (first) {  // no query sees this block
        std::memset(dk, 0, size_t(n * ld) * sizeof(A));
        std::memset(dv, 0, size_t(n * value_ld) * sizeof(A));
      }
      const HeadStrides &ks = grads.dk_strides, &vs = grads.dv_strides;
      store_rows(dk, ld, n, args.dim, A(1),
                 static_cast<S*>(grads.dk) + batch * ks.batch + kv_head * ks.head + key * ks.row, ks.row);
      store_rows(dv, value_ld, n, args.value_dim, A(1),
                 static_cast<S*>(grads.dv) + batch * vs.batch + kv_head * vs.head + key * vs.row, vs.row);
    }
    if (dq_shared) return;
    for (int64_t g = 0; g < group; ++g) {
      const HeadStrides& qs = grads.dq_strides;
      store_rows(dq_sums + g * args.q_len * ld, ld, args.q_len, args.dim, A(args.scale),
                 static_cast<S*>(grads.dq) + batch * qs.batch + (kv_head * group + g) * qs.head, qs.row);
    }
  }

  // Fills queries (scaled), dout, scores (P) and dp (dS) for m queries from `row` against n keys from `key`.
  void query_block(int64_t batch, int64_t head, int64_t row, int64_t m, int64_t key, int64_t n,
                   int64_t score_ld, A* queries, A* dout, A* scores, A* dp, Factor<A> key_factor,
                   Factor<A> value_factor) const {
    const HeadStrides &qs = args.q_strides, &os = args.out_strides, &gs = grads.grad_out_strides;
    const S* q = static_cast<const S*>(args.q) + batch * qs.batch + head * qs.head + row * qs.row;
    const S* out = static_cast<const S*>(grads.out) + batch * os.batch + head * os.head + row * os.row;
    const S* g = static_cast<const S*>(grads.grad_out) + batch * gs.batch + head * gs.head + row * gs.row;
    const A* lse = static_cast<const A*>(grads.logsumexp) + (batch * args.heads + head) * args.q_len + row;
    pack_rows(q, qs.row, m, args.dim, A(args.scale), queries, ld);
    pack_rows(g, gs.row, m, args.value_dim, A(1), dout, value_ld);
    auto range = [&](int64_t depth) {
      return [&, depth](int64_t, int64_t end) {
        return Range{0, depth, (visible(args.causal, row + end - 1, key, n) + L - 1) / L};
      };
    };
    block_product<false>(m, (n + L - 1) / L, queries, ld, key_factor, scores, score_ld, false,
                         range(args.dim));
    block_product<false>(m, (n + L - 1) / L, dout, value_ld, value_factor, dp, score_ld, false,
                         range(args.value_dim));
    for (int64_t i = 0; i < m; ++i) {
      V sum = V::zero();
      for (int64_t d = 0; d < args.value_dim; d += L) {
        const int64_t rest = args.value_dim - d;
        const V o =
            rest >= L ? load(out + i * os.row + d) : load_n(out + i * os.row + d, static_cast<int>(rest));
        sum = fma(load(dout + i * value_ld + d), o, sum);
      }
      const int64_t seen = visible(args.causal, row + i, key, n);
      if (args.mask_kind != MaskKind::None)
        apply_mask(args, batch, head, row + i, key, scores + i * score_ld, seen);
      const int64_t padded = seen + kMaxTileRows < n ? seen + kMaxTileRows : n;
      probabilities_step(scores + i * score_ld, dp + i * score_ld, seen, padded, lse[i], sum_lanes(sum));
    }
  }
};

template <class S>
void backward_typed(const AttentionArgs& args, const AttentionGrads& grads) {
  using A = Acc<S>;
  using V = Vec<A>;
  const BackwardUnit<S> unit{args, grads};
  const int64_t heads = args.batch * args.kv_heads;
  if (heads == 0) return;
  const int64_t blocks = (args.k_len + kKeys - 1) / kKeys;
  int64_t splits = heads >= kUnits ? 1 : (kUnits + heads - 1) / heads;
  splits = splits < blocks ? splits : blocks;
  if (splits <= 1) {
    const int64_t cost = unit.group * args.q_len * args.k_len * (3 * args.dim + 2 * args.value_dim);
    parallel_for(0, heads, units_each(heads, cost), [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u)
        unit.run(u / args.kv_heads, u % args.kv_heads, 0, args.k_len, nullptr);
    });
    return;
  }
  // Few heads: parts of the keys are units, each with its own dQ, added in order afterwards.
  const int64_t per_split = (blocks + splits - 1) / splits * kKeys;
  splits = (args.k_len + per_split - 1) / per_split;
  const int64_t dq_size = unit.group * args.q_len * unit.ld;
  const SharedScratch scratch(size_t(heads * splits * dq_size) * sizeof(A));
  A* dq = static_cast<A*>(scratch.data());
  parallel_for(0, heads * splits, 1, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t h = u / splits, first = u % splits * per_split;
      const int64_t last = first + per_split < args.k_len ? first + per_split : args.k_len;
      unit.run(h / args.kv_heads, h % args.kv_heads, first, last, dq + u * dq_size);
    }
  });
  parallel_for(0, heads * unit.group * args.q_len, grain_for(unit.ld * splits, 16384),
               [&](int64_t begin, int64_t end) {
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t h = u / (unit.group * args.q_len), row = u % (unit.group * args.q_len);
                   A* sum = dq + h * splits * dq_size + row * unit.ld;
                   for (int64_t s = 1; s < splits; ++s)
                     for (int64_t d = 0; d < unit.ld; d += V::kLanes)
                       store(sum + d, load(sum + d) + load(sum + s * dq_size + d));
                   const HeadStrides& qs = grads.dq_strides;
                   const int64_t head = h % args.kv_heads * unit.group + row / args.q_len;
                   unit.store_rows(sum, unit.ld, 1, args.dim, A(args.scale),
                                   static_cast<S*>(grads.dq) + h / args.kv_heads * qs.batch + head * qs.head +
                                       row % args.q_len * qs.row,
                                   0);
                 }
               });
}

void forward(const AttentionArgs& args, void* out, void* lse) {
  with_float_type(args.type,
                  [&]<class S>(S) { forward_typed(args, static_cast<S*>(out), static_cast<Acc<S>*>(lse)); });
}

void backward(const AttentionArgs& args, const AttentionGrads& grads) {
  with_float_type(args.type, [&]<class S>(S) { backward_typed<S>(args, grads); });
}

}  // namespace

extern const AttentionTable kAttentionTable;
const AttentionTable kAttentionTable = {forward, backward};

}  // namespace vesta::cpu::VESTA_ISA
