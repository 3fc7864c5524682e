#include "artifact/reader.hpp"
#include "runtime/artifact_view.hpp"
#include "runtime_fixture.hpp"

#include <sys/stat.h>

namespace cuvil::test {
namespace {

// The sentence for damaged bytes; empty when they are read.
std::string damage(std::string_view bytes) {
    std::string error;
    return ArtifactView::read(bytes, error) ? "" : error;
}

void expect_damage(std::string_view bytes, const std::string& part) {
    const std::string sentence = damage(bytes);
    EXPECT_NE(sentence.find(part), std::string::npos) << "got: " << sentence;
}

size_t section_offset(std::string_view bytes, std::string_view magic) { return bytes.find(magic); }

TEST(ArtifactReader, EveryTruncationIsASentence) {
    const std::string bytes = module_bytes("scale", {1, 2, 3, 4}, {{"a.txt", "attached"}});
    ASSERT_EQ(damage(bytes), "");
    for (size_t length = 0; length < bytes.size(); length++) {
        // A copy of its own, so that a read behind the end is found by the sanitizer.
        const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
        ASSERT_NE(damage({cut.data(), cut.size()}), "") << length;
    }
    expect_damage("", "is empty");
    expect_damage(bytes.substr(0, 40), "is truncated: 40 bytes do not hold an ELF header");
    expect_damage(bytes.substr(0, 3000), "the file ends at byte 3000");
    expect_damage(bytes + "x", "was written with");
}

TEST(ArtifactReader, EveryFlippedByteOutsideGapAndWeightsIsASentence) {
    std::string bytes = module_bytes("scale", {1, 2, 3, 4});
    std::string error;
    const auto view = ArtifactView::read(bytes, error);
    ASSERT_TRUE(view) << error;
    const size_t manifest_end = view->manifest().data() + view->manifest().size() - bytes.data();
    const size_t check = view->weights().data() + view->weights().size() - bytes.data();
    for (size_t i = 0; i < bytes.size(); i++) {
        if (i == manifest_end) i = check;
        bytes[i] = static_cast<char>(bytes[i] ^ 0x40);
        ASSERT_NE(damage(bytes), "") << i;
        bytes[i] = static_cast<char>(bytes[i] ^ 0x40);
    }
    const size_t text = manifest_end - 20;
    bytes[text] ^= 1;
    expect_damage(bytes, "(code and manifest)");
}

TEST(ArtifactReader, DamagedWeightsAreFoundOnDemand) {
    const TemporaryFolder folder;
    std::string bytes = module_bytes("scale", {1, 2, 3, 4});
    const float weights[] = {1, 2, 3, 4};
    const size_t at = bytes.find(std::string_view(reinterpret_cast<const char*>(weights), sizeof weights));
    ASSERT_NE(at, std::string::npos);
    bytes[at] ^= 1;
    Diagnostics diagnostics;
    const auto file = read_artifact(folder.write("m.cuvil", bytes), diagnostics);
    ASSERT_TRUE(file) << diagnostics.render();
    EXPECT_FALSE(check_weights(*file, diagnostics));
    ASSERT_EQ(diagnostics.all().size(), 1u);
    EXPECT_NE(diagnostics.all()[0].message.find("64 bytes of weights hash to"), std::string::npos);
}

TEST(ArtifactReader, ForeignFilesAreNamed) {
    const TemporaryFolder folder;
    auto sentence = [&](const std::string& path) {
        Diagnostics diagnostics;
        EXPECT_FALSE(read_artifact(path, diagnostics));
        EXPECT_EQ(diagnostics.all().size(), 1u);
        return diagnostics.all().at(0).message;
    };
    EXPECT_EQ(sentence(folder.write("text", "hello, world")),
              "'" + folder.file("text") + "' is not a Cuvil module: it does not start with an ELF header");
    EXPECT_EQ(sentence(folder.write("empty", "")), "'" + folder.file("empty") + "' is empty");
    EXPECT_NE(sentence("/proc/self/exe").find("is not a Cuvil module"), std::string::npos);
    EXPECT_NE(sentence(object_path("scale")).find("without a section .cuvil.check"), std::string::npos);
}

TEST(ArtifactReader, WhatCannotBeReadIsRefused) {
    const TemporaryFolder folder;
    auto refusal = [&](const std::string& path) -> std::string {
        Diagnostics diagnostics;
        try {
            (void)read_artifact(path, diagnostics);
        } catch (const Refused& refused) {
            return refused.what();
        }
        return "not refused";
    };
    EXPECT_EQ(refusal(folder.file("absent")),
              "error[file-not-found]: there is no file \"" + folder.file("absent") + "\"\n");
    EXPECT_EQ(refusal(folder.path()), "error[is-a-directory]: \"" + folder.path().string() + "\" is a directory\n");
    ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
    EXPECT_NE(refusal(folder.file("pipe")).find("pipe\" cannot be read: "), std::string::npos);
}

TEST(ArtifactReader, ANewerFormatIsNamed) {
    std::string bytes = module_bytes("scale");
    const size_t check = section_offset(bytes, artifact_magic);
    ASSERT_NE(check, std::string::npos);
    bytes[check + offsetof(ArtifactCheck, format)] = 2;
    expect_damage(bytes, "has format 2; this Cuvil reads formats up to 1");
}

} // namespace
} // namespace cuvil::test
