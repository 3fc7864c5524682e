// What fuzz targets say of a fault that no sanitizer sees.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace cuvil::fuzz {

// Ends the process with a sentence, which libFuzzer takes for a crash.
[[noreturn]] inline void fault(const std::string& what) {
    fprintf(stderr, "fault: %s\n", what.c_str());
    abort();
}

inline void expect(bool holds, const char* what) {
    if (!holds) fault(what);
}

} // namespace cuvil::fuzz
