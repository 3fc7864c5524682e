#include "eval/evaluate.hpp"
#include "ir/parser.hpp"
#include "ir/printer.hpp"
#include "ir/rewriter.hpp"
#include "ops/op_table.hpp"
#include "optimize/pass.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

namespace cuvil {
namespace {

constexpr const char* doubled_relu = R"(
func @main(%x: f32[N]) -> f32[N] {
  %1 = relu %x : f32[N]
  %2 = relu %1 : f32[N]
  return %2
}
)";

Program parsed(std::string_view text) {
    Diagnostics diag;
    auto program = parse(text, "test.cuir", builtin_op_table(), diag);
    EXPECT_TRUE(program) << diag.render();
    return program ? std::move(*program) : Program(builtin_op_table());
}

const PassDef& pass_named(std::string_view name) { return *std::ranges::find(all_passes(), name, &PassDef::name); }

// The names under which run_passes prints.
std::vector<std::string> printed(CompileOptions options) {
    std::vector<std::string> names;
    options.dump = [&](std::string_view pass, std::string_view) { names.emplace_back(pass); };
    Program program = parsed(doubled_relu);
    Diagnostics diag;
    run_passes(program, options, evaluate, diag);
    return names;
}

size_t nodes_after(const CompileOptions& options) {
    Program program = parsed(doubled_relu);
    Diagnostics diag;
    run_passes(program, options, evaluate, diag);
    return program.main().body().nodes().size();
}

using Names = std::vector<std::string>;

TEST(RunPasses, PrintsWhatIsAskedFor) {
    EXPECT_EQ(printed({}), Names{});
    EXPECT_EQ(printed({.print_after = {"FuseOperatorsPass"}}), Names{"FuseOperatorsPass"});
    EXPECT_EQ(printed({.print_after = {"all"}}), (Names{"FrontendParse", "InferencePass", "CanonicalizePass",
                                                        "FuseOperatorsPass", "DecomposePass", "CleanupPass"}));
}

TEST(RunPasses, StopsAfterAPass) {
    EXPECT_EQ(printed({.print_after = {"all"}, .stop_after = "FrontendParse"}), Names{"FrontendParse"});
    EXPECT_EQ(printed({.print_after = {"all"}, .stop_after = "CanonicalizePass"}),
              (Names{"FrontendParse", "InferencePass", "CanonicalizePass"}));
    EXPECT_EQ(nodes_after({.stop_after = "FrontendParse"}), 3u);
    EXPECT_EQ(nodes_after({.stop_after = "CanonicalizePass"}), 2u);
}

TEST(RunPasses, SkipsDisabledPasses) {
    EXPECT_EQ(nodes_after({.disabled_passes = {"CanonicalizePass", "CleanupPass"}}), 3u);
    EXPECT_EQ(nodes_after({.disabled_passes = {"CanonicalizePass"}}), 2u);
}

TEST(RunPasses, RefusesUnknownNamesAllAtOnce) {
    Program program = parsed(doubled_relu);
    Diagnostics diag;
    CompileOptions options{.print_after = {"A"}, .disabled_passes = {"B"}, .stop_after = "C"};
    EXPECT_THROW(run_passes(program, options, evaluate, diag), Refused);
    ASSERT_EQ(diag.all().size(), 3u);
    EXPECT_EQ(diag.all()[0].code, "unknown-pass");
    EXPECT_EQ(diag.all()[0].message, "no pass is named \"A\"");
    EXPECT_EQ(diag.all()[0].help,
              "passes: FrontendParse, InferencePass, CanonicalizePass, FuseOperatorsPass, DecomposePass, CleanupPass");
}

TEST(RunPasses, TellsTimesAndChanges) {
    std::vector<std::string> told;
    CompileOptions options;
    options.pass_done = [&](const PassReport& report) {
        EXPECT_GE(report.seconds, 0);
        told.push_back(std::string(report.pass) + " " + std::to_string(report.changes));
    };
    nodes_after(options);
    EXPECT_EQ(told, (Names{"InferencePass 0", "CanonicalizePass 1", "FuseOperatorsPass 0", "DecomposePass 0",
                           "CleanupPass 0"}));
    EXPECT_EQ(text_of({"CanonicalizePass", 0.00125, 1}), "CanonicalizePass          1.25 ms       1 change");
}

TEST(RunPasses, TracesInference) {
    Program program = parsed(R"(
func @main(%x: f32[N,4], %y: f32[8,4]) {
  require {left = [N], right = [8], message = "m"}  loc "m.onnx" "add"
  %1 = reshape %x {shape = [4*N]}  loc "m.onnx" "flatten"
  return %1
}
)");
    Names lines;
    CompileOptions options{.stop_after = "InferencePass"};
    options.trace_inference = [&](std::string_view line) { lines.emplace_back(line); };
    Diagnostics diag;
    run_passes(program, options, evaluate, diag);
    EXPECT_EQ(lines,
              (Names{"round 0, import: flatten (reshape): unknown -> f32[4*N]",
                     "round 1, refine_shapes: add (require): N -> 8", "round 1, refine_shapes: x: f32[N,4] -> f32[8,4]",
                     "round 1, refine_shapes: flatten (reshape): f32[4*N] -> f32[32]", "round 2: nothing changes"}));
}

TEST(RunPasses, CanBeCancelled) {
    std::atomic<bool> cancel = true;
    EXPECT_THROW(nodes_after({.cancel = &cancel}), Cancelled);
}

TEST(RunPasses, FoldsNothingWithoutAnEvaluator) {
    Program program = parsed(R"(
func @main() -> f32[] {
  %1 = constant 1 : f32[]
  %2 = exp %1 : f32[]
  return %2
}
)");
    Diagnostics diag;
    run_passes(program, {}, {}, diag);
    EXPECT_EQ(program.main().body().nodes().size(), 3u);
}

TEST(RunPass, BlamesThePassThatBreaksTheProgram) {
    PassDef vandal{"VandalPass", [](FuncIR& function, PassContext&) {
                       const auto& first = function.body().nodes().front();
                       first->result().set_type(Type::tensor(DType::F32, {3, 4}));
                   }};
    Program program = parsed(doubled_relu);
    Diagnostics diag;
    PassContext context{program, diag, evaluate};
    try {
        run_pass(vandal, context);
        FAIL();
    } catch (const InternalError& error) {
        EXPECT_EQ(std::string(error.what()).substr(0, 17), "after VandalPass:") << error.what();
    }
}

TEST(Canonicalize, ReachesAFixedPoint) {
    Program program = parsed(doubled_relu);
    Diagnostics diag;
    PassContext context{program, diag, evaluate};
    run_pass(pass_named("CanonicalizePass"), context);
    std::string once = print(program);
    run_pass(pass_named("CanonicalizePass"), context);
    EXPECT_EQ(print(program), once);
}

TEST(RunPass, RefusesSizesThatBecomeTooLarge) {
    Program program = parsed(R"(func @main(%x: f32[N,M]) -> f32[N,M] {
  require {left = [N], right = [4294967296], message = "sizes differ"}
  require {left = [M], right = [4294967296], message = "sizes differ"}
  %1 = relu %x : f32[N,M]
  return %1
})");
    Diagnostics diag;
    try {
        run_passes(program, {}, evaluate, diag);
        FAIL() << "not refused";
    } catch (const Refused& refused) {
        EXPECT_STREQ(refused.what(), "error[too-complex]: a dimension exceeds 64 bits\n");
    }
}

// 24 doublings would be 256 MB of constants from 16 bytes, and each op behind them 256 MB more.
TEST(Canonicalize, FoldsNoMoreThanAFileOfThisSizeMayAskFor) {
    std::string text = "func @main() -> f32[67108864] {\n  %d0 = constant [1, 2, 3, 4] : f32[4]\n";
    for (int i = 0; i < 24; i++)
        text += "  %d" + std::to_string(i + 1) + " = concat %d" + std::to_string(i) + ", %d" + std::to_string(i) +
                " {axis = 0}\n";
    text += "  %a = exp %d24\n  %b = exp %a\n  return %b\n}\n";
    Program program = parsed(text);
    Diagnostics diag;
    uint64_t folded = 0;
    auto counting = [&](const Program& all, const OpNode& node) {
        auto results = evaluate(all, node);
        if (results) folded += results->front().size();
        return results;
    };
    run_passes(program, {.stop_after = "CanonicalizePass"}, counting, diag);
    EXPECT_GT(folded, uint64_t{100} << 20);
    EXPECT_LE(folded, uint64_t{256} << 20);
}

TEST(Canonicalize, TakesLongChains) {
    Program program(builtin_op_table());
    FuncIR& main = program.add_function("main");
    Value* x = &main.body().add_argument(Type::tensor(DType::F32, {4, 6}), "x");
    main.inputs.push_back({"x", {}});
    main.outputs.push_back({"y", {}});
    Rewriter rewriter(program, main);
    rewriter.set_location({"model.onnx", "a/rather/long/name/of/a/node"});
    for (int i = 0; i < 20000; i++) x = &rewriter.make("reshape", {x}, {{"shape", i % 2 ? Shape{4, 6} : Shape{6, 4}}});
    rewriter.create("return", {x});
    Diagnostics diag;
    PassContext context{program, diag, evaluate};
    run_pass(pass_named("CanonicalizePass"), context);
    EXPECT_EQ(main.body().nodes().size(), 1u);
}

TEST(RunPass, TellsWhichPassHasABug) {
    Program program = parsed(doubled_relu);
    Diagnostics diag;
    PassContext context{program, diag, evaluate};
    auto step_of = [&](void (*run)(FuncIR&, PassContext&)) -> std::string {
        try {
            run_pass({"BrokenPass", run}, context);
        } catch (const CompilerBug& bug) {
            return bug.step();
        }
        return "";
    };
    EXPECT_EQ(step_of([](FuncIR&, PassContext&) { throw InternalError("wrong"); }), "BrokenPass");
    EXPECT_EQ(step_of([](FuncIR&, PassContext&) { (void)std::string().at(1); }), "BrokenPass");
    // What it leaves is not sound.
    EXPECT_EQ(step_of([](FuncIR& main, PassContext&) { main.outputs.clear(); }), "BrokenPass");
}

} // namespace
} // namespace cuvil
