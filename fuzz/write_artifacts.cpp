// Writes small artifacts into a folder, as inputs to start from. Their code is none: only the frame is read.
#include "artifact/writer.hpp"

#include <elf.h>

#include <array>
#include <cstring>
#include <string>

namespace {

// The least shared object that the writer takes: a header, and a table with the names of the sections.
std::string shared_object() {
    const std::string names("\0.shstrtab\0", 11);
    Elf64_Ehdr header{};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_shoff = 80;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 2;
    header.e_shstrndx = 1;
    Elf64_Shdr sections[2] = {};
    sections[1].sh_name = 1;
    sections[1].sh_type = SHT_STRTAB;
    sections[1].sh_offset = sizeof header;
    sections[1].sh_size = names.size();
    std::string out(reinterpret_cast<const char*>(&header), sizeof header);
    out += names;
    out.resize(header.e_shoff);
    return out.append(reinterpret_cast<const char*>(sections), sizeof sections);
}

constexpr std::string_view tensors = R"({"format":1,"dims":["N"],
"inputs":[{"name":"x","kind":"tensor","dtype":"f32","shape":["N",4],"dims":[0,-1],"optional":false}],
"outputs":[{"name":"y","kind":"tensor","dtype":"i64","shape":["k"],"dims":[-2]}],
"checks":[{"message":"index {0} of {1}","node":"gather"}],"weights":{"bytes":64}})";
constexpr std::string_view others = R"({"format":1,"dims":[],
"inputs":[{"name":"s","kind":"strings","dtype":"string","shape":[],"dims":[],"optional":true}],
"outputs":[{"name":"l","kind":"list","dtype":"bf16"},{"name":"t","kind":"tensor","dtype":"bool","shape":null}],
"checks":[]})";

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: write_artifacts FOLDER\n");
        return 2;
    }
    const std::string object = shared_object(), folder = argv[1];
    const std::array<std::byte, 8> weights{};
    cuvil::Diagnostics diag;
    const auto write = [&](const std::string& name, std::string_view manifest, std::vector<cuvil::AttachedFile> files,
                           const cuvil::WeightsSource& source) {
        cuvil::write_artifact(folder + "/" + name, {object, std::string(manifest), std::move(files), source}, diag);
    };
    write("tensors", tensors, {}, {weights});
    write("others", others, {}, {});
    write("files", others, {{"a.txt", "attached"}, {"b", ""}}, {});
    fputs(diag.render().c_str(), stderr);
    return diag.has_errors() ? 1 : 0;
}
