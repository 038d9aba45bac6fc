// AdaptiveLogSoftmaxWithLoss. The head scores the frequent classes and one entry for each cluster; a cluster scores its
// classes from a narrower projection, and only for the rows whose target it holds.
#include "vesta/nn_adaptive.h"

#include <cmath>
#include <ostream>

#include "vesta/ops.h"

namespace vesta::nn {

AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(const AdaptiveLogSoftmaxWithLossOptions& o)
    : options(o), cutoffs(o.cutoffs()) {
  VESTA_CHECK(!cutoffs.empty(), "AdaptiveLogSoftmaxWithLoss: expected at least one cutoff");
  VESTA_CHECK(o.in_features() > 0 && o.div_value() > 0,
              "AdaptiveLogSoftmaxWithLoss: expected in_features and div_value above 0, got ", o.in_features(),
              " and ", o.div_value());
  cutoffs.push_back(o.n_classes());
  int64_t before = 0;
  for (const int64_t cutoff : cutoffs) {
    VESTA_CHECK(cutoff > before,
                "AdaptiveLogSoftmaxWithLoss: expected rising cutoffs between 1 and n_classes - 1, got ",
                cutoff, " after ", before);
    before = cutoff;
  }
  shortlist_size = cutoffs[0];
  n_clusters = int64_t(cutoffs.size()) - 1;
  head_size = shortlist_size + n_clusters;
  head = register_module("head", Linear(LinearOptions(o.in_features(), head_size).bias(o.head_bias())));
  tail = register_module("tail", ModuleList());
  for (int64_t i = 0; i < n_clusters; ++i) {
    const auto width = int64_t(double(o.in_features()) / std::pow(o.div_value(), double(i + 1)));
    const int64_t classes = cutoffs[size_t(i) + 1] - cutoffs[size_t(i)];
    tail->push_back(Sequential(Linear(LinearOptions(o.in_features(), width).bias(false)),
                               Linear(LinearOptions(width, classes).bias(false))));
  }
}

void AdaptiveLogSoftmaxWithLossImpl::reset_parameters() {
  head->reset_parameters();
  for (size_t i = 0; i < tail->size(); ++i) {
    auto& projection = tail->at<Sequential>(i);
    projection.at<Linear>(0).reset_parameters();
    projection.at<Linear>(1).reset_parameters();
  }
}

ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(const Tensor& input_in, const Tensor& target_in) {
  const bool batched = target_in.dim() > 0;
  VESTA_CHECK(
      target_in.dim() <= 1 && input_in.dim() == target_in.dim() + 1,
      "AdaptiveLogSoftmaxWithLoss: expected an input of 2 dims and a target of 1, or of 1 and 0, got ",
      input_in.dim(), " and ", target_in.dim());
  const Tensor input = batched ? input_in : input_in.unsqueeze(0),
               target = batched ? target_in : target_in.unsqueeze(0);
  const int64_t rows = input.size(0);
  VESTA_CHECK(target.size(0) == rows, "AdaptiveLogSoftmaxWithLoss: expected ", rows, " targets, got ",
              target.size(0));
  VESTA_CHECK_AS(IndexError, !(target.lt(0).logical_or(target.ge(options.n_classes()))).any().item<bool>(),
                 "AdaptiveLogSoftmaxWithLoss: expected targets between 0 and ", options.n_classes() - 1);
  Tensor head_index = target, local = zeros({rows}, input.options());
  for (int64_t i = 0; i < n_clusters; ++i) {
    const int64_t low = cutoffs[size_t(i)], high = cutoffs[size_t(i) + 1];
    const Tensor members = target.ge(low).logical_and(target.lt(high)).nonzero().squeeze(1);
    if (members.numel() == 0) continue;
    head_index = head_index.index_fill(0, members, shortlist_size + i);
    const Tensor scores =
        vesta::log_softmax(tail->at<Sequential>(size_t(i)).forward(input.index_select(0, members)), 1);
    const Tensor relative = (target.index_select(0, members) - low).unsqueeze(1);
    local = local.index_copy(0, members, scores.gather(1, relative).squeeze(1));
  }
  Tensor output = vesta::log_softmax(head(input), 1).gather(1, head_index.unsqueeze(1)).squeeze(1) + local;
  const Tensor loss = -output.mean();
  if (!batched) output = output.squeeze(0);
  return {output, loss};
}

Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const Tensor& input) {
  VESTA_CHECK(input.dim() == 2, "AdaptiveLogSoftmaxWithLoss: expected an input of 2 dims, got ", input.dim());
  const Tensor scores = vesta::log_softmax(head(input), 1);
  std::vector<Tensor> parts{scores.narrow(1, 0, shortlist_size)};
  for (int64_t i = 0; i < n_clusters; ++i)
    parts.push_back(vesta::log_softmax(tail->at<Sequential>(size_t(i)).forward(input), 1) +
                    scores.narrow(1, shortlist_size + i, 1));
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const Tensor& input) { return log_prob(input).argmax(1); }

void AdaptiveLogSoftmaxWithLossImpl::describe(std::ostream& out) const {
  out << "vesta::nn::AdaptiveLogSoftmaxWithLoss";
}

}  // namespace vesta::nn
