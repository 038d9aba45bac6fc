#pragma once
// libtorch's one type per option word (torch::enumtype). Here the words are values of Vesta's enums.
#include "torch/compat/namespaces.h"

namespace torch::enumtype {
using vesta::kMean;
using vesta::kNone;
using vesta::kSum;
}  // namespace torch::enumtype
