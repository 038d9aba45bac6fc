#pragma once
// MNIST and other data sets in its format (LeCun et al. 1998): IDX files of images and labels in one folder.
#include <string>

#include "vesta/data_loader.h"

namespace vesta::data::datasets {

// Images [1, rows, columns], float32 in [0, 1]; labels int64. Files are not downloaded: the folder holds
// train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-... for the test set. IoError where one cannot be read;
// ValueError, naming it, where its header or length is wrong.
class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override;
  bool is_train() const noexcept { return mode_ == Mode::kTrain; }
  const Tensor& images() const { return images_; }    // [n, 1, rows, columns]
  const Tensor& targets() const { return targets_; }  // [n]

 private:
  Mode mode_;
  Tensor images_, targets_;
};

}  // namespace vesta::data::datasets
