#pragma once
// Picks the variant of a table that isa files define as vesta::cpu::<level>::NAME, for the running machine:
//   VESTA_ISA_TABLE(ConvertTable, convert_functions)  declares them;  VESTA_ISA_PICK(convert_functions)  chooses.
#include "base/cpu_isa.h"

#ifdef VESTA_ALL_ISA
#define VESTA_ISA_TABLE(Type, name) \
  namespace baseline {              \
  extern const Type name;           \
  }                                 \
  namespace v3 {                    \
  extern const Type name;           \
  }                                 \
  namespace v4 {                    \
  extern const Type name;           \
  }
#define VESTA_ISA_PICK(name) \
  (cpu_isa() >= CpuIsa::V4 ? v4::name : cpu_isa() == CpuIsa::V3 ? v3::name : baseline::name)
#else
#define VESTA_ISA_TABLE(Type, name) \
  namespace baseline {              \
  extern const Type name;           \
  }
#define VESTA_ISA_PICK(name) (baseline::name)
#endif
