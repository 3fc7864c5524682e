// Long work of the compiler, with Python's interpreter free and Ctrl-C heard.
#pragma once

#include "cuvil/compile.hpp"

#include <nanobind/nanobind.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cuvil::python {

namespace nb = nanobind;

// What the caller of cuvil.compile may set, as keyword arguments of Python.
struct CompileArguments {
    std::string target, opt_level, optimize_for, precision = "f32";
    std::vector<std::string> levels;
    unsigned jobs = 0;
    bool use_cache = true;
    std::map<std::string, std::string> kernels;
    std::map<std::string, std::vector<int64_t>> input_shapes;
    std::map<std::string, std::vector<std::string>> dynamic_shapes;
    std::vector<std::string> attachments;
    std::vector<std::string> print_after, disabled_passes;
    std::string stop_after;
};

// Runs `work` on a thread of its own. The calling thread meanwhile lets other Python threads run, looks for signals,
// and calls `dump(pass, text)` for what print_after asked for. Throws what `work` throws, or the exception of the
// signal's handler once `work` has stopped.
void run_in_background(const CompileArguments& arguments, nb::handle dump,
                       const std::function<void(const CompileOptions&)>& work);

} // namespace cuvil::python
