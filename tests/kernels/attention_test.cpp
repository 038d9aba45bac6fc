// Attention forward and backward against float64 loops: masks, causal, odd lengths and head dims, grouped heads,
// packed (strided) inputs, fully masked rows, few heads with many keys.
#include "kernels/cpu/attention.h"

#include <vesta/error.h>

#include <memory>

#include "base/thread_pool.h"
#include "kernel_testing.h"

namespace vesta::cpu {
namespace {

using namespace testing;

struct Case {
  int64_t batch, heads, kv_heads, q_len, k_len, dim, value_dim;
  bool causal;
  MaskKind mask;
  bool packed;  // q, k, v interleaved in one [batch, length, 3, heads, dim] buffer
  bool
      mask_full;  // mask of [batch, heads, q, k]; else [1, 1, q, k] broadcast, or [.., 1, k] when q_len is odd
};

const Case kCases[] = {
    {1, 1, 1, 1, 1, 1, 1, false, MaskKind::None, false, false},
    {2, 2, 2, 5, 7, 16, 16, false, MaskKind::None, false, false},
    {2, 3, 3, 64, 64, 32, 32, true, MaskKind::None, true, false},
    {1, 2, 2, 77, 77, 40, 40, true, MaskKind::None, true, false},
    {1, 2, 2, 33, 300, 64, 24, false, MaskKind::Additive, false, true},
    {1, 4, 2, 50, 61, 17, 19, true, MaskKind::Bool, false, false},
    {2, 6, 1, 20, 20, 96, 96, true, MaskKind::Additive, false, false},
    {1, 1, 1, 300, 700, 48, 48, true, MaskKind::None, false, false},
    {1, 2, 1, 700, 530, 20, 20, true, MaskKind::None, false, false},
    {1, 1, 1, 35, 600, 256, 256, false, MaskKind::Bool, false, true},
    {3, 3, 3, 270, 270, 8, 8, false, MaskKind::None, false, false},
    {1, 9, 9, 30, 260, 512, 5, true, MaskKind::None, false, false},
};

HeadStrides contiguous(int64_t heads, int64_t len, int64_t dim) {
  return {heads * len * dim, len * dim, dim};
}
int64_t offset(HeadStrides s, int64_t b, int64_t h, int64_t i) {
  return b * s.batch + h * s.head + i * s.row;
}

struct Problem {
  Case c;
  AttentionArgs args;
  std::unique_ptr<Array> q, k, v, mask, grad_out;
  int64_t q_base = 0, k_base = 0, v_base = 0;  // element offsets of the views in their buffers

  Problem(const Case& given, Elem type, uint64_t seed) : c(given) {
    Random random(seed);
    args.type = type;
    args.batch = c.batch;
    args.heads = c.heads;
    args.kv_heads = c.kv_heads;
    args.q_len = c.q_len;
    args.k_len = c.k_len;
    args.dim = c.dim;
    args.value_dim = c.value_dim;
    args.scale = 1 / std::sqrt(double(c.dim));
    args.causal = c.causal;
    if (c.packed) {
      const int64_t width = c.heads * c.dim;
      q = std::make_unique<Array>(random.array(type, c.batch * c.q_len * 3 * width));
      args.q_strides = args.k_strides = args.v_strides = {c.q_len * 3 * width, c.dim, 3 * width};
      k_base = width;
      v_base = 2 * width;
      args.q = q->data();
      args.k = q->at(k_base);
      args.v = q->at(v_base);
    } else {
      q = std::make_unique<Array>(random.array(type, c.batch * c.heads * c.q_len * c.dim));
      k = std::make_unique<Array>(random.array(type, c.batch * c.kv_heads * c.k_len * c.dim));
      v = std::make_unique<Array>(random.array(type, c.batch * c.kv_heads * c.k_len * c.value_dim));
      args.q_strides = contiguous(c.heads, c.q_len, c.dim);
      args.k_strides = contiguous(c.kv_heads, c.k_len, c.dim);
      args.v_strides = contiguous(c.kv_heads, c.k_len, c.value_dim);
      args.q = q->data();
      args.k = k->data();
      args.v = v->data();
    }
    // [batch, q_len, heads, value_dim], the layout that a projection reads.
    args.out_strides = {c.q_len * c.heads * c.value_dim, c.value_dim, c.heads * c.value_dim};
    grad_out = std::make_unique<Array>(random.array(type, c.batch * c.heads * c.q_len * c.value_dim));
    args.mask_kind = c.mask;
    if (c.mask != MaskKind::None) {
      const bool one_row = !c.mask_full && c.q_len % 2 == 1;
      const int64_t rows = one_row ? 1 : c.q_len, planes = c.mask_full ? c.batch * c.heads : 1;
      const Elem mask_type = c.mask == MaskKind::Bool ? Elem::Bool : accumulate_type(type);
      mask = std::make_unique<Array>(mask_type, planes * rows * c.k_len);
      for (int64_t i = 0; i < mask->size(); ++i) {
        if (c.mask == MaskKind::Bool)
          mask->set(i, random.below(4) > 0);
        else
          mask->set(i, random.below(5) == 0 ? -INFINITY : random.normal());
      }
      // A query that sees nothing.
      for (int64_t j = 0; j < c.k_len && !one_row; ++j)
        mask->set((rows / 2) * c.k_len + j, c.mask == MaskKind::Bool ? 0 : -INFINITY);
      args.mask = mask->data();
      args.mask_col = 1;
      args.mask_row = one_row ? 0 : c.k_len;
      args.mask_head = c.mask_full ? rows * c.k_len : 0;
      args.mask_batch = c.mask_full ? c.heads * rows * c.k_len : 0;
    }
  }

  // What the reference reads: plain doubles, as an Array decodes its type at each element.
  struct Values {
    std::vector<double> q, k, v, grad, mask;
  };
  Values values() const {
    return {q->values(), (c.packed ? q : k)->values(), (c.packed ? q : v)->values(), grad_out->values(),
            mask ? mask->values() : std::vector<double>()};
  }
};

struct Reference {
  std::vector<double> out, lse, dq, dk,
      dv;  // out as out_strides; the others contiguous [batch, heads, len, dim]
};

Reference reference(const Problem& p) {
  const Case& c = p.c;
  const HeadStrides os = p.args.out_strides, qs = contiguous(c.heads, c.q_len, c.dim),
                    ks = contiguous(c.kv_heads, c.k_len, c.dim),
                    vs = contiguous(c.kv_heads, c.k_len, c.value_dim);
  Reference r;
  r.out.assign(static_cast<size_t>(c.batch * c.heads * c.q_len * c.value_dim), 0);
  r.dq.assign(static_cast<size_t>(c.batch * c.heads * c.q_len * c.dim), 0);
  r.dk.assign(static_cast<size_t>(c.batch * c.kv_heads * c.k_len * c.dim), 0);
  r.dv.assign(static_cast<size_t>(c.batch * c.kv_heads * c.k_len * c.value_dim), 0);
  const Problem::Values data = p.values();
  const HeadStrides qr = p.args.q_strides, kr = p.args.k_strides, vr = p.args.v_strides;
  auto query = [&](int64_t b, int64_t h, int64_t i) {
    return data.q.data() + p.q_base + offset(qr, b, h, i);
  };
  auto key = [&](int64_t b, int64_t h, int64_t j) { return data.k.data() + p.k_base + offset(kr, b, h, j); };
  auto value = [&](int64_t b, int64_t h, int64_t j) {
    return data.v.data() + p.v_base + offset(vr, b, h, j);
  };
  auto at = [](std::vector<double>& v, int64_t i) -> double& { return v[static_cast<size_t>(i)]; };
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.q_len; ++i) {
        const int64_t g = h / (c.heads / c.kv_heads);
        std::vector<double> s;
        double m = -INFINITY, sum = 0;
        for (int64_t j = 0; j < c.k_len; ++j) {
          double score = 0;
          for (int64_t d = 0; d < c.dim; ++d) score += query(b, h, i)[d] * key(b, g, j)[d];
          score *= p.args.scale;
          if (c.causal && j > i) score = -INFINITY;
          if (c.mask != MaskKind::None) {
            const double mask = data.mask[static_cast<size_t>(b * p.args.mask_batch + h * p.args.mask_head +
                                                              i * p.args.mask_row + j * p.args.mask_col)];
            score = c.mask == MaskKind::Additive ? score + mask : mask != 0 ? score : -INFINITY;
          }
          s.push_back(score);
          m = std::max(m, score);
        }
        for (double x : s) sum += m == -INFINITY ? 0 : std::exp(x - m);
        r.lse.push_back(m == -INFINITY ? m : m + std::log(sum));
        if (m == -INFINITY) continue;
        double delta = 0;
        std::vector<double> dp;
        for (int64_t j = 0; j < c.k_len; ++j) {
          double x = 0;
          const double prob = std::exp(s[static_cast<size_t>(j)] - r.lse.back());
          for (int64_t d = 0; d < c.value_dim; ++d) {
            const double grad = data.grad[static_cast<size_t>(offset(os, b, h, i) + d)];
            at(r.out, offset(os, b, h, i) + d) += prob * value(b, g, j)[d];
            at(r.dv, offset(vs, b, g, j) + d) += prob * grad;
            x += grad * value(b, g, j)[d];
          }
          dp.push_back(x);
          delta += prob * x;
        }
        for (int64_t j = 0; j < c.k_len; ++j) {
          const double prob = std::exp(s[static_cast<size_t>(j)] - r.lse.back());
          const double ds = prob * (dp[static_cast<size_t>(j)] - delta) * p.args.scale;
          for (int64_t d = 0; d < c.dim; ++d) {
            at(r.dq, offset(qs, b, h, i) + d) += ds * key(b, g, j)[d];
            at(r.dk, offset(ks, b, g, j) + d) += ds * query(b, h, i)[d];
          }
        }
      }
  return r;
}

struct Result {
  Array out, lse, dq, dk, dv;
};

Result run(const Problem& p, CpuIsa level) {
  const Case& c = p.c;
  const Elem type = p.args.type;
  Result r{Array(type, c.batch * c.heads * c.q_len * c.value_dim),
           Array(accumulate_type(type), c.batch * c.heads * c.q_len),
           Array(type, c.batch * c.heads * c.q_len * c.dim),
           Array(type, c.batch * c.kv_heads * c.k_len * c.dim),
           Array(type, c.batch * c.kv_heads * c.k_len * c.value_dim)};
  attention_table(level).forward(p.args, r.out.data(), r.lse.data());
  AttentionGrads g;
  g.grad_out = p.grad_out->data();
  g.out = r.out.data();
  g.logsumexp = r.lse.data();
  g.grad_out_strides = p.args.out_strides;
  g.dq = r.dq.data();
  g.dk = r.dk.data();
  g.dv = r.dv.data();
  g.dq_strides = contiguous(c.heads, c.q_len, c.dim);
  g.dk_strides = contiguous(c.kv_heads, c.k_len, c.dim);
  g.dv_strides = contiguous(c.kv_heads, c.k_len, c.value_dim);
  attention_table(level).backward(p.args, g);
  return r;
}

TEST(Attention, MatchesFloat64ForEveryCaseTypeAndLevel) {
  for (const Case& c : kCases)
    for (Elem type : float_types()) {
      const Problem p(c, type, 61);
      const Reference want = reference(p);
      for (CpuIsa level : levels()) {
        SCOPED_TRACE(::testing::Message()
                     << cpu_isa_name(level) << " type " << int(type) << " case " << &c - kCases);
        const Result got = run(p, level);
        // Gradients of 16-bit types see the rounded output through rowsum(dO * O).
        const double tolerance = 2 * epsilon(type) + 60 * epsilon(accumulate_type(type));
        const double grads = tolerance + (elem_size(type) == 2 ? 4 * epsilon(type) : 0);
        expect_close(got.lse, want.lse, 30 * epsilon(accumulate_type(type)), "logsumexp");
        expect_close(got.out, want.out, tolerance, "out");
        expect_close(got.dq, want.dq, grads, "dq");
        expect_close(got.dk, want.dk, grads, "dk");
        expect_close(got.dv, want.dv, grads, "dv");
      }
    }
}

TEST(Attention, DoesNotDependOnTheThreadCount) {
  const int threads = num_threads();
  for (int which : {2, 7, 8}) {
    const Problem p(kCases[which], Elem::F32, 62);
    set_num_threads(1);
    const Result one = run(p, cpu_isa());
    set_num_threads(3);
    const Result many = run(p, cpu_isa());
    EXPECT_TRUE(one.out.same_bits(many.out) && one.dq.same_bits(many.dq) && one.dk.same_bits(many.dk) &&
                one.dv.same_bits(many.dv))
        << "case " << which;
  }
  set_num_threads(threads);
}

TEST(Attention, AQueryThatSeesNothingGivesZerosEverywhere) {
  const Problem p(kCases[9], Elem::F32, 63);
  const Result r = run(p, cpu_isa());
  const int64_t row = p.c.q_len / 2;
  ASSERT_EQ(r.lse[row], -INFINITY);
  for (int64_t d = 0; d < p.c.dim; ++d) {
    EXPECT_EQ(r.dq[row * p.c.dim + d], 0);
    EXPECT_EQ(r.out[row * p.c.value_dim + d], 0);
  }
}

TEST(Attention, NoKeysGiveZeros) {
  for (CpuIsa level : levels()) {
    Case c = kCases[1];
    c.k_len = 0;
    const Problem p(c, Elem::F32, 64);
    const Result r = run(p, level);
    for (double x : r.out.values()) EXPECT_EQ(x, 0);
    for (double x : r.dq.values()) EXPECT_EQ(x, 0);
  }
}

TEST(Attention, ANanInAKeyReachesTheQueriesThatSeeIt) {
  Case c = kCases[2];
  c.packed = false;
  Problem p(c, Elem::F32, 65);
  p.k->set(40 * c.dim, NAN);  // key 40 of the first head
  const Result r = run(p, cpu_isa());
  EXPECT_FALSE(std::isnan(r.out[offset(p.args.out_strides, 0, 0, 39)]));
  EXPECT_TRUE(std::isnan(r.out[offset(p.args.out_strides, 0, 0, 40)]));
  EXPECT_FALSE(std::isnan(r.out[offset(p.args.out_strides, 0, 1, 40)]));
}

TEST(Attention, RejectsHeadDimsAndHeadCountsItCannotRun) {
  AttentionArgs args;
  args.heads = 3;
  args.dim = 513;
  EXPECT_THROW(attention_forward(args, nullptr, nullptr), ValueError);
  args.dim = 8;
  args.kv_heads = 2;
  EXPECT_THROW(attention_forward(args, nullptr, nullptr), ValueError);
}

}  // namespace
}  // namespace vesta::cpu
