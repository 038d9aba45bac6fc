// IDX files: a big-endian header (0, 0, type, dims, then the size of each dim) and bytes.
#include "base/checked_math.h"
#include "base/file.h"
#include "vesta/data_mnist.h"
#include "vesta/ops.h"

namespace vesta::data::datasets {
namespace {

struct Idx {
  std::vector<int64_t> sizes;
  std::string bytes;  // the whole file
  size_t start = 0;   // of the elements
};

Idx read_idx(const std::string& path, size_t dims) {
  Idx idx;
  idx.bytes = read_all(path);
  const auto byte = [&](size_t i) { return int64_t(uint8_t(idx.bytes[i])); };
  idx.start = 4 + 4 * dims;
  VESTA_CHECK(idx.bytes.size() >= idx.start, "MNIST: ", path, ": expected a header of ", idx.start,
              " bytes, got ", idx.bytes.size());
  VESTA_CHECK(byte(0) == 0 && byte(1) == 0 && byte(2) == 8 && byte(3) == int64_t(dims), "MNIST: ", path,
              ": expected an IDX file of bytes with ", dims, " dims");
  for (size_t d = 0; d < dims; ++d) {
    int64_t size = 0;
    for (size_t k = 0; k < 4; ++k) size = size * 256 + byte(4 + 4 * d + k);
    idx.sizes.push_back(size);
  }
  const int64_t count = checked_numel(idx.sizes, "MNIST");
  VESTA_CHECK(size_t(count) == idx.bytes.size() - idx.start, "MNIST: ", path, ": expected ", count,
              " elements behind the header, got ", idx.bytes.size() - idx.start);
  return idx;
}

Tensor elements(const Idx& idx, std::vector<int64_t> sizes) {
  Tensor out = empty(sizes, TensorOptions(kUInt8));
  std::copy(idx.bytes.begin() + std::ptrdiff_t(idx.start), idx.bytes.end(),
            reinterpret_cast<char*>(out.data_ptr<uint8_t>()));
  return out;
}

}  // namespace

MNIST::MNIST(const std::string& root, Mode mode) : mode_(mode) {
  const std::string prefix = root + (is_train() ? "/train-" : "/t10k-");
  const std::string labels_path = prefix + "labels-idx1-ubyte";
  const Idx images = read_idx(prefix + "images-idx3-ubyte", 3), labels = read_idx(labels_path, 1);
  VESTA_CHECK(images.sizes[0] == labels.sizes[0], "MNIST: ", labels_path, ": expected ", images.sizes[0],
              " labels, as there are images, got ", labels.sizes[0]);
  images_ = elements(images, {images.sizes[0], 1, images.sizes[1], images.sizes[2]}).to(kFloat32) / 255;
  targets_ = elements(labels, labels.sizes).to(kInt64);
}

Example<> MNIST::get(size_t index) {
  VESTA_CHECK_AS(IndexError, index < size_t(targets_.size(0)), "MNIST: index ", index, " is outside of ",
                 targets_.size(0), " examples");
  return {images_.select(0, int64_t(index)), targets_.select(0, int64_t(index))};
}
std::optional<size_t> MNIST::size() const { return size_t(targets_.size(0)); }

}  // namespace vesta::data::datasets
