#include "npz.hpp"

#include "support/file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace cuvil::cli {
namespace {

constexpr std::string_view local_magic("PK\x03\x04"), central_magic("PK\x01\x02"), end_magic("PK\x05\x06");
constexpr size_t local_size = 30, central_size = 46, end_size = 22;
constexpr uint16_t stored = 0, deflated = 8;
constexpr uint64_t in_zip64 = 0xffffffff; // the number stands in an extra field
constexpr uint16_t zip64_field = 1;

uint64_t number(std::string_view bytes, size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
}

struct Member {
    std::string name;
    uint16_t method;
    uint64_t packed_size, size, offset;
};

// Reads the directory at the end of a zip archive; every offset is checked.
class Archive {
public:
    Archive(std::string_view file, std::string name) : file_(file), name_(std::move(name)) {
        const size_t end = end_of_directory();
        const uint64_t count = number(file_, end + 10, 2);
        uint64_t at = number(file_, end + 16, 4);
        for (uint64_t i = 0; i < count; i++) at = read_entry(at);
    }

    const std::vector<Member>& members() const { return members_; }

    std::string bytes(const Member& member) const {
        expect(member.offset, local_size, local_magic);
        const uint64_t start =
            member.offset + local_size + number(file_, member.offset + 26, 2) + number(file_, member.offset + 28, 2);
        if (start > file_.size() || member.packed_size > file_.size() - start) fail("is truncated");
        const std::string_view packed = file_.substr(start, member.packed_size);
        if (member.method == stored) return std::string(packed);
        if (member.method != deflated)
            fail(fmt::format("holds '{}' packed by method {}; read are stored and deflated ones", member.name,
                             member.method));
        return inflated(packed, member);
    }

private:
    [[noreturn]] void fail(const std::string& what) const { throw NpyError(name_ + " " + what); }

    void expect(uint64_t at, size_t size, std::string_view magic) const {
        if (at > file_.size() || size > file_.size() - at || file_.substr(at, 4) != magic)
            fail("is damaged: its directory does not fit its content");
    }

    size_t end_of_directory() const {
        if (file_.size() < end_size || !file_.starts_with("PK")) fail("is not a .npz file");
        const size_t end = file_.rfind(end_magic, file_.size() - end_size);
        if (end == std::string_view::npos) fail("is truncated: it has no directory");
        return end;
    }

    uint64_t read_entry(uint64_t at) {
        expect(at, central_size, central_magic);
        const uint64_t name_size = number(file_, at + 28, 2), extra_size = number(file_, at + 30, 2);
        const uint64_t next = at + central_size + name_size + extra_size + number(file_, at + 32, 2);
        if (next > file_.size()) fail("is truncated");
        Member member{std::string(file_.substr(at + central_size, name_size)),
                      static_cast<uint16_t>(number(file_, at + 10, 2)), number(file_, at + 20, 4),
                      number(file_, at + 24, 4), number(file_, at + 42, 4)};
        read_extra(file_.substr(at + central_size + name_size, extra_size), member);
        members_.push_back(std::move(member));
        return next;
    }

    // Numbers of 64 bits, in this order, where the short ones say so.
    void read_extra(std::string_view extra, Member& member) const {
        while (extra.size() >= 4) {
            const uint64_t kind = number(extra, 0, 2), size = std::min<uint64_t>(number(extra, 2, 2), extra.size() - 4);
            std::string_view field = extra.substr(4, size);
            extra.remove_prefix(4 + size);
            if (kind != zip64_field) continue;
            for (uint64_t* value : {&member.size, &member.packed_size, &member.offset}) {
                if (*value != in_zip64) continue;
                if (field.size() < 8) fail("is damaged: a size is missing");
                *value = number(field, 0, 8);
                field.remove_prefix(8);
            }
        }
    }

    std::string inflated(std::string_view packed, const Member& member) const {
        constexpr uint64_t most_ratio = 1032; // of deflate; a size beyond it is no reason to take memory
        if (member.size / most_ratio > packed.size()) fail("is damaged: a size makes no sense");
        std::string out(member.size, '\0');
        z_stream stream{};
        if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
        int status = Z_OK;
        while (status == Z_OK) {
            if (stream.avail_in == 0) refill(packed, stream.next_in, stream.avail_in);
            const uint64_t room = out.size() - stream.total_out;
            stream.next_out = reinterpret_cast<Bytef*>(out.data()) + stream.total_out;
            stream.avail_out = static_cast<uInt>(std::min<uint64_t>(room, 1u << 30));
            status = inflate(&stream, Z_NO_FLUSH);
        }
        const bool is_whole = status == Z_STREAM_END && stream.total_out == out.size();
        inflateEnd(&stream);
        if (!is_whole) fail(fmt::format("is damaged: '{}' cannot be unpacked", member.name));
        return out;
    }

    static void refill(std::string_view& packed, Bytef*& next, uInt& available) {
        available = static_cast<uInt>(std::min<size_t>(packed.size(), 1u << 30));
        next = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
        packed.remove_prefix(available);
    }

    std::string_view file_;
    std::string name_;
    std::vector<Member> members_;
};

std::string without_npy(const std::string& name) {
    return name.ends_with(".npy") ? name.substr(0, name.size() - 4) : name;
}

std::vector<std::string> names_in(const Archive& archive) {
    std::vector<std::string> names;
    for (const Member& member : archive.members()) names.push_back(without_npy(member.name));
    return names;
}

void append_number(std::string& out, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++) out += static_cast<char>(value >> (8 * i) & 0xff);
}

// What the local header and the entry of the directory have in common, from the version on.
std::string description(const std::string& name, std::string_view bytes) {
    std::string out;
    append_number(out, 20, 2);     // version that can read it
    append_number(out, 0x0800, 2); // the name is UTF-8
    append_number(out, stored, 2);
    append_number(out, 0x00210000, 4); // 1980-01-01: the same arrays give the same file
    append_number(out, crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()), 4);
    append_number(out, bytes.size(), 4);
    append_number(out, bytes.size(), 4);
    append_number(out, name.size(), 2);
    append_number(out, 0, 2); // no extra field
    return out;
}

} // namespace

std::vector<std::string> parse_npz_names(std::string_view file, const std::string& place) {
    return names_in(Archive(file, place));
}

Array parse_npz(std::string_view file, const std::string& place, const std::string& name) {
    const Archive archive(file, place);
    for (const Member& member : archive.members())
        if (without_npy(member.name) == name)
            return parse_npy(archive.bytes(member), fmt::format("'{}' in {}", name, place));
    throw NpyError(fmt::format("{} has no array '{}'; it has {}", place, name, fmt::join(names_in(archive), ", ")));
}

std::vector<std::string> npz_names(const std::filesystem::path& path) {
    return parse_npz_names(MappedFile(path).text(), path.string());
}

Array read_npz(const std::filesystem::path& path, const std::string& name) {
    return parse_npz(MappedFile(path).text(), path.string(), name);
}

void write_npz(const std::filesystem::path& path, const std::vector<std::pair<std::string, cuvil_value>>& arrays) {
    std::string out, directory;
    for (const auto& [name, value] : arrays) {
        const std::string file = name + ".npy", bytes = npy_bytes(value);
        if (out.size() + bytes.size() + file.size() + 1024 > in_zip64)
            throw NpyError("more than 4 GB do not fit a .npz file; write each array to a .npy file");
        const uint64_t offset = out.size();
        const std::string common = description(file, bytes);
        directory += central_magic;
        append_number(directory, 20, 2); // version that wrote it
        directory += common;
        directory.append(10, '\0'); // no comment, one disk, no attributes
        append_number(directory, offset, 4);
        directory += file;
        out.append(local_magic).append(common).append(file).append(bytes);
    }
    const uint64_t start = out.size();
    out += directory;
    out += end_magic;
    append_number(out, 0, 4); // one disk
    append_number(out, arrays.size(), 2);
    append_number(out, arrays.size(), 2);
    append_number(out, directory.size(), 4);
    append_number(out, start, 4);
    append_number(out, 0, 2);
    write_atomically(path, [&](int fd) { write_all(fd, out); });
}

} // namespace cuvil::cli
