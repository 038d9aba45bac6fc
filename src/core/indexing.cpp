// Python's indexing on tensors: integers, slices, None, Ellipsis and bools become views step by step; what is left,
// the index tensors, goes to index.Tensor or index_put_. The rules are those of libtorch's TensorIndexing.h.
#include "vesta/indexing.h"

#include <ostream>

#include "core/thread_state.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

bool is_mask(const Tensor& t) { return t.dtype() == kBool || t.dtype() == kUInt8; }

// How many dims of the indexed tensor an index takes up.
int64_t dims_taken(const TensorIndex& i) {
  switch (i.kind()) {
    case TensorIndex::Kind::Integer:
    case TensorIndex::Kind::Slice:
      return 1;
    case TensorIndex::Kind::Tensor:
      return i.tensor().defined() ? (is_mask(i.tensor()) ? i.tensor().dim() : 1) : 0;
    default:
      return 0;
  }
}

struct Indexed {
  Tensor view;
  std::vector<Tensor> tensors;  // as index.Tensor takes them: undefined where a dim is not indexed
};

Indexed apply(const Tensor& self, ArrayRef<TensorIndex> indices) {
  int64_t taken = 0;
  bool ellipsis = false;
  for (auto& i : indices) {
    taken += dims_taken(i);
    VESTA_CHECK_AS(IndexError, !(i.kind() == TensorIndex::Kind::Ellipsis && ellipsis),
                   "index: expected at most one Ellipsis");
    ellipsis |= i.kind() == TensorIndex::Kind::Ellipsis;
  }
  VESTA_CHECK_AS(IndexError, taken <= self.dim(), "index: too many indices: ", taken, " for a tensor with ",
                 self.dim(), " dims");
  Indexed r{self, {}};
  int64_t d = 0;       // of r.view
  int64_t hidden = 0;  // dims beyond the first of each mask: a mask is one entry of the list for all its dims
  auto set = [&](Tensor t) {
    int64_t dims = is_mask(t) ? t.dim() : 1;
    r.tensors.resize(size_t(d - hidden));
    r.tensors.push_back(std::move(t));
    d += dims;
    hidden += dims - 1;
  };
  // True keeps everything, False nothing, of a new dim of size 1.
  auto boolean = [&](bool b) {
    r.view = r.view.unsqueeze(d);
    set(b ? zeros({1}, TensorOptions(kLong)) : empty({0}, TensorOptions(kLong)));
  };
  for (auto& i : indices) {
    switch (i.kind()) {
      case TensorIndex::Kind::Integer:
        r.view = r.view.select(d, i.integer());
        break;
      case TensorIndex::Kind::Slice:
        // The whole dim is no call, as in libtorch.
        if (const auto& s = i.slice(); s.start() != 0 || s.stop() != indexing::INDEX_MAX || s.step() != 1)
          r.view = r.view.slice(d, s.start(), s.stop(), s.step());
        ++d;
        break;
      case TensorIndex::Kind::Ellipsis:
        d += self.dim() - taken;
        break;
      case TensorIndex::Kind::None:
        r.view = r.view.unsqueeze(d++);
        break;
      case TensorIndex::Kind::Boolean:
        boolean(i.boolean());
        break;
      case TensorIndex::Kind::Tensor: {
        const Tensor& t = i.tensor();
        VESTA_CHECK_AS(IndexError, t.defined(), "index: an index tensor is undefined");
        VESTA_CHECK_AS(IndexError, is_integral(t.dtype(), true),
                       "index: expected integer or bool indices, got ", dtype_name(t.dtype()));
        if (t.dim() == 0 && is_mask(t)) {
          boolean(t.item().toBool());
        } else if (t.dim() == 0 && !thread_state.tracer) {
          r.view = r.view.select(d, t.item().toLong());
        } else {
          set(is_mask(t) || t.dtype() == kInt || t.dtype() == kLong ? t : t.to(kLong));
        }
        break;
      }
    }
  }
  return r;
}

// Leading dims of size 1 that the target does not have.
Tensor without_prefix(const Tensor& value, int64_t dims) {
  Tensor v = value;
  while (v.dim() > dims && v.size(0) == 1) v = v.squeeze(0);
  return v;
}

}  // namespace

namespace indexing {
void put(const Tensor& self, ArrayRef<TensorIndex> indices, const Tensor& value) {
  VESTA_CHECK(value.defined(), "index_put_: the value is undefined");
  Indexed r = apply(self, indices);
  if (r.tensors.empty())
    r.view.copy_(without_prefix(value, r.view.dim()));
  else
    r.view.index_put_(TensorList(r.tensors), value);
}
void put(const Tensor& self, ArrayRef<TensorIndex> indices, const Scalar& value) {
  Indexed r = apply(self, indices);
  if (r.tensors.empty())
    r.view.fill_(value);
  else
    r.view.index_put_(TensorList(r.tensors), full({}, value, self.options()));
}
std::ostream& operator<<(std::ostream& out, const Slice& slice) {
  return out << slice.start() << ':' << slice.stop() << ':' << slice.step();
}
}  // namespace indexing

std::ostream& operator<<(std::ostream& out, const TensorIndex& index) {
  switch (index.kind()) {
    case TensorIndex::Kind::None:
      return out << "None";
    case TensorIndex::Kind::Ellipsis:
      return out << "...";
    case TensorIndex::Kind::Integer:
      return out << index.integer();
    case TensorIndex::Kind::Boolean:
      return out << (index.boolean() ? "true" : "false");
    case TensorIndex::Kind::Slice:
      return out << index.slice();
    default:
      return out << index.tensor();
  }
}
std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices) {
  out << '(';
  for (size_t i = 0; i < indices.size(); ++i) out << (i ? ", " : "") << indices[i];
  return out << ')';
}

Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  VESTA_CHECK(!indices.empty(), "index: Passing an empty index list to Tensor::index() is not valid syntax");
  Indexed r = apply(*this, indices);
  if (!r.tensors.empty()) return vesta::index(r.view, r.tensors);
  return r.view.is_same(*this) ? view_as(*this) : r.view;
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return index(ArrayRef<TensorIndex>(indices.begin(), indices.size()));
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value) {
  indexing::put(*this, {indices.begin(), indices.size()}, value);
  return *this;
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) {
  indexing::put(*this, {indices.begin(), indices.size()}, value);
  return *this;
}
Tensor Tensor::operator[](int64_t i) const {
  VESTA_CHECK_AS(IndexError, dim() > 0, "operator[]: a 0-dim tensor cannot be indexed; use item()");
  return select(0, i);
}
Tensor Tensor::operator[](const Tensor& i) const { return index({TensorIndex(i)}); }

}  // namespace vesta
