// Objects become a shared object that exports what is named and nothing else.
#include "codegen/clang.hpp"
#include "codegen/lld.hpp"
#include "codegen_elf.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <thread>

using namespace cuvil;
using namespace cuvil::test;

static std::string object(const std::string& text) {
    JobResult result = compile_source({"test.cpp", text, "v2", Output::Object}, {});
    EXPECT_TRUE(result.ok) << result.diagnostics;
    return result.bytes;
}

static const std::string seven = "extern \"C\" [[gnu::visibility(\"default\")]] int seven() { return 7; }"
                                 "extern \"C\" [[gnu::visibility(\"default\")]] int other() { return 8; }";

static std::string link(const std::vector<std::string>& objects, std::string& diagnostics,
                        const std::vector<std::string>& exported = {"seven"}) {
    return link_shared(objects, exported, diagnostics);
}

TEST(Lld, MakesALoadableObjectThatExportsWhatIsNamed) {
    std::string diagnostics;
    const std::string linked = link({object(seven)}, diagnostics);
    ASSERT_FALSE(linked.empty()) << diagnostics;
    EXPECT_TRUE(diagnostics.empty()) << diagnostics;
    EXPECT_EQ(needed(linked), 0);
    const std::vector<Symbol> exported = symbols(linked, SHT_DYNSYM);
    ASSERT_EQ(exported.size(), 1u);
    EXPECT_EQ(exported[0].name, "seven");

    const LoadableFile file(linked);
    void* const handle = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
    EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(handle, "seven"))(), 7);
    EXPECT_EQ(dlsym(handle, "other"), nullptr);
    dlclose(handle);
}

TEST(Lld, AFailureIsReportedAndTheNextLinkWorks) {
    for (int round = 0; round < 3; ++round) {
        std::string diagnostics;
        EXPECT_TRUE(link({object("int missing(); extern \"C\" [[gnu::visibility(\"default\")]] int seven() {"
                                 "    return missing();"
                                 "}")},
                         diagnostics)
                        .empty());
        EXPECT_NE(diagnostics.find("undefined symbol: missing()"), std::string::npos) << diagnostics;
        EXPECT_TRUE(link({"not an object"}, diagnostics).empty());
        EXPECT_TRUE(link({object(seven)}, diagnostics, {"absent"}).empty());
        EXPECT_NE(diagnostics.find("absent"), std::string::npos) << diagnostics;

        diagnostics.clear();
        EXPECT_FALSE(link({object(seven)}, diagnostics).empty()) << diagnostics;
    }
}

TEST(Lld, ThreadsTakeTurnsAndAgree) {
    const std::string input = object(seven);
    std::string diagnostics;
    const std::string expected = link({input}, diagnostics);
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int round = 0; round < 10; ++round) {
                std::string text;
                EXPECT_EQ(link({input}, text), expected) << text;
            }
        });
}

TEST(Lld, LeavesNothingBehindAndSaysWhereItCannotWrite) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("lld-test-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const char* const before = getenv("TMPDIR");
    const std::string restored = before ? before : "";
    setenv("TMPDIR", folder.c_str(), 1);

    std::string diagnostics;
    EXPECT_FALSE(link({object(seven)}, diagnostics).empty()) << diagnostics;
    EXPECT_TRUE(link({"not an object"}, diagnostics).empty());
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    std::filesystem::remove(folder);
    EXPECT_THROW(link({object(seven)}, diagnostics), std::system_error);

    before ? setenv("TMPDIR", restored.c_str(), 1) : unsetenv("TMPDIR");
}
