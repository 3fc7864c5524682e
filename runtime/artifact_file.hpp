// A `.cuvil` file, opened, mapped and checked.
#pragma once

#include "runtime/artifact_view.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace cuvil {

// Pages are read when touched and shared between processes. A file that holds more than huge_weights is mapped so that
// huge pages fit.
class ArtifactFile {
public:
    // On any failure returns null and sets `error` to a whole sentence that names the file.
    static std::unique_ptr<ArtifactFile> open(const std::string& path, std::string& error);
    // The same for a copy of `bytes`, in a file that has no name and goes with the last mapping of it.
    static std::unique_ptr<ArtifactFile> copy(std::string_view bytes, std::string& error);

    ~ArtifactFile();
    ArtifactFile(const ArtifactFile&) = delete;
    ArtifactFile& operator=(const ArtifactFile&) = delete;

    const ArtifactView& view() const { return view_; }
    const std::string& name() const { return name_; } // as sentences call it
    uint64_t size() const { return size_; }

    int fd() const { return fd_; } // -1 once closed; the mapping stays
    void close_fd();

private:
    ArtifactFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
    static std::unique_ptr<ArtifactFile> from(std::unique_ptr<ArtifactFile> file, std::string& error);
    bool map();

    int fd_;
    std::string name_;
    char* data_ = nullptr;
    uint64_t size_ = 0;
    ArtifactView view_;
};

} // namespace cuvil
