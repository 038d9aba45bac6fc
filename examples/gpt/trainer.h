#pragma once
// The training loop: progress, metrics, checkpoints, Ctrl-C, resume.
#include <string>

namespace gpt {

struct TrainOptions {
  std::string text = "/usr/share/dictd/gcide.dict.dz", size = "nano", dtype = "fp32", out = "gpt-out",
              schedule = "cosine";
  int64_t steps = 1000, batch = 0, threads = 0, checkpoint_every = 200, eval_every = 100, log_every = 10;
  double lr = 1e-3, weight_decay = 0.1, clip = 1.0;
  uint64_t seed = 0;
  bool resume = false;
};

// Returns the exit code.
int train(TrainOptions options);
// Mean validation loss of the checkpoint in `dir`.
double evaluate(const std::string& dir, const std::string& text, int64_t batches);

}  // namespace gpt
