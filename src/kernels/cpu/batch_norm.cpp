// Passes over channels: one task a channel (channels first), or rows in chunks whose sums are added in order (last).
#include "kernels/cpu/batch_norm.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(BatchNormTable, kBatchNormTable, batch_norm_table)

namespace {

constexpr int64_t kWork = 32768;  // elements per parallel chunk
constexpr int64_t kRows = 256;    // rows whose sums run in the accumulation type
constexpr int64_t kMostChunks = 32;

int64_t cut(int64_t total, int64_t parts, int64_t index) { return total * index / parts; }

// The channels of a channels-first array: body(channel, element) for each run of `inner` elements.
template <class F>
void for_runs(const ChannelShape& s, F body) {
  parallel_for(0, s.channels, std::max<int64_t>(1, kWork / std::max<int64_t>(1, s.count())),
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c)
                   for (int64_t n = 0; n < s.batch; ++n) body(c, (n * s.channels + c) * s.inner);
               });
}
// Rows of a channels-last array in chunks, at most kRows at a time: body(chunk, first row, rows).
int64_t chunks_of(const ChannelShape& s) {
  return std::clamp<int64_t>(s.count() * s.channels / kWork, 1, kMostChunks);
}
template <class F>
void for_rows(const ChannelShape& s, F body) {
  const int64_t chunks = chunks_of(s), rows = s.count();
  parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk)
      for (int64_t r = cut(rows, chunks, chunk), to = cut(rows, chunks, chunk + 1); r < to; r += kRows)
        body(chunk, r, std::min(kRows, to - r));
  });
}
// Adds the chunks' sums of each channel up, in order.
void add_chunks(const std::vector<double>& partial, int64_t chunks, int64_t channels, double* sum) {
  std::fill(sum, sum + channels, 0.0);
  for (int64_t i = 0; i < chunks; ++i)
    for (int64_t c = 0; c < channels; ++c) sum[c] += partial[static_cast<size_t>(i * channels + c)];
}

// The value that the loops subtract: the mean as they see it.
double rounded(Elem type, double v) {
  return type == Elem::F64 ? v : static_cast<double>(static_cast<float>(v));
}

char* at(Elem type, void* p, int64_t i) {
  return static_cast<char*>(p) + i * static_cast<int64_t>(elem_size(type));
}
const char* at(Elem type, const void* p, int64_t i) {
  return static_cast<const char*>(p) + i * static_cast<int64_t>(elem_size(type));
}

}  // namespace

void channel_sum(Elem type, const ChannelShape& s, const void* x, double* sum) {
  const BatchNormTable& t = batch_norm_table();
  std::fill(sum, sum + s.channels, 0.0);
  if (!s.last)
    return for_runs(s, [&](int64_t c, int64_t i) { sum[c] += t.sum(type, at(type, x, i), s.inner); });
  const int64_t chunks = chunks_of(s);
  std::vector<double> partial(static_cast<size_t>(chunks * s.channels));
  for_rows(s, [&](int64_t chunk, int64_t r, int64_t rows) {
    t.row_sum(type, at(type, x, r * s.channels), rows, s.channels, partial.data() + chunk * s.channels);
  });
  add_chunks(partial, chunks, s.channels, sum);
}

void channel_moments(Elem type, const ChannelShape& s, const void* x, double* mean, double* variance) {
  const BatchNormTable& t = batch_norm_table();
  const double count = static_cast<double>(s.count());
  if (s.count() == 0) {
    std::fill(mean, mean + s.channels, std::numeric_limits<double>::quiet_NaN());
    std::fill(variance, variance + s.channels, std::numeric_limits<double>::quiet_NaN());
    return;
  }
  std::fill(mean, mean + s.channels, 0.0);
  std::fill(variance, variance + s.channels, 0.0);
  std::vector<double> centre(static_cast<size_t>(s.channels));
  const auto finish_mean = [&](int64_t c) {
    mean[c] /= count;
    centre[static_cast<size_t>(c)] = rounded(type, mean[c]);
  };
  // The squares were taken about the rounded mean, which is a little off.
  const auto finish_variance = [&](int64_t c) {
    const double off = mean[c] - centre[static_cast<size_t>(c)];
    variance[c] = std::max(0.0, variance[c] / count - off * off) +
                  (variance[c] - variance[c]);  // NaN and infinity stay
  };
  if (!s.last) {
    parallel_for(0, s.channels, std::max<int64_t>(1, kWork / s.count()), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        for (int64_t n = 0; n < s.batch; ++n)
          mean[c] += t.sum(type, at(type, x, (n * s.channels + c) * s.inner), s.inner);
        finish_mean(c);
        for (int64_t n = 0; n < s.batch; ++n)
          variance[c] += t.squares(type, at(type, x, (n * s.channels + c) * s.inner), s.inner,
                                   centre[static_cast<size_t>(c)]);
        finish_variance(c);
      }
    });
    return;
  }
  const int64_t chunks = chunks_of(s);
  std::vector<double> partial(static_cast<size_t>(chunks * s.channels));
  channel_sum(type, s, x, mean);
  for (int64_t c = 0; c < s.channels; ++c) finish_mean(c);
  for_rows(s, [&](int64_t chunk, int64_t r, int64_t rows) {
    t.row_squares(type, at(type, x, r * s.channels), rows, s.channels, centre.data(),
                  partial.data() + chunk * s.channels);
  });
  add_chunks(partial, chunks, s.channels, variance);
  for (int64_t c = 0; c < s.channels; ++c) finish_variance(c);
}

void channel_apply(Elem type, const ChannelShape& s, const void* x, const double* mean, const double* scale,
                   const double* shift, void* y) {
  const BatchNormTable& t = batch_norm_table();
  if (s.last)
    return for_rows(s, [&](int64_t, int64_t r, int64_t rows) {
      t.row_apply(type, at(type, x, r * s.channels), rows, s.channels, mean, scale, shift,
                  at(type, y, r * s.channels));
    });
  for_runs(s, [&](int64_t c, int64_t i) {
    t.apply(type, at(type, x, i), s.inner, mean[c], scale[c], shift[c], at(type, y, i));
  });
}

void channel_products(Elem type, const ChannelShape& s, const void* dy, const void* x, const double* mean,
                      double* sum_dy, double* sum_product) {
  const BatchNormTable& t = batch_norm_table();
  if (!s.last) {
    std::fill(sum_dy, sum_dy + s.channels, 0.0);
    std::fill(sum_product, sum_product + s.channels, 0.0);
    return for_runs(s, [&](int64_t c, int64_t i) {
      double sums[2] = {0, 0};
      t.products(type, at(type, dy, i), at(type, x, i), s.inner, mean[c], sums);
      sum_dy[c] += sums[0];
      sum_product[c] += sums[1];
    });
  }
  const int64_t chunks = chunks_of(s);
  std::vector<double> first(static_cast<size_t>(chunks * s.channels)), second(first.size());
  for_rows(s, [&](int64_t chunk, int64_t r, int64_t rows) {
    t.row_products(type, at(type, dy, r * s.channels), at(type, x, r * s.channels), rows, s.channels, mean,
                   first.data() + chunk * s.channels, second.data() + chunk * s.channels);
  });
  add_chunks(first, chunks, s.channels, sum_dy);
  add_chunks(second, chunks, s.channels, sum_product);
}

void channel_gradient(Elem type, const ChannelShape& s, const void* dy, const void* x, const double* mean,
                      const double* a, const double* b, const double* c, void* dx) {
  const BatchNormTable& t = batch_norm_table();
  if (s.last)
    return for_rows(s, [&](int64_t, int64_t r, int64_t rows) {
      const int64_t i = r * s.channels;
      t.row_gradient(type, at(type, dy, i), at(type, x, i), rows, s.channels, mean, a, b, c, at(type, dx, i));
    });
  for_runs(s, [&](int64_t ch, int64_t i) {
    t.gradient(type, at(type, dy, i), at(type, x, i), s.inner, mean[ch], a[ch], b[ch], c[ch],
               at(type, dx, i));
  });
}

}  // namespace vesta::cpu
