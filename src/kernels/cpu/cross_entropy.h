#pragma once
// Cross entropy of logits [rows, classes] against class indices, fused: the forward pass reads the logits once and
// keeps only the logsumexp of each row; the backward pass writes dlogits from it. Logits F32, F64, BF16 or F16;
// losses, weights and sums are of accumulate_type (A below). Soft targets are composed elsewhere.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

enum class LossReduction : uint8_t { None, Mean, Sum };

struct CrossEntropyArgs {
  Elem type = Elem::F32;
  const void* logits = nullptr;
  int64_t rows = 0, classes = 0;
  int64_t row_stride = 0;  // elements between rows; classes are contiguous
  const int64_t* target = nullptr;
  int64_t ignore_index = -100;
  const void* weight = nullptr;  // A[classes] or null
  double label_smoothing = 0;    // in [0, 1]
  LossReduction reduction = LossReduction::Mean;
};

// The first row whose target is neither ignore_index nor in [0, classes), or -1. Call it before the two below, which
// trust the targets.
int64_t cross_entropy_check_targets(const CrossEntropyArgs& args);

// loss: A[rows] for None, else one A (Mean over no row is NaN). logsumexp: A[rows], written for each row.
// total_weight: one A, the divisor of Mean (sum of the targets' weights); may be null.
// Row losses are added in the order of reduce.h.
void cross_entropy_forward(const CrossEntropyArgs& args, void* loss, void* logsumexp, void* total_weight);

// dlogits = d loss / d logits * grad. grad: A[rows] for None, else one A. dlogits may be the logits themselves
// (dlogits_stride = row_stride then). total_weight as written by forward; read for Mean only. Ignored rows give 0.
void cross_entropy_backward(const CrossEntropyArgs& args, const void* logsumexp, const void* total_weight,
                            const void* grad, void* dlogits, int64_t dlogits_stride);

struct CrossEntropyTable {
  void (*forward)(const CrossEntropyArgs&, void*, void*, void*);
  void (*backward)(const CrossEntropyArgs&, const void*, const void*, const void*, void*, int64_t);
};
const CrossEntropyTable& cross_entropy_table(CpuIsa level);

}  // namespace vesta::cpu
