#pragma once
// PyTorch's checkpoints: files of torch.save, read without executing anything, and files that torch.load reads with
// weights_only=True. Also read: archives of torch.jit and libtorch's torch::save (their attributes), and the format before
// PyTorch 1.6. Reading is memory-mapped, as load_safetensors: tensors show the file, writing to them does not change it.
#include <string>
#include <vector>

#include "vesta/ivalue.h"
#include "vesta/ordered_dict.h"

namespace vesta {

struct LoadTorchOptions {
  // Compares the checksum of each entry, which reads the whole file. PyTorch writes wrong ones where
  // torch.serialization.set_crc32_options(False) was called.
  bool check_crc = true;
};

// What torch.save was given: dicts, lists, tuples, numbers, text and tensors, to any depth up to 400. Tensors keep their
// strides, and those that shared elements share them. Wherever they were saved from, they are on the CPU. bytes become
// strings; OrderedDict and the objects of TorchScript become dicts.
// IoError: unreadable or malformed, the message says where. NotImplementedError, by name: a Python class or function that
// is not on a short list (pickled modules, sparse or quantised tensors, numpy objects), or a dtype that Vesta has not got.
IValue load_torch(const std::string& path, const LoadTorchOptions& options = {});

// Writes a file that torch.load(path, weights_only=True) reads. Tensors that share a storage share it in the file; of a
// storage only what they show is written. The file appears complete or not at all. ValueError: text that is not UTF-8, a
// tensor without data on the CPU. IoError: the system's reason.
//   save_torch("model.pt", GenericDict{{"weight", w}, {"epoch", 3}});
void save_torch(const std::string& path, const IValue& value);

// The same in memory, with libtorch's names.
std::vector<char> pickle_save(const IValue& value);
IValue pickle_load(const std::vector<char>& data);

// The tensors in nested dicts, lists and tuples by dotted name ("model.0.weight"), in their order; other values are left
// out, and named in `others` where given. A tensor alone has the name "0". ValueError: a name that appears twice.
OrderedDict<std::string, Tensor> named_tensors(const IValue& value,
                                               std::vector<std::string>* others = nullptr);

}  // namespace vesta
