// gradient: numerical differentiation along dims by central differences, second order inside and first or second order
// at the ends, with spacings or with coordinates of the points.
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

int64_t wrapped(const Args& a, int64_t d, int64_t n) {
  VESTA_CHECK_AS(IndexError, d >= -n && d < n, a.name(), ": expected a dim in [", -n, ", ", n - 1, "], got ", d);
  return d < 0 ? d + n : d;
}
// An optional dim (all where absent) or a list of them, wrapped, each once.
std::vector<int64_t> dims_of(const Args& a, int i) {
  int64_t n = a.tensor(0).dim();
  std::vector<int64_t> dims;
  if (!a.has(i)) {
    for (int64_t d = 0; d < n; ++d) dims.push_back(d);
  } else if (a.value(i).kind == ValueKind::Int) {
    dims.push_back(wrapped(a, a.integer(i), n));
  } else {
    for (int64_t d : a.ints(i)) dims.push_back(wrapped(a, d, n));
  }
  std::vector<bool> seen(size_t(std::max<int64_t>(n, 1)), false);
  for (int64_t d : dims) {
    VESTA_CHECK(!seen[size_t(d)], a.name(), ": dim ", d, " appears more than once");
    seen[size_t(d)] = true;
  }
  return dims;
}
void check_sizes(const Args& a, const std::vector<int64_t>& dims, int64_t edge_order) {
  const Tensor& x = a.tensor(0);
  VESTA_CHECK_AS(TypeError, x.dtype() != kBool, a.name(), ": does not take bool tensors");
  VESTA_CHECK(edge_order == 1 || edge_order == 2, a.name(), ": expected an edge_order of 1 or 2, got ", edge_order);
  for (int64_t d : dims) VESTA_CHECK(x.size(d) > edge_order, a.name(), ": expected at least ", edge_order + 1, " elements along dim ", d, ", got ", x.size(d));
}
// Differences of small integers would wrap.
Tensor wide(const Tensor& x) { return is_integral(x.dtype(), false) ? x.to(kLong) : x; }
Tensor at(const Tensor& x, int64_t dim, int64_t i) { return x.narrow(dim, i < 0 ? x.size(dim) + i : i, 1); }

// Equal spacing h.
Tensor even(const Tensor& x, int64_t dim, const Scalar& h, int64_t edge_order) {
  int64_t n = x.size(dim);
  Tensor centre = (x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / h / 2;
  if (edge_order == 1) return cat({(at(x, dim, 1) - at(x, dim, 0)) / h, centre, (at(x, dim, -1) - at(x, dim, -2)) / h}, dim);
  return cat({(at(x, dim, 0) * -1.5 + at(x, dim, 1) * 2 - at(x, dim, 2) * 0.5) / h, centre, (at(x, dim, -3) * 0.5 - at(x, dim, -2) * 2 + at(x, dim, -1) * 1.5) / h}, dim);
}
// Points at coordinates c: the derivative of the parabola through three neighbours.
Tensor uneven(const Tensor& x, int64_t dim, const Tensor& c, int64_t edge_order) {
  int64_t n = x.size(dim);
  std::vector<int64_t> shape(size_t(x.dim()), 1);
  shape[size_t(dim)] = n;
  Tensor points = c.reshape(shape), step = points.narrow(dim, 1, n - 1) - points.narrow(dim, 0, n - 1);
  Tensor left = step.narrow(dim, 0, n - 2), right = step.narrow(dim, 1, n - 2);
  Tensor centre = x.narrow(dim, 0, n - 2) * (-right / (left * (left + right))) + x.narrow(dim, 1, n - 2) * ((right - left) / (left * right)) +
                  x.narrow(dim, 2, n - 2) * (left / (right * (left + right)));
  if (edge_order == 1) return cat({(at(x, dim, 1) - at(x, dim, 0)) / at(step, dim, 0), centre, (at(x, dim, -1) - at(x, dim, -2)) / at(step, dim, -1)}, dim);
  Tensor p = at(step, dim, 0), q = at(step, dim, 1), r = at(step, dim, -2), s = at(step, dim, -1);
  Tensor first = at(x, dim, 0) * (-(p * 2 + q) / (p * (p + q))) + at(x, dim, 1) * ((p + q) / (p * q)) + at(x, dim, 2) * (-p / (q * (p + q)));
  Tensor last = at(x, dim, -3) * (s / (r * (r + s))) + at(x, dim, -2) * (-(r + s) / (r * s)) + at(x, dim, -1) * ((s * 2 + r) / (s * (r + s)));
  return cat({first, centre, last}, dim);
}

Results by_spacing(const Args& a, const std::vector<int64_t>& dims, ArrayRef<Scalar> spacing, int64_t edge_order) {
  VESTA_CHECK(spacing.size() == 1 || spacing.size() == dims.size(), a.name(), ": expected a spacing for each of ", dims.size(), " dims, got ", spacing.size());
  check_sizes(a, dims, edge_order);
  std::vector<Tensor> list;
  for (size_t k = 0; k < dims.size(); ++k) list.push_back(even(wide(a.tensor(0)), dims[k], spacing[spacing.size() == 1 ? 0 : k], edge_order));
  return list;
}
Results by_coordinates(const Args& a, const std::vector<int64_t>& dims) {
  TensorList coordinates = a.tensors(1);
  VESTA_CHECK(coordinates.size() == dims.size(), a.name(), ": expected coordinates for each of ", dims.size(), " dims, got ", coordinates.size());
  check_sizes(a, dims, a.integer(3));
  std::vector<Tensor> list;
  for (size_t k = 0; k < dims.size(); ++k) {
    VESTA_CHECK(coordinates[k].dim() == 1 && coordinates[k].size(0) == a.tensor(0).size(dims[k]), a.name(), ": expected ", a.tensor(0).size(dims[k]),
                " coordinates in 1 dim for dim ", dims[k]);
    list.push_back(uneven(wide(a.tensor(0)), dims[k], coordinates[k], a.integer(3)));
  }
  return list;
}
ArrayRef<Scalar> scalars(const Args& a, int i) { return ArrayRef<Scalar>(static_cast<const Scalar*>(a.value(i).ptr), a.value(i).length); }
// Lists of spacings without a dim list go with all dims or with the one given; a single one does not stand for several.
void check_count(const Args& a, size_t spacings, size_t dims) {
  VESTA_CHECK(spacings == dims, a.name(), ": expected a spacing for each of ", dims, " dims, got ", spacings);
}

constexpr TypeRule gradient_types{types::kIntMask | types::kFloatMask | types::kComplexMask, Promote::None};
using Ints = std::vector<int64_t>;
Tensor coordinates(SampleGen& s, int64_t n) {
  DType t = is_floating_point(s.dtype()) ? s.dtype() : s.dtype() == kComplexDouble ? kDouble : kFloat;
  return cumsum(s.make({n}, range(0.5, 1.5), t), 0);
}

constexpr OpDef table[] = {
OP("gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
  .types = gradient_types,
  .decompose = [](const Args& a) -> Results { return by_spacing(a, dims_of(a, 2), {a.has(1) ? a.scalar(1) : Scalar(1)}, a.integer(3)); },
  .shard = {"decomp"}, .doc = "Numerical derivatives along dim, or along each dim, for points `spacing` apart.",
  .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({5}), Scalar(2.0), 0, 2); s(s.t({3, 4}), Scalar(0.5), -1); }),
OP("gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
  .types = gradient_types,
  .decompose = [](const Args& a) -> Results { return by_spacing(a, dims_of(a, 2), {a.scalar(1)}, a.integer(3)); },
  .shard = {"decomp"}, .doc = "Numerical derivatives along the dims listed.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), Scalar(2.0), Ints{1, 0}); s(s.t({3, 4}), Scalar(2.0), Ints{1}, 2); }),
OP("gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
  .types = gradient_types,
  .decompose = [](const Args& a) -> Results { return by_spacing(a, dims_of(a, 1), {Scalar(1)}, a.integer(2)); },
  .shard = {"decomp"}, .doc = "Numerical derivatives along the dims listed, for points 1 apart.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), Ints{1, 0}); s(s.t({2, 3, 3}), Ints{2}, 2); }),
OP("gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
  .types = gradient_types,
  .decompose = [](const Args& a) -> Results {
      auto dims = dims_of(a, 2);
      check_count(a, scalars(a, 1).size(), dims.size());
      return by_spacing(a, dims, scalars(a, 1), a.integer(3)); },
  .shard = {"decomp"}, .doc = "Numerical derivatives with a spacing for each dim.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<Scalar>{Scalar(2.0), Scalar(0.5)}); s(s.t({3, 4}), std::vector<Scalar>{Scalar(2.0)}, 1, 2); }),
OP("gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
  .types = gradient_types,
  .decompose = [](const Args& a) -> Results {
      auto dims = dims_of(a, 2);
      check_count(a, scalars(a, 1).size(), dims.size());
      return by_spacing(a, dims, scalars(a, 1), a.integer(3)); },
  .shard = {"decomp"}, .doc = "Numerical derivatives with a spacing for each dim listed.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<Scalar>{Scalar(2.0), Scalar(0.5)}, Ints{1, 0}); }),
OP("gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
  .types = gradient_types,
  .decompose = [](const Args& a) -> Results { return by_coordinates(a, dims_of(a, 2)); },
  .shard = {"decomp"}, .doc = "Numerical derivatives for points at the given coordinates of each dim.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<Tensor>{coordinates(s, 3), coordinates(s, 4)}); s(s.t({3, 4}), std::vector<Tensor>{coordinates(s, 4)}, 1, 2); }),
OP("gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
  .types = gradient_types,
  .decompose = [](const Args& a) -> Results { return by_coordinates(a, dims_of(a, 2)); },
  .shard = {"decomp"}, .doc = "Numerical derivatives for points at the given coordinates of the dims listed.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<Tensor>{coordinates(s, 4), coordinates(s, 3)}, Ints{1, 0}); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(gradient, table)
