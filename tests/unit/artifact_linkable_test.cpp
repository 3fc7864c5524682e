// Objects get their weights, archives their index, and both the same bytes each time.
#include "artifact/linkable.hpp"
#include "codegen/clang.hpp"
#include "support/elf.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

namespace cuvil {
namespace {

// An object with a function and room for 128 bytes of weights.
std::string object(const std::string& function) {
    JobResult result = compile_source(
        {"test.cpp",
         "__asm__(\".section .rodata.weights,\\\"a\\\",@nobits\\n.balign 64\\n.globl w\\nw:\\n.zero 128\\n.previous\");"
         "extern \"C\" int " +
             function + "() { return 7; }",
         "v2", Output::Object},
        {});
    EXPECT_TRUE(result.ok) << result.diagnostics;
    return result.bytes;
}

const std::byte bytes[100] = {std::byte{1}, std::byte{2}};
const WeightsSource two_pieces = {{bytes, 10}, {bytes, 64}};

template <class Emit> std::string collected(Emit emit) {
    std::string out;
    emit([&](std::string_view part) { out += part; });
    return out;
}

TEST(Linkable, AnObjectHoldsItsWeights) {
    const std::string empty = object("f");
    const std::string filled =
        collected([&](const auto& put) { emit_object({"f.o", empty, ".rodata.weights", two_pieces}, put); });
    const auto at = section_header_at(filled, ".rodata.weights");
    ASSERT_TRUE(at);
    Elf64_Shdr section;
    std::memcpy(&section, filled.data() + *at, sizeof section);
    EXPECT_EQ(section.sh_type, unsigned{SHT_PROGBITS});
    EXPECT_EQ(section.sh_size, 128u);
    EXPECT_EQ(section.sh_offset % 64, 0u);
    ASSERT_EQ(section.sh_offset + 128, filled.size());
    const std::string_view weights = std::string_view(filled).substr(section.sh_offset);
    EXPECT_EQ(weights[0], 1);
    EXPECT_EQ(weights[1], 2);
    EXPECT_EQ(weights[64], 1) << "each piece begins at a multiple of 64";
    EXPECT_FALSE(section_header_at(filled, ".rodata.other"));
}

TEST(Linkable, AnArchiveSaysWhoDefinesWhat) {
    const std::string f = object("f"), g = object("g");
    const LinkableObject members[] = {{"f.o", f}, {"g.o", g, ".rodata.weights", two_pieces}};
    const auto archive = [&] { return collected([&](const auto& put) { emit_archive(members, put); }); };
    const std::string all = archive();
    EXPECT_EQ(all, archive());
    EXPECT_EQ(all.substr(0, 8), "!<arch>\n");
    EXPECT_EQ(all.substr(8, 16), "/               ");
    EXPECT_EQ(all.substr(24, 12), "0           ") << "no time";
    const auto number = [&](size_t at) {
        uint32_t value = 0;
        for (size_t i = 0; i < 4; i++) value = value << 8 | static_cast<unsigned char>(all[at + i]);
        return value;
    };
    ASSERT_EQ(number(68), 4u) << "f and w, g and w";
    EXPECT_EQ(all.substr(number(72), 4), "f.o/");
    EXPECT_EQ(all.substr(number(84), 4), "g.o/");
    EXPECT_EQ(all.size() % 2, 0u);
}

TEST(Linkable, AnArchiveCannotHoldTenGigabytes) {
    const std::string f = object("f");
    const WeightsSource huge = {{bytes, 10'000'000'000}}; // nothing reads them
    const LinkableObject members[] = {{"f.o", f, ".rodata.weights", huge}};
    try {
        emit_archive(members, [](std::string_view) { FAIL() << "nothing may be written"; });
        FAIL() << "no refusal";
    } catch (const Refused& refused) {
        EXPECT_EQ(refused.diagnostics().all().at(0).code, "too-large");
    }
}

} // namespace
} // namespace cuvil
