// Attention: argument checks and the choice of the CPU level.
#include "kernels/cpu/attention.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(AttentionTable, kAttentionTable, attention_table)

namespace {

constexpr int64_t kMaxDim = 512;  // bounds the per-thread scratch

AttentionArgs checked(const char* op, const AttentionArgs& given) {
  AttentionArgs args = given;
  if (args.kv_heads == 0) args.kv_heads = args.heads;
  if (args.value_dim == 0) args.value_dim = args.dim;
  VESTA_CHECK_AS(TypeError, is_float(args.type), op, ": expected floating point tensors");
  VESTA_CHECK(args.batch >= 0 && args.heads >= 0 && args.q_len >= 0 && args.k_len >= 0, op,
              ": negative size");
  VESTA_CHECK(args.dim > 0 && args.dim <= kMaxDim && args.value_dim > 0 && args.value_dim <= kMaxDim, op,
              ": head dims must be 1 to ", kMaxDim, ", got ", args.dim, " and ", args.value_dim);
  VESTA_CHECK(args.heads == 0 || (args.kv_heads > 0 && args.heads % args.kv_heads == 0), op, ": ", args.heads,
              " query heads are not a multiple of ", args.kv_heads, " key heads");
  return args;
}

}  // namespace

void attention_forward(const AttentionArgs& args, void* out, void* logsumexp) {
  attention_table().forward(checked("scaled_dot_product_attention", args), out, logsumexp);
}

void attention_backward(const AttentionArgs& args, const AttentionGrads& grads) {
  attention_table().backward(checked("scaled_dot_product_attention_backward", args), grads);
}

}  // namespace vesta::cpu
