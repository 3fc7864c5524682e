// Files are written whole or not at all, alone and together.
#include "support/file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <system_error>

namespace cuvil {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
protected:
    void SetUp() override { fs::create_directory(folder); }
    void TearDown() override { fs::remove_all(folder); }

    static FileToWrite file(const fs::path& path, std::string_view text) {
        return {path, [text](int fd) { write_all(fd, text); }};
    }
    static std::string text_of(const fs::path& path) { return std::string(MappedFile(path).text()); }
    size_t count() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {})); }

    const fs::path folder = fs::temp_directory_path() / ("file-test-" + std::to_string(getpid()));
};

TEST_F(Files, TwoAreWrittenTogether) {
    const FileToWrite both[] = {file(folder / "a", "one"), file(folder / "b", "two")};
    write_atomically(both);
    EXPECT_EQ(text_of(folder / "a"), "one");
    EXPECT_EQ(text_of(folder / "b"), "two");
    EXPECT_EQ(count(), 2u);
}

TEST_F(Files, OneThatCannotBeWrittenLeavesTheOtherAsItWas) {
    std::ofstream(folder / "a") << "old";
    fs::create_directory(folder / "b");
    const FileToWrite both[] = {file(folder / "a", "new"), file(folder / "b", "two")};
    EXPECT_THROW(write_atomically(both), std::system_error);
    const FileToWrite failing[] = {file(folder / "a", "new"),
                                   {folder / "c", [](int) { throw std::runtime_error("no text"); }}};
    EXPECT_THROW(write_atomically(failing), std::runtime_error);
    EXPECT_EQ(text_of(folder / "a"), "old");
    EXPECT_EQ(count(), 2u) << "no temporary file is left";
}

} // namespace
} // namespace cuvil
