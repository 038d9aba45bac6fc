#pragma once
// Warnings to the user: something works, but probably not as meant. They go to stderr unless the program takes them.
#include <string>

namespace vesta {

// Gets each warning's text; `context` is what was given with the handler. Called by any thread, possibly several at a
// time. It may throw: the exception reaches the caller of the op that warned.
using WarningHandler = void (*)(const char* message, void* context);

// Replaces the handler; null = print "vesta: warning: MESSAGE" to stderr. Returns the one before. Thread-safe; a call
// that already runs in another thread may still end after this returns.
WarningHandler set_warning_handler(WarningHandler handler, void* context = nullptr);

// true: warn_once warns each time. Returns the former value. Default: false.
bool set_warn_always(bool always);

void warn(const std::string& message);
// Warns where this text has not been seen before in the process. Remembers 1000 texts; later new ones are dropped.
void warn_once(const std::string& message);

}  // namespace vesta
