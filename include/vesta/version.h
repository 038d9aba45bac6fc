#pragma once
// Which Vesta this is: for --version, bug reports and the machine column of benches. Nothing here decides behaviour.
namespace vesta {

// "0.1.0"; major versions may break programs, minor versions only add.
const char* version();
// Short git commit that was built, "+" after it where files were changed, "unknown" outside a git checkout.
const char* commit();
// Compiler that built the library, e.g. "gcc 12.2.0".
const char* compiler();

}  // namespace vesta
