// The cells of recurrent layers, a row at a time. Loops are plain: the prelude's functions are branch-free, so they
// vectorise. Row chunks depend on the sizes alone.
#include "kernels/cpu/recurrent.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "vesta/scalar/prelude.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

using scalar::sigmoid_;
using scalar::tanh_;

constexpr int64_t kWork = 2048;  // hidden units per parallel chunk

template <class F>
void with_type(Elem type, F f) {
  type == Elem::F64 ? f(double{}) : f(float{});
}
template <class F>
void for_rows(int64_t rows, int64_t hidden, F body) {
  parallel_for(0, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, hidden)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) body(r);
               });
}

template <class T>
void lstm_row(int64_t n, T* __restrict gates, T* __restrict c_state, T* __restrict c, T* __restrict h_state,
              T* __restrict h) {
  T *ig = gates, *fg = gates + n, *gg = gates + 2 * n, *og = gates + 3 * n;
  for (int64_t j = 0; j < n; ++j) {
    const T i = sigmoid_(ig[j]), f = sigmoid_(fg[j]), g = tanh_(gg[j]), o = sigmoid_(og[j]);
    const T cell = f * c_state[j] + i * g, out = o * tanh_(cell);
    ig[j] = i, fg[j] = f, gg[j] = g, og[j] = o;
    c_state[j] = c[j] = cell;
    h_state[j] = h[j] = out;
  }
}
void lstm(Elem type, int64_t rows, int64_t n, void* gates, void* c_state, void* c, void* h_state, void* h) {
  with_type(type, [&]<class T>(T) {
    for_rows(rows, n, [&](int64_t r) {
      lstm_row(n, static_cast<T*>(gates) + r * 4 * n, static_cast<T*>(c_state) + r * n,
               static_cast<T*>(c) + r * n, static_cast<T*>(h_state) + r * n, static_cast<T*>(h) + r * n);
    });
  });
}

template <class T>
void lstm_row_backward(int64_t n, const T* __restrict gates, const T* __restrict c_before,
                       const T* __restrict c, const T* __restrict dh, T* __restrict dc, T* __restrict d) {
  const T *ig = gates, *fg = gates + n, *gg = gates + 2 * n, *og = gates + 3 * n;
  for (int64_t j = 0; j < n; ++j) {
    const T i = ig[j], f = fg[j], g = gg[j], o = og[j], t = tanh_(c[j]);
    const T dcell = dc[j] + dh[j] * o * (1 - t * t);
    d[j] = dcell * g * i * (1 - i);
    d[n + j] = dcell * c_before[j] * f * (1 - f);
    d[2 * n + j] = dcell * i * (1 - g * g);
    d[3 * n + j] = dh[j] * t * o * (1 - o);
    dc[j] = dcell * f;
  }
}
void lstm_backward(Elem type, int64_t rows, int64_t n, const void* gates, const void* c_before, const void* c,
                   const void* dh, void* dc, void* dgates) {
  with_type(type, [&]<class T>(T) {
    for_rows(rows, n, [&](int64_t r) {
      lstm_row_backward(n, static_cast<const T*>(gates) + r * 4 * n, static_cast<const T*>(c_before) + r * n,
                        static_cast<const T*>(c) + r * n, static_cast<const T*>(dh) + r * n,
                        static_cast<T*>(dc) + r * n, static_cast<T*>(dgates) + r * 4 * n);
    });
  });
}

template <class T>
void gru_row(int64_t n, const T* __restrict x, const T* __restrict hx, T* __restrict saved,
             T* __restrict h_state, T* __restrict h) {
  for (int64_t j = 0; j < n; ++j) {
    const T r = sigmoid_(x[j] + hx[j]), z = sigmoid_(x[n + j] + hx[n + j]), inner = hx[2 * n + j];
    const T m = tanh_(x[2 * n + j] + r * inner), out = (h_state[j] - m) * z + m;
    saved[j] = r, saved[n + j] = z, saved[2 * n + j] = m, saved[3 * n + j] = inner;
    h_state[j] = h[j] = out;
  }
}
void gru(Elem type, int64_t rows, int64_t n, const void* input_gates, const void* hidden_gates, void* saved,
         void* h_state, void* h) {
  with_type(type, [&]<class T>(T) {
    for_rows(rows, n, [&](int64_t r) {
      gru_row(n, static_cast<const T*>(input_gates) + r * 3 * n,
              static_cast<const T*>(hidden_gates) + r * 3 * n, static_cast<T*>(saved) + r * 4 * n,
              static_cast<T*>(h_state) + r * n, static_cast<T*>(h) + r * n);
    });
  });
}

template <class T>
void gru_row_backward(int64_t n, const T* __restrict saved, const T* __restrict h_before, T* __restrict dh,
                      T* __restrict d, T* __restrict dx) {
  for (int64_t j = 0; j < n; ++j) {
    const T r = saved[j], z = saved[n + j], m = saved[2 * n + j], inner = saved[3 * n + j];
    const T dm = dh[j] * (1 - z) * (1 - m * m), dr = dm * inner * r * (1 - r);
    const T dz = dh[j] * (h_before[j] - m) * z * (1 - z);
    d[j] = dx[j] = dr;
    d[n + j] = dx[n + j] = dz;
    d[2 * n + j] = dm;
    dx[2 * n + j] = dm * r;
    dh[j] = dh[j] * z;
  }
}
void gru_backward(Elem type, int64_t rows, int64_t n, const void* saved, const void* h_before, void* dh,
                  void* dgates, void* dhidden_gates) {
  with_type(type, [&]<class T>(T) {
    for_rows(rows, n, [&](int64_t r) {
      gru_row_backward(n, static_cast<const T*>(saved) + r * 4 * n, static_cast<const T*>(h_before) + r * n,
                       static_cast<T*>(dh) + r * n, static_cast<T*>(dgates) + r * 3 * n,
                       static_cast<T*>(dhidden_gates) + r * 3 * n);
    });
  });
}

template <class T>
void plain_run(bool relu, int64_t n, T* __restrict state, T* __restrict h) {
  if (relu)
    for (int64_t j = 0; j < n; ++j) state[j] = h[j] = h[j] < 0 ? T(0) : h[j];  // keeps NaN
  else
    for (int64_t j = 0; j < n; ++j) state[j] = h[j] = tanh_(h[j]);
}
void plain(Elem type, bool relu, int64_t n, void* h_state, void* h) {
  with_type(type, [&]<class T>(T) {
    parallel_for(0, n, 2 * kWork, [&](int64_t begin, int64_t end) {
      plain_run(relu, end - begin, static_cast<T*>(h_state) + begin, static_cast<T*>(h) + begin);
    });
  });
}
template <class T>
void plain_run_backward(bool relu, int64_t n, const T* __restrict h, const T* __restrict dh,
                        T* __restrict d) {
  if (relu)
    for (int64_t j = 0; j < n; ++j) d[j] = h[j] > 0 ? dh[j] : T(0);
  else
    for (int64_t j = 0; j < n; ++j) d[j] = dh[j] * (1 - h[j] * h[j]);
}
void plain_backward(Elem type, bool relu, int64_t n, const void* h, const void* dh, void* dgates) {
  with_type(type, [&]<class T>(T) {
    parallel_for(0, n, 8 * kWork, [&](int64_t begin, int64_t end) {
      plain_run_backward(relu, end - begin, static_cast<const T*>(h) + begin,
                         static_cast<const T*>(dh) + begin, static_cast<T*>(dgates) + begin);
    });
  });
}

}  // namespace

extern const RnnCellTable kRnnCellTable;
const RnnCellTable kRnnCellTable = {lstm, lstm_backward, gru, gru_backward, plain, plain_backward};

}  // namespace vesta::cpu::VESTA_ISA
