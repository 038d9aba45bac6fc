#pragma once
// libtorch's one type per option word (torch::enumtype). Here the words are values of Vesta's enums.
#include "torch/compat/namespaces.h"

// The numbers that loss operators take: torch::nll_loss(x, y, {}, torch::Reduction::Sum).
namespace at::Reduction {
enum Reduction : int64_t { None, Mean, Sum };
}
namespace torch {
namespace Reduction = at::Reduction;
}

namespace torch::enumtype {
using vesta::kMean;
using vesta::kNone;
using vesta::kSum;
}  // namespace torch::enumtype
