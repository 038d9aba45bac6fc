#pragma once
// A recorded program: operator calls in order over numbered values. Values are the inputs, the tensors that were
// captured from outside, and the results of calls. Writes are calls like any other (copy_, add_), in their order; the
// functional form with write-backs is made from this later. Immutable once traced; running it is externally
// synchronised with writes to the captured tensors.
#include <string>
#include <vector>

#include "core/registry.h"
#include "vesta/owned_value.h"

namespace vesta::graph {

// One argument of a call: a value, a list of values (-1: none), or a constant.
struct Operand {
  enum class Kind : uint8_t { Value, ValueList, Constant };
  Kind kind = Kind::Constant;
  int value = -1;
  std::vector<int> list;
  OwnedValue constant;
};

struct Call {
  const Op* op = nullptr;
  std::vector<Operand> operands;  // one per schema argument
  std::vector<int> results;       // values; -1 for an absent one
  std::vector<int> last_uses;     // values that nothing after this call reads
};

// What is known about a value without running.
struct ValueMeta {
  DType dtype;
  std::vector<int64_t> sizes;  // raw SymInts
};

class Graph {
 public:
  // Runs with fresh inputs (same number and dtypes as traced); writes captured tensors and .grad as the traced code did.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  // Text form: one line a value, e.g. "%4 = mul.Tensor(%0, %1) : float32[2, 3]".
  std::string str() const;

  std::vector<int> inputs, outputs;
  std::vector<std::pair<int, Tensor>> captures;  // value, tensor
  std::vector<Call> calls;
  std::vector<std::pair<Tensor, int>> gradients;  // leaf whose .grad becomes value (-1: undefined)
  std::vector<ValueMeta> metas;                   // by value
  std::vector<std::string> guards;                // decisions that depended on symbolic sizes

  // Fills last_uses. Called once by the tracer.
  void find_last_uses();
};

}  // namespace vesta::graph
