// What a linked module shows to the world, read from its bytes.
#pragma once

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

namespace cuvil::test {

struct Symbol {
    std::string name;
    bool defined;
    bool global;
};

template <class T> T read_at(const std::string& bytes, size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

inline std::vector<Elf64_Shdr> sections(const std::string& elf) {
    const auto header = read_at<Elf64_Ehdr>(elf, 0);
    std::vector<Elf64_Shdr> result;
    for (size_t i = 0; i < header.e_shnum; ++i)
        result.push_back(read_at<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr)));
    return result;
}

// The names in .symtab (type SHT_SYMTAB) or .dynsym (type SHT_DYNSYM).
inline std::vector<Symbol> symbols(const std::string& elf, unsigned type) {
    std::vector<Symbol> result;
    const std::vector<Elf64_Shdr> all = sections(elf);
    for (const Elf64_Shdr& section : all) {
        if (section.sh_type != type) continue;
        for (size_t at = sizeof(Elf64_Sym); at < section.sh_size; at += sizeof(Elf64_Sym)) {
            const auto symbol = read_at<Elf64_Sym>(elf, section.sh_offset + at);
            result.push_back({elf.c_str() + all[section.sh_link].sh_offset + symbol.st_name,
                              symbol.st_shndx != SHN_UNDEF, ELF64_ST_BIND(symbol.st_info) != STB_LOCAL});
        }
    }
    return result;
}

// How many libraries the module asks for.
inline int needed(const std::string& elf) {
    int count = 0;
    for (const Elf64_Shdr& section : sections(elf)) {
        if (section.sh_type != SHT_DYNAMIC) continue;
        for (size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Dyn))
            count += read_at<Elf64_Dyn>(elf, section.sh_offset + at).d_tag == DT_NEEDED;
    }
    return count;
}

// The bytes as a file in memory, for dlopen.
class LoadableFile {
public:
    explicit LoadableFile(const std::string& bytes) : fd_(memfd_create("test", MFD_CLOEXEC)) {
        if (write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) close(fd_);
    }
    ~LoadableFile() { close(fd_); }
    LoadableFile(const LoadableFile&) = delete;

    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    int fd_;
};

} // namespace cuvil::test
