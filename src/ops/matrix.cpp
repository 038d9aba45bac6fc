// Shapes, layouts, batches and errors of the linalg families.
#include "ops/matrix.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "base/thread_pool.h"
#include "core/registry.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "vesta/ops.h"

namespace vesta::matrix {

DType real_of(DType t) { return t == kComplexFloat ? kFloat : t == kComplexDouble ? kDouble : t; }
DType complex_of(DType t) { return t == kFloat ? kComplexFloat : t == kDouble ? kComplexDouble : t; }

void check_field(const Args& a, int i) {
  DType t = a.tensor(i).dtype();
  VESTA_CHECK_AS(TypeError, lapack_types.accepts(t), a.name(), ": expected float32, float64, complex64 or complex128, got ", dtype_name(t));
}
void check_matrix(const Args& a, int i) {
  VESTA_CHECK(a.tensor(i).dim() >= 2, a.name(), ": expected at least 2 dims (a batch of matrices), got ", a.tensor(i).dim());
}
void check_square(const Args& a, int i) {
  check_matrix(a, i);
  ArrayRef<SymInt> s = InferCtx::sizes_of(a.tensor(i));
  SymInt m = s[s.size() - 2], n = s[s.size() - 1];
  VESTA_CHECK(m == n, a.name(), ": expected square matrices, got ", m.str(), " x ", n.str());
}
SymInt rows(const InferCtx& c, int i) { return c.sizes(i)[size_t(c.dim(i) - 2)]; }
SymInt columns(const InferCtx& c, int i) { return c.sizes(i)[size_t(c.dim(i) - 1)]; }
SymInt smaller(SymInt a, SymInt b) { return a < b ? a : b; }
Sizes batch_of(ArrayRef<SymInt> sizes, int matrix_dims) { return {sizes.begin(), sizes.end() - matrix_dims}; }
Sizes with(Sizes batch, std::initializer_list<SymInt> rest) {
  batch.insert(batch.end(), rest.begin(), rest.end());
  return batch;
}
void out_columns(InferCtx& c, int j, const Sizes& batch, SymInt rows, SymInt columns, DType t) {
  Sizes sizes = with(batch, {rows, columns}), strides(sizes.size());
  size_t n = sizes.size();
  auto span = [](SymInt s) { return s == 0 ? SymInt(1) : s; };
  auto times = [&](SymInt a, SymInt b) {
    return a.is_symbolic() || b.is_symbolic() ? a * b : SymInt(checked_mul(a.raw(), b.raw(), c.name()));
  };
  strides[n - 2] = 1;
  strides[n - 1] = span(rows);
  SymInt step = times(span(rows), span(columns));
  for (size_t d = n - 2; d-- > 0;) {
    strides[d] = step;
    step = times(step, span(sizes[d]));
  }
  c.out_strided(j, sizes, strides, t, c.tensor(0).device());
}
void out_rows(InferCtx& c, int j, const Sizes& batch, std::initializer_list<SymInt> rest, DType t) {
  c.out(j, with(batch, rest), t, c.tensor(0).device());
}

std::string public_name(const Args& a) {
  std::string n = a.op().schema.name;
  if (n.starts_with("_linalg")) n.erase(0, 1);
  if (n.ends_with("_ex")) n.resize(n.size() - 3);
  return n;
}
Tensor empty_columns(IntArrayRef sizes, DType t) {
  std::vector<int64_t> turned = sizes.vec();
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  return empty_cpu(turned, t).transpose(-2, -1);
}
Tensor columns_copy(const Tensor& t) {
  Tensor r = empty_columns(t.sizes(), t.dtype());
  cpu::copy_elements(r, t);
  return r;
}
void assign(const Tensor& dst, const Tensor& src) {
  if (dst.numel()) cpu::copy_elements(dst, src);
}
Tensor pivots_of(const Tensor& pivots) { return pivots.to(kInt).contiguous(); }

int64_t batch_count(IntArrayRef sizes, int matrix_dims) {
  int64_t n = 1;
  for (size_t d = 0; d + size_t(matrix_dims) < sizes.size(); ++d) n *= sizes[d];
  return n;
}
void for_batch(int64_t count, double flops, FunctionRef<void(int64_t, int64_t)> body) {
  // A chunk is worth handing out from about 100,000 operations on.
  int64_t grain = std::max<int64_t>(1, int64_t(1e5 / std::max(1.0, flops)));
  parallel_for(0, count, grain, body);
}

void check_infos(const std::string& op, const Tensor& infos, Reason reason) {
  auto* p = infos.const_data_ptr<int32_t>();
  for (int64_t b = 0; b < infos.numel(); ++b) {
    if (p[b] == 0) continue;
    std::string where = infos.dim() ? detail::message("batch element ", b, ": ") : "";
    throw LinalgError(op + ": " + where + reason(p[b]));
  }
}
std::string singular_reason(int info) {
  return detail::message("the matrix is singular (pivot ", info, " is zero)");
}
std::string not_positive_reason(int info) {
  return detail::message("the matrix is not positive definite (its leading minor of order ", info, ")");
}
std::string no_convergence_reason(int info) {
  return detail::message("the iteration did not converge (LAPACK's info is ", info, ")");
}

namespace {
template <class T>
bool finite(T v) {
  if constexpr (std::is_floating_point_v<T>) return std::isfinite(v);
  else return std::isfinite(v.real()) && std::isfinite(v.imag());
}
}  // namespace
void check_finite(const Args& a, const Tensor& t) {
  visit_field(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> m = stack_of<T>(t);
    int64_t count = batch_count(t.sizes());
    for (int64_t b = 0; b < count; ++b)
      for (int64_t i = 0; i < m.step; ++i)
        if (!finite(m[b][i]))
          throw LinalgError(detail::message(public_name(a), ": ", t.dim() > 2 ? detail::message("batch element ", b, ": ") : "",
                                            "the matrix has infinities or NaNs"));
  });
}

Tensor mh(const Tensor& t) { return t.transpose(-2, -1).conj(); }
Tensor hermitian_part_doubled(const Tensor& t) { return t + mh(t); }
Tensor main_diagonal(const Tensor& t) { return t.diagonal(0, -2, -1); }
Tensor sum_of(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : a + b; }

}  // namespace vesta::matrix
