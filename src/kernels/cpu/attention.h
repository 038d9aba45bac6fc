#pragma once
// Scaled dot product attention, forward and backward, without the [Lq, Lk] matrix in memory: blocks of scores live in
// per-thread scratch, the forward pass saves one logsumexp per query row and the backward pass recomputes the
// probabilities from it. Types F32, F64, BF16, F16 (computed in float, double for F64). No dropout here.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

// Strides in elements of a [batch, heads, length, dim] array whose last dimension is contiguous.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;
};

enum class MaskKind : uint8_t {
  None,
  Bool,
  Additive
};  // Bool: true = may attend; Additive: of accumulate_type

struct AttentionArgs {
  Elem type = Elem::F32;
  int64_t batch = 0, heads = 0;
  int64_t kv_heads = 0;  // divides heads; query head h uses kv head h / (heads / kv_heads). 0 means heads.
  int64_t q_len = 0, k_len = 0;
  int64_t dim = 0;        // of q and k, 1 to 512
  int64_t value_dim = 0;  // of v and out, 1 to 512; 0 means dim
  double scale = 0;       // usually 1 / sqrt(dim)
  bool causal = false;    // query i sees keys 0..i (top-left aligned, also when q_len != k_len)
  MaskKind mask_kind = MaskKind::None;
  const void* mask = nullptr;
  int64_t mask_batch = 0, mask_head = 0, mask_row = 0, mask_col = 0;  // strides; 0 broadcasts

  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  HeadStrides q_strides, k_strides, v_strides, out_strides;
};

// out: [batch, heads, q_len, value_dim] with out_strides. logsumexp: [batch, heads, q_len] contiguous of
// accumulate_type, or null; natural log of the sum of exp(scaled, masked scores). A row that may attend to nothing
// gives zeros and -inf. Throws ValueError for dims out of range, TypeError for types that are not floating point.
void attention_forward(const AttentionArgs& args, void* out, void* logsumexp);

// dq, dk, dv take the strides given here (dk and dv have kv_heads heads, summed over the query heads of a group).
// All are overwritten. Order of sums depends on shape only. The mask gets no gradient.
struct AttentionGrads {
  const void* grad_out = nullptr;
  const void* out = nullptr;        // as written by forward, with args.out_strides
  const void* logsumexp = nullptr;  // as written by forward
  HeadStrides grad_out_strides;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  HeadStrides dq_strides, dk_strides, dv_strides;
};
void attention_backward(const AttentionArgs& args, const AttentionGrads& grads);

// The table trusts its arguments: kv_heads and value_dim are filled in.
struct AttentionTable {
  void (*forward)(const AttentionArgs&, void*, void*);
  void (*backward)(const AttentionArgs&, const AttentionGrads&);
};
const AttentionTable& attention_table(CpuIsa level);

}  // namespace vesta::cpu
