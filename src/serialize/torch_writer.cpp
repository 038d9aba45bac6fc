// Writing checkpoints for torch.load(weights_only=True): the archive of PyTorch 1.6 and later, protocol 2.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "serialize/format_error.h"
#include "serialize/torch_values.h"
#include "serialize/zip.h"
#include "vesta/ops.h"
#include "vesta/torch_file.h"

namespace vesta {
namespace {

// Tensors of one dtype over one storage. One alone is written by its elements; several by the part that they show, so
// that they share it after loading.
struct Group {
  DType dtype;
  uint64_t begin = UINT64_MAX, end = 0;  // bytes of the storage
  Tensor first;
  bool several = false;  // different views
  std::string key;
  Tensor elements;  // what is written, dense
};

struct Placed {
  Tensor tensor;  // detached, without lazy bits
  bool requires_grad;
  Group* group;
};

bool same_view(const Tensor& a, const Tensor& b) {
  return a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

class Writer {
 public:
  void collect(const IValue& value, int depth = 0) {
    VESTA_CHECK(depth < kMaxTorchDepth, "save_torch: values lie in each other more than ", kMaxTorchDepth,
                " deep and could not be read back");
    switch (value.kind()) {
      case IValue::Kind::Tensor:
        place(value.toTensor());
        break;
      case IValue::Kind::List:
        for (auto& v : value.toList()) collect(v, depth + 1);
        break;
      case IValue::Kind::Tuple:
        for (auto& v : value.toTuple()) collect(v, depth + 1);
        break;
      case IValue::Kind::Dict:
        for (auto& [key, v] : value.toDict()) {
          collect(key, depth + 1);
          collect(v, depth + 1);
        }
        break;
      default:
        break;
    }
  }

  void emit(const IValue& v) {
    switch (v.kind()) {
      case IValue::Kind::None:
        return pickle_.none();
      case IValue::Kind::Bool:
        return pickle_.boolean(v.toBool());
      case IValue::Kind::Int:
        return pickle_.integer(v.toInt());
      case IValue::Kind::Double:
        return pickle_.number(v.toDouble());
      case IValue::Kind::Complex:
        pickle_.global("__builtin__", "complex");
        pickle_.op(PickleWriter::kMark);
        pickle_.number(v.toComplexDouble().real());
        pickle_.number(v.toComplexDouble().imag());
        pickle_.op(PickleWriter::kTuple);
        return pickle_.op(PickleWriter::kReduce);
      case IValue::Kind::String:
        return pickle_.text(v.toStringRef());
      case IValue::Kind::DType:
        return pickle_.global("torch", dtype_name(v.toDType()));
      case IValue::Kind::Device:
        pickle_.global("torch", "device");
        pickle_.text(v.toDevice().str());
        pickle_.op(PickleWriter::kTuple1);
        return pickle_.op(PickleWriter::kReduce);
      case IValue::Kind::Tensor:
        return emit(v.toTensor());
      case IValue::Kind::List:
        pickle_.op(PickleWriter::kEmptyList);
        pickle_.op(PickleWriter::kMark);
        for (auto& item : v.toList()) emit(item);
        return pickle_.op(PickleWriter::kAppends);
      case IValue::Kind::Tuple:
        pickle_.op(PickleWriter::kMark);
        for (auto& item : v.toTuple()) emit(item);
        return pickle_.op(PickleWriter::kTuple);
      case IValue::Kind::Dict:
        pickle_.op(PickleWriter::kEmptyDict);
        pickle_.op(PickleWriter::kMark);
        for (auto& [key, item] : v.toDict()) {
          emit(key);
          emit(item);
        }
        return pickle_.op(PickleWriter::kSetItems);
    }
  }

  std::string finish() {
    std::string pickle = pickle_.finish();
    VESTA_CHECK(pickle.size() <= kMaxPickleBytes, "save_torch: the values take ", pickle.size(),
                " bytes beside the tensors' elements, at most ", kMaxPickleBytes, " can be read back");
    return pickle;
  }
  const std::vector<Group*>& groups() const { return order_; }

 private:
  void place(const Tensor& t) {
    if (placed_.count(t.impl())) return;
    VESTA_CHECK(t.is_cpu() && (t.impl()->bits & TensorImpl::kHasData),
                "save_torch: a tensor has no data on the CPU but is on ", t.device().str());
    Tensor plain = t.detach().resolve_conj().resolve_neg();
    Group& group = groups_[{plain.impl()->storage, plain.dtype()}];
    if (!group.first.defined()) {
      group.dtype = plain.dtype();
      group.first = plain;
      group.key = std::to_string(order_.size());
      order_.push_back(&group);
    }
    group.several |= !same_view(group.first, plain);
    if (plain.numel()) {
      uint64_t last = uint64_t(plain.storage_offset());
      for (size_t d = 0; d < size_t(plain.dim()); ++d)
        last += uint64_t((plain.sizes()[d] - 1) * plain.strides()[d]);
      group.begin = std::min(group.begin, uint64_t(plain.storage_offset()) * plain.element_size());
      group.end = std::max(group.end, (last + 1) * plain.element_size());
    }
    placed_.emplace(t.impl(), Placed{std::move(plain), t.requires_grad(), &group});
  }

  // Sets what a group writes, when its first tensor is met.
  void settle(Group& group) {
    if (group.elements.defined()) return;
    if (group.end == 0) {
      group.begin = 0;
      group.elements = empty({0}, TensorOptions(group.dtype));
    } else if (group.several) {
      const auto* base = static_cast<const std::byte*>(group.first.impl()->storage->data);
      const int64_t count = int64_t((group.end - group.begin) / element_size(group.dtype));
      group.elements = from_blob(
          const_cast<std::byte*>(base) + group.begin, {count}, [keep = group.first](void*) {},
          TensorOptions(group.dtype));
    } else if (group.first.is_non_overlapping_and_dense()) {
      group.elements = from_blob(
          group.first.data_ptr(), {group.first.numel()}, [keep = group.first](void*) {},
          TensorOptions(group.dtype));
    } else {
      group.elements = group.first.contiguous();
      group.begin = UINT64_MAX;  // its view is replaced by a contiguous one
    }
  }

  void emit(const Tensor& t) {
    if (const auto it = memo_.find(t.impl()); it != memo_.end()) return pickle_.get(it->second);
    const Placed& p = placed_.at(t.impl());
    Group& group = *p.group;
    settle(group);
    // Types without a storage class are written as torch.save does: untyped bytes, and the dtype beside them.
    const char* storage_class = storage_of_dtype(group.dtype);
    pickle_.global("torch._utils", storage_class ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    pickle_.op(PickleWriter::kMark);
    pickle_.op(PickleWriter::kMark);
    pickle_.text("storage");
    if (storage_class)
      pickle_.global("torch", storage_class);
    else
      pickle_.global("torch.storage", "UntypedStorage");
    pickle_.text(group.key);
    pickle_.text("cpu");
    pickle_.integer(storage_class ? group.elements.numel() : int64_t(group.elements.nbytes()));
    pickle_.op(PickleWriter::kTuple);
    pickle_.op(PickleWriter::kReference);
    const bool packed = group.begin == UINT64_MAX;
    const bool nothing = p.tensor.numel() == 0;
    pickle_.integer(
        packed || nothing ? 0 : p.tensor.storage_offset() - int64_t(group.begin / element_size(group.dtype)));
    whole_numbers(p.tensor.sizes());
    whole_numbers(packed ? group.elements.strides() : p.tensor.strides());
    pickle_.boolean(p.requires_grad);
    pickle_.global("collections", "OrderedDict");
    pickle_.op(PickleWriter::kEmptyTuple);
    pickle_.op(PickleWriter::kReduce);
    if (!storage_class) pickle_.global("torch", dtype_name(group.dtype));
    pickle_.op(PickleWriter::kTuple);
    pickle_.op(PickleWriter::kReduce);
    const auto id = uint32_t(memo_.size());
    pickle_.put(id);
    memo_.emplace(t.impl(), id);
  }

  void whole_numbers(IntArrayRef values) {
    pickle_.op(PickleWriter::kMark);
    for (int64_t v : values) pickle_.integer(v);
    pickle_.op(PickleWriter::kTuple);
  }

  PickleWriter pickle_;
  std::map<std::pair<Storage*, DType>, Group> groups_;
  std::vector<Group*> order_;
  std::unordered_map<TensorImpl*, Placed> placed_;
  std::unordered_map<TensorImpl*, uint32_t> memo_;
};

}  // namespace

void write_torch_zip(ByteSink& sink, const IValue& value, bool always_zip64) {
  Writer writer;
  writer.collect(value);
  writer.emit(value);
  const std::string pickle = writer.finish();
  ZipWriter zip(sink, always_zip64);
  zip.add("archive/data.pkl", pickle);
  zip.add("archive/byteorder", "little");
  for (const Group* group : writer.groups()) {
    const Tensor& t = group->elements;
    zip.add("archive/data/" + group->key, t.nbytes() ? t.data_ptr() : nullptr, t.nbytes());
  }
  zip.add("archive/version", "3\n");
  zip.finish();
}

void save_torch(const std::string& path, const IValue& value) {
  FileSink file(path);
  write_torch_zip(file, value);
  file.commit();
}

std::vector<char> pickle_save(const IValue& value) {
  MemorySink<std::vector<char>> sink;
  write_torch_zip(sink, value);
  return std::move(sink.content);
}

}  // namespace vesta
