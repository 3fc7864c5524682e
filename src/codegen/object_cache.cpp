#include "codegen/object_cache.hpp"

#include "ir/program.hpp"
#include "support/file.hpp"

#include <algorithm>
#include <system_error>
#include <vector>

namespace cuvil {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".o";
constexpr size_t digest_size = 32; // in hexadecimal digits

std::string digest(std::string_view bytes) { return content_hash(std::as_bytes(std::span(bytes))).text(); }

std::string entry_name(const SourceJob& job, std::span<const SourceFile> headers) {
    std::string all = identity(job);
    for (const SourceFile& header : headers) {
        all += header.name;
        all += '\0';
        all += header.text;
        all += '\0';
    }
    return digest(all) + std::string(suffix);
}

struct Entry {
    fs::path path;
    uint64_t bytes;
    fs::file_time_type used;
};

std::vector<Entry> entries_of(const fs::path& folder) {
    std::vector<Entry> entries;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        // What a process that was killed left unfinished begins with the same name.
        const std::string name = at->path().filename();
        if (name.find_first_not_of("0123456789abcdef") != digest_size || !name.substr(digest_size).starts_with(suffix))
            continue;
        std::error_code gone; // by another process
        const Entry entry{at->path(), at->file_size(gone), at->last_write_time(gone)};
        if (!gone) entries.push_back(entry);
    }
    return entries;
}

ObjectCache::Contents total(const std::vector<Entry>& entries) {
    ObjectCache::Contents sum{entries.size(), 0};
    for (const Entry& entry : entries) sum.bytes += entry.bytes;
    return sum;
}

} // namespace

// An entry is the digest of the object, then the object.
std::optional<std::string> ObjectCache::find(const SourceJob& job, std::span<const SourceFile> headers) const {
    if (folder_.empty()) return {};
    const fs::path path = folder_ / entry_name(job, headers);
    try {
        const MappedFile file(path);
        const std::string_view text = file.text();
        if (text.size() < digest_size) return {};
        const std::string_view object = text.substr(digest_size);
        if (text.substr(0, digest_size) != digest(object)) return {};
        std::error_code ignored;
        fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
        return std::string(object);
    } catch (const std::system_error&) {
        return {};
    }
}

bool ObjectCache::add(const SourceJob& job, std::span<const SourceFile> headers, std::string_view object) const {
    if (folder_.empty()) return false;
    try {
        fs::create_directories(folder_);
        write_atomically(folder_ / entry_name(job, headers), [&](int fd) {
            write_all(fd, digest(object));
            write_all(fd, object);
        });
    } catch (const std::system_error&) {
        return false;
    }
    trim();
    return true;
}

void ObjectCache::trim() const {
    std::vector<Entry> entries = entries_of(folder_);
    uint64_t bytes = total(entries).bytes;
    if (bytes <= limit_) return;
    std::ranges::sort(entries, {}, &Entry::used);
    for (const Entry& entry : entries) {
        std::error_code ignored;
        fs::remove(entry.path, ignored);
        bytes -= entry.bytes;
        if (bytes <= limit_) return;
    }
}

ObjectCache::Contents ObjectCache::contents() const { return total(entries_of(folder_)); }

ObjectCache::Contents ObjectCache::clear() const {
    const std::vector<Entry> entries = entries_of(folder_);
    for (const Entry& entry : entries) fs::remove(entry.path);
    return total(entries);
}

} // namespace cuvil
