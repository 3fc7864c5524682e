#include "runtime/thread_count.hpp"
#include "runtime/values.hpp"
#include "runtime_fixture.hpp"

#include <sched.h>

#include <climits>
#include <cstdlib>

namespace cuvil::rt {
namespace {

class Cgroups : public testing::Test {
protected:
    void put(const std::string& path, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(folder_.file(path)).parent_path());
        folder_.write(path, text);
    }
    int32_t count(const std::string& membership) { return quota_thread_count(membership, folder_.path()); }

    test::TemporaryFolder folder_;
};

TEST_F(Cgroups, NoneMeansNoLimit) {
    EXPECT_EQ(count(""), INT_MAX);
    EXPECT_EQ(count("0::/a\n"), INT_MAX);
    EXPECT_EQ(count("nonsense\n::\n1:cpu\n"), INT_MAX);
}

TEST_F(Cgroups, Version2TakesTheLeastOnTheWayUp) {
    put("a/b/cpu.max", "800000 100000\n");
    EXPECT_EQ(count("0::/a/b\n"), 8);
    put("a/cpu.max", "350000 100000\n");
    EXPECT_EQ(count("0::/a/b\n"), 3);
    put("a/cpu.max", "max 100000\n");
    EXPECT_EQ(count("0::/a/b\n"), 8);
    put("cpu.max", "50000 100000\n");
    EXPECT_EQ(count("0::/a/b\n"), 1);
}

TEST_F(Cgroups, Version1) {
    put("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "400000\n");
    put("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(count("5:cpuset:/docker/x\n4:cpu,cpuacct:/docker/x\n"), 4);
    put("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
    EXPECT_EQ(count("4:cpu,cpuacct:/docker/x\n"), INT_MAX);
    put("cpu/cpu.cfs_quota_us", "200000\n"); // a container that sees only its own folder
    put("cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(count("4:cpu,cpuacct:/docker/x\n"), 2);
}

TEST_F(Cgroups, APathCannotLeaveTheMount) {
    put("cpu.max", "100000 100000\n");
    EXPECT_EQ(count("0::/../..\n"), INT_MAX);
}

TEST(ThreadCount, VariablesOnlyLower) {
    unsetenv("OMP_NUM_THREADS");
    unsetenv("CUVIL_NUM_THREADS");
    const int32_t all = default_thread_count();
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    EXPECT_LE(all, CPU_COUNT(&set));
    setenv("CUVIL_NUM_THREADS", "1", 1);
    EXPECT_EQ(default_thread_count(), 1);
    for (const char* no_limit : {"", "99999999999"}) {
        setenv("CUVIL_NUM_THREADS", no_limit, 1);
        EXPECT_EQ(default_thread_count(), all) << no_limit;
        EXPECT_NO_THROW(expect_thread_variable()) << no_limit;
    }
    for (const char* wrong : {"0", "-3", "many", "2x", " 2"}) {
        setenv("CUVIL_NUM_THREADS", wrong, 1);
        EXPECT_THROW(expect_thread_variable(), CallError) << wrong;
        EXPECT_GE(default_thread_count(), 1) << wrong;
    }
    unsetenv("CUVIL_NUM_THREADS");
    for (const char* ignored : {"0", "-3", "many", ""}) {
        setenv("OMP_NUM_THREADS", ignored, 1);
        EXPECT_EQ(default_thread_count(), all) << ignored;
    }
    setenv("OMP_NUM_THREADS", "1,8", 1);
    EXPECT_EQ(default_thread_count(), 1);
    unsetenv("OMP_NUM_THREADS");
}

TEST(ThreadCount, TheAffinityMaskLimits) {
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &before) && CPU_COUNT(&one) == 0) CPU_SET(i, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(default_thread_count(), 1);
    sched_setaffinity(0, sizeof before, &before);
}

} // namespace
} // namespace cuvil::rt
