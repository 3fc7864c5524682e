// Sources are compiled in memory, alike whatever runs beside them; what is wrong is said, not fatal.
#include "codegen/clang.hpp"

#include <gtest/gtest.h>

#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#endif

#include <algorithm>
#include <stdexcept>
#include <thread>

using namespace cuvil;

static SourceJob job(const std::string& text, const std::string& level = "v3", Output output = Output::Object) {
    return {"test.cpp", text, level, output};
}

static std::string assembly(const std::string& text, const std::string& level) {
    const JobResult result = compile_source(job(text, level, Output::Assembly), {});
    EXPECT_TRUE(result.ok) << result.diagnostics;
    return result.bytes;
}

static bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Clang, MakesObjectsIrAndAssembly) {
    const std::string text = "extern \"C\" int twice(int x) { return x + x; }";
    EXPECT_EQ(compile_source(job(text), {}).bytes.substr(0, 4), "\177ELF");
    EXPECT_TRUE(contains(compile_source(job(text, "v3", Output::Llvm), {}).bytes, "define hidden"));
    EXPECT_TRUE(contains(compile_source(job(text, "v3", Output::Assembly), {}).bytes, "twice:"));
}

TEST(Clang, EachLevelUsesItsOwnRegisters) {
    const std::string text = "using v = float __attribute__((ext_vector_type(16)));"
                             "void add(v* x, const v* y) { *x += *y; }";
    EXPECT_FALSE(contains(assembly(text, "v2"), "%ymm"));
    EXPECT_TRUE(contains(assembly(text, "v3"), "%ymm"));
    EXPECT_TRUE(contains(assembly(text, "v4"), "%zmm"));
}

TEST(Clang, FusesOnlyWhereTheSourceSaysSo) {
    EXPECT_FALSE(contains(assembly("float f(float a, float b, float c) { return a * b + c; }", "v3"), "vfmadd"));
    EXPECT_TRUE(
        contains(assembly("float f(float a, float b, float c) { return __builtin_fmaf(a, b, c); }", "v3"), "vfmadd"));
}

TEST(Clang, DefinesTheLevel) {
    const std::string text = "namespace CUVIL_ISA { int here; }";
    EXPECT_TRUE(contains(assembly(text, "v2"), "_ZN2v24hereE"));
    EXPECT_TRUE(contains(assembly(text, "v4"), "_ZN2v44hereE"));
}

TEST(Clang, FindsTheGivenHeadersAndNoOthers) {
    const SourceFile headers[] = {{"kernels/one.hpp", "#pragma once\n#include \"kernels/two.hpp\"\n"},
                                  {"kernels/two.hpp", "#pragma once\ninline int two() { return 2; }\n"}};
    EXPECT_TRUE(compile_source(job("#include \"kernels/one.hpp\"\nint f() { return two(); }"), headers).ok);

    const JobResult result = compile_source(job("#include <stdio.h>"), headers);
    EXPECT_FALSE(result.ok);
    EXPECT_TRUE(contains(result.diagnostics, "'stdio.h' file not found")) << result.diagnostics;
}

// A function with the name of an intrinsic and another type is an error for which LLVM ends the process.
TEST(Clang, SurvivesWhatLlvmTakesForFatal) {
    const std::string text =
        "typedef float v16 __attribute__((vector_size(64)));"
        "extern \"C\" v16 rsqrt(v16, v16, unsigned short) __asm(\"llvm.x86.avx512.rsqrt14.ps.512\");"
        "void f(v16* x) { *x = rsqrt(*x, *x, 1); }";
    for (int time = 0; time < 2; time++) {
#if __has_feature(address_sanitizer)
        const __lsan::ScopedDisabler lost; // what LLVM holds when it gives up, nobody can give back
#endif
        const JobResult result = compile_source(job(text, "v2"), {});
        EXPECT_FALSE(result.ok);
        EXPECT_TRUE(contains(result.diagnostics, "LLVM gives up: ")) << result.diagnostics;
    }
    EXPECT_TRUE(compile_source(job("int f() { return 1; }", "v2"), {}).ok);
}

TEST(Clang, CarriesTheCInterfaceInItsKernelSources) {
    const JobResult result = compile_source(
        job("#include \"cuvil/cuvil.h\"\nstatic_assert(sizeof(cuvil_tensor) == 48 && sizeof(size_t) == 8);"),
        kernel_sources());
    EXPECT_TRUE(result.ok) << result.diagnostics;
}

TEST(Clang, ReportsASyntaxErrorAndGoesOn) {
    const JobResult bad = compile_source(job("int f(int {"), {});
    EXPECT_FALSE(bad.ok);
    EXPECT_TRUE(bad.bytes.empty());
    EXPECT_TRUE(contains(bad.diagnostics, "/cuvil/test.cpp:1:12: error: ")) << bad.diagnostics;
    EXPECT_TRUE(compile_source(job("int f();"), {}).ok);
}

TEST(Clang, ReportsAnErrorOfTheBackEndAndGoesOn) {
    for (const char* text :
         {"void f() { asm(\"no such instruction\"); }", "void f(int x) { asm volatile(\"\" :: \"{zmm40}\"(x)); }",
          "struct S { char bytes[100]; }; void f(S s) { asm volatile(\"\" :: \"r\"(s)); }"}) {
        const JobResult bad = compile_source(job(text), {});
        EXPECT_FALSE(bad.ok) << text;
        EXPECT_TRUE(contains(bad.diagnostics, "error: ")) << bad.diagnostics;
    }
    EXPECT_TRUE(compile_source(job("int f();"), {}).ok);
}

TEST(Clang, RefusesAnUnknownLevel) {
    const JobResult result = compile_source(job("int f();", "v9"), {});
    EXPECT_FALSE(result.ok);
    EXPECT_TRUE(contains(result.diagnostics, "x86-64-v9")) << result.diagnostics;
}

static std::vector<SourceJob> many_jobs(size_t count) {
    std::vector<SourceJob> jobs;
    jobs.reserve(count);
    for (size_t i = 0; i < count; ++i)
        jobs.push_back(job("int f" + std::to_string(i) + "(int x) { return x * " + std::to_string(i) + "; }",
                           i % 2 ? "v2" : "v4"));
    return jobs;
}

TEST(CompileAll, GivesTheSameForEveryNumberOfThreads) {
    const std::vector<SourceJob> jobs = many_jobs(12);
    const std::vector<JobResult> one = compile_all(jobs, {}, 1);
    for (const unsigned threads : {2u, 5u, 0u}) {
        const std::vector<JobResult> more = compile_all(jobs, {}, threads);
        ASSERT_EQ(more.size(), one.size());
        for (size_t i = 0; i < one.size(); ++i) {
            EXPECT_TRUE(one[i].ok);
            EXPECT_EQ(one[i].bytes, more[i].bytes);
        }
    }
}

TEST(CompileAll, TakesNoJobs) { EXPECT_TRUE(compile_all({}, {}).empty()); }

TEST(CompileAll, OneBadSourceLeavesTheOthers) {
    std::vector<SourceJob> jobs = many_jobs(3);
    jobs[1].text = "error";
    const std::vector<JobResult> results = compile_all(jobs, {}, 2);
    EXPECT_TRUE(results[0].ok);
    EXPECT_FALSE(results[1].ok);
    EXPECT_TRUE(results[2].ok);
}

TEST(CompileAll, ReportsRisingProgressOnTheCallersThread) {
    size_t last = 0;
    const auto caller = std::this_thread::get_id();
    compile_all(many_jobs(8), {}, 2, [&](size_t done) {
        EXPECT_GE(done, last);
        EXPECT_TRUE(std::this_thread::get_id() == caller);
        last = done;
    });
    EXPECT_EQ(last, 8u);
}

TEST(CompileAll, StopsBetweenSources) {
    std::stop_source source;
    const std::vector<JobResult> results = compile_all(
        many_jobs(200), {}, 2,
        [&](size_t done) {
            if (done > 0) source.request_stop();
        },
        source.get_token());
    EXPECT_TRUE(std::any_of(results.begin(), results.end(), [](const JobResult& result) { return result.ok; }));
    EXPECT_FALSE(results.back().ok);
}

// A second of work for Clang, each.
static std::vector<SourceJob> long_jobs() {
    std::string text;
    for (int i = 0; i < 800; ++i) text += "int f" + std::to_string(i) + "(int x) { return x * x + x / 7; }\n";
    return {job(text), job(text)};
}

TEST(CompileAll, LeavesWhatIsWithinClangAtOnce) {
    std::stop_source source;
    size_t calls = 0;
    const auto stop = [&](size_t) {
        if (++calls == 2) source.request_stop();
    };
    const std::vector<JobResult> stopped = compile_all(long_jobs(), {}, 2, stop, source.get_token());
    ASSERT_EQ(stopped.size(), 2u);
    EXPECT_FALSE(stopped[0].ok || stopped[1].ok);
    EXPECT_EQ(calls, 2u) << "told while nothing is done";

    EXPECT_THROW(compile_all(long_jobs(), {}, 1, [](size_t) { throw std::runtime_error("enough"); }),
                 std::runtime_error);
    EXPECT_TRUE(compile_all(many_jobs(2), {}, 2)[1].ok) << "beside those that were left";
    wait_for_left_threads();
    wait_for_left_threads();
}

TEST(CompileAll, PassesOnWhatProgressThrows) {
    EXPECT_THROW(compile_all(many_jobs(200), {}, 2, [](size_t) { throw std::runtime_error("enough"); }),
                 std::runtime_error);
}
