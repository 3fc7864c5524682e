#include "runtime/artifact_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace cuvil {
namespace {

std::string words(int error) {
    char buffer[256];
    return strerror_r(error, buffer, sizeof buffer); // the GNU form: returns the words
}

} // namespace

std::unique_ptr<ArtifactFile> ArtifactFile::open(const std::string& path, std::string& error) {
    // O_NONBLOCK: a pipe without a writer must not block the open; a regular file does not know it.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        error = "cannot open '" + path + "': " + words(errno);
        return nullptr;
    }
    return from(std::unique_ptr<ArtifactFile>(new ArtifactFile(fd, "'" + path + "'")), error);
}

std::unique_ptr<ArtifactFile> ArtifactFile::copy(std::string_view bytes, std::string& error) {
    const int fd = memfd_create("cuvil", MFD_CLOEXEC);
    if (fd < 0) {
        error = "cannot make a file in memory: " + words(errno);
        return nullptr;
    }
    std::unique_ptr<ArtifactFile> file(new ArtifactFile(fd, "the module in memory"));
    while (!bytes.empty()) {
        const ssize_t done = write(fd, bytes.data(), bytes.size());
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            error = "cannot write a file in memory: " + words(errno);
            return nullptr;
        }
        bytes.remove_prefix(static_cast<size_t>(done));
    }
    return from(std::move(file), error);
}

std::unique_ptr<ArtifactFile> ArtifactFile::from(std::unique_ptr<ArtifactFile> file, std::string& error) {
    struct stat info{};
    if (fstat(file->fd_, &info) != 0) {
        error = "cannot read " + file->name_ + ": " + words(errno);
        return nullptr;
    }
    if (!S_ISREG(info.st_mode)) {
        error = file->name_ + (S_ISDIR(info.st_mode) ? " is a directory" : " is not a regular file");
        return nullptr;
    }
    file->size_ = static_cast<uint64_t>(info.st_size);
    if (file->size_ != 0 && !file->map()) {
        error = "cannot map " + file->name_ + ": " + words(errno);
        return nullptr;
    }
    std::optional<ArtifactView> view = ArtifactView::read({file->data_, file->size_}, error);
    if (!view) {
        error = file->name_ + " " + error;
        return nullptr;
    }
    file->view_ = std::move(*view);
    const std::string_view weights = file->view_.weights();
    // Fails where the system has no huge pages for files, which costs nothing but the gain.
    if (weights.size() > huge_weights) madvise(const_cast<char*>(weights.data()), weights.size(), MADV_HUGEPAGE);
    return file;
}

bool ArtifactFile::map() {
    void* place = nullptr;
    int flags = MAP_PRIVATE;
    if (size_ > huge_weights) {
        // Reserve room for the alignment, then give back what lies around it.
        const uint64_t room = size_ + huge_page;
        void* reserved = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (reserved == MAP_FAILED) return false;
        const uintptr_t start = reinterpret_cast<uintptr_t>(reserved);
        const uintptr_t aligned = (start + huge_page - 1) & ~(huge_page - 1);
        const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
        const uintptr_t end = (aligned + size_ + page - 1) & ~(page - 1);
        if (aligned > start) munmap(reserved, aligned - start);
        if (start + room > end) munmap(reinterpret_cast<void*>(end), start + room - end);
        place = reinterpret_cast<void*>(aligned);
        flags |= MAP_FIXED;
    }
    void* mapped = mmap(place, size_, PROT_READ, flags, fd_, 0);
    if (mapped == MAP_FAILED) {
        const int reason = errno;
        if (place) munmap(place, size_);
        errno = reason;
        return false;
    }
    data_ = static_cast<char*>(mapped);
    return true;
}

void ArtifactFile::close_fd() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
}

ArtifactFile::~ArtifactFile() {
    if (data_) munmap(data_, size_);
    close_fd();
}

} // namespace cuvil
