// A program of several levels becomes one module: self-contained, one copy of the code for each level, always the same
// bytes.
#include "codegen/cxx_module.hpp"
#include "codegen_elf.hpp"
#include "cuvil/cuvil.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <algorithm>
#include <clocale>
#include <filesystem>

using namespace cuvil;
using namespace cuvil::test;

// run() of each level returns 1, 2 or 3 times the threads of the call, by a template that all levels instantiate.
static CXXModule small_program() {
    CXXModule module;
    module.sources.push_back({"main.cpp",
                              R"(#include "cuvil/cuvil.h"
namespace cuvil { inline namespace CUVIL_ISA {
template <int K> [[gnu::noinline]] int times(int x) { return K * x; }
#if defined(__AVX512F__)
constexpr int factor = 3;
#elif defined(__AVX2__)
constexpr int factor = 2;
#else
constexpr int factor = 1;
#endif
int32_t run(const cuvil_call* call) { return times<factor>(call->threads) + times<0>(call->threads); }
} }
)",
                              {"v2", "v3", "v4"}});
    module.sources.push_back({"program.cpp",
                              R"(#include "cuvil/cuvil.h"
namespace cuvil {
namespace v2 { int32_t run(const cuvil_call*); }
namespace v3 { int32_t run(const cuvil_call*); }
namespace v4 { int32_t run(const cuvil_call*); }
}
static const cuvil_level levels[] = {{"v2", cuvil::v2::run}, {"v3", cuvil::v3::run}, {"v4", cuvil::v4::run}};
static int32_t bind(const cuvil_value*, int64_t*, cuvil_failure*) { return 0; }
static uint64_t workspace_size(const int64_t*, int32_t) { return 64; }
extern "C" [[gnu::visibility("default")]] const cuvil_program cuvil_program_1 =
    {sizeof(cuvil_program), CUVIL_ABI_VERSION, 0, 3, levels, bind, workspace_size};
)",
                              {"v2"}});
    return module;
}

static std::string compile(const CXXModule& module, unsigned threads = 0) {
    Diagnostics diag;
    return module.compile({.threads = threads}, diag);
}

static bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CXXModule, LoadsAndRunsEveryLevelsOwnCode) {
    const std::string linked = compile(small_program());
    const LoadableFile file(linked);
    void* const handle = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
    const auto* program = static_cast<const cuvil_program*>(dlsym(handle, "cuvil_program_1"));
    ASSERT_NE(program, nullptr);
    EXPECT_EQ(program->abi_version, CUVIL_ABI_VERSION);
    ASSERT_EQ(program->level_count, 3u);
    cuvil_call call = {};
    call.threads = 5;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(program->levels[i].run(&call), 5 * (i + 1)) << program->levels[i].name;
    dlclose(handle);
}

TEST(CXXModule, NeedsNothingAndExportsOneSymbol) {
    const std::string linked = compile(small_program());
    EXPECT_EQ(needed(linked), 0);
    for (const unsigned table : {SHT_SYMTAB, SHT_DYNSYM})
        for (const Symbol& symbol : symbols(linked, table)) EXPECT_TRUE(symbol.defined) << symbol.name;
    const std::vector<Symbol> exported = symbols(linked, SHT_DYNSYM);
    ASSERT_EQ(exported.size(), 1u);
    EXPECT_EQ(exported[0].name, "cuvil_program_1");
}

TEST(CXXModule, KeepsOneCopyOfATemplateForEachLevel) {
    std::vector<std::string> copies;
    for (const Symbol& symbol : symbols(compile(small_program()), SHT_SYMTAB))
        if (contains(symbol.name, "timesILi0E")) copies.push_back(symbol.name);
    std::sort(copies.begin(), copies.end());
    EXPECT_EQ(copies, (std::vector<std::string>{"_ZN5cuvil2v25timesILi0EEEii", "_ZN5cuvil2v35timesILi0EEEii",
                                                "_ZN5cuvil2v45timesILi0EEEii"}));
}

TEST(CXXModule, GivesTheSameBytesAlways) {
    const CXXModule module = small_program();
    const std::string expected = compile(module, 1);
    EXPECT_EQ(compile(module, 1), expected);
    EXPECT_EQ(compile(module, 2), expected);
    const LoadableFile shifts_all_descriptors("");
    EXPECT_EQ(compile(module, 2), expected);

    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path("/");
    setlocale(LC_ALL, "C.UTF-8");
    EXPECT_EQ(compile(module), expected);
    setlocale(LC_ALL, "C");
    std::filesystem::current_path(before);
}

TEST(CXXModule, HoldsNoTraceOfTheMachine) {
    const std::string linked = compile(small_program());
    for (const std::string trace : {"/proc/", "/tmp", "memfd", "cuvil-", "Debian", "LLD", "clang"})
        EXPECT_FALSE(contains(linked, trace)) << trace;
}

// A program whose levels include every kernel header and multiply two matrices.
static CXXModule kernel_program() {
    std::string text;
    for (const SourceFile& file : kernel_sources())
        if (file.name.starts_with("kernels/") && file.name != "kernels/libc.hpp")
            text += "#include \"" + std::string(file.name) + "\"\n";
    text += R"(namespace cuvil { inline namespace CUVIL_ISA {
void product(const f32* a, const f32* b, f32* c) {
    constexpr Gemm shape = {5, 20, 9, 9, 20};
    constexpr GemmTiles tiles = gemm_tiles(5, 20, 9);
    for (i64 task = 0; task < gemm_tasks(shape, tiles); ++task) gemm_task<tiles>(shape, task, a, b, c, Identity());
}
} }
)";
    CXXModule module;
    module.sources.push_back({"product.cpp", text, {"v2", "v3", "v4"}});
    module.sources.push_back({"program.cpp",
                              R"(#include "kernels/libc.hpp"
using Product = void (*)(const float*, const float*, float*);
namespace cuvil {
namespace v2 { void product(const float*, const float*, float*); }
namespace v3 { void product(const float*, const float*, float*); }
namespace v4 { void product(const float*, const float*, float*); }
}
extern "C" [[gnu::visibility("default")]] const Product cuvil_program_1[] =
    {cuvil::v2::product, cuvil::v3::product, cuvil::v4::product};
)",
                              {"v2"}});
    return module;
}

TEST(CXXModule, TheKernelsNeedNothingAndGiveTheSameBytesAlways) {
    const std::string linked = compile(kernel_program(), 1);
    EXPECT_EQ(needed(linked), 0);
    for (const Symbol& symbol : symbols(linked, SHT_SYMTAB)) EXPECT_TRUE(symbol.defined) << symbol.name;
    EXPECT_EQ(compile(kernel_program(), 2), linked);
}

TEST(CXXModule, ShowsItsSourceIrAndAssembly) {
    const CXXModule module = small_program();
    EXPECT_TRUE(contains(module.source_text(), "// ==== main.cpp (v2, v3, v4)\n#include"));
    EXPECT_TRUE(contains(module.source_text(), "// ==== program.cpp (v2)\n"));

    const auto assembly = module.emit(Output::Assembly, {});
    ASSERT_EQ(assembly.size(), 4u);
    EXPECT_EQ(assembly[1].first, "main.v3.s");
    EXPECT_TRUE(contains(assembly[1].second, "_ZN5cuvil2v33run"));
    EXPECT_EQ(module.emit(Output::Llvm, {})[3].first, "program.v2.ll");
}

TEST(CXXModule, ReportsProgress) {
    std::vector<size_t> totals;
    CXXCompileOptions options;
    options.progress = [&](size_t, size_t total) { totals.push_back(total); };
    small_program().emit(Output::Object, options);
    ASSERT_FALSE(totals.empty());
    EXPECT_EQ(totals.back(), 4u);
}

TEST(CXXModule, CodeThatDoesNotCompileOrLinkIsABugOfOurs) {
    Diagnostics diag;
    CXXModule module = small_program();
    module.sources[0].text += "int f() { return undeclared; }";
    try {
        module.compile({}, diag);
        FAIL();
    } catch (const InternalError& error) {
        EXPECT_TRUE(contains(error.what(), "main.v3.cpp")) << error.what();
        EXPECT_TRUE(contains(error.what(), "use of undeclared identifier 'undeclared'")) << error.what();
    }

    module = small_program();
    module.sources.erase(module.sources.begin());
    try {
        module.compile({}, diag);
        FAIL();
    } catch (const InternalError& error) {
        EXPECT_TRUE(contains(error.what(), "undefined symbol: cuvil::v3::run")) << error.what();
    }
}

TEST(CXXModule, ANameOfTwoLevelsIsABugOfOurs) {
    Diagnostics diag;
    CXXModule module = small_program();
    module.sources[0].text += "template <class T> T id(T x) { return x; } template int id<int>(int);";
    try {
        module.compile({}, diag);
        FAIL();
    } catch (const InternalError& error) {
        EXPECT_TRUE(contains(error.what(), "_Z2idIiET_S0_ is defined by the levels v2 and v3")) << error.what();
    }
}

TEST(CXXModule, RefusesWhereNoTemporaryFileCanBeWritten) {
    setenv("TMPDIR", "/no/such/folder", 1);
    EXPECT_THROW(compile(small_program()), Refused);
    unsetenv("TMPDIR");
}

TEST(CXXModule, CanBeCancelled) {
    Diagnostics diag;
    std::stop_source source;
    CXXCompileOptions options;
    options.stop = source.get_token();
    source.request_stop();
    EXPECT_THROW(small_program().compile(options, diag), Cancelled);
}
