#include "support/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace cuvil {
namespace {

[[noreturn]] void fail(int error) { throw std::system_error(error, std::generic_category()); }

// What the system has no word for.
class NoRegularFile : public std::error_category {
public:
    const char* name() const noexcept override { return "file"; }
    std::string message(int) const override { return "not a regular file"; }
};
const NoRegularFile no_regular_file;

struct Descriptor {
    int fd;
    ~Descriptor() {
        if (fd >= 0) close(fd);
    }
};

} // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
    Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0) fail(errno);
    struct stat info{};
    if (fstat(file.fd, &info) != 0) fail(errno);
    if (S_ISDIR(info.st_mode)) fail(EISDIR);
    if (!S_ISREG(info.st_mode)) fail(EINVAL);
    size_ = static_cast<size_t>(info.st_size);
    if (size_ == 0) return;
    void* mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (mapped == MAP_FAILED) fail(errno);
    data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
    if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

void write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        ssize_t done = write(fd, bytes.data(), bytes.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail(errno);
        bytes.remove_prefix(static_cast<size_t>(done));
    }
}

void write_atomically(const std::filesystem::path& path, const std::function<void(int fd)>& write) {
    const std::filesystem::file_status there = std::filesystem::status(path);
    if (std::filesystem::is_directory(there)) fail(EISDIR);
    if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
        throw std::system_error(1, no_regular_file);
    std::string temporary = path.string() + ".XXXXXX";
    Descriptor file{mkostemp(temporary.data(), O_CLOEXEC)};
    if (file.fd < 0) fail(errno);
    try {
        write(file.fd);
        mode_t mask = umask(0);
        umask(mask);
        if (fchmod(file.fd, 0666 & ~mask) != 0) fail(errno);
        if (close(std::exchange(file.fd, -1)) != 0) fail(errno);
        if (rename(temporary.c_str(), path.c_str()) != 0) fail(errno);
    } catch (...) {
        unlink(temporary.c_str());
        throw;
    }
}

} // namespace cuvil
