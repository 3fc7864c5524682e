// cuvil.backends.cxx: a program as C++, and from there to a shared object and a module.
#include "artifact/manifest.hpp"
#include "artifact/writer.hpp"
#include "background.hpp"
#include "codegen/lower_to_cxx.hpp"
#include "errors.hpp"
#include "eval/evaluate.hpp"
#include "extension.hpp"
#include "optimize/pass.hpp"
#include "plan/plan.hpp"
#include "program.hpp"
#include "support/diagnostics.hpp"
#include "support/file.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stop_token>

namespace cuvil::python {
namespace {

// The emitted C++ with what the rest of the module is made of.
struct LoweredModule {
    Program program; // owns what the plan refers to
    Plan plan;
    CXXModule cxx;
    std::vector<std::string> levels;
};

std::shared_ptr<LoweredModule> lower(Program program, std::vector<std::string> levels) {
    Plan plan = choose_algorithms(program);
    choose_layouts(program, plan);
    fuse_loops(program, plan);
    plan_memory(program, plan);
    CXXModule cxx = lower_to_cxx(program, plan, levels);
    return std::make_shared<LoweredModule>(std::move(program), std::move(plan), std::move(cxx), std::move(levels));
}

// The first op that the passes have to take apart before it can be planned.
const OpNode* without_code(const Region& region) {
    for (const auto& node : region.nodes()) {
        if (node->def().lower.kind == Lowering::None && !node->def().has(source) && !node->def().has(terminator))
            return node.get();
        for (const auto& inner : node->regions())
            if (const OpNode* found = without_code(*inner)) return found;
    }
    return nullptr;
}

void expect_complete(const Program& program) {
    if (program.functions().empty() || !program.main().body().terminator())
        raise(PyExc_ValueError, "the program has no function with an output");
    for (const auto& [name, weight] : program.weights())
        if (weight.missing) raise(PyExc_ValueError, "the bytes of weight '%s' are not there", name.c_str());
}

std::shared_ptr<LoweredModule> lower_program(const Program& program, const std::vector<std::string>& levels) {
    expect_complete(program);
    if (const OpNode* node = without_code(program.main().body()))
        raise(PyExc_ValueError, "%s has no code of its own; lower what cuvil.ir.run_passes returns",
              std::string(node->op()).c_str());
    const nb::gil_scoped_release release;
    return lower(copy_of(program), levels);
}

CXXCompileOptions cxx_options(const CompileOptions& options, std::stop_source& stop) {
    const auto watch = [&options, &stop](size_t, size_t) {
        if (*options.cancel) stop.request_stop();
    };
    return {options.jobs, watch, stop.get_token()};
}

std::string shared_object(const LoweredModule& lowered, const CompileOptions& options, Diagnostics& diag) {
    std::stop_source stop;
    return lowered.cxx.compile(cxx_options(options, stop), diag);
}

nb::bytes compile_lowered(const LoweredModule& lowered, const CompileArguments& arguments) {
    std::string object;
    Diagnostics diag;
    run_in_background(arguments, nb::none(),
                      [&](const CompileOptions& options) { object = shared_object(lowered, options, diag); });
    return nb::bytes(object.data(), object.size());
}

std::string module_file(const LoweredModule& lowered, const CompileOptions& options, Diagnostics& diag) {
    const std::string object = shared_object(lowered, options, diag);
    ArtifactParts parts{object, "", {}, {}};
    for (const PlacedConstant& constant : lowered.plan.constants) parts.weights.push_back(constant.bytes);
    parts.manifest =
        manifest_of(lowered.program, lowered.plan, {std::string(version()), options.target, lowered.levels});
    return artifact_bytes(parts);
}

// Writes the module's file to `fd`.
void write_lowered(const LoweredModule& lowered, const CompileArguments& arguments, int fd) {
    Diagnostics diag;
    run_in_background(arguments, nb::none(),
                      [&](const CompileOptions& options) { write_all(fd, module_file(lowered, options, diag)); });
}

// The levels that are asked for, or all that the target has.
std::vector<std::string> levels_of(const CompileOptions& options, Diagnostics& diag) {
    const auto target = std::ranges::find(targets(), options.target, &Target::name);
    if (target == targets().end()) {
        diag.error("unknown-target", "there is no target '" + options.target + "'");
        throw Refused(diag);
    }
    for (const std::string& level : options.levels)
        if (std::ranges::find(target->levels, level) == target->levels.end())
            diag.error("unknown-level", "target '" + options.target + "' has no level '" + level + "'");
    diag.stop_if_errors();
    return options.levels.empty() ? target->levels : options.levels;
}

// The whole way from a program; returns the warnings.
std::string compile_program(const Program& program, const CompileArguments& arguments, nb::handle dump, int fd) {
    expect_complete(program);
    Diagnostics diag;
    run_in_background(arguments, dump, [&](const CompileOptions& options) {
        const std::vector<std::string> levels = levels_of(options, diag);
        Program copy = copy_of(program);
        run_passes(copy, options, evaluate, diag);
        diag.stop_if_errors();
        write_all(fd, module_file(*lower(std::move(copy), levels), options, diag));
    });
    return diag.render();
}

nb::list sources_of(const LoweredModule& lowered) {
    nb::list out;
    for (const CXXSource& source : lowered.cxx.sources)
        out.append(nb::make_tuple(source.name, source.text, source.levels));
    return out;
}

} // namespace

void bind_cxx_backend(nb::module_& m) {
    nb::class_<LoweredModule>(m, "LoweredModule")
        .def_prop_ro("source", [](const LoweredModule& l) { return l.cxx.source_text(); })
        .def_prop_ro("sources", sources_of)
        .def("compile", compile_lowered, nb::arg("arguments"))
        .def("write", write_lowered, nb::arg("arguments"), nb::arg("fd"));
    m.def("lower", lower_program, nb::arg("program"), nb::arg("levels"));
    m.def("compile_program", compile_program, nb::arg("program"), nb::arg("arguments"), nb::arg("dump"), nb::arg("fd"));
    m.def("targets", [] {
        nb::dict out;
        for (const Target& target : targets()) out[target.name.c_str()] = target.levels;
        return out;
    });
}

} // namespace cuvil::python
