// Text of files in messages, and the check of UTF-8.
#include "serialize/format_error.h"

#include <cstdint>

namespace vesta {

std::string shown(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 120)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + (text.size() > 120 ? "...'" : "'");
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = uint8_t(text[i++]);
    if (lead < 0x80) continue;
    const int more = lead >= 0xc2 && lead < 0xe0   ? 1
                     : (lead & 0xf0) == 0xe0       ? 2
                     : lead >= 0xf0 && lead < 0xf5 ? 3
                                                   : 0;
    if (more == 0 || text.size() - i < size_t(more)) return false;
    // The second byte's range shuts out overlong forms, surrogates and what lies above U+10FFFF.
    const auto second = uint8_t(text[i]);
    const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (second < low || second > high) return false;
    for (int k = 1; k < more; ++k)
      if ((uint8_t(text[i + size_t(k)]) & 0xc0) != 0x80) return false;
    i += size_t(more);
  }
  return true;
}

}  // namespace vesta
