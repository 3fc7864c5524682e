#include "runtime/manifest.hpp"
#include "runtime_fixture.hpp"

namespace cuvil::rt {
namespace {

std::string refusal(const std::string& json) {
    try {
        read_manifest(json);
        return "";
    } catch (const ManifestError& error) {
        return error.what();
    }
}

std::string with_input(const std::string& input) {
    return R"({"format":1,"dims":["N"],"inputs":[)" + input + R"(],"outputs":[],"checks":[]})";
}

TEST(Manifest, IsRead) {
    const Manifest manifest = read_manifest(test::manifest_of("pick", 128));
    EXPECT_EQ(manifest.dims, (std::vector<std::string>{"N", "M", "N+M"}));
    ASSERT_EQ(manifest.inputs.size(), 4u);
    EXPECT_EQ(manifest.inputs[1].name, "index");
    EXPECT_EQ(manifest.inputs[1].dtype.code, 0);
    EXPECT_EQ(manifest.inputs[1].dtype.bits, 64);
    EXPECT_TRUE(manifest.inputs[2].optional);
    EXPECT_EQ(manifest.inputs[2].shape[0].dim, 2);
    EXPECT_EQ(shape_text(manifest.inputs[3]), "[N,2]");
    EXPECT_EQ(manifest.weights_bytes, 128u);
    EXPECT_EQ(read_manifest(test::manifest_of("nonzero")).outputs[1].tag, CUVIL_LIST);
}

TEST(Manifest, NonsenseIsRefused) {
    EXPECT_NE(refusal("").find("cannot be read"), std::string::npos);
    EXPECT_NE(refusal("[1,2]").find("cannot be read"), std::string::npos);
    EXPECT_NE(refusal("{}").find("format"), std::string::npos);
    EXPECT_NE(refusal(std::string(100000, '[')).find("cannot be read"), std::string::npos);
    EXPECT_EQ(refusal(R"({"format":2})"), "has format 2; this Cuvil reads format 1");
    EXPECT_EQ(refusal(with_input(R"({"name":"x","kind":"tree"})")), "has a value 'x' of unknown kind \"tree\"");
    EXPECT_EQ(refusal(with_input(R"({"name":"x","kind":"tensor","dtype":"f31"})")),
              "has a tensor 'x' of unknown dtype \"f31\"");
    EXPECT_EQ(refusal(with_input(R"({"name":"x","kind":"tensor","dtype":"f32","shape":["N"],"dims":[1]})")),
              "names entry 1 of 1 dimensions");
    EXPECT_EQ(refusal(with_input(R"({"name":"x","kind":"tensor","dtype":"f32","shape":["N"],"dims":[]})")),
              "gives 'x' a shape and dims of different lengths");
    EXPECT_NE(refusal(with_input(R"({"name":"x","kind":"tensor","dtype":"f32","shape":["N"],"dims":[-1]})")), "");
}

TEST(Manifest, FailuresAreSentences) {
    Manifest manifest;
    manifest.checks = {{"index {0} is out of range for axis {9} of size {1}{", "gather_1"}, {"{5}{0}{", ""}};
    EXPECT_EQ(failure_text(manifest, {0, {-7, 3}}), "index -7 is out of range for axis {9} of size 3{ (in 'gather_1')");
    EXPECT_EQ(failure_text(manifest, {1, {1, 0, 0, 0, 0, 6}}), "61{");
    EXPECT_EQ(failure_text(manifest, {2, {}}), "check 2 of the model failed");
    EXPECT_EQ(failure_text(manifest, {-1, {}}), "check -1 of the model failed");
}

TEST(Manifest, DtypesHaveNames) {
    EXPECT_EQ(dtype_text({2, 32, 1}), "f32");
    EXPECT_EQ(dtype_text({4, 16, 1}), "bf16");
    EXPECT_EQ(dtype_text({6, 8, 1}), "bool");
    EXPECT_EQ(dtype_text({2, 32, 4}), "dtype code 2 with 32 bits and 4 lanes");
}

} // namespace
} // namespace cuvil::rt
