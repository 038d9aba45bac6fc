#pragma once
// Connectionist temporal classification (Graves et al., 2006): the forward variables and the gradient, in log space.
// F32 and F64; one sample is one unit of threading.
#include <cstdint>

#include "kernels/cpu/elem.h"

namespace vesta::cpu {

// log_probs (time, batch, classes) contiguous. Sample n has input_length[n] <= time frames and the labels
// targets[target_offset[n]] .. of target_length[n], each in [0, classes). States are the labels with blanks between and
// around them; `states` = 2 * longest target + 1 is the row length of log_alpha (batch, time, states).
struct CtcShape {
  int64_t time = 0, batch = 0, classes = 0, blank = 0, states = 1;
  const int64_t *targets = nullptr, *target_offset = nullptr, *input_length = nullptr,
                *target_length = nullptr;
};

// loss (batch): the negative log likelihood, +infinity where no alignment exists.
void ctc_forward(Elem type, const void* log_probs, const CtcShape& s, void* loss, void* log_alpha);
// Gradient in log_probs for cotangents dy (batch), as if log_probs came from a log-softmax:
// softmax minus the label posteriors. Frames beyond input_length get 0; so do, with zero_infinity, samples of infinite
// loss, which get NaN otherwise.
void ctc_backward(Elem type, const void* dy, const void* log_probs, const CtcShape& s, const void* loss,
                  const void* log_alpha, bool zero_infinity, void* gradient);

}  // namespace vesta::cpu
