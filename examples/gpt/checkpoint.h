#pragma once
// A run's state in one safetensors file: parameters, optimiser state, the step, and what the model looks like.
#include <string>

#include "model.h"
#include "vesta/optim.h"

namespace gpt {

struct RunInfo {
  Config config;
  int64_t step = 0;
  uint64_t seed = 0;
  double lr = 0;
  std::string text;
};

std::string checkpoint_path(const std::string& dir);
// Complete or not at all: the previous checkpoint stays until the new one is on disk.
void save_checkpoint(const std::string& dir, Model& model, vesta::optim::Optimizer& optimizer,
                     const RunInfo& info);
// What the run was; throws IoError where there is no checkpoint or it is damaged.
RunInfo read_info(const std::string& dir);
void load_checkpoint(const std::string& dir, Model& model, vesta::optim::Optimizer* optimizer);

}  // namespace gpt
