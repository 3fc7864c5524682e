// A bug of ours leaves a program behind that shows it again.
#include "src/reproducer.hpp"

#include "support/diagnostics.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>

namespace cuvil {
namespace {

// 70 elements, which text does not hold.
constexpr const char* model = "weight \"w\" : f32[70] hash 0123456789abcdef0123456789abcdef\n"
                              "func @main(%x: f32[70]) -> f32[70] {\n"
                              "  %w = weight \"w\" : f32[70]\n"
                              "  %a = mul %x, %w\n"
                              "  %b = identity %a\n"
                              "  return %b\n"
                              "}\n";

// What comes of an exception in the given stage.
template <class F> std::optional<CompilerBug> bug_of(std::string_view stage, F f, const CompileOptions& options = {}) {
    try {
        reproducible({.path = "m.cuir", .bytes = model}, options, [&](const CompileOptions& watched) -> int {
            watched.progress({1, 5, stage});
            f();
            return 0;
        });
    } catch (const CompilerBug& bug) {
        return bug;
    }
    return std::nullopt;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string content_of(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

TEST(Reproducer, HoldsTheProgramBeforeTheStep) {
    auto bug = bug_of("optimize", [] { throw CompilerBug("broken", "CanonicalizePass"); });
    EXPECT_STREQ(bug->what(), "broken");
    EXPECT_EQ(bug->step(), "CanonicalizePass");
    EXPECT_TRUE(contains(bug->program(), "identity")) << bug->program();
    bug = bug_of("codegen", [] { CUVIL_ASSERT(false, "no code"); });
    EXPECT_EQ(bug->step(), "codegen");
    EXPECT_TRUE(contains(bug->what(), "no code"));
    EXPECT_TRUE(contains(bug->program(), "mul") && !contains(bug->program(), "identity")) << bug->program();
    bug = bug_of("optimize", [] { throw InternalError("not sound"); });
    EXPECT_TRUE(contains(bug->program(), "identity"));
}

TEST(Reproducer, IsMadeOfBugsOnly) {
    EXPECT_TRUE(bug_of("plan", [] { (void)std::optional<int>().value(); }));
    EXPECT_TRUE(bug_of("plan", [] { (void)std::string().at(1); }));
    EXPECT_THROW(bug_of("plan", [] { throw Cancelled(); }), Cancelled);
    EXPECT_THROW(bug_of("plan", [] { throw Refused({}); }), Refused);
    EXPECT_THROW(bug_of("plan", [] { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST(Reproducer, NothingIsThereBeforeTheImport) {
    EXPECT_EQ(bug_of("import", [] { throw InternalError("lost"); })->program(), "");
    EXPECT_TRUE(write_reproducer(CompilerBug("lost", "import"), "cuvil").empty());
}

TEST(Reproducer, FilesSayHowToCompileThem) {
    CompileOptions options;
    options.target = "native";
    options.opt_level = "O0";
    options.disabled_passes = {"DecomposePass"};
    auto bug = bug_of("codegen", [] { throw InternalError("two\nlines"); }, options);
    const std::filesystem::path path = write_reproducer(*bug, "cuvil compile m.cuir");
    ASSERT_FALSE(path.empty());
    const std::string text = content_of(path);
    EXPECT_TRUE(contains(text, "# Command: cuvil compile m.cuir\n# Error: two\n# lines\n")) << text;
    EXPECT_TRUE(contains(text, "#   cuvil compile " + path.filename().string() +
                                   " --fill-weights --target native --opt-level O0 --disable-pass DecomposePass\n"))
        << text;
    Diagnostics diag;
    EXPECT_THROW(compile(Source{.path = path}, options, diag), Refused);
    options.fill_weights = true;
    const std::string module = bytes(compile(Source{.path = path}, options, diag));
    EXPECT_EQ(module, bytes(compile(Source{.path = path}, options, diag)));
    std::filesystem::remove(path);
}

} // namespace
} // namespace cuvil
