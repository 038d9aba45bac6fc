#pragma once
// One step of each recurrent cell, shared by the layers and the cells.
#include "vesta/nn_rnn.h"

namespace vesta::nn::detail {

// The weights of one layer and direction; undefined where absent.
struct CellWeights {
  Tensor ih, hh, b_ih, b_hh, hr;
};

int64_t gates_of(RecurrentKind kind);
// The part of the gates that comes from the input, for all rows at once. The hidden bias is included where the cell only
// adds it (all but GRU).
Tensor input_gates(RecurrentKind kind, const Tensor& rows, const CellWeights& w);
// One step from the input's part [B, gates * hidden].
Recurrent::State cell_step(RecurrentKind kind, const Tensor& gates, const Recurrent::State& state,
                           const CellWeights& w);

}  // namespace vesta::nn::detail
