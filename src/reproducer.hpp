// What shows a bug of ours again: the program before the step that failed.
#pragma once

#include "cuvil/compile.hpp"

namespace cuvil {

// Knows which stage a compilation is in, by the progress that it tells.
class StageWatch {
public:
    explicit StageWatch(const CompileOptions& options);
    StageWatch(const StageWatch&) = delete;
    StageWatch& operator=(const StageWatch&) = delete;

    const CompileOptions& options() const { return options_; } // tell the watch, too

    // Within a handler: throws the exception again, but one that only a bug of ours throws as a CompilerBug with the
    // program, which is made anew from the source.
    [[noreturn]] void rethrow(const Source& source) const;

private:
    CompileOptions options_;
    std::string stage_ = "import";
};

// The options as `cuvil compile` takes them, as far as they decide what the compiler does.
std::string arguments_of(const CompileOptions& options);

// f(options), with all that a CompilerBug has to tell.
template <class F> auto reproducible(const Source& source, const CompileOptions& options, F f) {
    StageWatch watch(options);
    try {
        return f(watch.options());
    } catch (...) {
        watch.rethrow(source);
    }
}

} // namespace cuvil
