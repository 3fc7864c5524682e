// Objects become one that shows the names it is told to, and others no longer collide.
#include "codegen/clang.hpp"
#include "codegen/lld.hpp"
#include "codegen/objcopy.hpp"
#include "cuvil/diagnostic.hpp"
#include "support/elf.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace cuvil {
namespace {

std::string object(const std::string& text) {
    JobResult result = compile_source({"test.cpp", text, "v2", Output::Object}, {});
    EXPECT_TRUE(result.ok) << result.diagnostics;
    return result.bytes;
}

// `twice` is a template: each object has a copy, in a group of which linkers keep one.
std::string caller(const std::string& name) {
    return object("template <class T> [[gnu::noinline]] T twice(T x) { return x + x; }"
                  "extern \"C\" int shared(int);"
                  "extern \"C\" int " +
                  name + "(int x) { return twice(x) + shared(x); }");
}

const std::string shared_text = "extern \"C\" int shared(int x) { return x; } extern \"C\" const int old_name = 7;";

std::string joined(const std::string& name) {
    std::string diagnostics;
    const std::string parts[] = {caller(name), object(shared_text)};
    std::string all = join_objects(parts, diagnostics);
    EXPECT_FALSE(all.empty()) << diagnostics;
    return all;
}

TEST(Objcopy, KeepsAndRenamesWhatItIsTold) {
    const std::string all = joined("m_run");
    const auto count = [](const std::string& bytes) { return defined_names(bytes).size(); };
    EXPECT_EQ(count(all), 4u) << "m_run, twice<int>, shared and old_name";
    const std::string kept[] = {"m_*"};
    const std::string hidden = with_names(all, {kept, {{"old_name", "m_program"}}});
    std::vector<std::string> names = defined_names(hidden);
    std::ranges::sort(names);
    EXPECT_EQ(names, (std::vector<std::string>{"m_program", "m_run"}));
    EXPECT_EQ(hidden, with_names(all, {kept, {{"old_name", "m_program"}}}));
}

TEST(Objcopy, TwoObjectsWithTheSameInnerNamesLink) {
    std::vector<std::string> objects;
    for (const char* name : {"m_run", "n_run"}) {
        const std::string kept[] = {name};
        objects.push_back(with_names(joined(name), {kept, {}}));
    }
    objects.push_back(
        object("extern \"C\" int m_run(int); extern \"C\" int n_run(int);"
               "extern \"C\" [[gnu::visibility(\"default\")]] int both() { return m_run(1) + n_run(2); }"));
    std::string diagnostics;
    const std::string exported[] = {"both"};
    EXPECT_FALSE(link_shared(objects, exported, diagnostics).empty()) << diagnostics;
}

TEST(Objcopy, WhatIsNoObjectIsABugOfOurs) { EXPECT_THROW(with_names("no object", {}), InternalError); }

} // namespace
} // namespace cuvil
