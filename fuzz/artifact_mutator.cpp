// Changes artifacts and then makes length and hash right again.
#include "target.hpp"

#include "runtime/artifact_view.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

using namespace cuvil;

namespace {

struct Part {
    uint64_t at = 0, end = 0;
};

// The parts of the file that the hash covers: up to the end of the last one before the weights, and from the check on.
// False where the table of sections makes no sense.
bool find_parts(std::string_view bytes, Part& front, Part& back) {
    Elf64_Ehdr header;
    if (bytes.size() < sizeof header) return false;
    memcpy(&header, bytes.data(), sizeof header);
    const auto section = [&](uint64_t index, Elf64_Shdr& entry) {
        const uint64_t at = header.e_shoff + index * sizeof entry;
        if (header.e_shoff > bytes.size() || at + sizeof entry > bytes.size()) return false;
        memcpy(&entry, bytes.data() + at, sizeof entry);
        return entry.sh_offset <= bytes.size() && entry.sh_size <= bytes.size() - entry.sh_offset;
    };
    Elf64_Shdr names;
    if (!section(header.e_shstrndx, names)) return false;
    for (uint64_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr entry;
        if (!section(i, entry) || entry.sh_name >= names.sh_size) continue;
        const std::string_view rest = bytes.substr(names.sh_offset, names.sh_size).substr(entry.sh_name);
        const std::string_view name = rest.substr(0, rest.find('\0'));
        const Part part{entry.sh_offset, entry.sh_offset + entry.sh_size};
        if (name == manifest_section || name.starts_with(attached_file_prefix))
            front.end = std::max(front.end, part.end);
        if (name == check_section) back = {part.at, bytes.size()};
    }
    return back.end - back.at >= sizeof(ArtifactCheck);
}

// Makes length and hash right, so that what lies behind these checks is reached.
void seal(std::string& bytes) {
    Part front, back;
    if (!find_parts(bytes, front, back)) return;
    ArtifactCheck check;
    memcpy(&check, bytes.data() + back.at, sizeof check);
    memcpy(check.magic, artifact_magic.data(), sizeof check.magic);
    check.format = artifact_format;
    check.file_length = bytes.size();
    check.hash = {};
    memcpy(bytes.data() + back.at, &check, sizeof check);
    ArtifactHash hash;
    hash.add(std::string_view(bytes).substr(0, front.end));
    hash.add(std::string_view(bytes).substr(back.at));
    check.hash = hash.finish();
    memcpy(bytes.data() + back.at, &check, sizeof check);
}

// One byte more or less would move the table of sections, so most changes keep the size.
std::string changed(std::string bytes, std::mt19937& random) {
    const size_t most = 1 + random() % 24, at = random() % bytes.size(), size = std::min(most, bytes.size() - at);
    LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()) + at, size, size);
    return bytes;
}

} // namespace

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t room, unsigned seed) {
    std::mt19937 random(seed);
    std::string bytes(reinterpret_cast<const char*>(data), size);
    if (size == 0 || random() % 4 == 0) {
        bytes.resize(room);
        bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, room));
    } else {
        bytes = changed(std::move(bytes), random);
    }
    if (random() % 16 != 0) seal(bytes);
    memcpy(data, bytes.data(), bytes.size());
    return bytes.size();
}
