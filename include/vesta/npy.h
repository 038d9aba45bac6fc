#pragma once
// NumPy's files: .npy (one array) and .npz (a zip archive of them). Files are untrusted input: every length, type and name
// is checked before it is used.
#include <map>
#include <string>

#include "vesta/tensor.h"

namespace vesta {

// Reads an array of format version 1.0, 2.0 or 3.0, in C or Fortran order (which gives reversed strides, not a copy), in
// either byte order. Types: bool, uint8 to uint64, int8 to int64, float16 to float64, complex64 and complex128. As load_safetensors,
// the tensor shows the mapped file where it can, and writing to it does not change the file.
// IoError: unreadable or malformed, the message says where. NotImplementedError: a type that Vesta has not got
// (longdouble, text, dates, records), or Python objects, which are never loaded.
Tensor load_npy(const std::string& path);

// Writes version 1.0, little-endian; tensors whose strides are those of Fortran order are written so, others in C order.
// The file appears complete or not at all. ValueError: undefined, not on the CPU, or of a type that NumPy has not got, such as bfloat16
// (convert it to float32). IoError: the system's reason.
void save_npy(const std::string& path, const Tensor& tensor);

// The arrays of an archive by name (without ".npy"); stored or deflated entries. Errors as load_npy's; also IoError where
// an entry is no array, is damaged (checksums are compared) or appears twice.
std::map<std::string, Tensor> load_npz(const std::string& path);

// Equal maps give equal files. `compressed`: deflate, as numpy.savez_compressed. ValueError: as save_npy, or a name that is
// empty or not UTF-8.
void save_npz(const std::string& path, const std::map<std::string, Tensor>& tensors, bool compressed = false);

}  // namespace vesta
