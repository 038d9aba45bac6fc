#include "sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "checkpoint.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace gpt {

using namespace vesta;

std::string sample(const SampleOptions& o) {
  VESTA_CHECK(o.temperature > 0, "--temperature: expected a value > 0, got ", o.temperature);
  RunInfo info = read_info(o.out);
  Model model(info.config);
  load_checkpoint(o.out, model, nullptr);
  InferenceMode inference;
  Generator generator(o.seed);
  std::string text = o.prompt.empty() ? "\n" : o.prompt;
  for (int64_t k = 0; k < o.length; ++k) {
    int64_t n = std::min<int64_t>(int64_t(text.size()), info.config.block);
    Tensor tokens = empty({1, n}, TensorOptions(kLong));
    for (int64_t i = 0; i < n; ++i)
      tokens.data_ptr<int64_t>()[i] = static_cast<unsigned char>(text[text.size() - size_t(n - i)]);
    Tensor logits = model->forward(tokens).select(1, n - 1).to(kFloat).reshape({-1}).contiguous();
    const float* p = logits.data_ptr<float>();
    // The top_k bytes, drawn in proportion to exp(logit / temperature).
    std::vector<int> order(size_t(info.config.vocab));
    std::iota(order.begin(), order.end(), 0);
    size_t keep = size_t(std::clamp<int64_t>(o.top_k, 1, info.config.vocab));
    std::partial_sort(order.begin(), order.begin() + std::ptrdiff_t(keep), order.end(),
                      [&](int a, int b) { return p[a] > p[b]; });
    std::vector<double> weight;
    for (size_t i = 0; i < keep; ++i) weight.push_back(std::exp((p[order[i]] - p[order[0]]) / o.temperature));
    double u = rand({1}, generator, TensorOptions(kDouble)).item<double>() *
               std::accumulate(weight.begin(), weight.end(), 0.0);
    size_t pick = 0;
    while (pick + 1 < keep && (u -= weight[pick]) >= 0) ++pick;
    text += char(order[pick]);
  }
  return text;
}

}  // namespace gpt
