// The generic suite, compiled == eager: a traced op, and a traced op with its backward pass, replay to the same bits.
#include <gtest/gtest.h>
#include <vesta/autograd.h>
#include <vesta/error.h>

#include "graph/tracer.h"
#include "ops/op_cases.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace optest;
using autograd::variable_list;

class TracedSuite : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Ops, TracedSuite, testing::ValuesIn(families()),
                         [](auto& tested) { return tested.param; });

Arguments with_tensors(const Arguments& args, const variable_list& in) {
  size_t k = 0;
  return map_tensors(args, [&](const Tensor&) { return in[k++]; });
}

variable_list defined(const variable_list& list) {
  variable_list kept;
  for (auto& t : list)
    if (t.defined()) kept.push_back(t);
  return kept;
}

Arguments as_arguments(const variable_list& list) {
  Arguments values;
  for (auto& t : list) values.push_back(OwnedValue(t));
  return values;
}

void compare(const OpCase& c, const std::function<variable_list(const variable_list&)>& fn,
             const char* what) {
  variable_list inputs = defined(flat(c.args));
  variable_list want = fn(inputs);
  graph::Graph graph = graph::trace(fn, inputs);
  manual_seed(7);
  variable_list got = graph.run(inputs);
  std::string d = uninitialised(*c.op) ? shapes_differ(as_arguments(got), as_arguments(want))
                                       : results_differ(as_arguments(got), as_arguments(want));
  if (!d.empty()) fail(c, std::string(what) + ": " + d + "\n" + graph.str());
}

// A generator among the arguments is part of the graph and goes on: the replay is another draw.
bool has_generator(const OpCase& c) {
  for (auto& v : c.args)
    if (v.kind() == ValueKind::Generator) return true;
  return false;
}

TEST_P(TracedSuite, CompiledAgreesWithEager) {
  for_each_case(GetParam(), types::kAnyMask, [](const OpCase& c) {
    if (needs_data(c) || has_generator(c)) return;
    compare(
        c, [&](const variable_list& in) { return defined(flat(run(*c.op, with_tensors(c.args, in)))); },
        "compiled");
  });
}

TEST_P(TracedSuite, CompiledBackwardAgreesWithEager) {
  for_each_case(GetParam(), types::bit(kFloat32) | types::bit(kComplex64), [](const OpCase& c) {
    if (needs_data(c) || has_generator(c) || c.op->def->non_differentiable ||
        differentiable_positions(c.args).empty())
      return;
    // igamma has no derivative in its first argument.
    const bool without_first =
        c.op->name.find("gammainc") != std::string::npos || c.op->name.starts_with("igamma");
    auto step = [&](const variable_list& in) {
      variable_list leaves = in, wrt, roots, seeds;
      for (auto& t : leaves)
        if ((t.is_floating_point() || t.is_complex()) && !(without_first && &t == &leaves[0]))
          wrt.push_back(t = t.detach().requires_grad_());
      for (auto& t : defined(flat(run(*c.op, with_tensors(c.args, leaves)))))
        if (t.requires_grad()) {
          roots.push_back(t);
          seeds.push_back(ones_like(t));
        }
      if (roots.empty()) return variable_list();
      return defined(autograd::grad(roots, wrt, seeds, false, false, true));
    };
    compare(c, step, "compiled backward");
  });
}

}  // namespace
}  // namespace vesta
