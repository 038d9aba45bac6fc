#pragma once
// Whole layers of recurrent networks over packed sequences: LSTM, GRU and plain cells, forward and backward. The caller
// multiplies the inputs by their weights, for all steps at once; here each step multiplies the state and runs a fused
// cell. Data is packed: step t has batch_sizes[t] rows (never more than the step before), one step after the other.
// F32 and F64 only, all arrays contiguous. Results do not depend on the number of threads.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

enum class RnnMode : uint8_t { Lstm, Gru, Tanh, Relu };

constexpr int64_t rnn_gates(RnnMode m) { return m == RnnMode::Lstm ? 4 : m == RnnMode::Gru ? 3 : 1; }
// Numbers kept for backward by row and hidden unit: LSTM's i f g o; GRU's r z n and the hidden part of n.
constexpr int64_t rnn_saved(RnnMode m) { return m == RnnMode::Lstm || m == RnnMode::Gru ? 4 : 0; }

struct RnnLayer {
  RnnMode mode = RnnMode::Lstm;
  Elem type = Elem::F32;
  int64_t hidden = 0, steps = 0;
  const int64_t* batch_sizes = nullptr;
  bool reverse = false;  // from the last step to the first
  int64_t rows() const {
    int64_t n = 0;
    for (int64_t t = 0; t < steps; ++t) n += batch_sizes[t];
    return n;
  }
  const void* weight = nullptr;  // [gates * hidden, hidden], as PyTorch's w_hh
  const void* bias = nullptr;    // [gates * hidden] added to the state's product; null: none
  const void* h0 = nullptr;      // [batch_sizes[0], hidden]
  const void* c0 = nullptr;      // the same, LSTM only
};

struct RnnForward {
  const void* gates = nullptr;  // [rows, gates * hidden], input products
  void* y = nullptr;            // [rows, hidden]
  void* hn = nullptr;           // [batch_sizes[0], hidden], the last state of each sequence
  void* cn = nullptr;           // LSTM only
  void* saved = nullptr;        // [rows, saved * hidden]
  void* cells = nullptr;        // [rows, hidden], LSTM only
};
void rnn_forward(const RnnLayer& layer, const RnnForward& io);

struct RnnBackward {
  const void *y = nullptr, *saved = nullptr, *cells = nullptr;  // from forward
  const void *dy = nullptr, *dhn = nullptr, *dcn = nullptr;     // cotangents; null: zero
  void* dgates = nullptr;  // [rows, gates * hidden], gradient of the input products
  void* dhidden_gates =
      nullptr;               // the same for the state's products; GRU only, for the others they are dgates
  void* h_before = nullptr;  // [rows, hidden]: the state each row started from, for the weight's gradient
  void* dh0 = nullptr;
  void* dc0 = nullptr;  // LSTM only
};
void rnn_backward(const RnnLayer& layer, const RnnBackward& io);

// Fused cells. Forward: `rows` rows of `units` hidden units out of `hidden`; rows of gates are gates * hidden apart (those
// of saved 4 * hidden), of one gate after the other, and all pointers are to the first unit. Backward: one whole row.
struct RnnCellTable {
  // gates: pre-activations in, activations out; c_state: old cell state in, new one out.
  void (*lstm)(Elem, int64_t rows, int64_t hidden, int64_t units, void* gates, void* c_state, void* c,
               void* h);
  // dh, dc: cotangents of the new state; dc becomes that of the old one. gates are activations.
  void (*lstm_backward)(Elem, int64_t hidden, const void* gates, const void* c_before, const void* c,
                        const void* dh, void* dc, void* dgates);
  void (*gru)(Elem, int64_t rows, int64_t hidden, int64_t units, const void* input_gates,
              const void* hidden_gates, void* saved, const void* h_state, void* h);
  // dh becomes what reaches the old state past the gates.
  void (*gru_backward)(Elem, int64_t hidden, const void* saved, const void* h_before, void* dh, void* dgates,
                       void* dhidden_gates);
  void (*plain)(Elem, bool relu, int64_t rows, int64_t hidden, int64_t units,
                void* h);  // h: pre-activations in
  void (*plain_backward)(Elem, bool relu, int64_t hidden, const void* h, const void* dh, void* dgates);
};
const RnnCellTable& rnn_cell_table(CpuIsa level);

}  // namespace vesta::cpu
