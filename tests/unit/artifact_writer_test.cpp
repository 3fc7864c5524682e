#include "artifact/writer.hpp"
#include "runtime/artifact_view.hpp"
#include "runtime_fixture.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>

namespace cuvil::test {
namespace {

std::string output_of(const std::string& command) {
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    std::string text;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
    text += "exit " + std::to_string(pclose(pipe));
    return text;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

TEST(ArtifactWriter, WhatWasWrittenIsRead) {
    const std::vector<float> first(3, 1.5f), second(17, 2.5f);
    const MappedFile object(object_path("scale"));
    const ArtifactParts parts{
        object.text(), "{\"a\":1}", {{"tokenizer.json", "tokens"}, {"empty", ""}}, {bytes_of(first), bytes_of(second)}};
    const std::string bytes = artifact_bytes(parts);
    std::string error;
    const auto view = ArtifactView::read(bytes, error);
    ASSERT_TRUE(view) << error;
    EXPECT_EQ(view->manifest(), "{\"a\":1}");
    ASSERT_EQ(view->files().size(), 2u);
    EXPECT_EQ(view->files()[0].name, "tokenizer.json");
    EXPECT_EQ(view->files()[0].bytes, "tokens");
    EXPECT_EQ(view->files()[1].bytes, "");
    EXPECT_EQ(view->machine(), 62);

    EXPECT_EQ(weights_offsets(parts.weights), (std::vector<uint64_t>{0, 64}));
    ASSERT_EQ(view->weights().size(), weights_size(parts.weights));
    EXPECT_EQ(view->weights().size(), 192u);
    EXPECT_EQ((view->weights().data() - bytes.data()) % 4096, 0);
    EXPECT_EQ(memcmp(view->weights().data(), first.data(), 12), 0);
    EXPECT_EQ(memcmp(view->weights().data() + 64, second.data(), 68), 0);
    EXPECT_EQ(view->weights().substr(12, 52), std::string(52, '\0'));
    EXPECT_TRUE(view->verify_weights(error)) << error;
}

TEST(ArtifactWriter, TheSamePartsGiveTheSameBytes) {
    const TemporaryFolder folder;
    const std::vector<float> weights(100, 3.0f);
    const MappedFile object(object_path("scale"));
    const ArtifactParts parts{object.text(), "{}", {{"a", "b"}}, {bytes_of(weights)}};
    Diagnostics diagnostics;
    write_artifact(folder.file("m.cuvil"), parts, diagnostics);
    EXPECT_FALSE(diagnostics.has_errors()) << diagnostics.render();
    EXPECT_EQ(MappedFile(folder.file("m.cuvil")).text(), artifact_bytes(parts));
    EXPECT_EQ(artifact_bytes(parts), artifact_bytes(parts));
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"m.cuvil"});
}

TEST(ArtifactWriter, TheFileIsOrdinaryElf) {
    const TemporaryFolder folder;
    const std::string path = folder.write("m.cuvil", module_bytes("scale", {1, 2, 3, 4}, {{"tokenizer.json", "{}"}}));
    const std::string sections = output_of("readelf -W -S " + path);
    for (const char* name : {".text", ".symtab", ".cuvil.manifest", ".cuvil.file.tokenizer.json", ".cuvil.weights",
                             ".cuvil.check", ".shstrtab"})
        EXPECT_NE(sections.find(name), std::string::npos) << name << "\n" << sections;
    const std::string all = output_of("readelf -W -a " + path);
    EXPECT_EQ(all.find("arning"), std::string::npos) << all;
    EXPECT_EQ(all.find("rror"), std::string::npos) << all;
    EXPECT_NE(all.find("exit 0"), std::string::npos);
    EXPECT_NE(output_of("nm " + path).find("cuvil_program_1"), std::string::npos);
    EXPECT_EQ(output_of("nm -D --undefined-only " + path), "exit 0");
    EXPECT_EQ(output_of("readelf -d " + path + " | grep -c NEEDED"), "0\nexit 256");
}

TEST(ArtifactWriter, WeightsStartAtAPageBehindTheCode) {
    const std::vector<float> weights((33u << 20) / 4, 1.0f);
    const std::string bytes = module_bytes("scale", weights);
    std::string error;
    const auto view = ArtifactView::read(bytes, error);
    ASSERT_TRUE(view) << error;
    EXPECT_EQ((view->weights().data() - bytes.data()) % 4096, 0);
    EXPECT_LT(bytes.size() - view->weights().size(), 100'000u);
}

// Each failure is one sentence, and the folder is as it was.
void expect_failure(const TemporaryFolder& folder, const std::string& path, const std::string& sentence) {
    const std::vector<std::string> before = names_in(folder.path());
    const std::vector<float> weights(100000, 3.0f);
    const MappedFile object(object_path("scale"));
    Diagnostics diagnostics;
    write_artifact(path, {object.text(), "{}", {}, {bytes_of(weights)}}, diagnostics);
    ASSERT_EQ(diagnostics.all().size(), 1u);
    EXPECT_EQ(diagnostics.all()[0].message, "cannot write \"" + path + "\": " + sentence);
    EXPECT_EQ(names_in(folder.path()), before);
}

TEST(ArtifactWriter, FailuresLeaveNothingBehind) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.file("folder"));
    expect_failure(folder, folder.file("folder"), "Is a directory");
    expect_failure(folder, folder.file("absent/m.cuvil"), "No such file or directory");
    ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
    expect_failure(folder, folder.file("pipe"), "not a regular file");

    // A file size limit stands for a full disk: the write fails in the middle.
    folder.write("old.cuvil", "older");
    signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{100000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    expect_failure(folder, folder.file("old.cuvil"), "File too large");
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(MappedFile(folder.file("old.cuvil")).text(), "older");
}

TEST(ArtifactWriter, AttachedNamesMustDiffer) {
    const TemporaryFolder folder;
    const MappedFile object(object_path("scale"));
    Diagnostics diagnostics;
    write_artifact(folder.file("m.cuvil"), {object.text(), "{}", {{"a", "1"}, {"a", "2"}, {"", "3"}}, {}}, diagnostics);
    EXPECT_EQ(diagnostics.all().size(), 2u) << diagnostics.render();
    EXPECT_TRUE(names_in(folder.path()).empty());
}

} // namespace
} // namespace cuvil::test
