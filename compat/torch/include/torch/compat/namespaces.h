#pragma once
// The namespaces. Each of libtorch's is a real one (programs open them) that shows the names of Vesta's.
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

#include "vesta/autocast.h"
#include "vesta/autograd.h"
#include "vesta/data.h"
#include "vesta/indexing.h"
#include "vesta/nn.h"
#include "vesta/ops.h"
#include "vesta/optim.h"
#include "vesta/serialize.h"
#include "vesta/threads.h"
#include "vesta/warning.h"

namespace torch {
using namespace vesta;

namespace autograd {
using namespace vesta::autograd;
namespace forward_ad {
using namespace vesta::autograd::forward_ad;
}
}  // namespace autograd
namespace data {
using namespace vesta::data;
namespace datasets {
using namespace vesta::data::datasets;
}
namespace samplers {
using namespace vesta::data::samplers;
}
namespace transforms {
using namespace vesta::data::transforms;
}
}  // namespace data
namespace indexing {
using namespace vesta::indexing;
using vesta::TensorIndex;
}  // namespace indexing
namespace nn {
using namespace vesta::nn;
namespace functional {
using namespace vesta::nn::functional;
}
namespace init {
using namespace vesta::nn::init;
}
namespace utils {
using namespace vesta::nn::utils;
namespace rnn {
using namespace vesta::nn::utils::rnn;
}
}  // namespace utils
}  // namespace nn
namespace optim {
using namespace vesta::optim;
}
namespace serialize {
using namespace vesta::serialize;
}
}  // namespace torch

namespace at {
using namespace vesta;
namespace indexing {
using namespace torch::indexing;
}
}  // namespace at

namespace c10 {
using namespace vesta;
}
