#pragma once
// Tensors in files: the safetensors format (a JSON header, then raw little-endian elements), which other frameworks read
// and write too. Files are untrusted input: every length, offset, name and type is checked before it is used.
#include <map>
#include <string>

#include "vesta/tensor.h"

namespace vesta {

using TensorMap = std::map<std::string, Tensor>;
using MetadataMap = std::map<std::string, std::string>;

struct Safetensors {
  TensorMap tensors;
  MetadataMap metadata;  // free text by key; empty where the file has none
};

// Writes named tensors, of any shape and strides, to `path`: all dtypes but complex128, complex32 and the fnuz forms of float8. The file appears complete
// or not at all (temporary file, fsync, rename); an existing one is replaced only then. Equal maps give equal files.
// ValueError: an undefined tensor, one without data, another dtype, a name or text that is not UTF-8, the reserved
// name "__metadata__". IoError: the system's reason.
//   save_safetensors("model.safetensors", {{"weight", w}, {"bias", b}}, {{"step", "100"}});
void save_safetensors(const std::string& path, const TensorMap& tensors, const MetadataMap& metadata = {});

// Reads a file without copying it: the tensors, contiguous and without gradient, show the mapped file (pages are read as
// they are touched) and may be written, which changes neither the file nor other readers. The map ends with the last
// tensor. Do not cut or overwrite the file in place meanwhile; save_safetensors over it is safe.
// IoError: the file cannot be read, or is malformed (the message says where); NotImplementedError: a dtype that Vesta
// has not got.
TensorMap load_safetensors(const std::string& path);
// The same, with the metadata.
Safetensors load_safetensors_file(const std::string& path);

}  // namespace vesta
