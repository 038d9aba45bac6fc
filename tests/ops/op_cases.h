#pragma once
// What the generic op suite is made of: every registered operator on the samples of its block, and ways to change those
// arguments. Everything is drawn from one printed seed.
#include <functional>
#include <string>
#include <vector>

#include "core/registry.h"
#include "vesta/owned_value.h"

namespace vesta::optest {

// Names of all built-in families, for one test a family.
std::vector<std::string> families();

struct OpCase {
  const Op* op = nullptr;
  DType dtype = kFloat32;
  int sample = 0;
  uint64_t seed = 0;
  std::vector<OwnedValue> args;
  // "add.Tensor, float32, sample 2, seed 17: (float32[3, 4], float32[4], 2)"
  std::string str() const;
};

// Calls body for each sample of each functional op of the family in each accepted dtype of `mask` (op.h's types::).
// What body throws is a failure of that case. Ends the test early after 25 failures.
void for_each_case(const std::string& family, uint32_t mask, const std::function<void(const OpCase&)>& body);

// A failure of a case, with its description.
void fail(const OpCase& c, const std::string& what);

using Arguments = std::vector<OwnedValue>;
// The default generator restarted, and generators among the arguments replaced by fresh ones.
Arguments reseeded(const Arguments& args);
// Calls an op by name on copies of what it writes, always with the same random stream.
Arguments run(const Op& op, const Arguments& args);
// Tensors of arguments or results, lists flattened.
std::vector<Tensor> flat(const Arguments& values);
// Each defined tensor replaced, in order of appearance.
Arguments map_tensors(const Arguments& args, const std::function<Tensor(const Tensor&)>& map);
// The positions (in order of appearance) that hold floating or complex tensors.
std::vector<size_t> differentiable_positions(const Arguments& args);
// Arguments of type dtype that name a floating type become float64 (complex128), and tensors likewise.
Arguments widened(const Arguments& args);
// All arguments of a form: missing ones are the schema's defaults.
Arguments filled(const Op& op, const Arguments& args);

// The same elements with every stride doubled and an offset, or with the dims laid out in reverse order.
Tensor spread(const Tensor& t);
Tensor reversed_layout(const Tensor& t);
// The shape and dtype without data.
Tensor as_meta(const Tensor& t);

// The result's shape, or the course of the composition, depends on elements: no meta inference and no trace.
bool needs_data(const OpCase& c);
// Questions about dtypes and layout, and what changes which memory a tensor shows: another dtype or layout is another
// answer, and a trace has no name for it. tests/ops/metadata_test.cpp looks at them one by one.
bool about_layout(const Op& op);
// Uninitialised results: only shape and dtype can be compared.
bool uninitialised(const Op& op);
struct Allowed {
  double rtol, atol;
};
// Tolerance of results in this dtype: the block's, or the dtype's own.
Allowed tolerance(const Op& op, DType t);
// Differences of two results; lists and numbers included. Empty where they agree.
std::string results_differ(const Arguments& got, const Arguments& want,
                           const std::function<Allowed(DType)>& allowed);
std::string results_differ(const Arguments& got, const Arguments& want);  // bit for bit but NaN payloads
// Only number of results, dtypes and sizes.
std::string shapes_differ(const Arguments& got, const Arguments& want);

}  // namespace vesta::optest
