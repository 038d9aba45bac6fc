#pragma once
// The namespaces torch, at and c10, which show Vesta's names.
#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

// Before any header of Vesta's, in every file of a program: class Tensor then has libtorch's members too.
#define VESTA_TENSOR_MEMBERS "torch/compat/tensor_members.h"
#include "vesta/autocast.h"
#include "vesta/autograd.h"
#include "vesta/data.h"
#include "vesta/grad_node.h"
#include "vesta/indexing.h"
#include "vesta/mt19937.h"
#include "vesta/nn.h"
#include "vesta/ops.h"
#include "vesta/optim.h"
#include "vesta/serialize.h"
#include "vesta/threads.h"
#include "vesta/warning.h"

namespace vesta::detail {
template <class T>
inline constexpr bool has_libtorch_members = requires(const T& t) {
  t.is_ipu();
};
static_assert(has_libtorch_members<Tensor>,
              "torch/torch.h must be included before any header of Vesta's own");
}  // namespace vesta::detail

// What libtorch has in a nested namespace and Vesta beside it, or only libtorch has.
namespace vesta::autograd {
using Variable = Tensor;
using tensor_list = variable_list;
using vesta::AutoGradMode;
using vesta::GradMode;
}  // namespace vesta::autograd
namespace vesta::indexing {
using vesta::TensorIndex;
}

// The outer namespaces are real ones, since programs open them. The inner ones are aliases: a program that says
// `using namespace torch` sees both, and both must be the same.
namespace torch {
using namespace vesta;
namespace autograd = vesta::autograd;
namespace data = vesta::data;
namespace detail = vesta::detail;
namespace fft = vesta::fft;
namespace indexing = vesta::indexing;
namespace linalg = vesta::linalg;
namespace nn = vesta::nn;
namespace optim = vesta::optim;
namespace serialize = vesta::serialize;
namespace special = vesta::special;
}  // namespace torch

namespace at {
using namespace vesta;
namespace indexing = vesta::indexing;
}  // namespace at

namespace c10 {
using namespace vesta;
}
