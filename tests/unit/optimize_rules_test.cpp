// The rule engine with rules of its own: reading patterns, matching, and what the engine refuses.
#include "cuvil/diagnostic.hpp"
#include "ir/parser.hpp"
#include "ir/printer.hpp"
#include "ops/op_table.hpp"
#include "optimize/rules/rule.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace cuvil {
namespace {

Program parsed(std::string_view text) {
    Diagnostics diag;
    auto program = parse(text, "test.cuir", builtin_op_table(), diag);
    EXPECT_TRUE(program) << diag.render();
    return program ? std::move(*program) : Program(builtin_op_table());
}

std::string complaint_about(std::string_view pattern) {
    try {
        parse_pattern(pattern, builtin_op_table());
        return "";
    } catch (const std::invalid_argument& error) {
        return std::string(error.what()).substr(0, std::string(error.what()).find('\n'));
    }
}

TEST(Pattern, IsReadIntoAGraph) {
    Pattern p =
        parse_pattern("%1 = transpose %x {perm = %first}  %2 = transpose %1 {perm = [1,0]}", builtin_op_table());
    ASSERT_EQ(p.values.size(), 3u);
    EXPECT_EQ(p.values[0].kind, PatternValue::Variable);
    EXPECT_EQ(p.values[1].operands, std::vector<size_t>{0});
    EXPECT_EQ(p.values[1].attributes.at(0).variable, "first");
    EXPECT_EQ(p.root().operands, std::vector<size_t>{1});
    EXPECT_EQ(p.root().attributes.at(0).value, Attribute(std::vector<int64_t>{1, 0}));
}

TEST(Pattern, SaysWhatIsWrong) {
    EXPECT_EQ(complaint_about("%r = mul %x, 1"), "");
    EXPECT_EQ(complaint_about("%r = mull %x, 1"), "error[ir-syntax]: there is no op \"mull\"");
    EXPECT_EQ(complaint_about("%r = relu %x {axis = 1}"), "error[ir-syntax]: relu has no attribute \"axis\"");
    EXPECT_EQ(complaint_about("%r = relu %x %x = relu %r"), "error[ir-syntax]: %x stands here twice, or is used above");
    EXPECT_EQ(complaint_about("%r = if %x"), "error[ir-syntax]: if has not one result, so no pattern");
    EXPECT_EQ(complaint_about("relu %x"), "error[ir-syntax]: expected a value's name, found 'relu'");
    EXPECT_EQ(complaint_about(""), "error[ir-syntax]: expected a value's name, found the end of the text");
}

// The program after one sweep of a rule over main.
std::string rewritten(RuleKind kind, const Rule& rule, std::string_view text) {
    Program program = parsed(text);
    Rewriter rewriter(program, program.main());
    RuleSet rules(kind, program.ops(), {std::span(&rule, 1)});
    auto& nodes = program.main().body().nodes();
    for (auto at = nodes.begin(); at != nodes.end();) rules.apply(**at++, rewriter);
    return print(program.main());
}

bool matches(std::string_view pattern, std::string_view text) {
    Program program = parsed(text);
    Pattern wanted = parse_pattern(pattern, program.ops());
    const Region& body = program.main().body();
    return match(wanted, **std::prev(body.nodes().end(), 2), program).has_value();
}

TEST(Match, TriesBothOrdersOfCommutativeOps) {
    constexpr const char* pattern = "%s = sigmoid %x  %d = sub %x, %y  %1 = add %s, %d  %2 = mul %1, %s";
    constexpr const char* head = "func @main(%a: f32[4], %b: f32[4]) {\n  %1 = sigmoid %a\n  %2 = sub %a, %b\n";
    auto with = [&](const char* tail) { return std::string(head) + tail + "  return %4\n}\n"; };
    EXPECT_TRUE(matches(pattern, with("  %3 = add %1, %2\n  %4 = mul %3, %1\n")));
    EXPECT_TRUE(matches(pattern, with("  %3 = add %2, %1\n  %4 = mul %1, %3\n")));
    EXPECT_FALSE(matches(pattern, with("  %3 = add %2, %2\n  %4 = mul %1, %3\n")));
    EXPECT_FALSE(matches(pattern, with("  %3 = add %1, %2\n  %4 = mul %3, %2\n")));
}

TEST(Match, NumbersAreConstantsOfTheirBits) {
    auto product = [](const char* constant) {
        return std::string("func @main(%x: f32[2]) {\n  %k = ") + constant + "\n  %1 = mul %x, %k\n  return %1\n}\n";
    };
    EXPECT_TRUE(matches("%r = mul %x, 0.1", product("constant [0.1, 0.1] : f32[2]")));
    EXPECT_FALSE(matches("%r = mul %x, 0.1", product("constant [0.1, 0.2] : f32[2]")));
    EXPECT_FALSE(matches("%r = mul %x, 0", product("constant [-0.0, -0.0] : f32[2]")));
}

TEST(Match, ComparesAttributes) {
    constexpr const char* twice = "%1 = reduce_mean %x {axes = %axes}  %2 = reduce_mean %1 {axes = %axes}";
    auto means = [](const char* a, const char* b) {
        return std::string("func @main(%x: f32[2,3]) {\n  %1 = reduce_mean %x {axes = ") + a +
               "}\n  %2 = reduce_mean %1 {axes = " + b + "}\n  return %2\n}\n";
    };
    EXPECT_TRUE(matches(twice, means("[0]", "[0]")));
    EXPECT_FALSE(matches(twice, means("[0]", "[1]")));
    EXPECT_TRUE(matches("%1 = reduce_mean %x {axes = [1]}", means("[0]", "[1]")));
    EXPECT_FALSE(matches("%1 = reduce_mean %x {axes = [0]}", means("[0]", "[1]")));
}

TEST(Match, OptionalOperandsMayBeLeftOut) {
    constexpr const char* conv =
        "func @main(%x: f32[1,1,4,4], %w: f32[1,1,1,1]) {\n  %1 = conv2d %x, %w\n  return %1\n}\n";
    EXPECT_TRUE(matches("%r = conv2d %x, %w, %b", conv));
    EXPECT_TRUE(matches("%r = conv2d %x, %w, _", conv));
    EXPECT_TRUE(matches("%r = conv2d %x, %w", conv));
    EXPECT_FALSE(
        matches("%r = concat %x", "func @main(%x: f32[1]) {\n  %1 = concat %x, %x {axis = 0}\n  return %1\n}\n"));
}

// exp(log(x)) as a rule, for what follows.
const Rule through_log{
    "exp_log", "%l = log %x  %r = exp %l", {}, [](const MatchResult& m) { return &m.make("relu", {m["x"]}); }};

TEST(RuleSet, JoinsThePlacesOfWhatItFuses) {
    EXPECT_EQ(rewritten(RuleKind::Fuse, through_log, R"(
func @main(%x: f32[4]) {
  %1 = log %x  loc "m.onnx" "first"
  %2 = exp %1  loc "m.onnx" "second"
  return %2
})"),
              "func @main(%x: f32[4]) -> f32[4] {\n"
              "  %1 = relu %x : f32[4]  loc \"m.onnx\" \"first + second\"\n"
              "  return %1\n"
              "}\n");
}

TEST(RuleSet, FusesNothingThatIsSeenElsewhere) {
    constexpr const char* output = "func @main(%x: f32[4]) {\n  %1 = log %x\n  %2 = exp %1\n  return %2, %1\n}\n";
    constexpr const char* used =
        "func @main(%x: f32[4]) {\n  %1 = log %x\n  %2 = exp %1\n  %3 = add %1, %2\n  return %3\n}\n";
    for (const char* text : {output, used}) {
        EXPECT_NE(rewritten(RuleKind::Fuse, through_log, text).find("exp"), std::string::npos);
        EXPECT_EQ(rewritten(RuleKind::Simplify, through_log, text).find("exp"), std::string::npos);
    }
}

TEST(RuleSet, AsksTheGuard) {
    constexpr const char* text = "func @main(%x: f32[4]) {\n  %1 = log %x\n  %2 = exp %1\n  return %2\n}\n";
    Rule never = through_log;
    never.guard = [](const MatchContext& m) { return m["x"]->type().rank() == 2; };
    EXPECT_NE(rewritten(RuleKind::Fuse, never, text).find("exp"), std::string::npos);
}

TEST(RuleSet, LosesNoFloatingOperand) {
    const Rule zero{"mul_zero", "%r = mul %x, 0", {}, [](const MatchResult& m) {
                        return &m.rewriter().constant(m["x"]->type(), std::string(16, '\0'));
                    }};
    try {
        rewritten(RuleKind::Simplify, zero, R"(
func @main(%x: f32[4]) {
  %k = constant [0, 0, 0, 0] : f32[4]
  %1 = mul %x, %k
  return %1
})");
        FAIL();
    } catch (const InternalError& error) {
        EXPECT_NE(std::string(error.what()).find("rule mul_zero drops operand %x"), std::string::npos) << error.what();
    }
}

TEST(RuleSet, NamesTheRuleWhosePatternIsWrong) {
    const Rule wrong{"wrong", "%r = nothing %x", {}, "%x"};
    try {
        RuleSet(RuleKind::Simplify, builtin_op_table(), {std::span(&wrong, 1)});
        FAIL();
    } catch (const std::invalid_argument& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("rule wrong: ")) << error.what();
    }
}

} // namespace
} // namespace cuvil
