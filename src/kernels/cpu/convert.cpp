// Chooses the conversion loops of the running CPU.
#include "kernels/cpu/convert.h"

#include "kernels/cpu/isa_select.h"

namespace vesta::cpu {
VESTA_ISA_TABLE(ConvertTable, convert_functions)
const ConvertTable& convert_table() {
  static const ConvertTable& t = VESTA_ISA_PICK(convert_functions);
  return t;
}
}  // namespace vesta::cpu
