// Rows of varying number per batch item, between their two layouts: one after the other with offsets (jagged), and padded.
#include <algorithm>
#include <limits>

#include "base/checked_math.h"
#include "core/storage.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// Checked offsets [batch + 1] of `rows` rows.
std::vector<int64_t> offsets_of(const Args& a, int i, int64_t rows) {
  VESTA_CHECK_AS(NotImplementedError, a.tensors(i).size() == 1, a.name(), ": expected offsets of one jagged dim, got ", a.tensors(i).size());
  const Tensor& t = a.tensors(i)[0];
  VESTA_CHECK_AS(TypeError, t.dtype() == kLong || t.dtype() == kInt, a.name(), ": expected offsets of int32 or int64, got ", dtype_name(t.dtype()));
  VESTA_CHECK(t.dim() == 1 && t.numel() > 0, a.name(), ": expected offsets with 1 dim and at least one element");
  Tensor dense = t.to(kLong).contiguous();
  std::vector<int64_t> o(dense.data_ptr<int64_t>(), dense.data_ptr<int64_t>() + dense.numel());
  VESTA_CHECK(o.front() == 0 && o.back() <= rows, a.name(), ": expected offsets from 0 to at most ", rows, ", got ", o.front(), " to ", o.back());
  for (size_t b = 1; b < o.size(); ++b) VESTA_CHECK(o[b] >= o[b - 1], a.name(), ": expected offsets that do not decrease, got ", o[b], " after ", o[b - 1]);
  return o;
}
// For each row that fits into `length`: where it stands in both layouts.
struct Rows {
  Tensor jagged, padded;
};
Rows rows_of(const std::vector<int64_t>& offsets, int64_t length) {
  int64_t n = 0, at = 0;
  for (size_t b = 1; b < offsets.size(); ++b) n += std::min(length, offsets[b] - offsets[b - 1]);
  Rows r{empty_cpu({n}, kLong), empty_cpu({n}, kLong)};
  int64_t *j = r.jagged.data_ptr<int64_t>(), *p = r.padded.data_ptr<int64_t>();
  for (size_t b = 1; b < offsets.size(); ++b)
    for (int64_t k = 0; k < std::min(length, offsets[b] - offsets[b - 1]); ++k, ++at) j[at] = offsets[b - 1] + k, p[at] = int64_t(b - 1) * length + k;
  return r;
}

Results to_padded(const Args& a) {
  const Tensor& values = a.tensor(0);
  VESTA_CHECK(values.dim() >= 1, a.name(), ": expected values with at least 1 dim");
  VESTA_CHECK(a.ints(2).size() == 1 && a.ints(2)[0] >= 0, a.name(), ": expected one length >= 0");
  const std::vector<int64_t> offsets = offsets_of(a, 1, values.size(0));
  const int64_t batch = int64_t(offsets.size()) - 1, length = a.ints(2)[0];
  std::vector<int64_t> flat = values.sizes().vec(), sizes = flat;
  flat[0] = checked_mul(batch, length, a.name());
  sizes[0] = length;
  sizes.insert(sizes.begin(), batch);
  const Rows r = rows_of(offsets, length);
  return full(flat, a.number(3), values.options()).index_copy(0, r.padded, values.index_select(0, r.jagged)).view(sizes);
}
Results to_jagged(const Args& a) {
  const Tensor& dense = a.tensor(0);
  VESTA_CHECK(dense.dim() >= 2, a.name(), ": expected a padded tensor with at least 2 dims, got ", dense.dim());
  const std::vector<int64_t> offsets = offsets_of(a, 1, std::numeric_limits<int64_t>::max());
  VESTA_CHECK(int64_t(offsets.size()) == dense.size(0) + 1, a.name(), ": expected ", dense.size(0) + 1, " offsets, got ", offsets.size());
  const int64_t total = a.integer(2, offsets.back()), length = dense.size(1);
  VESTA_CHECK(total >= offsets.back(), a.name(), ": expected total_L of at least ", offsets.back(), ", got ", total);
  std::vector<int64_t> sizes(dense.sizes().begin() + 1, dense.sizes().end()), flat = sizes;
  sizes[0] = total;
  flat[0] = checked_mul(dense.size(0), length, a.name());
  const Rows r = rows_of(offsets, length);
  return zeros(sizes, dense.options()).index_copy(0, r.jagged, dense.reshape(flat).index_select(0, r.padded));
}
std::vector<Tensor> sample_offsets() { return {arange(0, 9, 4)}; }

constexpr OpDef table[] = {
OP("_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, int[] max_lengths, float padding_value=0.0) -> Tensor",
  .types = any_types, .decompose = to_padded, .shard = {"none"}, .doc = "Rows by batch item, cut or padded to one length.",
  .samples = [](SampleGen& s) { s(s.t({8, 2}), sample_offsets(), std::vector<int64_t>{5}, 1.0); s(s.t({8}), sample_offsets(), std::vector<int64_t>{3}); }),
OP("_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, int? total_L=None) -> Tensor",
  .types = any_types, .decompose = to_jagged, .shard = {"none"}, .doc = "The rows of each batch item one after the other; rows past the padded length are zeros.",
  .samples = [](SampleGen& s) { s(s.t({2, 5, 2}), sample_offsets()); s(s.t({2, 3}), sample_offsets(), 9); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(jagged, table)
