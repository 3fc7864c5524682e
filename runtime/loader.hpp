// A loaded module: its file, its code and what its runs reuse.
#pragma once

#include "cuvil/cuvil.h"
#include "runtime/arena.hpp"
#include "runtime/artifact_file.hpp"
#include "runtime/manifest.hpp"
#include "runtime/pool.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil::rt {

// What one run needs beside inputs and outputs. Kept for the next run: in the steady state a run allocates nothing but
// the outputs that it was not given.
struct Frame {
    explicit Frame(const Manifest& manifest, int32_t threads);

    std::vector<int64_t> dims;
    std::vector<cuvil_value> in;
    std::vector<cuvil_value> out;
    ArenaAllocator arena;
    Block workspace;
    uint64_t workspace_bytes = 0;
    RunThreads threads;
    cuvil_host host{};
    cuvil_run_options options{}; // of the run under way
    cuvil_call call{};
    cuvil_failure failure{};
};

// The idle frames of a module: as many as there ever were runs at once, up to a limit. No locks.
class FrameList {
public:
    ~FrameList();
    std::unique_ptr<Frame> take(); // null: none idle
    void give(std::unique_ptr<Frame> frame);

private:
    std::array<std::atomic<Frame*>, 64> frames_{};
};

class Module {
public:
    // threads as in cuvil_load. Throws CallError.
    Module(std::unique_ptr<ArtifactFile> file, int32_t threads);
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    // As cuvil_run_with, but throws CallError and std::bad_alloc.
    void run(const cuvil_value* in, cuvil_value* out, const cuvil_run_options& options);

    const Manifest& manifest() const { return manifest_; }
    const std::string& manifest_json() const { return manifest_json_; }
    const cuvil_level& level() const { return *level_; }

private:
    friend class BoundCall;
    struct CloseLibrary {
        void operator()(void* handle) const;
    };

    void open_library();
    void choose_level();
    // Checks the values and fills frame.in, frame.out and frame.call.
    void prepare(Frame& frame, const cuvil_value* in, const cuvil_value* out);
    // The run of a prepared frame.
    void start(Frame& frame);

    std::unique_ptr<ArtifactFile> file_;
    std::string manifest_json_;
    Manifest manifest_;
    std::unique_ptr<void, CloseLibrary> library_;
    const cuvil_program* program_ = nullptr;
    const cuvil_level* level_ = nullptr;
    int32_t threads_;
    FrameList idle_;
};

} // namespace cuvil::rt
