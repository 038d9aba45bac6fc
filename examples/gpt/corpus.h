#pragma once
// Bytes to train on: one file (gzip is unpacked) or every file of a folder, split into training and validation parts.
#include <string>
#include <utility>
#include <vector>

#include "vesta/tensor.h"

namespace gpt {

class Corpus {
 public:
  // Throws IoError where nothing can be read, ValueError where there are too few bytes for blocks of `block`.
  Corpus(const std::string& path, int64_t block);

  // Tokens and next tokens, [batch, block] int64, at positions drawn from (seed, step) alone.
  std::pair<vesta::Tensor, vesta::Tensor> batch(int64_t batch, uint64_t seed, uint64_t step) const;
  // The k-th of a fixed set of validation batches.
  std::pair<vesta::Tensor, vesta::Tensor> validation_batch(int64_t batch, int64_t k) const;
  size_t train_bytes() const { return split_; }
  size_t validation_bytes() const { return bytes_.size() - split_; }

 private:
  std::pair<vesta::Tensor, vesta::Tensor> gather(const std::vector<int64_t>& starts) const;
  std::vector<unsigned char> bytes_;
  size_t split_ = 0;
  int64_t block_;
};

}  // namespace gpt
