#pragma once
// torch::tensor and at::tensor: tensors from numbers, nested brace lists, vectors and ArrayRefs.
//   torch::tensor({{1, 2}, {3, 4}});   // int64; fractions take the default dtype
//   at::tensor({1.f, 2.f});            // the dtype of the C++ type
// ValueError where a list is ragged or mixes dtypes, and where a complex number is to become a real one.
#include "torch/compat/namespaces.h"

namespace vesta::detail {

enum class TensorDataContainerType { Scalar, InitList, Tensor };

template <class T>
inline constexpr bool is_element =
    std::is_arithmetic_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <class T>
constexpr DType element_dtype() {
  if constexpr (std::is_same_v<T, long> || std::is_same_v<T, unsigned long>)
    return kInt64;
  else if constexpr (std::is_same_v<T, unsigned>)
    return kInt64;
  else if constexpr (std::is_same_v<T, char>)
    return kInt8;
  else
    return DTypeOf<T>::value;
}

// A 1-d CPU tensor of the dtype of T.
template <class T>
vesta::Tensor tensor_from(ArrayRef<T> values) {
  NoGradGuard no_grad;
  vesta::Tensor out = vesta::empty({int64_t(values.size())}, TensorOptions(element_dtype<T>()));
  if constexpr (std::is_same_v<T, unsigned>)
    std::copy(values.begin(), values.end(), static_cast<int64_t*>(out.data_ptr()));
  else if (!values.empty())
    std::copy(values.begin(), values.end(), static_cast<T*>(out.data_ptr()));
  return out;
}
// std::vector<bool> has no array of bools.
template <class T>
vesta::Tensor tensor_from(const std::vector<T>& values) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::unique_ptr<bool[]> copy(new bool[values.size() + 1]);
    std::copy(values.begin(), values.end(), copy.get());
    return tensor_from(ArrayRef<bool>(copy.get(), values.size()));
  } else {
    return tensor_from(ArrayRef<T>(values));
  }
}

// libtorch's rule: integers become int64, fractions the default dtype, unless the program says otherwise.
inline DType tensor_dtype(DType written) {
  const DType standard = get_default_dtype();
  if (written == kInt32 || written == kInt64) return kInt64;
  if (written == kFloat32 || written == kFloat64) return standard;
  if (written == kComplex64 || written == kComplex128) return standard == kFloat64 ? kComplex128 : kComplex64;
  return written;
}

// A number, a list of these, or a tensor (of a vector), as a call torch::tensor({...}) gives it.
class TensorDataContainer {
 public:
  // Of {}: an empty list.
  TensorDataContainer()
      : type_(TensorDataContainerType::InitList), scalar_type_(get_default_dtype()), sizes_{0} {}
  template <class T, std::enable_if_t<is_element<T>, int> = 0>
  TensorDataContainer(T value)  // NOLINT: implicit, here and below
      : type_(TensorDataContainerType::Scalar), scalar_type_(element_dtype<T>()), scalar_(value) {}
  TensorDataContainer(std::initializer_list<TensorDataContainer> list)
      : type_(TensorDataContainerType::InitList), list_(list) {
    const TensorDataContainer& first = list_.front();
    scalar_type_ = first.scalar_type_;
    sizes_ = first.sizes_;
    sizes_.insert(sizes_.begin(), int64_t(list_.size()));
    for (const TensorDataContainer& item : list_) {
      VESTA_CHECK(item.sizes_ == first.sizes_, "Expected all sub-lists to have sizes: ", joined(first.sizes_),
                  " (e.g. ", first.str(), "), but got sub-list ", item.str(),
                  " with sizes: ", joined(item.sizes_));
      VESTA_CHECK_AS(
          TypeError, item.scalar_type_ == scalar_type_,
          "Expected all elements of the tensor to have the same scalar type: ", to_string(scalar_type_),
          ", but got element of scalar type: ", to_string(item.scalar_type_));
    }
  }
  template <class T, std::enable_if_t<is_element<T>, int> = 0>
  TensorDataContainer(ArrayRef<T> values) : TensorDataContainer(tensor_from(values)) {}
  template <class T, std::enable_if_t<is_element<T>, int> = 0>
  TensorDataContainer(const std::vector<T>& values) : TensorDataContainer(tensor_from(values)) {}

  bool is_scalar() const { return type_ == TensorDataContainerType::Scalar; }
  bool is_init_list() const { return type_ == TensorDataContainerType::InitList; }
  bool is_tensor() const { return type_ == TensorDataContainerType::Tensor; }
  const Scalar& scalar() const {
    VESTA_CHECK(is_scalar(),
                "Can only call `scalar()` on a TensorDataContainer that has `is_scalar() == true`");
    return scalar_;
  }
  const std::vector<TensorDataContainer>& init_list() const {
    VESTA_CHECK(is_init_list(),
                "Can only call `init_list()` on a TensorDataContainer that has `is_init_list() == true`");
    return list_;
  }
  const vesta::Tensor& tensor() const {
    VESTA_CHECK(is_tensor(),
                "Can only call `tensor()` on a TensorDataContainer that has `is_tensor() == true`");
    return tensor_;
  }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  DType scalar_type() const { return scalar_type_; }

  vesta::Tensor convert_to_tensor(TensorOptions options) const {
    const DType dtype = options.dtype_opt().value_or(tensor_dtype(scalar_type_));
    if (is_complex(scalar_type_) && !is_complex(dtype)) {
      VESTA_CHECK(!is_tensor(),
                  "can not do torch::tensor(complex, dtype=non-complex) because complex can not be "
                  "casted to real number without loss of information");
      check_real(dtype);
    }
    vesta::Tensor out;
    {
      NoGradGuard no_grad;
      if (is_tensor()) {
        out = tensor_.to(dtype, false, true);
      } else {
        // Filled as what was written, then converted at once.
        vesta::Tensor written = vesta::empty(sizes_, TensorOptions(scalar_type_));
        char* to = static_cast<char*>(written.data_ptr());
        fill(to);
        out = written.to(dtype);
      }
      if (options.device_opt()) out = out.to(TensorOptions(*options.device_opt()));
    }
    if (options.requires_grad()) out.set_requires_grad(true);
    return out;
  }

  void print(std::ostream& out) const {
    if (is_scalar()) {
      print(out, scalar_);
    } else if (is_init_list()) {
      out << '{';
      for (size_t i = 0; i < list_.size(); ++i) {
        if (i) out << ", ";
        list_[i].print(out);
      }
      out << '}';
    } else {
      out << '{';
      for (int64_t i = 0; i < tensor_.numel(); ++i) {
        if (i) out << ", ";
        print(out, tensor_[i].item());
      }
      out << '}';
    }
  }
  std::string str() const {
    std::ostringstream out;
    print(out);
    return out.str();
  }

 private:
  explicit TensorDataContainer(vesta::Tensor tensor)
      : type_(TensorDataContainerType::Tensor),
        scalar_type_(tensor.dtype()),
        sizes_(tensor.sizes().vec()),
        tensor_(std::move(tensor)) {}
  static std::string joined(const std::vector<int64_t>& sizes) {
    std::ostringstream out;
    for (size_t i = 0; i < sizes.size(); ++i) out << (i ? ", " : "") << sizes[i];
    return out.str();
  }
  static void print(std::ostream& out, const Scalar& value) {
    if (value.isComplex())
      out << value.toComplexDouble();
    else if (value.isFloatingPoint())
      out << value.toDouble();
    else
      out << value.toLong();
  }
  void check_real(DType dtype) const {
    if (is_scalar())
      VESTA_CHECK(scalar_.toComplexDouble().imag() == 0, "value cannot be converted to type ",
                  dtype == kFloat32 ? "float" : dtype_name(dtype), " without overflow");
    for (const TensorDataContainer& item : list_) item.check_real(dtype);
  }
  template <class T>
  static void put(char*& to, T value) {
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  }
  void fill(char*& to) const {
    for (const TensorDataContainer& item : list_) item.fill(to);
    if (!is_scalar()) return;
    switch (scalar_type_) {
      case kBool:
        return put(to, scalar_.toBool());
      case kUInt8:
        return put(to, uint8_t(scalar_.toLong()));
      case kInt8:
        return put(to, int8_t(scalar_.toLong()));
      case kInt16:
        return put(to, int16_t(scalar_.toLong()));
      case kInt32:
        return put(to, int32_t(scalar_.toLong()));
      case kInt64:
        return put(to, scalar_.toLong());
      case kUInt16:
        return put(to, scalar_.toUInt16());
      case kUInt32:
        return put(to, scalar_.toUInt32());
      case kUInt64:
        return put(to, scalar_.toUInt64());
      case kFloat16:
        return put(to, Half(float(scalar_.toDouble())));
      case kBFloat16:
        return put(to, BFloat16(float(scalar_.toDouble())));
      case kFloat32:
        return put(to, float(scalar_.toDouble()));
      case kFloat64:
        return put(to, scalar_.toDouble());
      case kComplex64:
        return put(to, std::complex<float>(scalar_.toComplexDouble()));
      default:
        return put(to, scalar_.toComplexDouble());
    }
  }

  TensorDataContainerType type_;
  DType scalar_type_;
  std::vector<int64_t> sizes_;
  Scalar scalar_;
  std::vector<TensorDataContainer> list_;
  vesta::Tensor tensor_;
};

inline std::ostream& operator<<(std::ostream& out, const TensorDataContainer& container) {
  container.print(out);
  return out;
}
}  // namespace vesta::detail

namespace torch {
inline vesta::Tensor tensor(const detail::TensorDataContainer& data, const TensorOptions& options = {}) {
  return data.convert_to_tensor(options);
}
}  // namespace torch

namespace at {
namespace detail {
inline vesta::Tensor with_options(const vesta::Tensor& values, const TensorOptions& options) {
  const DType dtype = options.dtype_opt().value_or(values.dtype());
  VESTA_CHECK(!is_complex(values.dtype()) || is_complex(dtype), "\"tensor_cpu\" not implemented for '",
              dtype == kFloat32 ? "Float" : vesta::to_string(dtype), "'");
  vesta::Tensor out = values.to(options.dtype(dtype).requires_grad(false));
  if (options.requires_grad()) out.set_requires_grad(true);
  return out;
}
}  // namespace detail
template <class T>
vesta::Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  return detail::with_options(torch::detail::tensor_from(values), options);
}
template <class T>
vesta::Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T>
vesta::Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return detail::with_options(torch::detail::tensor_from(values), options);
}
// As in libtorch, of one dim.
template <class T, std::enable_if_t<torch::detail::is_element<T>, int> = 0>
vesta::Tensor tensor(T value, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(value), options);
}
}  // namespace at
