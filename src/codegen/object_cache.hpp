// Objects that were compiled before, as files of a folder: the same source for the same level is compiled once.
//
// An entry's name is a hash of all that decides the object's bytes: the C++, the kernels that it may include, Clang's
// version and arguments. So an entry is never out of date, and any number of processes may share the folder. What
// cannot be read or written, and what is damaged, counts as not there: a cache never fails a compilation.
#pragma once

#include "codegen/clang.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cuvil {

class ObjectCache {
public:
    static constexpr uint64_t usual_limit = 1'000'000'000;

    // An empty path: no cache. The folder is made when the first object is added. `limit`: bytes that all take.
    explicit ObjectCache(std::filesystem::path folder, uint64_t limit = usual_limit)
        : folder_(std::move(folder)), limit_(limit) {}

    // The object of a job whose output is one; it counts as used now.
    std::optional<std::string> find(const SourceJob& job, std::span<const SourceFile> headers) const;
    // Keeps an object, or returns false. While all of them take more than the limit, the one goes that has not been
    // used for the longest time.
    bool add(const SourceJob& job, std::span<const SourceFile> headers, std::string_view object) const;

    struct Contents {
        size_t objects = 0;
        uint64_t bytes = 0;
    };
    Contents contents() const;
    // Removes all objects, and nothing else that may be in the folder; returns what there was. Throws
    // std::system_error for one that cannot be removed.
    Contents clear() const;

private:
    void trim() const;

    std::filesystem::path folder_;
    uint64_t limit_;
};

} // namespace cuvil
