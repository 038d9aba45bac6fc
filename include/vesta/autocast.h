#pragma once
// Mixed precision: while an AutocastMode lives, matrix products, convolutions and attention of this thread run in a
// 16-bit type, and ops that need range or accuracy (losses, norms, exp, sums of many terms) in float32. Which ops belong
// where is in each op's block (`.autocast`). Parameters stay float32; backward runs each op in the type of its forward.
//
//   { AutocastMode autocast(DType::BFloat16); loss = net->forward(x); }
//   loss.backward();
#include "vesta/dtype.h"

namespace vesta {

class AutocastMode {
 public:
  // dtype: BFloat16 or Half. enabled = false turns an outer scope off inside. cache: the cast of a leaf that requires
  // grad is kept until the outermost scope ends (or the leaf is written), so that shared weights are cast once.
  explicit AutocastMode(DType dtype = DType::BFloat16, bool enabled = true, bool cache = true);
  ~AutocastMode();
  AutocastMode(const AutocastMode&) = delete;

 private:
  uint32_t previous_mode_;
  DType previous_dtype_;
  bool previous_cache_;
};

namespace autocast {
bool is_enabled();
DType get_dtype();
void clear_cache();
}  // namespace autocast

}  // namespace vesta
