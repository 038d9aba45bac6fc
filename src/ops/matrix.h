#pragma once
// Batches of matrices, for the linalg families: what their inputs must be, results laid out column by column as LAPACK
// wants them, loops over a batch, and errors that name the batch element. Shapes here are [..., rows, columns].
#include <complex>
#include <functional>
#include <vector>

#include "base/function_ref.h"
#include "kernels/cpu/lapack.h"
#include "ops/visit.h"
#include "vesta/op.h"

namespace vesta::matrix {

using Sizes = std::vector<SymInt>;

// One floating or complex dtype of single or double precision for all tensors: what LAPACK computes in.
inline constexpr uint32_t kLapackMask = types::bit(kFloat32) | types::bit(kFloat64) | types::kComplexMask;
inline constexpr TypeRule lapack_types{kLapackMask, Promote::Same};
// The same where some arguments are integers (pivots): inference checks with check_field.
inline constexpr TypeRule lapack_mixed{kLapackMask, Promote::None};

DType real_of(DType t);
DType complex_of(DType t);

// ---- inference ----
// TypeError unless argument i is of a dtype of LAPACK's.
void check_field(const Args& a, int i);
// ValueError unless argument i is a batch of (square) matrices.
void check_matrix(const Args& a, int i);
void check_square(const Args& a, int i);
SymInt rows(const InferCtx& c, int i);
SymInt columns(const InferCtx& c, int i);
SymInt smaller(SymInt a, SymInt b);
// All sizes but the last `matrix_dims`.
Sizes batch_of(ArrayRef<SymInt> sizes, int matrix_dims = 2);
Sizes with(Sizes batch, std::initializer_list<SymInt> rest);
// Output j: a batch of matrices, each column-major (strides [..., 1, rows]).
void out_columns(InferCtx& c, int j, const Sizes& batch, SymInt rows, SymInt columns, DType t);
// Output j: contiguous [batch..., rest].
void out_rows(InferCtx& c, int j, const Sizes& batch, std::initializer_list<SymInt> rest, DType t);

// ---- kernels ----
// The op's name as the user knows it: "linalg_inv" for linalg_inv_ex, "linalg_solve" for _linalg_solve_ex.
std::string public_name(const Args& a);
// A fresh batch of column-major matrices with t's elements (t may broadcast to `sizes`).
Tensor columns_copy(const Tensor& t);
Tensor empty_columns(IntArrayRef sizes, DType t);
// Writes src, which broadcasts, into dst.
void assign(const Tensor& dst, const Tensor& src);
// The contiguous int32 values of a pivot tensor.
Tensor pivots_of(const Tensor& pivots);

// Matrices one after another in memory: element b starts at b * step.
template <class T>
struct Stack {
  T* data;
  int64_t step;
  T* operator[](int64_t b) const { return data + b * step; }
};
// Of a tensor made by out_columns or out_rows, whose last `dims` dims are one element of the batch.
template <class T>
Stack<T> stack_of(const Tensor& t, int dims = 2) {
  int64_t step = 1;
  for (int d = 0; d < dims; ++d) step *= t.sizes()[size_t(t.dim() - 1 - d)];
  return {static_cast<T*>(t.data_ptr()), step};
}
int64_t batch_count(IntArrayRef sizes, int matrix_dims = 2);

// Runs body(begin, end) over a batch, on the pool, in chunks that depend on the shape only. `flops`: of one element.
void for_batch(int64_t count, double flops, FunctionRef<void(int64_t, int64_t)> body);

// f(ElementTag<T>) for LAPACK's four types.
template <class F>
void visit_field(DType t, F&& f) {
  switch (t) {
    case DType::Float32: return f(ElementTag<float>{});
    case DType::Float64: return f(ElementTag<double>{});
    case DType::Complex64: return f(ElementTag<std::complex<float>>{});
    default: return f(ElementTag<std::complex<double>>{});
  }
}

// What went wrong at one element, for messages: info as LAPACK gives it.
using Reason = std::string (*)(int info);
// Throws LinalgError at the first nonzero info: "op: batch element 3: reason".
void check_infos(const std::string& op, const Tensor& infos, Reason reason);
std::string singular_reason(int info);
std::string not_positive_reason(int info);
std::string no_convergence_reason(int info);
// LinalgError naming the first matrix that has an infinity or NaN: LAPACK's iterations may not end on them.
void check_finite(const Args& a, const Tensor& columns);

// ---- gradients ----
Tensor mh(const Tensor& t);                       // conjugate transpose
Tensor hermitian_part_doubled(const Tensor& t);   // t + t^H
Tensor main_diagonal(const Tensor& t);                     // diagonal of the last two dims
Tensor sum_of(const Tensor& a, const Tensor& b);  // either may be undefined

}  // namespace vesta::matrix
