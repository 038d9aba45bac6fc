// Adam, AdamW, SGD, gradient norm and scaling against float64 loops over lists of tensors of odd sizes.
#include "kernels/cpu/adamw.h"

#include <vesta/error.h>

#include "base/thread_pool.h"
#include "kernel_testing.h"

namespace vesta::cpu {
namespace {

using namespace testing;

const int64_t kSizes[] = {1, 0, 7, 16, 33, 5000, 20001, 3};

std::vector<Array> make(Random& random, Elem type, bool positive) {
  std::vector<Array> list;
  for (int64_t n : kSizes) {
    list.push_back(random.array(type, n));
    if (positive)
      for (int64_t i = 0; i < n; ++i) list.back().set(i, std::fabs(list.back()[i]));
  }
  return list;
}

const OptimTypes kTypes[] = {{Elem::F32, Elem::F32, Elem::F32},    {Elem::F64, Elem::F64, Elem::F64},
                             {Elem::BF16, Elem::BF16, Elem::BF16}, {Elem::F16, Elem::F16, Elem::F16},
                             {Elem::BF16, Elem::BF16, Elem::F32},  {Elem::F16, Elem::F16, Elem::F32},
                             {Elem::F32, Elem::BF16, Elem::F32},   {Elem::F32, Elem::F16, Elem::F32}};

TEST(Adam, MatchesFloat64ForEveryOptionTypeAndLevel) {
  for (CpuIsa level : levels())
    for (OptimTypes types : kTypes)
      for (int options = 0; options < 16; ++options) {
        SCOPED_TRACE(::testing::Message() << cpu_isa_name(level) << " types " << int(types.param)
                                          << int(types.grad) << int(types.state) << " options " << options);
        AdamOptions o;
        o.lr = 0.05;
        o.weight_decay = options & 1 ? 0.1 : 0;
        o.decoupled = options & 2;
        o.amsgrad = options & 4;
        o.maximize = options & 8;
        o.grad_scale = options & 1 ? 0.5 : 1;
        Random random(41);
        auto param = make(random, types.param, false), grad = make(random, types.grad, false);
        auto m = make(random, types.state, false), v = make(random, types.state, true),
             top = make(random, types.state, true);
        std::vector<AdamTensor> list;
        std::vector<std::vector<double>> want_p, want_m, want_v, want_top;
        for (size_t t = 0; t < param.size(); ++t) {
          const double step = 3 + double(t);
          list.push_back({param[t].data(), grad[t].data(), m[t].data(), v[t].data(), top[t].data(),
                          param[t].size(), step});
          want_p.push_back(param[t].values());
          want_m.push_back(m[t].values());
          want_v.push_back(v[t].values());
          want_top.push_back(top[t].values());
          for (size_t i = 0; i < want_p[t].size(); ++i) {
            double &p = want_p[t][i], &mean = want_m[t][i], &square = want_v[t][i], &best = want_top[t][i];
            double g = grad[t][static_cast<int64_t>(i)] * o.grad_scale * (o.maximize ? -1 : 1);
            if (!o.decoupled) g += o.weight_decay * p;
            if (o.decoupled) p *= 1 - o.lr * o.weight_decay;
            mean = o.beta1 * mean + (1 - o.beta1) * g;
            square = o.beta2 * square + (1 - o.beta2) * g * g;
            if (o.amsgrad) best = std::max(best, square);
            const double denominator =
                std::sqrt(o.amsgrad ? best : square) / std::sqrt(1 - std::pow(o.beta2, step)) + o.eps;
            p -= o.lr / (1 - std::pow(o.beta1, step)) * mean / denominator;
          }
        }
        optim_table(level).adam(types, list.data(), static_cast<int64_t>(list.size()), o);
        for (size_t t = 0; t < param.size(); ++t) {
          // A tiny second moment makes the update large; its relative error stays a few roundings.
          const double p_tolerance = 2 * epsilon(types.param) + 40 * epsilon(accumulate_type(types.param));
          const double s_tolerance = 2 * epsilon(types.state) + 8 * epsilon(accumulate_type(types.param));
          expect_close(param[t], want_p[t], p_tolerance, "param");
          expect_close(m[t], want_m[t], s_tolerance, "exp_avg");
          expect_close(v[t], want_v[t], s_tolerance, "exp_avg_sq");
          if (o.amsgrad) expect_close(top[t], want_top[t], s_tolerance, "max_exp_avg_sq");
        }
      }
}

TEST(Sgd, MatchesFloat64ForEveryOptionTypeAndLevel) {
  for (CpuIsa level : levels())
    for (OptimTypes types : kTypes)
      for (int options = 0; options < 16; ++options) {
        SCOPED_TRACE(::testing::Message() << cpu_isa_name(level) << " types " << int(types.param)
                                          << int(types.grad) << int(types.state) << " options " << options);
        SgdOptions o;
        o.lr = 0.1;
        o.momentum = options & 1 ? 0.9 : 0;
        o.dampening = options & 2 && !(options & 4) ? 0.3 : 0;
        o.nesterov = options & 4 && options & 1;
        o.maximize = options & 2;
        o.weight_decay = options & 8 ? 0.01 : 0;
        Random random(42);
        auto param = make(random, types.param, false), grad = make(random, types.grad, false);
        auto buffer = make(random, types.state, false);
        std::vector<SgdTensor> list;
        std::vector<std::vector<double>> want_p, want_b;
        for (size_t t = 0; t < param.size(); ++t) {
          const bool first = t % 2 == 0;
          list.push_back({param[t].data(), grad[t].data(), buffer[t].data(), param[t].size(), first});
          want_p.push_back(param[t].values());
          want_b.push_back(buffer[t].values());
          for (size_t i = 0; i < want_p[t].size(); ++i) {
            double &p = want_p[t][i], &b = want_b[t][i];
            double g = grad[t][static_cast<int64_t>(i)] * (o.maximize ? -1 : 1) + o.weight_decay * p;
            if (o.momentum != 0) {
              b = first ? g : o.momentum * b + (1 - o.dampening) * g;
              g = o.nesterov ? g + o.momentum * b : b;
            }
            p -= o.lr * g;
          }
        }
        optim_table(level).sgd(types, list.data(), static_cast<int64_t>(list.size()), o);
        for (size_t t = 0; t < param.size(); ++t) {
          expect_close(param[t], want_p[t],
                       2 * epsilon(types.param) + 8 * epsilon(accumulate_type(types.param)), "param");
          expect_close(buffer[t], want_b[t],
                       2 * epsilon(types.state) + 8 * epsilon(accumulate_type(types.param)), "buffer");
        }
      }
}

TEST(Adam, DoesNotDependOnTheThreadCountOrOnHowTensorsAreListed) {
  const int threads = num_threads();
  Random random(43);
  const int64_t n = 70001;
  const Array p0 = random.array(Elem::F32, n), g = random.array(Elem::F32, n), zero(Elem::F32, n);
  const OptimTypes types;
  Array p[2] = {p0, p0}, m[2] = {zero, zero}, v[2] = {zero, zero};
  set_num_threads(1);
  const AdamTensor whole{p[0].data(), g.data(), m[0].data(), v[0].data(), nullptr, n, 1};
  adam_step(types, &whole, 1, {});
  set_num_threads(3);
  std::vector<AdamTensor> parts;
  for (int64_t i = 0; i < n; i += 999)
    parts.push_back({p[1].at(i), g.at(i), m[1].at(i), v[1].at(i), nullptr, std::min<int64_t>(999, n - i), 1});
  adam_step(types, parts.data(), static_cast<int64_t>(parts.size()), {});
  set_num_threads(threads);
  EXPECT_TRUE(p[0].same_bits(p[1]));
  EXPECT_TRUE(v[0].same_bits(v[1]));
}

TEST(GradNorm, SumOfSquaresAndScalingCoverTheWholeList) {
  for (CpuIsa level : levels())
    for (Elem type : float_types()) {
      SCOPED_TRACE(::testing::Message() << cpu_isa_name(level) << " type " << int(type));
      Random random(44);
      auto list = make(random, type, false);
      std::vector<FlatTensor> tensors;
      double want = 0;
      for (Array& a : list) {
        tensors.push_back({a.data(), a.size()});
        for (double x : a.values()) want += x * x;
      }
      const double got =
          optim_table(level).sum_of_squares(type, tensors.data(), static_cast<int64_t>(tensors.size()));
      EXPECT_NEAR(got / want, 1, 1e-6);
      auto before = list;
      optim_table(level).scale(type, tensors.data(), static_cast<int64_t>(tensors.size()), 0.25);
      for (size_t t = 0; t < list.size(); ++t)
        for (int64_t i = 0; i < list[t].size(); ++i) ASSERT_NEAR(list[t][i], before[t][i] * 0.25, 1e-7);
    }
}

TEST(GradNorm, EveryLevelGivesTheSameBits) {
  Random random(45);
  Array x = random.array(Elem::F32, 100003);
  const FlatTensor tensor{x.data(), x.size()};
  const double want = optim_table(CpuIsa::Baseline).sum_of_squares(Elem::F32, &tensor, 1);
  for (CpuIsa level : levels()) EXPECT_EQ(optim_table(level).sum_of_squares(Elem::F32, &tensor, 1), want);
  EXPECT_EQ(sum_of_squares(Elem::F32, nullptr, 0), 0);
}

TEST(Adam, RejectsMixedTypesThatHaveNoKernel) {
  EXPECT_THROW(adam_step({Elem::F64, Elem::F32, Elem::F32}, nullptr, 0, {}), TypeError);
  EXPECT_THROW(sgd_step({Elem::I64, Elem::I64, Elem::I64}, nullptr, 0, {}), TypeError);
}

}  // namespace
}  // namespace vesta::cpu
