#pragma once
// Layers, containers, losses as modules, and nn::utils. Names, options and defaults are libtorch's; RMSNorm is
// PyTorch's Python one. Initialisation: vesta/nn_init.h. Functions without state: vesta/functional.h.
//   nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(nn::LinearOptions(8, 2).bias(false)));
#include <initializer_list>

#include "vesta/functional.h"
#include "vesta/module.h"
#include "vesta/nn_init.h"

namespace vesta::nn {

// y = x W^T + b, W: [out_features, in_features], drawn from U(-k, k), k = 1/sqrt(in_features).
class LinearOptions {
 public:
  LinearOptions(int64_t in_features, int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  VESTA_ARG(int64_t, in_features);
  VESTA_ARG(int64_t, out_features);
  VESTA_ARG(bool, bias) = true;
};
class LinearImpl : public Module {
 public:
  LinearImpl(int64_t in_features, int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  // [..., in_features] -> [..., out_features].
  Tensor forward(const Tensor& input);

  LinearOptions options;
  Tensor weight, bias;  // bias is undefined where the options say so
};
VESTA_MODULE(Linear);

class IdentityImpl : public Module {
 public:
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input) { return input; }
};
VESTA_MODULE(Identity);

class FlattenOptions {
  VESTA_ARG(int64_t, start_dim) = 1;
  VESTA_ARG(int64_t, end_dim) = -1;
};
class FlattenImpl : public Module {
 public:
  explicit FlattenImpl(const FlattenOptions& o = {}) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  FlattenOptions options;
};
VESTA_MODULE(Flatten);

// A table of rows drawn from N(0, 1); row padding_idx starts at zero and gets no gradient.
class EmbeddingOptions {
 public:
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  VESTA_ARG(int64_t, num_embeddings);
  VESTA_ARG(int64_t, embedding_dim);
  VESTA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;  // negative counts from the end
  VESTA_ARG(bool, scale_grad_by_freq) = false;
  VESTA_ARG(Tensor, _weight) = {};  // used instead of a new table
};
class EmbeddingImpl : public Module {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(EmbeddingOptions options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  // Integers of any shape [...] -> [..., embedding_dim]. IndexError outside [0, num_embeddings).
  Tensor forward(const Tensor& indices);

  EmbeddingOptions options;
  Tensor weight;
};
class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  Embedding(ModuleHolder<EmbeddingImpl> holder) : ModuleHolder<EmbeddingImpl>(std::move(holder)) {}  // NOLINT
  // A layer around an existing table [rows, width].
  static Embedding from_pretrained(const Tensor& embeddings, bool freeze = true);
};

class LayerNormOptions {
 public:
  LayerNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  VESTA_ARG(std::vector<int64_t>, normalized_shape);
  VESTA_ARG(double, eps) = 1e-5;
  VESTA_ARG(bool, elementwise_affine) = true;
  VESTA_ARG(bool, bias) = true;
};
// Normalises the last dims to mean 0 and variance 1, then scales by weight (ones) and adds bias (zeros).
class LayerNormImpl : public Module {
 public:
  explicit LayerNormImpl(int64_t width) : LayerNormImpl(LayerNormOptions({width})) {}
  explicit LayerNormImpl(std::vector<int64_t> shape) : LayerNormImpl(LayerNormOptions(std::move(shape))) {}
  explicit LayerNormImpl(LayerNormOptions options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);

  LayerNormOptions options;
  Tensor weight, bias;
};
VESTA_MODULE(LayerNorm);

class RMSNormOptions {
 public:
  RMSNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  VESTA_ARG(std::vector<int64_t>, normalized_shape);
  VESTA_ARG(std::optional<double>,
            eps) = std::nullopt;  // absent: the machine epsilon of the computation's dtype
  VESTA_ARG(bool, elementwise_affine) = true;
};
// x / sqrt(mean(x^2) + eps) over the last dims, scaled by weight (ones).
class RMSNormImpl : public Module {
 public:
  explicit RMSNormImpl(int64_t width) : RMSNormImpl(RMSNormOptions({width})) {}
  explicit RMSNormImpl(std::vector<int64_t> shape) : RMSNormImpl(RMSNormOptions(std::move(shape))) {}
  explicit RMSNormImpl(RMSNormOptions options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);

  RMSNormOptions options;
  Tensor weight;
};
VESTA_MODULE(RMSNorm);

class DropoutOptions {
 public:
  DropoutOptions(double p = 0.5) : p_(p) {}  // NOLINT
  VESTA_ARG(double, p);
  VESTA_ARG(bool, inplace) = false;
};
// Acts in training mode only. ValueError unless 0 <= p <= 1.
class DropoutImpl : public Module {
 public:
  explicit DropoutImpl(const DropoutOptions& options = {});
  explicit DropoutImpl(double p) : DropoutImpl(DropoutOptions(p)) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  DropoutOptions options;
};
VESTA_MODULE(Dropout);

// Activations and losses hold options and call the function of the same name.
#define VESTA_NN_PLAIN(Name, function)                                          \
  class Name##Impl : public Module {                                            \
   public:                                                                      \
    void describe(std::ostream& out) const override;                            \
    Tensor forward(const Tensor& input) { return functional::function(input); } \
  };                                                                            \
  VESTA_MODULE(Name)
#define VESTA_NN_OPTIONS(Name, function, defaults)                                       \
  class Name##Impl : public Module {                                                     \
   public:                                                                               \
    explicit Name##Impl(const Name##Options& o defaults) : options(o) {}                 \
    void describe(std::ostream& out) const override;                                     \
    Tensor forward(const Tensor& input) { return functional::function(input, options); } \
    Name##Options options;                                                               \
  };                                                                                     \
  VESTA_MODULE(Name)
#define VESTA_NN_LOSS(Name, function)                                \
  class Name##Impl : public Module {                                 \
   public:                                                           \
    explicit Name##Impl(const Name##Options& o = {}) : options(o) {} \
    void describe(std::ostream& out) const override;                 \
    Tensor forward(const Tensor& input, const Tensor& target) {      \
      return functional::function(input, target, options);           \
    }                                                                \
    Name##Options options;                                           \
  };                                                                 \
  VESTA_MODULE(Name)
#define VESTA_NN_DEFAULT = {}

VESTA_NN_PLAIN(SiLU, silu);
VESTA_NN_PLAIN(Mish, mish);
VESTA_NN_PLAIN(Tanh, tanh);
VESTA_NN_PLAIN(Sigmoid, sigmoid);
VESTA_NN_PLAIN(LogSigmoid, logsigmoid);
VESTA_NN_PLAIN(Hardswish, hardswish);
VESTA_NN_PLAIN(Hardsigmoid, hardsigmoid);
VESTA_NN_PLAIN(SELU, selu);
VESTA_NN_PLAIN(Softsign, softsign);
VESTA_NN_OPTIONS(ReLU, relu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(ReLU6, relu6, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(GELU, gelu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(LeakyReLU, leaky_relu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(ELU, elu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(Softplus, softplus, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(Hardtanh, hardtanh, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(GLU, glu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(Softmax, softmax, );
VESTA_NN_OPTIONS(LogSoftmax, log_softmax, );
VESTA_NN_OPTIONS(Softmin, softmin, );
VESTA_NN_LOSS(L1Loss, l1_loss);
VESTA_NN_LOSS(MSELoss, mse_loss);
VESTA_NN_LOSS(SmoothL1Loss, smooth_l1_loss);
VESTA_NN_LOSS(HuberLoss, huber_loss);
VESTA_NN_LOSS(BCELoss, binary_cross_entropy);
VESTA_NN_LOSS(BCEWithLogitsLoss, binary_cross_entropy_with_logits);
VESTA_NN_LOSS(NLLLoss, nll_loss);
VESTA_NN_LOSS(CrossEntropyLoss, cross_entropy);
#undef VESTA_NN_PLAIN
#undef VESTA_NN_OPTIONS
#undef VESTA_NN_LOSS
#undef VESTA_NN_DEFAULT

// A module with forward(const Tensor&) -> Tensor, its type erased. Throws ValueError when empty.
class AnyModule {
 public:
  AnyModule() = default;
  template <class Contained>
  AnyModule(ModulePtr<Contained> module) : module_(module) {  // NOLINT: implicit, here and below
    forward_ = [](Module& m, const Tensor& x) -> Tensor { return static_cast<Contained&>(m).forward(x); };
  }
  template <class Contained>
  AnyModule(const ModuleHolder<Contained>& holder) : AnyModule(holder.ptr()) {}  // NOLINT
  template <class Holder, class Contained = typename Holder::ContainedType>
  AnyModule(const Holder& holder)
      : AnyModule(static_cast<const ModuleHolder<Contained>&>(holder)) {}  // NOLINT
  Tensor forward(const Tensor& input) const;
  const ModulePtr<Module>& ptr() const { return module_; }
  bool is_empty() const { return !module_; }

 private:
  ModulePtr<Module> module_;
  Tensor (*forward_)(Module&, const Tensor&) = nullptr;
};

// Modules called one after another. Children are named "0", "1", ... or by the pairs given.
class SequentialImpl : public Module {
 public:
  SequentialImpl() = default;
  template <class... Modules>
  explicit SequentialImpl(const Modules&... modules) {
    (push_back(modules), ...);
  }
  SequentialImpl(std::initializer_list<std::pair<std::string, AnyModule>> named) {
    for (const auto& item : named) push_back(item.first, item.second);
  }
  void push_back(AnyModule module);
  void push_back(std::string name, AnyModule module);
  Tensor forward(const Tensor& input);
  void describe(std::ostream& out) const override;

  size_t size() const { return steps_.size(); }
  bool is_empty() const { return steps_.empty(); }
  // IndexError outside [0, size()).
  const ModulePtr<Module>& operator[](size_t i) const { return at_index(i).ptr(); }
  const ModulePtr<Module>& ptr(size_t i) const { return at_index(i).ptr(); }
  // The module at i as T (an implementation class, or a holder); TypeError where it is something else.
  template <class T>
  auto& at(size_t i) const;
  auto begin() const { return steps_.begin(); }
  auto end() const { return steps_.end(); }

 private:
  const AnyModule& at_index(size_t i) const;
  std::vector<AnyModule> steps_;
};
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  Sequential() = default;
  Sequential(ModuleHolder<SequentialImpl> holder)
      : ModuleHolder<SequentialImpl>(std::move(holder)) {}  // NOLINT
  // Sequential({{"first", Linear(1, 2)}, {"act", ReLU()}}).
  Sequential(std::initializer_list<std::pair<std::string, AnyModule>> named)
      : ModuleHolder(make_module<SequentialImpl>(named)) {}
};

// Modules in a list, registered as "0", "1", ...; the program calls them itself:
//   for (const auto& block : *blocks) h = block->as<Block>()->forward(h);
class ModuleListImpl : public Module {
 public:
  ModuleListImpl() = default;
  template <class... Modules>
  explicit ModuleListImpl(const Modules&... modules) {
    (push_back(ModulePtr<Module>(modules)), ...);
  }
  void push_back(ModulePtr<Module> module);
  template <class Contained>
  void push_back(const ModuleHolder<Contained>& holder) {
    push_back(ModulePtr<Module>(holder.ptr()));
  }
  void extend(const ModuleListImpl& other);
  void describe(std::ostream& out) const override;

  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  const ModulePtr<Module>& operator[](size_t i) const { return ptr(i); }
  const ModulePtr<Module>& ptr(size_t i) const;
  template <class T>
  auto& at(size_t i) const;
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<ModulePtr<Module>> items_;
};
VESTA_MODULE(ModuleList);

namespace detail {
[[noreturn]] void wrong_module_type(const char* container, size_t i, const Module& module);
}
template <class T>
auto& SequentialImpl::at(size_t i) const {
  auto* found = ptr(i)->template as<T>();
  if (!found) detail::wrong_module_type("Sequential", i, *ptr(i));
  return *found;
}
template <class T>
auto& ModuleListImpl::at(size_t i) const {
  auto* found = ptr(i)->template as<T>();
  if (!found) detail::wrong_module_type("ModuleList", i, *ptr(i));
  return *found;
}

namespace utils {

// Scales all gradients by max_norm / norm where their joint norm exceeds max_norm, and returns that norm from before,
// as a 0-dim tensor (libtorch: double), so that a step can be captured; .item<double>() reads it. Parameters without
// a gradient are skipped. norm_type > 0, infinity included. ValueError where error_if_nonfinite and the norm is not
// finite (this reads the norm).
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
// Clamps every gradient to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
// All elements in one vector, and back; vector_to_parameters writes in place. ValueError where lengths differ.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

}  // namespace utils
}  // namespace vesta::nn
