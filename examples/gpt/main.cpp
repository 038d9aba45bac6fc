// gpt: trains a byte-level GPT on any text, samples from it and evaluates it. `gpt --help` lists everything.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>

#include "sample.h"
#include "trainer.h"
#include "vesta/error.h"

int main(int argc, char** argv) {
  CLI::App app{"Trains a byte-level GPT on text, from C++."};
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();

  gpt::TrainOptions t;
  auto* train = app.add_subcommand("train", "Train, or go on with --resume; Ctrl-C saves and stops");
  train->add_option("--text", t.text, "A file (gzip is fine) or a folder");
  train->add_option("--size", t.size, "Model size")->check(CLI::IsMember({"nano", "small", "gpt2"}));
  train->add_option("--steps", t.steps, "Steps in all")->check(CLI::PositiveNumber);
  train->add_option("--batch", t.batch, "Sequences a step; 0: the size's own")->check(CLI::NonNegativeNumber);
  train->add_option("--lr", t.lr, "Peak learning rate")->check(CLI::PositiveNumber);
  train->add_option("--schedule", t.schedule, "Learning-rate schedule")
      ->check(CLI::IsMember({"cosine", "constant"}));
  train->add_option("--clip", t.clip, "Gradient norm limit; 0: none")->check(CLI::NonNegativeNumber);
  train->add_option("--dtype", t.dtype, "Of matrix products; parameters stay float32")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  train->add_option("--threads", t.threads, "0: as many as there are cores")->check(CLI::NonNegativeNumber);
  train->add_option("--seed", t.seed, "Of the weights and of the batches");
  train->add_option("--out", t.out, "Folder for checkpoint, metrics and curve");
  train->add_option("--checkpoint-every", t.checkpoint_every, "Steps between checkpoints")
      ->check(CLI::PositiveNumber);
  train->add_option("--eval-every", t.eval_every, "Steps between validation losses")
      ->check(CLI::PositiveNumber);
  train->add_option("--log-every", t.log_every, "Steps between progress lines")->check(CLI::PositiveNumber);
  train->add_flag("--resume", t.resume, "Go on from the checkpoint in --out, bit for bit");

  gpt::SampleOptions s;
  auto* sample = app.add_subcommand("sample", "Generate text from a checkpoint");
  sample->add_option("--out", s.out, "The folder that train wrote");
  sample->add_option("--prompt", s.prompt, "Text to go on from");
  sample->add_option("--length", s.length, "Bytes to generate")->check(CLI::PositiveNumber);
  sample->add_option("--temperature", s.temperature, "Below 1: safer")->check(CLI::PositiveNumber);
  sample->add_option("--top-k", s.top_k, "Bytes considered each time")->check(CLI::PositiveNumber);
  sample->add_option("--seed", s.seed, "Of the draws");

  std::string eval_out = "gpt-out", eval_text;
  int64_t batches = 50;
  auto* eval = app.add_subcommand("eval", "Validation loss of a checkpoint");
  eval->add_option("--out", eval_out, "The folder that train wrote");
  eval->add_option("--text", eval_text, "Another text than the run's own");
  eval->add_option("--batches", batches, "Validation batches")->check(CLI::PositiveNumber);

  try {
    app.parse(argc, argv);
    if (*train) return gpt::train(t);
    if (*sample) std::printf("%s\n", gpt::sample(s).c_str());
    if (*eval) {
      double loss = gpt::evaluate(eval_out, eval_text, batches);
      std::printf("{\"val_loss\": %.6f, \"perplexity\": %.4f, \"bits_per_byte\": %.4f}\n", loss,
                  std::exp(loss), loss / std::log(2.0));
    }
    return 0;
  } catch (const CLI::ParseError& e) {
    int code = app.exit(e);
    return code == 0 ? 0 : 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gpt: %s\n", e.what());
    return 1;
  }
}
