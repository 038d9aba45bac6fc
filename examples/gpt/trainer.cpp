#include "trainer.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint.h"
#include "corpus.h"
#include "curve.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/threads.h"

namespace gpt {

using namespace vesta;
using Clock = std::chrono::steady_clock;

namespace {

std::atomic<bool> interrupted{false};
void on_signal(int) { interrupted = true; }

double validation_loss(Model& model, const Corpus& corpus, int64_t batch, int64_t batches) {
  NoGradGuard no_grad;
  double sum = 0;
  for (int64_t k = 0; k < batches; ++k) {
    auto [x, y] = corpus.validation_batch(batch, k);
    sum += model->loss(x, y).item<double>();
  }
  return sum / double(batches);
}

// Linear warm-up over a twentieth of the run, then a cosine down to a tenth of lr.
double learning_rate(const TrainOptions& o, int64_t step) {
  if (o.schedule == "constant") return o.lr;
  int64_t warmup = std::max<int64_t>(1, o.steps / 20);
  if (step < warmup) return o.lr * double(step + 1) / double(warmup);
  double t = double(step - warmup) / double(std::max<int64_t>(1, o.steps - warmup));
  return o.lr * (0.1 + 0.45 * (1 + std::cos(M_PI * std::min(t, 1.0))));
}

// Metrics as JSON lines. A resumed run drops the lines that came after its checkpoint.
class Metrics {
 public:
  Metrics(const std::string& path, int64_t keep_through) : path_(path) {
    std::string kept;
    std::ifstream in(path);
    for (std::string line; keep_through > 0 && std::getline(in, line);) {
      auto m = nlohmann::json::parse(line, nullptr, false);
      if (!m.is_discarded() && m.contains("step") && m["step"].get<int64_t>() <= keep_through)
        kept += line + "\n";
    }
    out_.open(path, std::ios::trunc);
    out_ << kept << std::flush;
    VESTA_CHECK_AS(IoError, out_, "cannot write ", path);
  }
  void add(int64_t step, double loss, std::optional<double> val_loss, double tokens_per_s, double lr) {
    nlohmann::ordered_json m = {{"step", step}, {"loss", loss}};
    if (val_loss)
      m["val_loss"] = *val_loss;
    else
      m["val_loss"] = nullptr;
    m["tokens_per_s"] = std::round(tokens_per_s);
    m["lr"] = lr;
    out_ << m.dump() << "\n" << std::flush;
    VESTA_CHECK_AS(IoError, out_, "cannot write ", path_, " (is the disk full?)");
  }

 private:
  std::string path_;
  std::ofstream out_;
};

}  // namespace

int train(TrainOptions o) {
  if (o.threads > 0) set_num_threads(int(o.threads));
  RunInfo info;
  if (o.resume) {
    info = read_info(o.out);
    VESTA_CHECK(o.size == info.config.size || o.size == "nano", "--resume: the checkpoint is of size ",
                info.config.size, ", --size says ", o.size);
  } else {
    info.config = Config::named(o.size);
    info.config.bf16 = o.dtype == "bf16";
    if (o.batch > 0) info.config.batch = o.batch;
    info.seed = o.seed;
    info.lr = o.lr;
    info.text = o.text;
  }
  std::error_code error;
  std::filesystem::create_directories(o.out, error);
  VESTA_CHECK_AS(IoError, !error, "--out: cannot make ", o.out, ": ", error.message());

  Config& c = info.config;
  manual_seed(info.seed);
  Corpus corpus(info.text, c.block);
  Model model(c);
  int64_t parameters = 0;
  for (auto& p : model->parameters()) parameters += p.numel();
  optim::AdamW optimizer(model->parameters(),
                         optim::AdamWOptions(info.lr).betas({0.9, 0.95}).weight_decay(o.weight_decay));
  optimizer.init_state();
  if (o.resume) load_checkpoint(o.out, model, &optimizer);
  o.lr = info.lr;
  std::printf(
      "gpt %s: %lld parameters, %s, batch %lld x %lld, %d threads, %zu training and %zu validation bytes\n",
      c.size.c_str(), static_cast<long long>(parameters), c.bf16 ? "bf16" : "fp32",
      static_cast<long long>(c.batch), static_cast<long long>(c.block), num_threads(), corpus.train_bytes(),
      corpus.validation_bytes());
  Metrics metrics(o.out + "/metrics.jsonl", info.step);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);

  bool terminal = isatty(STDOUT_FILENO);
  auto start = Clock::now(), window = start;
  int64_t first = info.step, window_step = info.step;
  for (int64_t step = info.step; step < o.steps && !interrupted; ++step) {
    auto [x, y] = corpus.batch(c.batch, info.seed + 1, uint64_t(step));
    double lr = learning_rate(o, step);
    optimizer.param_groups()[0].options().set_lr(lr);
    optimizer.zero_grad();
    Tensor loss = model->loss(x, y);
    loss.backward();
    if (o.clip > 0) nn::utils::clip_grad_norm_(model->parameters(), o.clip);
    optimizer.step();
    info.step = step + 1;

    bool last = info.step == o.steps || interrupted;
    if (info.step % o.log_every == 0 || last || info.step == 1) {
      auto now = Clock::now();
      double seconds = std::chrono::duration<double>(now - window).count();
      double rate = double(info.step - window_step) * double(c.batch * c.block) / seconds;
      double per_step = std::chrono::duration<double>(now - start).count() / double(info.step - first);
      double value = loss.item<double>();
      std::optional<double> val;
      if (info.step % o.eval_every == 0 || last) val = validation_loss(model, corpus, c.batch, 8);
      metrics.add(info.step, value, val, rate, lr);
      VESTA_CHECK(std::isfinite(value), "the loss is ", value, " at step ", info.step,
                  "; try a smaller --lr. The last checkpoint is kept");
      std::printf("%sstep %lld/%lld  loss %.4f%s  %.0f tokens/s  lr %.2e  ETA %.0f s%s",
                  terminal ? "\r\033[K" : "", static_cast<long long>(info.step),
                  static_cast<long long>(o.steps), value,
                  val ? ("  val " + std::to_string(*val).substr(0, 6)).c_str() : "", rate, lr,
                  per_step * double(o.steps - info.step), terminal && !val ? "" : "\n");
      std::fflush(stdout);
      window = Clock::now();
      window_step = info.step;
    }
    if (info.step % o.checkpoint_every == 0 || last) save_checkpoint(o.out, model, optimizer, info);
  }
  if (interrupted) save_checkpoint(o.out, model, optimizer, info);
  std::string curve = draw_curve(o.out);
  if (interrupted)
    std::printf("\ninterrupted: saved at step %lld; go on with: gpt train --resume --out %s --steps %lld\n",
                static_cast<long long>(info.step), o.out.c_str(), static_cast<long long>(o.steps));
  std::printf("checkpoint: %s\nloss curve: %s\n", checkpoint_path(o.out).c_str(), curve.c_str());
  return 0;
}

double evaluate(const std::string& dir, const std::string& text, int64_t batches) {
  RunInfo info = read_info(dir);
  Corpus corpus(text.empty() ? info.text : text, info.config.block);
  Model model(info.config);
  load_checkpoint(dir, model, nullptr);
  return validation_loss(model, corpus, info.config.batch, batches);
}

}  // namespace gpt
