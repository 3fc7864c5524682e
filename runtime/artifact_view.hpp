// The layout of a `.cuvil` file, and a reader that no damage can hurt.
//
// A `.cuvil` is the ELF shared object that the linker wrote, with sections behind it that no program header covers, so
// that a dynamic linker maps the code and never sees the rest:
//
//     ELF header, code, symbol table      as linked; the header points at the new section table
//     .cuvil.manifest                     JSON: inputs, outputs, dimensions, checks
//     .cuvil.file.<name>                  attached files, none or several
//     (gap)                               up to the alignment of the weights
//     .cuvil.weights                      absent where the model has none
//     .cuvil.check                        one ArtifactCheck
//     section names, section table        the end of the file
//
// The hash in .cuvil.check covers every byte outside the gap and the weights, its own field taken as zero; so a load
// reads no weights. They have a hash of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

inline constexpr uint32_t artifact_format = 1;
inline constexpr std::string_view artifact_magic = {"CUVIL\r\n\x1a", 8};

inline constexpr std::string_view manifest_section = ".cuvil.manifest";
inline constexpr std::string_view attached_file_prefix = ".cuvil.file.";
inline constexpr std::string_view weights_section = ".cuvil.weights";
inline constexpr std::string_view check_section = ".cuvil.check";

inline constexpr uint64_t weights_alignment = 4096;
// Files with weights that fill many huge pages are mapped at a huge page's boundary.
inline constexpr uint64_t huge_page = uint64_t{2} << 20;
inline constexpr uint64_t huge_weights = uint64_t{32} << 20;

struct ArtifactCheck { // little-endian, as the whole file
    char magic[8];
    uint32_t format;
    uint32_t reserved;
    uint64_t file_length;
    std::array<unsigned char, 16> hash;
    std::array<unsigned char, 16> weights_hash;
};
static_assert(sizeof(ArtifactCheck) == 56);

// XXH3's 128 bits over what was added, in its canonical byte order.
class ArtifactHash {
public:
    ArtifactHash();
    void add(std::string_view bytes);
    std::array<unsigned char, 16> finish() const;

private:
    alignas(64) std::array<unsigned char, 576> state_;
};

struct AttachedView {
    std::string_view name; // "tokenizer.json"
    std::string_view bytes;
};

// The parts of an artifact, as views of the bytes it was read from, which must outlive it.
class ArtifactView {
public:
    // Checks structure, length and hash. On damage returns nothing and sets `error` to the rest of a sentence whose
    // subject is the file: "is truncated: ...". Never reads outside `bytes`, whatever they hold.
    static std::optional<ArtifactView> read(std::string_view bytes, std::string& error);

    std::string_view manifest() const { return manifest_; }
    std::string_view weights() const { return weights_; } // empty: the model has none
    const std::vector<AttachedView>& files() const { return files_; }
    uint16_t machine() const { return machine_; } // ELF's number: 62 x86-64, 183 AArch64
    uint32_t format() const { return check_.format; }
    uint64_t code_bytes() const { return code_bytes_; }

    // Reads all the weights. False, with the rest of a sentence in `error`, when they are not those that were written.
    bool verify_weights(std::string& error) const;

private:
    std::string_view manifest_;
    std::string_view weights_;
    std::vector<AttachedView> files_;
    ArtifactCheck check_{};
    uint64_t code_bytes_ = 0;
    uint16_t machine_ = 0;
};

} // namespace cuvil
