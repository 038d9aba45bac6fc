// The cells of recurrent layers, a row at a time. Loops are plain: the prelude's functions are branch-free, so they
// vectorise. Nothing here runs on the pool: the caller cuts the work.
#include "kernels/cpu/recurrent.h"

#include "vesta/scalar/prelude.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

using scalar::sigmoid_;
using scalar::tanh_;

template <class F>
void with_type(Elem type, F f) {
  type == Elem::F64 ? f(double{}) : f(float{});
}

// Gates of a row are `hidden` apart; n units of each.
template <class T>
void lstm_row(int64_t n, int64_t hidden, T* __restrict gates, T* __restrict c_state, T* __restrict c,
              T* __restrict h) {
  T *ig = gates, *fg = gates + hidden, *gg = gates + 2 * hidden, *og = gates + 3 * hidden;
  for (int64_t j = 0; j < n; ++j) {
    const T i = sigmoid_(ig[j]), f = sigmoid_(fg[j]), g = tanh_(gg[j]), o = sigmoid_(og[j]);
    const T cell = f * c_state[j] + i * g;
    ig[j] = i, fg[j] = f, gg[j] = g, og[j] = o;
    c_state[j] = c[j] = cell;
    h[j] = o * tanh_(cell);
  }
}
void lstm(Elem type, int64_t rows, int64_t hidden, int64_t units, void* gates, void* c_state, void* c,
          void* h) {
  with_type(type, [&]<class T>(T) {
    for (int64_t r = 0; r < rows; ++r)
      lstm_row(units, hidden, static_cast<T*>(gates) + r * 4 * hidden, static_cast<T*>(c_state) + r * hidden,
               static_cast<T*>(c) + r * hidden, static_cast<T*>(h) + r * hidden);
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
void lstm_backward(Elem type, int64_t n, const void* gates, const void* c_before, const void* c,
                   const void* dh, void* dc, void* dgates) {
  with_type(type, [&]<class T>(T) {
    lstm_row_backward(n, static_cast<const T*>(gates), static_cast<const T*>(c_before),
                      static_cast<const T*>(c), static_cast<const T*>(dh), static_cast<T*>(dc),
                      static_cast<T*>(dgates));
  });
}

template <class T>
void gru_row(int64_t n, int64_t hidden, const T* __restrict x, const T* __restrict hx, T* __restrict saved,
             const T* __restrict h_state, T* __restrict h) {
  for (int64_t j = 0; j < n; ++j) {
    const T r = sigmoid_(x[j] + hx[j]), z = sigmoid_(x[hidden + j] + hx[hidden + j]),
            inner = hx[2 * hidden + j];
    const T m = tanh_(x[2 * hidden + j] + r * inner);
    saved[j] = r, saved[hidden + j] = z, saved[2 * hidden + j] = m, saved[3 * hidden + j] = inner;
    h[j] = (h_state[j] - m) * z + m;
  }
}
void gru(Elem type, int64_t rows, int64_t hidden, int64_t units, const void* input_gates,
         const void* hidden_gates, void* saved, const void* h_state, void* h) {
  with_type(type, [&]<class T>(T) {
    for (int64_t r = 0; r < rows; ++r)
      gru_row(units, hidden, static_cast<const T*>(input_gates) + r * 3 * hidden,
              static_cast<const T*>(hidden_gates) + r * 3 * hidden, static_cast<T*>(saved) + r * 4 * hidden,
              static_cast<const T*>(h_state) + r * hidden, static_cast<T*>(h) + r * hidden);
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
void gru_backward(Elem type, int64_t n, const void* saved, const void* h_before, void* dh, void* dgates,
                  void* dhidden_gates) {
  with_type(type, [&]<class T>(T) {
    gru_row_backward(n, static_cast<const T*>(saved), static_cast<const T*>(h_before), static_cast<T*>(dh),
                     static_cast<T*>(dgates), static_cast<T*>(dhidden_gates));
  });
}

template <class T>
void plain_row(bool relu, int64_t n, T* h) {
  if (relu)
    for (int64_t j = 0; j < n; ++j) h[j] = h[j] < 0 ? T(0) : h[j];  // keeps NaN
  else
    for (int64_t j = 0; j < n; ++j) h[j] = tanh_(h[j]);
}
void plain(Elem type, bool relu, int64_t rows, int64_t hidden, int64_t units, void* h) {
  with_type(type, [&]<class T>(T) {
    for (int64_t r = 0; r < rows; ++r) plain_row(relu, units, static_cast<T*>(h) + r * hidden);
  });
}
template <class T>
void plain_row_backward(bool relu, int64_t n, const T* __restrict h, const T* __restrict dh,
                        T* __restrict d) {
  if (relu)
    for (int64_t j = 0; j < n; ++j) d[j] = h[j] > 0 ? dh[j] : T(0);
  else
    for (int64_t j = 0; j < n; ++j) d[j] = dh[j] * (1 - h[j] * h[j]);
}
void plain_backward(Elem type, bool relu, int64_t n, const void* h, const void* dh, void* dgates) {
  with_type(type, [&]<class T>(T) {
    plain_row_backward(relu, n, static_cast<const T*>(h), static_cast<const T*>(dh), static_cast<T*>(dgates));
  });
}

}  // namespace

extern const RnnCellTable kRnnCellTable;
const RnnCellTable kRnnCellTable = {lstm, lstm_backward, gru, gru_backward, plain, plain_backward};

}  // namespace vesta::cpu::VESTA_ISA
