#include "codegen/object_cache.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

namespace cuvil {
namespace {

namespace fs = std::filesystem;

class ObjectCacheTest : public testing::Test {
protected:
    ObjectCacheTest() { fs::remove_all(folder); }
    ~ObjectCacheTest() override { fs::remove_all(folder); }

    static SourceJob job(std::string text) { return {"main.v3.cpp", std::move(text), "v3"}; }
    std::optional<std::string> find(const SourceJob& j) const { return cache.find(j, headers); }

    const fs::path folder =
        fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name() / "objects";
    const ObjectCache cache{folder};
    const std::vector<SourceFile> headers = {{"kernels/a.hpp", "int a;"}};
};

TEST_F(ObjectCacheTest, GivesWhatWasAdded) {
    EXPECT_EQ(find(job("x")), std::nullopt);
    const std::string object("\x7f"
                             "ELF\0 and more",
                             13);
    cache.add(job("x"), headers, object);
    EXPECT_EQ(find(job("x")), object);
    EXPECT_EQ(cache.contents().objects, 1u);
}

TEST_F(ObjectCacheTest, WhateverDecidesTheObjectDecidesTheEntry) {
    cache.add(job("x"), headers, "object");
    EXPECT_EQ(find(job("y")), std::nullopt);
    SourceJob other = job("x");
    other.level = "v4";
    EXPECT_EQ(find(other), std::nullopt);
    other = job("x");
    other.effort = 2;
    EXPECT_EQ(find(other), std::nullopt);
    other = job("x");
    other.name = "other.cpp";
    EXPECT_EQ(find(other), std::nullopt);
    const std::vector<SourceFile> newer = {{"kernels/a.hpp", "int b;"}};
    EXPECT_EQ(cache.find(job("x"), newer), std::nullopt);
}

TEST_F(ObjectCacheTest, ADamagedEntryIsNone) {
    cache.add(job("x"), headers, "object");
    const fs::path entry = fs::directory_iterator(folder)->path();
    std::fstream(entry, std::ios::in | std::ios::out | std::ios::binary).seekp(33).put('?');
    EXPECT_EQ(find(job("x")), std::nullopt);
    fs::resize_file(entry, 10);
    EXPECT_EQ(find(job("x")), std::nullopt);
    cache.add(job("x"), headers, "object");
    EXPECT_EQ(find(job("x")), "object");
}

TEST_F(ObjectCacheTest, AFolderThatCannotBeMadeIsNoCache) {
    fs::create_directories(folder.parent_path());
    std::ofstream(folder) << "a file";
    cache.add(job("x"), headers, "object");
    EXPECT_EQ(find(job("x")), std::nullopt);
    EXPECT_EQ(cache.contents().objects, 0u);
    const ObjectCache none{fs::path()};
    none.add(job("x"), headers, "object");
    EXPECT_EQ(none.find(job("x"), headers), std::nullopt);
}

TEST_F(ObjectCacheTest, ClearLeavesWhatIsNotItsOwn) {
    cache.add(job("x"), headers, "object");
    cache.add(job("y"), headers, "object");
    std::ofstream(folder / "notes.txt") << "mine";
    EXPECT_EQ(cache.clear().objects, 2u);
    EXPECT_EQ(cache.contents().objects, 0u);
    EXPECT_TRUE(fs::exists(folder / "notes.txt"));
}

TEST_F(ObjectCacheTest, TheLeastRecentlyUsedGoFirst) {
    const ObjectCache small(folder, 300);
    small.add(job("x"), headers, std::string(80, 'x')); // each takes 112 bytes
    small.add(job("y"), headers, std::string(80, 'y'));
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
        fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(1));
    EXPECT_TRUE(small.find(job("x"), headers)); // used now
    small.add(job("z"), headers, std::string(80, 'z'));
    EXPECT_TRUE(small.find(job("x"), headers));
    EXPECT_FALSE(small.find(job("y"), headers));
    EXPECT_TRUE(small.find(job("z"), headers));
}

} // namespace
} // namespace cuvil
