// The text of everything that emitted code may include, carried inside the compiler.
#pragma once

#include <span>
#include <string_view>

namespace cuvil {

struct SourceFile {
    std::string_view name; // as an #include spells it: "kernels/gemm.hpp", "cuvil/cuvil.h", "stdint.h"
    std::string_view text;
};

// Sorted by name; the texts live as long as the program.
std::span<const SourceFile> kernel_sources();

} // namespace cuvil
