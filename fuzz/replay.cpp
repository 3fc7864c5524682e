// Gives a fuzz target the files of a folder, one after the other, and ends with 0 if it took all of them: what fuzzing
// found stays found, in builds without libFuzzer.
#include "target.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

// In the order of their names, so that a fault shows at the same place again.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    const std::vector<std::filesystem::path> files = files_in(argv[1]);
    for (const std::filesystem::path& path : files) {
        printf("%s\n", path.filename().c_str());
        fflush(stdout); // a crash must not take the name with it
        std::ifstream stream(path, std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
        LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    }
    printf("%zu inputs taken\n", files.size());
    return files.empty();
}
