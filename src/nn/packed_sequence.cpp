// nn::utils::rnn: packing and padding are row selections of the tensor with time and batch joined, so that they have a
// gradient.
#include "vesta/nn_packed_sequence.h"

#include <algorithm>

#include "vesta/ops.h"

namespace vesta::nn::utils::rnn {
namespace {

std::vector<int64_t> integers(const char* function, const char* what, const Tensor& t) {
  VESTA_CHECK_AS(TypeError, t.defined() && !t.is_floating_point() && !t.is_complex(), function, ": expected ",
                 what, " of an integer type");
  VESTA_CHECK(t.dim() == 1, function, ": expected ", what, " of one dim, got ", t.dim());
  const Tensor flat = t.to(kInt64).contiguous();
  const int64_t* data = flat.data_ptr<int64_t>();
  return std::vector<int64_t>(data, data + flat.numel());
}

Tensor as_tensor(const std::vector<int64_t>& values) {
  Tensor out = empty({int64_t(values.size())}, TensorOptions(kInt64));
  std::copy(values.begin(), values.end(), out.data_ptr<int64_t>());
  return out;
}

// [A, B, ...] -> [A * B, ...].
Tensor join_first(const Tensor& t) {
  std::vector<int64_t> sizes{t.size(0) * t.size(1)};
  for (int64_t d = 2; d < t.dim(); ++d) sizes.push_back(t.size(d));
  return t.reshape(sizes);
}

}  // namespace

PackedSequence::PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices,
                               Tensor unsorted_indices)
    : data_(std::move(data)),
      batch_sizes_(std::move(batch_sizes)),
      sorted_indices_(std::move(sorted_indices)),
      unsorted_indices_(std::move(unsorted_indices)) {
  VESTA_CHECK(batch_sizes_.defined() && batch_sizes_.is_cpu(),
              "PackedSequence: batch_sizes must be on the CPU");
  if (!unsorted_indices_.defined()) unsorted_indices_ = invert_permutation(sorted_indices_);
}
PackedSequence PackedSequence::to(const TensorOptions& options) const { return with_data(data_.to(options)); }
PackedSequence PackedSequence::with_data(Tensor data) const {
  return PackedSequence(std::move(data), batch_sizes_, sorted_indices_, unsorted_indices_);
}

Tensor invert_permutation(const Tensor& permutation) {
  if (!permutation.defined()) return {};
  const auto order = integers("invert_permutation", "a permutation", permutation);
  std::vector<int64_t> inverse(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    VESTA_CHECK(order[i] >= 0 && order[i] < int64_t(order.size()) && inverse[size_t(order[i])] < 0,
                "invert_permutation: ", order[i], " at ", i, " is out of range or there twice");
    inverse[size_t(order[i])] = int64_t(i);
  }
  return as_tensor(inverse);
}

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first,
                                    bool enforce_sorted) {
  constexpr const char* kName = "pack_padded_sequence";
  VESTA_CHECK(input.dim() >= 2, kName, ": expected an input of at least 2 dims, got ", input.dim());
  const int64_t batch_dim = batch_first ? 0 : 1;
  const int64_t batch = input.size(batch_dim), steps = input.size(1 - batch_dim);
  std::vector<int64_t> length = integers(kName, "lengths", lengths);
  VESTA_CHECK(int64_t(length.size()) == batch, kName, ": expected ", batch, " lengths, got ", length.size());
  VESTA_CHECK(batch > 0, kName, ": cannot pack no sequences");
  for (const int64_t n : length)
    VESTA_CHECK(n > 0 && n <= steps, kName, ": expected lengths between 1 and ", steps, ", got ", n);

  Tensor sorted_indices;
  std::vector<int64_t> order(length.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
  if (enforce_sorted) {
    for (size_t i = 1; i < length.size(); ++i)
      VESTA_CHECK(length[i - 1] >= length[i], kName,
                  ": expected falling lengths, or enforce_sorted = false; got ", length[i - 1], " before ",
                  length[i]);
  } else {
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return length[size_t(a)] > length[size_t(b)]; });
    sorted_indices = as_tensor(order);
  }

  std::vector<int64_t> rows, batch_sizes;
  for (int64_t t = 0; t < length[size_t(order[0])]; ++t) {
    int64_t active = 0;
    for (; active < batch && length[size_t(order[size_t(active)])] > t; ++active) {
      const int64_t b = order[size_t(active)];
      rows.push_back(batch_first ? b * steps + t : t * batch + b);
    }
    batch_sizes.push_back(active);
  }
  return PackedSequence(join_first(input).index_select(0, as_tensor(rows)), as_tensor(batch_sizes),
                        sorted_indices);
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first,
                                               double padding_value, std::optional<int64_t> total_length) {
  constexpr const char* kName = "pad_packed_sequence";
  const auto batch_sizes = integers(kName, "batch_sizes", sequence.batch_sizes());
  VESTA_CHECK(!batch_sizes.empty() && batch_sizes[0] > 0, kName, ": the sequence is empty");
  const int64_t batch = batch_sizes[0];
  int64_t steps = int64_t(batch_sizes.size()), rows = 0;
  for (size_t t = 0; t < batch_sizes.size(); ++t) {
    VESTA_CHECK(batch_sizes[t] > 0 && batch_sizes[t] <= (t ? batch_sizes[t - 1] : batch), kName,
                ": expected falling batch_sizes above 0");
    rows += batch_sizes[t];
  }
  VESTA_CHECK(sequence.data().dim() > 0 && sequence.data().size(0) == rows, kName, ": expected ", rows,
              " rows of data, got ", sequence.data().dim() ? sequence.data().size(0) : 0);
  if (total_length) {
    VESTA_CHECK(*total_length >= steps, kName, ": expected total_length of at least ", steps, ", got ",
                *total_length);
    steps = *total_length;
  }
  // Where each sequence stood before packing.
  std::vector<int64_t> place(static_cast<size_t>(batch));
  for (int64_t b = 0; b < batch; ++b) place[size_t(b)] = b;
  if (sequence.sorted_indices().defined()) {
    place = integers(kName, "sorted_indices", sequence.sorted_indices());
    VESTA_CHECK(int64_t(place.size()) == batch, kName, ": expected ", batch, " sorted_indices, got ",
                place.size());
    invert_permutation(sequence.sorted_indices());  // checks it
  }
  std::vector<int64_t> index, length(static_cast<size_t>(batch), 0);
  index.reserve(size_t(rows));
  for (size_t t = 0; t < batch_sizes.size(); ++t)
    for (int64_t i = 0; i < batch_sizes[t]; ++i) {
      const int64_t b = place[size_t(i)];
      index.push_back(batch_first ? b * steps + int64_t(t) : int64_t(t) * batch + b);
      ++length[size_t(b)];
    }
  std::vector<int64_t> flat{steps * batch},
      shape = batch_first ? std::vector<int64_t>{batch, steps} : std::vector<int64_t>{steps, batch};
  for (int64_t d = 1; d < sequence.data().dim(); ++d) {
    flat.push_back(sequence.data().size(d));
    shape.push_back(sequence.data().size(d));
  }
  const Tensor padded =
      full(flat, padding_value, sequence.data().options()).index_copy(0, as_tensor(index), sequence.data());
  return {padded.reshape(shape), as_tensor(length)};
}

PackedSequence pack_sequence(TensorList sequences, bool enforce_sorted) {
  std::vector<int64_t> lengths;
  for (const Tensor& sequence : sequences) {
    VESTA_CHECK(sequence.dim() > 0, "pack_sequence: expected sequences of at least one dim");
    lengths.push_back(sequence.size(0));
  }
  return pack_padded_sequence(pad_sequence(sequences), as_tensor(lengths), false, enforce_sorted);
}

std::vector<Tensor> unpad_sequence(const Tensor& padded, const Tensor& lengths, bool batch_first) {
  VESTA_CHECK(padded.dim() >= 2, "unpad_sequence: expected at least 2 dims, got ", padded.dim());
  const auto length = integers("unpad_sequence", "lengths", lengths);
  const Tensor by_sequence = batch_first ? padded : padded.transpose(0, 1);
  VESTA_CHECK(int64_t(length.size()) == by_sequence.size(0), "unpad_sequence: expected ", by_sequence.size(0),
              " lengths, got ", length.size());
  std::vector<Tensor> out;
  for (size_t b = 0; b < length.size(); ++b) {
    VESTA_CHECK(length[b] >= 0 && length[b] <= by_sequence.size(1), "unpad_sequence: a length of ", length[b],
                " does not fit into ", by_sequence.size(1), " steps");
    out.push_back(by_sequence.select(0, int64_t(b)).narrow(0, 0, length[b]));
  }
  return out;
}

std::vector<Tensor> unpack_sequence(const PackedSequence& sequence) {
  const auto [padded, lengths] = pad_packed_sequence(sequence, /*batch_first=*/true);
  return unpad_sequence(padded, lengths, /*batch_first=*/true);
}

}  // namespace vesta::nn::utils::rnn
