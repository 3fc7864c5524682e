#include "support/file.hpp"

#include "support/diagnostics.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
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

std::shared_ptr<const MappedFile> open_named(const std::filesystem::path& path, Diagnostics& diag) {
    try {
        return std::make_shared<const MappedFile>(path);
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::no_such_file_or_directory || error.code() == std::errc::not_a_directory)
            diag.error("file-not-found", "there is no file " + cuvil::quoted(path.string()));
        else if (error.code() == std::errc::is_a_directory)
            diag.error("is-a-directory", cuvil::quoted(path.string()) + " is a directory");
        else
            diag.error("unreadable-file", cuvil::quoted(path.string()) + " cannot be read: " + error.code().message());
    }
    throw Refused(diag);
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

namespace {

// A file beside `path` that becomes `path`, or is removed.
class NewFile {
public:
    explicit NewFile(const std::filesystem::path& path) : path_(path) {
        const std::filesystem::file_status there = std::filesystem::status(path);
        if (std::filesystem::is_directory(there)) fail(EISDIR);
        if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
            throw std::system_error(1, no_regular_file);
        temporary_ = path.string() + ".XXXXXX";
        file_.fd = mkostemp(temporary_.data(), O_CLOEXEC);
        if (file_.fd < 0) fail(errno);
    }
    ~NewFile() {
        if (!is_renamed_) unlink(temporary_.c_str());
    }
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    void fill(const std::function<void(int fd)>& write) {
        write(file_.fd);
        mode_t mask = umask(0);
        umask(mask);
        if (fchmod(file_.fd, 0666 & ~mask) != 0) fail(errno);
        if (close(std::exchange(file_.fd, -1)) != 0) fail(errno);
    }
    void rename() {
        if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
        is_renamed_ = true;
    }

private:
    std::filesystem::path path_;
    std::string temporary_;
    Descriptor file_{-1};
    bool is_renamed_ = false;
};

} // namespace

void write_atomically(const std::filesystem::path& path, const std::function<void(int fd)>& write) {
    const FileToWrite file{path, write};
    write_atomically({&file, 1});
}

void write_atomically(std::span<const FileToWrite> files) {
    std::deque<NewFile> written;
    for (const FileToWrite& file : files) written.emplace_back(file.path).fill(file.write);
    for (NewFile& file : written) file.rename();
}

} // namespace cuvil
