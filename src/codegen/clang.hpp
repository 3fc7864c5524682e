// Clang inside the process: C++ text in, object code in memory out.
#pragma once

#include "kernels/embed/kernel_sources.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace cuvil {

enum class Output { Object, Llvm, Assembly }; // an ELF object; optimised LLVM IR as text; assembly text

struct SourceJob {
    std::string name;  // the file's name in messages and in the object's symbol table: "main.cpp"
    std::string text;  // C++20 without exceptions, RTTI or system headers
    std::string level; // "v2", "v3" or "v4" of x86-64; the macro CUVIL_ISA is this word
    Output output = Output::Object;
    int effort = 1; // 1: -O1; 2: -O2, twice the time for code that is rarely faster
};

struct JobResult {
    std::string bytes;
    std::string diagnostics; // Clang's own text, warnings too
    bool ok = false;
};

// Compiles one source. It and `headers` are all the files there are: nothing is read from the disk. The bytes depend
// on the arguments alone. Any number of threads may call this at once.
JobResult compile_source(const SourceJob& job, std::span<const SourceFile> headers);

// From now on what LLVM takes for fatal is an InternalError and not the end of the process.
void throw_fatal_errors();

// All that decides the bytes of the job's result beside the headers, as one text.
std::string identity(const SourceJob& job);

// Compiles all sources on `threads` threads (0: as many as the machine runs at once); results stand in the order of
// the jobs and do not depend on `threads`. `headers` stay for as long as the process. `progress`, if any, is called on
// the caller's thread with the number of sources done, whenever that rises and many times a second; what it throws goes
// on to the caller. After that, or a stop request, this returns at once, and sources that are not done have
// ok == false; no further one is begun, but threads that are within Clang come to their end by themselves.
std::vector<JobResult> compile_all(std::vector<SourceJob> jobs, std::span<const SourceFile> headers,
                                   unsigned threads = 0, const std::function<void(size_t done)>& progress = {},
                                   const std::stop_token& stop = {});

// Waits for the threads that went on so, before what they use is destroyed. exit() does it, but late: after what the
// threads themselves were the first to use.
void wait_for_left_threads();

} // namespace cuvil
