#include "ir/verifier.hpp"

#include "ir/parser.hpp"
#include "ir/printer.hpp"
#include "ir/rewriter.hpp"
#include "ops/op_table.hpp"

#include <gtest/gtest.h>

namespace cuvil {
namespace {

using Sentences = std::vector<std::string>;

Program parsed(std::string_view text) {
    Diagnostics diag;
    auto program = parse(text, "test.cuir", builtin_op_table(), diag);
    EXPECT_TRUE(program) << diag.render();
    return program ? std::move(*program) : Program(builtin_op_table());
}

constexpr const char* two_nodes = R"(
func @main(%x: f32[N,3]) -> f32[N,3] "y" {
  %a = relu %x : f32[N,3]
  %b = neg %a : f32[N,3]
  return %b
}
)";

OpNode& node_at(Program& program, size_t i) {
    return **std::next(program.main().body().nodes().begin(), static_cast<ptrdiff_t>(i));
}

TEST(Verifier, AcceptsASoundProgram) { EXPECT_EQ(verify(parsed(two_nodes)), Sentences{}); }

TEST(Verifier, FindsUseBeforeDefinition) {
    Program p = parsed(two_nodes);
    Rewriter(p, p.main()).move_before(node_at(p, 1), node_at(p, 0));
    EXPECT_EQ(verify(p), Sentences{"@main: operand 0 is not defined before this use, in: %b = neg %a : f32[N,3]"});
}

TEST(Verifier, FindsValuesOfOtherFunctions) {
    Program p = parsed(two_nodes);
    FuncIR& other = p.add_function("other");
    Value& foreign = other.body().add_argument(Type::tensor(DType::F32, {Dim::symbol("N"), 3}), "foreign");
    other.inputs.push_back({"foreign", {}});
    Rewriter(p, other).create("return", {});
    Rewriter(p, p.main()).set_operand(node_at(p, 1), 0, &foreign);
    EXPECT_EQ(verify(p), (Sentences{"@main: operand 0 is no value of this function, in: %b = neg %? : f32[N,3]",
                                    "@other: %foreign knows 1 of its uses, expected 0"}));
}

TEST(Verifier, FindsTypesThatDisagreeWithInference) {
    Program p = parsed(two_nodes);
    node_at(p, 1).result().set_type(Type::tensor(DType::F32, {Dim::symbol("N"), 4}));
    EXPECT_EQ(verify(p), Sentences{"@main: result 0 is f32[N,4], inferred f32[N,3], in: %b = neg %a : f32[N,4]"});
    EXPECT_EQ(node_at(p, 1).result().type().text(), "f32[N,4]"); // left as it was
}

// Else a run would write past the end of what M says.
TEST(Verifier, WantsOtherSizesRequired) {
    Program p = parsed(R"(
func @main(%x: f32[N,3], %y: f32[M]) {
  %a = relu %x : f32[M,3]
  %b = reshape %y {shape = [N,2]} : f32[N,2]
  return %a, %b
}
)");
    EXPECT_EQ(verify(p),
              (Sentences{
                  "@main: result 0 is f32[M,3], inferred f32[N,3], in: %a = relu %x : f32[M,3]",
                  "@main: sizes M and 2*N are not known to be equal, in: %b = reshape %y {shape = [N,2]} : f32[N,2]"}));
    p = parsed(R"(
func @main(%x: f32[N,3], %y: f32[M], %z: f32[K]) {
  require {left = [N,K], right = [M,2*N], message = "no"}
  %a = relu %x : f32[M,3]
  %b = reshape %z {shape = [M,2]} : f32[N,2]
  return %a, %b
}
)");
    EXPECT_EQ(verify(p), Sentences{});
}

TEST(Verifier, WhatABranchRequiresHoldsInsideOnly) {
    Program p = parsed(R"(
func @main(%c: bool[], %x: f32[N], %y: f32[M]) {
  %1 = if %c : f32[M] then {
    require {left = [N], right = [M], message = "no"}
    %2 = relu %x : f32[M]
    return %2
  } else {
    return %y
  }
  %3 = relu %x : f32[M]
  return %1, %3
}
)");
    EXPECT_EQ(verify(p), Sentences{"@main: result 0 is f32[M], inferred f32[N], in: %3 = relu %x : f32[M]"});
}

TEST(Verifier, FindsWrongOperands) {
    Program p = parsed(two_nodes);
    Rewriter rewriter(p, p.main());
    rewriter.insert_before(node_at(p, 1));
    Value& a = node_at(p, 0).result();
    Type type = a.type();
    rewriter.create_typed("add", {&a}, {}, {type});
    rewriter.create_typed("logical_not", {&a}, {}, {type});
    rewriter.create_typed("relu", {nullptr}, {}, {type});
    rewriter.create_typed("transpose", {&a}, {}, {type});
    EXPECT_EQ(
        verify(p),
        (Sentences{
            "@main: add takes 2 operands, got 1, in: %1 = add %a : f32[N,3]",
            "@main: operand 'x' of logical_not takes bool values, got f32[N,3], in: %2 = logical_not %a : f32[N,3]",
            "@main: operand 'x' of relu cannot be left out, in: %3 = relu _ : f32[N,3]",
            "@main: attribute 'perm' of transpose is missing, in: %4 = transpose %a : f32[N,3]",
        }));
}

TEST(Verifier, FindsRegionsWithoutEnd) {
    Program p = parsed(two_nodes);
    Rewriter(p, p.main()).erase(node_at(p, 2));
    EXPECT_EQ(verify(p), Sentences{"@main: a region of the function does not end with a return"});
    Rewriter(p, p.main()).create("return", {&node_at(p, 1).result()});
    EXPECT_EQ(verify(p), Sentences{});
    Rewriter(p, p.main()).create("return", {&node_at(p, 1).result()});
    EXPECT_EQ(verify(p), Sentences{"@main: a node follows the region's end, in: return %b"});
}

TEST(Verifier, FindsPortsThatDoNotMatchTheBody) {
    Program p = parsed(two_nodes);
    p.main().inputs.push_back({"x", "nothing"});
    p.main().outputs.clear();
    EXPECT_EQ(verify(p), (Sentences{"@main: 2 names of inputs, expected 1", "@main: 0 names of outputs, expected 1",
                                    "@main: two inputs are named \"x\""}));
}

TEST(Verifier, FindsMissingWeights) {
    Program p = parsed("func @main() {\n  %w = weight \"w\" : f32[2]\n  return %w\n}\n");
    EXPECT_EQ(verify(p), Sentences{});
    p.remove_weight("w");
    EXPECT_EQ(verify(p), Sentences{"@main: there is no weight \"w\", in: %w = weight \"w\" : f32[2]"});
    p.declare_weight("w", Type::tensor(DType::F32, {3}), {});
    EXPECT_EQ(verify(p), Sentences{"@main: weight \"w\" is f32[3], in: %w = weight \"w\" : f32[2]"});
    p.remove_weight("w");
    p.add_weight("w", Type::tensor(DType::F32, {2}), "1234");
    EXPECT_EQ(verify(p), Sentences{"weight \"w\" is f32[2] but has 4 bytes"});
}

TEST(Verifier, ChecksBranches) {
    Program p = parsed(R"(
func @main(%c: bool[], %x: f32[2], %k: i64[2]) {
  %1 = if %c : f32[2] then {
    return %k
  } else {
    return %x, %x
  }
  return %1
}
)");
    EXPECT_EQ(verify(p),
              (Sentences{"@main: region 'then' returns i64[2] as value 0, which does not fit, in: %1 = if %c : f32[2]",
                         "@main: region 'else' returns 2 values, expected 1, in: %1 = if %c : f32[2]"}));
}

TEST(Verifier, ChecksLoops) {
    auto loop = [](std::string_view arguments, std::string_view results) {
        return "func @main(%n: i64[], %c: bool[], %x: f32[2]) {\n"
               "  %1, %2 = loop %n, %c, %x {count = \"K\"} : f32[2], f32[K,2] body (" +
               std::string(arguments) + ") {\n    return " + std::string(results) + "\n  }\n  return %1\n}\n";
    };
    EXPECT_EQ(verify(parsed(loop("%i: i64[], %d: bool[], %v: f32[2]", "%d, %v, %v"))), Sentences{});
    const std::string in = ", in: %1, %2 = loop %n, %c, %x {count = \"K\"} : f32[2], f32[K,2]";
    EXPECT_EQ(verify(parsed(loop("%i: i64[], %d: bool[], %v: f32[S]", "%d, %v, %v"))),
              Sentences{"@main: carried value 0 is f32[S], its result f32[2]" + in});
    EXPECT_EQ(verify(parsed(loop("%i: i64[], %d: bool[]", "%d, %x, %x"))),
              Sentences{"@main: region 'body' takes 2 values, expected 3" + in});
    EXPECT_EQ(verify(parsed(loop("%i: i64[], %d: bool[], %v: f32[2]", "%d, %v"))),
              Sentences{"@main: region 'body' returns 2 values, expected 3" + in});
    EXPECT_EQ(verify(parsed(loop("%i: i64[], %d: bool[], %v: f32[2]", "%v, %i, %v"))),
              (Sentences{"@main: region 'body' returns f32[2] as value 0, which does not fit" + in,
                         "@main: region 'body' returns i64[] as value 1, which does not fit" + in}));
}

TEST(Verifier, SymbolsTakeTheSizesOfLoops) {
    EXPECT_EQ(verify(parsed(R"(func @main(%n: i64[], %x: f32[2]) {
  %1 = loop %n, _, %x {count = "K"} : f32[T] body (%i: i64[], %d: bool[], %v: f32[S]) {
    %w = concat %v, %x {axis = 0} : f32[S + 2]
    return %d, %w
  }
  return %1
})")),
              Sentences{});
}

TEST(Verifier, FindsNamesThatAreNoSizes) {
    Program p = parsed("func @main(%x: f32[2]) {\n  return %x\n}\n");
    p.main().body().arguments()[0]->set_type(Type::tensor(DType::F32, {Dim::symbol("a b")}));
    EXPECT_EQ(verify(p), Sentences{"@main: \"a b\" is no name for a size, in a type"});
    p.main().body().arguments()[0]->set_type(Type::tensor(DType::F32, {-1}));
    EXPECT_EQ(verify(p), Sentences{"@main: a size cannot be -1, in a type"});
}

} // namespace
} // namespace cuvil
