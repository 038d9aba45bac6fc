// The steps of a recurrent layer. The state's weight is packed once a layer into the GEMM kernels' panels; a step then is
// a product on those kernels and a fused cell, both a few rows at a time. Sequences do not meet, so that with a small
// weight each task runs a block of sequences through all steps, without waiting for anyone. A weight too large for L2 is
// shared instead: all tasks work on the same step, each with its part of the hidden units. Which one depends on sizes
// alone, and neither changes a result. Sequences that have ended (or, in reverse, not begun) simply keep their state.
#include "kernels/cpu/recurrent.h"

#include <vesta/error.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm_kernels.h"
#include "kernels/cpu/isa_table.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(RnnCellTable, kRnnCellTable, rnn_cell_table)

namespace {

constexpr int64_t kOwnWeightBytes =
    512 << 10;                // of packed weight, up to which each task reads all of it: half of L2
constexpr int64_t kRows = 8;  // sequences in a task then: a panel's load feeds so many multiplies
constexpr int64_t kInlineProducts = 1 << 16;  // in a step, below which a task costs more than it saves

GemmType gemm_type(Elem type) { return type == Elem::F64 ? GemmType::F64 : GemmType::F32; }
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t cut(int64_t total, int64_t parts, int64_t index) { return total * index / parts; }

char* at(void* p, int64_t bytes) { return static_cast<char*>(p) + bytes; }
const char* at(const void* p, int64_t bytes) { return static_cast<const char*>(p) + bytes; }

// Step k in the layer's direction: its first row and number of rows, and those of the step before it (none: rows 0).
struct Step {
  int64_t row, n, row_before, n_before;
};
std::vector<Step> steps_of(const RnnLayer& l) {
  std::vector<Step> steps(static_cast<size_t>(l.steps));
  int64_t row = l.reverse ? l.rows() : 0, row_before = 0, n_before = 0;
  for (int64_t k = 0; k < l.steps; ++k) {
    const int64_t n = l.batch_sizes[l.reverse ? l.steps - 1 - k : k];
    if (l.reverse) row -= n;
    steps[static_cast<size_t>(k)] = {row, n, row_before, n_before};
    row_before = row, n_before = n;
    if (!l.reverse) row += n;
  }
  return steps;
}

// A matrix [k, n] in panels of `columns` columns, as the GEMM kernels read it.
class Packed {
 public:
  // By strides, in elements. `parts` matrices of n columns each, one after the other in memory every `part` elements.
  Packed(Elem type, const void* b, int64_t row, int64_t col, int64_t k, int64_t n, int64_t parts,
         int64_t part)
      : kernels_(gemm_kernels(gemm_type(type), cpu_isa())),
        size_(static_cast<int64_t>(elem_size(type))),
        k_(k),
        panels_(ceil_div(n, kernels_.columns)),
        data_(static_cast<size_t>(parts * panels_ * k * kernels_.columns * size_) + 64) {
    parallel_for(0, parts * panels_, ceil_div(16384, std::max<int64_t>(1, k * kernels_.columns)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t j = i % panels_ * kernels_.columns;
                     kernels_.pack_b(gemm_type(type), at(b, (i / panels_ * part + j * col) * size_), row, col,
                                     k, std::min(kernels_.columns, n - j),
                                     at(data_.data(), i * panel_bytes()));
                   }
                 });
  }
  // c[m, columns [from, to) of part `part`] = a[m, k] * B + beta * c; c points to column `from`.
  void multiply(const void* a, int64_t m, int64_t part, int64_t from, int64_t to, void* c, int64_t ldc,
                int beta) const {
    const int64_t columns = kernels_.columns, strips = ceil_div(m, kernels_.rows);
    GemmStrip s;
    s.a_row = k_;
    s.b_panel = 0;
    s.b_row = columns;
    s.ldc = ldc;
    s.k = k_;
    s.alpha = 1;
    s.beta = beta;
    for (int64_t j = from; j < to;) {
      s.n = std::min(to, (j / columns + 1) * columns) - j;
      s.b = at(data_.data(), (part * panels_ + j / columns) * panel_bytes() + j % columns * size_);
      for (int64_t strip = 0; strip < strips; ++strip) {
        const int64_t i = cut(m, strips, strip);
        s.m = cut(m, strips, strip + 1) - i;
        s.a = at(a, i * k_ * size_);
        s.c = at(c, (i * ldc + j - from) * size_);
        kernels_.strip_rows(s);
      }
      j += s.n;
    }
  }
  int64_t bytes() const { return panels_ * panel_bytes(); }  // of one part
  int64_t columns() const { return kernels_.columns; }

 private:
  int64_t panel_bytes() const { return k_ * kernels_.columns * size_; }
  const GemmKernels& kernels_;
  int64_t size_, k_, panels_;
  SharedScratch data_;
};

void check(const RnnLayer& l, const char* what) {
  VESTA_CHECK_AS(TypeError, l.type == Elem::F32 || l.type == Elem::F64, what,
                 ": expected float32 or float64");
}

// Sizes that both directions use.
struct Sizes {
  int64_t h, gates, g, size, batch;  // g: numbers of all gates
  explicit Sizes(const RnnLayer& l)
      : h(l.hidden),
        gates(rnn_gates(l.mode)),
        g(gates * h),
        size(static_cast<int64_t>(elem_size(l.type))),
        batch(l.batch_sizes[0]) {}
};

// Runs `task` over blocks of sequences where each can go through all steps alone.
template <class F>
void over_sequences(const Sizes& z, F task) {
  const int64_t blocks = ceil_div(z.batch, kRows);
  const bool small = z.batch * z.g * z.h < kInlineProducts;
  parallel_for(0, blocks, small ? blocks : 1, [&](int64_t begin, int64_t end) {
    // Neighbouring blocks in one call are one block: more rows a panel.
    task(cut(z.batch, blocks, begin), cut(z.batch, blocks, end));
  });
}

template <class T>
void add_to(int64_t n, const T* from, const T* more, T* to) {
  if (more)
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] + more[i];
  else
    std::copy(from, from + n, to);
}
void add_to(Elem type, int64_t n, const void* from, const void* more, void* to) {
  if (type == Elem::F64)
    add_to(n, static_cast<const double*>(from), static_cast<const double*>(more), static_cast<double*>(to));
  else
    add_to(n, static_cast<const float*>(from), static_cast<const float*>(more), static_cast<float*>(to));
}

}  // namespace

void rnn_forward(const RnnLayer& l, const RnnForward& io) {
  check(l, "rnn_forward");
  if (l.steps == 0) return;
  const RnnCellTable& cells = rnn_cell_table();
  const Sizes z(l);
  const int64_t h = z.h, g = z.g, size = z.size;
  if (h == 0 || z.batch == 0) return;
  std::memcpy(io.hn, l.h0, static_cast<size_t>(z.batch * h * size));
  if (l.mode == RnnMode::Lstm) std::memcpy(io.cn, l.c0, static_cast<size_t>(z.batch * h * size));
  const std::vector<Step> steps = steps_of(l);
  // B[k, j] of a gate is weight[gate * h + j, k].
  const Packed weight(l.type, l.weight, 1, h, h, h, z.gates, h * h);
  const SharedScratch hidden_gates(static_cast<size_t>(l.mode == RnnMode::Gru ? z.batch * g * size : 0) + 64);

  // Units [from, to) of sequences [first, last) in one step; reads all units of the running state.
  auto run = [&](const Step& s, int64_t first, int64_t last, int64_t from, int64_t to) {
    const int64_t n = last - first, row = s.row + first, units = to - from;
    const void* state = at(io.hn, first * h * size);
    const char* x = at(io.gates, (row * g + from) * size);
    // Pre-activations of the state's product: `target` rows are g wide.
    auto products = [&](char* target, bool add_x) {
      for (int64_t gate = 0; gate < z.gates; ++gate) {
        const void* bias = l.bias ? at(l.bias, (gate * h + from) * size) : nullptr;
        char* c = target + gate * h * size;
        if (add_x || bias)
          for (int64_t i = 0; i < n; ++i) {
            if (add_x)
              add_to(l.type, units, x + (i * g + gate * h) * size, bias, c + i * g * size);
            else
              std::memcpy(c + i * g * size, bias, static_cast<size_t>(units * size));
          }
        weight.multiply(state, n, gate, from, to, c, g, add_x || bias ? 1 : 0);
      }
    };
    char* y = at(io.y, (row * h + from) * size);
    switch (l.mode) {
      case RnnMode::Lstm: {
        char* gates = at(io.saved, (row * g + from) * size);
        products(gates, true);
        cells.lstm(l.type, n, h, units, gates, at(io.cn, (first * h + from) * size),
                   at(io.cells, (row * h + from) * size), y);
        break;
      }
      case RnnMode::Gru: {
        char* hidden = at(hidden_gates.data(), (first * g + from) * size);
        products(hidden, false);
        cells.gru(l.type, n, h, units, x, hidden, at(io.saved, (row * 4 * h + from) * size),
                  at(state, from * size), y);
        break;
      }
      default:
        products(y, true);
        cells.plain(l.type, l.mode == RnnMode::Relu, n, h, units, y);
    }
  };
  // The new state, once nobody reads the old one.
  auto keep = [&](const Step& s, int64_t first, int64_t last) {
    std::memcpy(at(io.hn, first * h * size), at(io.y, (s.row + first) * h * size),
                static_cast<size_t>((last - first) * h * size));
  };
  if (z.gates * weight.bytes() <= kOwnWeightBytes) {
    over_sequences(z, [&](int64_t first, int64_t last) {
      for (const Step& s : steps) {
        const int64_t end = std::min(last, s.n);
        if (first >= end) continue;
        run(s, first, end, 0, h);
        keep(s, first, end);
      }
    });
    return;
  }
  const int64_t unit = weight.columns();
  for (const Step& s : steps) {
    parallel_for(0, ceil_div(h, unit), 1, [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) run(s, 0, s.n, u * unit, std::min(h, (u + 1) * unit));
    });
    keep(s, 0, s.n);
  }
}

void rnn_backward(const RnnLayer& l, const RnnBackward& io) {
  check(l, "rnn_backward");
  if (l.steps == 0) return;
  const RnnCellTable& cells = rnn_cell_table();
  const Sizes z(l);
  const int64_t h = z.h, g = z.g, size = z.size;
  if (h == 0 || z.batch == 0) return;
  const size_t row_bytes = static_cast<size_t>(h * size);
  const bool lstm = l.mode == RnnMode::Lstm, gru = l.mode == RnnMode::Gru;
  auto start = [&](void* to, const void* from) {
    if (from)
      std::memcpy(to, from, static_cast<size_t>(z.batch) * row_bytes);
    else
      std::memset(to, 0, static_cast<size_t>(z.batch) * row_bytes);
  };
  start(io.dh0, io.dhn);
  if (lstm) start(io.dc0, io.dcn);
  const std::vector<Step> steps = steps_of(l);
  const Packed weight(l.type, l.weight, h, 1, g, h, 1, 0);

  // The cells of sequences [first, last) in one step: from the state's cotangent in dh0 to the gates'.
  auto run_cells = [&](const Step& s, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = (s.row + i) * h * size;
      const bool begins = i >= s.n_before;  // this sequence's first step
      const int64_t before = (s.row_before + i) * h * size;
      std::memcpy(at(io.h_before, row), begins ? at(l.h0, i * h * size) : at(io.y, before), row_bytes);
      char* dh = at(io.dh0, i * h * size);
      if (io.dy) add_to(l.type, h, dh, at(io.dy, row), dh);
      char* d = at(io.dgates, (s.row + i) * g * size);
      if (lstm)
        cells.lstm_backward(l.type, h, at(io.saved, (s.row + i) * g * size),
                            begins ? at(l.c0, i * h * size) : at(io.cells, before), at(io.cells, row), dh,
                            at(io.dc0, i * h * size), d);
      else if (gru)
        cells.gru_backward(l.type, h, at(io.saved, (s.row + i) * 4 * h * size), at(io.h_before, row), dh, d,
                           at(io.dhidden_gates, (s.row + i) * g * size));
      else
        cells.plain_backward(l.type, l.mode == RnnMode::Relu, h, at(io.y, row), dh, d);
    }
  };
  // What reaches the state before through the gates, units [from, to).
  auto multiply = [&](const Step& s, int64_t first, int64_t last, int64_t from, int64_t to) {
    const void* d = at(gru ? io.dhidden_gates : io.dgates, (s.row + first) * g * size);
    weight.multiply(d, last - first, 0, from, to, at(io.dh0, (first * h + from) * size), h, gru ? 1 : 0);
  };
  if (weight.bytes() <= kOwnWeightBytes) {
    over_sequences(z, [&](int64_t first, int64_t last) {
      for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
        const int64_t end = std::min(last, s->n);
        if (first >= end) continue;
        run_cells(*s, first, end);
        multiply(*s, first, end, 0, h);
      }
    });
    return;
  }
  const int64_t unit = weight.columns();
  for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
    parallel_for(0, s->n, ceil_div(2048, h), [&](int64_t begin, int64_t end) { run_cells(*s, begin, end); });
    parallel_for(0, ceil_div(h, unit), 1, [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) multiply(*s, 0, s->n, u * unit, std::min(h, (u + 1) * unit));
    });
  }
}

}  // namespace vesta::cpu
