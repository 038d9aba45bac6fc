#pragma once
// Files of tensors and values, all of them; docs/files.md is the guide.
#include "vesta/archive.h"      // save, load, archives
#include "vesta/npy.h"          // NumPy's .npy and .npz
#include "vesta/safetensors.h"  // safetensors
#include "vesta/torch_file.h"   // PyTorch's checkpoints
