#pragma once
// As in libtorch; everything is in torch/torch.h.
#include "torch/torch.h"
