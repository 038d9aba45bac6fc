#pragma once
// Text from a trained model.
#include <string>

namespace gpt {

struct SampleOptions {
  std::string out = "gpt-out", prompt = "\n";
  int64_t length = 400, top_k = 40;
  double temperature = 0.8;
  uint64_t seed = 0;
};

std::string sample(const SampleOptions& options);

}  // namespace gpt
