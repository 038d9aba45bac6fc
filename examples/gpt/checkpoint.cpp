#include "checkpoint.h"

#include <cstdio>

#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/safetensors.h"

namespace gpt {

using namespace vesta;

std::string checkpoint_path(const std::string& dir) { return dir + "/checkpoint.safetensors"; }

void save_checkpoint(const std::string& dir, Model& model, optim::Optimizer& optimizer, const RunInfo& info) {
  TensorMap tensors;
  for (auto& item : model->state_dict()) tensors["model." + item.key()] = item.value().detach();
  for (auto& item : optimizer.state_dict()) tensors["optimizer." + item.key()] = item.value().detach();
  char lr[32];
  std::snprintf(lr, sizeof lr, "%.17g", info.lr);  // read back to the same bits
  save_safetensors(checkpoint_path(dir), tensors,
                   {{"step", std::to_string(info.step)},
                    {"seed", std::to_string(info.seed)},
                    {"lr", lr},
                    {"size", info.config.size},
                    {"dtype", info.config.bf16 ? "bf16" : "fp32"},
                    {"text", info.text},
                    {"batch", std::to_string(info.config.batch)}});
}

namespace {

const std::string& field(const Safetensors& file, const std::string& path, const char* name) {
  auto it = file.metadata.find(name);
  VESTA_CHECK_AS(IoError, it != file.metadata.end(), path, " is not a checkpoint of this program: it has no ",
                 name);
  return it->second;
}

}  // namespace

RunInfo read_info(const std::string& dir) {
  std::string path = checkpoint_path(dir);
  Safetensors file = load_safetensors_file(path);
  RunInfo info;
  info.config = Config::named(field(file, path, "size"));
  info.config.bf16 = field(file, path, "dtype") == "bf16";
  try {
    info.config.batch = std::stoll(field(file, path, "batch"));
    info.step = std::stoll(field(file, path, "step"));
    info.seed = std::stoull(field(file, path, "seed"));
    info.lr = std::stod(field(file, path, "lr"));
  } catch (const std::logic_error&) {
    throw IoError(path + ": a number in the checkpoint's metadata is malformed");
  }
  info.text = field(file, path, "text");
  return info;
}

void load_checkpoint(const std::string& dir, Model& model, optim::Optimizer* optimizer) {
  nn::StateDict parameters;
  optim::StateDict state;
  for (auto& [name, t] : load_safetensors(checkpoint_path(dir))) {
    if (name.rfind("model.", 0) == 0) parameters.insert(name.substr(6), t);
    if (name.rfind("optimizer.", 0) == 0) state.insert(name.substr(10), t);
  }
  model->load_state_dict(parameters);
  if (optimizer) optimizer->load_state_dict(state);
}

}  // namespace gpt
