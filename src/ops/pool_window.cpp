// Pooling windows: arguments and output sizes.
#include "ops/pool_window.h"

#include "ops/spatial.h"

namespace vesta {

PoolArgs pool_args(const Args& a, int spatial, int k_at, int dilation_at, int ceil_at) {
  PoolArgs p;
  read_window(a, k_at, spatial, 1, 1, p.kernel);
  if (a.ints(k_at + 1).empty()) std::copy(p.kernel, p.kernel + 3, p.stride);
  else read_window(a, k_at + 1, spatial, 1, 1, p.stride);
  read_window(a, k_at + 2, spatial, 0, 0, p.padding);
  if (dilation_at >= 0) read_window(a, dilation_at, spatial, 1, 1, p.dilation);
  p.ceil_mode = a.flag(ceil_at);
  for (int d = 3 - spatial; d < 3; ++d)
    VESTA_CHECK(p.padding[d] <= p.kernel[d] / 2, a.name(), ": expected padding of at most half the kernel size, got ", p.padding[d], " for ", p.kernel[d]);
  return p;
}

void pooled_sizes(const InferCtx& c, int i, int spatial, const PoolArgs& p, SymInt* sizes) {
  auto in = c.sizes(i);
  for (int k = 0; k < spatial; ++k) {
    int d = 3 - spatial + k;
    SymInt size = in[in.size() - size_t(spatial) + size_t(k)];
    VESTA_CHECK(size.is_symbolic() || size.raw() < int64_t(1) << 61, c.name(), ": the input is too large");
    SymInt room = size + 2 * p.padding[d] - (p.dilation[d] * (p.kernel[d] - 1) + 1) + (p.ceil_mode ? p.stride[d] - 1 : 0);
    VESTA_CHECK(room >= 0, c.name(), ": expected an input that holds the window, got size ", size.str(), " with padding ", p.padding[d], " for a kernel of ",
                p.kernel[d], " with dilation ", p.dilation[d]);
    SymInt n = room / p.stride[d] + 1;
    if (p.ceil_mode && (n - 1) * p.stride[d] >= size + p.padding[d]) n = n - 1;
    VESTA_CHECK(n >= 1, c.name(), ": the output would be empty");
    sizes[k] = n;
  }
}

}  // namespace vesta
