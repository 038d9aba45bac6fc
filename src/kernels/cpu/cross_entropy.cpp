// Cross entropy: the scan of the targets, argument checks and the choice of the CPU level.
#include "kernels/cpu/cross_entropy.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(CrossEntropyTable, kCrossEntropyTable, cross_entropy_table)

namespace {

void check(const char* op, const CrossEntropyArgs& args) {
  VESTA_CHECK_AS(TypeError, is_float(args.type), op, ": expected floating point logits");
  VESTA_CHECK(args.rows >= 0 && args.classes > 0, op, ": expected logits [N, C] with C > 0, got ", args.rows,
              " x ", args.classes);
  VESTA_CHECK(args.label_smoothing >= 0 && args.label_smoothing <= 1, op,
              ": label_smoothing must be between 0.0 and 1.0, got ", args.label_smoothing);
}

}  // namespace

int64_t cross_entropy_check_targets(const CrossEntropyArgs& args) {
  for (int64_t i = 0; i < args.rows; ++i) {
    const int64_t t = args.target[i];
    if (t != args.ignore_index && (t < 0 || t >= args.classes)) return i;
  }
  return -1;
}

void cross_entropy_forward(const CrossEntropyArgs& args, void* loss, void* logsumexp, void* total_weight) {
  check("cross_entropy", args);
  cross_entropy_table().forward(args, loss, logsumexp, total_weight);
}

void cross_entropy_backward(const CrossEntropyArgs& args, const void* logsumexp, const void* total_weight,
                            const void* grad, void* dlogits, int64_t dlogits_stride) {
  check("cross_entropy_backward", args);
  cross_entropy_table().backward(args, logsumexp, total_weight, grad, dlogits, dlogits_stride);
}

}  // namespace vesta::cpu
