// Relocatable ELF objects, as far as Cuvil looks into them itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

// The names that an object defines for other objects, in the order of its symbol table.
std::vector<std::string> defined_names(std::string_view object);

// Where in the object the header (Elf64_Shdr) of the section with this name stands; nothing without such a section.
std::optional<uint64_t> section_header_at(std::string_view object, std::string_view name);

} // namespace cuvil
