// More ways to make and copy tensors: copy, fill with a 0-dim tensor, permuted layouts, conversions by device or model,
// files, Vandermonde matrices.
#include <algorithm>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked_math.h"
#include "core/storage.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

TensorOptions options_from(const Args& a, int at, const Tensor& like) {
  return TensorOptions().dtype(a.dtype(at, like.dtype())).device(a.device(at + 2, like.device()));
}
std::optional<MemoryFormat> format_at(const Args& a, int i) {
  return a.has(i) ? std::optional<MemoryFormat>(MemoryFormat(a.integer(i))) : std::nullopt;
}

// Strides that lay the dims out in the given order, the last one densest.
void infer_permuted(InferCtx& c) {
  IntArrayRef sizes = c.ints(0), order = c.ints(1);
  VESTA_CHECK(sizes.size() == order.size(), c.name(), ": expected a layout of ", sizes.size(), " dims, got ", order.size());
  std::vector<SymInt> s(sizes.begin(), sizes.end()), strides(sizes.size());
  std::vector<bool> seen(sizes.size(), false);
  SymInt step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    int64_t d = order[k];
    VESTA_CHECK(d >= 0 && size_t(d) < sizes.size() && !seen[size_t(d)], c.name(), ": the layout is no permutation of the dims: it holds ", d);
    seen[size_t(d)] = true;
    VESTA_CHECK(s[size_t(d)] >= 0, c.name(), ": expected sizes >= 0, got ", s[size_t(d)].str());
    strides[size_t(d)] = step;
    step *= max(s[size_t(d)], 1);
  }
  if (s.empty()) return c.out(0, s, c.dtype(2, get_default_dtype()), c.device(4));
  c.out_strided(0, s, strides, c.dtype(2, get_default_dtype()), c.device(4));
}

// The mapped file, shown as a tensor; unmapped with its last user. Private mappings never write the file.
Tensor mapped_file(const Args& a) {
  std::string name(a.string(0));
  bool shared = a.has(1) && a.flag(1);
  int64_t size = a.integer(2, 0);
  DType dtype = a.dtype(3, get_default_dtype());
  VESTA_CHECK(size >= 0, a.name(), ": expected a size >= 0, got ", size);
  int64_t bytes = checked_mul<int64_t>(size, int64_t(element_size(dtype)), a.name());
  if (a.device(5).is_meta()) return empty({size}, TensorOptions(dtype).device(a.device(5)));
  if (bytes == 0) return empty({0}, TensorOptions(dtype));
  struct File {
    int fd;
    ~File() {
      if (fd >= 0) ::close(fd);
    }
  } file{::open(name.c_str(), shared ? O_RDWR | O_CREAT : O_RDONLY, 0644)};
  VESTA_CHECK_AS(IoError, file.fd >= 0, a.name(), ": cannot open ", name);
  struct stat info{};
  VESTA_CHECK_AS(IoError, ::fstat(file.fd, &info) == 0 && S_ISREG(info.st_mode), a.name(), ": ", name, " is no regular file");
  if (info.st_size < bytes) {
    VESTA_CHECK_AS(IoError, shared, a.name(), ": ", name, " holds ", info.st_size, " bytes, expected ", bytes);
    VESTA_CHECK_AS(IoError, ::ftruncate(file.fd, bytes) == 0, a.name(), ": cannot make ", name, " ", bytes, " bytes long");
  }
  void* data = ::mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, file.fd, 0);
  VESTA_CHECK_AS(IoError, data != MAP_FAILED, a.name(), ": cannot map ", name);
  return from_blob(data, {size}, [bytes](void* p) { ::munmap(p, size_t(bytes)); }, TensorOptions(dtype));
}

constexpr OpDef table[] = {
OP("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor &self = a.tensor(0), &src = a.tensor(1);
      VESTA_CHECK(src.dim() <= self.dim(), "copy: cannot broadcast a tensor with ", src.dim(), " dims to one with ", self.dim());
      return src.to(self.dtype()).expand(self.sizes()).clone(MemoryFormat::Contiguous); },
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros(g.sizes(0), g.dy().options().dtype(g.dtype_of(0))); }, G(1) { return g.dy(); }); },
  .shard = {"copy"}, .doc = "src, broadcast and converted to the shape and dtype of self.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); s(s.t({3, 4}), s.t({4})); s(s.t({0, 3}), s.t({3})); }),
OP("fill.Tensor(Tensor self, Tensor value) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(1).dim() == 0, "fill: expected a 0-dim value, got ", a.tensor(1).dim(), " dims");
      return copy(a.tensor(0), a.tensor(1)); },
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros(g.sizes(0), g.dy().options().dtype(g.dtype_of(0))); }, G(1) { return g.dy().sum(); }); },
  .shard = {"copy"}, .doc = "A tensor like self full of a 0-dim tensor's value.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({})); s(s.t({0}), s.t({})); }),
OP("empty_permuted(int[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .types = storage_types, .infer = infer_permuted, .kernels = {{Cpu, [](const KernelCtx&) {}}}, .non_differentiable = true, .shard = {"create"},
  .doc = "Uninitialised elements whose dims lie in memory in the given order.",
  .samples = [](SampleGen& s) { s(std::vector<int64_t>{2, 3, 4}, std::vector<int64_t>{0, 2, 1}, s.dtype()); s(std::vector<int64_t>{}, std::vector<int64_t>{}, s.dtype()); }),
OP("new_empty_strided(Tensor self, int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return empty_strided(a.ints(1), a.ints(2), options_from(a, 3, a.tensor(0))); },
  .non_differentiable = true, .shard = {"factory"}, .doc = "empty_strided with self's dtype and device.",
  .samples = [](SampleGen& s) { s(s.t({2}), std::vector<int64_t>{2, 3}, std::vector<int64_t>{1, 2}); }),
OP("to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { return to(a.tensor(0), TensorOptions(DType(a.integer(2))).device(a.device(1)), a.flag(3), a.flag(4), format_at(a, 5)); },
  .shard = {"copy"}, .doc = "self on another device with another dtype.", .samples = [](SampleGen& s) { s(s.t({3, 4}), Device(), kFloat); s(s.t({3, 4}), Device(), s.dtype(), false, true); }),
OP("to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { return to(a.tensor(0), TensorOptions(a.tensor(1).dtype()).device(a.tensor(1).device()), a.flag(2), a.flag(3), format_at(a, 4)); },
  .shard = {"copy"}, .doc = "self with the dtype and device of another tensor.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.make({1}, {}, kFloat)); }),
OP("pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return a.tensor(0); }, .shard = {"decomp"},
  .doc = "self: no device of this build reads page-locked memory faster.", .samples = [](SampleGen& s) { s(s.t({3, 4})); }),
OP("from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) -> Results { return mapped_file(a); }, .non_differentiable = true, .shard = {"create"},
  .doc = "The first size elements of a file, mapped: shared mappings write through to it and lengthen it if need be.",
  .samples = [](SampleGen& s) { s("/dev/null", false, 0, s.dtype()); }),
OP("linalg_vander(Tensor x, *, int? N=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor x = a.tensor(0).dim() ? a.tensor(0) : a.tensor(0).unsqueeze(0);
      VESTA_CHECK_AS(TypeError, x.dtype() != kBool, "linalg_vander: does not take bool tensors");
      int64_t n = a.integer(1, x.size(-1));
      VESTA_CHECK(n > 1, "linalg_vander: expected N > 1, got ", n);
      std::vector<int64_t> sizes = x.sizes().vec();
      sizes.push_back(n - 1);
      Tensor powers = cumprod(x.unsqueeze(-1).expand(sizes), -1);
      sizes.back() = 1;
      return cat({ones(sizes, powers.options()), powers}, -1); },
  .shard = {"create"}, .doc = "Powers 0 to N - 1 of the elements in a new last dim.", .samples = [](SampleGen& s) { if (s.dtype() != kBool) { s(s.t({3})); s(s.t({2, 2}), 4); s(s.t({0, 3})); } }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(creation_forms, table)
