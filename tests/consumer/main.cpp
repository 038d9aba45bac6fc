// A program outside of Vesta's tree, as a stranger writes it: only public headers, its own flags.
#include <vesta/error.h>
#include <vesta/version.h>

#include <cstdio>
#include <cstring>

int main() {
  // An error thrown by a check must be caught by its public type, also when the library is a shared one.
  try {
    VESTA_CHECK(false, "consumer: expected ", 1, ", got ", 2);
  } catch (const vesta::Error& error) {
    if (std::strcmp(error.what(), "consumer: expected 1, got 2") != 0) return 1;
    std::printf("vesta %s works\n", vesta::version());
    return 0;
  }
  return 1;
}
