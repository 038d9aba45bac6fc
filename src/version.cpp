// The build's identity. VESTA_VERSION comes from CMake, vesta_commit.h is generated at build time; this file is the
// only one that sees either, so that a new commit recompiles nothing else.
#include <vesta/version.h>

#include "vesta_commit.h"

#define VESTA_TEXT_(x) #x
#define VESTA_TEXT(x) VESTA_TEXT_(x)

namespace vesta {

const char* version() { return VESTA_VERSION; }

const char* commit() { return VESTA_COMMIT; }

const char* compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " VESTA_TEXT(__GNUC__) "." VESTA_TEXT(__GNUC_MINOR__) "." VESTA_TEXT(__GNUC_PATCHLEVEL__);
#else
  return "unknown compiler";
#endif
}

}  // namespace vesta
