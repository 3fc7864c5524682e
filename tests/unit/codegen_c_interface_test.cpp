// What C programs see of a model: names, types and the header.
#include "codegen/c_interface.hpp"
#include "codegen/lower_to_cxx.hpp"
#include "ir/parser.hpp"
#include "ops/op_table.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace cuvil {
namespace {

TEST(CInterface, AnyTextBecomesAnIdentifier) {
    EXPECT_EQ(c_identifier("resnet18-v1.7"), "resnet18_v1_7");
    EXPECT_EQ(c_identifier("onnx::Gather_0"), "onnx_Gather_0") << "two underscores are for the compiler";
    EXPECT_EQ(c_identifier("_Private"), "Private");
    EXPECT_EQ(c_identifier("3d"), "v3d");
    EXPECT_EQ(c_identifier("_3d"), "v3d");
    EXPECT_EQ(c_identifier("int"), "v_int");
    EXPECT_EQ(c_identifier("_int"), "v_int");
    EXPECT_EQ(c_identifier("co_await"), "v_co_await");
    EXPECT_EQ(c_identifier("NULL"), "v_NULL");
    EXPECT_EQ(c_identifier(""), "value");
    EXPECT_EQ(c_identifier("::"), "value");
    EXPECT_EQ(c_identifier("\u00e9t\u00e9"), "t");
    for (const char* text : {"resnet18-v1.7", "_Private", "int", "", "3d", "a__b", "::"})
        EXPECT_EQ(c_identifier(c_identifier(text)), c_identifier(text)) << text;
}

std::string header_of(std::string_view text, const std::string& name = "m") {
    Diagnostics diag;
    Program program = std::move(*parse(text, "test.cuir", builtin_op_table(), diag));
    Plan plan = choose_algorithms(program);
    choose_layouts(program, plan);
    fuse_loops(program, plan);
    plan_memory(program, plan);
    lower_to_cxx(program, plan, {"v2"});
    return c_header(c_interface(program, plan, name), plan, "1.2.3");
}

TEST(CInterface, TheFunctionHasOpenSizesInputsAndOutputs) {
    const std::string header = header_of(R"(
func @main(%int: f32[N,M], %b: i64[2*N]) -> (f32[N,M] "a*/b??/", i64[2*N] "int") {
  %1 = relu %int
  %2 = neg %b
  return %1, %2
})");
    EXPECT_NE(header.find("int32_t m_run(\n    int64_t N,\n    int64_t M,\n    const float* v_int,\n"
                          "    const int64_t* b,\n    float* a_b,\n    int64_t* v_int_2,\n"),
              std::string::npos)
        << header;
    EXPECT_NE(header.find("uint64_t m_workspace_size(int64_t N, int64_t M);"), std::string::npos);
    EXPECT_EQ(header.find("*/b"), std::string::npos) << "no name ends a comment";
    EXPECT_EQ(header.find("m_weights"), std::string::npos) << "there are none";
    EXPECT_EQ(header.find("m_a_b__"), std::string::npos) << "two underscores are for the compiler";
    EXPECT_NE(header.find("Cuvil 1.2.3"), std::string::npos);
}

TEST(CInterface, FixedSizesAreConstants) {
    const std::string header = header_of(R"(
func @main(%x: f64[2,3]) -> (f64[3,2] "y") {
  %1 = transpose %x {perm = [1,0]}
  return %1
})",
                                         "fixed");
    EXPECT_NE(header.find("#define fixed_x_COUNT 6 "), std::string::npos) << header;
    EXPECT_NE(header.find("#define fixed_y_COUNT 6 "), std::string::npos);
    EXPECT_NE(header.find("#define fixed_WORKSPACE_SIZE 127 "), std::string::npos) << "64 bytes wherever they lie";
    EXPECT_NE(header.find("uint64_t fixed_workspace_size(void);"), std::string::npos);
}

} // namespace
} // namespace cuvil
