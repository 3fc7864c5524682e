// Files: read-only mappings and writes that are either whole or not there.
#pragma once

#include "cuvil/diagnostic.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cuvil {

// A file mapped read-only for the life of the object. Throws std::system_error with the system's words; a directory
// or a device is an error too (is_a_directory, invalid_argument); an empty file is an empty span.
class MappedFile {
public:
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<const std::byte> bytes() const { return {data_, size_}; }
    std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

private:
    const std::byte* data_ = nullptr;
    size_t size_ = 0;
};

// The file that a user names; where it cannot be read, throws Refused with the error added to `diag`.
std::shared_ptr<const MappedFile> open_named(const std::filesystem::path& path, Diagnostics& diag);

// Calls `write(fd)` on a new file beside `path` and renames it to `path`; when anything throws, nothing is left behind
// and an older file at `path` is untouched. Throws std::system_error with the system's words; a directory, and a device
// or a pipe, which renaming would replace by a file, are errors too.
void write_atomically(const std::filesystem::path& path, const std::function<void(int fd)>& write);

// The same for files that belong together: each is renamed only after all are written.
struct FileToWrite {
    std::filesystem::path path;
    std::function<void(int fd)> write;
};
void write_atomically(std::span<const FileToWrite> files);

// Writes all bytes to `fd`; throws std::system_error.
void write_all(int fd, std::string_view bytes);

} // namespace cuvil
