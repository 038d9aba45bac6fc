#pragma once
// Sequences of different lengths in one tensor: nn::utils::rnn, with libtorch's names.
//   auto packed = nn::utils::rnn::pack_padded_sequence(padded, lengths);   // padded [T, B, ...], lengths [B]
//   auto [out, h] = gru->forward_with_packed_input(packed);
//   auto [padded_out, same_lengths] = nn::utils::rnn::pad_packed_sequence(out);
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "vesta/ops.h"

namespace vesta::nn::utils::rnn {

// The rows of all sequences, the first row of each first, longest sequences first.
class PackedSequence {
 public:
  PackedSequence() = default;
  // data [rows, ...]; batch_sizes: int64, how many sequences reach each step. Where sequences were sorted, the permutation
  // that sorted them and its inverse (made from it where undefined).
  PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {}, Tensor unsorted_indices = {});
  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }
  PackedSequence to(const TensorOptions& options) const;
  PackedSequence to(DType dtype) const { return with_data(data_.to(dtype)); }
  PackedSequence cpu() const { return *this; }
  bool is_cuda() const { return data_.is_cuda(); }
  PackedSequence with_data(Tensor data) const;

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};

// The inverse of a permutation; undefined for undefined.
Tensor invert_permutation(const Tensor& permutation);

// input [T, B, ...], or [B, T, ...] with batch_first; lengths: B integers in [1, T], falling where enforce_sorted, else
// the sequences are sorted first. ValueError otherwise.
PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first = false,
                                    bool enforce_sorted = true);
// The padded tensor, at least total_length long, and the lengths, both in the order from before packing.
std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false,
                                               double padding_value = 0,
                                               std::optional<int64_t> total_length = std::nullopt);
// Sequences [T_i, ...] of one trailing shape in one tensor [T, B, ...], or [B, T, ...]; padding_side "right" or "left".
using vesta::pad_sequence;
PackedSequence pack_sequence(TensorList sequences, bool enforce_sorted = true);
// The reverse of pad_sequence for lengths [B].
std::vector<Tensor> unpad_sequence(const Tensor& padded, const Tensor& lengths, bool batch_first = false);
std::vector<Tensor> unpack_sequence(const PackedSequence& sequence);

}  // namespace vesta::nn::utils::rnn
