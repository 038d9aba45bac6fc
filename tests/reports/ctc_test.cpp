// CTC: empty targets, infeasible alignments, long labels, padding. tests/ops/ctc_test.cpp compares with all alignments.
#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

// Frames of three equally likely classes, blank 0.
Tensor uniform(int64_t frames, int64_t batch = 1) {
  return log_softmax(zeros({frames, batch, 3}, kDouble), -1);
}
Tensor labels(const Sizes& v) { return make<int64_t>(v, {1, int64_t(v.size())}); }
double loss_of(int64_t frames, const Sizes& target, bool zero_infinity = false) {
  return number(ctc_loss(uniform(frames), labels(target), IntArrayRef{frames},
                         IntArrayRef{int64_t(target.size())}, 0, 0, zero_infinity));
}

// pt#25057 and kin. A path has probability 3^-T. T = 2: () has the one path (--); (1) has (1 1), (1 -), (- 1); (1, 2) has
// one; (1, 1) needs a blank between and has none. T = 3: (1, 1) has (1 - 1) alone; () has one; (1, 2) has the five (- 1
// 2), (1 - 2), (1 2 -), (1 1 2), (1 2 2).
TEST(CtcReports, losses_of_uniform_frames_count_the_paths) {
  EXPECT_NEAR(loss_of(2, {}), std::log(9.0), 1e-12);
  EXPECT_NEAR(loss_of(2, {1}), std::log(9.0 / 3), 1e-12);
  EXPECT_NEAR(loss_of(2, {1, 2}), std::log(9.0), 1e-12);
  EXPECT_EQ(loss_of(2, {1, 1}), kInf);
  EXPECT_NEAR(loss_of(3, {1, 1}), std::log(27.0), 1e-12);
  EXPECT_NEAR(loss_of(3, {1, 2}), std::log(27.0 / 5), 1e-12);
  EXPECT_NEAR(loss_of(3, {}), std::log(27.0), 1e-12);
}

// An infeasible target: with zero_infinity loss 0 and a gradient of exactly 0, not the softmax.
TEST(CtcReports, an_infeasible_target_with_zero_infinity_gives_zero_loss_and_gradient) {
  EXPECT_EQ(loss_of(2, {1, 1}, true), 0);
  Generator g(kSeed);
  Tensor logits = draw(g, {2, 1, 3}).requires_grad_();
  Tensor loss = ctc_loss(log_softmax(logits, -1), labels({1, 1}), IntArrayRef{2}, IntArrayRef{2}, 0, 1, true);
  EXPECT_TRUE(all_equal(autograd::grad({loss}, {logits})[0], 0));
}

struct Batch {
  std::vector<Sizes> targets = {{1, 2, 2}, {}, {2}, {1, 1, 1}};
  Sizes frames = {6, 4, 3, 5};
  Sizes lengths() const {
    Sizes n;
    for (auto& t : targets) n.push_back(int64_t(t.size()));
    return n;
  }
  Tensor padded() const {
    Tensor t = zeros({int64_t(targets.size()), 3}, kLong);
    for (size_t b = 0; b < targets.size(); ++b)
      for (size_t i = 0; i < targets[b].size(); ++i) t.data_ptr<int64_t>()[b * 3 + i] = targets[b][i];
    return t;
  }
  Tensor joined() const {
    Sizes all;
    for (auto& t : targets) all.insert(all.end(), t.begin(), t.end());
    return i64(all);
  }
};

// returnn#1835, espnet PR#6362: items of a padded batch are those computed alone; targets one after another mean the same
// as padded ones; the gradient is 0 beyond an item's frames, and each frame's sums to 0, as every softmax's must.
TEST(CtcReports, a_padded_batch_is_its_items_and_the_gradient_stays_in_their_frames) {
  Generator g(kSeed);
  Batch batch;
  Tensor logits = draw(g, {6, 4, 3}).requires_grad_();
  Tensor loss = ctc_loss(log_softmax(logits, -1), batch.padded(), batch.frames, batch.lengths(), 0, 0);
  Tensor joined = ctc_loss(log_softmax(logits, -1), batch.joined(), batch.frames, batch.lengths(), 0, 0);
  EXPECT_TRUE(loss.equal(joined));
  Tensor grad = autograd::grad({loss.sum()}, {logits})[0];
  EXPECT_TRUE(all_finite(grad));
  EXPECT_LE(number(grad.sum({-1}).abs().max()), 1e-13);
  for (int64_t b = 0; b < 4; ++b) {
    int64_t frames = batch.frames[size_t(b)];
    Tensor alone = logits.detach().narrow(1, b, 1).narrow(0, 0, frames).requires_grad_();
    Tensor one = ctc_loss(log_softmax(alone, -1), labels(batch.targets[size_t(b)]), IntArrayRef{frames},
                          IntArrayRef{batch.lengths()[size_t(b)]}, 0, 0);
    EXPECT_NEAR(number(one), number(loss[b]), 1e-12) << "item " << b;
    Tensor own = grad.select(1, b);
    EXPECT_LE(distance(own.narrow(0, 0, frames), autograd::grad({one.sum()}, {alone})[0].select(1, 0)),
              1e-13);
    EXPECT_TRUE(all_equal(own.narrow(0, frames, 6 - frames), 0)) << "item " << b;
  }
}

// pt#18215: NaN in one item must not reach the others (an all-NaN batch started from one).
TEST(CtcReports, an_infeasible_item_does_not_touch_its_neighbours) {
  Generator g(kSeed);
  Tensor logits = draw(g, {3, 2, 3}).requires_grad_();
  Tensor targets = make<int64_t>({1, 1, 1, 2, 0, 0}, {2, 3});
  Tensor loss = ctc_loss(log_softmax(logits, -1), targets, IntArrayRef{3, 3}, IntArrayRef{3, 1}, 0, 0, true);
  EXPECT_EQ(number(loss[0]), 0);
  EXPECT_GT(number(loss[1]), 0);
  Tensor grad = autograd::grad({loss.sum()}, {logits})[0];
  EXPECT_TRUE(all_equal(grad.select(1, 0), 0));
  EXPECT_TRUE(all_finite(grad));
  EXPECT_GT(number(grad.select(1, 1).abs().max()), 0);
}

// pt#27442: more than 1024 labels. Only one path of T frames has T labels that all differ from their neighbours, so with
// uniform frames the loss is T log 3; one frame more: a blank in any of T + 1 gaps or one of T labels repeated.
TEST(CtcReports, two_thousand_labels_are_right) {
  constexpr int64_t kLabels = 2000;
  Sizes target;
  for (int64_t i = 0; i < kLabels; ++i) target.push_back(1 + i % 2);
  EXPECT_NEAR(loss_of(kLabels, target), kLabels * std::log(3.0), 1e-8);
  EXPECT_NEAR(loss_of(kLabels + 1, target), (kLabels + 1) * std::log(3.0) - std::log(2.0 * kLabels + 1),
              1e-8);
  EXPECT_EQ(loss_of(kLabels - 1, target), kInf);
}

}  // namespace
}  // namespace vesta::reports
