#pragma once
// libtorch's entry over Vesta: programs written for libtorch include this and use namespaces torch, at and c10.
// docs/coming-from-libtorch.md tells what is there and what differs. The names are Vesta's own; what is written here
// is only what libtorch spells otherwise.
#include "torch/compat/data.h"
#include "torch/compat/enums.h"
#include "torch/compat/flatten.h"
#include "torch/compat/functional.h"
#include "torch/compat/grad_mode.h"
#include "torch/compat/macros.h"
#include "torch/compat/namespaces.h"
#include "torch/compat/pointer_casts.h"
#include "torch/compat/random.h"
#include "torch/compat/save_load.h"
#include "torch/compat/shared_modules.h"
#include "torch/compat/static.h"
#include "torch/compat/tensor_factory.h"
#include "torch/compat/types.h"
#include "torch/compat/warnings.h"
