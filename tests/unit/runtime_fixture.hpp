// The test modules as `.cuvil` bytes, and short ways to make values for them.
#pragma once

#include "artifact/writer.hpp"
#include "cuvil/cuvil.h"
#include "support/file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace cuvil::test {

// Sanitizers refuse what no memory holds, keep freed memory, and have threads of their own.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

inline std::string object_path(const std::string& name) { return std::string(CUVIL_TEST_MODULES) + "/" + name + ".so"; }

// The manifest of a test module, with weights.bytes as given.
inline std::string manifest_of(const std::string& name, uint64_t weights = 0) {
    static const std::map<std::string, std::string> bodies = {
        {"scale", R"("dims":["N"],
            "inputs":[{"name":"x","kind":"tensor","dtype":"f32","shape":["N",4],"dims":[0,-1],"optional":false}],
            "outputs":[{"name":"y","kind":"tensor","dtype":"f32","shape":["N",4],"dims":[0,-1],"optional":false},
                       {"name":"level","kind":"tensor","dtype":"i32","shape":[],"dims":[],"optional":false}],
            "checks":[])"},
        {"pick", R"("dims":["N","M","N+M"],
            "inputs":[{"name":"table","kind":"tensor","dtype":"f32","shape":["N"],"dims":[0],"optional":false},
                      {"name":"index","kind":"tensor","dtype":"i64","shape":["M"],"dims":[1],"optional":false},
                      {"name":"added","kind":"tensor","dtype":"f32","shape":["N+M"],"dims":[2],"optional":true},
                      {"name":"same","kind":"tensor","dtype":"f32","shape":["N",2],"dims":[0,-1],"optional":true}],
            "outputs":[{"name":"y","kind":"tensor","dtype":"f32","shape":["M"],"dims":[1],"optional":false}],
            "checks":[{"message":"index {0} is out of range for axis 0 of size {1}","node":"gather_1"}])"},
        {"nonzero", R"("dims":["N"],
            "inputs":[{"name":"x","kind":"tensor","dtype":"i64","shape":["N"],"dims":[0],"optional":false}],
            "outputs":[{"name":"y","kind":"tensor","dtype":"i64","shape":["found"],"dims":[-2],"optional":false},
                       {"name":"parts","kind":"list","dtype":"i64","optional":false}],
            "checks":[{"message":"{0} is negative","node":""}])"},
        {"upper", R"("dims":["N"],
            "inputs":[{"name":"x","kind":"strings","dtype":"string","shape":["N"],"dims":[0],"optional":false}],
            "outputs":[{"name":"y","kind":"strings","dtype":"string","shape":["N"],"dims":[0],"optional":false}],
            "checks":[])"},
        {"steps", R"("dims":["N"],
            "inputs":[{"name":"x","kind":"tensor","dtype":"i64","shape":["N"],"dims":[0],"optional":false},
                      {"name":"count","kind":"tensor","dtype":"i64","shape":[],"dims":[],"optional":false}],
            "outputs":[{"name":"y","kind":"tensor","dtype":"i64","shape":["N"],"dims":[0],"optional":false}],
            "checks":[{"message":"two threads with one number","node":"step"}])"},
        {"huge", R"("dims":["N"],
            "inputs":[{"name":"x","kind":"tensor","dtype":"f32","shape":["N"],"dims":[0],"optional":false}],
            "outputs":[],"checks":[])"},
        {"future", R"("dims":[],"inputs":[],"outputs":[],"checks":[])"},
    };
    return R"({"format":1,"cuvil":"0.1.0","name":")" + name +
           R"(","producer":"test","target":"cpu-x86-64","levels":["v2","v3","v4"],)" + bodies.at(name) +
           R"(,"workspace":"0","weights":{"bytes":)" + std::to_string(weights) + R"(},"steps":[],"metadata":{}})";
}

template <typename T> std::span<const std::byte> bytes_of(const std::vector<T>& values) {
    return std::as_bytes(std::span<const T>(values));
}

inline std::string module_bytes(const std::string& name, const std::vector<float>& weights = {},
                                const std::vector<AttachedFile>& files = {}) {
    const MappedFile object(object_path(name));
    ArtifactParts parts{object.text(), "", files, {}};
    if (!weights.empty()) parts.weights.push_back(bytes_of(weights));
    parts.manifest = manifest_of(name, weights_size(parts.weights));
    return artifact_bytes(parts);
}

// A folder that goes at the end of the test.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "cuvil-test-XXXXXX").string();
        if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string file(const std::string& name) const { return (path_ / name).string(); }
    std::string write(const std::string& name, std::string_view bytes) const {
        std::ofstream(file(name), std::ios::binary) << bytes;
        return file(name);
    }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

template <typename T> constexpr cuvil_dtype dtype_of();
template <> constexpr cuvil_dtype dtype_of<float>() { return {2, 32, 1}; }
template <> constexpr cuvil_dtype dtype_of<double>() { return {2, 64, 1}; }
template <> constexpr cuvil_dtype dtype_of<int32_t>() { return {0, 32, 1}; }
template <> constexpr cuvil_dtype dtype_of<int64_t>() { return {0, 64, 1}; }

// A tensor with its memory.
template <typename T> struct Tensor {
    std::vector<int64_t> shape;
    std::vector<T> data;
    std::vector<int64_t> strides{};

    cuvil_value value() {
        cuvil_value v{};
        v.tag = CUVIL_TENSOR;
        v.as.tensor = {data.data(),
                       1,
                       0,
                       static_cast<int32_t>(shape.size()),
                       dtype_of<T>(),
                       shape.data(),
                       strides.empty() ? nullptr : strides.data(),
                       0};
        return v;
    }
};

template <typename T> Tensor<T> counting(std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    Tensor<T> tensor{std::move(shape), std::vector<T>(count)};
    std::iota(tensor.data.begin(), tensor.data.end(), T(0));
    return tensor;
}

template <typename T> std::vector<T> elements(const cuvil_value& value) {
    const cuvil_tensor& tensor = value.as.tensor;
    int64_t count = 1;
    for (int32_t i = 0; i < tensor.ndim; i++) count *= tensor.shape[i];
    const T* data = static_cast<const T*>(tensor.data);
    return {data, data + count};
}

struct Unload {
    void operator()(cuvil_module* module) const { cuvil_unload(module); }
};
using ModulePointer = std::unique_ptr<cuvil_module, Unload>;

inline ModulePointer load(const std::string& bytes, int32_t threads = 1) {
    cuvil_module* module = nullptr;
    const int32_t status = cuvil_load_memory(bytes.data(), bytes.size(), threads, &module);
    EXPECT_EQ(status, CUVIL_OK) << cuvil_error_message();
    return ModulePointer(module);
}

} // namespace cuvil::test
