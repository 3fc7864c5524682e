#include "artifact/linkable.hpp"

#include "support/diagnostics.hpp"
#include "support/elf.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>

namespace cuvil {
namespace {

constexpr uint64_t weights_alignment_in_objects = 64;
constexpr uint64_t largest_member = 9'999'999'999; // ten digits
constexpr std::string_view archive_magic = "!<arch>\n";
constexpr uint64_t member_header_size = 60;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

uint64_t weights_at(const LinkableObject& object) {
    return round_up(object.bytes.size(), weights_alignment_in_objects);
}

uint64_t size_of(const LinkableObject& object) {
    return object.weights.empty() ? object.bytes.size() : weights_at(object) + weights_size(object.weights);
}

// name/, no time, owner or group, rw-r--r--
std::string member_header(std::string_view name, uint64_t size) {
    CUVIL_ASSERT(name.size() < 16, "the member's name is too long");
    return fmt::format("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", std::string(name) + (name == "/" ? "" : "/"), 0, 0, 0,
                       "100644", size);
}

std::string big_endian(uint64_t number) {
    std::string out;
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xff);
    return out;
}

} // namespace

void emit_object(const LinkableObject& object, const std::function<void(std::string_view)>& put) {
    if (object.weights.empty()) return put(object.bytes);
    const auto header_at = section_header_at(object.bytes, object.weights_section);
    CUVIL_ASSERT(header_at, "the object has no section for the weights");
    Elf64_Shdr section;
    std::memcpy(&section, object.bytes.data() + *header_at, sizeof section);
    CUVIL_ASSERT(section.sh_type == SHT_NOBITS && section.sh_size == weights_size(object.weights),
                 "the section is not made for these weights");
    section.sh_type = SHT_PROGBITS;
    section.sh_offset = weights_at(object);
    put(object.bytes.substr(0, *header_at));
    put({reinterpret_cast<const char*>(&section), sizeof section});
    put(object.bytes.substr(*header_at + sizeof section));
    put(std::string(weights_at(object) - object.bytes.size(), '\0'));
    emit_weights(object.weights, put);
}

void emit_archive(std::span<const LinkableObject> objects, const std::function<void(std::string_view)>& put) {
    uint64_t count = 0;
    std::string names;
    std::vector<uint64_t> symbols_of;
    for (const LinkableObject& object : objects) {
        if (size_of(object) > largest_member) {
            Diagnostics diag;
            diag.error("too-large", fmt::format("an archive cannot hold an object of {} bytes", size_of(object)))
                .suggest("--emit=obj writes one without an archive");
            throw Refused(diag);
        }
        const std::vector<std::string> defined = defined_names(object.bytes);
        symbols_of.push_back(defined.size());
        count += defined.size();
        for (const std::string& name : defined) names += name + '\0';
    }
    if (names.size() % 2 != 0) names += '\0';

    const uint64_t index_size = 4 * (1 + count) + names.size();
    uint64_t at = archive_magic.size() + member_header_size + index_size;
    std::string index = big_endian(count);
    for (size_t i = 0; i < objects.size(); i++) {
        CUVIL_ASSERT(at <= UINT32_MAX, "all but the last member are small");
        for (uint64_t k = 0; k < symbols_of[i]; k++) index += big_endian(at);
        at += member_header_size + round_up(size_of(objects[i]), 2);
    }
    put(archive_magic);
    put(member_header("/", index_size));
    put(index + names);
    for (const LinkableObject& object : objects) {
        put(member_header(object.name, size_of(object)));
        emit_object(object, put);
        if (size_of(object) % 2 != 0) put("\n");
    }
}

} // namespace cuvil
