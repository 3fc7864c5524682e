// LLD inside the process: objects in memory in, one object in memory out.
#pragma once

#include <span>
#include <string>

namespace cuvil {

// Links ELF objects into a shared object that needs no other and exports `exported_symbols` alone, which must be
// defined with default visibility. The bytes depend on the arguments alone. Returns an empty string when the link
// fails, with LLD's text in `diagnostics`. Throws std::system_error where no temporary file can be had. Links of
// several threads take turns.
std::string link_shared(std::span<const std::string> objects, std::span<const std::string> exported_symbols,
                        std::string& diagnostics);

// Joins ELF objects into one relocatable object with all their sections and names. Otherwise as link_shared.
std::string join_objects(std::span<const std::string> objects, std::string& diagnostics);

} // namespace cuvil
