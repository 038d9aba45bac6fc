// The steps of a recurrent layer: one product of the running state and one fused cell each. The running state has a row
// for each sequence; sequences that have ended (or, in reverse, not begun) simply keep theirs.
#include "kernels/cpu/recurrent.h"

#include <vesta/error.h>

#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/isa_table.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(RnnCellTable, kRnnCellTable, rnn_cell_table)

namespace {

GemmType gemm_type(Elem type) { return type == Elem::F64 ? GemmType::F64 : GemmType::F32; }

// Calls body(first row, rows) for each step, in the layer's direction or against it.
template <class F>
void for_steps(const RnnLayer& l, bool reverse, F body) {
  int64_t at = reverse ? l.rows() : 0;
  for (int64_t k = 0; k < l.steps; ++k) {
    const int64_t n = l.batch_sizes[reverse ? l.steps - 1 - k : k];
    if (reverse) at -= n;
    body(at, n);
    if (!reverse) at += n;
  }
}

char* at(void* p, int64_t bytes) { return static_cast<char*>(p) + bytes; }
const char* at(const void* p, int64_t bytes) { return static_cast<const char*>(p) + bytes; }

// C[m,n] = beta * C + A[m,k] B[k,n] + bias, all dense.
void product(Elem type, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c, int beta,
             const void* bias) {
  GemmEpilogue epilogue;
  epilogue.bias = bias;
  GemmArgs g;
  g.type = g.out = gemm_type(type);
  g.m = m, g.n = n, g.k = k;
  g.a = a, g.a_row = k;
  g.b = b, g.b_row = n;
  g.c = c, g.ldc = n;
  g.beta = beta;
  if (bias) g.epilogue = &epilogue;
  gemm(g);
}

// [rows, columns] to [columns, rows], in tiles that stay in L1.
template <class T>
void transpose(const T* from, T* to, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 32;
  parallel_for(0, (rows + kTile - 1) / kTile, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r0 = begin * kTile; r0 < end * kTile && r0 < rows; r0 += kTile)
      for (int64_t c0 = 0; c0 < columns; c0 += kTile)
        for (int64_t c = c0; c < c0 + kTile && c < columns; ++c)
          for (int64_t r = r0; r < r0 + kTile && r < rows; ++r) to[c * rows + r] = from[r * columns + c];
  });
}

void check(const RnnLayer& l, const char* what) {
  VESTA_CHECK_AS(TypeError, l.type == Elem::F32 || l.type == Elem::F64, what,
                 ": expected float32 or float64");
}

}  // namespace

void rnn_forward(const RnnLayer& l, const RnnForward& io) {
  check(l, "rnn_forward");
  if (l.steps == 0) return;
  const RnnCellTable& cells = rnn_cell_table();
  const int64_t h = l.hidden, g = rnn_gates(l.mode) * h, size = int64_t(elem_size(l.type)),
                batch = l.batch_sizes[0];
  const size_t state_bytes = size_t(batch * h * size);
  if (state_bytes) std::memcpy(io.hn, l.h0, state_bytes);
  if (state_bytes && l.mode == RnnMode::Lstm) std::memcpy(io.cn, l.c0, state_bytes);
  const bool gru = l.mode == RnnMode::Gru;
  // The weight as the product reads it, and room for GRU's hidden gates of one step.
  const SharedScratch scratch(size_t((g * h + (gru ? batch * g : 0)) * size) + 64);
  void* weight = scratch.data();
  void* hidden_gates = at(weight, g * h * size);
  if (l.type == Elem::F64)
    transpose(static_cast<const double*>(l.weight), static_cast<double*>(weight), g, h);
  else
    transpose(static_cast<const float*>(l.weight), static_cast<float*>(weight), g, h);
  for_steps(l, l.reverse, [&](int64_t row, int64_t n) {
    const char* x = at(io.gates, row * g * size);
    char* y = at(io.y, row * h * size);
    switch (l.mode) {
      case RnnMode::Lstm: {
        char* gates = at(io.saved, row * g * size);
        std::memcpy(gates, x, size_t(n * g * size));
        product(l.type, n, g, h, io.hn, weight, gates, 1, l.bias);
        cells.lstm(l.type, n, h, gates, io.cn, at(io.cells, row * h * size), io.hn, y);
        break;
      }
      case RnnMode::Gru:
        product(l.type, n, g, h, io.hn, weight, hidden_gates, 0, l.bias);
        cells.gru(l.type, n, h, x, hidden_gates, at(io.saved, row * 4 * h * size), io.hn, y);
        break;
      default:
        std::memcpy(y, x, size_t(n * h * size));
        product(l.type, n, h, h, io.hn, weight, y, 1, l.bias);
        cells.plain(l.type, l.mode == RnnMode::Relu, n * h, io.hn, y);
    }
  });
}

void rnn_backward(const RnnLayer& l, const RnnBackward& io) {
  check(l, "rnn_backward");
  if (l.steps == 0) return;
  const RnnCellTable& cells = rnn_cell_table();
  const int64_t h = l.hidden, g = rnn_gates(l.mode) * h, size = int64_t(elem_size(l.type)),
                batch = l.batch_sizes[0];
  const size_t state_bytes = size_t(batch * h * size);
  const bool lstm = l.mode == RnnMode::Lstm, gru = l.mode == RnnMode::Gru;
  const int64_t rows = l.rows();
  const SharedScratch scratch(2 * state_bytes + size_t(lstm ? rows * h * size : 0) + 64);
  void *state = scratch.data(), *cell_state = at(state, int64_t(state_bytes)),
       *c_before = at(state, 2 * int64_t(state_bytes));
  // The state that each row started from: replay which state came before.
  std::memcpy(state, l.h0, state_bytes);
  if (lstm) std::memcpy(cell_state, l.c0, state_bytes);
  for_steps(l, l.reverse, [&](int64_t row, int64_t n) {
    const size_t bytes = size_t(n * h * size);
    const int64_t begin = row * h * size;
    std::memcpy(at(io.h_before, begin), state, bytes);
    std::memcpy(state, at(io.y, begin), bytes);
    if (!lstm) return;
    std::memcpy(at(c_before, begin), cell_state, bytes);
    std::memcpy(cell_state, at(io.cells, begin), bytes);
  });
  auto start = [&](void* to, const void* from) {
    if (from)
      std::memcpy(to, from, state_bytes);
    else
      std::memset(to, 0, state_bytes);
  };
  start(io.dh0, io.dhn);
  if (lstm) start(io.dc0, io.dcn);
  for_steps(l, !l.reverse, [&](int64_t row, int64_t n) {
    const int64_t begin = row * h * size;
    if (io.dy) {
      auto add = [&](auto* to, const auto* from) {
        for (int64_t i = 0; i < n * h; ++i) to[i] += from[i];
      };
      if (l.type == Elem::F64)
        add(static_cast<double*>(io.dh0), reinterpret_cast<const double*>(at(io.dy, begin)));
      else
        add(static_cast<float*>(io.dh0), reinterpret_cast<const float*>(at(io.dy, begin)));
    }
    char* d = at(io.dgates, row * g * size);
    if (lstm) {
      cells.lstm_backward(l.type, n, h, at(io.saved, row * g * size), at(c_before, begin),
                          at(io.cells, begin), io.dh0, io.dc0, d);
      product(l.type, n, h, g, d, l.weight, io.dh0, 0, nullptr);
    } else if (gru) {
      char* dx = at(io.dhidden_gates, row * g * size);
      cells.gru_backward(l.type, n, h, at(io.saved, row * 4 * h * size), at(io.h_before, begin), io.dh0, d,
                         dx);
      product(l.type, n, h, g, dx, l.weight, io.dh0, 1, nullptr);
    } else {
      cells.plain_backward(l.type, l.mode == RnnMode::Relu, n * h, at(io.y, begin), io.dh0, d);
      product(l.type, n, h, g, d, l.weight, io.dh0, 0, nullptr);
    }
  });
}

}  // namespace vesta::cpu
