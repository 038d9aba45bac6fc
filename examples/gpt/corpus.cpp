#include "corpus.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "vesta/ops.h"

namespace gpt {

using namespace vesta;
namespace fs = std::filesystem;

namespace {

// gzread passes files that are not gzip through as they are.
void append(std::vector<unsigned char>& out, const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  VESTA_CHECK_AS(IoError, file, "--text: cannot open ", path, ": ", std::strerror(errno));
  unsigned char buffer[1 << 16];
  int n;
  while ((n = gzread(file, buffer, sizeof buffer)) > 0) out.insert(out.end(), buffer, buffer + n);
  int code = 0;
  std::string reason = n < 0 ? gzerror(file, &code) : "";
  if (code == Z_ERRNO) reason = std::strerror(errno);
  gzclose(file);
  VESTA_CHECK_AS(IoError, n == 0, "--text: cannot read ", path, ": ", reason);
}

}  // namespace

Corpus::Corpus(const std::string& path, int64_t block) : block_(block) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    std::vector<std::string> files;
    for (auto& e : fs::recursive_directory_iterator(path, error))
      if (e.is_regular_file()) files.push_back(e.path());
    VESTA_CHECK_AS(IoError, !error, "--text: cannot list ", path, ": ", error.message());
    std::sort(files.begin(), files.end());
    for (auto& f : files) append(bytes_, f);
  } else {
    append(bytes_, path);
  }
  // A tenth, at most 1 MB, at the end is for validation.
  size_t validation = std::min<size_t>(bytes_.size() / 10, 1 << 20), needed = size_t(block) + 2;
  VESTA_CHECK(bytes_.size() >= 12 * needed, "--text: ", path, " holds ", bytes_.size(), " bytes; blocks of ",
              block, " need at least ", 12 * needed);
  split_ = bytes_.size() - std::max(validation, needed);
}

std::pair<Tensor, Tensor> Corpus::gather(const std::vector<int64_t>& starts) const {
  std::vector<int64_t> shape = {int64_t(starts.size()), block_};
  Tensor x = empty(shape, TensorOptions(kLong)), y = empty(shape, TensorOptions(kLong));
  int64_t *to_x = x.data_ptr<int64_t>(), *to_y = y.data_ptr<int64_t>();
  for (int64_t start : starts)
    for (int64_t i = 0; i < block_; ++i) {
      *to_x++ = bytes_[size_t(start + i)];
      *to_y++ = bytes_[size_t(start + i + 1)];
    }
  return {x, y};
}

std::pair<Tensor, Tensor> Corpus::batch(int64_t batch, uint64_t seed, uint64_t step) const {
  Generator generator(seed);
  generator.set_state(seed, step);
  Tensor starts = randint(int64_t(split_) - block_ - 1, {batch}, generator, TensorOptions(kLong));
  auto* p = starts.data_ptr<int64_t>();
  return gather(std::vector<int64_t>(p, p + batch));
}

std::pair<Tensor, Tensor> Corpus::validation_batch(int64_t batch, int64_t k) const {
  // Evenly spread over the validation part.
  int64_t room = int64_t(validation_bytes()) - block_ - 1;
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < batch; ++i) starts.push_back(int64_t(split_) + (k * batch + i) * 7919 % room);
  return gather(starts);
}

}  // namespace gpt
