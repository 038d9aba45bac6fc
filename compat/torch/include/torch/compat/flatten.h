#pragma once
// Many tensors in one vector and back, as torch::utils has it.
#include "torch/compat/namespaces.h"

namespace torch::utils {
// All elements, one tensor after the other. The tensors must have one dtype.
inline vesta::Tensor flatten_dense_tensors(TensorList tensors) {
  std::vector<vesta::Tensor> rows;
  for (const vesta::Tensor& t : tensors) rows.push_back(t.reshape({-1}));
  return vesta::cat(rows);
}
// Parts of `flat` in the sizes of `tensors`; empty ones have memory of their own.
inline std::vector<vesta::Tensor> unflatten_dense_tensors(const vesta::Tensor& flat, TensorList tensors) {
  std::vector<vesta::Tensor> out;
  int64_t at = 0;
  for (const vesta::Tensor& t : tensors) {
    if (t.numel() == 0) {
      out.push_back(vesta::empty(t.sizes(), TensorOptions(flat.dtype())));
      continue;
    }
    out.push_back(flat.narrow(0, at, t.numel()).view(t.sizes()));
    at += t.numel();
  }
  return out;
}
}  // namespace torch::utils
