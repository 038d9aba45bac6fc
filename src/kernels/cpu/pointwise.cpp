// One driver for all scalar texts. Equal dtypes, equal sizes and contiguous operands take the short way: allocate,
// one loop call. Everything else (half types, small integers, promotion, strides, broadcast, out= of another dtype) is
// staged: chunks of every operand that is not already consecutive compute-type elements go through L1 buffers.
#include "kernels/cpu/pointwise.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "core/call.h"
#include "core/eager.h"
#include "core/promotion.h"
#include "core/storage.h"
#include "core/value_text.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/strided.h"

namespace vesta::cpu {
namespace {

constexpr int64_t kGrain = 32768;  // elements a thread takes at once; below it the caller works alone
constexpr int64_t kChunk = 1024;   // staged elements: 4 operands x 16 bytes x 1024 = 64 KiB at most
constexpr int64_t kShortRun = 64;  // inner runs below it are not worth a loop call each
constexpr int64_t kLongRun = 512;  // nor is a repeated number for runs below this one
constexpr int64_t kPeriod = 2048;  // elements of whole rows that one loop call takes where rows repeat
constexpr int kMaxInputs = 4;

ScalarAttr attr_of(const Value& v) {
  switch (v.kind) {
    case ValueKind::Float:
      // Out of range is undefined in C++; such an attribute only meets integer loops where promotion rejected it.
      return {v.d, 0, v.d > -9e18 && v.d < 9e18 ? int64_t(v.d) : 0};
    case ValueKind::Complex: {
      auto* c = static_cast<const double*>(v.ptr);
      return {c[0], c[1], 0};
    }
    case ValueKind::None:
      return {0, 0, 0};
    default:
      return {double(v.i), 0, v.i};
  }
}

void fill_attrs(const Op& op, const Value* args, ScalarAttr* attrs) {
  for (int k = 0; k < op.num_attrs; ++k) attrs[k] = attr_of(args[op.attr_args[k]]);
}

// Attributes that take no part in promotion must fit the computation: alpha of an integer add cannot be 0.5.
void check_attrs(const Op& op, const Value* args, DType common) {
  for (int k = 0; k < op.num_attrs; ++k) {
    int i = op.attr_args[k];
    const Value& v = args[i];
    if (op.promote_mask >> i & 1 || op.schema.args[size_t(i)].type != ArgType::Scalar) continue;
    VESTA_CHECK_AS(
        TypeError,
        !(is_integral(common, true) && (v.kind == ValueKind::Float || v.kind == ValueKind::Complex)), op.name,
        ": for integer tensors, expected an integer ", op.schema.args[size_t(i)].name, ", got ",
        v.scalar().str());
    VESTA_CHECK_AS(TypeError, !(is_floating_point(common) && v.kind == ValueKind::Complex), op.name,
                   ": for real tensors, expected a real ", op.schema.args[size_t(i)].name, ", got ",
                   v.scalar().str());
  }
}

DType result_type(const Op& op, DType common) {
  switch (op.def->types.result) {
    case ResultType::Bool:
      return DType::Bool;
    case ResultType::Real:
      return real_dtype(common);
    case ResultType::Integer:
      return DType::Int64;
    default:
      return common;
  }
}

// The loop's own result type: a bool text writes u8, abs of complex writes its real type.
ComputeType loop_result(const Op& op, ComputeType c) {
  switch (op.def->types.result) {
    case ResultType::Bool:
      return ComputeType::U8;
    case ResultType::Real:
      return c == ComputeType::C64 ? ComputeType::F32 : c == ComputeType::C128 ? ComputeType::F64 : c;
    default:
      return c;
  }
}

// bool tensors may use the integer loops where the text has none for bool.
ComputeType pick_loop(const Op& op, DType common) {
  ComputeType c = compute_type(common);
  if (op.loops[int(c)]) return c;
  if (c == ComputeType::U8 && op.loops[int(ComputeType::I32)]) return ComputeType::I32;
  throw TypeError(detail::message(op.name, ": does not take ", dtype_name(common), " tensors"));
}

void check_divisor(const Op& op, const void* divisor, ComputeType c, int64_t n) {
  bool zero = false;
  if (c == ComputeType::I32) {
    auto* p = static_cast<const int32_t*>(divisor);
    for (int64_t i = 0; i < n; ++i) zero |= p[i] == 0;
  } else if (c == ComputeType::I64) {
    auto* p = static_cast<const int64_t*>(divisor);
    for (int64_t i = 0; i < n; ++i) zero |= p[i] == 0;
  }
  VESTA_CHECK(!zero, op.name, ": division by zero (ZeroDivisionError): an integer divisor is 0");
}

struct Staged {
  const Op& op;
  StridedLoop loop;
  ScalarLoop fn;
  ComputeType compute, result;
  int num_in, num_out;
  DType in_types[kMaxInputs], out_types[2];
  const ScalarAttr* attrs;

  // How an operand reaches the loop.
  enum class Access : uint8_t {
    Direct,  // consecutive compute-type elements over the whole shape
    Row,     // consecutive compute-type elements along the inner dim only: a broadcast row, a padded matrix
    Staged,  // through a buffer: other types and strides
  };
  Access access[StridedLoop::kMaxOperands];
  bool all_direct = true;
  bool one_divisor = true;  // the last input is one number

  DType type_of(int o) const { return o < num_out ? out_types[o] : in_types[o - num_out]; }
  int64_t width_of(int o) const { return compute_size(o < num_out ? result : compute); }

  void run() {
    if (loop.numel == 0) return;
    for (int d = 0; d < loop.ndim; ++d) one_divisor &= loop.strides[num_out + num_in - 1][d] == 0;
    const bool rows = loop.ndim >= 2 && loop.sizes[0] >= kShortRun;
    bool any_direct = false;
    for (int o = 0; o < num_out + num_in; ++o) {
      const DType t = type_of(o);
      const int64_t size = int64_t(element_size(t));
      const bool computed = is_compute_storage(t) && compute_type(t) == (o < num_out ? result : compute);
      access[o] = computed && loop.packed(o, size)                 ? Access::Direct
                  : computed && rows && loop.strides[o][0] == size ? Access::Row
                                                                   : Access::Staged;
      all_direct &= access[o] == Access::Direct;
      any_direct |= access[o] != Access::Staged;
    }
    if (periodic()) return run_periodic();
    // By rows where that saves an operand its buffer, or a broadcast row its reload.
    bool by_rows = rows && any_direct && !all_direct;
    if (loop.ndim && loop.sizes[0] < kLongRun)
      for (int k = 0; k < num_in; ++k) by_rows &= loop.strides[num_out + k][0] != 0;
    if (!by_rows)
      for (int o = 0; o < num_out + num_in; ++o)
        if (access[o] == Access::Row) access[o] = Access::Staged;
    parallel_for(0, loop.numel, kGrain, [&](int64_t begin, int64_t end) {
      if (all_direct) return chunk(begin, end - begin, nullptr);
      alignas(64) char buffers[(kMaxInputs + 2) * kChunk * 16];
      if (by_rows) return row_chunks(begin, end, buffers);
      for (int64_t at = begin; at < end; at += kChunk) chunk(at, std::min(kChunk, end - at), buffers);
    });
  }

  // Whether all but consecutive operands are one row (of any type and stride) that all other dims repeat: a bias.
  bool periodic() const {
    if (all_direct || loop.ndim < 2 || loop.sizes[0] > kChunk) return false;
    for (int o = 0; o < num_out + num_in; ++o) {
      if (access[o] == Access::Direct) continue;
      if (o < num_out) return false;
      for (int d = 1; d < loop.ndim; ++d)
        if (loop.strides[o][d] != 0) return false;
    }
    return true;
  }
  // The row is loaded once a thread's chunk, several times side by side, so that one loop call covers several rows.
  void run_periodic() const {
    const int64_t row = loop.sizes[0], copies = std::max<int64_t>(1, kPeriod / row);
    parallel_for(0, loop.numel, kGrain, [&](int64_t begin, int64_t end) {
      alignas(64) char buffers[kMaxInputs * 2 * kPeriod * 8];
      const int64_t offset = begin % row;
      int64_t filled[kMaxInputs] = {};
      for (int64_t at = begin; at < end;) {
        const int64_t phase = at == begin ? offset : 0;
        const int64_t n = std::min(copies * row - phase, end - at);
        const void* in[kMaxInputs] = {};
        void* out[2] = {};
        for (int k = 0; k < num_in; ++k) {
          const int o = num_out + k;
          if (access[o] == Access::Direct) {
            in[k] = loop.data[o] + at * int64_t(element_size(in_types[k]));
            continue;
          }
          const int64_t width = compute_size(compute);
          char* buffer = buffers + k * 2 * kPeriod * 8;
          if (filled[k] == 0) {
            convert_table().load[int(in_types[k])][int(compute)](loop.data[o], loop.strides[o][0], buffer,
                                                                 row);
            filled[k] = row;
          }
          for (; filled[k] < phase + n; filled[k] += row)
            std::memcpy(buffer + filled[k] * width, buffer, size_t(row * width));
          in[k] = buffer + phase * width;
        }
        for (int k = 0; k < num_out; ++k) out[k] = loop.data[k] + at * int64_t(element_size(out_types[k]));
        call(in, out, n);
        at += n;
      }
    });
  }

  void call(const void* const* in, void* const* out, int64_t n) const {
    if (op.def->check_divisor) check_divisor(op, in[num_in - 1], compute, one_divisor ? 1 : n);
    fn(in, out, n, attrs);
  }

  void chunk(int64_t at, int64_t n, char* buffers) const {
    const void* in[kMaxInputs] = {};
    void* out[2] = {};
    const ConvertTable& table = convert_table();
    for (int k = 0; k < num_in; ++k) {
      int o = num_out + k;
      if (access[o] == Access::Direct) {
        in[k] = loop.data[o] + at * int64_t(element_size(in_types[k]));
        continue;
      }
      char* buffer = buffers + o * kChunk * 16;
      ConvertFn load = table.load[int(in_types[k])][int(compute)];
      int64_t stride = loop.ndim ? loop.strides[o][0] : 0, width = compute_size(compute);
      loop.runs(o, at, n,
                [&](char* src, int64_t m, int64_t off) { load(src, stride, buffer + off * width, m); });
      in[k] = buffer;
    }
    for (int k = 0; k < num_out; ++k)
      out[k] = access[k] == Access::Direct ? loop.data[k] + at * int64_t(element_size(out_types[k]))
                                           : buffers + k * kChunk * 16;
    call(in, out, n);
    for (int k = 0; k < num_out; ++k) {
      if (access[k] == Access::Direct) continue;
      StoreFn store = table.store[int(result)][int(out_types[k])];
      int64_t stride = loop.ndim ? loop.strides[k][0] : 0, width = compute_size(result);
      const char* buffer = static_cast<const char*>(out[k]);
      loop.runs(k, at, n,
                [&](char* dst, int64_t m, int64_t off) { store(buffer + off * width, dst, stride, m); });
    }
  }

  // One loop call for each piece of an inner run. A staged operand that a following row repeats is not loaded again.
  void row_chunks(int64_t begin, int64_t end, char* buffers) const {
    const ConvertTable& table = convert_table();
    const int operands = num_out + num_in;
    bool staged = false;
    for (int o = 0; o < operands; ++o) staged |= access[o] == Access::Staged;
    const int64_t longest = staged ? kChunk : end - begin;
    char* at[StridedLoop::kMaxOperands];
    const char* loaded[StridedLoop::kMaxOperands] = {};
    int64_t loaded_count[StridedLoop::kMaxOperands] = {};
    int64_t index[StridedLoop::kMaxDims];
    int64_t rest = begin;
    for (int o = 0; o < operands; ++o) at[o] = loop.data[o];
    for (int d = 0; d < loop.ndim; ++d) {
      index[d] = rest % loop.sizes[d];
      rest /= loop.sizes[d];
      for (int o = 0; o < operands; ++o) at[o] += index[d] * loop.strides[o][d];
    }
    for (int64_t done = begin; done < end;) {
      const int64_t n = std::min({loop.sizes[0] - index[0], longest, end - done});
      const void* in[kMaxInputs] = {};
      void* out[2] = {};
      for (int k = 0; k < num_in; ++k) {
        const int o = num_out + k;
        in[k] = at[o];
        if (access[o] != Access::Staged) continue;
        char* buffer = buffers + o * kChunk * 16;
        if (loaded[o] != at[o] || loaded_count[o] < n) {
          table.load[int(in_types[k])][int(compute)](at[o], loop.strides[o][0], buffer, n);
          loaded[o] = at[o];
          loaded_count[o] = n;
        }
        in[k] = buffer;
      }
      for (int k = 0; k < num_out; ++k)
        out[k] = access[k] == Access::Staged ? buffers + k * kChunk * 16 : at[k];
      call(in, out, n);
      for (int k = 0; k < num_out; ++k)
        if (access[k] == Access::Staged)
          table.store[int(result)][int(out_types[k])](out[k], at[k], loop.strides[k][0], n);
      done += n;
      index[0] += n;
      for (int o = 0; o < operands; ++o) at[o] += n * loop.strides[o][0];
      for (int d = 0; d + 1 < loop.ndim && index[d] == loop.sizes[d]; ++d) {
        index[d] = 0;
        ++index[d + 1];
        for (int o = 0; o < operands; ++o)
          at[o] += loop.strides[o][d + 1] - loop.sizes[d] * loop.strides[o][d];
      }
    }
  }
};

// Broadcast shape of the inputs; throws ValueError naming the sizes.
void broadcast_shape(const Op& op, const Tensor* in, int n, std::vector<int64_t>& shape) {
  size_t ndim = 0;
  for (int k = 0; k < n; ++k) ndim = std::max(ndim, size_t(in[k].dim()));
  shape.assign(ndim, 1);
  for (int k = 0; k < n; ++k) {
    auto s = in[k].sizes();
    for (size_t d = 0; d < s.size(); ++d) {
      int64_t& have = shape[ndim - s.size() + d];
      if (s[d] == have || s[d] == 1) continue;
      VESTA_CHECK(have == 1, op.name, ": expected sizes that broadcast, got ", have, " and ", s[d],
                  " at dim ", ndim - s.size() + d);
      have = s[d];
    }
  }
}

// Result strides: the first full operand's dense order, else contiguous.
Tensor allocate_result(const Tensor* in, int n, const std::vector<int64_t>& shape, DType dtype) {
  const TensorImpl* model = nullptr;
  for (int k = 0; k < n && !model; ++k)
    if (in[k].sizes() == IntArrayRef(shape) && (in[k].impl()->bits & TensorImpl::kDense))
      model = in[k].impl();
  Tensor t = empty_cpu(shape, dtype);
  if (model && !(model->bits & TensorImpl::kContiguous)) {
    TensorImpl* impl = t.impl();
    std::memcpy(impl->strides_data(), const_cast<TensorImpl*>(model)->strides_data(), shape.size() * 8);
    refresh_facts(impl);
  }
  return t;
}

// An operand whose rows run across the loop's (a transposed matrix) costs a cache miss an element when read in the loop's
// order: it is turned first, tile by tile. Returns what holds the turned elements.
Tensor turn(StridedLoop& loop, int o, DType dtype) {
  constexpr int64_t kWorth = 4096;
  const int64_t size = int64_t(element_size(dtype));
  if (loop.ndim < 2 || loop.numel < kWorth || size > 8 || size < 2) return {};
  if (loop.strides[o][1] != size || loop.sizes[0] < 8 || loop.sizes[1] < 8) return {};
  for (int d = 0; d < loop.ndim; ++d)
    if (loop.strides[o][d] == 0 || (d == 0 && loop.strides[o][d] == size)) return {};
  Tensor turned = empty_cpu({loop.numel}, dtype);
  StridedLoop copy;
  copy.ndim = loop.ndim;
  copy.num_operands = 2;
  copy.numel = loop.numel;
  copy.data[0] = static_cast<char*>(turned.data_ptr());
  copy.data[1] = loop.data[o];
  int64_t step = size;
  for (int d = 0; d < loop.ndim; ++d) {
    copy.sizes[d] = loop.sizes[d];
    copy.strides[0][d] = step;
    copy.strides[1][d] = loop.strides[o][d];
    loop.strides[o][d] = step;
    step *= loop.sizes[d];
  }
  copy_loop(copy, size);
  loop.data[o] = copy.data[0];
  return turned;
}

[[gnu::noinline]] void general(const Op& op, const Value* args, Value* outs) {
  Tensor in[kMaxInputs];
  int num_in = 0;
  bool meta = false;
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    VESTA_CHECK(v.kind == ValueKind::Tensor, op.name, ": expected a tensor for ",
                op.schema.args[op.tensor_args[k]].name);
    Tensor t = Tensor::borrow(v.tensor);
    VESTA_CHECK_AS(TypeError, is_convertible(t.dtype()), op.name, ": does not take ", dtype_name(t.dtype()),
                   " tensors; view them as uint8");
    if (t.impl()->bits & (TensorImpl::kConj | TensorImpl::kNeg)) t = t.resolve_conj().resolve_neg();
    meta |= t.is_meta();
    in[num_in++] = std::move(t);
  }
  DType common = common_dtype(op, args);
  check_attrs(op, args, common);
  DType result = result_type(op, common);
  int num_out = op.num_outs;
  Tensor out[2];
  if (meta) {
    std::vector<OutMeta> metas, list;
    infer_outputs(op, args, metas, list);
    for (int j = 0; j < num_out; ++j)
      outs[j] =
          detail::give(op.form == OpForm::Functional
                           ? meta_tensor(metas[size_t(j)])
                           : Tensor::borrow(args[op.form == OpForm::InPlace ? 0 : op.out_arg + j].tensor));
    return;
  }
  std::vector<int64_t> shape;
  broadcast_shape(op, in, num_in, shape);
  if (op.form == OpForm::Functional) {
    for (int j = 0; j < num_out; ++j) out[j] = allocate_result(in, num_in, shape, result);
  } else {
    bool in_place = op.form == OpForm::InPlace;
    for (int j = 0; j < num_out; ++j) {
      out[j] = Tensor::borrow(args[in_place ? 0 : op.out_arg + j].tensor);
      VESTA_CHECK_AS(TypeError, can_cast(result, out[j].dtype()) && is_convertible(out[j].dtype()), op.name,
                     ": result type ", to_string(result), " can't be cast to the desired output type ",
                     to_string(out[j].dtype()));
      if (in_place) {
        VESTA_CHECK(out[j].sizes() == IntArrayRef(shape), op.name,
                    ": expected operands that broadcast to self's shape ", value_text(Value(out[j].sizes())),
                    ", got ", value_text(Value(IntArrayRef(shape))));
      } else {
        resize_out(op, out[j], shape);
      }
      TensorImpl* o = out[j].impl();
      for (int d = 0; d < o->ndim; ++d)
        VESTA_CHECK(o->strides_data()[d] != 0 || o->sizes_data()[d] <= 1, op.name,
                    ": the written tensor has elements that share memory; clone it first");
      for (int k = 0; k < num_in; ++k) {
        // Exactly the same elements are fine; otherwise read a copy.
        bool same = in[k].impl()->data == o->data && in[k].sizes() == out[j].sizes() &&
                    in[k].strides() == out[j].strides() && in[k].dtype() == out[j].dtype();
        if (!same && may_overlap(in[k], out[j])) in[k] = in[k].clone();
      }
    }
  }
  ScalarAttr attrs[Op::kMaxAttrs];
  fill_attrs(op, args, attrs);
  ComputeType compute = pick_loop(op, common);
  Staged s{op,    {}, op.loops[int(compute)], compute, loop_result(op, compute), num_in, num_out, {}, {},
           attrs, {}};
  s.loop.set_shape(shape);
  for (int j = 0; j < num_out; ++j) {
    s.loop.add(out[j]);
    s.out_types[j] = out[j].dtype();
  }
  for (int k = 0; k < num_in; ++k) {
    s.loop.add(in[k]);
    s.in_types[k] = in[k].dtype();
  }
  s.loop.collapse();
  Tensor turned[kMaxInputs];
  for (int k = 0; k < num_in; ++k) turned[k] = turn(s.loop, num_out + k, in[k].dtype());
  s.run();
  for (int j = 0; j < num_out; ++j) {
    if (op.form != OpForm::Functional) bump_version(out[j].impl(), op.id);
    outs[j] = detail::give(std::move(out[j]));
  }
}

// Many elements: the pool takes chunks of them.
[[gnu::noinline]] void run_parallel(const Op& op, const void* const* in, TensorImpl* out, int64_t n,
                                    size_t in_size, size_t out_size, ScalarLoop fn, const ScalarAttr* attrs) {
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    const void* src[kMaxInputs];
    for (int k = 0; k < op.num_tensor_args; ++k)
      src[k] = static_cast<const char*>(in[k]) + size_t(begin) * in_size;
    void* dst[1] = {static_cast<char*>(out->data) + size_t(begin) * out_size};
    fn(src, dst, end - begin, attrs);
  });
}

// The short way: operands of one direct dtype and equal sizes, contiguous, on the CPU.
[[gnu::always_inline]] inline bool try_fast(const Op& op, const Value* args, Value* outs) {
  if (args->kind != ValueKind::Tensor) return false;
  TensorImpl* a = args->tensor;
  constexpr uint32_t kWanted = TensorImpl::kContiguous | TensorImpl::kHasData;
  constexpr uint32_t kChecked = kWanted | TensorImpl::kConj | TensorImpl::kNeg;
  DType t = a->dtype;
  int ndim = a->ndim;
  if ((a->bits & kChecked) != kWanted || a->device != 0 || ndim > TensorImpl::kInlineDims ||
      !(op.direct_types >> int(t) & 1))
    return false;
  const void* in[kMaxInputs];
  in[0] = a->data;
  for (int k = 1; k < op.leading_tensors; ++k) {
    if (args[k].kind != ValueKind::Tensor) return false;
    TensorImpl* b = args[k].tensor;
    if (b->dtype != t || (b->bits & kChecked) != kWanted || b->ndim != ndim || b->device != 0) return false;
    for (int d = 0; d < ndim; ++d)
      if (b->inline_sizes[d] != a->inline_sizes[d]) return false;
    in[k] = b->data;
  }
  ScalarAttr attrs[Op::kMaxAttrs];
  if (op.num_attrs) {
    // Numbers must not change the type: an integer tensor with a float number, or anything with a complex one, does.
    for (int k = 0; k < op.num_attrs; ++k) {
      const Value& v = args[op.attr_args[k]];
      if (v.kind == ValueKind::Int) [[likely]] {
        if (t == DType::Bool) return false;
        attrs[k] = {double(v.i), 0, v.i};
        continue;
      }
      if (v.kind == ValueKind::Complex && !is_complex(t)) return false;
      if (v.kind == ValueKind::Float && is_integral(t, true)) return false;
      attrs[k] = attr_of(v);
    }
  }
  ComputeType c = compute_type(t);
  DType result = op.bool_result ? DType::Bool : t;
  int64_t n = a->numel;
  if (op.def->check_divisor) [[unlikely]]
    check_divisor(op, in[op.num_tensor_args - 1], c, n);
  TensorImpl* o;
  if (op.form == OpForm::Functional) [[likely]] {
    o = new_tensor(size_t(n) * element_size(result));
    o->dtype = result;
    o->ndim = uint8_t(ndim);
    o->numel = n;
    // All six dims: a copy of known length is a few vector moves.
    std::memcpy(o->inline_sizes, a->inline_sizes, sizeof(a->inline_sizes));
    std::memcpy(o->inline_strides, a->inline_strides, sizeof(a->inline_strides));
    o->bits |= TensorImpl::kContiguous | TensorImpl::kDense;
  } else if (op.form == OpForm::InPlace && result == t) {
    o = a;
    o->refs.fetch_add(1, std::memory_order_relaxed);
    bump_version(o, op.id);
  } else {
    return false;
  }
  outs[0].kind = ValueKind::Tensor;
  outs[0].tensor = o;
  ScalarLoop fn = op.loops[int(c)];
  if (n > kGrain) [[unlikely]] {
    run_parallel(op, in, o, n, element_size(t), element_size(result), fn, attrs);
    return true;
  }
  void* out[1] = {o->data};
  fn(in, out, n, attrs);
  return true;
}

}  // namespace

void pointwise(const Op& op, const Value* args, Value* outs) {
  if (op.def->check) [[unlikely]]
    op.def->check(Args(op, args));
  if (try_fast(op, args, outs)) [[likely]]
    return;
  general(op, args, outs);
}

}  // namespace vesta::cpu
