#include "artifact/writer.hpp"

#include "runtime/artifact_view.hpp"
#include "support/diagnostics.hpp"
#include "support/file.hpp"

#include <elf.h>

#include <array>
#include <cstring>
#include <functional>
#include <system_error>

namespace cuvil {
namespace {

constexpr uint64_t piece_alignment = 64;
constexpr uint64_t table_alignment = 8;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

template <typename T> std::string_view bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <typename T> T read_at(std::string_view bytes, uint64_t offset) {
    CUVIL_ASSERT(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset, "the linked object is too short");
    T value;
    memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

// Everything in front of the weights, and the section table that will stand behind them.
class Layout {
public:
    explicit Layout(const ArtifactParts& parts) : parts_(parts) {
        read_object();
        add_section(manifest_section, parts.manifest);
        for (const AttachedFile& file : parts.files)
            add_section(std::string(attached_file_prefix) + file.name, file.bytes);
        const uint64_t size = weights_size(parts.weights);
        hashed_front_ = front_.size();
        end_of_weights_ = front_.size();
        if (size != 0) {
            weights_at_ = round_up(front_.size(), weights_alignment);
            end_of_weights_ = weights_at_ + size;
            add_entry(weights_section, weights_at_, size, weights_alignment);
        }
        check_at_ = round_up(end_of_weights_, table_alignment);
        add_entry(check_section, check_at_, sizeof(ArtifactCheck), table_alignment);
        finish_tables();
    }

    const std::string& front() const { return front_; }
    uint64_t weights_at() const { return weights_at_; } // 0: none
    uint64_t check_at() const { return check_at_; }

    // The check and the tables, once the weights are hashed.
    std::string back(const std::array<unsigned char, 16>& weights_hash) const {
        ArtifactCheck check{};
        memcpy(check.magic, artifact_magic.data(), sizeof check.magic);
        check.format = artifact_format;
        check.file_length = check_at_ + sizeof check + tables_.size();
        check.weights_hash = weights_hash;
        ArtifactHash hash;
        hash.add(std::string_view(front_).substr(0, hashed_front_));
        hash.add(bytes_of(check));
        hash.add(tables_);
        check.hash = hash.finish();
        return std::string(bytes_of(check)) + tables_;
    }

private:
    // Takes the object's bytes without its section table, and the entries of the table.
    void read_object() {
        const std::string_view object = parts_.shared_object;
        header_ = read_at<Elf64_Ehdr>(object, 0);
        CUVIL_ASSERT(memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 && header_.e_type == ET_DYN, "not a shared object");
        CUVIL_ASSERT(header_.e_shentsize == sizeof(Elf64_Shdr) && header_.e_shstrndx < header_.e_shnum,
                     "the linked object has no section table");
        for (uint64_t i = 0; i < header_.e_shnum; i++)
            sections_.push_back(read_at<Elf64_Shdr>(object, header_.e_shoff + i * sizeof(Elf64_Shdr)));
        const Elf64_Shdr& names = sections_[header_.e_shstrndx];
        CUVIL_ASSERT(names.sh_offset <= object.size() && names.sh_size <= object.size() - names.sh_offset,
                     "the linked object's section names lie outside of it");
        names_ = object.substr(names.sh_offset, names.sh_size);
        const uint64_t table_end = header_.e_shoff + header_.e_shnum * sizeof(Elf64_Shdr);
        front_ = object.substr(0, table_end == object.size() ? header_.e_shoff : object.size());
    }

    void add_entry(std::string_view name, uint64_t offset, uint64_t size, uint64_t alignment) {
        Elf64_Shdr section{};
        section.sh_name = static_cast<Elf64_Word>(names_.size());
        section.sh_type = SHT_PROGBITS; // and no SHF_ALLOC: nothing maps it
        section.sh_offset = offset;
        section.sh_size = size;
        section.sh_addralign = alignment;
        sections_.push_back(section);
        names_ += name;
        names_ += '\0';
    }

    void add_section(std::string_view name, std::string_view bytes) {
        front_.resize(round_up(front_.size(), table_alignment));
        add_entry(name, front_.size(), bytes.size(), table_alignment);
        front_ += bytes;
    }

    void finish_tables() {
        Elf64_Shdr& names = sections_[header_.e_shstrndx];
        const uint64_t names_at = check_at_ + sizeof(ArtifactCheck);
        names.sh_offset = names_at;
        names.sh_size = names_.size();
        header_.e_shoff = round_up(names_at + names_.size(), table_alignment);
        header_.e_shnum = static_cast<Elf64_Half>(sections_.size());
        CUVIL_ASSERT(sections_.size() < SHN_LORESERVE, "too many sections");
        memcpy(front_.data(), &header_, sizeof header_);
        tables_ = names_;
        tables_.resize(header_.e_shoff - names_at);
        for (const Elf64_Shdr& section : sections_) tables_ += bytes_of(section);
    }

    const ArtifactParts& parts_;
    Elf64_Ehdr header_{};
    std::vector<Elf64_Shdr> sections_;
    std::string names_;
    std::string front_;
    std::string tables_;
    uint64_t hashed_front_ = 0;
    uint64_t weights_at_ = 0;
    uint64_t end_of_weights_ = 0;
    uint64_t check_at_ = 0;
};

// Sends the whole file to `put`, in order.
void emit(const ArtifactParts& parts, const std::function<void(std::string_view)>& put) {
    const Layout layout(parts);
    uint64_t at = 0;
    auto send = [&](std::string_view bytes) {
        if (bytes.empty()) return;
        put(bytes);
        at += bytes.size();
    };
    const std::string zeros(64 << 10, '\0');
    auto fill_to = [&](uint64_t end) {
        while (at < end) send(std::string_view(zeros).substr(0, end - at));
    };

    send(layout.front());
    ArtifactHash hash;
    if (layout.weights_at() != 0) {
        fill_to(layout.weights_at());
        emit_weights(parts.weights, [&](std::string_view bytes) {
            hash.add(bytes);
            send(bytes);
        });
    }
    fill_to(layout.check_at());
    send(layout.back(hash.finish()));
}

// Names become names of sections, so they may not hold a zero and must differ.
void check_names(const std::vector<AttachedFile>& files, Diagnostics& diagnostics) {
    for (size_t i = 0; i < files.size(); i++) {
        const std::string& name = files[i].name;
        if (name.empty() || name.find('\0') != name.npos)
            diagnostics.error("bad-attachment",
                              "an attached file has the name " + cuvil::quoted(name) + ", which cannot be stored");
        for (size_t j = 0; j < i; j++)
            if (files[j].name == name)
                diagnostics.error("bad-attachment", "two attached files have the name " + cuvil::quoted(name));
    }
}

} // namespace

std::vector<uint64_t> weights_offsets(const WeightsSource& weights) {
    std::vector<uint64_t> offsets;
    uint64_t at = 0;
    for (std::span<const std::byte> piece : weights) {
        offsets.push_back(at);
        at = round_up(at + piece.size(), piece_alignment);
    }
    return offsets;
}

uint64_t weights_size(const WeightsSource& weights) {
    if (weights.empty()) return 0;
    return round_up(weights_offsets(weights).back() + weights.back().size(), piece_alignment);
}

void emit_weights(const WeightsSource& weights, const std::function<void(std::string_view)>& put) {
    const std::string zeros(piece_alignment, '\0');
    for (std::span<const std::byte> piece : weights) {
        put({reinterpret_cast<const char*>(piece.data()), piece.size()});
        put(std::string_view(zeros).substr(0, round_up(piece.size(), piece_alignment) - piece.size()));
    }
}

void write_artifact(const std::filesystem::path& path, const ArtifactParts& parts, Diagnostics& diagnostics) {
    Diagnostics names;
    check_names(parts.files, names);
    if (names.has_errors()) {
        for (const Diagnostic& d : names.all()) diagnostics.error(d.code, d.message);
        return;
    }
    try {
        write_atomically(path, [&](int fd) { emit(parts, [&](std::string_view bytes) { write_all(fd, bytes); }); });
    } catch (const std::system_error& error) {
        diagnostics.error("cannot-write",
                          "cannot write " + cuvil::quoted(path.string()) + ": " + error.code().message());
    }
}

std::string artifact_bytes(const ArtifactParts& parts) {
    Diagnostics diagnostics;
    check_names(parts.files, diagnostics);
    diagnostics.stop_if_errors();
    std::string out;
    emit(parts, [&](std::string_view bytes) { out += bytes; });
    return out;
}

} // namespace cuvil
