// Reductions over segments of a dim, given by lengths or offsets; and small helpers of reductions that have rows of their
// own. Sums are taken in float32 (float64) in index order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked_math.h"
#include "base/thread_pool.h"
#include "core/storage.h"
#include "ops/infer.h"
#include "ops/visit.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

enum class Kind { Sum, Mean, Max, Min, Prod };
Kind kind_of(const Args& a, std::string_view name) {
  if (name == "sum") return Kind::Sum;
  if (name == "mean") return Kind::Mean;
  if (name == "max") return Kind::Max;
  if (name == "min") return Kind::Min;
  VESTA_CHECK(name == "prod", a.name(), ": expected reduce to be sum, mean, max, min or prod, got '", name, "'");
  return Kind::Prod;
}

// Where the segments lie: first and length of each, by row of the dims before the axis.
struct Segments {
  int64_t axis = 0, rows = 1, count = 0, size = 0, inner = 1;
  std::vector<int64_t> first, length;
};
Segments segments_of(const Args& a, const Tensor& data, const Value& lengths, const Value& offsets, int64_t axis, bool must_fill) {
  Segments s;
  VESTA_CHECK(data.dim() > 0, a.name(), ": expected data with at least 1 dim");
  s.axis = wrap_dim(a, axis, data.dim());
  VESTA_CHECK(lengths.is_none() != offsets.is_none(), a.name(), ": expected either lengths or offsets");
  const bool by_length = !lengths.is_none();
  Tensor given = Tensor::borrow(by_length ? lengths.tensor : offsets.tensor);
  VESTA_CHECK_AS(TypeError, given.dtype() == kLong || given.dtype() == kInt, a.name(), ": expected lengths or offsets of int32 or int64, got ", dtype_name(given.dtype()));
  VESTA_CHECK(given.dim() == s.axis + 1, a.name(), ": expected lengths or offsets with ", s.axis + 1, " dims, got ", given.dim());
  for (int64_t d = 0; d < s.axis; ++d) {
    VESTA_CHECK(given.size(d) == data.size(d), a.name(), ": expected lengths or offsets of size ", data.size(d), " at dim ", d, ", got ", given.size(d));
    s.rows *= data.size(d);
  }
  s.size = data.size(s.axis);
  for (int64_t d = s.axis + 1; d < data.dim(); ++d) s.inner *= data.size(d);
  const int64_t entries = given.size(s.axis);
  VESTA_CHECK(by_length || entries > 0, a.name(), ": expected at least one offset");
  s.count = by_length ? entries : entries - 1;
  Tensor dense = given.to(kLong).contiguous();
  const int64_t* p = dense.data_ptr<int64_t>();
  s.first.resize(size_t(s.rows * s.count));
  s.length.resize(s.first.size());
  for (int64_t r = 0; r < s.rows; ++r) {
    int64_t at = 0;
    for (int64_t k = 0; k < s.count; ++k) {
      int64_t begin = by_length ? at : p[r * entries + k], n;
      if (by_length) n = p[r * entries + k];
      else VESTA_CHECK(!__builtin_sub_overflow(p[r * entries + k + 1], begin, &n), a.name(), ": an offset is out of range");
      VESTA_CHECK(n >= 0 && begin >= 0 && begin <= s.size && n <= s.size - begin, a.name(), ": segment ", k, " from ", begin, " with length ", n, " does not fit the dim of size ", s.size);
      s.first[size_t(r * s.count + k)] = begin;
      s.length[size_t(r * s.count + k)] = n;
      at = begin + n;
    }
    VESTA_CHECK(!must_fill || !by_length || at == s.size, a.name(), ": expected lengths that add up to ", s.size, ", got ", at);
  }
  return s;
}
std::vector<int64_t> result_sizes(const Tensor& data, const Segments& s) {
  std::vector<int64_t> sizes = data.sizes().vec();
  sizes[size_t(s.axis)] = s.count;
  return sizes;
}
void check_dtype(const Args& a, const Tensor& t) {
  VESTA_CHECK_AS(TypeError, is_floating_point(t.dtype()), a.name(), ": expected a floating point tensor, got ", dtype_name(t.dtype()));
}
// Calls f with the C++ type of a floating dtype.
template <class F>
void visit_floating(const Args& a, DType t, F f) {
  visit_real(t, a.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_integral_v<T>) f(tag);
  });
}

// data, reduce, lengths, indices, offsets, axis, unsafe, initial.
void k_segment_reduce(const KernelCtx& k) {
  Tensor data = k.tensor(0).contiguous();
  check_dtype(k, data);
  VESTA_CHECK_AS(NotImplementedError, !k.has(3), k.name(), ": segments by indices are not supported, as in PyTorch");
  const Kind kind = kind_of(k, k.string(1));
  const Segments s = segments_of(k, data, k.value(2), k.value(4), k.integer(5), !k.flag(6));
  Tensor& out = k.allocate(0, result_sizes(data, s), data.dtype());
  const bool given = k.has(7);
  const double initial = given                ? k.scalar(7).toDouble()
                         : kind == Kind::Max  ? -std::numeric_limits<double>::infinity()
                         : kind == Kind::Min  ? std::numeric_limits<double>::infinity()
                         : kind == Kind::Prod ? 1
                                              : 0;
  visit_floating(k, data.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = typename AccumulatorOf<T>::type;
    const T* from = data.data_ptr<T>();
    T* to = out.data_ptr<T>();
    parallel_for(0, s.rows * s.count, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, s.inner)), [&](int64_t begin, int64_t end) {
      for (int64_t q = begin; q < end; ++q) {
        const int64_t n = s.length[size_t(q)];
        const T* p = from + ((q / s.count) * s.size + s.first[size_t(q)]) * s.inner;
        for (int64_t c = 0; c < s.inner; ++c) {
          A v = A(initial);
          for (int64_t j = 0; j < n; ++j) {
            const A x = A(p[j * s.inner + c]);
            switch (kind) {
              case Kind::Sum:
              case Kind::Mean: v += x; break;
              case Kind::Prod: v *= x; break;
              case Kind::Max: v = x != x || x > v ? x : v; break;
              case Kind::Min: v = x != x || x < v ? x : v; break;
            }
          }
          if (kind == Kind::Mean) {
            if (n > 0) v /= A(n);
            else if (!given) v = std::numeric_limits<A>::quiet_NaN();
          }
          to[q * s.inner + c] = T(v);
        }
      }
    });
  });
}
// grad, output, data, reduce, lengths, offsets, axis, initial.
void k_segment_reduce_backward(const KernelCtx& k) {
  Tensor grad = k.tensor(0).contiguous(), output = k.tensor(1).contiguous(), data = k.tensor(2).contiguous();
  check_dtype(k, data);
  const Kind kind = kind_of(k, k.string(3));
  const Segments s = segments_of(k, data, k.value(4), k.value(5), k.integer(6), false);
  std::vector<int64_t> sizes = result_sizes(data, s);
  for (auto* t : {&grad, &output}) {
    VESTA_CHECK_AS(TypeError, t->dtype() == data.dtype(), k.name(), ": expected grad and output of ", dtype_name(data.dtype()), ", got ", dtype_name(t->dtype()));
    VESTA_CHECK(t->sizes() == IntArrayRef(sizes), k.name(), ": grad or output has not the sizes of the result");
  }
  Tensor& out = k.allocate(0, data.sizes(), data.dtype());
  if (out.nbytes()) std::memset(out.data_ptr(), 0, out.nbytes());
  const double initial = k.has(7) ? k.scalar(7).toDouble() : 1;
  visit_floating(k, data.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = typename AccumulatorOf<T>::type;
    const T *x = data.data_ptr<T>(), *y = output.data_ptr<T>(), *g = grad.data_ptr<T>();
    T* to = out.data_ptr<T>();
    // Offsets may make segments overlap, so rows, not segments, are shared out.
    parallel_for(0, s.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, s.inner * s.size)), [&](int64_t begin, int64_t end) {
      for (int64_t q = begin * s.count; q < end * s.count; ++q) {
        const int64_t n = s.length[size_t(q)], at = ((q / s.count) * s.size + s.first[size_t(q)]) * s.inner;
        for (int64_t c = 0; c < s.inner; ++c) {
          const T *p = x + at + c;
          T* d = to + at + c;
          const A dy = A(g[q * s.inner + c]), result = A(y[q * s.inner + c]);
          int64_t ties = 0;
          for (int64_t j = 0; j < n; ++j) {
            const A v = A(p[j * s.inner]);
            A part = 0;
            switch (kind) {
              case Kind::Sum: part = dy; break;
              case Kind::Mean: part = dy / A(n); break;
              case Kind::Max:
              case Kind::Min:
                if (v == result || v != v) part = dy, ++ties;
                break;
              case Kind::Prod:
                if (v != 0 && v == v) {
                  part = dy * result / v;
                } else {
                  A others = A(initial);
                  for (int64_t i = 0; i < n; ++i)
                    if (i != j) others *= A(p[i * s.inner]);
                  part = dy * others;
                }
                break;
            }
            d[j * s.inner] = T(A(d[j * s.inner]) + part);
          }
          if (ties > 1)
            for (int64_t j = 0; j < n; ++j) d[j * s.inner] = T(A(d[j * s.inner]) / A(ties));
        }
      }
    });
  });
}

// The same gradient over public operators, for gradients of gradients. Segments must not overlap.
Tensor differentiable_backward(const Grad& g) {
  Tensor data = g.in(0), out = g.out(), dy = g.dy();
  const Kind kind = kind_of(g, g.string(1));
  Tensor lengths = g.has(2) ? g.in(2) : Tensor(), offsets = g.has(4) ? g.in(4) : Tensor();
  const Segments s = segments_of(g, data, Value(lengths), Value(offsets), g.integer(5), false);
  // For each element: its segment, the segment's length, and whether it has one.
  std::vector<int64_t> sizes(data.sizes().begin(), data.sizes().begin() + s.axis + 1);
  Tensor id = zeros(sizes, TensorOptions(kLong)), length = ones(sizes, TensorOptions(data.dtype())), inside = zeros(sizes, TensorOptions(kBool));
  Tensor lengths_wide = ones(sizes, TensorOptions(kDouble));
  for (int64_t q = 0; q < s.rows * s.count; ++q)
    for (int64_t j = 0; j < s.length[size_t(q)]; ++j) {
      const int64_t at = (q / s.count) * s.size + s.first[size_t(q)] + j;
      id.data_ptr<int64_t>()[at] = q % s.count;
      lengths_wide.data_ptr<double>()[at] = double(s.length[size_t(q)]);
      inside.data_ptr<bool>()[at] = true;
    }
  length = lengths_wide.to(data.dtype());
  auto spread = [&](Tensor t) {
    while (t.dim() < data.dim()) t = t.unsqueeze(-1);
    return t.expand(data.sizes());
  };
  if (s.count == 0) return zeros_like(data);
  id = spread(id);
  Tensor part = dy.gather(s.axis, id);
  switch (kind) {
    case Kind::Sum: break;
    case Kind::Mean: part = part / spread(length); break;
    case Kind::Prod: part = part * (out.gather(s.axis, id) / data); break;
    default: {
      Tensor chosen = (data.detach() == out.detach().gather(s.axis, id)).logical_or(data.detach().isnan()).to(data.dtype());
      Tensor ties = zeros(out.sizes(), data.detach().options()).scatter_add(s.axis, id, chosen * spread(inside).to(data.dtype()));
      part = part * chosen / ties.clamp_min(1).gather(s.axis, id);
    }
  }
  return part * spread(inside).to(data.dtype());
}

void segment_samples(SampleGen& s) {
  if (!is_floating_point(s.dtype())) return;
  Tensor lengths = full({2}, 3, TensorOptions(kLong));
  for (const char* how : {"sum", "mean", "max", "min", "prod"}) s(s.t({6, 2}, range(1, 3)), how, lengths);
  s(s.t({2, 6}, range(1, 3)), "mean", full({2, 3}, 2, TensorOptions(kLong)), std::nullopt, std::nullopt, 1, false, Scalar(1));
  s(s.t({6}, range(1, 3)), "sum", std::nullopt, std::nullopt, arange(0, 7, 2), 0);
}

constexpr OpDef table[] = {
OP("segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
  .types = any_types, .kernels = {{Cpu, k_segment_reduce}}, .dynamic_out = true, .save = {in(0), in(2), in(4), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      if (g.create_graph()) return differentiable_backward(g);
      return _segment_reduce_backward(g.dy(), g.out(), g.in(0), g.string(1), g.has(2) ? g.in(2) : Tensor(), g.has(4) ? g.in(4) : Tensor(), g.integer(5), g.has(7) ? std::optional<Scalar>(g.scalar(7)) : std::nullopt); }); },
  .shard = {"replicate"}, .doc = "sum, mean, max, min or prod of consecutive segments of a dim.", .samples = segment_samples),
OP("_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor",
  .types = any_types, .kernels = {{Cpu, k_segment_reduce_backward}}, .dynamic_out = true, .non_differentiable = true, .shard = {"replicate"},
  .doc = "Gradient of segment_reduce.",
  .samples = [](SampleGen& s) { if (!is_floating_point(s.dtype())) return; s(s.t({2, 2}), s.t({2, 2}), s.t({6, 2}), "mean", full({2}, 3, TensorOptions(kLong))); }),
OP("trace_backward(Tensor grad, int[] sizes) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      IntArrayRef n = a.ints(1);
      VESTA_CHECK(n.size() == 2, "trace_backward: expected 2 sizes, got ", n.size());
      VESTA_CHECK(a.tensor(0).dim() == 0, "trace_backward: expected a 0-dim gradient, got ", a.tensor(0).dim(), " dims");
      Tensor diagonal = a.tensor(0).expand({std::min(n[0], n[1])});
      return diagonal_backward(diagonal, n, 0, 0, 1); },
  .shard = {"replicate"}, .doc = "The gradient on the diagonal, zeros elsewhere.", .samples = [](SampleGen& s) { s(s.t({}), std::vector<int64_t>{3, 4}); s(s.t({}), std::vector<int64_t>{0, 4}); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(segment, table)
