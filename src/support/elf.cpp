#include "support/elf.hpp"

#include "support/diagnostics.hpp"

#include <elf.h>

#include <cstring>

namespace cuvil {
namespace {

template <class T> T read_at(std::string_view bytes, uint64_t offset) {
    CUVIL_ASSERT(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset, "an object is too short");
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

uint64_t header_at(std::string_view object, uint64_t section) {
    return read_at<Elf64_Ehdr>(object, 0).e_shoff + section * sizeof(Elf64_Shdr);
}

Elf64_Shdr section_at(std::string_view object, uint64_t section) {
    return read_at<Elf64_Shdr>(object, header_at(object, section));
}

std::string_view string_at(std::string_view object, const Elf64_Shdr& strings, uint64_t offset) {
    CUVIL_ASSERT(offset < strings.sh_size && strings.sh_offset + strings.sh_size <= object.size(),
                 "an object's names lie outside of it");
    std::string_view rest = object.substr(strings.sh_offset + offset, strings.sh_size - offset);
    return rest.substr(0, rest.find('\0'));
}

// An object of very many sections has no room for these numbers in its header: they are in the first section's.
uint64_t section_count(std::string_view object) {
    const uint64_t count = read_at<Elf64_Ehdr>(object, 0).e_shnum;
    return count != 0 ? count : section_at(object, 0).sh_size;
}

uint64_t names_section(std::string_view object) {
    const uint64_t index = read_at<Elf64_Ehdr>(object, 0).e_shstrndx;
    return index != SHN_XINDEX ? index : section_at(object, 0).sh_link;
}

} // namespace

std::vector<std::string> defined_names(std::string_view object) {
    std::vector<std::string> names;
    const uint64_t count = section_count(object);
    for (uint64_t i = 0; i < count; i++) {
        const Elf64_Shdr table = section_at(object, i);
        if (table.sh_type != SHT_SYMTAB) continue;
        const Elf64_Shdr strings = section_at(object, table.sh_link);
        for (uint64_t offset = 0; offset < table.sh_size; offset += sizeof(Elf64_Sym)) {
            const auto symbol = read_at<Elf64_Sym>(object, table.sh_offset + offset);
            if (ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && symbol.st_shndx != SHN_UNDEF)
                names.emplace_back(string_at(object, strings, symbol.st_name));
        }
    }
    return names;
}

std::optional<uint64_t> section_header_at(std::string_view object, std::string_view name) {
    const uint64_t count = section_count(object);
    const Elf64_Shdr names = section_at(object, names_section(object));
    for (uint64_t i = 1; i < count; i++)
        if (string_at(object, names, section_at(object, i).sh_name) == name) return header_at(object, i);
    return std::nullopt;
}

} // namespace cuvil
