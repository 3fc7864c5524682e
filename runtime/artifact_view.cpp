#include "runtime/artifact_view.hpp"

#include <elf.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace cuvil {
namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(XXH3_state_t) <= 576 && alignof(XXH3_state_t) <= 64);

struct Section {
    std::string_view name;
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t end() const { return offset + size; }
};

std::string text(uint64_t number) { return std::to_string(number); }

std::string hex(const std::array<unsigned char, 16>& hash) {
    std::string out;
    for (unsigned char byte : hash) {
        out += "0123456789abcdef"[byte >> 4];
        out += "0123456789abcdef"[byte & 15];
    }
    return out;
}

// What is wrong with the ELF header, or an empty string.
std::string header_damage(std::string_view bytes, Elf64_Ehdr& header) {
    const std::string_view elf_magic(ELFMAG, SELFMAG);
    if (bytes.empty()) return "is empty";
    if (bytes.substr(0, SELFMAG) != elf_magic.substr(0, bytes.size()))
        return "is not a Cuvil module: it does not start with an ELF header";
    if (bytes.size() < sizeof header) return "is truncated: " + text(bytes.size()) + " bytes do not hold an ELF header";
    memcpy(&header, bytes.data(), sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN)
        return "is not a Cuvil module: it is an ELF file, but no 64-bit little-endian shared object";
    if (header.e_shoff == 0 || header.e_shnum == 0)
        return "is not a Cuvil module: it is an ELF file without a section table";
    if (header.e_shentsize != sizeof(Elf64_Shdr))
        return "is damaged: the ELF header gives " + text(header.e_shentsize) + " bytes as the size of a section entry";
    const uint64_t table = uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
    if (header.e_shoff > bytes.size() || table > bytes.size() - header.e_shoff)
        return "is truncated: its section table lies at byte " + text(header.e_shoff) + ", the file ends at byte " +
               text(bytes.size());
    if (header.e_shstrndx >= header.e_shnum)
        return "is damaged: the ELF header names section " + text(header.e_shstrndx) + " of " + text(header.e_shnum) +
               " for the section names";
    return {};
}

// All sections with their names; what is wrong with the table, or an empty string.
std::string section_damage(std::string_view bytes, const Elf64_Ehdr& header, std::vector<Section>& sections) {
    auto entry = [&](size_t index) {
        Elf64_Shdr section;
        memcpy(&section, bytes.data() + header.e_shoff + index * sizeof section, sizeof section);
        return section;
    };
    auto inside = [&](const Elf64_Shdr& s) {
        return s.sh_offset <= bytes.size() && s.sh_size <= bytes.size() - s.sh_offset;
    };
    const Elf64_Shdr names_entry = entry(header.e_shstrndx);
    if (names_entry.sh_type == SHT_NOBITS || !inside(names_entry))
        return "is damaged: the section names lie outside the file";
    const std::string_view names = bytes.substr(names_entry.sh_offset, names_entry.sh_size);

    for (size_t i = 1; i < header.e_shnum; i++) {
        const Elf64_Shdr section = entry(i);
        const size_t name_end = section.sh_name < names.size() ? names.find('\0', section.sh_name) : names.npos;
        if (name_end == names.npos) return "is damaged: section " + text(i) + " has no valid name";
        const std::string_view name = names.substr(section.sh_name, name_end - section.sh_name);
        if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
        if (!inside(section))
            return "is damaged: section " + text(i) + " (" + text(section.sh_size) + " bytes at byte " +
                   text(section.sh_offset) + ") reaches past the end of the file at byte " + text(bytes.size());
        sections.push_back({name, section.sh_offset, section.sh_size});
    }
    return {};
}

const Section* find(const std::vector<Section>& sections, std::string_view name) {
    for (const Section& section : sections)
        if (section.name == name) return &section;
    return nullptr;
}

// What is wrong with the check's own words, or an empty string. A newer format may have a longer check.
std::string check_damage(std::string_view bytes, const Section* section, ArtifactCheck& check) {
    if (!section) return "is not a Cuvil module: it is an ELF file without a section .cuvil.check";
    const std::string at = "section .cuvil.check at byte " + text(section->offset);
    if (section->size < sizeof check) return "is damaged: " + at + " has " + text(section->size) + " bytes, too few";
    memcpy(&check, bytes.data() + section->offset, sizeof check);
    if (std::string_view(check.magic, sizeof check.magic) != artifact_magic)
        return "is damaged: " + at + " does not start with Cuvil's mark";
    if (check.format == 0 || check.format > artifact_format)
        return "has format " + text(check.format) + "; this Cuvil reads formats up to " + text(artifact_format) +
               ", so a newer one wrote it or it is damaged";
    if (section->size != sizeof check) return "is damaged: " + at + " has " + text(section->size) + " bytes, too many";
    if (check.file_length != bytes.size())
        return "is damaged: it has " + text(bytes.size()) + " bytes and was written with " + text(check.file_length);
    return {};
}

} // namespace

ArtifactHash::ArtifactHash() { XXH3_128bits_reset(new (state_.data()) XXH3_state_t); }

void ArtifactHash::add(std::string_view bytes) {
    XXH3_128bits_update(reinterpret_cast<XXH3_state_t*>(state_.data()), bytes.data(), bytes.size());
}

std::array<unsigned char, 16> ArtifactHash::finish() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(reinterpret_cast<const XXH3_state_t*>(state_.data())));
    return std::bit_cast<std::array<unsigned char, 16>>(canonical);
}

std::optional<ArtifactView> ArtifactView::read(std::string_view bytes, std::string& error) {
    Elf64_Ehdr header;
    std::vector<Section> sections;
    ArtifactView view;
    if (error = header_damage(bytes, header); !error.empty()) return {};
    if (error = section_damage(bytes, header, sections); !error.empty()) return {};
    const Section* check = find(sections, check_section);
    if (error = check_damage(bytes, check, view.check_); !error.empty()) return {};

    const Section* manifest = find(sections, manifest_section);
    if (!manifest) {
        error = "is damaged: it has no section .cuvil.manifest";
        return {};
    }
    uint64_t hashed = manifest->end(); // the end of the last part before the gap
    view.manifest_ = bytes.substr(manifest->offset, manifest->size);
    view.code_bytes_ = manifest->offset;
    view.machine_ = header.e_machine;
    for (const Section& section : sections) {
        if (!section.name.starts_with(attached_file_prefix)) continue;
        view.files_.push_back(
            {section.name.substr(attached_file_prefix.size()), bytes.substr(section.offset, section.size)});
        hashed = std::max(hashed, section.end());
    }
    if (const Section* weights = find(sections, weights_section)) {
        if (weights->offset % weights_alignment != 0 || weights->offset < hashed || weights->end() > check->offset) {
            error = "is damaged: section .cuvil.weights lies at byte " + text(weights->offset) +
                    ", where no weights can be";
            return {};
        }
        view.weights_ = bytes.substr(weights->offset, weights->size);
    }
    if (hashed > check->offset) {
        error = "is damaged: section .cuvil.check at byte " + text(check->offset) + " lies inside another";
        return {};
    }

    ArtifactHash hash;
    const uint64_t hash_at = check->offset + offsetof(ArtifactCheck, hash);
    hash.add(bytes.substr(0, hashed));
    hash.add(bytes.substr(check->offset, offsetof(ArtifactCheck, hash)));
    hash.add(std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
    hash.add(bytes.substr(hash_at + 16));
    if (hash.finish() != view.check_.hash) {
        error = "is damaged: bytes 0 to " + text(hashed) + " (code and manifest) or " + text(check->offset) + " to " +
                text(bytes.size()) + " (section table) hash to " + hex(hash.finish()) + ", written was " +
                hex(view.check_.hash);
        return {};
    }
    return view;
}

bool ArtifactView::verify_weights(std::string& error) const {
    ArtifactHash hash;
    hash.add(weights_);
    if (hash.finish() == check_.weights_hash) return true;
    error = "is damaged: its " + text(weights_.size()) + " bytes of weights hash to " + hex(hash.finish()) +
            ", written was " + hex(check_.weights_hash);
    return false;
}

} // namespace cuvil
