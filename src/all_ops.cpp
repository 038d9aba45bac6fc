// The one list of built-in op families, and the start of the process: interpreters, drivers, then the families.
#include <mutex>

#include "autograd/interpreter.h"
#include "autograd/tangent.h"
#include "base/cpu_isa.h"
#include "core/autocast.h"
#include "core/call.h"
#include "core/profile.h"
#include "core/registry.h"
#include "graph/tracer.h"
#include "kernels/cpu/pointwise.h"

namespace vesta {

namespace families {
#define VESTA_FAMILY_ENTRY(name) OpFamily name();
#define VESTA_FAMILY_LEFT_OUT(name, count)
#include "gen/families.inc"
#undef VESTA_FAMILY_ENTRY
#undef VESTA_FAMILY_LEFT_OUT
}  // namespace families

void init() {
  static std::once_flag once;
  std::call_once(once, [] {
    RegistryHooks hooks;
    hooks.pointwise = cpu::pointwise;
    hooks.cpu_level = std::min(int(cpu_isa()), 2);
    set_registry_hooks(hooks);
    set_interpreter(TensorImpl::kProfile, profiler::interpret);
    set_interpreter(TensorImpl::kAutocast, autocast::interpret);
    set_interpreter(TensorImpl::kTangent, autograd::interpret_tangents);
    set_interpreter(TensorImpl::kAutograd, autograd::interpret);
    set_interpreter(TensorImpl::kTrace, graph::interpret);
#define VESTA_FAMILY_ENTRY(name) register_ops(families::name());
#define VESTA_FAMILY_LEFT_OUT(name, count) leave_out_ops(#name, count);
#include "gen/families.inc"
#undef VESTA_FAMILY_ENTRY
#undef VESTA_FAMILY_LEFT_OUT
    publish_ops();
  });
}

}  // namespace vesta
