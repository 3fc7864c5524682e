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
    EXPECT_EQ(count, 12);
}

} // namespace
} // namespace cuvil::test
