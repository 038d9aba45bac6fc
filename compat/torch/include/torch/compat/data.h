#pragma once
// Data loading names that libtorch spells otherwise.
#include "torch/compat/namespaces.h"

namespace torch::data {
using datasets::Dataset;
}
