#pragma once
// Picks one of the tables of function pointers that a kernel file exports, one per CPU level it was compiled for.
// Tests ask for a level by name; everyone else uses the machine's. V4Bf16 shares the V4 table.
//
// A kernel NAME declares `struct NameTable` in its header, defines `extern const NameTable kNameTable` in isa/NAME.cpp
// (namespace vesta::cpu::VESTA_ISA) and writes VESTA_ISA_TABLE(NameTable, kNameTable, name_table) in its NAME.cpp.
#include "base/cpu_isa.h"

#ifdef VESTA_ALL_ISA
#define VESTA_ISA_TABLE(Table, constant, function)   \
  namespace baseline {                               \
  extern const Table constant;                       \
  }                                                  \
  namespace v3 {                                     \
  extern const Table constant;                       \
  }                                                  \
  namespace v4 {                                     \
  extern const Table constant;                       \
  }                                                  \
  const Table& function(CpuIsa level) {              \
    if (level >= CpuIsa::V4) return v4::constant;    \
    if (level == CpuIsa::V3) return v3::constant;    \
    return baseline::constant;                       \
  }                                                  \
  static const Table& function() {                   \
    static const Table& table = function(cpu_isa()); \
    return table;                                    \
  }
#else
#define VESTA_ISA_TABLE(Table, constant, function)             \
  namespace baseline {                                         \
  extern const Table constant;                                 \
  }                                                            \
  const Table& function(CpuIsa) { return baseline::constant; } \
  static const Table& function() { return baseline::constant; }
#endif
