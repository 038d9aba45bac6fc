#pragma once
// The op block: everything Vesta knows about an operator, in one place. Include it in files that define operators
// (ours in src/ops, yours through register_ops); no other public header includes it, since it defines the macros
// OP, SCALAR, SCALAR2 and G. docs/adding-an-op.md walks through a real one; docs/scalar.md is the scalar language.
#include <span>

#include "vesta/ops.h"
#include "vesta/sample_gen.h"
#include "vesta/scalar_text.h"
#include "vesta/sym_dims.h"
#include "vesta/sym_int.h"
#include "vesta/tensor.h"

namespace vesta {

struct Op;
struct OpDef;

// Read access to a call's arguments by schema position (or name: slower, for vjps).
class Args {
 public:
  Args(const Op& op, const Value* values) : op_(op), values_(values) {}
  const Op& op() const { return op_; }
  const char* name() const;  // "add.Tensor"
  bool has(int i) const { return !values_[i].is_none(); }
  const Value& value(int i) const { return values_[i]; }
  // The tensor argument; undefined where it was left out. Borrowed: valid during the call.
  const Tensor& tensor(int i) const {
    return reinterpret_cast<const Tensor&>(values_[i].tensor);  // a Tensor is one TensorImpl*; null when None
  }
  TensorList tensors(int i) const { return values_[i].tensors(); }
  Scalar scalar(int i) const { return values_[i].scalar(); }
  int64_t integer(int i) const { return values_[i].i; }
  int64_t integer(int i, int64_t otherwise) const { return has(i) ? values_[i].i : otherwise; }
  double number(int i) const {
    return values_[i].kind == ValueKind::Float ? values_[i].d : double(values_[i].i);
  }
  bool flag(int i) const { return values_[i].i != 0; }
  IntArrayRef ints(int i) const { return values_[i].ints(); }
  std::string_view string(int i) const { return values_[i].string(); }
  DType dtype(int i, DType otherwise) const { return has(i) ? DType(values_[i].i) : otherwise; }
  Device device(int i, Device otherwise = {}) const {
    return has(i) ? Device::unpack(uint8_t(values_[i].i)) : otherwise;
  }
  int index_of(const char* arg_name) const;  // throws InternalError where the schema has no such argument
  Scalar scalar(const char* n) const { return scalar(index_of(n)); }
  int64_t integer(const char* n) const { return integer(index_of(n)); }
  double number(const char* n) const { return number(index_of(n)); }
  bool flag(const char* n) const { return flag(index_of(n)); }
  bool has(const char* n) const { return has(index_of(n)); }
  IntArrayRef ints(const char* n) const { return ints(index_of(n)); }
  std::string_view string(const char* n) const { return string(index_of(n)); }

 protected:
  const Op& op_;
  const Value* values_;
};

// Results of a decomposition or a gradient: one tensor, several, or lists (a Tensor[] result takes as many items as the
// others leave). An op whose one result is a number, a bool or a dtype may give it as such instead of a 0-dim tensor.
class Results {
 public:
  Results() = default;
  static Results number(Scalar v) {
    Results r;
    r.number_ = v;
    return r;
  }
  Results(Tensor t) { items_.push_back(std::move(t)); }           // NOLINT: implicit
  Results(std::initializer_list<Tensor> list) : items_(list) {}   // NOLINT
  Results(std::vector<Tensor> list) : items_(std::move(list)) {}  // NOLINT
  template <class... T>
  Results(std::tuple<T...> t) {
    std::apply([&](auto&... x) { (items_.push_back(std::move(x)), ...); }, t);
  }  // NOLINT
  std::vector<Tensor> items_;
  std::optional<Scalar> number_;
};

// What one output will be. Strides empty: contiguous; otherwise as given. For a view: the sizes, strides and offset
// into the storage of argument `view_of`.
class OutMeta {
 public:
  DType dtype = DType::Undefined;
  Device device;
  int ndim = 0;
  bool has_strides = false, defined = false;
  int view_of = -1;
  SymInt offset = 0;
  SymInt* sizes() { return reinterpret_cast<SymInt*>(ndim <= kInline ? sizes_ : big_.data()); }
  SymInt* strides() { return reinterpret_cast<SymInt*>(ndim <= kInline ? strides_ : big_.data() + ndim); }
  const SymInt* sizes() const { return const_cast<OutMeta*>(this)->sizes(); }
  const SymInt* strides() const { return const_cast<OutMeta*>(this)->strides(); }
  void resize(int n) {
    ndim = n;
    if (n > kInline) big_.resize(size_t(2 * n));
  }

 private:
  static constexpr int kInline = 6;
  int64_t sizes_[kInline], strides_[kInline];  // raw SymInts, uninitialised
  std::vector<int64_t> big_;
};

// Shape inference: reads the metas of the arguments (sizes may be symbolic) and says what the outputs are.
class InferCtx : public Args {
 public:
  InferCtx(const Op& op, const Value* values, OutMeta* outs, int num_outs)
      : Args(op, values), outs_(outs), num_outs_(num_outs) {}
  ArrayRef<SymInt> sizes(int i) const { return sizes_of(tensor(i)); }
  ArrayRef<SymInt> strides(int i) const { return strides_of(tensor(i)); }
  static ArrayRef<SymInt> sizes_of(const Tensor& t) {
    return {reinterpret_cast<const SymInt*>(t.sizes().data()), size_t(t.dim())};
  }
  static ArrayRef<SymInt> strides_of(const Tensor& t) {
    return {reinterpret_cast<const SymInt*>(t.strides().data()), size_t(t.dim())};
  }
  static SymInt offset_of(const Tensor& t) { return SymInt(t.storage_offset()); }
  int dim(int i) const { return int(tensor(i).dim()); }
  DType dtype_of(int i) const { return tensor(i).dtype(); }
  // Wraps a dim index of argument tensor i: negative counts from the end, IndexError outside; 0-dim counts as 1-dim.
  int wrap_dim(int64_t d, int ndim) const {
    int64_t n = ndim > 1 ? ndim : 1;
    if (d < -n || d >= n) [[unlikely]]
      throw_dim_out_of_range(d, n);
    return int(d < 0 ? d + n : d);
  }

  // Contiguous output j.
  void out(int j, ArrayRef<SymInt> sizes, DType dtype, Device device = {});
  // Output j like argument i (sizes, device and dense stride order), with another dtype if given.
  void out_like(int j, int i, std::optional<DType> dtype = std::nullopt);
  // Output j with given strides.
  void out_strided(int j, ArrayRef<SymInt> sizes, ArrayRef<SymInt> strides, DType dtype, Device device = {});
  // Output j is a view of argument i.
  void out_view(int j, int i, ArrayRef<SymInt> sizes, ArrayRef<SymInt> strides, SymInt offset,
                std::optional<DType> dtype = std::nullopt);
  // Output 0 is a view of argument i with `ndim` dims, its dtype and offset; the caller fills in sizes and strides.
  OutMeta& start_view(int i, int ndim) {
    OutMeta& m = outs_[0];
    const TensorImpl* t = tensor(i).impl();
    m.defined = m.has_strides = true;
    m.dtype = t->dtype;
    m.device = Device::unpack(t->device);
    m.resize(ndim);
    m.view_of = i;
    m.offset = SymInt::from_raw(t->offset);
    return m;
  }
  // Output j is absent (an undefined tensor).
  void out_none(int j);
  // A Tensor[] result: says how many outputs there are before they are described.
  void set_count(int n);
  int count() const { return num_outs_; }
  OutMeta& meta(int j) { return outs_[j]; }
  std::vector<OutMeta>& list() { return list_; }

 private:
  [[noreturn]] void throw_dim_out_of_range(int64_t d, int64_t n) const;
  OutMeta* outs_;
  int num_outs_;
  std::vector<OutMeta> list_;
};

// A kernel's call: arguments plus the outputs that the funnel has allocated, plus scratch memory.
class KernelCtx : public Args {
 public:
  KernelCtx(const Op& op, const Value* values, Tensor* outs, int num_outs, void* workspace)
      : Args(op, values), outs_(outs), num_outs_(num_outs), workspace_(workspace) {}
  Tensor& out(int j = 0) const { return outs_[j]; }
  int num_outs() const { return num_outs_; }
  void* workspace() const { return workspace_; }
  // Ops marked dynamic_out: allocates output j once its size is known.
  Tensor& allocate(int j, IntArrayRef sizes, DType dtype) const;

 private:
  Tensor* outs_;
  int num_outs_;
  void* workspace_;
};

class Grad;

using InferFn = void (*)(InferCtx&);
using KernelFn = void (*)(const KernelCtx&);
using DecomposeFn = Results (*)(const Args&);
using VjpFn = int (*)(const Grad&);
using WorkspaceFn = int64_t (*)(const Args&);  // bytes
using SamplesFn = void (*)(SampleGen&);

// ---- parts of a block ----
enum Forms : uint8_t { NoForms = 0, InPlace = 1, Out = 2 };
constexpr Forms operator|(Forms a, Forms b) { return Forms(int(a) | int(b)); }

enum class Promote : uint8_t {
  None,   // infer and the kernel look at dtypes themselves
  Same,   // tensor arguments must have one dtype
  Types,  // PyTorch's result type of the tensor arguments (and the scalars named in .promote_scalars)
  Float,  // the same, and bool and integers become the default dtype
};
enum class ResultType : uint8_t { Same, Bool, Real, Integer };

// The dtypes an op accepts (a mask over DType), how arguments meet, and what comes out.
struct TypeRule {
  uint32_t mask = 0xfff;
  Promote promote = Promote::None;
  ResultType result = ResultType::Same;
  constexpr TypeRule to(ResultType r) const {
    auto t = *this;
    t.result = r;
    return t;
  }
  constexpr bool accepts(DType t) const { return mask >> int(t) & 1; }
};
namespace types {
constexpr uint32_t bit(DType t) { return 1u << int(t); }
constexpr uint32_t kBoolMask = bit(kBool);
constexpr uint32_t kIntMask = bit(kUInt8) | bit(kInt8) | bit(kInt16) | bit(kInt32) | bit(kInt64);
constexpr uint32_t kFloatMask = bit(kFloat16) | bit(kBFloat16) | bit(kFloat32) | bit(kFloat64);
constexpr uint32_t kComplexMask = bit(kComplex64) | bit(kComplex128);
constexpr uint32_t kAnyMask = kBoolMask | kIntMask | kFloatMask | kComplexMask;
#define VESTA_ROW(name, ...) | bit(DType::name)
constexpr uint32_t kStorageMask = 0 VESTA_STORAGE_DTYPES(VESTA_ROW);
#undef VESTA_ROW
}  // namespace types
// Floating results: integers promote to the default dtype. `float_types` are real, `field_types` take complex too.
inline constexpr TypeRule float_types{types::kFloatMask | types::kIntMask | types::kBoolMask, Promote::Float};
inline constexpr TypeRule field_types{types::kAnyMask, Promote::Float};
inline constexpr TypeRule number_types{types::kIntMask | types::kFloatMask | types::kComplexMask,
                                       Promote::Types};
inline constexpr TypeRule real_types{types::kIntMask | types::kFloatMask, Promote::Types};
inline constexpr TypeRule real_bool_types{types::kIntMask | types::kFloatMask | types::kBoolMask,
                                          Promote::Types};
inline constexpr TypeRule all_types{types::kAnyMask, Promote::Types};
inline constexpr TypeRule int_bool_types{types::kIntMask | types::kBoolMask, Promote::Types};
// For ops with kernels: one floating dtype for all tensors, no promotion.
inline constexpr TypeRule same_float{types::kFloatMask, Promote::Same};
inline constexpr TypeRule same_field{types::kFloatMask | types::kComplexMask, Promote::Same};
inline constexpr TypeRule same_number{types::kIntMask | types::kFloatMask | types::kComplexMask,
                                      Promote::Same};
inline constexpr TypeRule same_any{types::kAnyMask, Promote::Same};
inline constexpr TypeRule any_types{types::kAnyMask, Promote::None};
// For kernels that only make, move or cast whole elements: the dtypes that only store too. Other kernels never see those.
inline constexpr TypeRule storage_types{types::kAnyMask | types::kStorageMask, Promote::None};

// What backward needs: in(i) argument i, out(j) output j; .if_needs(k): only if argument k needs a gradient.
struct SaveItem {
  int8_t index = -1;
  bool output = false;
  int8_t needs = -1;
  constexpr SaveItem if_needs(int k) const {
    auto s = *this;
    s.needs = int8_t(k);
    return s;
  }
};
struct SaveList {
  SaveItem items[8]{};
  int count = 0;
  constexpr SaveList() = default;
  constexpr SaveList(std::initializer_list<SaveItem> list) {
    for (auto& s : list) items[count++] = s;
  }
};

// The sharding class of shared/ops (see docs/sharding.md): one rule name, with an einsum equation where it needs one.
struct Shard {
  const char* rule = "";
  const char* equation = "";
  static constexpr Shard pointwise() { return {"pw"}; }
  static constexpr Shard view() { return {"view"}; }
  static constexpr Shard replicate() { return {"replicate"}; }
  static constexpr Shard einsum(const char* eq) { return {"einsum", eq}; }
};

struct KernelEntry {
  DeviceType device = DeviceType::CPU;
  KernelFn fn = nullptr;
};
struct KernelList {
  KernelEntry entries[2]{};
  constexpr KernelList() = default;
  constexpr KernelList(std::initializer_list<KernelEntry> list) {
    int n = 0;
    for (auto& e : list) entries[n++] = e;
  }
  constexpr KernelFn find(DeviceType d) const {
    for (auto& e : entries)
      if (e.fn && e.device == d) return e.fn;
    return nullptr;
  }
};
inline constexpr DeviceType Cpu = DeviceType::CPU;

// Relative and absolute tolerance of the generic suite for this op; zero: the dtype's default.
struct Tolerance {
  double rtol = 0, atol = 0;
};

// What autocast does to the floating-point tensors of a call: nothing (the op takes what comes), the 16-bit type,
// float32, or the widest type among them.
enum class Autocast : uint8_t { None, Lower, Float32, Widest };

struct OpDef {
  const char* schema = nullptr;  // PyTorch's grammar and argument names
  Autocast autocast = Autocast::None;
  Forms forms = NoForms;  // which other forms come from this block
  TypeRule types{};
  const char* promote_scalars = "";  // comma list of Scalar arguments that take part in promotion
  InferFn infer = nullptr;           // absent: pointwise broadcast, or through decompose
  ScalarDef scalar{};                // one of scalar / kernels / decompose defines the op
  bool check_divisor = false;        // integer operands: ValueError where the last input holds a zero
  void (*check)(const Args&) =
      nullptr;  // scalar texts: throws where arguments make no sense beyond shapes and dtypes
  KernelList kernels{};
  bool accepts_conj = false;  // handles lazy conjugation itself
  DecomposeFn decompose = nullptr;
  bool dynamic_out = false;  // output sizes depend on the data: the kernel allocates
  bool random = false;       // takes exactly one call number from its generator
  WorkspaceFn workspace = nullptr;
  SaveList save{};
  VjpFn vjp = nullptr;
  bool non_differentiable = false;  // outputs never carry a gradient
  uint8_t non_diff_outputs = 0;     // bit j: output j carries no gradient (indices and the like)
  bool materialize = false;         // undefined cotangents reach the vjp as zeros
  Shard shard{};
  Tolerance tol{};
  const char* doc = "";
  SamplesFn samples = nullptr;
};

// The gradient's view of a recorded call. Reading a tensor that `.save` does not name throws InternalError.
class Grad : public Args {
 public:
  // dys: by output; needed: a mask of argument positions.
  Grad(const Op& op, const Value* values, GradNode& node, const Tensor* dys, uint32_t needed)
      : Args(op, values), node_(node), dys_(dys), needed_(needed) {}
  // Cotangent of output j; undefined means zero.
  const Tensor& dy(int j = 0) const { return dys_[j]; }
  // These three stay valid until the vjp returns.
  const Tensor& in(int i) const;             // a saved argument
  const Tensor& in_conj(int i) const;        // its conjugate; itself, without a call, where it is real
  std::vector<Tensor> in_list(int i) const;  // a saved Tensor[] argument
  const Tensor& out(int j = 0) const;        // a saved output, valid as long
  IntArrayRef sizes(int i) const;            // of tensor argument i, saved or not
  DType dtype_of(int i) const;
  IntArrayRef out_sizes(int j = 0) const;
  // Whether a gradient of argument i (for lists: of any element) is asked for.
  bool needs(int i) const { return needed_ >> i & 1; }
  bool needs(int i, int element) const;
  int list_size(int i) const;
  IntArrayRef list_sizes(int i, int element) const;
  void set(int i, Tensor gradient) const;
  void set(int i, std::vector<Tensor> gradients) const;
  bool create_graph() const;

 private:
  GradNode& node_;
  const Tensor* dys_;
  uint32_t needed_;
};

// grads(G(0) { return ...; }, G(1) { ... }): each body runs only if that argument needs a gradient.
template <int i>
struct GradOf {
  const Grad& g;
  template <class Body>
  int operator<<(Body&& body) const {
    if (g.needs(i)) g.set(i, body());
    return 0;
  }
};
template <class... T>
int grads(T...) {
  return 0;
}

struct OpFamily {
  const char* name;
  std::span<const OpDef> ops;
  // Loops of each op's scalar text by CPU level; null where the family has none.
  const ScalarLoops* loops[3];
};

// Adds operators, before their first use. Duplicate names are an error. Families of Vesta itself are registered by
// init(), which the first call runs.
void register_ops(const OpFamily& family);
void register_ops(std::span<const OpDef> ops);
// Calls an op by name with owned arguments, for scripts, tests and ops registered at run time.
std::vector<OwnedValue> call_by_name(std::string_view name_and_overload, std::vector<OwnedValue> args);

namespace op_block {
constexpr SaveItem in(int i) { return {int8_t(i), false, -1}; }
constexpr SaveItem out(int j) { return {int8_t(j), true, -1}; }
}  // namespace op_block

}  // namespace vesta

#define OP(schema_text, ...) \
  ::vesta::OpDef { .schema = schema_text, __VA_ARGS__ }
#define G(i) ::vesta::GradOf<i>{g} << [&]

// Ends a family file: exports `table` under `family`. In loop builds (VESTA_LOOPS) only the loops are emitted.
#ifdef VESTA_LOOPS
#define VESTA_FAMILY(family, table)                                         \
  namespace vesta::loops::VESTA_LOOPS {                                     \
  extern const std::array<ScalarLoops, std::size(table)> family;            \
  constexpr auto family##_picked = pick_loops(table);                       \
  const std::array<ScalarLoops, std::size(table)> family = family##_picked; \
  }
#else
#ifdef VESTA_ALL_ISA
#define VESTA_FAMILY(family, table)                                                                \
  namespace vesta::loops::baseline {                                                               \
  extern const std::array<ScalarLoops, std::size(table)> family;                                   \
  }                                                                                                \
  namespace vesta::loops::v3 {                                                                     \
  extern const std::array<ScalarLoops, std::size(table)> family;                                   \
  }                                                                                                \
  namespace vesta::loops::v4 {                                                                     \
  extern const std::array<ScalarLoops, std::size(table)> family;                                   \
  }                                                                                                \
  namespace vesta::families {                                                                      \
  OpFamily family() {                                                                              \
    return {#family,                                                                               \
            table,                                                                                 \
            {loops::baseline::family.data(), loops::v3::family.data(), loops::v4::family.data()}}; \
  }                                                                                                \
  }
#else
#define VESTA_FAMILY(family, table)                              \
  namespace vesta::loops::baseline {                             \
  extern const std::array<ScalarLoops, std::size(table)> family; \
  }                                                              \
  namespace vesta::families {                                    \
  OpFamily family() {                                            \
    auto* l = loops::baseline::family.data();                    \
    return {#family, table, {l, l, l}};                          \
  }                                                              \
  }
#endif
#endif
// A family without scalar texts: kernels and decompositions only, compiled once.
#define VESTA_KERNEL_FAMILY(family, table)                                    \
  namespace vesta::families {                                                 \
  OpFamily family() { return {#family, table, {nullptr, nullptr, nullptr}}; } \
  }
