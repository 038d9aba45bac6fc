// CTC: alpha runs forward, beta backward over the states of each sample; label posteriors are alpha + beta - log p.
#include "kernels/cpu/ctc.h"

#include <vesta/error.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/thread_pool.h"

namespace vesta::cpu {
namespace {

template <class A>
constexpr A kNone = -std::numeric_limits<A>::infinity();

// log(exp(a) + exp(b) + exp(c)); -infinity for three of it.
template <class A>
A log_sum(A a, A b, A c = kNone<A>) {
  const A largest = std::max(a, std::max(b, c));
  if (largest == kNone<A>) return largest;
  return largest + std::log(std::exp(a - largest) + std::exp(b - largest) + std::exp(c - largest));
}

// The states of one sample: blanks at even, labels at odd positions.
struct States {
  const int64_t* labels;
  int64_t count, blank;
  int64_t at(int64_t s) const { return s % 2 ? labels[s / 2] : blank; }
  // Whether state s may follow s - 2: a label after another label.
  bool skips(int64_t s) const { return s >= 2 && s % 2 && labels[s / 2] != labels[s / 2 - 1]; }
};
States states_of(const CtcShape& s, int64_t n) {
  return {s.targets + s.target_offset[n], 2 * s.target_length[n] + 1, s.blank};
}

template <class A>
void forward_sample(const A* log_probs, const CtcShape& s, int64_t n, A* loss, A* alpha) {
  const States st = states_of(s, n);
  const int64_t frames = s.input_length[n], step = s.batch * s.classes;
  std::fill(alpha, alpha + s.time * s.states, kNone<A>);
  if (frames == 0) {
    *loss = st.count == 1 ? A(0) : -kNone<A>;
    return;
  }
  const A* p = log_probs + n * s.classes;
  alpha[0] = p[s.blank];
  if (st.count > 1) alpha[1] = p[st.at(1)];
  for (int64_t t = 1; t < frames; ++t) {
    p += step;
    const A* before = alpha + (t - 1) * s.states;
    A* now = alpha + t * s.states;
    for (int64_t i = 0; i < st.count; ++i) {
      const A one = i > 0 ? before[i - 1] : kNone<A>, two = st.skips(i) ? before[i - 2] : kNone<A>;
      now[i] = log_sum(before[i], one, two) + p[st.at(i)];
    }
  }
  const A* last = alpha + (frames - 1) * s.states;
  *loss = -log_sum(last[st.count - 1], st.count > 1 ? last[st.count - 2] : kNone<A>);
}

template <class A>
void backward_sample(A dy, const A* log_probs, const CtcShape& s, int64_t n, A loss, const A* alpha,
                     bool zero_infinity, A* gradient, std::vector<A>& beta) {
  const States st = states_of(s, n);
  const int64_t frames = s.input_length[n], step = s.batch * s.classes;
  for (int64_t t = 0; t < s.time; ++t) {
    A* g = gradient + t * step + n * s.classes;
    std::fill(g, g + s.classes, t < frames ? kNone<A> : A(0));
  }
  if (zero_infinity && loss == -kNone<A>) {
    for (int64_t t = 0; t < frames; ++t) {
      A* g = gradient + t * step + n * s.classes;
      std::fill(g, g + s.classes, A(0));
    }
    return;
  }
  beta.assign(size_t(st.count), kNone<A>);
  for (int64_t t = frames - 1; t >= 0; --t) {
    const A *p = log_probs + t * step + n * s.classes, *a = alpha + t * s.states;
    A* g = gradient + t * step + n * s.classes;
    if (t == frames - 1) {
      beta[size_t(st.count - 1)] = p[s.blank];
      if (st.count > 1) beta[size_t(st.count - 2)] = p[st.at(st.count - 2)];
    } else {
      // In place: state i needs the later frame's i, i + 1 and i + 2 only.
      for (int64_t i = 0; i < st.count; ++i) {
        const A one = i + 1 < st.count ? beta[size_t(i + 1)] : kNone<A>;
        const A two = i + 2 < st.count && st.skips(i + 2) ? beta[size_t(i + 2)] : kNone<A>;
        beta[size_t(i)] = log_sum(beta[size_t(i)], one, two) + p[st.at(i)];
      }
    }
    // Posterior mass of each class, still in log space; p is in both alpha and beta.
    for (int64_t i = 0; i < st.count; ++i) {
      A& sum = g[st.at(i)];
      sum = log_sum(sum, a[i] + beta[size_t(i)]);
    }
    for (int64_t c = 0; c < s.classes; ++c) g[c] = (std::exp(p[c]) - std::exp(g[c] + loss - p[c])) * dy;
  }
}

template <class F>
void with_type(Elem type, F f) {
  VESTA_CHECK_AS(TypeError, type == Elem::F32 || type == Elem::F64, "ctc: expected float32 or float64");
  if (type == Elem::F32)
    f(float{});
  else
    f(double{});
}

}  // namespace

void ctc_forward(Elem type, const void* log_probs, const CtcShape& s, void* loss, void* log_alpha) {
  with_type(type, [&]<class A>(A) {
    parallel_for(0, s.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        forward_sample(static_cast<const A*>(log_probs), s, n, static_cast<A*>(loss) + n,
                       static_cast<A*>(log_alpha) + n * s.time * s.states);
    });
  });
}

void ctc_backward(Elem type, const void* dy, const void* log_probs, const CtcShape& s, const void* loss,
                  const void* log_alpha, bool zero_infinity, void* gradient) {
  with_type(type, [&]<class A>(A) {
    parallel_for(0, s.batch, 1, [&](int64_t begin, int64_t end) {
      std::vector<A> beta;
      for (int64_t n = begin; n < end; ++n)
        backward_sample(static_cast<const A*>(dy)[n], static_cast<const A*>(log_probs), s, n,
                        static_cast<const A*>(loss)[n],
                        static_cast<const A*>(log_alpha) + n * s.time * s.states, zero_infinity,
                        static_cast<A*>(gradient), beta);
    });
  });
}

}  // namespace vesta::cpu
