#pragma once
// How the readers of this folder report a malformed file: an IoError that starts with the function and the file, e.g.
// "load_npy 'a.npy': the header claims ...". `where` must be in scope: that first part, a std::string.
#include <vesta/error.h>

#include <string>
#include <string_view>

#define VESTA_FORMAT_CHECK(cond, ...) VESTA_CHECK_AS(IoError, cond, where, ": ", __VA_ARGS__)

namespace vesta {

// Text of a file in a message: quoted, cut, control characters replaced. Hostile names may be long or hold escapes.
std::string shown(std::string_view text);

// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

}  // namespace vesta
