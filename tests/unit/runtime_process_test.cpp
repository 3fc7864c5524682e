// What is seen from outside of a process that uses libcuvil_rt.so.
#include "runtime_fixture.hpp"

#include <cstdlib>
#include <sstream>

namespace cuvil::test {
namespace {

struct Finished {
    int status;
    std::string output;
};

Finished shell(const std::string& command) {
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    Finished result;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
    result.status = pclose(pipe);
    return result;
}

std::string driver(const std::string& mode, const std::string& path) {
    return std::string(CUVIL_DRIVER) + " " + CUVIL_RT + " " + mode + " " + path;
}

TEST(Process, ARunOnOneThreadMakesNoSystemCall) {
    if (shell("strace -V").status != 0) GTEST_SKIP() << "strace is not installed";
    const TemporaryFolder folder;
    const std::string path = folder.write("scale.cuvil", module_bytes("scale"));
    const Finished run = shell("strace -f -o " + folder.file("trace") + " " + driver("quiet", path));
    if (run.output.find("ptrace") != std::string::npos) GTEST_SKIP() << run.output;
    ASSERT_EQ(run.status, 0) << run.output;
    std::ifstream trace(folder.file("trace"));
    int marks = 0;
    for (std::string line; std::getline(trace, line);) {
        if (line.find("getppid(") != std::string::npos)
            marks++;
        else if (marks == 1)
            ADD_FAILURE() << line;
    }
    EXPECT_EQ(marks, 2);
}

TEST(Process, ForkAndCloseTheLibrary) {
    if (is_sanitized) GTEST_SKIP() << "sanitizers know neither threads after a fork nor a library that goes";
    const TemporaryFolder folder;
    const std::string path = folder.write("steps.cuvil", module_bytes("steps"));
    for (int i = 0; i < 20; i++) {
        const Finished run = shell("timeout 60 " + driver("threads", path));
        ASSERT_EQ(run.status, 0) << run.output;
    }
}

TEST(Process, ExitDuringARun) {
    const TemporaryFolder folder;
    const std::string path = folder.write("steps.cuvil", module_bytes("steps"));
    for (int i = 0; i < 20; i++) {
        const Finished run = shell("timeout 60 " + driver("exit", path));
        ASSERT_EQ(run.status, 0) << run.output;
    }
}

TEST(Process, TheLibraryNeedsTheCLibraryAlone) {
    std::istringstream needed(shell(std::string("readelf -d ") + CUVIL_RT + " | grep -o 'NEEDED.*\\|SONAME.*'").output);
    for (std::string line; std::getline(needed, line);)
        EXPECT_TRUE(line.find("[libc.so.6]") != line.npos || line.find("[ld-linux") != line.npos ||
                    line.find("[libcuvil_rt.so.0]") != line.npos)
            << line;
    std::istringstream symbols(shell(std::string("nm -D --defined-only ") + CUVIL_RT).output);
    int count = 0;
    for (std::string line; std::getline(symbols, line); count++)
        EXPECT_NE(line.find(" T cuvil_"), std::string::npos) << line;
    EXPECT_EQ(count, 16);
}

// `scale` with weights 10, 20, 30, 40 on x = 1 2 3 4.
class Examples : public testing::Test {
protected:
    std::string write_module() { return folder_.write("scale.cuvil", module_bytes("scale", {10, 20, 30, 40})); }
    std::string write_input() {
        const float x[] = {1, 2, 3, 4};
        return folder_.write("x.raw", {reinterpret_cast<const char*>(x), sizeof x});
    }
    TemporaryFolder folder_;
};

TEST_F(Examples, C) {
    const std::string program = std::string(CUVIL_EXAMPLE_C) + " " + write_module();
    const Finished run = shell(program + " 1x4=" + write_input());
    EXPECT_EQ(run.status, 0);
    EXPECT_NE(run.output.find("input x\noutput y\noutput level\ny: 1x4 = 12 24 36 48\n"), std::string::npos)
        << run.output;
    EXPECT_NE(shell(program + " 1x5").output.find("input 'x' has shape [1,5], expected [N,4]"), std::string::npos);
}

TEST_F(Examples, Cpp) {
    const Finished run = shell(std::string(CUVIL_EXAMPLE_CPP) + " " + write_module() + " 2x4");
    EXPECT_EQ(run.output.substr(0, run.output.find('\n')), "y: 2x4 = 10 20 30 40 10 20 30 40");
}

TEST_F(Examples, MinimalHosts) {
    std::vector<std::string> hosts = {CUVIL_MINIMAL_HOST};
#ifdef CUVIL_MINIMAL_HOST_MUSL
    hosts.push_back(CUVIL_MINIMAL_HOST_MUSL);
#endif
    const std::string path = write_module(), input = write_input();
    for (const std::string& host : hosts) {
        const Finished run =
            shell("ASAN_OPTIONS=detect_leaks=0 " + host + " " + path + " v2 1x4=" + input + " : 1x4 1");
        EXPECT_EQ(run.status, 0) << host;
        EXPECT_EQ(run.output.substr(0, run.output.find('\n')), "12 24 36 48 ") << host << ": " << run.output;
    }
}

} // namespace
} // namespace cuvil::test
