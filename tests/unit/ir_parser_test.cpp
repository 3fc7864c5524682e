#include "ir/parser.hpp"

#include "ir/literal.hpp"
#include "ir/printer.hpp"
#include "ir/rewriter.hpp"
#include "ir/verifier.hpp"
#include "ops/op_table.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace cuvil {
namespace {

std::optional<Program> parse_text(std::string_view text) {
    Diagnostics diag;
    auto program = parse(text, "test.cuir", builtin_op_table(), diag);
    EXPECT_EQ(program.has_value(), !diag.has_errors());
    return program;
}

TEST(ParseDim, ReadsWhatDimsPrint) {
    Dim n = Dim::symbol("N"), h = Dim::symbol("H");
    for (const Dim& d :
         {Dim(0), Dim(-3), n, n * 2 - 1, n * h * n - h * 4 + 7, Dim::min(n, h + 1) * 2, Dim::floordiv(n + h, 2),
          Dim::max(Dim::floordiv(n - 3, h), Dim::ceildiv(h, 4)), Dim(std::numeric_limits<int64_t>::min()),
          n + Dim(std::numeric_limits<int64_t>::min()), n * Dim(std::numeric_limits<int64_t>::max())})
        EXPECT_EQ(parse_dim(d.text()), d) << d.text();
}

TEST(ParseDim, RefusesWhatIsNoDim) {
    for (const char* text : {"", "2*", "N +", "floordiv(N)", "min(N, )", "9223372036854775808", "-9223372036854775809",
                             "9223372036854775807*2", "floordiv(N, 0)", "1.5", "N N", "a.b", "(N)"})
        EXPECT_EQ(parse_dim(text), std::nullopt) << text;
}

TEST(ParseType, ReadsWhatTypesPrint) {
    Dim n = Dim::symbol("N");
    Type image = Type::tensor(DType::F32, {n, 64, 56, 56});
    for (const Type& t :
         {Type(), image, Type::tensor(DType::Bool, {}), Type::tensor_of_unknown_rank(DType::F16),
          Type::scalar(DType::I64), Type::string(), Type::tensor(DType::String, {n}), Type::list(Type::optional(image)),
          Type::tuple({Type::string(), Type::list(Type::scalar(DType::F64))}), Type::tuple({}),
          Type::object("a.B<\"c\">"), image.with_layout({Layout::Blocked, 1, n, 1, 0}),
          image.with_layout({Layout::Padded, 1, 1, 2, 3}), image.with_layout({Layout::Phased, 2, 2, 1, n})})
        EXPECT_EQ(parse_type(t.text()), t) << t.text();
}

TEST(ParseType, RefusesWhatIsNoType) {
    for (const char* text :
         {"", "f33[2]", "f32[-1]", "f32[2", "list<f32", "f32[2]{blocked, halo=[1]}", "object<a>", "f32[2] f32"})
        EXPECT_EQ(parse_type(text), std::nullopt) << text;
}

TEST(ParseType, BoundsNesting) {
    std::string deep;
    for (int i = 0; i < 100000; i++) deep += "list<";
    EXPECT_EQ(parse_type(deep), std::nullopt);
    std::string dim;
    for (int i = 0; i < 100000; i++) dim += "min(N, ";
    EXPECT_EQ(parse_dim(dim), std::nullopt);
}

TEST(ParseDim, BoundsProducts) {
    std::string sum = "min(a + b + c + d + e + f, a + b + c + d + e + f)", product = sum, power = "a";
    for (int i = 0; i < 40; i++) product += "*" + sum;
    for (int i = 0; i < 100000; i++) power += "*a";
    EXPECT_EQ(parse_dim(product), std::nullopt);
    EXPECT_EQ(parse_dim(power), std::nullopt);
}

TEST(Literal, FloatsKeepTheirBits) {
    for (double v : {0.0, -0.0, 1.0, 0.1, static_cast<double>(0.1f), 1e-5, 1e300, 5e-324, 1.7976931348623157e308,
                     std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                     std::bit_cast<double>(0x7ff0000000000001), std::bit_cast<double>(0xfff8000000000123)}) {
        auto back = read_float_literal(float_literal(v));
        ASSERT_TRUE(back) << float_literal(v);
        EXPECT_EQ(std::bit_cast<uint64_t>(*back), std::bit_cast<uint64_t>(v)) << float_literal(v);
    }
    EXPECT_EQ(float_literal(static_cast<double>(0.01f)), "0.01f");
    EXPECT_EQ(float_literal(0.5), "0.5");
    EXPECT_EQ(read_float_literal("inf"), std::numeric_limits<double>::infinity());
    EXPECT_EQ(read_float_literal("1e400"), std::nullopt);
    EXPECT_EQ(read_float_literal("0x7ff"), std::nullopt);
    EXPECT_EQ(read_float_literal("1e-400"), 0.0);
}

// Every bit pattern of the 8- and 16-bit types comes back.
TEST(Literal, ElementsKeepTheirBits) {
    for (DType dtype : {DType::F16, DType::BF16, DType::I16, DType::U16, DType::I8, DType::U8})
        for (int bits = 0; bits < (size_of(dtype) == 1 ? 1 << 8 : 1 << 16); bits++) {
            std::string bytes(reinterpret_cast<const char*>(&bits), size_of(dtype)), back;
            std::string text = elements_literal(bytes, Type::scalar(dtype));
            ASSERT_TRUE(append_element(dtype, text, back)) << text;
            ASSERT_EQ(back, bytes) << text;
        }
}

TEST(Literal, ElementsMustFit) {
    std::string bytes;
    EXPECT_FALSE(append_element(DType::I8, "128", bytes));
    EXPECT_FALSE(append_element(DType::U8, "-1", bytes));
    EXPECT_FALSE(append_element(DType::I32, "1.5", bytes));
    EXPECT_FALSE(append_element(DType::F32, "1e39", bytes));
    EXPECT_FALSE(append_element(DType::F16, "65520", bytes));
    EXPECT_FALSE(append_element(DType::BF16, "3.4e38", bytes));
    EXPECT_FALSE(append_element(DType::F32, "0x7f80000", bytes));
    EXPECT_FALSE(append_element(DType::Bool, "1", bytes));
    EXPECT_TRUE(bytes.empty());
}

TEST(Literal, StringsAreValidUtf8) {
    std::string odd("\0\n\"\\\x7f\xff\xc3\xa9\xe3\x81\x82\xed\xa0\x80", 14);
    std::string literal = string_literal(odd);
    EXPECT_EQ(literal, "\"\\x00\\x0a\\\"\\\\\\x7f\\xffé"
                       "あ"
                       "\\xed\\xa0\\x80\"");
    EXPECT_EQ(read_string_literal(literal), odd);
}

TEST(Parser, InfersTypesThatAreLeftOut) {
    auto p = parse_text("func @main(%x: f32[N,3]) {\n  %1 = relu %x\n  return %1\n}\n");
    ASSERT_TRUE(p);
    EXPECT_EQ(p->main().body().terminator()->operand(0)->type().text(), "f32[N,3]");
    EXPECT_EQ(p->main().inputs[0].name, "x");
    EXPECT_EQ(p->main().outputs[0].name, "output");
    EXPECT_EQ(p->fresh_symbol("N"), "N_1");
    EXPECT_TRUE(verify(*p).empty());
}

TEST(Parser, TakesTypesThatAreWritten) {
    auto p = parse_text("func @main(%x: f32[N,3]) {\n  %1 = relu %x : f32[M,3]\n  return %1\n}\n");
    ASSERT_TRUE(p);
    EXPECT_EQ(p->main().body().terminator()->operand(0)->type().text(), "f32[M,3]");
}

TEST(Parser, ReadsBytesOfWeights) {
    auto p = parse_text("weight \"a\" : i32[2] = [1, -1]\nweight \"b\" : f32[3]\nfunc @main() { return }\n");
    ASSERT_TRUE(p);
    const Weight &a = p->weights().find("a")->second, &b = p->weights().find("b")->second;
    EXPECT_EQ(a.bytes.size(), 8u);
    EXPECT_EQ(a.hash, content_hash(a.bytes));
    EXPECT_TRUE(b.missing);
    EXPECT_EQ(b.hash, Hash128{});
}

TEST(Parser, KeepsNamesButNotNumbers) {
    auto p = parse_text("func @main(%12: f32[2], %a.b: f32[2]) {\n  %7 = add %12, %a.b\n  return %7\n}\n");
    ASSERT_TRUE(p);
    EXPECT_EQ(print(p->main()), "func @main(%1: f32[2] \"12\", %a.b: f32[2]) -> f32[2] {\n"
                                "  %2 = add %1, %a.b : f32[2]\n  return %2\n}\n");
}

TEST(Printer, MakesNamesUnique) {
    Program p(builtin_op_table());
    FuncIR& f = p.add_function("odd name");
    for (const char* name : {"x", "x", "/conv1/Conv_output_0", "12", "x_1", "größe"})
        f.body().add_argument(Type::tensor(DType::F32, {}), name), f.inputs.push_back({name, {}});
    Rewriter(p, f).create("return", {});
    std::string text = print(p);
    EXPECT_EQ(
        text,
        "func @\"odd name\"(%x: f32[], %x_1: f32[] \"x\", %_conv1_Conv_output_0: f32[] "
        "\"/conv1/Conv_output_0\", %v12: f32[] \"12\", %x_1_1: f32[] \"x_1\", %gr____e: f32[] \"größe\") -> () {\n"
        "  return\n}\n");
    auto again = parse_text(text);
    ASSERT_TRUE(again);
    EXPECT_TRUE(*again == p);
    EXPECT_EQ(print(*again), text);
}

TEST(Equality, SeesEachPart) {
    const std::string text = "weight \"w\" : f32[2] = [1, 2]\n"
                             "func @main(%x: f32[2]) -> f32[2] \"y\" {\n"
                             "  %w = weight \"w\" : f32[2]\n"
                             "  %s = softmax %x : f32[2]  loc \"a\"\n"
                             "  %1 = add %s, %w : f32[2]\n  return %1\n}\n";
    auto p = parse_text(text);
    ASSERT_TRUE(p);
    auto changed = [&](std::string from, std::string to) {
        std::string other = text;
        other.replace(other.find(from), from.size(), to);
        auto q = parse_text(other);
        EXPECT_TRUE(q) << other;
        return q && !(*p == *q);
    };
    EXPECT_FALSE(changed("%1 = add %s, %w : f32[2]\n  return %1", "%sum = add %s, %w : f32[2]\n  return %sum"));
    EXPECT_FALSE(changed("softmax %x", "softmax %x {axis = -1}"));
    EXPECT_TRUE(changed("softmax %x", "softmax %x {axis = 0}"));
    EXPECT_TRUE(changed("[1, 2]", "[1, 3]"));
    EXPECT_TRUE(changed("loc \"a\"", "loc \"b\""));
    EXPECT_TRUE(changed("add %s, %w", "add %w, %s"));
    EXPECT_TRUE(changed("add %s", "sub %s"));
    EXPECT_TRUE(changed("\"y\"", "\"z\""));
    EXPECT_TRUE(changed("@main", "@other"));
    EXPECT_TRUE(changed("%x: f32[2]", "%x: f32[2] \"in\""));
}

TEST(Parser, StopsAfterManyErrors) {
    std::string text = "func @main() {\n";
    for (int i = 0; i < 1000; i++) text += "  nonsense\n";
    Diagnostics diag;
    EXPECT_FALSE(parse(text + "}\n", "x", builtin_op_table(), diag));
    EXPECT_EQ(diag.all().size(), 20u);
}

// What is wrong with the first line of `nodes`, which take %x of this type.
std::string first_error(const std::string& type, const std::string& nodes) {
    Diagnostics diag;
    EXPECT_FALSE(parse("func @main(%x: " + type + ") -> f32[*] {\n" + nodes + "}\n", "x", builtin_op_table(), diag));
    return diag.all().empty() ? "" : diag.all()[0].message;
}

TEST(Parser, BoundsSizesThatOpsMakeOfThoseInTheText) {
    std::string pools, sum = "a", before = "x";
    for (int i = 0; i < 3000; i++) {
        std::string name = "p" + std::to_string(i);
        pools += "  %" + name + " = max_pool2d %" + before +
                 " {kernel = [2,2], strides = [2,2], pads = [0,0,0,0], dilations = [1,1]}\n";
        before = name;
    }
    EXPECT_EQ(first_error("f32[1,1,H,W]", pools), "max_pool2d: a dimension has too many parts");
    for (int i = 0; i < 200; i++) sum += " + a" + std::to_string(i);
    std::string type = "f32[" + sum + "," + sum + "," + sum + "," + sum + "]";
    EXPECT_EQ(first_error(type, "  %1 = reshape %x {shape = [K]}\n"), "reshape: a dimension has too many parts");
}

TEST(Parser, BoundsNestedRegions) {
    std::string text = "func @main(%c: bool[]) {\n";
    for (int i = 0; i < 100000; i++) text += "if %c then {\n";
    Diagnostics diag;
    EXPECT_FALSE(parse(text, "x", builtin_op_table(), diag));
}

} // namespace
} // namespace cuvil
